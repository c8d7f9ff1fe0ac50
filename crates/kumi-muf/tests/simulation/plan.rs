//! What goes wrong in a run, drawn from its seed, and a tally of what really did.

use std::collections::BTreeMap;

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A unit's command connection breaks; what is on its way may run or not.
    BreakLink(usize),
    /// A unit's push connection breaks.
    BreakPushes(usize),
    /// A unit stops for a while, and sees everything late.
    Pause(usize, u64),
    /// A unit dies, and perhaps comes back with an empty head.
    Die(usize, Option<u64>),
    /// The server saves what it has.
    Save,
    /// The server goes away and comes back, perhaps with what it saved last.
    Restart { down_ms: u64, loses: bool },
    /// The server forgets what it has not saved, and no connection breaks.
    LoseWrites,
}

impl Fault {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::BreakLink(_) => "broken command connection",
            Fault::BreakPushes(_) => "broken push connection",
            Fault::Pause(..) => "pause",
            Fault::Die(..) => "death",
            Fault::Save => "save",
            Fault::Restart { .. } => "restart",
            Fault::LoseWrites => "silently lost writes",
        }
    }
}

/// A fault at the n-th output of one unit, just before or just after it is carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) unit: usize,
    pub(crate) step: u64,
    pub(crate) after: bool,
    pub(crate) fault: Fault,
}

/// How hostile a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Pushes are lost, doubled and late; nothing else goes wrong.
    Calm,
    /// One backend dies or pauses at one exact step.
    Aimed,
    /// The server forgets and restarts; programs and pushes are well.
    Amnesia,
    /// Everything at once.
    Storm,
}

const WEATHERS: [Weather; 4] = [
    Weather::Calm,
    Weather::Aimed,
    Weather::Amnesia,
    Weather::Storm,
];

/// A run, decided by its seed.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) weather: Weather,
    pub(crate) frontends: usize,
    pub(crate) backends: usize,
    pub(crate) calls: usize,
    /// Handlers at a time per backend.
    pub(crate) places: usize,
    /// Of 256.
    pub(crate) push_loss: u8,
    /// Of 256.
    pub(crate) push_copies: u8,
    pub(crate) late_push_ms: u64,
    pub(crate) latency_ms: u64,
    /// All values are large, and each takes up to this long on the link for them, one after the other.
    pub(crate) bulk_ms: Option<u64>,
    pub(crate) aim: Option<Aim>,
    pub(crate) faults: Vec<(u64, Fault)>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x6b75_6d69);
        let weather = WEATHERS[(seed % 4) as usize];
        let (frontends, backends) = (rng.usize(1..=2), rng.usize(1..=3));
        let mut plan = Self {
            seed,
            weather,
            frontends,
            backends,
            calls: rng.usize(2..=8),
            // Few enough that requests have to wait.
            places: 2,
            push_loss: if rng.bool() { 0 } else { rng.u8(..100) },
            push_copies: if rng.bool() { 0 } else { rng.u8(..100) },
            late_push_ms: 300,
            latency_ms: 30,
            bulk_ms: None,
            aim: None,
            faults: Vec::new(),
        };
        if (seed / 4).is_multiple_of(3) {
            plan.bulk_ms = Some(rng.u64(..=1_200));
        }
        match weather {
            Weather::Calm => {}
            Weather::Aimed => {
                let unit = frontends + rng.usize(..backends);
                let fault = match rng.bool() {
                    true => Fault::Die(unit, rng.bool().then(|| rng.u64(10..5_000))),
                    false => Fault::Pause(unit, rng.u64(10..7_000)),
                };
                plan.aim = Some(Aim {
                    unit,
                    step: 1 + (seed / 4) % 60,
                    after: rng.bool(),
                    fault,
                });
            }
            Weather::Amnesia => {
                plan.places = 8;
                plan.push_loss = 0;
                for _ in 0..rng.usize(1..4) {
                    let (loses, down_ms) = (rng.u8(..4) > 0, rng.u64(10..1_000));
                    let fault = match rng.u8(..4) {
                        0 => Fault::Save,
                        1 => Fault::LoseWrites,
                        _ => Fault::Restart { down_ms, loses },
                    };
                    plan.faults.push((rng.u64(..5_000), fault));
                }
            }
            Weather::Storm => {
                plan.latency_ms = [30, 30, 1_000, 4_000][rng.usize(..4)];
                plan.late_push_ms = 4_000;
                let units = frontends + backends;
                for _ in 0..rng.usize(1..10) {
                    let fault = match rng.u8(..16) {
                        0..4 => Fault::BreakLink(rng.usize(..units)),
                        4..7 => Fault::BreakPushes(rng.usize(..units)),
                        7..9 => Fault::Pause(rng.usize(..units), rng.u64(10..7_000)),
                        9..12 => {
                            Fault::Die(frontends + rng.usize(..backends), Some(rng.u64(10..9_000)))
                        }
                        12 => Fault::Save,
                        13 => Fault::LoseWrites,
                        _ => {
                            let down_ms = if rng.u8(..8) == 0 {
                                25_000
                            } else {
                                rng.u64(10..4_000)
                            };
                            Fault::Restart {
                                down_ms,
                                loses: rng.bool(),
                            }
                        }
                    };
                    plan.faults.push((rng.u64(..8_000), fault));
                }
            }
        }
        plan
    }
}

/// How often each thing happened.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) commands: u64,
}

impl Tally {
    pub(crate) fn bump(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        *self.counts.entry(name).or_default() += count;
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        for (name, count) in &other.counts {
            self.add(name, *count);
        }
        self.commands += other.commands;
    }
}
