//! The answering side by type: one request in, one answer out, and events as they come.

use super::channel::read;
use super::{Message, TypedChannel, decode, encode};
use crate::driver::channel::context::ConnectionContext;
use crate::driver::channel::{IncomingRequest, UnisonChannel};
use crate::driver::registry::{ChannelRegistry, ChannelSpec};
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::trace::TraceContext;
use crate::wire::ProtocolMessage;
use futures_util::future::{Either, select};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// What an implementation knows about a request besides its content.
#[derive(Clone)]
pub struct Call<P> {
    /// The peer that made the request: a typed handle on the same channel, to send events or requests to it.
    pub peer: P,
    deadline: Option<Instant>,
    cancelled: CancellationToken,
    trace: Option<TraceContext>,
}

impl<P> Call<P> {
    /// Until when the caller waits.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Fires when the caller gave up, the deadline passed or the channel ended.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// The W3C trace context of the request, if it carries one. It is the [current](TraceContext::current) one in the
    /// handler.
    pub fn traceparent(&self) -> Option<TraceContext> {
        self.trace
    }
}

impl<P: fmt::Debug> fmt::Debug for Call<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("peer", &self.peer)
            .field("deadline", &self.deadline)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}

/// The handle on one client that has a channel open, served by an `S`. [`typed_service!`](crate::typed_service) implements
/// it, and [`register`] takes it.
pub trait ServedBy<S: Send + Sync + 'static>: From<UnisonChannel> + Send + Sync + 'static {
    /// Whether clients send requests. Without, [`respond`](Self::respond) is not called.
    const RESPONDS: bool = false;

    /// Responds to a request, which [`answer`] reads. Requests of one client run at the same time.
    fn respond(
        service: &S,
        request: IncomingRequest,
    ) -> impl Future<Output = Result<Payload, RemoteError>> + Send {
        let _ = service;
        let error = RemoteError::method_not_found(request.method());
        async { Err(error) }
    }

    /// Handles an event, which [`event_named`] reads. Events of one client come one after the other.
    fn event(
        service: &S,
        peer: &Self,
        message: ProtocolMessage,
    ) -> impl Future<Output = ()> + Send {
        let _ = (service, peer, message);
        async {}
    }

    /// A client has opened the channel. The future is dropped when the channel ends.
    fn opened(service: &S, peer: Self) -> impl Future<Output = ()> + Send;

    /// The channel of a client has ended.
    fn closed(service: &S, peer: &Self) -> impl Future<Output = ()> + Send;
}

/// A client's handle whose requests from the server an `S` responds to.
/// [`typed_client_service!`](crate::typed_client_service) implements it, and [`TypedChannel::serve_requests`] takes it.
pub trait RespondsBy<S: Send + Sync + 'static>: From<UnisonChannel> + 'static {
    /// Responds to a request, which [`answer`] reads.
    fn respond(
        service: &S,
        request: IncomingRequest,
    ) -> impl Future<Output = Result<Payload, RemoteError>> + Send;
}

impl<H> TypedChannel<H> {
    /// Responds to the server's requests, from now on and as long as the channel lives.
    pub fn serve_requests<S: Send + Sync + 'static>(&self, implementation: S)
    where
        H: RespondsBy<S>,
    {
        let service = Arc::new(implementation);
        self.raw_channel()
            .set_service(move |request: IncomingRequest| {
                let service = Arc::clone(&service);
                async move { H::respond(&service, request).await }
            });
    }
}

/// Registers a channel at a server, whose clients are served by `service`.
pub fn register<P: ServedBy<S>, S: Send + Sync + 'static>(
    server: &impl AsRef<ChannelRegistry>,
    spec: ChannelSpec,
    service: S,
) {
    let service = Arc::new(service);
    server.as_ref().register_channel_with(
        spec,
        move |_: Arc<ConnectionContext>, channel: UnisonChannel| {
            serve::<P, S>(Arc::clone(&service), channel)
        },
    );
}

/// Serves one client until its channel ends.
async fn serve<P: ServedBy<S>, S: Send + Sync + 'static>(
    service: Arc<S>,
    channel: UnisonChannel,
) -> Result<(), NetworkError> {
    let peer = P::from(channel.clone());
    if P::RESPONDS {
        let service = Arc::clone(&service);
        channel.set_service(move |request: IncomingRequest| {
            let service = Arc::clone(&service);
            async move { P::respond(&service, request).await }
        });
    }
    // A stream that carries a single large call is no client that came or went.
    let is_client = !channel.is_own_stream();
    let events = async {
        while let Some(message) = next_event(&channel).await? {
            P::event(&service, &peer, message).await;
        }
        Ok(())
    };
    let opened = async {
        if is_client {
            P::opened(&service, P::from(channel.clone())).await;
        }
    };
    let outcome = run_beside(events, opened).await;
    if is_client {
        P::closed(&service, &peer).await;
    }
    outcome
}

/// Reads a request, hands it to an implementation, and writes its answer in the request's own format.
///
/// # Errors
/// What the implementation says. A request that cannot be read or breaks the schema never reaches it: the caller gets
/// [`RemoteError::invalid`], with the field's path.
pub async fn answer<Q, A, P, F, Fut>(
    request: IncomingRequest,
    handle: F,
) -> Result<Payload, RemoteError>
where
    Q: Message,
    A: Message,
    P: From<UnisonChannel>,
    F: FnOnce(Call<P>, Q) -> Fut,
    Fut: Future<Output = Result<A, RemoteError>>,
{
    let question: Q =
        decode(request.payload()).map_err(|error| RemoteError::invalid(error.to_string()))?;
    let content_type = request.payload().content_type;
    let call = Call {
        peer: P::from(request.channel().clone()),
        deadline: request.deadline(),
        cancelled: request.cancelled(),
        trace: request.traceparent(),
    };
    drop(request);
    let answer = handle(call, question).await?;
    if let Err(error) = answer.validate() {
        // The caller cannot help it; what is wrong is for this side's log.
        tracing::error!(message = A::NAME, %error, "an answer breaks its own schema");
        return Err(RemoteError::internal());
    }
    encode(&answer, content_type).map_err(RemoteError::from)
}

/// The next event that no stream takes, or nothing when the channel was closed. Notes of the runtime are left out.
///
/// # Errors
/// When the channel ended otherwise than by being closed.
async fn next_event(channel: &UnisonChannel) -> Result<Option<ProtocolMessage>, NetworkError> {
    loop {
        match channel.recv().await {
            Ok(message) if message.is_resumed() => {}
            Ok(message) => return Ok(Some(message)),
            Err(NetworkError::Closed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// The content of an event of this name. Nothing when it has another, and nothing but a line in the log when it cannot
/// be read or breaks the schema.
pub fn event_named<E: Message>(message: &ProtocolMessage, name: &str) -> Option<E> {
    if message.method != name {
        return None;
    }
    match read(message) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(event = E::NAME, %error, "an event was thrown away");
            None
        }
    }
}

/// Runs `main` to its end and `beside` at the same time, which is dropped if it has not ended by then.
async fn run_beside<T>(main: impl Future<Output = T>, beside: impl Future<Output = ()>) -> T {
    let main = pin!(main);
    let beside = pin!(beside);
    match select(main, beside).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(((), main)) => main.await,
    }
}
