//! A node: the core, the carrier and the admin channel, from start to end.
//!
//! One task runs the core: it waits for messages and for the core's next deadline, whichever comes first, passes the
//! messages to the core, publishes events and gives the carrier what is to be sent. Everything else a node runs belongs to
//! its carrier, which ends and joins it.

use super::admin::{self, Admin};
use super::carrier::{self, Carrier, CarrierSlot};
use super::clock::{self, Clock};
use super::counters::{Counters, DriverMetrics};
use super::departures::LifeWatch;
use super::error::DriverError;
use super::inbound::{Inbound, InboundQueue};
use super::link::{GOSSIP_CHANNEL, PACKET_CHANNEL};
use super::own_life::OwnLifeWatch;
use super::parts::Parts;
use super::peers::{self, NodeChannels, Offered, PeerConnection, PeerError, Peers};
use super::quic::Security;
use super::shared::MembershipRuntimeShared;
use super::transport::Transport;
use super::watch::ClusterWatch;
use crate::core::{
    Authority, GossipOutbound, GossipTransport, GossipTransportError, LocalNode, MemberMetadata,
    MembershipError, MembershipRuntime, MembershipRuntimeConfig, MembershipRuntimeState,
    MembershipSnapshot, NameAndLife, NodeIdentity, NodeName, NodeStatus, TimerInstant,
};
use kumi_unison::ChannelRegistry;
use kumi_unison::driver::Traffic;
use std::net::{Ipv4Addr, SocketAddr};
use std::string::String;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::vec::Vec;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Messages handed to the core in one turn; the rest waits for the next one.
const TURN_MESSAGES: usize = 256;

/// How often unused connections are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often a node that is not in yet looks whether the names of its seeds lead to itself by now.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How long the last messages of a node that has stopped may wait for their connections; some are being made.
const FLUSH_TIME: Duration = Duration::from_millis(500);

/// Connections that were begun longer ago than this, and are not there, are not waited for.
const RECENTLY: Duration = Duration::from_millis(100);

/// How often it is checked whether messages still wait.
const FLUSH_POLL: Duration = Duration::from_millis(5);

/// How long connections may take to send the packets that they have.
const LAST_PACKETS: Duration = Duration::from_millis(50);

/// How much longer than its grace a leave may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The options that a node starts with: a configuration, and what its setters change.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub(super) config: MembershipRuntimeConfig,
    pub(super) name: Option<NodeName>,
    pub(super) bind: SocketAddr,
    pub(super) advertise: Option<Authority>,
    pub(super) seeds: Vec<Authority>,
    pub(super) metadata: MemberMetadata,
    pub(super) observer: bool,
    pub(super) admin: bool,
    pub(super) channels: Option<NodeChannels>,
}

impl NodeOptions {
    /// A node on a free port of the loopback address, alone until it is given seeds.
    #[must_use]
    pub fn new(config: MembershipRuntimeConfig) -> Self {
        Self {
            config,
            name: None,
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            seeds: Vec::new(),
            metadata: MemberMetadata::EMPTY,
            observer: false,
            admin: true,
            channels: None,
        }
    }

    /// The node's name, which all its lives have. Default: its address, [`Authority::default_name`](crate::core::Authority::default_name).
    #[must_use]
    pub fn name(mut self, name: NodeName) -> Self {
        self.name = Some(name);
        self
    }

    /// Where to listen; port 0 picks a free one.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = address;
        self
    }

    /// Where others reach this node, if that differs from where it listens. May be a DNS name.
    #[must_use]
    pub fn advertise(mut self, authority: Authority) -> Self {
        self.advertise = Some(authority);
        self
    }

    /// Members to join: addresses or DNS names, which are resolved anew at each attempt. A node without seeds is the first
    /// of a cluster.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item = Authority>) -> Self {
        self.seeds = seeds.into_iter().collect();
        self
    }

    /// The metadata of this node. Its name is added.
    #[must_use]
    pub fn metadata(mut self, metadata: MemberMetadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Whether the node watches the cluster without being a member of it. Default: false.
    #[must_use]
    pub fn observer(mut self, on: bool) -> Self {
        self.observer = on;
        self
    }

    /// Channels of the program, a [`ChannelRegistry`] or [`NodeChannels`], that peers which can connect are offered on the node's
    /// port. The registry serves this node until it has ended. Default: none.
    #[must_use]
    pub fn channels(mut self, channels: impl Into<NodeChannels>) -> Self {
        self.channels = Some(channels.into());
        self
    }

    /// Whether peers that can connect are offered the `cluster.admin` channel. Default: true.
    #[must_use]
    pub fn admin(mut self, on: bool) -> Self {
        self.admin = on;
        self
    }
}

/// A running node. Dropping it stops it like a crash; [`leave`](Self::leave) and [`shutdown`](Self::shutdown) also wait
/// until nothing of it runs any more.
///
/// ```
/// use kumi_cluster::{ClusterNode, MembershipRuntimeConfig, NodeOptions, Notice, Security, Transport};
/// use kumi_unison::ClusterKey;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = ClusterKey::from_secret(&ClusterKey::random_secret()?)?;
/// let security = Security::key(&key)?; // or Security::mutual(chain, key, authorities)
/// let options = NodeOptions::new(MembershipRuntimeConfig::local());
/// let first = ClusterNode::start(options.clone(), Transport::quic(security.clone())).await?;
/// let mut watch = first.subscribe(); // dropping it cancels it
///
/// let options = options.seeds([first.authority().clone()]);
/// let second = ClusterNode::start(options, Transport::quic(security)).await?;
/// while first.members().members.len() < 2 {
///     if let Some(Notice::Event(event)) = watch.next().await {
///         println!("{event:?}");
///     }
/// }
/// second.leave().await?; // the others know at once; dropping it would be a crash
/// first.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ClusterNode {
    parts: Arc<Parts>,
    core_task: Option<JoinHandle<()>>,
    /// Removes the node's channels from the registry when the node is dropped.
    offered: Offered,
}

/// The channels of a node. All begin with `cluster.`.
const OWN_CHANNELS: &[&str] = &[
    GOSSIP_CHANNEL,
    PACKET_CHANNEL,
    admin::ADMIN_CHANNEL,
    peers::PEER_CHANNEL,
];

impl ClusterNode {
    /// Listens, joins its seeds, and runs on the current tokio runtime. Returns once it listens; being Up comes later,
    /// as an event. When this fails or is cancelled, nothing is left running.
    pub async fn start(options: NodeOptions, transport: Transport) -> Result<Self, DriverError> {
        Self::start_with(options, transport, turn_until_stopped).await
    }

    /// Starts a node whose core is turned by this.
    pub(super) async fn start_with<F>(
        options: NodeOptions,
        transport: Transport,
        run: impl FnOnce(Arc<Parts>, LinkTransport) -> F,
    ) -> Result<Self, DriverError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        options.config.check()?;
        let own_registry =
            || ChannelRegistry::new("kumi-cluster", env!("CARGO_PKG_VERSION"), "cluster");
        let channels = options.channels.clone();
        let channels = channels.unwrap_or_else(|| own_registry().into());
        let registry = channels.registry().clone();
        let offered = Offered::new(&registry, OWN_CHANNELS)?;
        let slot: CarrierSlot = Arc::default();
        carrier::register(&registry, &slot);
        let peers_slot: peers::PeersSlot = Arc::default();
        peers::register(&registry, &peers_slot);
        let admin_slot: admin::AdminSlot = Arc::new(OnceLock::new());
        if options.admin {
            admin::register(&registry, &admin_slot);
        }
        let transport = Arc::new(transport);
        let advertise = options.advertise.as_ref();
        let authority = transport.listen(options.bind, advertise, &registry)?;
        let listening = Listening {
            transport: transport.clone(),
            authority: authority.clone(),
            armed: true,
        };
        let seeds = transport.known_seeds(&options.seeds, &authority).await;

        let clock = Clock::start();
        let default_name = || authority.default_name();
        let name = options.name.clone().unwrap_or_else(default_name);
        let mut runtime = started(&options, &name, &authority, &seeds, clock.now())?;
        runtime.require_meeting(transport.checks_identity());
        let counters: Arc<Counters> = Arc::default();
        let shared = MembershipRuntimeShared::counted(runtime, counters.clone());
        let (inbound, arrived) = InboundQueue::new();
        let stop = CancellationToken::new();
        let carrier = Carrier::new(
            transport.clone(),
            shared.clone(),
            options.config.cluster_name.clone(),
            inbound,
            counters.clone(),
            clock,
            stop.child_token(),
        );
        let _ = slot.set(Arc::downgrade(&carrier));
        let peers = Peers::new(
            transport.clone(),
            shared.clone(),
            options.config.cluster_name.clone(),
            name.clone(),
            &channels,
            counters.clone(),
            stop.child_token(),
        );
        let _ = peers_slot.set(Arc::downgrade(&peers));
        let parts = Arc::new(Parts {
            shared,
            carrier,
            peers,
            clock,
            counters,
            cluster_name: options.config.cluster_name.clone(),
            name,
            transport,
            authority,
            leave_grace: options.config.leave_grace,
            ended: CancellationToken::new(),
            stop,
            failed: AtomicBool::new(false),
            #[cfg(feature = "simulation")]
            panics: AtomicBool::new(false),
        });
        if options.admin {
            let _ = admin_slot.set(Admin::new(&parts));
        }
        let gossip = LinkTransport {
            carrier: parts.carrier.clone(),
            arrived,
            first: None,
        };
        let ending = Ending(parts.clone());
        let running = run(parts.clone(), gossip);
        let core_task = tokio::spawn(async move {
            let _ending = ending;
            running.await;
        });
        let has_names = |seed: &Authority| seed.as_str().parse::<SocketAddr>().is_err();
        let knows_itself = seeds.is_empty() || seeds.contains(&parts.authority);
        if !options.observer && !knows_itself && options.seeds.iter().any(has_names) {
            let looking = find_itself(parts.clone(), options.seeds);
            parts.carrier.spawn(looking, Duration::ZERO);
        }
        listening.keep();
        tracing::info!(
            node = %parts.name_and_life(),
            authority = %parts.authority,
            "a cluster node is running"
        );
        Ok(Self {
            parts,
            core_task: Some(core_task),
            offered,
        })
    }

    /// The identity of this node. The uid changes when the node had to begin a new life.
    pub fn identity(&self) -> NodeIdentity {
        self.parts.shared.identity()
    }

    /// The name of this node.
    pub fn name(&self) -> &NodeName {
        &self.parts.name
    }

    /// The name and the present life of this node, `name~life`, as the others see it. The life may change until the node is
    /// Up, and with [`SelfDowned`](crate::core::ClusterEvent::SelfDowned).
    pub fn name_and_life(&self) -> NameAndLife {
        self.parts.name_and_life()
    }

    /// Where others reach this node.
    pub fn authority(&self) -> &Authority {
        &self.parts.authority
    }

    /// Replaces certificates and keys, as when those of the files were renewed. Connections that are open stay as they
    /// are; new ones are made and accepted with the new certificates.
    pub async fn set_security(&self, security: Security) -> Result<(), DriverError> {
        let transport = &self.parts.transport;
        transport.set_security(security).await?;
        let checks = transport.checks_identity();
        let shared = &self.parts.shared;
        shared.with(|runtime| runtime.require_meeting(checks));
        Ok(())
    }

    /// Closes the connections to and from other nodes, which are made again as they are needed, and those of clients, such as
    /// operators. After [`set_security`](Self::set_security) that ends those of a key that is not accepted any more.
    pub fn close_connections(&self) {
        self.parts.carrier.close_all();
        self.offered.close_connections();
    }

    /// Where this node listens; `None` in memory.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.parts.transport.local_addr()
    }

    /// The active members now.
    pub fn members(&self) -> MembershipSnapshot {
        self.parts.shared.members()
    }

    /// Events from now on. Dropping the subscription cancels it.
    pub fn subscribe(&self) -> ClusterWatch {
        self.parts.shared.subscribe()
    }

    /// Which lives are active now, and which are over from now on: one [`Departure`](crate::core::Departure) per life.
    pub fn lives(&self) -> LifeWatch {
        LifeWatch::new(self.parts.shared.clone())
    }

    /// Another handle to the core.
    pub fn shared(&self) -> MembershipRuntimeShared {
        self.parts.shared.clone()
    }

    /// What the driver has counted.
    pub fn metrics(&self) -> DriverMetrics {
        self.parts.counters.snapshot()
    }

    /// Datagrams and bytes of the node's socket since its start, all that QUIC adds included; `None` in memory.
    pub fn traffic(&self) -> Option<Traffic> {
        self.parts.transport.traffic()
    }

    /// Connections to and from other nodes, those that are being made included. Never above [`MAX_LINKS`](crate::driver::MAX_LINKS).
    pub fn connections(&self) -> usize {
        self.parts.carrier.connections()
    }

    /// What this node is: Joining until a seed has let it in; `None` for one that only watches, or has stopped.
    pub fn status(&self) -> Option<NodeStatus> {
        self.parts.shared.with(|runtime| runtime.status())
    }

    /// Peers whose last connection attempt failed, with the error in words for an operator. Dead members are among them,
    /// and seeds of another cluster.
    pub fn unreachable(&self) -> Vec<(Authority, String)> {
        self.parts.carrier.failures()
    }

    /// Waits until this node is Up. Fails with [`MembershipError::NameTaken`] as soon as a seed has answered that a live member
    /// has its name. The node goes on asking, and is let in when that member has ended: a caller that does not want that shuts
    /// it down. Fails with [`MembershipError::NotStarted`] when the node has stopped, and for an observer.
    pub async fn until_up(&self) -> Result<(), MembershipError> {
        let mut life = self.parts.shared.own_life();
        let mut events = self.subscribe();
        loop {
            let (status, refusal) = self
                .parts
                .shared
                .with(|runtime| (runtime.status(), runtime.refusal()));
            match (status, refusal) {
                (Some(NodeStatus::Up | NodeStatus::Suspect), _) => return Ok(()),
                (Some(NodeStatus::Joining), None) => {}
                (Some(NodeStatus::Joining), Some(refusal)) => return Err(refusal),
                _ => return Err(MembershipError::NotStarted),
            }
            tokio::select! {
                changed = life.changed() => changed.map_err(|_| MembershipError::NotStarted)?,
                _ = events.next() => {}
            }
        }
    }

    /// The life of this node itself: which it is, and when it ends or another one begins. A node that is declared dead, replaced
    /// or isolated in the eyes of the others takes a new life without ending.
    pub fn own_life(&self) -> OwnLifeWatch {
        OwnLifeWatch::new(self.parts.name.clone(), self.parts.shared.own_life())
    }

    /// Connects to a member by its name, to open channels of its program there. The member knows this node's name and life by
    /// [`NodeChannels::peer`]. Cancelling it closes what was made.
    pub async fn connect(&self, member: &NodeName) -> Result<PeerConnection, PeerError> {
        self.parts.peers.connect(member).await
    }

    /// Replaces the metadata of this node by what `change` makes of it, so that several parts of a program can each change their
    /// own keys. The name stays. `change` must not call the node.
    pub fn update_metadata(
        &self,
        change: impl FnOnce(&MemberMetadata) -> Result<MemberMetadata, MembershipError>,
    ) -> Result<(), MembershipError> {
        self.parts.update_metadata(change)
    }

    /// Keeps an authority out of the cluster for a while, whatever its uid.
    pub fn quarantine(
        &self,
        authority: &Authority,
        reason: &str,
        ttl: Duration,
    ) -> Result<(), MembershipError> {
        self.parts.quarantine(authority, reason, ttl)
    }

    /// Lets an authority in again.
    pub fn release(&self, authority: &Authority) -> Result<(), MembershipError> {
        self.parts.release(authority)
    }

    /// Replaces the metadata of this node: its roles, version and services, as other members see them. Its name stays.
    pub fn set_metadata(&self, metadata: MemberMetadata) -> Result<(), MembershipError> {
        self.parts.set_metadata(metadata)
    }

    /// Waits until the node has stopped by itself: it left, a later life of its authority took over, or it
    /// [failed](Self::has_failed).
    pub async fn ended(&self) {
        self.parts.ended.cancelled().await;
    }

    /// Whether the node has stopped because of a mistake in this program. It has closed its sockets then.
    pub fn has_failed(&self) -> bool {
        self.parts.failed.load(Ordering::Acquire)
    }

    /// Makes the task that runs the core panic at its next turn, to test what a program does about it.
    #[cfg(feature = "simulation")]
    pub fn panic_core_task(&self) {
        self.parts.panics.store(true, Ordering::Release);
        self.parts.carrier.wake.notify_one();
    }

    /// Leaves the cluster: gossips Leaving for the configured grace, and stops. Cancelled half-way,
    /// the node goes on leaving and is stopped by its drop.
    pub async fn leave(self) -> Result<(), DriverError> {
        let asked = self.parts.leave();
        if asked.is_ok() {
            let limit = self.parts.leave_grace + LEAVE_TIMEOUT;
            // A node that is stopped while it leaves stops: the others detect its end.
            let _ = tokio::time::timeout(limit, self.ended()).await;
        }
        let parts = self.parts.clone();
        self.shutdown().await;
        match parts.failed.load(Ordering::Acquire) {
            true => Err(DriverError::Failed),
            false => Ok(asked?),
        }
    }

    /// Stops without leaving, as a crash would, and waits until all tasks of the node have ended.
    pub async fn shutdown(mut self) {
        self.parts.stop.cancel();
        if let Some(core_task) = self.core_task.take() {
            // A panic in there has been reported by tokio; the rest still has to end.
            let _ = core_task.await;
        }
        self.parts.shared.close();
        self.parts.carrier.shut().await;
        self.parts.transport.shut(&self.parts.authority).await;
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.parts.stop.cancel();
        if self.core_task.is_some() {
            self.parts.transport.close_now(&self.parts.authority);
        }
    }
}

/// Marks the task that runs the core as ended, however it ended. Without it, after a panic, the port would go on answering from a core
/// that is not polled any more.
struct Ending(Arc<Parts>);

impl Drop for Ending {
    fn drop(&mut self) {
        let parts = &self.0;
        if std::thread::panicking() {
            parts.failed.store(true, Ordering::Release);
            parts.stop.cancel();
            parts.transport.close_now(&parts.authority);
        } else {
            // Handles to the core may outlive the node, and see that it has stopped. It may have by itself.
            let _ = parts.shared.with(|runtime| runtime.stop());
        }
        parts.shared.close();
        parts.ended.cancel();
    }
}

/// Closes the socket again when a start does not come to its end.
struct Listening {
    transport: Arc<Transport>,
    authority: Authority,
    armed: bool,
}

impl Listening {
    fn keep(mut self) {
        self.armed = false;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.armed {
            self.transport.close_now(&self.authority);
        }
    }
}

fn started(
    options: &NodeOptions,
    name: &NodeName,
    authority: &Authority,
    seeds: &[Authority],
    now: TimerInstant,
) -> Result<MembershipRuntime, DriverError> {
    let local = LocalNode {
        authority: authority.clone(),
        metadata: options.metadata.with_name(name)?,
        unix_ms: clock::unix_ms(),
        uid: None,
    };
    let seed = getrandom::u64().map_err(DriverError::Random)?;
    let mut runtime = MembershipRuntime::new(options.config.clone(), local, seed, now)?;
    match options.observer {
        true => runtime.start_client(seeds, now)?,
        false => runtime.start_member(seeds, now)?,
    }
    Ok(runtime)
}

/// The carrier as the core's contract names it.
pub(super) struct LinkTransport {
    carrier: Arc<Carrier>,
    arrived: mpsc::Receiver<Inbound>,
    /// What ended the wait.
    first: Option<Inbound>,
}

impl LinkTransport {
    /// Waits until something has arrived. Dropping the future loses nothing.
    async fn wait(&mut self) {
        if self.first.is_some() {
            return;
        }
        match self.arrived.recv().await {
            Some(inbound) => self.first = Some(inbound),
            // The carrier holds a sender, so this is only reached in the middle of the end.
            None => core::future::pending().await,
        }
    }
}

impl GossipTransport for LinkTransport {
    fn send(&mut self, outbound: GossipOutbound) -> Result<(), GossipTransportError> {
        self.carrier.send(outbound)
    }

    fn poll_deltas(&mut self) -> Vec<(Authority, Vec<u8>)> {
        let mut arrived = Vec::new();
        while arrived.len() < TURN_MESSAGES {
            let next = self.first.take().or_else(|| self.arrived.try_recv().ok());
            let Some(Inbound { from, bytes, .. }) = next else {
                break;
            };
            arrived.push((from, bytes.into()));
        }
        arrived
    }
}

async fn turn_until_stopped(parts: Arc<Parts>, mut gossip: LinkTransport) {
    let mut sweep_at = Instant::now() + SWEEP_INTERVAL;
    while !parts.stop.is_cancelled() {
        #[cfg(feature = "simulation")]
        assert!(
            !parts.panics.load(Ordering::Acquire),
            "this node was told to panic"
        );
        let arrived = gossip.poll_deltas();
        let now = parts.clock.now();
        let unix_ms = clock::unix_ms();
        parts
            .shared
            .with(|runtime| runtime.set_unix_ms(unix_ms, now));
        let turn = parts.shared.turn(arrived, now);
        parts.counters.refused.add(turn.refused as u64);
        parts.carrier.forget(&turn.ended);
        if turn.meet {
            let carrier = parts.carrier.clone();
            let meeting = async move { carrier.meet().await };
            parts.carrier.spawn(meeting, Duration::ZERO);
        }
        for outbound in turn.outbound {
            // Dropped and counted by the carrier; the core repeats what matters.
            if let Err(error) = gossip.send(outbound) {
                tracing::trace!(%error, "not sent");
            }
        }
        if parts.shared.state() == MembershipRuntimeState::Stopped {
            tokio::select! {
                () = flush_unsent(&parts.carrier) => {}
                () = parts.stop.cancelled() => {}
            }
            break;
        }
        let deadline = turn
            .next_deadline
            .map_or(sweep_at, |next| parts.clock.at(next));
        tokio::select! {
            () = gossip.wait() => {}
            () = tokio::time::sleep_until(deadline.min(sweep_at)) => {}
            () = parts.carrier.wake.notified() => {}
            () = parts.stop.cancelled() => {}
        }
        if Instant::now() >= sweep_at {
            parts.carrier.sweep();
            sweep_at = Instant::now() + SWEEP_INTERVAL;
        }
    }
}

/// A name leads to a new node only some time after it has started. Nodes that all start at once would wait for each other
/// for ever, were it not that each looks again whether it is one of its own seeds.
async fn find_itself(parts: Arc<Parts>, seeds: Vec<Authority>) {
    let is_out = |runtime: &MembershipRuntime| runtime.status() == Some(NodeStatus::Joining);
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        if !parts.shared.with(|runtime| is_out(runtime)) {
            return;
        }
        let known = parts.transport.known_seeds(&seeds, &parts.authority).await;
        if !known.contains(&parts.authority) {
            continue;
        }
        let now = parts.clock.now();
        let started = parts.shared.with(|runtime| {
            if !is_out(runtime) {
                return Ok(());
            }
            // No other node knows this life yet, so it begins once more, with the seeds as they are now.
            runtime.stop()?;
            runtime.start_member(&known, now)
        });
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start again with other seeds");
        }
        parts.carrier.wake.notify_one();
        return;
    }
}

/// Waits until the last messages of a node are sent. Links send by themselves; closing them now would lose the message that
/// this node leaves, and the others would declare it dead.
async fn flush_unsent(carrier: &Carrier) {
    // A peer that did not answer for a while will not do so now.
    let now = Instant::now();
    let recently = now.checked_sub(RECENTLY).unwrap_or(now);
    while carrier.has_unsent(recently) && now.elapsed() < FLUSH_TIME {
        tokio::time::sleep(FLUSH_POLL).await;
    }
    tokio::time::sleep(LAST_PACKETS).await;
}
