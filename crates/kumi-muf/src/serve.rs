//! Serving: how a service is started and drained. What its handler gets and returns is in `handler.rs`.

use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::core::{NameError, Outcome, Pattern, ServiceId};
use crate::driver::{Message, StartService};
use crate::handler::{AnyHandler, IntoAnswer, Plain, Request};
use crate::request::{BoxedFuture, millis};
use crate::{Error, Json, Muf};

/// Handlers of one service that run at a time, unless the service says otherwise.
const CONCURRENCY: usize = 64;

/// How long a handler may work, unless the service says otherwise: far longer than callers wait, but bounded.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(300);

/// A service that is being described. `await` starts it.
#[must_use = "a service is started when it is awaited"]
pub struct Serve {
    muf: Muf,
    pattern: Result<Pattern, NameError>,
    places: usize,
    answer_ttl: Option<Duration>,
    handler_timeout: Duration,
    handler: Arc<dyn AnyHandler>,
}

impl Serve {
    pub(crate) fn plain<F, Work>(muf: Muf, pattern: &str, handler: F) -> Self
    where
        F: Fn(Request) -> Work + Send + Sync + 'static,
        Work: Future<Output: IntoAnswer> + Send + 'static,
    {
        Self {
            muf,
            pattern: pattern.parse(),
            places: CONCURRENCY,
            answer_ttl: None,
            handler_timeout: HANDLER_TIMEOUT,
            handler: Arc::new(Plain(handler)),
        }
    }

    pub(crate) fn json<In, Out, E, F, Work>(muf: Muf, pattern: &str, handler: F) -> Self
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        E: Display + Send + 'static,
        F: Fn(Request, In) -> Work + Send + Sync + 'static,
        Work: Future<Output = Result<Out, E>> + Send + 'static,
    {
        Self::plain(muf, pattern, move |request: Request| {
            let work = request.json::<In>().map(|input| handler(request, input));
            async move {
                match work {
                    Ok(work) => work.await.map(Json).into_answer(),
                    Err(error) => Outcome::Bad(error.to_string().into()),
                }
            }
        })
    }

    /// Handlers that run at a time. Further requests wait here, or go to other backends. 64 by default.
    pub fn concurrency(mut self, places: usize) -> Self {
        self.places = places.max(1);
        self
    }

    /// How long a handler may work. One that takes longer is dropped and answered with ERR, so that it does not hold
    /// its request, its claim and its place for ever. 5 minutes by default. A handler that blocks its thread cannot be
    /// dropped.
    pub fn handler_timeout(mut self, limit: Duration) -> Self {
        self.handler_timeout = limit;
        self
    }

    /// How long this service's answers stay. As `Builder::answer_ttl` says by default, and never less than two leases
    /// (4 s unless the unit's lives are short).
    pub fn answer_ttl(mut self, ttl: Duration) -> Self {
        self.answer_ttl = Some(ttl);
        self
    }

    async fn start(self) -> Result<Service, Error> {
        let pattern = self.pattern?;
        let (reply, started) = oneshot::channel();
        let start = StartService {
            pattern,
            places: self.places,
            answer_ttl_ms: self.answer_ttl.map(millis),
            handler_timeout: self.handler_timeout,
            handler: self.handler,
            reply,
        };
        self.muf.send(Message::Serve(start)).await?;
        let id = started.await.map_err(|_| Error::Closed)??;
        Ok(Service { muf: self.muf, id })
    }
}

/// Dropping the future before it is ready starts nothing.
impl IntoFuture for Serve {
    type Output = Result<Service, Error>;
    type IntoFuture = BoxedFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// A service that runs. It goes on when this handle is dropped, until it is drained or its unit is closed.
pub struct Service {
    muf: Muf,
    id: ServiceId,
}

impl Service {
    /// Takes no more requests, and waits until those that run are answered. Others take what this one leaves.
    ///
    /// If the future is dropped, draining goes on.
    pub async fn drain(self) -> Result<(), Error> {
        let (done, drained) = oneshot::channel();
        self.muf
            .send(Message::Drain {
                service: self.id,
                done,
            })
            .await?;
        drained.await.map_err(|_| Error::Closed)
    }
}
