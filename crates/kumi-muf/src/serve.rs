//! Serving: handlers, what they get, and how a service is started and drained.

use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::core::{Incoming, NameError, Outcome, Pattern, ServiceId};
use crate::driver::{Ask, ServeAsk};
use crate::payload::{as_json, as_text};
use crate::request::{BoxedFuture, millis};
use crate::{Error, IntoPayload, Json, Muf};

/// Handlers of one service that run at a time, unless the service says otherwise.
const CONCURRENCY: usize = 64;

/// How long a handler may work, unless the service says otherwise: far longer than callers wait, but bounded.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(300);

/// A request, as a handler gets it.
#[derive(Debug, Clone)]
pub struct Request {
    incoming: Incoming,
}

impl Request {
    pub(crate) fn new(incoming: Incoming) -> Self {
        Self { incoming }
    }

    /// The unit that calls.
    pub fn unit(&self) -> &str {
        &self.incoming.unit
    }

    /// The request's ID, as it stands in its keys.
    pub fn id(&self) -> &str {
        self.incoming.id.as_str()
    }

    /// `service.method`, or nothing for a bare ID.
    pub fn target(&self) -> Option<&str> {
        self.incoming.id.target()
    }

    /// 1, and one more each time the request was taken over or found by a sweep: it may have run before.
    pub fn attempt(&self) -> u32 {
        self.incoming.attempt
    }

    /// What was sent.
    pub fn payload(&self) -> &Bytes {
        &self.incoming.payload
    }

    /// What was sent, as UTF-8 text.
    pub fn text(&self) -> Result<&str, Error> {
        as_text("request", &self.incoming.payload)
    }

    /// What was sent, as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        as_json("request", &self.incoming.payload)
    }

    /// The caller's W3C `traceparent`, where both sides trace.
    pub fn traceparent(&self) -> Option<String> {
        self.meta()?.get("traceparent")?.as_str().map(str::to_owned)
    }

    /// When the caller stops waiting, where both sides trace. By the caller's clock.
    pub fn deadline(&self) -> Option<SystemTime> {
        let unix_ms = self.meta()?.get("deadline")?.as_u64()?;
        UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms))
    }

    fn meta(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(self.incoming.meta.as_deref()?).ok()
    }
}

/// What a handler may return: something to send, or an error whose text becomes ERR.
pub trait IntoAnswer {
    /// RES or ERR.
    fn into_answer(self) -> Outcome;
}

impl<T: IntoPayload, E: Display> IntoAnswer for Result<T, E> {
    fn into_answer(self) -> Outcome {
        match self.map(IntoPayload::into_payload) {
            Ok(Ok(payload)) => Outcome::Good(payload),
            Ok(Err(error)) => Outcome::Bad(error.to_string().into()),
            Err(error) => Outcome::Bad(error.to_string().into()),
        }
    }
}

impl IntoAnswer for Outcome {
    fn into_answer(self) -> Outcome {
        self
    }
}

/// A handler of any kind, as the engine starts it.
pub(crate) trait AnyHandler: Send + Sync {
    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}

struct Plain<F>(F);

impl<F, Work> AnyHandler for Plain<F>
where
    F: Fn(Request) -> Work + Send + Sync,
    Work: Future<Output: IntoAnswer> + Send + 'static,
{
    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        // A panic before the future exists has to become one inside it, where it is caught and answered.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.0)(request))) {
            Ok(work) => Box::pin(async move { work.await.into_answer() }),
            Err(panic) => Box::pin(async move { std::panic::resume_unwind(panic) }),
        }
    }
}

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
        let ask = ServeAsk {
            pattern,
            places: self.places,
            answer_ttl_ms: self.answer_ttl.map(millis),
            handler_timeout: self.handler_timeout,
            handler: self.handler,
            reply,
        };
        self.muf.ask(Ask::Serve(ask)).await?;
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
            .ask(Ask::Drain {
                service: self.id,
                done,
            })
            .await?;
        drained.await.map_err(|_| Error::Closed)
    }
}
