//! Runs what a node's configuration names: workers, units and programs, and others when the configuration changes.
//!
//! What runs is in groups that start and stop as a whole: all work of one queue is one worker, all serving under one name one
//! unit, each program of `run` is for itself. A group whose plan changes is stopped, and its successor begins when it has ended:
//! two workers of one queue would share an owner. So it is with a group that is removed and put back before it has ended. The
//! other groups are left alone.

use super::builder::Builder;
use crate::config::{NodeConfig, Run, Serve, Work as WorkEntry};
use crate::driver::keys::Keys;
use crate::driver::lives::Lives;
use crate::driver::programs::{Launcher, Output, ProgramState};
use crate::driver::run_program::KeptProgram;
use crate::driver::serve::{Handler, ServeContext, Unit, UnitCounters, UnitPlan};
use crate::driver::status::{WorkFacts, WorkerFacts};
use crate::driver::store_link::StoreLink;
use crate::driver::tasks::Failures;
use crate::driver::work::{AddHandler, QueuePlan, QueueWorker, WorkContext, WorkCounters};
use kumi_common::NameAndLife;
use kumi_jobs::ClusterId;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What is started with every group.
pub(super) struct Tools {
    pub(super) me: NameAndLife,
    pub(super) link: StoreLink,
    pub(super) lives: Lives,
    pub(super) keys: Keys,
    failures: Failures,
    launcher: Launcher,
    output: Arc<dyn Output>,
    handlers: Vec<AddHandler>,
    serves: Vec<(String, Handler)>,
}

impl Tools {
    pub(super) fn new(
        builder: &Builder,
        me: NameAndLife,
        link: StoreLink,
        lives: Lives,
        keys: Keys,
        failures: Failures,
    ) -> Self {
        Self {
            me,
            link,
            lives,
            keys,
            failures,
            launcher: builder.launcher.clone(),
            output: builder.output.clone(),
            handlers: builder.handlers.clone(),
            serves: builder.serves.clone(),
        }
    }
}

/// What tells groups apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupName {
    Queue(String),
    Unit(String),
    Program(String),
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(queue) => write!(f, "worker of queue {queue}"),
            Self::Unit(unit) => write!(f, "unit {unit}"),
            Self::Program(program) => write!(f, "program {program}"),
        }
    }
}

/// What a group is started by. One that differs is another group.
#[derive(Clone, Debug, PartialEq)]
struct GroupPlan {
    work: Vec<WorkEntry>,
    serve: Vec<Serve>,
    run: Option<Run>,
    stop_within: Duration,
    /// Its owner is written with it.
    cluster: ClusterId,
}

/// A group that runs.
struct Group {
    plan: GroupPlan,
    stop: CancellationToken,
    /// Cancelled when it has ended.
    ended: CancellationToken,
    facts: GroupFacts,
}

/// What status shows of a group.
#[derive(Clone)]
enum GroupFacts {
    Worker(WorkerFacts),
    Unit(String, Arc<UnitCounters>),
    Program(String, watch::Receiver<ProgramState>),
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a node runs. Dropping it ends all of it at once.
pub(super) struct Work {
    tools: Tools,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    groups: BTreeMap<GroupName, Group>,
    /// Groups that are gone and have not ended yet, each with the token of its end.
    stopping: BTreeMap<GroupName, CancellationToken>,
    facts: watch::Sender<Arc<WorkFacts>>,
}

impl Work {
    /// Nothing runs yet.
    pub(super) fn new(tools: Tools) -> Self {
        Self {
            tools,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            groups: BTreeMap::new(),
            stopping: BTreeMap::new(),
            facts: watch::Sender::new(Arc::default()),
        }
    }

    /// What runs now, and its changes.
    pub(super) fn facts(&self) -> watch::Receiver<Arc<WorkFacts>> {
        self.facts.subscribe()
    }

    /// Runs what the configuration says: starts what is new, stops what is gone, and replaces what has changed. Returns at
    /// once; what is stopped ends within its time.
    pub(super) fn apply(&mut self, config: &NodeConfig, stop_within: Duration) {
        while self.tasks.try_join_next().is_some() {}
        self.stopping.retain(|_, ended| !ended.is_cancelled());
        let wanted = self.wanted(config, stop_within);
        let mut before = std::mem::take(&mut self.groups);
        for (name, plan) in wanted {
            let old = before.remove(&name);
            let group = match old {
                Some(old) if old.plan == plan => old,
                old => self.start(&name, plan, old),
            };
            self.groups.insert(name, group);
        }
        for (name, gone) in before {
            gone.stop.cancel();
            self.stopping.insert(name, gone.ended);
        }
        self.facts.send_replace(Arc::new(self.work_facts()));
    }

    /// Stops all of it, and waits for that. What has not ended within the limit is cut off: the others give its tasks back
    /// when this node has left.
    pub(super) async fn end(mut self, limit: Option<Duration>) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        match limit {
            Some(limit) => {
                let _ = tokio::time::timeout(limit, ended).await;
            }
            None => ended.await,
        }
    }

    fn wanted(&self, config: &NodeConfig, stop_within: Duration) -> BTreeMap<GroupName, GroupPlan> {
        let empty = GroupPlan {
            work: Vec::new(),
            serve: Vec::new(),
            run: None,
            stop_within,
            cluster: self.tools.keys.now().cluster(),
        };
        let mut wanted: BTreeMap<GroupName, GroupPlan> = BTreeMap::new();
        let default_queue = self.tools.link.default_queue();
        for plan in QueuePlan::of(&config.work, self.tools.handlers.clone(), &default_queue) {
            let group = GroupPlan {
                work: plan.entries,
                ..empty.clone()
            };
            wanted.insert(GroupName::Queue(plan.queue), group);
        }
        let node = self.tools.me.name();
        for plan in UnitPlan::of(&config.serve, self.tools.serves.clone(), node) {
            let group = GroupPlan {
                serve: plan.entries,
                ..empty.clone()
            };
            wanted.insert(GroupName::Unit(plan.unit), group);
        }
        for entry in &config.run {
            let group = GroupPlan {
                run: Some(entry.clone()),
                ..empty.clone()
            };
            wanted.insert(GroupName::Program(entry.name.to_string()), group);
        }
        wanted
    }

    /// Starts a group; if it replaces one, or one of its name still stops, when that has ended.
    fn start(&mut self, name: &GroupName, plan: GroupPlan, old: Option<Group>) -> Group {
        let stop = self.stop.child_token();
        let ended = CancellationToken::new();
        let (running, facts) = self.running(name, &plan, stop.clone());
        let before = match old {
            Some(old) => {
                old.stop.cancel();
                Some(old.ended)
            }
            None => self.stopping.remove(name),
        };
        // Also if the task is cut off.
        let at_end = ended.clone().drop_guard();
        let watched = self.tools.failures.watch(&name.to_string(), running);
        self.tasks.spawn(async move {
            let _at_end = at_end;
            if let Some(before) = before {
                before.cancelled().await;
            }
            watched.await;
        });
        Group {
            plan,
            stop,
            ended,
            facts,
        }
    }

    fn running(
        &self,
        name: &GroupName,
        plan: &GroupPlan,
        stop: CancellationToken,
    ) -> (Running, GroupFacts) {
        match (name, &plan.run) {
            (GroupName::Program(name), Some(entry)) => self.program(name, entry, stop),
            (GroupName::Unit(unit), _) => self.unit(unit, plan, stop),
            (GroupName::Queue(queue), _) => self.worker(queue, plan, stop),
            (GroupName::Program(name), None) => {
                // A program's plan always has its entry.
                let (_, state) = watch::channel(ProgramState::default());
                let facts = GroupFacts::Program(name.clone(), state);
                (Box::pin(std::future::ready(())), facts)
            }
        }
    }

    fn worker(
        &self,
        queue: &str,
        plan: &GroupPlan,
        stop: CancellationToken,
    ) -> (Running, GroupFacts) {
        let tools = &self.tools;
        let is_default = *queue == *tools.link.default_queue();
        let work = QueuePlan {
            queue: queue.to_owned(),
            entries: plan.work.clone(),
            handlers: match is_default {
                true => tools.handlers.clone(),
                false => Vec::new(),
            },
        };
        let counters: Arc<WorkCounters> = Arc::default();
        let facts = WorkerFacts {
            queue: queue.to_owned(),
            concurrency: work.concurrency(),
            counters: counters.clone(),
        };
        let worker = QueueWorker {
            plan: work,
            context: WorkContext {
                link: tools.link.clone(),
                cluster: plan.cluster,
                standing: tools.lives.standing(),
                launcher: tools.launcher.clone(),
                output: tools.output.clone(),
                stop_within: plan.stop_within,
            },
            counters,
        };
        (Box::pin(worker.run(stop)), GroupFacts::Worker(facts))
    }

    fn unit(&self, unit: &str, plan: &GroupPlan, stop: CancellationToken) -> (Running, GroupFacts) {
        let tools = &self.tools;
        let counters: Arc<UnitCounters> = Arc::default();
        let facts = GroupFacts::Unit(unit.to_owned(), counters.clone());
        let unit = Unit {
            plan: UnitPlan {
                unit: unit.to_owned(),
                entries: plan.serve.clone(),
                handlers: match unit == tools.me.name() {
                    true => tools.serves.clone(),
                    false => Vec::new(),
                },
            },
            context: ServeContext {
                link: tools.link.clone(),
                node: tools.me.clone(),
                launcher: tools.launcher.clone(),
                output: tools.output.clone(),
                stop_within: plan.stop_within,
            },
            counters,
        };
        (Box::pin(unit.run(stop)), facts)
    }

    fn program(&self, name: &str, entry: &Run, stop: CancellationToken) -> (Running, GroupFacts) {
        let tools = &self.tools;
        let (state, receiver) = watch::channel(ProgramState::default());
        let program = KeptProgram {
            entry: entry.clone(),
            link: tools.link.clone(),
            node: tools.me.clone(),
            launcher: tools.launcher.clone(),
            output: tools.output.clone(),
            state,
        };
        let facts = GroupFacts::Program(name.to_owned(), receiver);
        (Box::pin(program.run(stop)), facts)
    }

    fn work_facts(&self) -> WorkFacts {
        let mut facts = WorkFacts::default();
        for group in self.groups.values() {
            match group.facts.clone() {
                GroupFacts::Worker(worker) => facts.workers.push(worker),
                GroupFacts::Unit(unit, counters) => facts.units.push((unit, counters)),
                GroupFacts::Program(name, state) => facts.programs.push((name, state)),
            }
        }
        facts
    }
}
