//! Runs the releaser's core: departures and members from a [`ClusterNode`], orders to the queues of the store.
//!
//! One task waits for membership, replies and the core's next deadline, whichever comes first. Each order is a task of
//! its own with a timeout; the core bounds how many there are. A call that ran into its timeout may have been carried
//! out: it is repeated, and finds nothing left to do.

#[cfg(test)]
mod tests;

use crate::core::releaser::{
    Cause, ListedOwner, Order, ReleaseReply, Releaser, ReleaserRules, Report, Seen, View,
};
use kumi_cluster::driver::MembershipRuntimeShared;
use kumi_cluster::{
    ClusterNode, ClusterWatch, Departure, GoneCause, LifeNotice, LifeWatch, Member, NodeStatus,
};
use kumi_common::{Chain, Name, NameAndLife};
use kumi_jobs::{Released, Reply};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The role of a member that runs a releaser, in its metadata.
pub const RELEASER_ROLE: &str = "member";

/// How long a queue may take to reply to an order.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the names of the queues are read, and how soon again after a failure. They are also read when a node departed.
const NAMES_EVERY: Duration = Duration::from_secs(10);
const NAMES_RETRY: Duration = Duration::from_secs(1);

/// The queues of a store, as the releaser needs them. All methods may be called from many tasks at once.
pub trait Queues: Send + Sync + 'static {
    /// The names of all queues.
    fn names(&self) -> Reply<'_, Vec<String>>;

    /// Releases all owners of a life of a node of the cluster with this id, unless one of them has renewed its lease
    /// within `silent_for`.
    fn release<'a>(
        &'a self,
        queue: &'a str,
        cluster: &'a str,
        life: &'a NameAndLife,
        silent_for: Duration,
    ) -> Reply<'a, Released>;

    /// Shows a queue that it is in use: [`Queue::heartbeat`](kumi_jobs::Queue::heartbeat) under an owner that holds
    /// nothing. It may do nothing where no owner holds a task, which spares an idle queue the write.
    fn beat<'a>(&'a self, queue: &'a str) -> Reply<'a, ()>;

    /// The owners of a queue that are nodes, of whatever cluster. Others are left out.
    fn node_owners<'a>(&'a self, queue: &'a str) -> Reply<'a, Vec<ListedOwner>>;
}

/// What a releaser has done and has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReleaserStats {
    /// Tasks that its orders gave back.
    pub released_tasks: u64,
    /// Departed lives whose release some queue has not taken yet.
    pub pending_lives: u64,
}

/// A running releaser. Dropping it stops it; orders that are on their way may or may not be carried out.
#[derive(Debug)]
pub struct RunningReleaser {
    stats: Arc<Stats>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl RunningReleaser {
    /// Starts the releaser of a node on the current tokio runtime. It ends with the node's membership.
    #[must_use]
    pub fn start(rules: ReleaserRules, node: &ClusterNode, queues: Arc<dyn Queues>) -> Self {
        let stats: Arc<Stats> = Arc::default();
        let stop = CancellationToken::new();
        let shared = node.shared();
        let driver = Driver {
            core: Releaser::new(rules.clone(), node.name_and_life()),
            rules,
            name: node.name().clone(),
            shared,
            queues,
            calls: JoinSet::new(),
            orders: HashMap::new(),
            names_at: Some(tokio::time::Instant::now()),
            reads_again: false,
            stats: stats.clone(),
        };
        let watches = (node.lives(), node.subscribe());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = driver.run(watches) => {}
            }
        });
        Self {
            stats,
            stop,
            task: Some(task),
        }
    }

    /// What it has done and has to do.
    #[must_use]
    pub fn stats(&self) -> ReleaserStats {
        ReleaserStats {
            released_tasks: self.stats.released_tasks.load(Ordering::Relaxed),
            pending_lives: self.stats.pending_lives.load(Ordering::Relaxed),
        }
    }

    /// Stops it, and waits until nothing of it runs any more.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // A panic in there has been reported by tokio.
            let _ = task.await;
        }
    }
}

impl Drop for RunningReleaser {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[derive(Debug, Default)]
struct Stats {
    released_tasks: AtomicU64,
    pending_lives: AtomicU64,
}

/// What a call brought.
enum Done {
    Release(Order, ReleaseReply),
    Beat(Order),
    Owners(Order, Option<Vec<ListedOwner>>),
    Names(Option<Vec<String>>),
}

struct Driver {
    core: Releaser,
    rules: ReleaserRules,
    name: Name,
    shared: MembershipRuntimeShared,
    queues: Arc<dyn Queues>,
    calls: JoinSet<Done>,
    /// The orders among the calls, in case one panics.
    orders: HashMap<Id, Order>,
    /// When the names of the queues are read next; none while they are being read.
    names_at: Option<tokio::time::Instant>,
    /// Whether a node departed while they are being read: they are read once more then.
    reads_again: bool,
    stats: Arc<Stats>,
}

impl Driver {
    /// Until membership ends.
    async fn run(mut self, (mut lives, mut events): (LifeWatch, ClusterWatch)) {
        self.see();
        loop {
            self.give_orders();
            let deadline = self.deadline();
            tokio::select! {
                notice = lives.next() => match notice {
                    Some(notice) => self.take_notice(notice),
                    None => return,
                },
                event = events.next() => match event {
                    Some(_) => self.see(),
                    None => return,
                },
                Some(done) = self.calls.join_next_with_id() => self.take_reply(done),
                () = sleep_until(deadline) => self.read_names(),
            }
        }
    }

    fn deadline(&self) -> Option<tokio::time::Instant> {
        let core = self.core.poll_timeout().map(Into::into);
        [core, self.names_at].into_iter().flatten().min()
    }

    /// Hands the core the membership as it is now. It is never older than a notice that was received before.
    fn see(&mut self) {
        let snapshot = self.shared.members();
        let (uid, status) = self
            .shared
            .with(|runtime| (runtime.identity().uid, runtime.status()));
        let view = View {
            me: self.name.with_life(uid),
            members: snapshot.members.iter().filter_map(seen).collect(),
            joined: status == Some(NodeStatus::Up),
        };
        self.core.handle_view(now(), view);
    }

    fn take_notice(&mut self, notice: LifeNotice) {
        if let LifeNotice::Departed(departure) = notice
            && let Some(life) = departure.name_and_life()
        {
            self.core.handle_departed(now(), life, cause(&departure));
            // It may have been the first to use a queue, a moment ago.
            match &mut self.names_at {
                Some(at) => *at = tokio::time::Instant::now(),
                None => self.reads_again = true,
            }
        }
        self.see();
    }

    fn read_names(&mut self) {
        let is_due = |at: tokio::time::Instant| at <= tokio::time::Instant::now();
        if !self.names_at.is_some_and(is_due) {
            return;
        }
        self.names_at = None;
        let queues = self.queues.clone();
        self.calls.spawn(async move {
            let names = timely("the names of the queues", queues.names()).await;
            Done::Names(names)
        });
    }

    fn give_orders(&mut self) {
        while let Some(order) = self.core.poll_order(now()) {
            let call = carry_out(self.queues.clone(), order.clone(), self.rules.silent_for);
            let id = self.calls.spawn(call).id();
            self.orders.insert(id, order);
        }
        while let Some(report) = self.core.poll_report() {
            self.log(&report);
        }
        let pending = self.core.pending_lives() as u64;
        self.stats.pending_lives.store(pending, Ordering::Relaxed);
    }

    fn take_reply(&mut self, done: Result<(Id, Done), JoinError>) {
        let done = match done {
            Ok((id, done)) => {
                self.orders.remove(&id);
                done
            }
            // A call that panicked, which tokio has reported, counts as one that failed.
            Err(error) => match self.orders.remove(&error.id()) {
                Some(order @ Order::Release { .. }) => Done::Release(order, ReleaseReply::Failed),
                Some(order @ Order::Beat { .. }) => Done::Beat(order),
                Some(order @ Order::List { .. }) => Done::Owners(order, None),
                None => Done::Names(None),
            },
        };
        match done {
            Done::Release(order, reply) => self.core.handle_release(now(), &order, reply),
            Done::Beat(order) => self.core.handle_beat(&order),
            Done::Owners(order, owners) => self.core.handle_owners(now(), &order, owners),
            Done::Names(names) => {
                let pause = match (&names, std::mem::take(&mut self.reads_again)) {
                    (Some(_), true) => Duration::ZERO,
                    (Some(_), false) => NAMES_EVERY,
                    (None, _) => NAMES_RETRY,
                };
                self.names_at = Some(tokio::time::Instant::now() + pause);
                if let Some(names) = names {
                    let names = names.into_iter().map(Into::into);
                    self.core.handle_queues(now(), names);
                }
            }
        }
    }

    fn log(&self, report: &Report) {
        match report {
            Report::Released { queue, life, tasks } => {
                let released = &self.stats.released_tasks;
                released.fetch_add(*tasks as u64, Ordering::Relaxed);
                tracing::info!(%queue, node = %life, tasks, "the tasks of a departed node were given back");
            }
            Report::Returned { life } => {
                tracing::info!(node = %life, "a departed node is a member again");
            }
            Report::SwitchedOff { queue, life } => {
                tracing::debug!(%queue, node = %life, "the queue does not release the tasks of departed nodes");
            }
            Report::GaveUp { queue, life } => {
                tracing::debug!(%queue, node = %life, "the lease of a departed node has ended");
            }
            Report::Dropped { life } => {
                tracing::warn!(node = %life, "too many departed nodes; its tasks come back when its lease ends");
            }
            Report::QueueLeftOut { queue } => {
                tracing::warn!(%queue, "too many queues; tasks of departed nodes come back when their leases end");
            }
        }
    }
}

/// The clock of tokio, which tests can pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A member with a name; others own no tasks.
fn seen(member: &Member) -> Option<Seen> {
    let runs_one = member.metadata.roles().contains(&RELEASER_ROLE);
    Some(Seen {
        node: member.name_and_life()?,
        asks: member.status == NodeStatus::Up && runs_one,
    })
}

/// A cause that this version does not know is no verdict.
fn cause(departure: &Departure) -> Cause {
    match departure {
        Departure::Gone { cause, .. } => match cause {
            GoneCause::Died => Cause::Died,
            GoneCause::Left => Cause::Left,
            GoneCause::Replaced => Cause::Replaced,
            GoneCause::Quarantined => Cause::Quarantined,
            _ => Cause::Forgotten,
        },
        _ => Cause::Forgotten,
    }
}

async fn carry_out(queues: Arc<dyn Queues>, order: Order, silent_for: Duration) -> Done {
    match &order {
        Order::Release {
            queue,
            cluster,
            life,
        } => {
            let call = queues.release(queue, cluster, life, silent_for);
            let reply = match timely("the release of a departed node", call).await {
                Some(Released::Tasks(tasks)) => ReleaseReply::Released(tasks),
                Some(Released::Alive) => ReleaseReply::Alive,
                Some(Released::Off) => ReleaseReply::Off,
                Some(_) | None => ReleaseReply::Failed,
            };
            Done::Release(order, reply)
        }
        Order::Beat { queue } => {
            timely("the beat of a queue", queues.beat(queue)).await;
            Done::Beat(order)
        }
        Order::List { queue } => {
            let owners = timely("the owners of a queue", queues.node_owners(queue)).await;
            Done::Owners(order, owners)
        }
    }
}

/// The reply of a queue; none if it failed or took too long.
async fn timely<T>(what: &'static str, call: Reply<'_, T>) -> Option<T> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(Ok(reply)) => Some(reply),
        Ok(Err(error)) => {
            tracing::debug!(what, error = %Chain(&error), "a queue did not reply");
            None
        }
        Err(_) => {
            tracing::debug!(what, "a queue took too long to reply");
            None
        }
    }
}
