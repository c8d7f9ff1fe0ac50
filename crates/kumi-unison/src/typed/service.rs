//! The answering side by type: one request in, one answer out, and events as they come.

use super::channel::read;
use super::{Message, decode, encode};
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

/// A server's side of a channel. Generated code implements it around an implementation of a schema's service, and
/// [`register`]s it.
pub trait TypedService: Send + Sync + 'static {
    /// The handle on one client that has the channel open.
    type Peer: From<UnisonChannel> + Send + Sync;

    /// Whether clients send requests. Without, [`answer`](Self::answer) is not called.
    const ANSWERS: bool = false;

    /// Answers a request, which [`answer`] reads. Requests of one client run at the same time.
    fn answer(
        &self,
        request: IncomingRequest,
    ) -> impl Future<Output = Result<Payload, RemoteError>> + Send {
        let error = RemoteError::method_not_found(request.method());
        async { Err(error) }
    }

    /// Handles an event, which [`event_named`] reads. Events of one client come one after the other.
    fn event(
        &self,
        peer: &Self::Peer,
        message: ProtocolMessage,
    ) -> impl Future<Output = ()> + Send {
        let _ = (peer, message);
        async {}
    }

    /// A client has opened the channel. The future is dropped when the channel ends.
    fn opened(&self, peer: Self::Peer) -> impl Future<Output = ()> + Send;

    /// The channel of a client has ended.
    fn closed(&self, peer: &Self::Peer) -> impl Future<Output = ()> + Send;
}

/// Offers a channel at a server, served by `service` for all clients.
pub fn register<S: TypedService>(
    server: &impl AsRef<ChannelRegistry>,
    spec: ChannelSpec,
    service: S,
) {
    let service = Arc::new(service);
    server.as_ref().register_channel_with(
        spec,
        move |_: Arc<ConnectionContext>, channel: UnisonChannel| {
            serve(Arc::clone(&service), channel)
        },
    );
}

/// Serves one client until its channel ends.
async fn serve<S: TypedService>(
    service: Arc<S>,
    channel: UnisonChannel,
) -> Result<(), NetworkError> {
    let peer = S::Peer::from(channel.clone());
    if S::ANSWERS {
        let service = Arc::clone(&service);
        channel.set_service(move |request: IncomingRequest| {
            let service = Arc::clone(&service);
            async move { service.answer(request).await }
        });
    }
    // A stream that carries a single large call is no client that came or went.
    let is_client = !channel.is_own_stream();
    let events = async {
        while let Some(message) = next_event(&channel).await? {
            service.event(&peer, message).await;
        }
        Ok(())
    };
    let opened = async {
        if is_client {
            service.opened(S::Peer::from(channel.clone())).await;
        }
    };
    let outcome = run_beside(events, opened).await;
    if is_client {
        service.closed(&peer).await;
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
