//! The world of one simulated run: a model server, units with a real core each, a network between them, and faults.
//!
//! Everything that happens is an event at a virtual time, drawn from one seeded generator; the same seed is the same
//! run. Commands of one connection keep their order, so do pushes of one connection; between connections anything goes.

mod faults;
mod network;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use bytes::Bytes;
use kumi_muf::core::{
    CallError, CallId, CallSpec, Core, GatherId, GatherSpec, Gathered, JobId, Lost, Op, Outcome,
    Output, Pattern, Reply, RequestId, SearchStep, SearchToken, Settings, Target, Time, UnitName,
    ulid,
};

use crate::plan::{Fault, Plan, Tally};
use crate::server::Server;

#[derive(Debug)]
enum Event {
    Execute {
        unit: usize,
        link: u32,
        op: u64,
        index: usize,
    },
    Reply {
        unit: usize,
        op: u64,
        lost: bool,
    },
    Push {
        unit: usize,
        subscription: u32,
        key: String,
    },
    Search {
        unit: usize,
        link: u32,
        token: SearchToken,
        pattern: String,
    },
    Found {
        unit: usize,
        life: u32,
        token: SearchToken,
        keys: Vec<String>,
        step: SearchStep,
    },
    Finished {
        unit: usize,
        life: u32,
        job: JobId,
        outcome: Outcome,
    },
    Wake {
        unit: usize,
    },
    Subscribe {
        unit: usize,
    },
    Resume {
        unit: usize,
    },
    Revive {
        unit: usize,
    },
    Call {
        unit: usize,
    },
    Fault(Fault),
    ServerUp {
        loses: bool,
    },
}

struct Flight {
    unit: usize,
    life: u32,
    op: Op,
    replies: Vec<Reply>,
}

/// A program: a core and its connections.
pub(crate) struct Unit {
    name: UnitName,
    core: Core,
    is_backend: bool,
    alive: bool,
    /// Counts deaths: what was on its way to an earlier life is not delivered.
    life: u32,
    paused: Option<Vec<Event>>,
    link: u32,
    link_free_at: u64,
    /// When the link for large values has carried what is on it, to the server and back.
    bulk_up_free_at: u64,
    bulk_down_free_at: u64,
    subscription: u32,
    subscribed: bool,
    push_free_at: u64,
    watches_answers: bool,
    wake_at: Option<u64>,
    /// Outputs seen so far; faults are aimed at them.
    steps: u64,
}

/// How a handler run went, as the world saw it.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "shown when a guarantee is broken")]
pub(crate) struct Run {
    pub(crate) at: u64,
    pub(crate) unit: usize,
    pub(crate) attempt: u32,
}

/// One call, and all that was delivered for it.
pub(crate) struct Caller {
    pub(crate) request: String,
    pub(crate) payload: Bytes,
    pub(crate) cancelled: bool,
    pub(crate) began: u64,
    pub(crate) deadline: u64,
    pub(crate) results: Vec<(u64, Result<Bytes, CallError>)>,
}

/// What one gather was told: answers, and ends.
pub(crate) type Heard = (Vec<Gathered>, Vec<Result<(), CallError>>);

/// Everything there is in one run.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: u64,
    pub(crate) server: Server,
    pub(crate) units: Vec<Unit>,
    pub(crate) callers: BTreeMap<(usize, CallId), Caller>,
    pub(crate) gathers: BTreeMap<(usize, GatherId), Heard>,
    pub(crate) runs: HashMap<String, Vec<Run>>,
    pub(crate) tally: Tally,
    /// What a unit did that it must never do.
    pub(crate) violations: Vec<String>,
    rng: fastrand::Rng,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    bodies: HashMap<u64, Event>,
    flights: HashMap<u64, Flight>,
    /// Pushes of each key that each unit has missed.
    lost_pushes: HashMap<(usize, String), u32>,
    next: u64,
}

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut world = Self {
            now: 1_000,
            server: Server::new(),
            units: Vec::new(),
            callers: BTreeMap::new(),
            gathers: BTreeMap::new(),
            runs: HashMap::new(),
            tally: Tally::default(),
            violations: Vec::new(),
            rng: fastrand::Rng::with_seed(plan.seed),
            events: BinaryHeap::new(),
            bodies: HashMap::new(),
            flights: HashMap::new(),
            lost_pushes: HashMap::new(),
            next: 0,
            plan,
        };
        for index in 0..world.plan.frontends + world.plan.backends {
            let is_backend = index >= world.plan.frontends;
            let name = UnitName::new(&format!(
                "{}{index}",
                if is_backend { "back" } else { "web" }
            ))
            .expect("a name");
            let settings = settings(&world.plan);
            let core = Core::new(name.clone(), "0", settings, world.rng.fork());
            world.units.push(Unit {
                name,
                core,
                is_backend,
                alive: true,
                life: 0,
                paused: None,
                link: 0,
                link_free_at: 0,
                bulk_up_free_at: 0,
                bulk_down_free_at: 0,
                subscription: 0,
                subscribed: false,
                push_free_at: 0,
                watches_answers: false,
                wake_at: None,
                steps: 0,
            });
            if is_backend {
                world.units[index]
                    .core
                    .serve(Pattern::All, world.plan.places, Time(world.now));
            }
            let at = world.now + world.rng.u64(..200);
            world.at(at, Event::Subscribe { unit: index });
        }
        for _ in 0..world.plan.calls {
            let (unit, at) = (
                world.rng.usize(..world.plan.frontends),
                world.now + world.rng.u64(..4_000),
            );
            world.at(at, Event::Call { unit });
        }
        for (at, fault) in world.plan.faults.clone() {
            world.at(world.now + at, Event::Fault(fault));
        }
        world
    }

    /// Runs until `until`, or until nothing is left to happen.
    pub(crate) fn run(&mut self, until: u64) {
        while let Some(Reverse((at, number))) = self.events.pop() {
            if at > until {
                self.events.push(Reverse((at, number)));
                break;
            }
            self.now = self.now.max(at);
            let event = self.bodies.remove(&number).expect("an event has a body");
            self.happen(event);
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.next += 1;
        self.events.push(Reverse((at, self.next)));
        self.bodies.insert(self.next, event);
    }

    fn happen(&mut self, event: Event) {
        // A paused program sees what came meanwhile when it goes on, in order.
        let reader = reader(&event, &self.flights);
        if let Some(held) = reader.and_then(|unit| self.units[unit].paused.as_mut()) {
            held.push(event);
            return;
        }
        let now = Time(self.now);
        match event {
            Event::Execute {
                unit,
                link,
                op,
                index,
            } => self.execute(unit, link, op, index),
            Event::Reply { unit, op, lost } => {
                let Some(flight) = self.flights.remove(&op) else {
                    return;
                };
                if flight.life != self.units[unit].life || !self.units[unit].alive {
                    return;
                }
                let replies = if lost { Err(Lost) } else { Ok(flight.replies) };
                self.units[unit]
                    .core
                    .handle_reply(flight.op.token, replies, now);
                self.settle(unit);
            }
            Event::Push {
                unit,
                subscription,
                key,
            } => {
                if self.units[unit].subscription == subscription && self.units[unit].alive {
                    self.units[unit].core.handle_push(&key, "set", now);
                    self.settle(unit);
                }
            }
            Event::Search {
                unit,
                link,
                token,
                pattern,
            } => {
                let life = self.units[unit].life;
                let works = self.server.up && self.units[unit].link == link;
                let keys = if works {
                    self.server.search(&pattern, self.now)
                } else {
                    Vec::new()
                };
                let step = match works {
                    true => SearchStep::Done,
                    false => SearchStep::Failed,
                };
                let at = self.now + self.latency();
                self.at(
                    at,
                    Event::Found {
                        unit,
                        life,
                        token,
                        keys,
                        step,
                    },
                );
            }
            Event::Found {
                unit,
                life,
                token,
                keys,
                step,
            } => {
                if self.units[unit].life == life && self.units[unit].alive {
                    self.units[unit].core.handle_found(token, &keys, step, now);
                    self.settle(unit);
                }
            }
            Event::Finished {
                unit,
                life,
                job,
                outcome,
            } => {
                if self.units[unit].life == life && self.units[unit].alive {
                    self.units[unit].core.handle_finished(job, outcome, now);
                    self.settle(unit);
                }
            }
            Event::Wake { unit } => {
                if self.units[unit].wake_at.is_some_and(|at| at <= self.now)
                    && self.units[unit].alive
                {
                    self.units[unit].wake_at = None;
                    self.units[unit].core.handle_timeout(now);
                    self.settle(unit);
                }
            }
            Event::Subscribe { unit } => self.subscribe(unit),
            Event::Resume { unit } => {
                for event in self.units[unit].paused.take().unwrap_or_default() {
                    self.happen(event);
                }
            }
            Event::Revive { unit } => self.revive(unit),
            Event::Call { unit } => self.call(unit),
            Event::Fault(fault) => self.fault(fault),
            Event::ServerUp { loses } => {
                self.server.restart(loses, self.now);
                self.tally.bump(if loses {
                    "restart that lost writes"
                } else {
                    "restart that kept all"
                });
            }
        }
    }

    fn call(&mut self, unit: usize) {
        let unique = ulid(self.now, &mut self.rng);
        let payload = Bytes::from(format!("payload of {unique}"));
        let to_all = self.rng.u8(..) < 20;
        let target = Target::new("thumb.resize").expect("a target");
        let id = RequestId::new(&target, to_all, &unique, self.rng.bool());
        let timeout_ms = if self.rng.u8(..) < 40 {
            self.rng.u64(50..3_000)
        } else {
            15_000
        };
        let now = Time(self.now);
        if to_all {
            let count = self.rng.bool().then_some(self.plan.backends);
            let quiet_ms = self.rng.bool().then_some(500);
            let spec = GatherSpec {
                id,
                payload,
                timeout_ms: timeout_ms.min(4_000),
                ttl_ms: None,
                meta: None,
                count,
                quiet_ms,
            };
            let gather = self.units[unit].core.gather(spec, now);
            self.gathers.insert((unit, gather), Default::default());
        } else {
            let request = format!("{}/{}", self.units[unit].name, id.as_str());
            let ttl_ms = 10_000.min(timeout_ms);
            let spec = CallSpec {
                id,
                payload: payload.clone(),
                ttl_ms,
                timeout_ms,
                meta: None,
            };
            let call = self.units[unit].core.call(spec, now);
            let cancelled = self.rng.u8(..) < 8;
            let deadline = self.now + timeout_ms;
            self.callers.insert(
                (unit, call),
                Caller {
                    request,
                    payload,
                    cancelled,
                    began: self.now,
                    deadline,
                    results: Vec::new(),
                },
            );
            if cancelled {
                self.tally.bump("cancelled call");
                self.settle(unit);
                self.units[unit].core.cancel_call(call);
            }
        }
        self.settle(unit);
    }

    /// Carries out what a core wants, and sets its alarm. A fault may be aimed at any of the outputs.
    fn settle(&mut self, unit: usize) {
        while let Some(output) = self.units[unit].core.poll_output() {
            self.units[unit].steps += 1;
            if let Some(aim) = self
                .plan
                .aim
                .filter(|aim| aim.unit == unit && aim.step == self.units[unit].steps)
            {
                if !aim.after {
                    self.fault(aim.fault);
                }
                if self.units[unit].alive {
                    self.carry_out(unit, output);
                }
                if aim.after {
                    self.fault(aim.fault);
                }
                if !self.units[unit].alive {
                    return;
                }
                continue;
            }
            self.carry_out(unit, output);
        }
        let wake_at = self.units[unit]
            .core
            .poll_timeout()
            .map(|at| at.0.max(self.now));
        if wake_at != self.units[unit].wake_at {
            self.units[unit].wake_at = wake_at;
            if let Some(at) = wake_at {
                self.at(at, Event::Wake { unit });
            }
        }
    }

    fn carry_out(&mut self, unit: usize, output: Output) {
        match output {
            Output::Run(op) => self.send(unit, op),
            Output::Search { token, pattern, .. } => {
                let (link, at) = (self.units[unit].link, self.now + self.latency());
                self.at(
                    at,
                    Event::Search {
                        unit,
                        link,
                        token,
                        pattern,
                    },
                );
            }
            // What a search had found when it was cancelled may still arrive.
            Output::CancelSearch { .. } => {}
            Output::Deliver { call, result } => {
                self.tally.bump(match &result {
                    Ok(_) => "answer",
                    Err(CallError::Remote(_)) => "Remote",
                    Err(CallError::NoResponder) => "NoResponder",
                    Err(CallError::HandlerTimeout { .. }) => "HandlerTimeout",
                    Err(CallError::Disconnected) => "Disconnected",
                    Err(_) => "another error",
                });
                let caller = self
                    .callers
                    .get_mut(&(unit, call))
                    .expect("only calls are delivered");
                caller.results.push((self.now, result));
            }
            Output::Start { job, request, .. } => {
                let name = format!("{}/{}", request.unit, request.id.as_str());
                let attempt = request.attempt;
                self.runs.entry(name).or_default().push(Run {
                    at: self.now,
                    unit,
                    attempt,
                });
                let takes_ms = match self.rng.u8(..) {
                    0..150 => self.rng.u64(..20),
                    150..235 => self.rng.u64(..2_500),
                    _ => self.rng.u64(..9_000),
                };
                let outcome = match self.rng.u8(..) {
                    0..40 => Outcome::Bad(request.payload),
                    _ => Outcome::Good(request.payload),
                };
                let life = self.units[unit].life;
                self.at(
                    self.now + takes_ms,
                    Event::Finished {
                        unit,
                        life,
                        job,
                        outcome,
                    },
                );
            }
            Output::WatchAnswers => self.units[unit].watches_answers = true,
            Output::Gathered { gather, answer } => {
                self.tally.bump("gathered answer");
                self.gathers
                    .get_mut(&(unit, gather))
                    .expect("a gather")
                    .0
                    .push(answer);
            }
            Output::GatherDone { gather, result } => {
                self.gathers
                    .get_mut(&(unit, gather))
                    .expect("a gather")
                    .1
                    .push(result);
            }
            other => panic!("unexpected output {other:?}"),
        }
    }

    /// Counters of all backends that still live.
    pub(crate) fn count_backends(&mut self) {
        for unit in &self.units {
            let counters = unit.core.backend_counters();
            self.tally.add("takeover", counters.takeovers);
            self.tally.add("swept request", counters.swept);
            self.tally.add("sweep", counters.sweeps);
            self.tally.add("lapsed lease", counters.lapsed);
            self.tally.add("resent answer", counters.resent);
            self.tally.add("silent backend", counters.silent);
            self.tally.add("lost claim", counters.claims_lost);
        }
        let rewritten = self.server.rewritten.values().map(Vec::len).sum::<usize>();
        self.tally.add("rewritten request", rewritten as u64);
    }
}

fn settings(plan: &Plan) -> Settings {
    let mut settings = Settings::default();
    if plan.bulk_ms.is_some() {
        // Shorter than any payload, so that all of them are large, and no answer is small enough to stay.
        settings.inline_limit_bytes = 16;
        settings.lasting_answer_bytes = 0;
    }
    settings
}

/// The program that an event waits for, if it is one that a pause holds up.
fn reader(event: &Event, flights: &HashMap<u64, Flight>) -> Option<usize> {
    match event {
        Event::Reply { op, .. } => flights.get(op).map(|flight| flight.unit),
        Event::Push { unit, .. }
        | Event::Found { unit, .. }
        | Event::Finished { unit, .. }
        | Event::Wake { unit }
        | Event::Subscribe { unit }
        | Event::Call { unit } => Some(*unit),
        _ => None,
    }
}
