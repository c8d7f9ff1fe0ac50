//! What can be set on a channel and on a call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::UnisonChannel;
use super::service::Service;
use crate::core::{EventPolicy, Settings, Window};
use crate::driver::channel::context::ConnectionContext;
use crate::error::NetworkError;
use crate::identity::{ChannelDirection, Delivery, Lifetime, SchemaId};
use crate::trace::TraceContext;
use crate::wire::Codec;

/// The deadline of a call whose options have none.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// How long the opening of a channel may take.
pub const DEFAULT_OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a frame that was begun may take.
pub const DEFAULT_FRAME_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests of the peer that run at a time on one channel.
pub const DEFAULT_MAX_IN_FLIGHT: u32 = 1_024;

/// Queued bytes from which requests, events and answers wait for the writer.
const DEFAULT_OUTPUT_LIMIT: usize = 1024 * 1024;

/// Requests with a payload of this length and more take a stream of their own, where the channel has an opener.
pub const OWN_STREAM_BYTES: usize = 256 * 1024;

/// Opens a stream for one call, so that a large or slow one does not hold up the others.
pub trait StreamOpener: Send + Sync + 'static {
    /// A channel of this name on a new stream, without waiting for the acknowledgement.
    fn open_stream(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'static, Result<UnisonChannel, NetworkError>>;
}

/// How long a peer may return no credit while events wait for it.
const DEFAULT_CREDIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The options of a channel.
#[derive(Clone)]
pub struct ChannelOptions {
    pub(crate) schema: Option<SchemaId>,
    pub(crate) lifetime: Lifetime,
    pub(crate) direction: ChannelDirection,
    pub(crate) delivery: Delivery,
    pub(crate) policy: EventPolicy,
    pub(crate) credit_timeout: Duration,
    pub(crate) compression: bool,
    pub(crate) window: Window,
    pub(crate) max_in_flight: u32,
    pub(crate) default_deadline: Duration,
    pub(crate) open_timeout: Duration,
    pub(crate) frame_timeout: Duration,
    pub(crate) output_limit_bytes: usize,
    pub(crate) part_of: Option<Carrier>,
    pub(crate) service: Option<Arc<dyn Service>>,
    pub(crate) opener: Option<Arc<dyn StreamOpener>>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            schema: None,
            lifetime: Lifetime::Transient,
            direction: ChannelDirection::Bidirectional,
            delivery: Delivery::Reliable,
            policy: EventPolicy::Wait,
            credit_timeout: DEFAULT_CREDIT_TIMEOUT,
            compression: true,
            window: Window::default(),
            max_in_flight: DEFAULT_MAX_IN_FLIGHT,
            default_deadline: DEFAULT_DEADLINE,
            open_timeout: DEFAULT_OPEN_TIMEOUT,
            frame_timeout: DEFAULT_FRAME_TIMEOUT,
            output_limit_bytes: DEFAULT_OUTPUT_LIMIT,
            part_of: None,
            service: None,
            opener: None,
        }
    }
}

/// What carries a channel: a stream of a connection.
#[derive(Clone)]
pub(crate) struct Carrier {
    pub(crate) context: Arc<ConnectionContext>,
    pub(crate) stream_id: u64,
}

impl Carrier {
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.context, &other.context) && self.stream_id == other.stream_id
    }
}

impl std::fmt::Debug for ChannelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelOptions")
            .field("schema", &self.schema)
            .field("lifetime", &self.lifetime)
            .field("direction", &self.direction)
            .field("policy", &self.policy)
            .field("window", &self.window)
            .field("max_in_flight", &self.max_in_flight)
            .finish_non_exhaustive()
    }
}

impl ChannelOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema this side was generated from.
    pub fn schema(mut self, schema: SchemaId) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Whether the channel is reopened after a lost connection. Default: transient.
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Which side starts messages; shown in [`ChannelHandle`](crate::document::ChannelHandle).
    pub fn direction(mut self, direction: ChannelDirection) -> Self {
        self.direction = direction;
        self
    }

    /// Whether events travel as datagrams, which may be lost, come twice or out of order, and carry no requests. Both
    /// sides have to say so. Default: reliable.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// What happens to an event of this side when the peer's window is used up. Default: wait.
    pub fn event_policy(mut self, policy: EventPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How long a peer may return no credit while events wait for it, where the policy is to wait. After that the peer gets
    /// the reason, and the channel closes. Time without a connection does not count. Default: 30 s.
    pub fn credit_timeout(mut self, patience: Duration) -> Self {
        self.credit_timeout = patience;
        self
    }

    /// Whether messages of 2 KiB and more that we send on this channel are compressed. The length of a compressed message
    /// depends on its content: where one message holds a secret together with text that another party chooses, that
    /// length, which an observer of the network sees, can give the secret away piece by piece. Switch compression off for
    /// such a channel, on the side that sends such messages. Default: on.
    pub fn compression(mut self, compression: bool) -> Self {
        self.compression = compression;
        self
    }

    /// The window for events of the peer: how many, and how many bytes of them, may be in flight. Default: 256 and 1 MiB.
    pub fn event_window(mut self, events: u32, bytes: u32) -> Self {
        self.window = Window {
            events: events.max(1),
            bytes: bytes.max(2),
        };
        self
    }

    /// Requests of the peer that run here at a time; more are refused as busy.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.max_in_flight = requests.max(1);
        self
    }

    /// The deadline of calls whose options have none.
    pub fn default_deadline(mut self, deadline: Duration) -> Self {
        self.default_deadline = deadline;
        self
    }

    /// How long the opening may take. One that was not acknowledged by then ends the channel; after a reconnection, a
    /// persistent channel tries again instead.
    pub fn open_timeout(mut self, timeout: Duration) -> Self {
        self.open_timeout = timeout;
        self
    }

    /// How long a frame of the peer may take from its first byte to its last.
    pub fn frame_timeout(mut self, timeout: Duration) -> Self {
        self.frame_timeout = timeout;
        self
    }

    /// Queued bytes from which requests, events and answers wait. Default: 1 MiB.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit_bytes = bytes.max(1);
        self
    }

    /// The service that answers the peer's requests. Without one they are held until [`UnisonChannel::serve`] is called.
    pub fn service(mut self, service: impl Service) -> Self {
        self.service = Some(Arc::new(service));
        self
    }

    /// Opens streams for calls that want one of their own. A transport sets this.
    pub fn opener(mut self, opener: Arc<dyn StreamOpener>) -> Self {
        self.opener = Some(opener);
        self
    }

    /// The lifetime that was set.
    pub fn is_persistent(&self) -> bool {
        self.lifetime == Lifetime::Persistent
    }

    /// The schema that was set.
    pub fn schema_id(&self) -> Option<&SchemaId> {
        self.schema.as_ref()
    }

    /// The same channel, for one call on a stream of its own beside the one that carries the channel.
    pub(crate) fn for_one_call(&self, carrier: Carrier) -> Self {
        Self {
            lifetime: Lifetime::Transient,
            part_of: Some(carrier),
            opener: None,
            service: None,
            ..self.clone()
        }
    }

    /// What encodes the messages of a channel of this connection.
    pub(crate) fn codec(&self, context: &ConnectionContext) -> Arc<Codec> {
        match self.compression {
            true => Arc::clone(context.codec()),
            false => Arc::new(Codec::plain()),
        }
    }

    pub(crate) fn settings(&self, persistent: bool, context: &ConnectionContext) -> Settings {
        Settings {
            schema: self.schema.clone(),
            persistent,
            policy: self.policy,
            window: self.window,
            max_in_flight: self.max_in_flight,
            output_limit_bytes: self.output_limit_bytes,
            open_timeout: self.open_timeout,
            unreliable: self.delivery == Delivery::Unreliable,
            part_of: self.part_of.as_ref().map(|carrier| carrier.stream_id),
            budget: Arc::clone(context.budget()),
            unwritten: Arc::clone(context.unwritten()),
            peer: context.peer(),
        }
    }
}

/// The options of one call.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions {
    pub(crate) deadline: Option<Duration>,
    pub(crate) idempotent: bool,
    pub(crate) own_stream: bool,
    pub(crate) fail_fast: bool,
    pub(crate) trace: Option<TraceContext>,
}

impl CallOptions {
    /// The default: the channel's deadline, no repetition, the channel's stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the call may take, from now to its answer.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Running it twice does no harm, so it may be sent again after a lost connection.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Fails at once with [`NetworkError::ConnectionLost`] when there is no connection, instead of waiting for the next
    /// one until the deadline.
    pub fn fail_fast(mut self, fail_fast: bool) -> Self {
        self.fail_fast = fail_fast;
        self
    }

    /// The W3C trace context that the call carries, instead of the [current](TraceContext::current) one.
    pub fn traceparent(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// It is large or slow and takes a stream of its own, if the transport has streams.
    pub fn own_stream(mut self, own_stream: bool) -> Self {
        self.own_stream = own_stream;
        self
    }
}
