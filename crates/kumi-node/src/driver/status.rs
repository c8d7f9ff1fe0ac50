//! The node's status: collects the facts of all parts into the document of `core/status.rs`, at most once a second, and waits
//! for each part only for a bounded time. `/metrics` gets its facts from the same collection.

mod queue_part;
mod rates;
mod source;
mod store_part;

pub(crate) use source::NodeSource;

use super::lives::Standing;
use super::member_times::MemberTimes;
use super::programs::ProgramState;
use super::queues::StoreQueues;
use super::releaser::RunningReleaser;
use super::serve::UnitCounters;
use super::store_client::StoreClient;
use super::store_link::{StoreLink, unix_ms};
use super::tasks::Failures;
use super::work::WorkCounters;
use crate::core::attention::with_attention;
use crate::core::status::{
    KeptOut, LeftOut, MemberStatus, NodeSelf, NodeStatus, ProgramStatus, STATUS_FORMAT, UnitStatus,
    WorkerStatus,
};
use kumi_cluster::{ClusterNode, Member, MembershipError, NodeStatus as MemberState};
use kumi_muf::Served;
use queue_part::{Deaths, QueueReply};
use rates::Rates;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::timeout;

/// A collection is used again for this long.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// How long INFO may take. A client waits two seconds for a status, also while the store does not reply.
const INFO_TIMEOUT: Duration = Duration::from_millis(1_500);

/// What a node does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It starts, or runs.
    #[default]
    Running,
    /// It drains and leaves.
    Leaving,
}

/// A worker of this node.
#[derive(Clone)]
pub(crate) struct WorkerFacts {
    pub(crate) queue: String,
    pub(crate) concurrency: usize,
    pub(crate) counters: Arc<WorkCounters>,
}

/// What a node runs.
#[derive(Default)]
pub(crate) struct WorkFacts {
    pub(crate) workers: Vec<WorkerFacts>,
    pub(crate) units: Vec<(String, Arc<UnitCounters>)>,
    pub(crate) programs: Vec<(String, watch::Receiver<ProgramState>)>,
}

/// The parts of a node that have facts.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) roles: Vec<&'static str>,
    pub(crate) has_store: bool,
    pub(crate) started_unix_ms: u64,
    pub(crate) state_dir: PathBuf,
    /// The seeds, as they were written.
    pub(crate) seeds: Vec<String>,
    pub(crate) two_keys_since_unix_ms: Option<u64>,
    pub(crate) link: StoreLink,
    pub(crate) queues: StoreQueues,
    pub(crate) node: Weak<ClusterNode>,
    pub(crate) times: MemberTimes,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// What it runs now.
    pub(crate) work: watch::Receiver<Arc<WorkFacts>>,
    pub(crate) releaser: watch::Receiver<Weak<RunningReleaser>>,
    pub(crate) failures: Failures,
}

impl Parts {
    /// What the node runs now.
    fn work(&self) -> Arc<WorkFacts> {
        self.work.borrow().clone()
    }
}

/// What one collection found.
pub(crate) struct Collected {
    pub(crate) status: NodeStatus,
    info: Option<String>,
    queues: Vec<QueueReply>,
}

/// What is remembered between collections.
#[derive(Default)]
struct Memory {
    rates: Rates,
    deaths: Deaths,
    served: BTreeMap<String, Served>,
}

/// The last collection, and when it ended.
type Last = Option<(Instant, Arc<Collected>)>;

/// The connection for INFO, and the URL that it is for.
type InfoClient = Option<(Arc<str>, StoreClient)>;

/// Collects the status. Clones share the last collection.
#[derive(Clone)]
pub(crate) struct Collector {
    parts: Arc<Parts>,
    memory: Arc<Mutex<Memory>>,
    last: Arc<AsyncMutex<Last>>,
    client: Arc<AsyncMutex<InfoClient>>,
}

impl Collector {
    pub(crate) fn new(parts: Arc<Parts>) -> Self {
        Self {
            parts,
            memory: Arc::default(),
            last: Arc::default(),
            client: Arc::default(),
        }
    }

    /// The facts, not older than a second. Callers at the same time wait for one collection.
    pub(crate) async fn collect(&self) -> Arc<Collected> {
        let mut last = self.last.lock().await;
        if let Some((at, collected)) = &*last
            && at.elapsed() < FRESH_FOR
        {
            return collected.clone();
        }
        let collected = Arc::new(self.collect_now().await);
        *last = Some((Instant::now(), collected.clone()));
        collected
    }

    async fn collect_now(&self) -> Collected {
        let parts = &*self.parts;
        let reach = parts.link.reach();
        let (info, (queues, left_out)) = match reach.is_up {
            true => tokio::join!(self.info(), queue_part::ask(&parts.queues)),
            false => (None, (Vec::new(), 0)),
        };
        let node = parts.node.upgrade();
        let mut memory = self.memory();
        let Memory { rates, deaths, .. } = &mut *memory;
        let queue_statuses = queues
            .iter()
            .map(|queue| queue.status(rates, deaths))
            .collect();
        let status = NodeStatus {
            format: STATUS_FORMAT,
            attention: Vec::new(),
            node: self.own(node.as_deref()),
            members: node
                .as_deref()
                .map(|node| self.members(node))
                .unwrap_or_default(),
            store: store_part::store(&parts.link.choice(), &reach, info.as_deref()),
            queues: queue_statuses,
            cron: queues.iter().flat_map(QueueReply::cron).collect(),
            units: self.units(&mut memory),
            workers: self.workers(&mut memory),
            programs: self.programs(),
            left_out: Vec::new(),
        };
        drop(memory);
        let mut status = with_attention(status.bounded());
        if left_out > 0 {
            status.left_out.push(LeftOut {
                list: "queues".into(),
                entries: left_out,
            });
        }
        Collected {
            status,
            info,
            queues,
        }
    }

    /// The text of `INFO everything`; none if the store does not reply in time.
    async fn info(&self) -> Option<String> {
        let route = self.parts.link.reach().route?;
        let mut kept = self.client.lock().await;
        let asking = async {
            let mut client = match kept.take() {
                Some((url, client)) if url == route.url => client,
                _ => StoreClient::connect(&route.url).await.ok()?,
            };
            let info = client.call(&["INFO", "everything"]).await.ok()?;
            // Only a connection whose call has ended can be used again.
            *kept = Some((route.url.clone(), client));
            info.into_iter().next()
        };
        timeout(INFO_TIMEOUT, asking).await.ok().flatten()
    }

    fn own(&self, node: Option<&ClusterNode>) -> NodeSelf {
        let parts = &*self.parts;
        let standing = parts.standing.borrow().clone();
        let disk = rustix::fs::statvfs(&parts.state_dir).ok();
        let bytes = |blocks: u64| {
            disk.as_ref()
                .map(|disk| blocks.saturating_mul(disk.f_frsize))
        };
        let state = match *parts.phase.borrow() {
            Phase::Leaving => "leaving",
            Phase::Running if standing.has_ended => "ended",
            Phase::Running if standing.is_draining => "draining",
            Phase::Running if standing.is_member => "up",
            Phase::Running => "joining",
        };
        let kept_out = node.and_then(|node| kept_out(node, &standing));
        let mut unreachable = Vec::new();
        // Seeds matter to a node that is not in: one that is in knows more than its seeds.
        if !standing.is_member && kept_out.is_none() {
            unreachable = node.map_or_else(Vec::new, ClusterNode::unreachable);
            unreachable.retain(|(peer, _)| parts.seeds.iter().any(|seed| seed == peer.as_str()));
        }
        let seeds = parts.seeds.len() as u32;
        let seed_error = unreachable.first();
        let seed_error = seed_error.map(|(seed, error)| format!("{seed}: {error}"));
        let releaser = parts.releaser.borrow().upgrade();
        let releaser = releaser.map(|releaser| releaser.stats());
        NodeSelf {
            name: parts.name.clone(),
            life: standing
                .life
                .as_ref()
                .map_or_else(String::new, |life| life.life_text().to_owned()),
            version: kumi_store::KUMI_VERSION.to_owned(),
            roles: parts.roles.iter().map(|role| (*role).to_owned()).collect(),
            state: state.to_owned(),
            ready: source::readiness(parts) == crate::http::Readiness::Ready,
            started_unix_ms: parts.started_unix_ms,
            clock_unix_ms: unix_ms(),
            clock_ahead_ms: parts.link.reach().clock_ahead_ms,
            disk_free_bytes: disk.as_ref().and_then(|disk| bytes(disk.f_bavail)),
            disk_bytes: disk.as_ref().and_then(|disk| bytes(disk.f_blocks)),
            seeds,
            seeds_reached: seeds.saturating_sub(unreachable.len() as u32),
            seed_error,
            kept_out: kept_out.filter(|_| state != "leaving"),
            failed_parts: parts.failures.parts(),
            two_keys_since_unix_ms: parts.two_keys_since_unix_ms,
            departed_lives: releaser.map_or(0, |stats| stats.pending_lives as u32),
        }
    }

    fn members(&self, node: &ClusterNode) -> Vec<MemberStatus> {
        let members = node.members().members;
        let times = &self.parts.times;
        let live = members.iter().map(|member| member_status(member, times));
        let dead = times
            .deaths(&members)
            .into_iter()
            .map(|death| MemberStatus {
                name: death.node.name().to_owned(),
                life: death.node.life_text().to_owned(),
                address: death.authority.as_str().to_owned(),
                status: MemberState::Dead.as_str().to_owned(),
                for_ms: death.at.elapsed().as_millis() as u64,
                ..MemberStatus::default()
            });
        live.chain(dead).collect()
    }

    fn units(&self, memory: &mut Memory) -> Vec<UnitStatus> {
        let now = Instant::now();
        let work = self.parts.work();
        let units = work.units.iter().map(|(name, counters)| {
            let served = counters.served();
            let before = memory
                .served
                .insert(name.clone(), served)
                .unwrap_or_default();
            let mut recent = served;
            for (count, before) in recent.times.iter_mut().zip(before.times) {
                *count = count.saturating_sub(before);
            }
            let mut rate = |what: &str, value| {
                memory
                    .rates
                    .rate(&format!("unit {name} {what}"), value, now)
            };
            UnitStatus {
                name: name.clone(),
                instances: 1,
                calls_per_second: rate("calls", served.requests()),
                errors_per_second: rate("errors", served.errors),
                p99_ms: recent
                    .quantile(0.99)
                    .map(|time| time.as_secs_f64() * 1_000.0),
            }
        });
        units.collect()
    }

    fn workers(&self, memory: &mut Memory) -> Vec<WorkerStatus> {
        let now = Instant::now();
        let is_draining = !self.parts.standing.borrow().takes_work();
        let work = self.parts.work();
        let workers = work.workers.iter().map(|worker| WorkerStatus {
            node: self.parts.name.clone(),
            queue: worker.queue.clone(),
            running: worker.counters.running() as u32,
            concurrency: worker.concurrency as u32,
            done_per_second: memory.rates.rate(
                &format!("worker {}", worker.queue),
                worker.counters.done(),
                now,
            ),
            draining: is_draining,
        });
        workers.collect()
    }

    fn programs(&self) -> Vec<ProgramStatus> {
        let work = self.parts.work();
        let programs = work.programs.iter().map(|(name, state)| {
            let state = state.borrow().clone();
            let shown = match (state.pid, state.is_finished) {
                (Some(_), _) => "running",
                (None, true) => "stopped",
                (None, false) => "waiting",
            };
            ProgramStatus {
                node: self.parts.name.clone(),
                name: name.clone(),
                state: shown.to_owned(),
                // One that runs now may be over it.
                crashes: state.pid.map_or(state.crashes, |_| 0),
                last_end: state.last_end,
                next_start_ms: state.next_start.map(|next| {
                    let pause = next.saturating_duration_since(Instant::now());
                    pause.as_millis() as u64
                }),
            }
        });
        programs.collect()
    }

    /// Tasks that the workers of this node run.
    pub(crate) fn running_tasks(&self) -> u64 {
        let work = self.parts.work();
        let workers = work.workers.iter();
        workers.map(|worker| worker.counters.running()).sum()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the node is not a member, as far as that is known.
fn kept_out(node: &ClusterNode, standing: &Standing) -> Option<KeptOut> {
    if standing.has_ended {
        return Some(KeptOut::Ended);
    }
    if standing.is_member {
        return None;
    }
    let own = node.authority();
    let (refusal, quarantines) = node
        .shared()
        .with(|runtime| (runtime.refusal(), runtime.quarantine_snapshot()));
    if let Some(MembershipError::NameTaken { holder, .. }) = refusal {
        let address = holder.authority.as_str().to_owned();
        return Some(KeptOut::NameTaken { address });
    }
    // One of a single life ends with that life.
    let mut quarantines = quarantines.into_iter();
    let entry = quarantines.find(|entry| entry.authority == *own && entry.uid.is_none())?;
    let reason = entry.reason.to_string();
    Some(KeptOut::Quarantined { reason })
}

fn member_status(member: &Member, times: &MemberTimes) -> MemberStatus {
    let life = member.name_and_life();
    let metadata = &member.metadata;
    MemberStatus {
        name: life
            .as_ref()
            .map_or_else(String::new, |life| life.name().to_owned()),
        life: member.uid.to_string(),
        address: member.authority.as_str().to_owned(),
        status: member.status.as_str().to_owned(),
        for_ms: times.held(member).as_millis() as u64,
        roles: metadata.roles().into_iter().map(str::to_owned).collect(),
        version: metadata.version().to_owned(),
    }
}
