//! What goes wrong, when, and for whom: drawn from a seed, written down before the run begins.
//!
//! Gentle scenarios have one trouble at a time, on a network that is bad all the time; in them hardly any death is
//! excused. Rough ones have many at once, partitions among them. Everything ends before the scenario does, so that the
//! cluster has to come together again.

use std::time::Duration;

use kumi_cluster::core::MembershipRuntimeConfig;
use kumi_cluster::sim::{LinkProfile, SimRng};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A node starts for the first time.
    Start(usize),
    /// A process ends without a word.
    Crash(usize),
    /// A process comes back, with the uid it had or a new one, perhaps with a wall clock that is wrong.
    Restart {
        node: usize,
        keep_uid: bool,
        wall_error_ms: i64,
    },
    /// A process gets no time until it is resumed; long means longer than is forgiven.
    Pause {
        node: usize,
        long: bool,
    },
    Resume {
        node: usize,
        long: bool,
    },
    /// A clock moves.
    Jump {
        node: usize,
        by_us: i64,
    },
    /// A node leaves by its own will.
    Leave(usize),
    /// The nodes fall into groups that do not hear each other.
    Partition(Vec<u32>),
    PartitionEnds,
    /// Everything to and from a node is lost that often.
    PlaceLoss {
        node: usize,
        loss_in: f64,
        loss_out: f64,
    },
    PlaceLossEnds(usize),
    /// One direction of one link is cut.
    CutLink {
        from: usize,
        to: usize,
    },
    MendLink {
        from: usize,
        to: usize,
    },
    /// An operator at `by` keeps `target` out for a while.
    Quarantine {
        by: usize,
        target: usize,
        ttl: Duration,
    },
    Release {
        by: usize,
        target: usize,
    },
    QuarantineOver(usize),
    /// An operator lifts a quarantine that has long to go yet, as soon as there is a member that knows of it.
    Lift(usize),
    /// Somebody begins to watch the cluster without being a member.
    Observe,
    /// A second process appears under the address of a node, and is gone again.
    Twin(usize),
    TwinEnds,
    /// Something arrives that no member sent.
    Foreign {
        to: usize,
    },
    Garbage {
        to: usize,
    },
}

/// A world and what happens in it.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) rough: bool,
    pub(crate) config: MembershipRuntimeConfig,
    pub(crate) profile: LinkProfile,
    pub(crate) drift_ppm: u64,
    pub(crate) actions: Vec<(u64, Action)>,
    /// When every trouble has ended.
    pub(crate) calm_at_us: u64,
}

/// How large scenarios are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// 3 to 50 nodes.
    Small,
    /// 1,000 nodes.
    Large,
}

impl Scenario {
    /// The scenario of a seed.
    pub(crate) fn of(seed: u64, size: Size) -> Scenario {
        let mut rng = SimRng::new(seed ^ 0x5ce7_a510);
        let nodes = match size {
            // The product leans towards small clusters, where a quorum is easily lost.
            Size::Small => 3 + (48.0 * rng.fraction() * rng.fraction()) as usize,
            Size::Large => 1000,
        };
        let config = config(nodes, size, &mut rng);
        let profile = profile(&mut rng);
        let mut plan = Plan {
            rough: rng.chance(0.5),
            patience_us: patience_us(&config),
            pause_us: config.acceptable_pause.as_micros() as u64,
            actions: Vec::new(),
            gone: vec![false; nodes],
            lifted: false,
            nodes,
            rng,
        };
        plan.starts(size);
        if size == Size::Small && plan.rng.chance(0.3) {
            let at_us = plan.rng.between(1, 12) * SECOND_US;
            plan.at(at_us, Action::Observe);
        }
        let calm_at_us = match (size, plan.rough) {
            (Size::Large, _) => plan.large(),
            (_, true) => plan.rough(),
            (_, false) => plan.gentle(),
        };
        plan.actions.sort_by_key(|&(at_us, _)| at_us);
        Scenario {
            seed,
            nodes,
            rough: plan.rough,
            config,
            profile,
            drift_ppm: plan.rng.pick(&[0, 100, 5000]).unwrap_or(0),
            actions: plan.actions,
            calm_at_us,
        }
    }
}

impl Scenario {
    /// Whether a node is kept out for a day unless somebody lifts that.
    pub(crate) fn lifts_a_quarantine(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|(_, action)| matches!(action, Action::Lift(_)))
    }
}

/// How long it takes from a silence to a death, roughly.
fn patience_us(config: &MembershipRuntimeConfig) -> u64 {
    let patience = config.suspect_timeout + config.acceptable_pause + config.heartbeat_interval * 2;
    patience.as_micros() as u64
}

fn config(nodes: usize, size: Size, rng: &mut SimRng) -> MembershipRuntimeConfig {
    let mut config = match (size, rng.below(4)) {
        (Size::Large, _) | (_, 0) => MembershipRuntimeConfig::lan(nodes),
        _ => MembershipRuntimeConfig::local(),
    };
    if size == Size::Small && rng.chance(0.5) {
        // Short enough to see tombstones collected within a run.
        config.dead_timeout = config.suspect_timeout * 4;
        config.quarantine_ttl = config.suspect_timeout * 4;
    }
    if size == Size::Small && rng.chance(0.2) {
        config.fanout = rng.between(1, 5) as usize;
        config.monitors = rng.between(3, 9) as usize;
    }
    config
}

fn profile(rng: &mut SimRng) -> LinkProfile {
    let jitter_us = rng.pick(&[500, 5_000, 40_000]).unwrap_or(0);
    LinkProfile {
        latency_us: rng.between(100, 20_000),
        jitter_us,
        loss: rng.pick(&[0.0, 0.01, 0.05, 0.1]).unwrap_or(0.0),
        duplicate: rng.pick(&[0.0, 0.02, 0.2]).unwrap_or(0.0),
        reorder: rng.pick(&[0.0, 0.05, 0.3]).unwrap_or(0.0),
        hold_us: rng.between(0, 150_000),
    }
}

struct Plan {
    rng: SimRng,
    nodes: usize,
    rough: bool,
    /// From a silence to a death.
    patience_us: u64,
    /// What is forgiven.
    pause_us: u64,
    actions: Vec<(u64, Action)>,
    /// Nodes that something irrevocable was planned for; nothing else is.
    gone: Vec<bool>,
    /// A long quarantine is part of it already. One is enough: two operators that contradict each other in a partition
    /// are both right.
    lifted: bool,
}

const SECOND_US: u64 = 1_000_000;
/// Longer than any run.
const LONG_QUARANTINE: Duration = Duration::from_secs(24 * 3600);

impl Plan {
    fn at(&mut self, at_us: u64, action: Action) {
        self.actions.push((at_us, action));
    }

    /// The first node alone, most others within seconds, a few late ones.
    fn starts(&mut self, size: Size) {
        self.at(0, Action::Start(0));
        let storm_us = if size == Size::Large {
            1_000_000
        } else {
            self.rng.between(1, 3_000_000)
        };
        for node in 1..self.nodes {
            let late = size == Size::Small && node > 2 && self.rng.chance(0.1);
            let at_us = match late {
                true => self.rng.between(6, 20) * SECOND_US,
                false => self.rng.between(1, storm_us),
            };
            if late {
                self.gone[node] = true;
            }
            self.at(at_us, Action::Start(node));
        }
    }

    /// One trouble after another, each given the time to be forgotten.
    fn gentle(&mut self) -> u64 {
        let mut at_us = 8 * SECOND_US;
        for _ in 0..self.rng.between(1, 3) {
            let node = self.free_node();
            let lasts_us = self.rng.between(self.patience_us / 4, self.patience_us * 2);
            let end_us = self.trouble(node, at_us, lasts_us);
            at_us = end_us + self.patience_us * 2;
        }
        at_us
    }

    /// Many troubles at once.
    fn rough(&mut self) -> u64 {
        let begin_us = 6 * SECOND_US;
        let span_us = self.rng.between(self.patience_us * 2, self.patience_us * 6);
        let end_us = begin_us + span_us;
        if self.rng.chance(0.6) {
            let from_us = self.rng.between(begin_us, end_us - span_us / 3);
            let to_us = self.rng.between(from_us + span_us / 8, end_us);
            let groups = self.groups();
            self.at(from_us, Action::Partition(groups));
            self.at(to_us, Action::PartitionEnds);
        }
        let mut last_us = end_us;
        for _ in 0..self.rng.between(1, 2 + self.nodes as u64 / 4) {
            let node = self.free_node();
            let at_us = self.rng.between(begin_us, end_us);
            let lasts_us = self.rng.between(self.patience_us / 8, self.patience_us * 2);
            last_us = last_us.max(self.trouble(node, at_us, lasts_us));
        }
        last_us
    }

    /// A thousand nodes: crashes, restarts and pauses of a few, and one that receives or sends nothing.
    fn large(&mut self) -> u64 {
        self.rough = false;
        let begin_us = 8 * SECOND_US;
        let end_us = begin_us + self.patience_us;
        for kind in [0, 1, 2, 3, 5] {
            let node = self.free_node();
            let lasts_us = self.rng.between(self.pause_us, self.patience_us);
            let at_us = self.rng.between(begin_us, begin_us + SECOND_US);
            self.trouble_of(kind, node, at_us, lasts_us);
        }
        end_us + self.patience_us
    }

    fn groups(&mut self) -> Vec<u32> {
        let sides = self.rng.between(2, 3);
        let uneven = self.rng.chance(0.3);
        let mut groups = Vec::with_capacity(self.nodes);
        for _ in 0..self.nodes {
            let minority = uneven && !self.rng.chance(0.15);
            groups.push(if minority {
                0
            } else {
                self.rng.below(sides) as u32
            });
        }
        groups
    }

    /// A node for which nothing irrevocable was planned; the first one if there is none.
    fn free_node(&mut self) -> usize {
        let free: Vec<usize> = (0..self.nodes).filter(|&node| !self.gone[node]).collect();
        self.rng.pick(&free).unwrap_or(0)
    }

    fn trouble(&mut self, node: usize, at_us: u64, lasts_us: u64) -> u64 {
        let kind = self.rng.below(16);
        self.trouble_of(kind, node, at_us, lasts_us)
    }

    /// Plans one trouble, and says when it is over.
    fn trouble_of(&mut self, kind: u64, node: usize, at_us: u64, lasts_us: u64) -> u64 {
        let end_us = at_us + lasts_us;
        let other = (node + 1 + self.rng.index(self.nodes - 1)) % self.nodes;
        let wall_error_ms = self.rng.pick(&[0, 0, -3_600_000, 60_000, -50]).unwrap_or(0);
        match kind {
            // Gone for good, but never so many that no member is left to join.
            0 if self.gone.iter().filter(|gone| **gone).count() * 3 < self.nodes && node > 0 => {
                self.gone[node] = true;
                self.at(at_us, Action::Crash(node));
            }
            0 | 1 => {
                self.at(at_us, Action::Crash(node));
                self.at(
                    end_us,
                    Action::Restart {
                        node,
                        keep_uid: false,
                        wall_error_ms,
                    },
                );
            }
            2 => {
                self.at(at_us, Action::Crash(node));
                self.at(
                    end_us,
                    Action::Restart {
                        node,
                        keep_uid: true,
                        wall_error_ms,
                    },
                );
            }
            3 => {
                self.at(at_us, Action::Pause { node, long: true });
                self.at(end_us, Action::Resume { node, long: true });
            }
            4 => {
                let end_us = at_us + self.rng.between(1, self.pause_us * 3 / 4);
                self.at(at_us, Action::Pause { node, long: false });
                self.at(end_us, Action::Resume { node, long: false });
                return end_us;
            }
            5 | 6 => {
                let (loss_in, loss_out) = self
                    .rng
                    .pick(&[(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.7, 0.7)])
                    .unwrap_or_default();
                self.at(
                    at_us,
                    Action::PlaceLoss {
                        node,
                        loss_in,
                        loss_out,
                    },
                );
                self.at(end_us, Action::PlaceLossEnds(node));
            }
            7 => {
                self.at(
                    at_us,
                    Action::CutLink {
                        from: node,
                        to: other,
                    },
                );
                self.at(
                    end_us,
                    Action::MendLink {
                        from: node,
                        to: other,
                    },
                );
            }
            8 => {
                let forward = self.rng.chance(0.6);
                let by_us = self.rng.between(1, self.patience_us * 2) as i64;
                self.at(
                    at_us,
                    Action::Jump {
                        node,
                        by_us: if forward { by_us } else { -by_us / 8 },
                    },
                );
                return at_us;
            }
            9 => {
                self.at(at_us, Action::Leave(node));
                self.at(
                    end_us + 6 * SECOND_US,
                    Action::Restart {
                        node,
                        keep_uid: false,
                        wall_error_ms,
                    },
                );
                return end_us + 6 * SECOND_US;
            }
            10 => {
                let ttl = Duration::from_micros(lasts_us);
                self.at(
                    at_us,
                    Action::Quarantine {
                        by: other,
                        target: node,
                        ttl,
                    },
                );
                if self.rng.chance(0.4) {
                    self.at(
                        at_us + lasts_us / 2,
                        Action::Release {
                            by: other,
                            target: node,
                        },
                    );
                }
                self.at(end_us, Action::QuarantineOver(node));
            }
            11 => {
                self.at(at_us, Action::Twin(node));
                self.at(end_us, Action::TwinEnds);
                self.gone[node] = true;
            }
            12 => self.at(at_us, Action::Foreign { to: node }),
            // Gone for so long that it is suspected, back, and then gone for good.
            13 if node > 0 && self.gone.iter().filter(|gone| **gone).count() * 3 < self.nodes => {
                self.gone[node] = true;
                let back_us = at_us + self.patience_us / 2 + self.rng.below(self.patience_us / 4);
                let end_us = back_us + self.rng.below(2 * self.pause_us);
                self.at(at_us, Action::Pause { node, long: true });
                self.at(back_us, Action::Resume { node, long: true });
                self.at(end_us, Action::Crash(node));
                return end_us;
            }
            14 if !self.lifted => {
                self.lifted = true;
                let ttl = LONG_QUARANTINE;
                let by = other;
                self.at(
                    at_us,
                    Action::Quarantine {
                        by,
                        target: node,
                        ttl,
                    },
                );
                self.at(end_us, Action::Lift(node));
            }
            _ => self.at(at_us, Action::Garbage { to: node }),
        }
        end_us
    }
}
