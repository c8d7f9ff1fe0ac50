//! Runs a scenario: plays its actions, sweeps each virtual second, and waits for the cluster to come together.

use std::fmt;
use std::time::Duration;

use kumi_cluster::core::{
    Authority, LocalNode, MemberMetadata, MembershipRuntime, MembershipRuntimeConfig,
    MembershipRuntimeState, NodeStatus, TimerInstant,
};
use kumi_cluster::sim::{
    Checker, Coverage, Promise, SimRng, Violation, World, WorldSpec, authority,
};

use crate::scenario::{Action, Scenario, Size};

const SECOND_US: u64 = 1_000_000;
/// How often a node that is kept out asks whether it still is, in case the notice was lost.
const ASKS_AGAIN: Duration = Duration::from_secs(60);

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) size: Size,
    pub(crate) nodes: usize,
    /// A hash of everything that happened.
    pub(crate) trace: u64,
    pub(crate) coverage: Coverage,
    /// How long it took to agree after the last trouble, in virtual microseconds.
    pub(crate) agreed_after_us: Option<u64>,
    pub(crate) violations: Vec<Violation>,
}

impl Report {
    /// A run that did not even end.
    pub(crate) fn panicked(seed: u64, size: Size) -> Report {
        let detail = String::from("a panic; its message is above");
        Report {
            seed,
            size,
            nodes: 0,
            trace: 0,
            coverage: Coverage::default(),
            agreed_after_us: None,
            violations: vec![Violation {
                at_us: 0,
                place: 0,
                promise: Promise::Progress,
                detail,
            }],
        }
    }

    pub(crate) fn passed(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            seed, size, nodes, ..
        } = self;
        writeln!(f, "seed {seed} ({size:?}, {nodes} nodes) failed:")?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        let size = format!("{size:?}").to_lowercase();
        write!(
            f,
            "replay: KUMI_SIM_SEED={seed} KUMI_SIM_SIZE={size} cargo test -p kumi-cluster --test simulation replay -- --nocapture"
        )
    }
}

/// How long a cluster may take to agree once all troubles have ended.
///
/// The slowest way back: a node that doubts itself (waiting times up to five times as long) takes that long to suspect
/// a member and declare it dead; a node that was alone starts afresh after half a `dead_timeout`; and a member that was given up is tried
/// once in several push-pulls.
pub(crate) fn agreement_limit(config: &MembershipRuntimeConfig, nodes: usize) -> Duration {
    let doubt =
        (config.acceptable_pause + config.heartbeat_interval * 4 + config.probe_timeout * 3) * 5;
    let rounds = 8 + nodes.ilog2();
    doubt
        + config.suspect_timeout * 2
        + config.dead_timeout / 2
        + config.push_pull_interval * rounds
        + config.gossip_interval * 10 * rounds
        + config.join_retry * 4
        + config.topology_emit_interval
}

/// Runs the scenario of a seed.
pub(crate) fn run(seed: u64, size: Size, verbose: bool) -> Report {
    let scenario = Scenario::of(seed, size);
    let mut stage = Stage::new(&scenario, size);
    if verbose {
        stage.world.watch().be_verbose();
        eprintln!(
            "{} nodes, rough {}, {:?}, {:?}",
            scenario.nodes, scenario.rough, scenario.profile, scenario.config
        );
    }
    for (at_us, action) in &scenario.actions {
        stage.run_until(*at_us);
        if stage.failed() {
            break;
        }
        if verbose {
            eprintln!("{:10.3} {action:?}", *at_us as f64 / 1e6);
        }
        stage.play(action);
    }
    stage.run_until(scenario.calm_at_us);
    let agreed_after_us = stage.wait_for_agreement(&scenario);
    stage.report(&scenario, size, agreed_after_us)
}

struct Stage {
    world: World<Checker>,
    rng: SimRng,
    nodes: usize,
    config: MembershipRuntimeConfig,
    next_sweep_us: u64,
    /// The place of a second process under somebody's address.
    twins: Vec<usize>,
    /// Whose quarantine is to be lifted as soon as somebody can.
    lift: Option<usize>,
}

impl Stage {
    fn new(scenario: &Scenario, size: Size) -> Stage {
        let spec = WorldSpec {
            // One more machine than there are nodes, for the observer.
            nodes: scenario.nodes + 1,
            config: scenario.config.clone(),
            profile: scenario.profile,
            metadata_bytes: if size == Size::Small { 16 } else { 64 },
            drift_ppm: scenario.drift_ppm,
            timer_slack_us: 2000,
            // Of every third run, so that both rules about later lives are checked.
            checks_identity: scenario.seed.is_multiple_of(3),
            seed: scenario.seed,
        };
        Stage {
            world: World::new(spec, Checker::new(&scenario.config, scenario.nodes)),
            rng: SimRng::new(scenario.seed ^ 0x57a6e),
            nodes: scenario.nodes,
            config: scenario.config.clone(),
            next_sweep_us: SECOND_US,
            twins: Vec::new(),
            lift: None,
        }
    }

    fn failed(&mut self) -> bool {
        !self.world.watch().violations().is_empty()
    }

    /// Goes on, with a sweep at each full second. Stops early once something is broken.
    fn run_until(&mut self, until_us: u64) {
        while self.next_sweep_us <= until_us {
            self.world.run_until(self.next_sweep_us);
            let at_us = self.next_sweep_us;
            let (hosts, checker) = self.world.sweep();
            checker.sweep(at_us, hosts);
            if self.failed() {
                return;
            }
            self.lift_if_possible();
            self.next_sweep_us += SECOND_US;
        }
        self.world.run_until(until_us);
    }

    /// Up to five others to ask. The very first node has none.
    fn seeds(&mut self, node: usize) -> Vec<Authority> {
        let mut others: Vec<usize> = (0..self.nodes).filter(|&other| other != node).collect();
        self.rng.shuffle(&mut others);
        others.into_iter().take(5).map(authority).collect()
    }

    /// Lifts a long quarantine at a member that knows of it. Who has crashed or left since has forgotten it, and a member
    /// that gets no time takes no orders; then it is tried again later.
    fn lift_if_possible(&mut self) {
        let Some(target) = self.lift else {
            return;
        };
        let at_us = self.world.now_us();
        let knows = |node: &usize| {
            let host = &self.world.hosts()[*node];
            let soon = host.now(at_us) + Duration::from_secs(3600);
            let orders = host.runtime().map(MembershipRuntime::quarantine_snapshot);
            orders.into_iter().flatten().any(|entry| {
                entry.authority == authority(target)
                    && entry.uid.is_none()
                    && entry.expires_at > soon
            })
        };
        let knowing: Vec<usize> = (0..self.nodes).filter(knows).collect();
        let able = knowing.iter().copied().find(|&node| {
            let host = &self.world.hosts()[node];
            let status = host.runtime().and_then(MembershipRuntime::status);
            node != target && !host.is_paused() && status == Some(NodeStatus::Up)
        });
        if let Some(node) = able {
            // The node that lifts it may crash before it has told another, so this goes on until the order is in force on no node.
            let _ = self.world.release(node, target);
        }
        if knowing.iter().all(|&node| !self.runs(node)) {
            self.lift = None;
            // A node that has missed it goes on giving the target up until it compares with another.
            let known_us = self.config.push_pull_interval.as_micros() as u64 * 6;
            self.world.watch().truth().calm(target, at_us + known_us);
        }
    }

    fn runs(&self, node: usize) -> bool {
        let runtime = self.world.hosts()[node].runtime();
        runtime.is_some_and(|runtime| runtime.state() == MembershipRuntimeState::Member)
    }

    fn play(&mut self, action: &Action) {
        let at_us = self.world.now_us();
        match *action {
            Action::Start(0) => self.world.start(0, &[]).expect("a fresh node starts"),
            Action::Start(node) => {
                // Before the first join there is only the first node to ask.
                let mut seeds = self.seeds(node);
                seeds.insert(0, authority(0));
                self.world.start(node, &seeds).expect("a fresh node starts");
            }
            Action::Crash(node) => {
                self.world.watch().truth().disturb(node);
                self.world.crash(node);
            }
            Action::Restart {
                node,
                keep_uid,
                wall_error_ms,
            } => {
                let seeds = self.seeds(node);
                self.world.set_wall_error(node, wall_error_ms);
                self.world
                    .restart(node, &seeds, keep_uid)
                    .expect("a restarted node starts");
                self.world.watch().truth().calm(node, at_us);
            }
            Action::Pause { node, long } => {
                if long {
                    self.world.watch().truth().disturb(node);
                }
                self.world.pause(node);
            }
            Action::Resume { node, long } => {
                self.world.resume(node);
                if long {
                    self.world.watch().truth().calm(node, at_us);
                }
            }
            Action::Jump { node, by_us } => {
                // Whatever the jump, it is over at once; what it does to the node is forgotten like a pause.
                self.world.watch().truth().disturb(node);
                self.world
                    .watch()
                    .truth()
                    .calm(node, at_us + by_us.unsigned_abs());
                self.world
                    .watch()
                    .restless(node, at_us + by_us.unsigned_abs());
                if by_us < 0 {
                    let back_us = by_us.unsigned_abs();
                    self.world.watch().clock_set_back(node, back_us);
                }
                self.world.jump_clock(node, by_us);
            }
            Action::Leave(node) => {
                self.world.watch().truth().disturb(node);
                // It may not have joined yet, or have left already; then there is nothing to leave.
                if self.world.leave(node).is_ok() {
                    self.world.watch().truth().leaves(node);
                }
            }
            Action::Partition(ref groups) => {
                self.world.watch().truth().upheaval();
                for (node, &group) in groups.iter().enumerate() {
                    self.world.network().set_group(node, group);
                }
            }
            Action::PartitionEnds => {
                for node in 0..self.nodes {
                    self.world.network().set_group(node, 0);
                }
                self.world.watch().truth().upheaval_over(at_us);
            }
            Action::PlaceLoss {
                node,
                loss_in,
                loss_out,
            } => {
                self.world.watch().truth().disturb(node);
                self.world.network().set_place_loss(node, loss_in, loss_out);
            }
            Action::PlaceLossEnds(node) => {
                self.world.network().set_place_loss(node, 0.0, 0.0);
                self.world.watch().truth().calm(node, at_us);
            }
            Action::CutLink { from, to } => {
                // The receiver becomes one more monitor that loses messages.
                self.world.watch().truth().disturb(to);
                self.world.network().set_link_loss(from, to, 1.0);
            }
            Action::MendLink { from, to } => {
                self.world.network().set_link_loss(from, to, 0.0);
                self.world.watch().truth().calm(to, at_us);
            }
            Action::Quarantine { by, target, ttl } => {
                self.world.watch().truth().disturb(target);
                self.world.watch().truth().quarantines(target);
                // The operator's node may be down or no member; then nothing happens.
                let _ = self.world.quarantine(by, target, ttl);
            }
            Action::Release { by, target } => {
                let _ = self.world.release(by, target);
            }
            Action::QuarantineOver(target) => {
                // Clocks differ, and so do the moments at which nodes forget the order.
                self.world.watch().truth().calm(target, at_us + SECOND_US);
            }
            Action::Lift(target) => {
                self.lift = Some(target);
                self.lift_if_possible();
            }
            Action::Observe => {
                let mut seeds = self.seeds(self.nodes);
                seeds.insert(0, authority(0));
                self.world
                    .start_client(self.nodes, &seeds)
                    .expect("a fresh node starts");
            }
            Action::Twin(node) => {
                self.world.watch().contest(node);
                self.world.watch().truth().disturb(node);
                let twin = self.world.add_twin(node);
                self.twins.push(twin);
                let seeds = self.seeds(node);
                self.world.start(twin, &seeds).expect("a fresh node starts");
            }
            Action::TwinEnds => {
                if let Some(twin) = self.twins.pop() {
                    self.world.crash(twin);
                }
            }
            Action::Foreign { to } => {
                for (from, bytes) in foreign_messages(&self.config, to) {
                    self.world.inject(to, from.clone(), &bytes);
                    self.world.inject(to, from, &bytes);
                }
            }
            Action::Garbage { to } => self.throw_garbage(to),
        }
    }

    /// Bytes at random, and a message of another cluster with a few bytes changed or cut off.
    fn throw_garbage(&mut self, to: usize) {
        let from = Authority::new("garbage:1").expect("printable");
        for _ in 0..20 {
            let noise: Vec<u8> = (0..self.rng.below(200))
                .map(|_| self.rng.word() as u8)
                .collect();
            self.world.inject(to, from.clone(), &noise);
            for (_, mut bytes) in foreign_messages(&self.config, to) {
                let at = self.rng.index(bytes.len());
                bytes[at] ^= 1 << self.rng.below(8);
                if self.rng.chance(0.5) {
                    bytes.truncate(self.rng.index(bytes.len()));
                }
                self.world.inject(to, from.clone(), &bytes);
            }
        }
    }

    /// Waits until all nodes that run agree for two seconds on end.
    fn wait_for_agreement(&mut self, scenario: &Scenario) -> Option<u64> {
        let mut limit = agreement_limit(&scenario.config, scenario.nodes);
        if scenario.lifts_a_quarantine() {
            limit += ASKS_AGAIN * 2;
        }
        let limit_us = limit.as_micros() as u64;
        let mut agreed = 0;
        let mut reason = String::new();
        loop {
            let at_us = self.world.now_us();
            if self.failed() {
                return None;
            }
            match self.disagreement() {
                None => agreed += 1,
                Some(text) => (agreed, reason) = (0, text),
            }
            if agreed > 2 {
                return Some(at_us - scenario.calm_at_us);
            }
            if at_us > scenario.calm_at_us + limit_us {
                let detail = format!("after {} s: {reason}", limit_us / SECOND_US);
                self.world
                    .watch()
                    .broken(at_us, 0, Promise::Convergence, detail);
                return None;
            }
            self.run_until(at_us + SECOND_US);
        }
    }

    /// Why the nodes do not agree, if they do not.
    fn disagreement(&self) -> Option<String> {
        let hosts = self.world.hosts();
        let running: Vec<usize> = (0..self.nodes).filter(|&node| self.runs(node)).collect();
        let first = *running.first()?;
        let mut hash = None;
        for &node in &running {
            let runtime = hosts[node].runtime()?;
            if runtime.status() != Some(NodeStatus::Up) {
                return Some(format!("n{node} is {:?}", runtime.status()));
            }
            let own = runtime.topology_hash();
            if *hash.get_or_insert(own) != own {
                return Some(format!("n{node} and n{first} differ"));
            }
        }
        let members = hosts[first].runtime()?.snapshot().members;
        let seen: Vec<_> = members
            .iter()
            .map(|member| (member.identity(), member.status))
            .collect();
        let mut expected: Vec<_> = running
            .iter()
            .filter_map(|&node| hosts[node].runtime())
            .map(|runtime| (runtime.identity(), NodeStatus::Up))
            .collect();
        expected.sort();
        if seen != expected {
            return Some(format!("all hold {seen:?}, but {expected:?} run"));
        }
        // Whom only a peer that has ended since suspected stays a suspect there: no other node knows what to refute. Who is
        // a member is another matter.
        let observer = hosts[self.nodes].runtime()?;
        let members = observer.snapshot().members;
        let watched: Vec<_> = members.iter().map(|member| member.identity()).collect();
        let expected: Vec<_> = expected.into_iter().map(|(identity, _)| identity).collect();
        (watched != expected).then(|| format!("the observer sees {watched:?}"))
    }

    fn report(mut self, scenario: &Scenario, size: Size, agreed_after_us: Option<u64>) -> Report {
        let trace = self.world.trace();
        let (hosts, checker) = self.world.sweep();
        checker.finish(hosts);
        Report {
            seed: scenario.seed,
            size,
            nodes: scenario.nodes,
            trace,
            coverage: *checker.coverage(),
            agreed_after_us,
            violations: checker.violations().to_vec(),
        }
    }
}

/// What a node of another cluster sends when it wants to join here.
fn foreign_messages(config: &MembershipRuntimeConfig, to: usize) -> Vec<(Authority, Vec<u8>)> {
    let mut config = config.clone();
    config.cluster_name = "another".into();
    let from = Authority::new("stranger:1").expect("printable");
    let local = LocalNode {
        authority: from.clone(),
        metadata: MemberMetadata::EMPTY,
        unix_ms: 1_700_000_000_000,
        uid: None,
    };
    let now = TimerInstant::from_millis(1000);
    let mut runtime =
        MembershipRuntime::new(config, local, 1, now).expect("the configuration is valid");
    runtime
        .start_member(&[authority(to)], now)
        .expect("it has not started yet");
    let outcome = runtime.poll(now + Duration::from_secs(1));
    let sent = outcome.gossip_outbound.into_iter();
    sent.map(|outbound| (from.clone(), outbound.bytes.to_vec()))
        .collect()
}
