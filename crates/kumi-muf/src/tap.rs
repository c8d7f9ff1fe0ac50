//! A tap: requests, claims and answers of all units, as they happen.
//!
//! It is for people and tools that observe. It changes nothing, and it shows what the server's events reported: after a
//! broken connection, or when it is not read fast enough, it reports a gap and does not fill it. Kept values are not shown here; `watch_keep` is for those.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::future::join_all;
use tokio::sync::mpsc;

use crate::core::key;
use crate::request::BoxedFuture;
use crate::traffic::Traffic;
use crate::{Error, Muf};

/// Events that a tap may be behind before it gets a gap.
pub(crate) const TAP_LIMIT: usize = 8_192;

/// Values that are read in one go.
const BATCH_LIMIT: usize = 256;

/// A [`Stream`] of [`Traffic`]. Dropping it ends the subscription.
pub struct Tap {
    muf: Muf,
    events: mpsc::Receiver<Traffic>,
    /// Reads the values of events that were received.
    reading: Option<BoxedFuture<Vec<Result<Traffic, Error>>>>,
    ready: VecDeque<Result<Traffic, Error>>,
}

impl Tap {
    pub(crate) fn new(muf: Muf, events: mpsc::Receiver<Traffic>) -> Self {
        Self {
            muf,
            events,
            reading: None,
            ready: VecDeque::new(),
        }
    }

    /// The next event; none when the unit was closed. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Traffic, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Tap {
    type Item = Result<Traffic, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(traffic) = self.ready.pop_front() {
                return Poll::Ready(Some(traffic));
            }
            if let Some(reading) = &mut self.reading {
                let read = ready!(reading.as_mut().poll(cx));
                self.reading = None;
                self.ready = read.into();
                continue;
            }
            let mut received = Vec::new();
            if ready!(self.events.poll_recv_many(cx, &mut received, BATCH_LIMIT)) == 0 {
                return Poll::Ready(None);
            }
            let muf = self.muf.clone();
            // Side by side, so that they share a write: traffic may come faster than round trips.
            let reads = received
                .into_iter()
                .map(move |traffic| read(muf.clone(), traffic));
            self.reading = Some(Box::pin(join_all(reads)));
        }
    }
}

/// Adds what the key holds to the event of a key that was set.
async fn read(muf: Muf, traffic: Traffic) -> Result<Traffic, Error> {
    let Traffic::Key(mut event) = traffic else {
        return Ok(traffic);
    };
    if event.event != "set" {
        return Ok(Traffic::Key(event));
    }
    let text = key(&event.unit, event.status, &event.id);
    let limit_bytes = muf.payload_limit_bytes();
    match muf.read_value(text, limit_bytes).await {
        Ok(value) => {
            event.is_cut = value.as_ref().is_some_and(|it| it.len() > limit_bytes);
            event.value = value.map(|it| it.slice(..it.len().min(limit_bytes)));
        }
        // The event is shown without its value: the server went away after it sent the event.
        Err(Error::Disconnected { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(Traffic::Key(event))
}
