//! The MUF backends of a node: one unit per name, with the programs of `serve` entries and the handlers of the program around
//! it. A unit is begun again when the route to the store changes.

use super::programs::{Launcher, Output, Program, RestartRule, Supervised, answer};
use super::route::StoreRoute;
use super::store_link::StoreLink;
use crate::config::{Serve, ServeCommand};
use futures_util::future::BoxFuture;
use kumi_common::{Chain, NameAndLife};
use kumi_muf::{IntoAnswer, Muf, Outcome, Request, SERVED_BOUNDS_MS, Served};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The pause after a unit that could not be connected.
const RETRY: Duration = Duration::from_secs(1);

/// A handler of the program around the node.
pub(crate) type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// An async function as a handler.
pub(crate) fn handler<F, Work>(handle: F) -> Handler
where
    F: Fn(Request) -> Work + Send + Sync + 'static,
    Work: Future<Output: IntoAnswer> + Send + 'static,
{
    Arc::new(move |request| {
        let work = handle(request);
        Box::pin(async move { work.await.into_answer() })
    })
}

/// What one unit serves.
#[derive(Clone, Default)]
pub(crate) struct UnitPlan {
    pub(crate) unit: String,
    pub(crate) entries: Vec<Serve>,
    pub(crate) handlers: Vec<(String, Handler)>,
}

impl UnitPlan {
    /// One plan per unit; entries without a name belong to the node's.
    pub(crate) fn of(serve: &[Serve], handlers: Vec<(String, Handler)>, node: &str) -> Vec<Self> {
        let mut plans: BTreeMap<String, Self> = BTreeMap::new();
        for entry in serve {
            let unit = entry.unit.as_deref().unwrap_or(node);
            let plan = plans.entry(unit.to_owned()).or_default();
            plan.entries.push(entry.clone());
        }
        if !handlers.is_empty() {
            plans.entry(node.to_owned()).or_default().handlers = handlers;
        }
        let named = plans.into_iter().map(|(unit, plan)| Self { unit, ..plan });
        named.collect()
    }
}

/// What all units of a node need.
#[derive(Clone)]
pub(crate) struct ServeContext {
    pub(crate) link: StoreLink,
    /// `name~life`, for the environment of programs.
    pub(crate) node: NameAndLife,
    pub(crate) launcher: Launcher,
    pub(crate) output: Arc<dyn Output>,
    /// How long requests that are worked on may take after the stop.
    pub(crate) stop_within: Duration,
}

/// What this node served as one unit.
#[derive(Debug, Default)]
pub(crate) struct UnitCounters {
    times: [AtomicU64; SERVED_BOUNDS_MS.len() + 1],
    errors: AtomicU64,
}

impl UnitCounters {
    /// The requests so far.
    pub(crate) fn served(&self) -> Served {
        let mut served = Served::default();
        for (count, own) in served.times.iter_mut().zip(&self.times) {
            *count = own.load(Ordering::Relaxed);
        }
        served.errors = self.errors.load(Ordering::Relaxed);
        served
    }

    /// Counts a request when its handler ends.
    async fn count(self: Arc<Self>, work: impl Future<Output = Outcome>) -> Outcome {
        let began = Instant::now();
        let outcome = work.await;
        let took_ms = began.elapsed().as_millis() as u64;
        let bucket = SERVED_BOUNDS_MS.iter().position(|bound| took_ms <= *bound);
        let bucket = bucket.unwrap_or(SERVED_BOUNDS_MS.len());
        self.times[bucket].fetch_add(1, Ordering::Relaxed);
        if matches!(outcome, Outcome::Bad(_)) {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

/// One unit, until `stop`.
pub(crate) struct Unit {
    pub(crate) plan: UnitPlan,
    pub(crate) context: ServeContext,
    pub(crate) counters: Arc<UnitCounters>,
}

impl Unit {
    pub(crate) async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let route = tokio::select! {
                route = self.context.link.up() => route,
                () = stop.cancelled() => return,
            };
            let serving = tokio::select! {
                serving = self.begin(&route) => serving,
                () = stop.cancelled() => return,
            };
            match serving {
                Ok((muf, programs)) => {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = self.context.link.left(&route) => {}
                    }
                    self.end(muf, programs).await;
                }
                Err(error) => {
                    let unit = &self.plan.unit;
                    tracing::error!(unit, error = %Chain(&error), "a unit cannot serve; it begins again");
                    tokio::select! {
                        () = sleep(RETRY) => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
        }
    }

    async fn begin(&self, route: &StoreRoute) -> Result<(Muf, Programs), kumi_muf::Error> {
        let muf = Muf::builder(&route.url, &self.plan.unit)
            .version(kumi_store::KUMI_VERSION)
            .connect()
            .await?;
        let mut programs = Programs {
            stop: CancellationToken::new(),
            kept: JoinSet::new(),
        };
        for entry in &self.plan.entries {
            self.serve(&muf, entry, route, &mut programs).await?;
        }
        for (pattern, handle) in &self.plan.handlers {
            let (handle, counters) = (handle.clone(), self.counters.clone());
            muf.serve(pattern, move |request| {
                counters.clone().count(handle(request))
            })
            .await?;
        }
        Ok((muf, programs))
    }

    async fn serve(
        &self,
        muf: &Muf,
        entry: &Serve,
        route: &StoreRoute,
        programs: &mut Programs,
    ) -> Result<(), kumi_muf::Error> {
        let (launcher, output) = (&self.context.launcher, self.context.output.clone());
        let pattern = entry.pattern.to_string();
        let command = match &entry.command {
            ServeCommand::Exec(command) | ServeCommand::Pipe(command) => command,
        };
        let program = Program::new(&pattern, command, launcher, output).of_node(
            &entry.surroundings,
            self.context.node.as_str(),
            &route.app_url,
        );
        let counters = self.counters.clone();
        let serve = match &entry.command {
            ServeCommand::Exec(_) => {
                let program = Arc::new(program);
                muf.serve(&pattern, move |request: Request| {
                    let program = program.clone();
                    let answered = async move { answer(&program, &request).await };
                    counters.clone().count(answered)
                })
            }
            ServeCommand::Pipe(_) => {
                let supervised = Supervised::new(program, RestartRule::default());
                let way = supervised.way();
                programs.keep(supervised);
                muf.serve(&pattern, move |request: Request| {
                    let way = way.clone();
                    let answered = async move { way.answer(&request).await };
                    counters.clone().count(answered)
                })
            }
        };
        let serve = serve
            .concurrency(entry.concurrency)
            .handler_timeout(entry.handler_timeout);
        serve.await?;
        Ok(())
    }

    /// Takes no more requests, answers those that were taken, and ends the programs.
    async fn end(&self, muf: Muf, programs: Programs) {
        let closed = timeout(self.context.stop_within, muf.close()).await;
        if closed.is_err() {
            let unit = &self.plan.unit;
            tracing::warn!(unit, "requests that were worked on are given up");
        }
        programs.end().await;
    }
}

/// The pipe programs of a unit. Dropping it kills them.
struct Programs {
    stop: CancellationToken,
    kept: JoinSet<()>,
}

impl Programs {
    fn keep(&mut self, mut supervised: Supervised) {
        let stop = self.stop.clone();
        self.kept.spawn(async move {
            tokio::select! {
                // It has ended for good; requests are answered with ERR.
                why = supervised.keep_running() => {
                    tracing::warn!(?why, "a program of serve has ended, and is not started again");
                    stop.cancelled().await;
                }
                () = stop.cancelled() => {}
            }
            supervised.close().stop().await;
        });
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.kept.join_next().await.is_some() {}
    }
}
