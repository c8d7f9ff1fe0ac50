//! The channels of a server by name, the handler of legacy messages, and the subscribers to updates.
//!
//! A registry has no transport. A transport passes the two halves of every incoming stream to `serve_stream`, which reads the
//! first message, routes it, acknowledges or refuses it, and runs the handler.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use kumi_common::Chain;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::core::{Charge, EventPolicy, SchemaFit, fit, methods};
use crate::driver::channel::context::ConnectionContext;
use crate::driver::channel::{
    Accepted, CLOSED_CODE, ChannelDriver, ChannelOptions, First, RESET_CODE, Service, Spoiled,
    TransportRecv, TransportSend, UnisonChannel, answer_framed, answer_unframed, first_message,
    refuse, reset_code, say_why,
};
use crate::driver::subscription::Subscription;
use crate::error::{NetworkError, RemoteError};
use crate::identity::{
    ChannelDirection, ChannelInfo, ChannelStatus, ChannelUpdate, Delivery, Lifetime, SchemaId,
    ServerIdentity,
};
use crate::payload::Payload;
use crate::wire::{MessageType, PacketType, ProtocolMessage};

/// The capacity of a subscription to updates. A connection that falls behind sends the whole identity again.
const UPDATES_KEPT: usize = 256;

/// Serves the channels that clients open.
pub trait ChannelHandler: Send + Sync + 'static {
    /// Called for each channel that a client opens. The channel is closed when the future ends.
    fn run(
        &self,
        context: Arc<ConnectionContext>,
        channel: UnisonChannel,
    ) -> BoxFuture<'static, Result<(), NetworkError>>;
}

impl<F, Fut> ChannelHandler for F
where
    F: Fn(Arc<ConnectionContext>, UnisonChannel) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), NetworkError>> + Send + 'static,
{
    fn run(
        &self,
        context: Arc<ConnectionContext>,
        channel: UnisonChannel,
    ) -> BoxFuture<'static, Result<(), NetworkError>> {
        Box::pin(self(context, channel))
    }
}

/// A handler that only responds to requests. Events of the client are discarded.
pub struct ServiceHandler<S>(Arc<S>);

impl<S: Service> ServiceHandler<S> {
    /// Responds with `service` on every channel that is opened.
    pub fn new(service: S) -> Self {
        Self(Arc::new(service))
    }
}

impl<S: Service> ChannelHandler for ServiceHandler<S> {
    fn run(
        &self,
        _context: Arc<ConnectionContext>,
        channel: UnisonChannel,
    ) -> BoxFuture<'static, Result<(), NetworkError>> {
        let service = Shared(Arc::clone(&self.0));
        Box::pin(async move {
            channel.discard_events();
            channel.serve(service).await
        })
    }
}

struct Shared<S>(Arc<S>);

impl<S: Service> Service for Shared<S> {
    fn call(
        &self,
        request: crate::driver::channel::IncomingRequest,
    ) -> BoxFuture<'static, Result<Payload, RemoteError>> {
        self.0.call(request)
    }
}

/// Responds to legacy messages, which name no channel.
pub trait LegacyHandler: Send + Sync + 'static {
    /// Responds to one message.
    fn answer(
        &self,
        context: Arc<ConnectionContext>,
        message: ProtocolMessage,
    ) -> BoxFuture<'static, Result<Payload, RemoteError>>;
}

impl<F, Fut> LegacyHandler for F
where
    F: Fn(Arc<ConnectionContext>, ProtocolMessage) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Payload, RemoteError>> + Send + 'static,
{
    fn answer(
        &self,
        context: Arc<ConnectionContext>,
        message: ProtocolMessage,
    ) -> BoxFuture<'static, Result<Payload, RemoteError>> {
        Box::pin(self(context, message))
    }
}

/// The name, options and status of a channel that a server offers.
#[derive(Debug, Clone)]
pub struct ChannelSpec {
    name: String,
    status: ChannelStatus,
    options: ChannelOptions,
}

impl ChannelSpec {
    /// A channel of this name with default options.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status: ChannelStatus::default(),
            options: ChannelOptions::default().lifetime(Lifetime::Persistent),
        }
    }

    /// Which side starts messages on it.
    pub fn direction(mut self, direction: ChannelDirection) -> Self {
        self.options = self.options.direction(direction);
        self
    }

    /// Whether clients reopen it after a lost connection.
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.options = self.options.lifetime(lifetime);
        self
    }

    /// The schema it was generated from.
    pub fn schema(mut self, schema: SchemaId) -> Self {
        self.options = self.options.schema(schema);
        self
    }

    /// Whether its events are sent as datagrams.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.options = self.options.delivery(delivery);
        self
    }

    /// What happens to the server's events when a client's window is used up.
    pub fn event_policy(mut self, policy: EventPolicy) -> Self {
        self.options = self.options.event_policy(policy);
        self
    }

    /// Whether long messages of the server are compressed; see [`ChannelOptions::compression`].
    pub fn compression(mut self, compression: bool) -> Self {
        self.options = self.options.compression(compression);
        self
    }

    /// Its initial status.
    pub fn status(mut self, status: ChannelStatus) -> Self {
        self.status = status;
        self
    }

    /// All options; replaces direction, lifetime, schema and delivery too.
    pub fn options(mut self, options: ChannelOptions) -> Self {
        self.options = options;
        self
    }

    fn info(&self) -> ChannelInfo {
        ChannelInfo {
            name: self.name.clone(),
            direction: self.options.direction,
            lifetime: self.options.lifetime,
            status: self.status,
            delivery: self.options.delivery,
            schema: self.options.schema.clone(),
        }
    }
}

/// How an accepted stream is served.
enum Runner {
    Handler(Arc<dyn ChannelHandler>),
    /// The stream is for one call of a channel that is open.
    Channel(Arc<ChannelDriver>),
}

/// The channels of a server. Clones are the same registry.
#[derive(Clone)]
pub struct ChannelRegistry {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    version: String,
    namespace: String,
    state: Mutex<State>,
    updates: broadcast::Sender<ChannelUpdate>,
    draining: AtomicBool,
    contexts: Mutex<Vec<Weak<ConnectionContext>>>,
}

#[derive(Default)]
struct State {
    channels: BTreeMap<String, (ChannelSpec, Arc<dyn ChannelHandler>)>,
    legacy: Option<Arc<dyn LegacyHandler>>,
    /// The names of channels that guests may open.
    open_to_guests: BTreeSet<String>,
    metadata: Value,
}

impl std::fmt::Debug for ChannelRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelRegistry")
            .field("name", &self.inner.name)
            .finish_non_exhaustive()
    }
}

/// Functions that take a registry take a server too.
impl AsRef<Self> for ChannelRegistry {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl ChannelRegistry {
    /// A registry without channels, for a server with this identity.
    pub fn new(name: &str, version: &str, namespace: &str) -> Self {
        let inner = Inner {
            name: name.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            state: Mutex::default(),
            updates: broadcast::channel(UPDATES_KEPT).0,
            draining: AtomicBool::new(false),
            contexts: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Registers a channel with default options, or replaces it. Open channels of that name stay as they are.
    pub fn register_channel(&self, name: impl Into<String>, handler: impl ChannelHandler) {
        self.register_channel_with(ChannelSpec::new(name), handler);
    }

    /// Registers a channel, or replaces it. Open channels of that name stay as they are.
    pub fn register_channel_with(&self, spec: ChannelSpec, handler: impl ChannelHandler) {
        let info = spec.info();
        let mut state = self.state();
        state
            .channels
            .insert(spec.name.clone(), (spec, Arc::new(handler)));
        self.tell(ChannelUpdate::Added(info));
    }

    /// Lets guests open the channel of this name; they open no other, and send no legacy messages. Which clients are guests
    /// is decided by the transport.
    pub fn open_to_guests(&self, name: impl Into<String>) {
        self.state().open_to_guests.insert(name.into());
    }

    /// Sets the handler of legacy messages.
    pub fn register_legacy(&self, handler: impl LegacyHandler) {
        self.state().legacy = Some(Arc::new(handler));
    }

    /// Removes a channel. Open channels of that name stay as they are. False when there was none.
    pub fn remove_channel(&self, name: &str) -> bool {
        let mut state = self.state();
        let removed = state.channels.remove(name).is_some();
        if removed {
            self.tell(ChannelUpdate::Removed(name.to_owned()));
        }
        removed
    }

    /// Changes a channel's status. False when there is no such channel.
    pub fn set_status(&self, name: &str, status: ChannelStatus) -> bool {
        let mut state = self.state();
        let Some((spec, _)) = state.channels.get_mut(name) else {
            return false;
        };
        if spec.status != status {
            spec.status = status;
            self.tell(ChannelUpdate::StatusChanged {
                name: name.to_owned(),
                status,
            });
        }
        true
    }

    /// Sets the metadata of the identity.
    pub fn set_metadata(&self, metadata: Value) {
        self.state().metadata = metadata;
    }

    /// The current identity.
    pub fn build_identity(&self) -> ServerIdentity {
        self.identity_of(&self.state())
    }

    /// The updates from now on.
    pub fn updates(&self) -> Subscription<ChannelUpdate> {
        Subscription::new(self.inner.updates.subscribe())
    }

    /// The identity and every update after it.
    pub fn subscribe(&self) -> (ServerIdentity, Subscription<ChannelUpdate>) {
        // Changes are published under the same lock, so none falls between the two.
        let state = self.state();
        (self.identity_of(&state), self.updates())
    }

    /// How a channel is registered, for transports beyond streams.
    pub fn channel_info(&self, name: &str) -> Option<ChannelInfo> {
        self.state().channels.get(name).map(|(spec, _)| spec.info())
    }

    /// Drains all connections: channels are not opened and requests are refused from now on; running requests finish.
    pub fn start_draining(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
        for context in self.contexts() {
            context.refuse_requests();
        }
    }

    /// Whether [`start_draining`](Self::start_draining) was called.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::SeqCst)
    }

    /// The number of running requests on all connections.
    pub fn running_requests(&self) -> usize {
        self.contexts()
            .iter()
            .map(|context| context.running_requests())
            .sum()
    }

    /// Ends all connections that clients have made, as [`ConnectionContext::close`] does. Clients may connect again.
    pub fn close_connections(&self) {
        for context in self.contexts() {
            context.close();
        }
    }

    /// Adds a connection, for draining, counting and closing. A transport calls this once for each.
    pub fn add_connection(&self, context: &Arc<ConnectionContext>) {
        let mut contexts = self
            .inner
            .contexts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.retain(|known| known.strong_count() > 0);
        if !contexts
            .iter()
            .any(|known| known.as_ptr() == Arc::as_ptr(context))
        {
            contexts.push(Arc::downgrade(context));
        }
    }

    /// Serves one incoming stream to its end. A transport spawns it, one task per stream; dropping the future resets the
    /// stream or closes the channel.
    pub async fn serve_stream<S: TransportSend, R: TransportRecv>(
        &self,
        context: Arc<ConnectionContext>,
        mut send: S,
        mut recv: R,
        stream_id: u64,
    ) {
        match first_message(&mut recv, context.limits().first_message_timeout, &context).await {
            Ok(First::Channel { name, accepted }) => {
                self.serve_channel(context, send, recv, stream_id, &name, accepted)
                    .await;
            }
            // Only a request has an id for a response.
            Ok(First::Legacy(message) | First::Other(message))
                if message.msg_type != MessageType::Request =>
            {
                context.metrics().protocol_errors.increment();
                recv.stop(CLOSED_CODE);
                send.reset(CLOSED_CODE);
            }
            Ok(First::Legacy(message)) => {
                let (answer, _charge) = self.answer_legacy(&context, message).await;
                answer_unframed(&mut send, &answer, context.codec()).await;
            }
            Ok(First::Other(message)) => {
                let (answer, _charge) = self.answer_legacy(&context, message).await;
                recv.stop(RESET_CODE);
                answer_framed(&mut send, &answer, context.codec()).await;
            }
            Ok(First::Nothing) => send.finish(),
            Err(Spoiled { error, is_legacy }) => {
                context.metrics().protocol_errors.increment();
                tracing::debug!(
                    connection_id = %context.connection_id,
                    stream_id,
                    error = %Chain(&error),
                    "a stream is closed for its first message"
                );
                let code = reset_code(&error);
                recv.stop(code);
                // A peer with the older form cannot read the reason.
                if is_legacy || !error.is_for_good() {
                    send.reset(code);
                } else {
                    say_why(&mut send, &error, &context).await;
                }
            }
        }
    }

    async fn serve_channel<S: TransportSend, R: TransportRecv>(
        &self,
        context: Arc<ConnectionContext>,
        mut send: S,
        mut recv: R,
        stream_id: u64,
        name: &str,
        accepted: Box<Accepted>,
    ) {
        let (options, runner) = match self.admit(&context, name, &accepted).await {
            Ok(found) => found,
            Err(error) => {
                recv.stop(RESET_CODE);
                return refuse(
                    &mut send,
                    PacketType::Handshake,
                    accepted.id(),
                    &error,
                    &context,
                )
                .await;
            }
        };
        let whole = match &runner {
            Runner::Handler(_) => None,
            Runner::Channel(whole) => Some(Arc::clone(whole)),
        };
        let opened = accepted.open(send, recv, stream_id, name, (options, whole), &context);
        let Ok((channel, moving)) = opened else {
            return;
        };
        if self.is_draining() || context.is_refusing() {
            channel.driver().drain_here();
        }
        tracing::debug!(
            connection_id = %context.connection_id,
            stream_id,
            channel = name,
            "a channel was opened"
        );
        // The handler's future owns the channel; when it ends, the channel closes.
        let running = async {
            match runner {
                Runner::Handler(handler) => handler.run(Arc::clone(&context), channel).await,
                Runner::Channel(_) => {
                    Arc::clone(channel.driver()).serve_part(channel).await;
                    Ok(())
                }
            }
        };
        let ran = match moving {
            Some(moving) => futures_util::future::join(running, moving).await.0,
            None => running.await,
        };
        if let Err(error) = ran {
            tracing::debug!(
                connection_id = %context.connection_id,
                stream_id,
                channel = name,
                error = %Chain(&error),
                "a channel's handler failed"
            );
        }
    }

    async fn admit(
        &self,
        context: &ConnectionContext,
        name: &str,
        accepted: &Accepted,
    ) -> Result<(ChannelOptions, Runner), NetworkError> {
        if self.is_draining() || context.is_refusing() {
            return Err(NetworkError::draining());
        }
        if context.is_guest() && !self.state().open_to_guests.contains(name) {
            return Err(NetworkError::Unavailable {
                name: name.to_owned(),
            });
        }
        if let Some(stream_id) = accepted.opening.part_of {
            let timeout = context.limits().first_message_timeout;
            let whole = tokio::time::timeout(timeout, context.accepted_on(stream_id)).await;
            return match whole {
                Ok(whole) if whole.is_named(name) => {
                    Ok((whole.options_for_part(), Runner::Channel(whole)))
                }
                _ => Err(NetworkError::Unavailable {
                    name: name.to_owned(),
                }),
            };
        }
        let state = self.state();
        let Some((spec, handler)) = state.channels.get(name) else {
            let available = state.channels.keys().cloned().collect();
            return Err(NetworkError::ChannelNotFound {
                name: name.to_owned(),
                available,
            });
        };
        match spec.status {
            ChannelStatus::Available => {}
            ChannelStatus::Busy => return Err(NetworkError::Busy),
            ChannelStatus::Unavailable => {
                return Err(NetworkError::Unavailable {
                    name: name.to_owned(),
                });
            }
        }
        let (ours, theirs) = (
            spec.options.schema.as_ref(),
            accepted.opening.schema.as_ref(),
        );
        if fit(ours, theirs) == SchemaFit::Different {
            let version = |schema: Option<&SchemaId>| {
                schema.map_or_else(String::new, |schema| schema.version.to_string())
            };
            return Err(NetworkError::SchemaMismatch {
                ours: version(ours),
                theirs: version(theirs),
            });
        }
        if let Some(theirs) = accepted.opening.delivery
            && theirs != spec.options.delivery
        {
            return Err(NetworkError::DeliveryMismatch {
                ours: spec.options.delivery.to_string(),
                theirs: theirs.to_string(),
            });
        }
        Ok((spec.options.clone(), Runner::Handler(Arc::clone(handler))))
    }

    /// The response, and its charge to the connection's budget until it is written.
    async fn answer_legacy(
        &self,
        context: &Arc<ConnectionContext>,
        message: ProtocolMessage,
    ) -> (ProtocolMessage, Option<Charge>) {
        let id = message.id;
        let handler = self.state().legacy.clone();
        let reserved = message.method.starts_with(methods::RESERVED);
        let result = match handler {
            _ if self.is_draining() || context.is_refusing() => {
                Err((methods::ERROR, NetworkError::draining().to_remote()))
            }
            Some(handler) if !reserved && !context.is_guest() => {
                let charge = Charge::of(context.budget(), message.payload.len());
                match context.try_run().zip(charge) {
                    Some(_held) => handler
                        .answer(Arc::clone(context), message)
                        .await
                        .map_err(|e| ("", e)),
                    None => Err((methods::ERROR, NetworkError::Busy.to_remote())),
                }
            }
            _ => Err((methods::ERROR, NetworkError::ChannelRequired.to_remote())),
        };
        let charged = result.and_then(|payload| {
            let charge = Charge::of(context.answers(), payload.bytes.len());
            let charge = charge.ok_or_else(|| ("", RemoteError::answers_waiting()))?;
            Ok((payload, charge))
        });
        match charged {
            Ok((payload, charge)) => {
                let answer = ProtocolMessage::response(id, payload.content_type, payload.bytes);
                (answer, Some(charge))
            }
            Err((method, error)) => {
                let payload = Payload::json(&error).unwrap_or(Payload::bytes(&b"{}"[..]));
                let answer = ProtocolMessage {
                    msg_type: MessageType::Error,
                    method: method.to_owned(),
                    ..ProtocolMessage::response(id, payload.content_type, payload.bytes)
                };
                (answer, None)
            }
        }
    }

    fn identity_of(&self, state: &State) -> ServerIdentity {
        let Inner {
            name,
            version,
            namespace,
            ..
        } = &*self.inner;
        let mut identity = ServerIdentity::new(name, version, namespace);
        identity.channels = state
            .channels
            .values()
            .map(|(spec, _)| spec.info())
            .collect();
        identity.metadata = state.metadata.clone();
        identity
    }

    /// Sends an update to the subscribers, if there are any.
    fn tell(&self, update: ChannelUpdate) {
        let _ = self.inner.updates.send(update);
    }

    fn contexts(&self) -> Vec<Arc<ConnectionContext>> {
        let contexts = self
            .inner
            .contexts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        contexts.iter().filter_map(Weak::upgrade).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
