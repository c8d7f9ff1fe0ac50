//! Kept values: written once, owned by a live unit, read, and watched.

use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::core::{
    CallError, Command, KeepEvent, NameError, OwnedId, Status, WatchId, check_name,
    is_reserved_keep, key,
};
use crate::driver::{Message, Withdrawal};
use crate::muf::SERVER_TIMEOUT;
use crate::request::{BoxedFuture, millis};
use crate::{Error, IntoPayload, Muf};

/// A value that is being kept. `await` writes it.
#[must_use = "a value is written when it is awaited"]
pub struct Keep {
    pub(crate) muf: Muf,
    pub(crate) id: Result<String, NameError>,
    pub(crate) value: Result<Bytes, Error>,
    pub(crate) ttl_ms: Option<u64>,
}

impl Keep {
    /// How long it stays.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl_ms = Some(millis(ttl));
        self
    }

    /// Without a TTL: it stays until it is deleted.
    pub fn forever(mut self) -> Self {
        self.ttl_ms = None;
        self
    }

    /// Writes it, and refreshes it before it expires, for as long as the returned handle and this process live. The
    /// server has it when this returns. A value without a TTL would outlive a crashed unit, so it gets the default of
    /// a day.
    pub async fn owned(self) -> Result<Owned, Error> {
        let (id, value) = (self.id?, self.muf.checked(self.value?)?);
        let ttl_ms = self.ttl_ms.unwrap_or(86_400_000);
        let (reply, owned) = oneshot::channel();
        let (written, is_written) = oneshot::channel();
        self.muf
            .send(Message::Own {
                id,
                value,
                ttl_ms,
                reply,
                written,
            })
            .await?;
        let id = owned.await.map_err(|_| Error::Closed)?;
        let owned = Owned { muf: self.muf, id };
        owned.confirmed(is_written).await?;
        Ok(owned)
    }

    async fn write(self) -> Result<(), Error> {
        let (id, value) = (self.id?, self.muf.checked(self.value?)?);
        let key = key(self.muf.unit(), Status::Keep, &id);
        let set = Command::Set {
            key,
            value,
            ttl_ms: self.ttl_ms,
            only_new: false,
        };
        self.muf.run(vec![set]).await.map(|_| ())
    }
}

/// If the future is dropped, the value may have been written or not.
impl IntoFuture for Keep {
    type Output = Result<(), Error>;
    type IntoFuture = BoxedFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.write())
    }
}

/// Checks a name that a user wants to keep a value under.
pub(crate) fn user_keep_name(id: &str) -> Result<String, NameError> {
    check_name(id)?;
    match is_reserved_keep(id) {
        true => Err(NameError::Reserved(id.to_owned())),
        false => Ok(id.to_owned()),
    }
}

/// A kept value that this process refreshes. Dropping it stops that; the value then lives out its TTL.
pub struct Owned {
    muf: Muf,
    id: OwnedId,
}

impl Owned {
    /// Changes the value. When this returns `Ok`, the server has it, and every later read returns it or a
    /// newer one.
    ///
    /// After [`Error::Disconnected`] or [`Error::Server`], and if the future is dropped, the server may have either
    /// value; the new one is tried again until it is written or another one is set.
    pub async fn set(&self, value: impl IntoPayload) -> Result<(), Error> {
        let value = self.muf.checked(value.into_payload()?)?;
        let (written, is_written) = oneshot::channel();
        self.muf
            .send(Message::ChangeOwned {
                owned: self.id,
                value,
                written,
            })
            .await?;
        self.confirmed(is_written).await
    }

    /// Waits until the server has a value, for as long as commands of handles are tried.
    async fn confirmed(
        &self,
        written: oneshot::Receiver<Result<(), CallError>>,
    ) -> Result<(), Error> {
        match timeout(SERVER_TIMEOUT, written).await {
            Ok(Ok(result)) => result.map_err(|error| self.muf.call_error(error)),
            Ok(Err(_)) => Err(Error::Closed),
            Err(_) => Err(self.muf.disconnected()),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.muf.wires().back.send(Withdrawal::Owned(self.id));
    }
}

/// A watch over kept values: a snapshot, [`KeepEvent::Live`], then what changes.
pub struct KeepWatch {
    pub(crate) muf: Muf,
    pub(crate) id: WatchId,
    pub(crate) events: mpsc::Receiver<KeepEvent>,
}

impl KeepWatch {
    /// The next event; none when the unit was closed. Nothing is lost if the future is dropped.
    ///
    /// A watcher that is too slow loses events, gets [`KeepEvent::Gap`], and then all current values.
    pub async fn next(&mut self) -> Option<KeepEvent> {
        self.events.recv().await
    }
}

impl Stream for KeepWatch {
    type Item = KeepEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<KeepEvent>> {
        self.events.poll_recv(cx)
    }
}

impl Drop for KeepWatch {
    fn drop(&mut self) {
        let _ = self.muf.wires().back.send(Withdrawal::Watch(self.id));
    }
}
