//! Starts what a node runs: its workers, units and programs.

use super::builder::Builder;
use crate::config::NodeConfig;
use crate::driver::keys::Keys;
use crate::driver::lives::Lives;
use crate::driver::programs::ProgramState;
use crate::driver::run_program::KeptProgram;
use crate::driver::serve::{ServeContext, Unit, UnitCounters, UnitPlan};
use crate::driver::status::WorkerFacts;
use crate::driver::store_link::StoreLink;
use crate::driver::work::{QueuePlan, QueueWorker, WorkContext, WorkCounters};
use kumi_common::NameAndLife;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Starts what the node runs.
pub(super) struct Work {
    pub(super) me: NameAndLife,
    pub(super) link: StoreLink,
    pub(super) lives: Lives,
    pub(super) keys: Keys,
    pub(super) stop_within: Duration,
    pub(super) stop: CancellationToken,
    pub(super) tasks: JoinSet<()>,
}

impl Work {
    pub(super) fn workers(&mut self, config: &NodeConfig, builder: &Builder) -> Vec<WorkerFacts> {
        let default_queue = self.link.default_queue();
        let plans = QueuePlan::of(&config.work, builder.handlers.clone(), &default_queue);
        let workers = plans.into_iter().map(|plan| {
            let counters: Arc<WorkCounters> = Arc::default();
            let facts = WorkerFacts {
                queue: plan.queue.clone(),
                concurrency: plan.concurrency(),
                counters: counters.clone(),
            };
            let context = WorkContext {
                link: self.link.clone(),
                cluster: self.keys.cluster(),
                standing: self.lives.standing(),
                launcher: builder.launcher.clone(),
                output: builder.output.clone(),
                stop_within: self.stop_within,
            };
            let worker = QueueWorker {
                plan,
                context,
                counters,
            };
            self.tasks.spawn(worker.run(self.stop.clone()));
            facts
        });
        workers.collect()
    }

    pub(super) fn units(
        &mut self,
        config: &NodeConfig,
        builder: &Builder,
    ) -> Vec<(String, Arc<UnitCounters>)> {
        let plans = UnitPlan::of(&config.serve, builder.serves.clone(), self.me.name());
        let units = plans.into_iter().map(|plan| {
            let counters: Arc<UnitCounters> = Arc::default();
            let facts = (plan.unit.clone(), counters.clone());
            let context = ServeContext {
                link: self.link.clone(),
                node: self.me.clone(),
                launcher: builder.launcher.clone(),
                output: builder.output.clone(),
                stop_within: self.stop_within,
            };
            let unit = Unit {
                plan,
                context,
                counters,
            };
            self.tasks.spawn(unit.run(self.stop.clone()));
            facts
        });
        units.collect()
    }

    pub(super) fn programs(
        &mut self,
        config: &NodeConfig,
        builder: &Builder,
    ) -> Vec<(String, watch::Receiver<ProgramState>)> {
        let programs = config.run.iter().map(|entry| {
            let (state, receiver) = watch::channel(ProgramState::default());
            let program = KeptProgram {
                entry: entry.clone(),
                link: self.link.clone(),
                node: self.me.clone(),
                launcher: builder.launcher.clone(),
                output: builder.output.clone(),
                state,
            };
            self.tasks.spawn(program.run(self.stop.clone()));
            (entry.name.to_string(), receiver)
        });
        programs.collect()
    }
}
