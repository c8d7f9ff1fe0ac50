//! Which tasks are given back: lives of nodes that departed go in, release orders for queues come out.
//!
//! A worker's lease ends by itself, some fifteen seconds after its node died. Membership knows of a death after two or
//! three seconds, so the nodes that are left ask each queue to release the dead life's owners. A departure is only a
//! hint: the queue replies `Alive` while an owner has renewed its lease within [`ReleaserRules::silent_for`], and the
//! order is given again until the queue took it or the lease has ended anyway. That also covers a fast restart, where the
//! new life is known before the old one has been silent for long enough.
//!
//! Every node runs a releaser, and not all of them should ask: the living nodes are ranked by name and life. Rank 0
//! asks at once, rank 1 after [`ReleaserRules::rank_delay`], and each further rank after twice the delay of the one before.
//! A delay that is longer than a lease means never, so a handful of nodes ask for one life, however large the cluster is.
//!
//! A queue that no program has used for three seconds counts as one that was away: it extends all leases, and releases
//! nobody. Where the dead life held the only tasks of a queue, nothing uses that queue any more. Therefore the nodes of the two
//! lowest ranks beat each queue once a second, before anybody dies, and so do nodes that ask while a release is pending.
//!
//! Departures get lost: a node starts after the death, was cut off, or all nodes stopped at once. Therefore each node
//! lists the owners of each queue after it joined, and the nodes of the lowest ranks list them every minute. An owner of
//! this cluster whose life is no member counts as departed. Owners of other clusters and owners that are no nodes
//! are left alone. While the cluster's key is replaced it has two ids: a departed life is released under both.

mod agenda;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use agenda::Agenda;
use kumi_common::{Life, NameAndLife, doubled};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Departed lives that are kept at once. Beyond that the one that departed first is dropped: its lease ends first.
pub const MAX_LIVES: usize = 1_024;

/// Queues that are known at once; further ones are left to their leases, and reported.
pub const MAX_QUEUES: usize = 128;

/// Orders that wait for their replies at once.
pub const MAX_IN_FLIGHT: usize = 16;

/// Reports that wait to be read; beyond that the oldest are dropped.
const MAX_REPORTS: usize = 256;

/// Nodes that list owners periodically: those of the lowest ranks.
const COMPARING_RANKS: u32 = 3;

/// Nodes that beat all queues: those of the lowest ranks. The second one goes on when the first one dies.
const BEATING_RANKS: u32 = 2;

/// Beats that wait for their replies at once, so that they leave room for releases.
const MAX_BEATS_IN_FLIGHT: usize = 4;

/// The longest pause between attempts while a queue does not reply.
const FAILED_RETRY_MOST: Duration = Duration::from_secs(5);

/// How long a departed life is kept at most while a queue does not reply. The comparison finds what is left.
const KEPT_AT_MOST: Duration = Duration::from_secs(3_600);

/// The times of a releaser.
#[derive(Clone, Debug)]
pub struct ReleaserRules {
    /// The ids of this cluster, as owners have them: two while its key is replaced. Owners with another one are left
    /// alone.
    pub clusters: BTreeSet<Arc<str>>,
    /// How long an owner must not have renewed its lease to be released. The driver hands it to the queue.
    pub silent_for: Duration,
    /// The lease of the workers. That much after a departure the queue gives the tasks back by itself.
    pub lease: Duration,
    /// How long after a departure the node of rank 1 asks.
    pub rank_delay: Duration,
    /// The pause after the reply `Alive` at rank 0. It doubles with each rank.
    pub alive_retry: Duration,
    /// The pause after the first order that failed. It doubles with each failure, up to 5 s.
    pub failed_retry: Duration,
    /// How long after it joined a node lists the owners: the other members are known by then.
    pub settle: Duration,
    /// How often the nodes of the lowest ranks list the owners.
    pub compare_every: Duration,
    /// How often a queue is beaten.
    pub beat_every: Duration,
}

impl ReleaserRules {
    /// The times of a product node in a cluster with these ids.
    pub fn new(clusters: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self {
            clusters: clusters.into_iter().collect(),
            silent_for: Duration::from_secs(3),
            lease: Duration::from_secs(15),
            rank_delay: Duration::from_millis(700),
            alive_retry: Duration::from_millis(500),
            failed_retry: Duration::from_millis(250),
            settle: Duration::from_secs(2),
            compare_every: Duration::from_secs(60),
            beat_every: Duration::from_secs(1),
        }
    }
}

/// How a life departed, in the terms of membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its monitors gave it up.
    Died,
    /// It left by its own will.
    Left,
    /// A later life of the same address took its place.
    Replaced,
    /// An operator's quarantine ended it.
    Quarantined,
    /// This node lost sight of the life, which may go on.
    Forgotten,
}

/// A member as the releaser needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its name and life.
    pub node: NameAndLife,
    /// Whether it is expected to give orders: it is up and runs a releaser.
    pub asks: bool,
}

/// What this node knows of the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The present life of this node.
    pub me: NameAndLife,
    /// All active members. This node's own entry may be missing.
    pub members: Vec<Seen>,
    /// Whether this node is in the cluster. While it is not, nothing is ordered.
    pub joined: bool,
}

/// An owner that a queue lists, by its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOwner {
    /// The cluster whose node it is.
    pub cluster: Arc<str>,
    /// The node, in one of its lives.
    pub node: NameAndLife,
}

/// What the driver does next. Each order is replied to exactly once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Release all owners of this life of a node of this cluster, if they were silent for long enough.
    Release {
        /// The queue that is asked.
        queue: Arc<str>,
        /// The id of this cluster that the owners have.
        cluster: Arc<str>,
        /// The departed life.
        life: NameAndLife,
    },
    /// Show this queue that it is in use.
    Beat {
        /// The queue that is beaten.
        queue: Arc<str>,
    },
    /// List the owners of this queue.
    List {
        /// The queue that is asked.
        queue: Arc<str>,
    },
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The queue took it, and gave so many tasks back.
    Released(usize),
    /// An owner of that life has renewed its lease recently, or could not.
    Alive,
    /// Releases by membership are switched off for this queue: the tasks come back when the lease ends.
    Off,
    /// The queue did not reply, or replied with an error.
    Failed,
}

/// For the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Tasks of a departed life were given back.
    Released {
        /// The queue.
        queue: Arc<str>,
        /// The departed life.
        life: NameAndLife,
        /// How many.
        tasks: usize,
    },
    /// A departed life is a member again; nothing more is ordered for it.
    Returned {
        /// The life.
        life: NameAndLife,
    },
    /// The queue does not release owners of departed lives; nothing more is ordered there for this life.
    SwitchedOff {
        /// The queue.
        queue: Arc<str>,
        /// The departed life.
        life: NameAndLife,
    },
    /// The lease ended before the queue took the order.
    GaveUp {
        /// The queue.
        queue: Arc<str>,
        /// The departed life.
        life: NameAndLife,
    },
    /// More lives departed than are kept; the tasks of this one come back with its lease.
    Dropped {
        /// The departed life.
        life: NameAndLife,
    },
    /// More queues than are known at once; this one is left out.
    QueueLeftOut {
        /// The queue.
        queue: Arc<str>,
    },
}

/// Where the owners of a departed life are released.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    queue: Arc<str>,
    /// The id of this cluster that the owners have.
    cluster: Arc<str>,
}

impl Target {
    fn release(&self, life: &NameAndLife) -> Order {
        Order::Release {
            queue: self.queue.clone(),
            cluster: self.cluster.clone(),
            life: life.clone(),
        }
    }
}

/// A departed life, and the targets that have not taken its release.
#[derive(Debug)]
struct Departed {
    since: Instant,
    asks: BTreeMap<Target, Ask>,
}

/// The release of one life at one target.
#[derive(Debug)]
struct Ask {
    /// No order before this, whatever the rank.
    not_before: Instant,
    /// When the lease has ended and the order is of no more use.
    give_up: Instant,
    failures: u32,
}

/// What is due at one queue besides releases.
#[derive(Debug)]
struct Known {
    /// When it is listed next; none while a listing is in flight, or it is left to nodes of lower ranks.
    listing_due: Option<Instant>,
    /// When it is beaten next, if this node beats it.
    beat_due: Instant,
    /// Releases that it has not taken, in [`Releaser::lives`].
    asks: usize,
}

fn is_comparing(rank: u32) -> bool {
    rank < COMPARING_RANKS
}

/// The releaser of one node.
///
/// The order of calls: [`handle_view`](Self::handle_view) whenever the membership changed, and
/// [`handle_departed`](Self::handle_departed) for each departure. A view must not be older than a departure that was
/// handed in before it, or the life counts as one that came back. [`handle_queues`](Self::handle_queues) when queues
/// were looked for. After any `handle_*`, and at the time that [`poll_timeout`](Self::poll_timeout) names, call
/// [`poll_order`](Self::poll_order) until it is `None`, and [`poll_report`](Self::poll_report) likewise. Each order gets
/// one reply, through [`handle_release`](Self::handle_release), [`handle_beat`](Self::handle_beat) or
/// [`handle_owners`](Self::handle_owners). `now` never goes back.
#[derive(Debug)]
pub struct Releaser {
    rules: ReleaserRules,
    /// The first life of this process. Later lives of its name are this process too, and are not released by it.
    born: NameAndLife,
    members: BTreeSet<NameAndLife>,
    /// This node's place among the members that give orders; none while it has not joined.
    rank: Option<u32>,
    queues: BTreeMap<Arc<str>, Known>,
    lives: BTreeMap<NameAndLife, Departed>,
    /// Lives that departed within a lease, and when. A queue that is new is asked for them too: it may have been first used
    /// just before a node died.
    lately: BTreeMap<NameAndLife, Instant>,
    /// When each ask that is not in flight is due.
    agenda: Agenda,
    in_flight: BTreeSet<Order>,
    reports: VecDeque<Report>,
}

impl Releaser {
    /// A releaser of the node whose present life is `born`, without members and queues.
    pub fn new(rules: ReleaserRules, born: NameAndLife) -> Self {
        Self {
            rules,
            born,
            members: BTreeSet::new(),
            rank: None,
            queues: BTreeMap::new(),
            lives: BTreeMap::new(),
            lately: BTreeMap::new(),
            agenda: Agenda::default(),
            in_flight: BTreeSet::new(),
            reports: VecDeque::new(),
        }
    }

    /// Takes over what is known of the membership. Departed lives that are members again are dropped, and the delays
    /// follow this node's new rank.
    pub fn handle_view(&mut self, now: Instant, view: View) {
        let asking = view.members.iter().filter(|seen| seen.asks);
        let before_me = asking.filter(|seen| seen.node < view.me).count();
        let rank = u32::try_from(before_me).unwrap_or(u32::MAX);
        let rank = view.joined.then_some(rank);
        self.members = view.members.into_iter().map(|seen| seen.node).collect();
        self.members.insert(view.me);
        self.lately.retain(|life, _| !self.members.contains(life));
        let returned = self
            .lives
            .keys()
            .filter(|life| self.members.contains(*life));
        for life in returned.cloned().collect::<Vec<_>>() {
            self.forget(&life);
            self.report(Report::Returned { life });
        }
        let had_joined = self.rank.is_some();
        if rank != self.rank {
            self.rank = rank;
            self.plan_all();
        }
        if rank.is_none() {
            self.queues
                .values_mut()
                .for_each(|known| known.listing_due = None);
        }
        let first_listing = match (had_joined, self.rank) {
            (_, None) => return,
            (false, Some(_)) => self.rules.settle,
            (true, Some(rank)) if is_comparing(rank) => self.rules.compare_every,
            (true, Some(_)) => return,
        };
        for (queue, known) in &mut self.queues {
            let order = Order::List {
                queue: queue.clone(),
            };
            if known.listing_due.is_none() && !self.in_flight.contains(&order) {
                known.listing_due = Some(now + first_listing);
            }
        }
    }

    /// Notes that a life is a member no more. One that was merely forgotten is left to the comparison.
    pub fn handle_departed(&mut self, now: Instant, life: NameAndLife, cause: Cause) {
        self.members.remove(&life);
        if cause == Cause::Forgotten || self.is_own(&life) {
            return;
        }
        self.forget_late(now);
        if self.lately.len() < MAX_LIVES {
            self.lately.insert(life.clone(), now);
        }
        for queue in self.queues.keys().cloned().collect::<Vec<_>>() {
            self.ask_for_all_ids(now, &life, &queue);
        }
    }

    /// Takes over the names of all queues. A queue that is new is listed, and asked for the departed lives that are
    /// still kept, or departed within a lease; one that is not among them is forgotten.
    pub fn handle_queues(&mut self, now: Instant, names: impl IntoIterator<Item = Arc<str>>) {
        let names: BTreeSet<Arc<str>> = names.into_iter().collect();
        let gone = self.queues.keys().filter(|queue| !names.contains(*queue));
        for queue in gone.cloned().collect::<Vec<_>>() {
            self.queues.remove(&queue);
            for (life, departed) in &mut self.lives {
                let (gone, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    std::mem::take(&mut departed.asks)
                        .into_iter()
                        .partition(|(target, _)| target.queue == queue);
                departed.asks = kept;
                for target in gone.keys() {
                    self.agenda.remove(life, target);
                }
            }
        }
        self.lives.retain(|_, departed| !departed.asks.is_empty());
        self.forget_late(now);
        for queue in names {
            if self.queues.contains_key(&queue) {
                continue;
            }
            if self.queues.len() == MAX_QUEUES {
                self.report(Report::QueueLeftOut { queue });
                continue;
            }
            let known = Known {
                listing_due: self.rank.map(|_| now + self.rules.settle),
                beat_due: now,
                asks: 0,
            };
            self.queues.insert(queue.clone(), known);
            let lives: BTreeSet<NameAndLife> = self
                .lives
                .keys()
                .chain(self.lately.keys())
                .cloned()
                .collect();
            for life in lives {
                self.ask_for_all_ids(now, &life, &queue);
            }
        }
    }

    /// The reply to [`Order::Release`].
    pub fn handle_release(&mut self, now: Instant, order: &Order, reply: ReleaseReply) {
        let Order::Release {
            queue,
            cluster,
            life,
        } = order
        else {
            return;
        };
        if !self.in_flight.remove(order) {
            return;
        }
        let target = Target {
            queue: queue.clone(),
            cluster: cluster.clone(),
        };
        let rank = self.rank.unwrap_or_default();
        let rules = &self.rules;
        let Some(departed) = self.lives.get_mut(life) else {
            return;
        };
        let Some(ask) = departed.asks.get_mut(&target) else {
            return;
        };
        match reply {
            ReleaseReply::Released(tasks) => {
                self.settled(life, &target);
                if tasks > 0 {
                    let (queue, life) = (queue.clone(), life.clone());
                    self.report(Report::Released { queue, life, tasks });
                }
                return;
            }
            ReleaseReply::Off => {
                self.settled(life, &target);
                let (queue, life) = (queue.clone(), life.clone());
                self.report(Report::SwitchedOff { queue, life });
                return;
            }
            ReleaseReply::Alive => {
                ask.failures = 0;
                ask.not_before = now + doubled(rules.alive_retry, rules.lease, rank);
            }
            ReleaseReply::Failed => {
                let pause = doubled(rules.failed_retry, FAILED_RETRY_MOST, ask.failures);
                ask.failures = ask.failures.saturating_add(1);
                ask.not_before = now + pause;
                // Leases do not end while the store is away: the queue extends them when it is back.
                let extended = (now + pause + rules.lease).min(departed.since + KEPT_AT_MOST);
                ask.give_up = ask.give_up.max(extended);
            }
        }
        self.plan(life, &target);
    }

    /// The reply to [`Order::Beat`], however it went: the next one comes in its time.
    pub fn handle_beat(&mut self, order: &Order) {
        if matches!(order, Order::Beat { .. }) {
            self.in_flight.remove(order);
        }
    }

    /// The reply to [`Order::List`]: the owners of nodes that the queue has; `None` if it did not reply.
    pub fn handle_owners(&mut self, now: Instant, order: &Order, owners: Option<Vec<ListedOwner>>) {
        let Order::List { queue } = order else {
            return;
        };
        if !self.in_flight.remove(order) || !self.queues.contains_key(queue) {
            return;
        }
        let again = match (&owners, self.rank) {
            (_, None) => None,
            (None, Some(_)) => Some(FAILED_RETRY_MOST),
            (Some(_), Some(rank)) if is_comparing(rank) => Some(self.rules.compare_every),
            // Its turn comes when nodes of lower ranks are gone.
            (Some(_), Some(_)) => None,
        };
        if let Some(known) = self.queues.get_mut(queue) {
            known.listing_due = again.map(|pause| now + pause);
        }
        let gone = owners.into_iter().flatten().filter(|owner| {
            self.rules.clusters.contains(&owner.cluster) && self.is_departed(&owner.node)
        });
        let gone: BTreeSet<(NameAndLife, Arc<str>)> =
            gone.map(|owner| (owner.node, owner.cluster)).collect();
        for (life, cluster) in gone {
            let queue = queue.clone();
            self.ask(now, &life, Target { queue, cluster });
        }
    }

    /// The next order, if one is due and not too many are in flight.
    pub fn poll_order(&mut self, now: Instant) -> Option<Order> {
        self.rank?;
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return None;
        }
        let order = self
            .poll_release(now)
            .or_else(|| self.poll_beat(now))
            .or_else(|| self.poll_listing(now))?;
        self.in_flight.insert(order.clone());
        Some(order)
    }

    /// When to poll for orders again; `None` while only an event can bring one.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.rank?;
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return None;
        }
        let listings = self.queues.values().filter_map(|known| known.listing_due);
        let beat = self.next_beat().map(|(due, _)| due);
        listings.chain(self.agenda.first_due()).chain(beat).min()
    }

    /// The next report for the log.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Departed lives whose release some queue has not taken yet.
    pub fn pending_lives(&self) -> usize {
        self.lives.len()
    }

    fn poll_release(&mut self, now: Instant) -> Option<Order> {
        while let Some((life, target)) = self.agenda.pop_due(now) {
            let departed = self.lives.get(&life);
            let Some(ask) = departed.and_then(|departed| departed.asks.get(&target)) else {
                continue;
            };
            if ask.give_up > now {
                return Some(target.release(&life));
            }
            self.settled(&life, &target);
            let queue = target.queue;
            self.report(Report::GaveUp { queue, life });
        }
        None
    }

    fn poll_beat(&mut self, now: Instant) -> Option<Order> {
        let (due, queue) = self.next_beat()?;
        if due > now {
            return None;
        }
        let queue = queue.clone();
        if let Some(known) = self.queues.get_mut(&queue) {
            known.beat_due = now + self.rules.beat_every;
        }
        Some(Order::Beat { queue })
    }

    /// The queue that is beaten next, and when; none while too many beats are in flight.
    fn next_beat(&self) -> Option<(Instant, &Arc<str>)> {
        let rank = self.rank?;
        let is_beat = |order: &&Order| matches!(order, Order::Beat { .. });
        if self.in_flight.iter().filter(is_beat).count() >= MAX_BEATS_IN_FLIGHT {
            return None;
        }
        let asks_in_time = self.turn_of(rank) < self.rules.lease;
        let beaten = self.queues.iter().filter(|(queue, known)| {
            let queue = (*queue).clone();
            let is_mine = rank < BEATING_RANKS || asks_in_time && known.asks > 0;
            is_mine && !self.in_flight.contains(&Order::Beat { queue })
        });
        beaten.map(|(queue, known)| (known.beat_due, queue)).min()
    }

    fn poll_listing(&mut self, now: Instant) -> Option<Order> {
        let mut queues = self.queues.iter_mut();
        let (queue, known) =
            queues.find(|(_, known)| known.listing_due.is_some_and(|due| due <= now))?;
        known.listing_due = None;
        Some(Order::List {
            queue: queue.clone(),
        })
    }

    /// Keeps a departed life for a queue, under all ids that its owners may have.
    fn ask_for_all_ids(&mut self, now: Instant, life: &NameAndLife, queue: &Arc<str>) {
        for cluster in self.rules.clusters.clone() {
            let queue = queue.clone();
            self.ask(now, life, Target { queue, cluster });
        }
    }

    /// Keeps a departed life for a target, unless it is kept for it already.
    fn ask(&mut self, now: Instant, life: &NameAndLife, target: Target) {
        if !self.lives.contains_key(life) && self.lives.len() >= MAX_LIVES {
            self.drop_oldest();
        }
        let departed = self.lives.entry(life.clone()).or_insert_with(|| Departed {
            since: now,
            asks: BTreeMap::new(),
        });
        let ask = Ask {
            not_before: now,
            give_up: now + self.rules.lease + self.rules.alive_retry,
            failures: 0,
        };
        if !departed.asks.contains_key(&target) {
            departed.asks.insert(target.clone(), ask);
            if let Some(known) = self.queues.get_mut(&target.queue) {
                known.asks += 1;
            }
            self.plan(life, &target);
        }
    }

    /// The leases of lives that departed earlier have ended.
    fn forget_late(&mut self, now: Instant) {
        let lease = self.rules.lease;
        self.lately.retain(|_, since| *since + lease > now);
    }

    fn drop_oldest(&mut self) {
        let oldest = self.lives.iter().min_by_key(|(_, departed)| departed.since);
        let Some(life) = oldest.map(|(life, _)| life.clone()) else {
            return;
        };
        self.forget(&life);
        self.report(Report::Dropped { life });
    }

    /// No target needs more orders for a life.
    fn forget(&mut self, life: &NameAndLife) {
        let departed = self.lives.remove(life);
        for target in departed.iter().flat_map(|departed| departed.asks.keys()) {
            self.agenda.remove(life, target);
            self.asks_less(&target.queue);
        }
    }

    /// One target needs no more orders for a life.
    fn settled(&mut self, life: &NameAndLife, target: &Target) {
        if let Some(departed) = self.lives.get_mut(life) {
            let was_there = departed.asks.remove(target).is_some();
            if departed.asks.is_empty() {
                self.lives.remove(life);
            }
            if was_there {
                self.asks_less(&target.queue);
            }
        }
        self.agenda.remove(life, target);
    }

    fn asks_less(&mut self, queue: &Arc<str>) {
        if let Some(known) = self.queues.get_mut(queue) {
            known.asks = known.asks.saturating_sub(1);
        }
    }

    /// Puts one ask into the agenda, at the time that its pause and this node's rank give.
    fn plan(&mut self, life: &NameAndLife, target: &Target) {
        let (Some(rank), Some(departed)) = (self.rank, self.lives.get(life)) else {
            return;
        };
        if self.in_flight.contains(&target.release(life)) {
            return;
        }
        if let Some(ask) = departed.asks.get(target) {
            let turn = departed.since + self.turn_of(rank);
            let due = ask.not_before.max(turn).min(ask.give_up);
            self.agenda.put(due, life, target);
        }
    }

    /// Plans everything again, after this node's rank changed.
    fn plan_all(&mut self) {
        self.agenda.clear();
        if self.rank.is_none() {
            return;
        }
        let asks = self.lives.iter().flat_map(|(life, departed)| {
            let targets = departed.asks.keys();
            targets.map(|target| (life.clone(), target.clone()))
        });
        for (life, target) in asks.collect::<Vec<_>>() {
            self.plan(&life, &target);
        }
    }

    /// How long after a departure a rank gives its first order.
    fn turn_of(&self, rank: u32) -> Duration {
        match rank.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => doubled(self.rules.rank_delay, KEPT_AT_MOST, doublings),
        }
    }

    /// Whether a life that a queue lists is over: it is no member. A life that is later than the member of its name is
    /// one that gossip has not brought yet.
    fn is_departed(&self, life: &NameAndLife) -> bool {
        let lives_of_name = |member: &&NameAndLife| member.name() == life.name();
        let newest = self
            .members
            .iter()
            .filter(lives_of_name)
            .map(NameAndLife::life)
            .max();
        let is_newer = newest.is_some_and(|newest: Life| newest < life.life());
        !self.is_own(life) && !self.members.contains(life) && !is_newer
    }

    /// Whether it is this process, in its present or in a former life. What its former lives hold, its own workers
    /// still report.
    fn is_own(&self, life: &NameAndLife) -> bool {
        life.name() == self.born.name() && life.life() >= self.born.life()
    }

    fn report(&mut self, report: Report) {
        if self.reports.len() == MAX_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }
}
