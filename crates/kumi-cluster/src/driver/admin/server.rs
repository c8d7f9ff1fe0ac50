//! The answering side of `cluster.admin`.

use super::types::{MetadataOrder, QuarantineOrder, ReleaseOrder, hash_text, reason_text};
use super::{
    ADMIN_CHANNEL, AdminEvent, AdminEvents, ClusterView, MemberRow, QuarantineRow, codes, methods,
};
use crate::core::{
    Authority, MAX_QUARANTINE, MemberMetadata, MembershipError, MembershipRuntime, TimerInstant,
};
use crate::driver::parts::Parts;
use crate::driver::watch::{ClusterWatch, Notice};
use kumi_unison::{
    ChannelRegistry, ConnectionContext, IncomingRequest, NetworkError, Payload, RemoteError,
    UnisonChannel,
};
use std::string::ToString;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use std::vec::Vec;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Operators that watch one node at a time.
const MAX_WATCHERS: u32 = 32;

/// How long watchers may take to receive a node's last events. A slower one misses them.
const LAST_EVENTS: Duration = Duration::from_millis(300);

/// Where the channel's handler finds the node, which is made after the server listens.
pub(in crate::driver) type AdminSlot = Arc<OnceLock<Admin>>;

/// Answers operators on behalf of a node. It does not keep the node alive.
#[derive(Clone, Debug)]
pub(in crate::driver) struct Admin {
    parts: Weak<Parts>,
    watchers: Arc<Semaphore>,
    stop: CancellationToken,
}

/// Offers the channel.
pub(in crate::driver) fn register(registry: &ChannelRegistry, slot: &AdminSlot) {
    let slot = slot.clone();
    registry.register_channel(
        ADMIN_CHANNEL,
        move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
            let admin = slot.get().cloned();
            async move {
                let Some(admin) = admin else {
                    return Err(NetworkError::Busy);
                };
                let is_operator = admin.is_operator(&context);
                channel.discard_events();
                let ending = admin.ending();
                let answering = move |request: IncomingRequest| {
                    let admin = admin.clone();
                    async move {
                        match is_operator {
                            true => admin.answer(&request),
                            false => Err(RemoteError::new(codes::NOT_OPERATOR, NOT_OPERATOR)),
                        }
                    }
                };
                tokio::select! {
                    served = channel.serve(answering) => served,
                    // Operators wait for the node's end, so it must not wait for theirs.
                    () = ending => Ok(()),
                }
            }
        },
    );
}

/// The error for a peer whose certificate does not have the operator role.
const NOT_OPERATOR: &str =
    "the certificate has not the role of an operator (the URI kumi-role:operator)";

impl Admin {
    fn is_operator(&self, peer: &ConnectionContext) -> bool {
        let parts = self.parts.upgrade();
        parts.is_some_and(|parts| parts.transport.is_operator(peer))
    }

    pub(in crate::driver) fn new(parts: &Arc<Parts>) -> Self {
        Self {
            parts: Arc::downgrade(parts),
            watchers: Arc::new(Semaphore::new(MAX_WATCHERS as usize)),
            stop: parts.stop.clone(),
        }
    }

    /// Resolves when the node has ended and all watchers have received its last events.
    fn ending(&self) -> impl Future<Output = ()> + use<> {
        let (stop, watchers) = (self.stop.clone(), self.watchers.clone());
        async move {
            stop.cancelled().await;
            let all_gone = watchers.acquire_many(MAX_WATCHERS);
            let _ = tokio::time::timeout(LAST_EVENTS, all_gone).await;
        }
    }

    fn answer(&self, request: &IncomingRequest) -> Result<Payload, RemoteError> {
        let Some(parts) = self.parts.upgrade() else {
            return Err(RemoteError::new(codes::ENDING, "the node has ended"));
        };
        match request.method() {
            methods::MEMBERS => Ok(Payload::json(&view(&parts))?),
            methods::LEAVE => done(parts.leave()),
            methods::QUARANTINE => {
                let order: QuarantineOrder = request.payload().to_json()?;
                let authority = authority(&order.authority)?;
                if !has_port(&authority) {
                    let text =
                        std::format!("{authority} is not host:port, so no node can be there");
                    return Err(RemoteError::new(codes::REFUSED, text));
                }
                let ttl = Duration::from_millis(order.for_ms);
                if ttl.is_zero() || ttl > MAX_QUARANTINE {
                    let days = MAX_QUARANTINE.as_secs() / (24 * 3600);
                    let text = std::format!("a quarantine lasts up to {days} days, not {ttl:?}");
                    return Err(RemoteError::new(codes::REFUSED, text));
                }
                tracing::info!(%authority, for_ms = order.for_ms, "an operator quarantines");
                done(parts.quarantine(&authority, &order.reason, ttl))
            }
            methods::RELEASE => {
                let order: ReleaseOrder = request.payload().to_json()?;
                let authority = authority(&order.authority)?;
                if !is_kept_out(&parts, &authority) {
                    let text = std::format!("{authority} is not quarantined");
                    return Err(RemoteError::new(codes::UNKNOWN_MEMBER, text));
                }
                tracing::info!(%authority, "an operator lifts a quarantine");
                done(parts.release(&authority))
            }
            methods::METADATA => {
                let order: MetadataOrder = request.payload().to_json()?;
                tracing::info!("an operator changes what this node says about itself");
                done(changed(&parts, &order).and_then(|metadata| parts.set_metadata(metadata)))
            }
            methods::WATCH => {
                let Ok(seat) = self.watchers.clone().try_acquire_owned() else {
                    let text = "as many watch this node as may";
                    return Err(RemoteError::new(codes::TOO_MANY_WATCHERS, text));
                };
                let subscription = parts.shared.subscribe();
                let first = Payload::json(&view(&parts))?;
                let channel = request.channel().clone();
                let words = AdminEvents::new(subscription.first());
                let words = words.names_from(parts.shared.clone());
                let telling = tell(channel, subscription, words, seat);
                parts.carrier.spawn(telling, LAST_EVENTS);
                Ok(first)
            }
            other => Err(RemoteError::method_not_found(other)),
        }
    }
}

/// Sends events until the watcher goes or the node ends. A slow watcher does not slow others: it misses events and gets their number.
async fn tell(
    channel: UnisonChannel,
    mut subscription: ClusterWatch,
    mut words: AdminEvents,
    seat: OwnedSemaphorePermit,
) {
    'telling: loop {
        let notice = tokio::select! {
            notice = subscription.next() => notice,
            _ = channel.closed() => break,
        };
        let events = match notice {
            Some(Notice::Event(event)) => words.of(&event),
            Some(Notice::Missed(events)) => Vec::from([AdminEvent::Missed { events }]),
            None => break,
        };
        for event in events {
            let sent = channel.send_event_json(methods::EVENT, &event);
            if sent.await.is_err() {
                break 'telling;
            }
        }
    }
    drop(seat);
}

fn done(result: Result<(), MembershipError>) -> Result<Payload, RemoteError> {
    match result {
        Ok(()) => Ok(Payload::json(&serde_json::json!({}))?),
        Err(error @ MembershipError::UnknownMember { .. }) => {
            Err(RemoteError::new(codes::UNKNOWN_MEMBER, error.to_string()))
        }
        Err(error) => Err(RemoteError::new(codes::REFUSED, error.to_string())),
    }
}

/// The node's metadata with other roles and services.
fn changed(parts: &Parts, order: &MetadataOrder) -> Result<MemberMetadata, MembershipError> {
    let own = parts.shared.identity().authority;
    let before = parts.shared.with(|runtime| {
        let mut members = runtime.members();
        let own = members.find(|member| member.record.authority == own);
        own.map(|member| member.record.metadata.clone())
    });
    let version = before.unwrap_or_default();
    let roles: Vec<&str> = order.roles.iter().map(|role| &**role).collect();
    let services = order.services.iter();
    let services: Vec<(&str, &str)> = services.map(|(name, value)| (&**name, &**value)).collect();
    MemberMetadata::build(version.version(), &roles, &services)
}

/// Whether an operator keeps this authority out; the detector's quarantines block one life and cannot be lifted.
fn is_kept_out(parts: &Parts, authority: &Authority) -> bool {
    let entries = parts.shared.with(|runtime| runtime.quarantine_snapshot());
    let mut orders = entries.iter().filter(|entry| entry.uid.is_none());
    orders.any(|entry| entry.authority == *authority)
}

fn has_port(authority: &Authority) -> bool {
    let port = authority.as_str().rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn authority(text: &str) -> Result<Authority, RemoteError> {
    Authority::new(text).map_err(|error| RemoteError::invalid(error.to_string()))
}

fn view(parts: &Parts) -> ClusterView {
    let now = parts.clock.now();
    let identity = parts.shared.identity();
    let (members, quarantines, hash) = parts.shared.with(|runtime| {
        let rows = rows(runtime, &identity.authority, now);
        (rows, quarantines(runtime, now), runtime.snapshot().hash)
    });
    ClusterView {
        cluster: parts.cluster_name.clone(),
        node: identity.authority.to_string(),
        uid: identity.uid.to_string(),
        name_and_life: Some(parts.name.with_life(identity.uid).into()),
        hash: hash_text(hash),
        members,
        quarantines,
        connections: parts.carrier.connections(),
        metrics: parts.counters.snapshot(),
    }
}

fn rows(runtime: &MembershipRuntime, own: &Authority, now: TimerInstant) -> Vec<MemberRow> {
    let rows = runtime.members().map(|member| {
        let record = member.record;
        let metadata = &record.metadata;
        let since = member.heard_at.map(|heard| now.saturating_since(heard));
        let services = metadata.services().into_iter();
        MemberRow {
            authority: record.authority.to_string(),
            uid: record.uid.to_string(),
            name_and_life: metadata.name_and_life(record.uid).map(Into::into),
            status: record.status.to_string(),
            incarnation: record.incarnation,
            phi: runtime.phi(&record.authority),
            last_seen_ms: since.map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            is_self: record.authority == *own,
            version: metadata.version().into(),
            roles: metadata.roles().into_iter().map(Into::into).collect(),
            services: services
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    });
    rows.collect()
}

fn quarantines(runtime: &MembershipRuntime, now: TimerInstant) -> Vec<QuarantineRow> {
    let entries = runtime.quarantine_snapshot().into_iter();
    let rows = entries.map(|entry| {
        let remaining = entry.expires_at.saturating_since(now).as_millis();
        QuarantineRow {
            authority: entry.authority.to_string(),
            uid: entry.uid.map(|uid| uid.to_string()),
            reason: reason_text(&entry.reason),
            remaining_ms: u64::try_from(remaining).unwrap_or(u64::MAX),
        }
    });
    rows.collect()
}
