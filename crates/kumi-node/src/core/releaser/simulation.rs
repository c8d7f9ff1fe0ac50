//! Releasers of many nodes on virtual time, with a model of membership and of queues with leases.
//!
//! A seed stands for one history. The model of membership tells each node of each death after the time that the local
//! preset takes, tells some of them nothing, and forgets members of a node that is cut off. The model of a queue has
//! leases, the silence of `release_owner`, and the grace after a gap of the pulse, as `kumi-jobs` has them. Calls to a
//! queue are lost, executed late, or fail while the store is away.

use super::*;
use std::collections::BTreeMap;

/// Histories of each test, unless `KUMI_RELEASER_SEEDS` names another number.
const SEEDS: u64 = 16;

fn seeds() -> std::ops::Range<u64> {
    let wanted = std::env::var("KUMI_RELEASER_SEEDS").ok();
    0..wanted.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

const QUEUES: [&str; 3] = ["mail", "resize", "web"];

/// All times of the simulation are milliseconds after its start.
type Ms = u64;

const STEP: Ms = 10;
const LEASE: Ms = 15_000;
const RENEWAL: Ms = 1_000;
const GAP: Ms = 3_000;
const TASKS: usize = 5;

/// What the issue of a death allows with the local preset.
const RELEASED_WITHIN: Ms = 6_000;

/// How long membership takes to declare a death, with the local preset, and how far nodes are apart in it.
const DETECTION: std::ops::Range<Ms> = 2_200..2_900;
const SPREAD: Ms = 500;

/// How long a lost call takes to fail.
const CALL_TIMEOUT: Ms = 1_000;

fn cluster_id(cluster: usize) -> Arc<str> {
    format!("cluster-{cluster}").into()
}

/// An owner: the cluster and the life of a node.
type OwnerKey = (usize, NameAndLife);

#[derive(Debug)]
struct Holder {
    tasks: usize,
    renewed_at: Ms,
    lease_end: Ms,
    is_extended: bool,
}

/// A queue with leases, one task being like any other.
#[derive(Debug, Default)]
struct ModelQueue {
    holders: BTreeMap<OwnerKey, Holder>,
    ready: usize,
    pulse: Option<Ms>,
    /// A mistake to plant: no grace after a gap.
    has_no_grace: bool,
    /// A mistake to plant: silence is not looked at.
    ignores_silence: bool,
}

impl ModelQueue {
    fn beat(&mut self, now: Ms, is_alive: bool) {
        let is_gap = self.pulse.is_none_or(|pulse| now - pulse > GAP);
        if is_gap && !self.has_no_grace {
            for holder in self
                .holders
                .values_mut()
                .filter(|holder| !holder.is_extended)
            {
                holder.is_extended = true;
                holder.lease_end = now + LEASE;
            }
        }
        if is_alive || is_gap {
            self.pulse = Some(now);
        }
    }

    fn renew(&mut self, now: Ms, owner: &OwnerKey) {
        self.beat(now, true);
        let ended = self
            .holders
            .iter()
            .filter(|(_, holder)| holder.lease_end <= now);
        for owner in ended.map(|(owner, _)| owner.clone()).collect::<Vec<_>>() {
            self.ready += self.holders.remove(&owner).map_or(0, |holder| holder.tasks);
        }
        if let Some(holder) = self.holders.get_mut(owner) {
            holder.renewed_at = now;
            holder.lease_end = now + LEASE;
            holder.is_extended = false;
        }
    }

    fn claim(&mut self, now: Ms, owner: &OwnerKey) {
        if self.ready == 0 {
            return;
        }
        let holder = self.holders.entry(owner.clone()).or_insert(Holder {
            tasks: 0,
            renewed_at: now,
            lease_end: now + LEASE,
            is_extended: false,
        });
        let taken = self.ready.min(TASKS.saturating_sub(holder.tasks));
        holder.tasks += taken;
        self.ready -= taken;
        if holder.tasks == 0 {
            self.holders.remove(owner);
        }
    }

    fn release(&mut self, now: Ms, owner: &OwnerKey, silent_for: Ms) -> ReleaseReply {
        self.beat(now, false);
        let Some(holder) = self.holders.get(owner) else {
            return ReleaseReply::Released(0);
        };
        let is_silent = self.ignores_silence || holder.renewed_at + silent_for <= now;
        if !is_silent || holder.is_extended && holder.lease_end > now {
            return ReleaseReply::Alive;
        }
        let tasks = self.holders.remove(owner).map_or(0, |holder| holder.tasks);
        self.ready += tasks;
        ReleaseReply::Released(tasks)
    }

    fn tasks(&self) -> usize {
        self.ready
            + self
                .holders
                .values()
                .map(|holder| holder.tasks)
                .sum::<usize>()
    }
}

/// What a node learns of the membership, and when.
#[derive(Clone, Debug)]
enum Learned {
    Up(NameAndLife),
    Departed(NameAndLife, Cause),
    Joined(bool),
}

/// One process.
struct Node {
    cluster: usize,
    name: &'static str,
    life: NameAndLife,
    /// Lives of this process whose handlers still run, and when they end.
    former: Vec<(NameAndLife, Ms)>,
    releaser: Releaser,
    known: BTreeSet<NameAndLife>,
    joined: bool,
    learns: Vec<(Ms, Learned)>,
    /// Orders on their way: when the queue executes it, if it does, and when the reply or the failure arrives.
    calls: Vec<Call>,
    renews_at: Ms,
    store_cut_until: Ms,
    /// The process stands still until then.
    stalled_until: Ms,
}

struct Call {
    order: Order,
    executes_at: Option<Ms>,
    replies_at: Ms,
    reply: Option<CallReply>,
}

#[derive(Clone)]
enum CallReply {
    Release(ReleaseReply),
    Beaten,
    Owners(Vec<ListedOwner>),
}

struct World {
    random: fastrand::Rng,
    start: Instant,
    now: Ms,
    queues: BTreeMap<Arc<str>, ModelQueue>,
    nodes: Vec<Node>,
    clock: u64,
    store_away_until: Ms,
    /// One call in so many is lost.
    loss: Option<u64>,
    /// The only node that has workers; all if there is none.
    only_worker: Option<&'static str>,
    /// Lives whose process was killed, and when.
    deaths: Vec<(Ms, OwnerKey)>,
    /// Release calls that a queue was sent, by cluster, queue and life.
    releases: BTreeMap<(usize, Order), usize>,
    /// Lives that were released while their process ran.
    released_alive: Vec<OwnerKey>,
    /// All lives that a cluster ever had.
    lives: BTreeSet<OwnerKey>,
}

impl World {
    fn new(seed: u64, clusters: usize, names: &[&'static str]) -> Self {
        let mut world = Self {
            random: fastrand::Rng::with_seed(seed),
            start: Instant::now(),
            now: 0,
            queues: QUEUES
                .map(|name| (name.into(), ModelQueue::default()))
                .into(),
            nodes: Vec::new(),
            clock: 1,
            store_away_until: 0,
            loss: None,
            only_worker: None,
            deaths: Vec::new(),
            releases: BTreeMap::new(),
            released_alive: Vec::new(),
            lives: BTreeSet::new(),
        };
        for cluster in 0..clusters {
            for name in names {
                world.spawn(cluster, name);
            }
        }
        let per_queue = clusters * names.len() * TASKS;
        for queue in world.queues.values_mut() {
            queue.ready = per_queue;
        }
        world
    }

    fn new_life(&mut self, cluster: usize, name: &str) -> NameAndLife {
        self.clock += 1;
        let name = kumi_common::Name::new(name).expect("a name");
        let life = name.with_life(Life::from_raw(self.clock));
        self.lives.insert((cluster, life.clone()));
        life
    }

    /// Starts a process. The others of its cluster learn of it, and of the end of an earlier life of its name.
    fn spawn(&mut self, cluster: usize, name: &'static str) {
        let life = self.new_life(cluster, name);
        let rules = ReleaserRules::new([cluster_id(cluster)]);
        let mut releaser = Releaser::new(rules, life.clone());
        releaser.handle_queues(self.instant(), self.queues.keys().cloned());
        let peers = self.nodes.iter().filter(|node| node.cluster == cluster);
        let known: BTreeSet<NameAndLife> = peers.map(|node| node.life.clone()).collect();
        let joins_at = self.now + self.random.u64(50..300);
        self.announce(cluster, joins_at, &life, Cause::Replaced);
        let renews_at = self.now + self.random.u64(0..RENEWAL);
        self.nodes.push(Node {
            cluster,
            name,
            life,
            former: Vec::new(),
            releaser,
            known,
            joined: false,
            learns: vec![(joins_at, Learned::Joined(true))],
            calls: Vec::new(),
            renews_at,
            store_cut_until: 0,
            stalled_until: 0,
        });
    }

    /// The nodes of a cluster learn of a life, and that earlier lives of its name are over.
    fn announce(&mut self, cluster: usize, at: Ms, life: &NameAndLife, cause: Cause) {
        for index in 0..self.nodes.len() {
            let at = at + self.random.u64(0..SPREAD);
            let node = &mut self.nodes[index];
            if node.cluster != cluster || node.life == *life {
                continue;
            }
            let earlier = node
                .known
                .iter()
                .filter(|known| known.name() == life.name());
            let earlier: Vec<NameAndLife> = earlier.cloned().collect();
            for earlier in earlier.into_iter().filter(|earlier| earlier < life) {
                node.learns.push((at, Learned::Departed(earlier, cause)));
            }
            node.learns.push((at, Learned::Up(life.clone())));
        }
    }

    /// Ends a process without a word.
    fn kill(&mut self, index: usize) -> (usize, &'static str) {
        let node = self.nodes.remove(index);
        let key = (node.cluster, node.life.clone());
        self.deaths.push((self.now, key));
        let detected = self.now + self.random.u64(DETECTION);
        // At one death in four, one node is not told how it ended.
        let untold = self.random.usize(0..4 * self.nodes.len());
        for index in 0..self.nodes.len() {
            let at = detected + self.random.u64(0..SPREAD);
            let cause = match index == untold {
                true => Cause::Forgotten,
                false => Cause::Died,
            };
            let peer = &mut self.nodes[index];
            if peer.cluster == node.cluster {
                peer.learns
                    .push((at, Learned::Departed(node.life.clone(), cause)));
            }
        }
        (node.cluster, node.name)
    }

    /// A process goes on in a new life; the handlers of the old one end later.
    fn take_new_life(&mut self, index: usize, at: Ms) {
        let (cluster, name) = (self.nodes[index].cluster, self.nodes[index].name);
        let life = self.new_life(cluster, name);
        let ends_at = at + self.random.u64(5_000..30_000);
        let node = &mut self.nodes[index];
        let former = std::mem::replace(&mut node.life, life.clone());
        node.known.remove(&former);
        node.former.push((former, ends_at));
        self.announce(cluster, at, &life, Cause::Replaced);
        self.see(index);
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_millis(self.now)
    }

    fn is_running(&self, owner: &OwnerKey) -> bool {
        let (cluster, life) = owner;
        self.nodes.iter().any(|node| {
            let former = node.former.iter().map(|(former, _)| former);
            node.cluster == *cluster && former.chain([&node.life]).any(|own| own == life)
        })
    }

    /// Hands a node its view.
    fn see(&mut self, index: usize) {
        let now = self.instant();
        let node = &mut self.nodes[index];
        let members = node.known.iter().cloned();
        let view = View {
            me: node.life.clone(),
            members: members.map(|node| Seen { node, asks: true }).collect(),
            joined: node.joined,
        };
        node.releaser.handle_view(now, view);
    }

    fn run(&mut self, for_ms: Ms) {
        let end = self.now + for_ms;
        while self.now < end {
            for index in 0..self.nodes.len() {
                if self.nodes[index].stalled_until <= self.now {
                    self.learn(index);
                    self.work(index);
                    self.serve(index);
                }
            }
            self.now += STEP;
        }
        let expected: BTreeSet<usize> = self.queues.values().map(ModelQueue::tasks).collect();
        assert_eq!(expected.len(), 1, "no task is lost: {expected:?}");
    }

    fn learn(&mut self, index: usize) {
        let now = self.now;
        let learns = &mut self.nodes[index].learns;
        if learns.iter().all(|(at, _)| *at > now) {
            return;
        }
        let (mut due, later): (Vec<_>, Vec<_>) = learns.drain(..).partition(|(at, _)| *at <= now);
        *learns = later;
        due.sort_by_key(|(at, _)| *at);
        for (_, learned) in due {
            let now = self.instant();
            let node = &mut self.nodes[index];
            match learned {
                Learned::Up(life) => {
                    let is_own = life.name() == node.life.name();
                    if !is_own {
                        node.known.insert(life);
                    }
                }
                Learned::Departed(life, cause) => {
                    node.known.remove(&life);
                    node.releaser.handle_departed(now, life, cause);
                }
                Learned::Joined(joined) => node.joined = joined,
            }
            self.see(index);
        }
    }

    /// Workers renew their leases and claim what is ready.
    fn work(&mut self, index: usize) {
        let now = self.now;
        let is_away = self.store_away_until > now;
        let node = &mut self.nodes[index];
        if node.renews_at > now {
            return;
        }
        node.renews_at = now + RENEWAL;
        let is_worker = self.only_worker.is_none_or(|name| name == node.name);
        if is_away || node.store_cut_until > now || !is_worker {
            return;
        }
        let (over, former): (Vec<_>, Vec<_>) =
            node.former.drain(..).partition(|(_, end)| *end <= now);
        node.former = former;
        for queue in self.queues.values_mut() {
            for (life, _) in &over {
                let holder = queue.holders.remove(&(node.cluster, life.clone()));
                queue.ready += holder.map_or(0, |holder| holder.tasks);
            }
            for (life, _) in &node.former {
                queue.renew(now, &(node.cluster, life.clone()));
            }
            let owner = (node.cluster, node.life.clone());
            queue.renew(now, &owner);
            queue.claim(now, &owner);
        }
    }

    /// Runs a node's releaser as its driver does.
    fn serve(&mut self, index: usize) {
        let now = self.instant();
        while let Some(order) = self.nodes[index].releaser.poll_order(now) {
            let is_lost = self
                .loss
                .is_some_and(|one_in| self.random.u64(0..one_in) == 0);
            let is_cut = self.nodes[index].store_cut_until > self.now;
            let is_away = is_cut || self.store_away_until > self.now;
            let delay = self.random.u64(1..40);
            // Of the lost calls, half were executed.
            let executes = !is_away && (!is_lost || self.random.bool());
            self.nodes[index].calls.push(Call {
                executes_at: executes.then_some(self.now + delay),
                replies_at: match is_lost || is_away {
                    true => self.now + CALL_TIMEOUT,
                    false => self.now + 2 * delay,
                },
                reply: None,
                order: order.clone(),
            });
            if matches!(order, Order::Release { .. }) {
                let key = (self.nodes[index].cluster, order);
                *self.releases.entry(key).or_default() += 1;
            }
        }
        if self.nodes[index].calls.is_empty() {
            return;
        }
        let mut calls = std::mem::take(&mut self.nodes[index].calls);
        for call in &mut calls {
            if call.executes_at.is_some_and(|at| at <= self.now) {
                call.executes_at = None;
                call.reply = Some(self.execute(index, &call.order));
            }
        }
        let (due, later): (Vec<_>, Vec<_>) = calls
            .into_iter()
            .partition(|call| call.replies_at <= self.now);
        let node = &mut self.nodes[index];
        node.calls = later;
        for Call { order, reply, .. } in due {
            match (&order, reply) {
                (Order::Release { .. }, Some(CallReply::Release(reply))) => {
                    node.releaser.handle_release(now, &order, reply);
                }
                (Order::Release { .. }, _) => {
                    node.releaser
                        .handle_release(now, &order, ReleaseReply::Failed);
                }
                (Order::Beat { .. }, _) => node.releaser.handle_beat(&order),
                (Order::List { .. }, Some(CallReply::Owners(owners))) => {
                    node.releaser.handle_owners(now, &order, Some(owners));
                }
                (Order::List { .. }, _) => node.releaser.handle_owners(now, &order, None),
            }
        }
    }

    /// A queue executes an order.
    fn execute(&mut self, index: usize, order: &Order) -> CallReply {
        let (Order::Release { queue, .. } | Order::Beat { queue } | Order::List { queue }) = order;
        let model = self.queues.get_mut(queue).expect("a queue");
        match order {
            Order::Release { life, cluster, .. } => {
                let owner = (self.nodes[index].cluster, life.clone());
                assert_eq!(*cluster, cluster_id(owner.0));
                let silent_for = self.nodes[index].releaser.rules.silent_for.as_millis() as Ms;
                let reply = model.release(self.now, &owner, silent_for);
                if matches!(reply, ReleaseReply::Released(1..)) && self.is_running(&owner) {
                    self.released_alive.push(owner);
                }
                CallReply::Release(reply)
            }
            Order::Beat { .. } => {
                model.beat(self.now, true);
                CallReply::Beaten
            }
            Order::List { .. } => {
                let owners = model.holders.keys().map(|(cluster, life)| ListedOwner {
                    cluster: cluster_id(*cluster),
                    node: life.clone(),
                });
                CallReply::Owners(owners.collect())
            }
        }
    }

    fn is_held(&self, owner: &OwnerKey) -> bool {
        self.queues
            .values()
            .any(|queue| queue.holders.contains_key(owner))
    }

    /// All that was ever ordered names a life of the cluster of the node that ordered it.
    fn check_clusters(&self, seed: u64) {
        for (cluster, order) in self.releases.keys() {
            if let Order::Release { life, .. } = order {
                let key = (*cluster, life.clone());
                assert!(
                    self.lives.contains(&key),
                    "seed {seed}: {cluster} ordered {order:?}"
                );
            }
        }
    }
}

/// Cuts all links, the store's included, of all nodes, and heals them one after the other.
fn cut_everything(world: &mut World, for_ms: Ms) {
    let healed = world.now + for_ms;
    world.store_away_until = healed;
    for index in 0..world.nodes.len() {
        let heals_at = healed + world.random.u64(0..1_000);
        world.nodes[index].store_cut_until = heals_at;
        let others = world.nodes[index].known.iter().cloned().collect::<Vec<_>>();
        let keeps_its_view = world.random.bool();
        for other in others {
            // Those on the same side of a partition agree on a death; others lose sight of each other.
            let cause = match world.random.bool() {
                true => Cause::Died,
                false => Cause::Forgotten,
            };
            let at = world.now + world.random.u64(DETECTION);
            let node = &mut world.nodes[index];
            node.learns
                .push((at, Learned::Departed(other.clone(), cause)));
            if cause == Cause::Forgotten {
                node.learns.push((heals_at + 100, Learned::Up(other)));
            }
        }
        if !keeps_its_view {
            let at = world.now + 4_000;
            world.nodes[index].learns.push((at, Learned::Joined(false)));
            let node = &mut world.nodes[index];
            node.learns.push((heals_at + 200, Learned::Joined(true)));
        }
    }
    world.run(for_ms);
    for index in 0..world.nodes.len() {
        if world.random.bool() {
            let at = world.now + 1_000;
            world.take_new_life(index, at);
        }
    }
}

#[test]
fn the_tasks_of_a_dead_life_are_released_within_six_seconds_by_few_calls() {
    let (mut most, mut calls, mut deaths) = (0, 0, 0);
    for seed in seeds() {
        let mut world = World::new(seed, 1, &["a", "b", "c", "d", "e", "f", "g"]);
        world.loss = Some(10);
        world.run(4_000);
        for _ in 0..6 {
            let killed = match world.random.u8(0..3) {
                0 => 2,
                _ => 1,
            };
            let restarts = world.random.bool();
            let mut names = Vec::new();
            for _ in 0..killed {
                let index = world.random.usize(0..world.nodes.len());
                names.push(world.kill(index));
            }
            if restarts {
                for (cluster, name) in names.drain(..) {
                    world.spawn(cluster, name);
                }
            }
            world.run(RELEASED_WITHIN);
            for (at, owner) in &world.deaths {
                let is_late = world.now - at >= RELEASED_WITHIN && world.is_held(owner);
                assert!(
                    !is_late,
                    "seed {seed}: {owner:?}, dead since {at}, is held at {}",
                    world.now
                );
            }
            for (cluster, name) in names {
                world.spawn(cluster, name);
            }
            let pause = world.random.u64(500..12_000);
            world.run(pause);
        }
        assert_eq!(world.released_alive, [], "seed {seed}");
        world.check_clusters(seed);
        most = most.max(world.releases.values().copied().max().unwrap_or_default());
        calls += world.releases.values().sum::<usize>();
        deaths += world.deaths.len() * QUEUES.len();
    }
    // Nodes of higher ranks find that nothing is left to do; most of them never ask.
    let average = calls as f64 / deaths as f64;
    println!("{average:.1} calls a life and queue, at most {most}");
    assert!(average < 10.0, "{average}");
    assert!(most <= 30, "{most}");
}

#[test]
fn a_hundred_nodes_ask_no_more_than_a_handful() {
    let names: Vec<&'static str> = (0..100)
        .map(|n| &*Box::leak(format!("n{n:02}").into_boxed_str()))
        .collect();
    let mut world = World::new(7, 1, &names);
    world.run(4_000);
    for _ in 0..3 {
        world.kill(50);
        world.run(RELEASED_WITHIN);
        for (at, owner) in &world.deaths {
            assert!(
                world.now - at < RELEASED_WITHIN || !world.is_held(owner),
                "{owner:?}"
            );
        }
    }
    world.run(60_000);
    let most = world.releases.values().max();
    assert!(most.is_some_and(|most| *most <= 12), "{most:?}");
}

/// Also shows that it is the queue's grace that holds it: without it, live workers are released.
#[test]
fn with_all_links_cut_for_twenty_seconds_no_live_worker_is_released() {
    let mut released_without_grace = 0;
    for seed in seeds() {
        for has_no_grace in [false, true] {
            let mut world = World::new(seed, 1, &["a", "b", "c", "d", "e"]);
            for queue in world.queues.values_mut() {
                queue.has_no_grace = has_no_grace;
            }
            world.run(5_000);
            cut_everything(&mut world, 20_000);
            world.run(60_000);
            match has_no_grace {
                false => assert_eq!(world.released_alive, [], "seed {seed}"),
                true => released_without_grace += world.released_alive.len(),
            }
        }
    }
    assert!(released_without_grace > 0);
}

/// Nodes that cannot hear each other declare each other dead while all of them reach the store. Also shows that it is the
/// silence that holds it.
#[test]
fn a_live_worker_that_renews_its_lease_is_never_released() {
    let mut released_without_silence = 0;
    for seed in seeds() {
        for ignores_silence in [false, true] {
            let mut world = World::new(seed, 1, &["a", "b", "c", "d", "e"]);
            world.loss = Some(10);
            for queue in world.queues.values_mut() {
                queue.ignores_silence = ignores_silence;
            }
            world.run(5_000);
            for _ in 0..4 {
                for index in 0..world.nodes.len() {
                    for other in world.nodes[index].known.clone() {
                        let at = world.now + world.random.u64(DETECTION);
                        let cause = match world.random.bool() {
                            true => Cause::Died,
                            false => Cause::Forgotten,
                        };
                        let node = &mut world.nodes[index];
                        node.learns.push((at, Learned::Departed(other, cause)));
                    }
                }
                world.run(10_000);
                for index in 0..world.nodes.len() {
                    let at = world.now;
                    world.take_new_life(index, at);
                }
                world.run(10_000);
            }
            match ignores_silence {
                false => assert_eq!(world.released_alive, [], "seed {seed}"),
                true => released_without_silence += world.released_alive.len(),
            }
        }
    }
    assert!(released_without_silence > 0);
}

/// Nobody but the node that dies uses the queues: its death must not look like an outage of the store.
#[test]
fn the_only_worker_of_a_quiet_queue_is_released_within_six_seconds_too() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    for seed in seeds() {
        let mut world = World::new(seed, 1, &NAMES);
        let index = world.random.usize(0..NAMES.len());
        world.only_worker = Some(NAMES[index]);
        world.run(20_000);
        world.kill(index);
        let (_, owner) = &world.deaths[0];
        assert!(world.is_held(owner), "seed {seed}");
        world.run(RELEASED_WITHIN);
        let (_, owner) = &world.deaths[0];
        assert!(!world.is_held(owner), "seed {seed}: {owner:?}");
    }
}

/// A member that was forgotten, cut off from the store for so long that a release would be taken, and came back.
#[test]
fn a_life_that_came_back_is_not_released() {
    for seed in seeds() {
        let mut world = World::new(seed, 1, &["a", "b", "c", "d"]);
        world.run(5_000);
        let away = world.random.usize(0..4);
        let life = world.nodes[away].life.clone();
        let back = world.now + world.random.u64(4_000..9_000);
        world.nodes[away].stalled_until = back;
        for index in (0..4).filter(|index| *index != away) {
            let at = world.now + world.random.u64(DETECTION);
            let node = &mut world.nodes[index];
            let forgotten = Learned::Departed(life.clone(), Cause::Forgotten);
            node.learns.push((at, forgotten));
            // A death is told while the node of rank 0 stands still, and then the life is a member again before the turn of
            // a later rank comes.
            if index != 0 && world.random.bool() {
                let died = Learned::Departed(life.clone(), Cause::Died);
                node.learns.push((at + 100, died));
                node.learns.push((at + 700, Learned::Up(life.clone())));
            } else {
                node.learns.push((back + 100, Learned::Up(life.clone())));
            }
        }
        // What is known after a minute has been compared too.
        world.run(130_000);
        if away == 0 {
            // The node of the first rank is the one that is away: rank 1 asks at once, as it should.
            continue;
        }
        assert_eq!(world.released_alive, [], "seed {seed}");
    }
}

#[test]
fn two_clusters_on_one_store_leave_each_other_alone() {
    for seed in seeds() {
        let mut world = World::new(seed, 2, &["a", "b", "c"]);
        world.run(5_000);
        // The second cluster stands still, for longer than the silence and shorter than a lease.
        let until = world.now + 12_000;
        for node in world.nodes.iter_mut().filter(|node| node.cluster == 1) {
            node.stalled_until = until;
        }
        for _ in 0..2 {
            let (cluster, name) = world.kill(1);
            assert_eq!(cluster, 0);
            world.run(RELEASED_WITHIN);
            for (_, owner) in &world.deaths {
                assert!(!world.is_held(owner), "seed {seed}: {owner:?}");
            }
            // A node that starts compares the owners with the members.
            world.spawn(cluster, name);
            let restarted = world.nodes.len() - 1;
            world.nodes.swap(1, restarted);
        }
        world.run(130_000);
        assert_eq!(world.released_alive, [], "seed {seed}");
        world.check_clusters(seed);
    }
}

#[test]
fn after_an_outage_of_the_store_the_dead_are_released_and_nothing_is_lost() {
    for seed in seeds() {
        let mut world = World::new(seed, 1, &["a", "b", "c", "d", "e"]);
        world.run(5_000);
        world.store_away_until = world.now + 40_000;
        world.run(2_000);
        let index = world.random.usize(0..5);
        world.kill(index);
        // Beyond the outage by a lease and the longest pause between attempts.
        world.run(38_000 + LEASE + 6_000);
        for (_, owner) in &world.deaths {
            assert!(!world.is_held(owner), "seed {seed}: {owner:?}");
        }
        assert_eq!(world.released_alive, [], "seed {seed}");
    }
}
