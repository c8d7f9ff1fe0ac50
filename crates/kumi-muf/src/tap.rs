//! A tap on the line: requests, claims and answers of all units, as they happen.
//!
//! It is for people and tools that look on. It takes part in nothing, and what it tells is what the server's
//! notifications told it: after a broken connection, or when it is not read fast enough, it says that there is a gap
//! and does not fill it. Kept values are not shown here; `watch_keep` is for those.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::join_all;
use tokio::sync::mpsc;

use crate::core::{Key, Status, key};
use crate::{Error, Muf};

/// The one subscription of a tap. No other part of a unit subscribes to this, so its pushes can be told apart.
pub(crate) const TAP_GLOB: &str = "MUF/*";

/// Events that a tap may be behind before it is told that it missed some.
pub(crate) const TAP_LIMIT: usize = 8_192;

/// Values that are read in one go.
const BATCH_LIMIT: usize = 256;

/// What a tap shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traffic {
    /// Something happened to a key of a request.
    Key(KeyEvent),
    /// Something may have been missed before what follows.
    Gap,
}

/// Something that happened to the key of a request, a claim or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyEvent {
    /// The requester.
    pub unit: String,
    /// REQ, RES or ERR; KEEP for a claim.
    pub status: Status,
    /// The fourth level of the key. A claim's ends in `.claim`.
    pub id: String,
    /// What the server calls it: `set`, `expired`, `del`.
    pub event: String,
    /// What the key held shortly after it was set. None for other events, and if it was gone by then.
    pub value: Option<Bytes>,
    /// The key held more than the unit's limit of payloads, and `value` is only the beginning.
    pub is_cut: bool,
    /// When the server's push arrived.
    pub at: Instant,
}

impl KeyEvent {
    /// Reads a push. Keys that no request has are nobody's traffic.
    pub(crate) fn of(text: &str, event: &str, at: Instant) -> Option<Self> {
        let key = Key::parse(text)?;
        if key.status == Status::Keep && !key.id.ends_with(".claim") {
            return None;
        }
        Some(Self {
            unit: key.unit.to_owned(),
            status: key.status,
            id: key.id.to_owned(),
            event: event.to_owned(),
            value: None,
            is_cut: false,
            at,
        })
    }
}

/// A stream of [`Traffic`]. Dropping it ends it.
pub struct Tap {
    pub(crate) muf: Muf,
    pub(crate) events: mpsc::Receiver<Traffic>,
    /// Received, and not read yet.
    unread: Vec<Traffic>,
    ready: VecDeque<Traffic>,
}

impl Tap {
    pub(crate) fn new(muf: Muf, events: mpsc::Receiver<Traffic>) -> Self {
        Self {
            muf,
            events,
            unread: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next thing to see; none when the unit was closed. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Traffic, Error>> {
        if let Some(traffic) = self.ready.pop_front() {
            return Some(Ok(traffic));
        }
        if self.unread.is_empty() && self.events.recv_many(&mut self.unread, BATCH_LIMIT).await == 0
        {
            return None;
        }
        // Side by side, so that they share a write: traffic may come faster than round trips.
        let values = join_all(self.unread.iter().map(|traffic| self.read(traffic))).await;
        for (mut traffic, value) in self.unread.drain(..).zip(values) {
            match (&mut traffic, value) {
                (Traffic::Key(event), Ok(value)) => {
                    let limit_bytes = self.muf.payload_limit_bytes();
                    event.is_cut = value.as_ref().is_some_and(|it| it.len() > limit_bytes);
                    event.value = value.map(|it| it.slice(..it.len().min(limit_bytes)));
                }
                (_, Ok(_)) => {}
                // What was seen is shown all the same: the server went away after it told us.
                (_, Err(Error::Disconnected)) => {}
                (_, Err(error)) => return Some(Err(error)),
            }
            self.ready.push_back(traffic);
        }
        self.ready.pop_front().map(Ok)
    }

    /// The same as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Traffic, Error>> {
        futures_util::stream::unfold(self, |mut tap| async {
            let traffic = tap.next().await?;
            Some((traffic, tap))
        })
    }

    async fn read(&self, traffic: &Traffic) -> Result<Option<Bytes>, Error> {
        let Traffic::Key(event) = traffic else {
            return Ok(None);
        };
        if event.event != "set" {
            return Ok(None);
        }
        let text = key(&event.unit, event.status, &event.id);
        let limit_bytes = self.muf.payload_limit_bytes();
        self.muf.read_value(text, limit_bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_answers_and_claims_are_traffic() {
        let check = |key: &str, status: Option<Status>| {
            let event = KeyEvent::of(key, "set", Instant::now());
            assert_eq!(event.map(|event| event.status), status, "{key}");
        };
        check("MUF/web/REQ/a.b~01J", Some(Status::Req));
        check("MUF/web/RES/a.b~01J", Some(Status::Res));
        check("MUF/web/ERR/hello", Some(Status::Err));
        check("MUF/web/KEEP/a.b~01J.claim", Some(Status::Keep));
        check("MUF/web/KEEP/a.b~01J.tries", None);
        check("MUF/web/KEEP/_info", None);
        check("MUF/web/KEEP/temperature", None);
        check("MUF/web/REQ/a/b", None);
    }
}
