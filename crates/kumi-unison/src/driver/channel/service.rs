//! Services, which respond to requests, and requests as their handlers get them.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::UnisonChannel;
use super::driver::ChannelDriver;
use crate::core::IncomingCall;
use crate::error::RemoteError;
use crate::payload::Payload;
use crate::trace::TraceContext;

/// Responds to requests.
///
/// A request's future is first polled by the reader, so a response that is ready at once costs no task; otherwise the future
/// becomes a task. It is never dropped early: when the caller gives up, the request's token fires, and the handler returns
/// when it chooses. Long computations belong on another thread.
///
/// Closures are services:
///
/// ```
/// use kumi_unison::{IncomingRequest, Payload, RemoteError, Service};
///
/// fn echo() -> impl Service {
///     |request: IncomingRequest| async move {
///         match request.method() {
///             "echo" => Ok(request.into_payload()),
///             other => Err(RemoteError::method_not_found(other)),
///         }
///     }
/// }
/// # let _ = echo();
/// # assert_eq!(RemoteError::method_not_found("x").code, "method-not-found");
/// ```
pub trait Service: Send + Sync + 'static {
    /// Responds to one request.
    fn call(&self, request: IncomingRequest) -> BoxFuture<'static, Result<Payload, RemoteError>>;
}

impl<F, Fut> Service for F
where
    F: Fn(IncomingRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Payload, RemoteError>> + Send + 'static,
{
    fn call(&self, request: IncomingRequest) -> BoxFuture<'static, Result<Payload, RemoteError>> {
        Box::pin(self(request))
    }
}

/// A request, as its handler gets it.
#[derive(Debug)]
pub struct IncomingRequest {
    call: IncomingCall,
    channel: UnisonChannel,
    /// The stream of its own that it came on, if it did.
    part: Option<Arc<ChannelDriver>>,
}

impl IncomingRequest {
    pub(super) fn new(
        call: IncomingCall,
        channel: UnisonChannel,
        part: Option<Arc<ChannelDriver>>,
    ) -> Self {
        Self {
            call,
            channel,
            part,
        }
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// The payload.
    pub fn payload(&self) -> &Payload {
        &self.call.payload
    }

    /// The payload, without copying it.
    pub fn into_payload(self) -> Payload {
        self.call.payload
    }

    /// The caller's deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// Fires when the caller gave up, the deadline passed or the channel ended.
    pub fn cancelled(&self) -> CancellationToken {
        let driver = self.part.as_ref().unwrap_or(self.channel.driver());
        driver.token(self.call.generation, self.call.id)
    }

    /// The W3C trace context of the request, if it carries one. It is the [current](TraceContext::current) one in the
    /// handler.
    pub fn traceparent(&self) -> Option<TraceContext> {
        self.call.trace
    }

    /// The channel it belongs to, to send events or requests; also if it came on a stream of its own.
    pub fn channel(&self) -> &UnisonChannel {
        &self.channel
    }
}
