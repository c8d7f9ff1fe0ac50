//! The engine: one task per unit that owns the core and feeds it.
//!
//! Everything that happens (a handle asks, a push or a reply arrives, a handler returns, a timer fires) is one turn of
//! `run`: hand it to the core, carry out what the core wants. Nothing is locked, because nothing is shared. Its tasks
//! (connecting, searching, handlers) live in `JoinSet`s and die with it. It ends when all handles are gone or one of
//! them closes the unit.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use super::ask::{
    After, Ask, CallAsk, Found, GatherAsk, Report, ServeAsk, Stats, Ticket, WatchAsk, Withdrawal,
};
use super::fleet::Fleet;
use super::flight::{Landed, Passenger};
use super::node::Route;
use super::pushes::Pushed;
use super::taps::Taps;
use crate::core::{
    CallError, CallId, CallSpec, Core, GatherId, GatherSpec, Gathered, JobId, KeepEvent,
    KeepPattern, Outcome, Output, OwnedId, Pattern, RequestId, ServiceId, Settings, Time, UnitName,
    WatchId, ulid,
};
use crate::discovery::Info;
use crate::serve::{AnyHandler, Request};
use crate::tap::TAP_GLOB;

/// Things of one kind handled in one turn, before the others get theirs.
const TURN_LIMIT: usize = 256;

/// How often a watcher that was too slow is looked at.
const OVERFLOW_CHECK: Duration = Duration::from_millis(50);

/// A service as the engine knows it.
pub(super) struct Served {
    pub(super) pattern: Pattern,
    handler: Arc<dyn AnyHandler>,
    draining: bool,
}

/// A watcher, and whether it was too slow.
struct Watcher {
    events: mpsc::Sender<KeepEvent>,
    overflowed: bool,
}

/// The state of the one task.
pub(super) struct Engine {
    pub(super) settings: Settings,
    pub(super) route: Arc<Route>,
    pub(super) core: Core,
    pub(super) fleet: Fleet,
    /// Patterns over keys that every node is subscribed to, and how often the set has changed.
    pub(super) patterns: BTreeSet<String>,
    pub(super) version: u64,
    pub(super) flags: &'static str,
    pub(super) pushes: SelectAll<BoxStream<'static, Pushed>>,
    pub(super) flights: FuturesUnordered<BoxFuture<'static, Landed>>,
    pub(super) tasks: JoinSet<Report>,
    pub(super) found: (mpsc::Sender<Found>, mpsc::Receiver<Found>),
    pub(super) refreshing: bool,
    pub(super) watches_answers: bool,
    pub(super) stats: Stats,
    pub(super) services: HashMap<ServiceId, Served>,
    pub(super) taps: Taps,
    handlers: JoinSet<Outcome>,
    running: HashMap<tokio::task::Id, JobId>,
    calls: HashMap<CallId, (Ticket, oneshot::Sender<Result<Bytes, CallError>>)>,
    gathers: HashMap<GatherId, (Ticket, mpsc::UnboundedSender<Result<Gathered, CallError>>)>,
    tickets: HashMap<Ticket, Asked>,
    watchers: HashMap<WatchId, Watcher>,
    keep_patterns: HashMap<WatchId, KeepPattern>,
    drains: Vec<(ServiceId, oneshot::Sender<()>)>,
    closing: Option<oneshot::Sender<()>>,
    info: Option<(Info, OwnedId, OwnedId)>,
    heartbeat: Duration,
    base: Instant,
    pub(super) rng: fastrand::Rng,
}

/// What a ticket stands for.
#[derive(Clone, Copy)]
enum Asked {
    Call(CallId),
    Gather(GatherId),
}

/// What an engine starts with.
pub(super) struct Start {
    pub(super) unit: UnitName,
    pub(super) settings: Settings,
    pub(super) route: Arc<Route>,
    pub(super) patterns: BTreeSet<String>,
    pub(super) flags: &'static str,
    pub(super) info: Option<Info>,
    pub(super) heartbeat: Duration,
}

impl Engine {
    pub(super) fn new(start: Start) -> Self {
        let mut rng = fastrand::Rng::new();
        let instance = ulid(unix_ms(), &mut rng)[10..18].to_owned();
        let core = Core::new(start.unit, &instance, start.settings.clone(), rng.fork());
        let mut engine = Self {
            settings: start.settings,
            route: start.route,
            core,
            fleet: Fleet::default(),
            patterns: start.patterns,
            version: 0,
            flags: start.flags,
            pushes: SelectAll::new(),
            flights: FuturesUnordered::new(),
            tasks: JoinSet::new(),
            found: mpsc::channel(16),
            refreshing: false,
            watches_answers: false,
            stats: Stats::default(),
            services: HashMap::new(),
            taps: Taps::default(),
            handlers: JoinSet::new(),
            running: HashMap::new(),
            calls: HashMap::new(),
            gathers: HashMap::new(),
            tickets: HashMap::new(),
            watchers: HashMap::new(),
            keep_patterns: HashMap::new(),
            drains: Vec::new(),
            closing: None,
            info: None,
            heartbeat: start.heartbeat,
            base: Instant::now(),
            rng,
        };
        if let Some(info) = start.info {
            let ttl_ms = 3 * start.heartbeat.as_millis() as u64;
            let now = engine.now();
            let told = engine.core.own("_info", info.to_json(), ttl_ms, now);
            let stats = engine
                .core
                .own("_stats", to_json(&engine.stats), ttl_ms, now);
            engine.info = Some((info, told, stats));
        }
        engine
    }

    /// Runs until the unit is closed or forgotten.
    pub(super) async fn run(
        mut self,
        mut asks: mpsc::Receiver<Ask>,
        mut back: mpsc::UnboundedReceiver<Withdrawal>,
    ) {
        let mut beat = every(self.heartbeat);
        let mut poll = every(Duration::from_millis(
            self.settings.poll_ms.unwrap_or(60_000).max(1),
        ));
        let mut check = every(OVERFLOW_CHECK);
        let mut refresh = every(Duration::from_secs(1));
        let mut alarm = Box::pin(sleep_until(self.base));
        let mut alarm_at = Time(0);
        loop {
            self.settle();
            if self.is_closed() {
                break;
            }
            if let Some(at) = self.core.poll_timeout().filter(|at| *at != alarm_at) {
                alarm_at = at;
                alarm
                    .as_mut()
                    .reset(self.base + Duration::from_millis(at.0));
            }
            tokio::select! {
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.landed(landed),
                Some(pushed) = self.pushes.next(), if !self.pushes.is_empty() => self.pushed(pushed),
                ask = asks.recv() => match ask {
                    Some(ask) => self.asked(ask),
                    None => break,
                },
                Some(withdrawal) = back.recv() => self.withdrawn(withdrawal),
                Some(done) = self.handlers.join_next_with_id(), if !self.handlers.is_empty() => self.handled(done),
                Some(report) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.reported(report.unwrap_or(Report::Nothing));
                }
                Some(found) = self.found.1.recv() => {
                    let now = self.now();
                    self.core.handle_found(found.token, &found.keys, found.done, now);
                }
                () = alarm.as_mut(), if self.core.poll_timeout().is_some() => {
                    let now = self.now();
                    self.core.handle_timeout(now);
                    alarm_at = Time(0);
                }
                _ = beat.tick() => self.beat(),
                _ = poll.tick(), if self.settings.poll_ms.is_some() => self.core.poll_watches(),
                _ = check.tick(), if self.watchers.values().any(|watcher| watcher.overflowed) => self.check_watchers(),
                _ = refresh.tick(), if self.fleet.is_cluster() => self.refresh_topology(false),
            }
            self.drain_ready(&mut asks, &mut back);
        }
        if let Some(done) = self.closing.take() {
            let _ = done.send(());
        }
    }

    /// Takes what else is ready, so that its commands share a write.
    fn drain_ready(
        &mut self,
        asks: &mut mpsc::Receiver<Ask>,
        back: &mut mpsc::UnboundedReceiver<Withdrawal>,
    ) {
        for _ in 0..TURN_LIMIT {
            match self.flights.next().now_or_never() {
                Some(Some(landed)) => self.landed(landed),
                _ => break,
            }
        }
        for _ in 0..TURN_LIMIT {
            match self.pushes.next().now_or_never() {
                Some(Some(pushed)) => self.pushed(pushed),
                _ => break,
            }
        }
        while let Ok(withdrawal) = back.try_recv() {
            self.withdrawn(withdrawal);
        }
        for _ in 0..TURN_LIMIT {
            match asks.try_recv() {
                Ok(ask) => self.asked(ask),
                Err(_) => break,
            }
        }
    }

    pub(super) fn now(&self) -> Time {
        Time(self.base.elapsed().as_millis() as u64)
    }

    fn asked(&mut self, ask: Ask) {
        let now = self.now();
        match ask {
            Ask::Call(ask) => self.call(ask, now),
            Ask::Gather(ask) => self.gather(ask, now),
            Ask::Serve(ask) => {
                let pattern = format!("MUF/*/REQ/{}", ask.pattern.id_glob());
                self.subscribe(vec![pattern], After::Serve(ask));
            }
            Ask::Drain { service, done } => {
                if let Some(served) = self.services.get_mut(&service) {
                    served.draining = true;
                }
                self.core.drain(service);
                self.drains.push((service, done));
                self.tell_services();
            }
            Ask::Watch(ask) => self.watch(ask),
            Ask::Own {
                id,
                value,
                ttl_ms,
                reply,
            } => {
                let owned = self.core.own(&id, value, ttl_ms, now);
                if let Err(owned) = reply.send(owned) {
                    self.core.release_owned(owned);
                }
            }
            Ask::ChangeOwned { owned, value } => self.core.change_owned(owned, value, now),
            Ask::Run { commands, reply } => self.launch(Passenger::Handle(reply), commands),
            Ask::Search { pattern, reply } => self.search_for_handle(pattern, reply),
            Ask::Tap { events, reply } => {
                self.taps.add(events);
                self.subscribe(vec![TAP_GLOB.to_owned()], After::Tap(reply));
            }
            Ask::Stats(reply) => {
                let _ = reply.send(self.current_stats());
            }
            Ask::Close(done) => {
                self.closing = Some(done);
                for (service, served) in &mut self.services {
                    served.draining = true;
                    self.core.drain(*service);
                }
            }
        }
    }

    fn call(&mut self, ask: CallAsk, now: Time) {
        if ask.reply.is_closed() {
            return;
        }
        self.stats.calls += 1;
        let timeout_ms = ask.timeout_ms.unwrap_or(self.settings.timeout_ms).max(1);
        let ttl_ms = ask
            .ttl_ms
            .unwrap_or(self.settings.req_ttl_ms)
            .min(timeout_ms)
            .max(1);
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&ask.target, false, &unique, self.settings.cluster);
        let meta = self.settings.tracing.then(|| {
            let deadline = unix_ms() + timeout_ms;
            to_json(&serde_json::json!({ "traceparent": ask.traceparent, "deadline": deadline }))
        });
        let spec = CallSpec {
            id,
            payload: ask.payload,
            ttl_ms,
            timeout_ms,
            meta,
        };
        let call = self.core.call(spec, now);
        self.calls.insert(call, (ask.ticket, ask.reply));
        self.tickets.insert(ask.ticket, Asked::Call(call));
    }

    fn gather(&mut self, ask: GatherAsk, now: Time) {
        if ask.answers.is_closed() {
            return;
        }
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&ask.target, true, &unique, self.settings.cluster);
        let GatherAsk {
            ticket,
            payload,
            timeout_ms,
            count,
            quiet_ms,
            answers,
            ..
        } = ask;
        let gather = self.core.gather(
            GatherSpec {
                id,
                payload,
                timeout_ms,
                count,
                quiet_ms,
            },
            now,
        );
        self.gathers.insert(gather, (ticket, answers));
        self.tickets.insert(ticket, Asked::Gather(gather));
    }

    fn watch(&mut self, ask: WatchAsk) {
        let glob = ask.pattern.key_glob();
        let watch = self.core.watch(ask.pattern.clone());
        self.watchers.insert(
            watch,
            Watcher {
                events: ask.events,
                overflowed: false,
            },
        );
        self.keep_patterns.insert(watch, ask.pattern);
        if ask.reply.send(watch).is_err() {
            return self.withdrawn(Withdrawal::Watch(watch));
        }
        // Deletions and changes of a TTL are generic events.
        self.flags = "K$xg";
        self.subscribe(vec![glob], After::Watch(watch));
    }

    pub(super) fn serve(&mut self, ask: ServeAsk) {
        let now = self.now();
        let ServeAsk {
            pattern,
            places,
            handler,
            reply,
        } = ask;
        let service = self.core.serve(pattern.clone(), places, now);
        self.services.insert(
            service,
            Served {
                pattern,
                handler,
                draining: false,
            },
        );
        if self.watches_answers {
            self.watch_answers();
        }
        if reply.send(service).is_err() {
            // Nobody waits for it any more.
            self.core.remove_service(service);
            self.services.remove(&service);
        }
        self.tell_services();
    }

    fn withdrawn(&mut self, withdrawal: Withdrawal) {
        match withdrawal {
            Withdrawal::Ticket(ticket) => match self.tickets.remove(&ticket) {
                Some(Asked::Call(call)) => {
                    self.calls.remove(&call);
                    self.core.cancel_call(call);
                }
                Some(Asked::Gather(gather)) => {
                    self.gathers.remove(&gather);
                    self.core.cancel_gather(gather);
                }
                None => {}
            },
            Withdrawal::Watch(watch) => {
                self.watchers.remove(&watch);
                self.core.cancel_watch(watch);
                if let Some(pattern) = self.keep_patterns.remove(&watch) {
                    let glob = pattern.key_glob();
                    if !self
                        .keep_patterns
                        .values()
                        .any(|other| other.key_glob() == glob)
                    {
                        self.unsubscribe(&glob);
                    }
                }
            }
            Withdrawal::Owned(owned) => self.core.release_owned(owned),
        }
    }

    fn handled(&mut self, done: Result<(tokio::task::Id, Outcome), tokio::task::JoinError>) {
        let now = self.now();
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (
                error.id(),
                Outcome::Bad(Bytes::from_static(b"the handler panicked")),
            ),
        };
        let Some(job) = self.running.remove(&id) else {
            return;
        };
        let limit = self.settings.payload_limit_bytes;
        let outcome = match outcome {
            Outcome::Good(payload) | Outcome::Bad(payload) if payload.len() > limit => {
                let text = format!(
                    "an answer of {} bytes is over the limit of {limit}",
                    payload.len()
                );
                Outcome::Bad(text.into())
            }
            outcome => outcome,
        };
        self.core.handle_finished(job, outcome, now);
    }

    /// Carries out all that the core wants.
    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run(op) => self.launch(Passenger::Core(op.token), op.commands),
                Output::Search {
                    token,
                    pattern,
                    paced,
                } => self.search(token, pattern, paced),
                Output::Deliver { call, result } => {
                    if let Some((ticket, reply)) = self.calls.remove(&call) {
                        self.tickets.remove(&ticket);
                        self.stats.answers +=
                            u64::from(matches!(result, Ok(_) | Err(CallError::Remote(_))));
                        let _ = reply.send(result);
                    }
                }
                Output::Start {
                    service,
                    job,
                    request,
                } => {
                    let Some(served) = self.services.get(&service) else {
                        continue;
                    };
                    let handling = served.handler.handle(Request::new(request));
                    let task = self.handlers.spawn(handling);
                    self.running.insert(task.id(), job);
                }
                Output::WatchAnswers => {
                    self.watches_answers = true;
                    self.watch_answers();
                }
                Output::Gathered { gather, answer } => {
                    if let Some((_, answers)) = self.gathers.get(&gather) {
                        let _ = answers.send(Ok(answer));
                    }
                }
                Output::GatherDone { gather, result } => {
                    if let Some((ticket, answers)) = self.gathers.remove(&gather) {
                        self.tickets.remove(&ticket);
                        if let Err(error) = result {
                            let _ = answers.send(Err(error));
                        }
                    }
                }
                Output::Watched { watch, event } => self.watched(watch, event),
            }
        }
        let core = &self.core;
        for (service, done) in self
            .drains
            .extract_if(.., |(service, _)| core.is_drained(*service))
        {
            self.services.remove(&service);
            let _ = done.send(());
        }
    }

    fn watched(&mut self, watch: WatchId, event: KeepEvent) {
        let Some(watcher) = self.watchers.get_mut(&watch) else {
            return;
        };
        if watcher.overflowed {
            return;
        }
        // What does not fit is made up for by a gap, once there is room.
        watcher.overflowed = watcher.events.try_send(event).is_err();
    }

    fn check_watchers(&mut self) {
        let roomy =
            |watcher: &Watcher| watcher.events.capacity() >= watcher.events.max_capacity() / 2;
        for (watch, watcher) in &mut self.watchers {
            if watcher.overflowed && roomy(watcher) {
                watcher.overflowed = false;
                self.core.watch_gap(*watch);
            }
        }
    }

    fn beat(&mut self) {
        let stats = self.current_stats();
        let now = self.now();
        if let Some((_, _, owned)) = &self.info {
            self.core.change_owned(*owned, to_json(&stats), now);
        }
    }

    fn current_stats(&self) -> Stats {
        self.stats
            .with(self.core.backend_counters(), self.core.pending_calls())
    }

    /// Writes which services there are now.
    fn tell_services(&mut self) {
        let now = self.now();
        if let Some((info, owned, _)) = &mut self.info {
            let active = self.services.values().filter(|served| !served.draining);
            info.services = active.map(|served| served.pattern.to_string()).collect();
            info.services.sort_unstable();
            self.core.change_owned(*owned, info.to_json(), now);
        }
    }

    /// Closing is done when all handlers have returned and all that was to be written is written.
    fn is_closed(&self) -> bool {
        let idle = self
            .services
            .keys()
            .all(|service| self.core.is_drained(*service));
        self.closing.is_some() && idle && self.flights.is_empty()
    }
}

pub(super) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn to_json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
