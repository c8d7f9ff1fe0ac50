//! Making a call, and gathering from all.

use std::collections::VecDeque;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};

use crate::core::{CallError, Gathered, Target};
use crate::driver::{Message, StartCall, StartGather, Ticket, Wires, Withdrawal};
use crate::{Answer, Error, Muf};

/// Answers of a gather that may wait for its reader, and the error that may end it.
const ANSWER_ROOM: usize = 64 + 1;

/// A boxed future, as `IntoFuture` needs to name one.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A call that is being described. `await` makes it.
#[must_use = "a call is made when it is awaited"]
pub struct Call {
    pub(crate) muf: Muf,
    pub(crate) target: Result<Target, Error>,
    pub(crate) payload: Result<Bytes, Error>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) traceparent: Option<String>,
}

impl Call {
    /// TTL of the request while no backend claims it. Never longer than the timeout.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait for the answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A W3C `traceparent` for the tracing side key. Without `Builder::tracing` it is not sent.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.traceparent = Some(traceparent.to_owned());
        self
    }

    async fn send(self) -> Result<Answer, Error> {
        let (target, payload) = (self.target?, self.muf.checked(self.payload?)?);
        // Declared first, so that it is dropped last: the receiver has to be gone when the driver gets the withdrawal.
        let guard = Guard {
            wires: self.muf.wires(),
            ticket: self.muf.ticket(),
            armed: true,
        };
        let (reply, answered) = oneshot::channel();
        let start = StartCall {
            ticket: guard.ticket,
            target,
            payload,
            ttl_ms: self.ttl.map(millis),
            timeout_ms: self.timeout.map(millis),
            traceparent: self.traceparent,
            reply,
        };
        self.muf.send(Message::Call(start)).await?;
        let result = answered.await.map_err(|_| Error::Closed)?;
        guard.disarm();
        let answer = result.map_err(|error| self.muf.call_error(error))?;
        Ok(Answer::from(answer))
    }
}

/// Dropping the future forgets the call here. Its request stays until it expires, and a backend may run it.
impl IntoFuture for Call {
    type Output = Result<Answer, Error>;
    type IntoFuture = BoxedFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// A gather that is being described. `await` collects all answers; [`Gather::start`] gives them one by one.
///
/// It fails if answers may be missing: with [`Error::SearchUnfinished`] if its subscription was interrupted and the search
/// for what was missed did not end, with [`Error::Disconnected`] if the server was away at its end. The answers that came
/// before are lost to `await`, and not to [`Gather::start`].
#[must_use = "a gather is made when it is awaited or started"]
pub struct Gather {
    pub(crate) muf: Muf,
    pub(crate) target: Result<Target, Error>,
    pub(crate) payload: Result<Bytes, Error>,
    pub(crate) timeout: Duration,
    pub(crate) ttl: Option<Duration>,
    pub(crate) traceparent: Option<String>,
    pub(crate) count: Option<usize>,
    pub(crate) quiet: Option<Duration>,
}

impl Gather {
    /// When to end at the latest. 2 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the request lives, for backends that come late. As long as the gather by default, and never less than two
    /// leases (4 s unless the unit's lives are short).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// A W3C `traceparent` for the tracing side key. Without `Builder::tracing` it is not sent.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.traceparent = Some(traceparent.to_owned());
        self
    }

    /// End when this many have answered.
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    /// End when no backend has answered for this long after the first answer.
    pub fn quiet(mut self, quiet: Duration) -> Self {
        self.quiet = Some(quiet);
        self
    }

    /// Sends the request, and returns answers as they come.
    pub async fn start(self) -> Result<Answers, Error> {
        let (target, payload) = (self.target?, self.muf.checked(self.payload?)?);
        let guard = Guard {
            wires: self.muf.wires(),
            ticket: self.muf.ticket(),
            armed: true,
        };
        let (answers, coming) = mpsc::channel(ANSWER_ROOM);
        let start = StartGather {
            ticket: guard.ticket,
            target,
            payload,
            timeout_ms: millis(self.timeout),
            ttl_ms: self.ttl.map(millis),
            traceparent: self.traceparent,
            count: self.count,
            quiet_ms: self.quiet.map(millis),
            answers,
        };
        self.muf.send(Message::Gather(start)).await?;
        Ok(Answers {
            coming,
            guard: Some(guard),
            muf: self.muf,
        })
    }

    async fn collect(self) -> Result<Vec<Gathered>, Error> {
        let mut answers = self.start().await?;
        let mut all = VecDeque::new();
        while let Some(answer) = answers.next().await {
            all.push_back(answer?);
        }
        Ok(all.into())
    }
}

impl IntoFuture for Gather {
    type Output = Result<Vec<Gathered>, Error>;
    type IntoFuture = BoxedFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.collect())
    }
}

/// Answers of a gather as they come. While 64 of them are not taken, no more are read; 10,000 are the most. Dropping it ends the gather here; backends that have the request still answer.
pub struct Answers {
    coming: mpsc::Receiver<Result<Gathered, CallError>>,
    guard: Option<Guard>,
    /// The driver lives as long as there is a handle.
    muf: Muf,
}

impl Answers {
    /// The next answer; none when the gather is over. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Gathered, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Answers {
    type Item = Result<Gathered, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = ready!(self.coming.poll_recv(cx));
        if answer.is_none()
            && let Some(guard) = self.guard.take()
        {
            guard.disarm();
        }
        let muf = &self.muf;
        Poll::Ready(answer.map(|answer| answer.map_err(|error| muf.call_error(error))))
    }
}

/// Takes a call back when its future is dropped before the answer.
struct Guard {
    wires: Wires,
    ticket: Ticket,
    armed: bool,
}

impl Guard {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            // A driver that is gone has nothing to forget.
            let _ = self.wires.back.send(Withdrawal::Ticket(self.ticket));
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}
