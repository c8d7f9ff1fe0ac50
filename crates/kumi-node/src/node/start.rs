//! The start of a node, part by part. What was started is dropped, and so ended, if a later part fails.
//!
//! HTTP serves and the channel `kumi.node` is offered before the node waits to be let in, so that a person can ask it why it is
//! not in. The way to the store opens after that wait, and all that the node runs waits for the store: a node that is refused
//! has run nothing.

use super::builder::Builder;
use super::error::NodeError;
use super::ground::Ground;
use super::work::{Tools, Work};
use super::{Changeable, Node, Running};
use crate::config::NodeConfig;
use crate::core::releaser::ReleaserRules;
use crate::core::store_pin::{Pin, StorePin};
use crate::driver::channel::{self, Changes, NodeService};
use crate::driver::cron;
use crate::driver::keys::KeySet;
use crate::driver::lives::Lives;
use crate::driver::member_times::MemberTimes;
use crate::driver::membership::{self, Announced, PIN_SERVICE, STORE_ID_SERVICE, STORE_SERVICE};
use crate::driver::queues::StoreQueues;
use crate::driver::releaser::{RELEASER_ROLE, RunningReleaser};
use crate::driver::route::is_loopback;
use crate::driver::state_dir::{NodeRecord, StateDir};
use crate::driver::status::{Collector, Parts, Phase};
use crate::driver::store::OwnStore;
use crate::driver::store_link::{Chooser, StoreLink, unix_ms};
use kumi_cluster::{ClusterNode, MemberMetadata, NodeChannels};
use kumi_common::Chain;
use kumi_unison::ChannelRegistry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long running tasks may go on when the node stops, unless the configuration says it.
const STOP_WITHIN: Duration = Duration::from_secs(30);

impl Builder {
    /// Starts the node on the current tokio runtime. Returns when it has joined, or when its seeds did not answer for some
    /// seconds: it goes on asking them then.
    ///
    /// # Errors
    /// See [`NodeError`]. Nothing of the node runs then. Dropping the future ends what was started.
    pub async fn start(mut self) -> Result<Node, NodeError> {
        match self.problem.take() {
            Some(problem) => Err(NodeError::Invalid(problem)),
            None => start(self).await,
        }
    }
}

async fn start(builder: Builder) -> Result<Node, NodeError> {
    let started_unix_ms = unix_ms();
    let mut ground = Ground::prepare(&builder).await?;
    let joined = join(&mut ground, &builder).await?;
    let cluster = joined.cluster;
    let me = cluster.name_and_life();
    let mut background = JoinSet::new();
    let link = link(&ground, &cluster, joined.pin, &mut background);
    let recording = keep_record(ground.state.clone(), joined.record, link.clone());
    background.spawn(ground.failures.watch("record", recording));
    let queues = StoreQueues::new(link.clone(), &ground.keys);
    let (lives, times) = follow(&ground, &cluster, &mut background);
    let schedules = watch::Sender::new(ground.config.cron.clone());
    let (declared, name) = (schedules.subscribe(), me.name().to_owned());
    let declaring = cron::declare(declared, name, link.clone(), queues.clone());
    background.spawn(ground.failures.watch("schedules", declaring));
    let keys = ground.keys.now();
    let releaser = releaser(&keys, &cluster, &queues);
    let shown_releaser = watch::Sender::new(Arc::downgrade(&releaser));

    let phase = watch::Sender::new(Phase::default());
    let mut work = Work::new(Tools::new(
        &builder,
        me.clone(),
        link.clone(),
        lives.clone(),
        ground.keys.clone(),
        ground.failures.clone(),
    ));
    work.apply(&ground.config, stop_within(&ground.config));
    let roles = std::iter::once(RELEASER_ROLE).chain(ground.roles(&builder));
    let collector = Collector::new(Arc::new(Parts {
        name: me.name().to_owned(),
        roles: roles.collect(),
        has_store: ground.store.is_some(),
        started_unix_ms,
        state_dir: ground.state.path().to_owned(),
        seeds: seeds(&ground),
        two_keys_since_unix_ms: keys.has_two.then_some(started_unix_ms),
        link: link.clone(),
        queues: queues.clone(),
        node: Arc::downgrade(&cluster),
        times,
        standing: lives.standing(),
        phase: phase.subscribe(),
        work: work.facts(),
        releaser: shown_releaser.subscribe(),
        failures: ground.failures.clone(),
    }));
    let changes = Changes::new();
    let looking = changes.clone().look(collector.clone(), link.clone());
    background.spawn(ground.failures.watch("changes", looking));
    let (stop_sender, stop) = watch::channel(None);
    let service = NodeService {
        collector: collector.clone(),
        link: link.clone(),
        keys: ground.keys.clone(),
        lives: lives.clone(),
        changes,
        stop: stop_sender,
        operators: Arc::default(),
    };
    service.register(joined.channels.registry());
    // It is empty: the ground is this start's.
    let _ = ground.source.collector.set(collector.clone());
    let changeable = Changeable {
        config: tokio::sync::Mutex::new(builder.config.clone()),
        schedules,
        hosts: ground.hosts,
        own_host: ground.place.advertise.clone(),
        certificate: ground.certificate.clone(),
        has_given_key: builder.key.is_some(),
        replaced_keys: tokio::sync::Mutex::default(),
        work: tokio::sync::Mutex::new(work),
        releaser: tokio::sync::Mutex::new(releaser),
        shown_releaser,
    };
    let advertised = ground.place.advertise.as_ref();
    let node = Node {
        advertised: advertised.map(|_| cluster.authority().as_str().to_owned()),
        name: me,
        notes: ground.notes,
        state: ground.state,
        keys: ground.keys,
        link,
        queues,
        collector,
        source: ground.source,
        lives,
        phase,
        stop,
        failures: ground.failures,
        muf: tokio::sync::Mutex::default(),
        changeable,
        running: Running {
            cluster,
            http: ground.http,
            background,
            store: ground.store,
        },
        _lock: ground.lock,
    };
    let node = let_in(node).await?;
    ground.begin.cancel();
    Ok(node)
}

/// Waits until the node is in, or for some seconds. One that is refused is ended.
async fn let_in(mut node: Node) -> Result<Node, NodeError> {
    match membership::until_up(&node.running.cluster).await {
        Ok(true) => {}
        Ok(false) => {
            let words = "no seed has let this node in yet; it goes on asking: check that one runs there, that UDP reaches it, and that --key-file is a copy of its key";
            node.notes.push(words.into());
            let troubles = membership::troubles(&node.running.cluster);
            node.notes.extend(troubles);
        }
        Err(error) => {
            // It says why it was refused; what else its end reports is of no use.
            let _ = node.shutdown_within(Duration::ZERO).await;
            return Err(error.into());
        }
    }
    Ok(node)
}

/// The seeds as membership names them.
fn seeds(ground: &Ground) -> Vec<String> {
    let seeds = ground.config.node.join.iter();
    seeds.map(|seed| seed.as_str().to_owned()).collect()
}

/// Gives back the tasks of dead nodes of the clusters that the keys name.
pub(super) fn releaser(
    keys: &KeySet,
    cluster: &ClusterNode,
    queues: &StoreQueues,
) -> Arc<RunningReleaser> {
    let ids = keys.clusters.iter().map(|id| id.to_string().into());
    let queues = Arc::new(queues.clone());
    let releaser = RunningReleaser::start(ReleaserRules::new(ids), cluster, queues);
    Arc::new(releaser)
}

/// How long running tasks may go on when the node stops.
pub(super) fn stop_within(config: &NodeConfig) -> Duration {
    config.node.stop_within.unwrap_or(STOP_WITHIN)
}

/// A node that has begun to join.
struct Joined {
    cluster: Arc<ClusterNode>,
    channels: NodeChannels,
    pin: Option<Pin>,
    record: NodeRecord,
}

async fn join(ground: &mut Ground, builder: &Builder) -> Result<Joined, NodeError> {
    let pin = ground.state.pin(&ground.keys.now().clusters)?;
    let reached = |port| membership::advertised(&ground.place, port);
    let http = ground.http_addresses();
    let announced = Announced {
        roles: ground.roles(builder),
        store: ground.announced_store(),
        http: http.first().map(|address| reached(address.port())),
        pin: pin.clone(),
    };
    let registry = ChannelRegistry::new("kumi-node", kumi_store::KUMI_VERSION, "node");
    // For people who hold the operator's key and not the cluster's.
    registry.open_to_guests(channel::CHANNEL);
    let channels = NodeChannels::from(registry);
    let (config, place) = (&ground.config, &ground.place);
    let port = ground.membership_port;
    let joining = membership::start(
        config,
        place,
        port,
        &ground.keys,
        &announced,
        channels.clone(),
    );
    let joining = joining.await?;
    let cluster = joining.node;
    ground.notes.extend(joining.note);
    // Also before the node is in: commands on this machine ask it why it is not.
    let mut record = record(ground, &cluster);
    record.reloads_on_hangup = builder.reloads_on_hangup;
    write(&ground.state, &record);
    Ok(Joined {
        cluster: Arc::new(cluster),
        channels,
        pin,
        record,
    })
}

/// Where the node listens. Without the record, commands on this machine have to be told.
fn record(ground: &Ground, cluster: &ClusterNode) -> NodeRecord {
    let text = |addresses: &[SocketAddr]| addresses.iter().map(ToString::to_string).collect();
    let mut record = NodeRecord::new(cluster.name().as_str());
    record.membership = cluster.local_addr().map(|address| address.to_string());
    record.http = text(ground.http_addresses());
    let key_file = ground.config.node.key_file.as_ref();
    record.key_file = key_file.and_then(|file| std::path::absolute(file).ok());
    if let Some(store) = &ground.store {
        let (plain, tls) = store.addresses();
        record.store = text(&[plain, tls].concat());
        record.local_store = Some(store.local_url());
        let announced = ground.announced_store().map(|(_, address)| address);
        record.advertised_store = announced.filter(|address| !is_loopback(address));
    }
    record
}

fn write(state: &StateDir, record: &NodeRecord) {
    if let Err(error) = state.write_record(record) {
        tracing::warn!(error = %Chain(&error), "the node's ports are not recorded");
    }
}

/// Writes down which store the node uses, if that is not its own, for as long as it is polled.
async fn keep_record(state: StateDir, mut record: NodeRecord, link: StoreLink) {
    loop {
        let route = link.up().await;
        let is_own = record.local_store.is_some() && route.node == record.name;
        let used = (!is_own).then(|| route.address.clone());
        if record.used_store != used {
            record.used_store = used;
            write(&state, &record);
        }
        link.left(&route).await;
    }
}

/// The way to the store that the configuration names, or to the cluster's.
fn link(
    ground: &Ground,
    cluster: &Arc<ClusterNode>,
    pin: Option<Pin>,
    background: &mut JoinSet<()>,
) -> StoreLink {
    if let Some(url) = &ground.outside {
        let (link, probing) = StoreLink::outside(url);
        background.spawn(ground.later("probe of the store", probing));
        return link;
    }
    let me = cluster.name_and_life();
    let own = ground.store.as_ref();
    let own = own.map(|store| (me.name().to_owned(), store.local_url()));
    let chooser = Chooser {
        pin: StorePin::new(me, pin),
        keys: ground.keys.clone(),
        state: ground.state.clone(),
        own,
        is_on_loopback: ground.place.bind.is_loopback(),
        announce: announce_pin(cluster),
    };
    let (link, following) = StoreLink::of_cluster(chooser, cluster);
    // A node that is not in yet sees its own store alone, and would pin it.
    background.spawn(ground.later("choice of the store", following));
    link
}

/// Puts the pin into what the node announces.
fn announce_pin(cluster: &Arc<ClusterNode>) -> Box<dyn Fn(&Pin) + Send + Sync> {
    let cluster = Arc::downgrade(cluster);
    Box::new(move |pin| {
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        let text = pin.to_announcement();
        let updated =
            cluster.update_metadata(|metadata| metadata.with_service(PIN_SERVICE, Some(&text)));
        if let Err(error) = updated {
            tracing::error!(error = %Chain(&error), "the others do not hear which store is used");
        }
    })
}

/// Follows the node's own life, the members and the clock.
fn follow(
    ground: &Ground,
    cluster: &Arc<ClusterNode>,
    background: &mut JoinSet<()>,
) -> (Lives, MemberTimes) {
    let failures = &ground.failures;
    let lives = Lives::new();
    let following = lives.clone().follow(cluster.own_life());
    background.spawn(failures.watch("own life", following));
    let times = MemberTimes::default();
    let (shared, events) = (cluster.shared(), cluster.subscribe());
    let following = times.clone().follow(shared, events, cluster.lives());
    background.spawn(failures.watch("members", following));
    let store = ground.store.as_ref();
    let handle = store.map(|store| store.handle().clone());
    let keeping = ground.certificate.clone().keep(handle);
    background.spawn(failures.watch("certificate", keeping));
    if let Some(has_ended) = store.map(OwnStore::has_ended) {
        let withdrawing = withdraw_store(has_ended, cluster);
        background.spawn(failures.watch("end of the store", withdrawing));
    }
    (lives, times)
}

/// Announces no store any more once the node's own has ended, so that the others do not seek it here.
fn withdraw_store(
    mut has_ended: watch::Receiver<bool>,
    cluster: &Arc<ClusterNode>,
) -> impl Future<Output = ()> + Send + use<> {
    let cluster = Arc::downgrade(cluster);
    async move {
        // A sender that is gone has ended too.
        drop(has_ended.wait_for(|has_ended| *has_ended).await);
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        tracing::warn!("the store of this node has ended");
        let withdrawn = cluster.update_metadata(|metadata: &MemberMetadata| {
            let metadata = metadata.with_service(STORE_SERVICE, None)?;
            metadata.with_service(STORE_ID_SERVICE, None)
        });
        if let Err(error) = withdrawn {
            // A node that has left tells nobody.
            tracing::debug!(error = %Chain(&error), "the end of the store is not announced");
        }
    }
}
