//! Handlers: what they get, what they return, and how they are started.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::core::{Incoming, Outcome};
use crate::error::Error;
use crate::payload::{IntoPayload, as_json, as_text};

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

/// A handler of any kind, as the driver starts it.
pub(crate) trait AnyHandler: Send + Sync {
    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}

/// A handler that is a function of the request.
pub(crate) struct Plain<F>(pub(crate) F);

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
