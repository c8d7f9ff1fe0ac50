//! The engine: one task per unit that owns the core and feeds it.
//!
//! A turn of `run` takes in everything that has happened (handles asked, pushes and replies arrived, handlers returned,
//! a timer fired), hands it to the core, and carries out what the core wants; then one write per connection sends it
//! all. So the more is going on, the less each call costs. Nothing is locked, because nothing is shared: the engine
//! polls its sockets itself. Its tasks (connecting, searching, handlers) are in `JoinSet`s and end with it. It ends
//! when all handles are gone or one of them closes the unit.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::ask::{Ask, Found, Report, Stats, Ticket, Withdrawal, Written};
use super::directory::Directory;
use super::fleet::Fleet;
use super::node::Route;
use super::pipelines::{Recipient, Waiting};
use super::remote::{REMOTE_CALL_LIMIT, RemoteCall};
use super::taps::Taps;
use super::upkeep::Upkeep;
use crate::Connection;
use crate::core::{
    CallError, CallId, Core, GatherId, Gathered, IdMap, JobId, KeepEvent, KeepPattern, Lost,
    Outcome, Output, OwnedId, Pattern, ServiceId, Settings, Time, UnitName, WatchId,
};
use crate::discovery::Info;
use crate::serve::{AnyHandler, Request};

/// Things of one kind handled in one turn, before the others get theirs.
const TURN_LIMIT: usize = 256;

/// Batches of keys that searches may have ready for the core.
const FOUND_LIMIT: usize = 16;

/// A service as the engine knows it.
pub(super) struct Served {
    pub(super) pattern: Pattern,
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) handler_timeout: Duration,
    pub(super) draining: bool,
}

impl Served {
    /// The keys of requests that it takes.
    pub(super) fn request_glob(&self) -> String {
        format!("MUF/*/REQ/{}", self.pattern.id_glob())
    }

    /// The keys of their answers.
    pub(super) fn answer_glob(&self) -> String {
        format!("MUF/*/[RE][ER][SR]/{}", self.pattern.id_glob())
    }
}

/// A watcher, and whether it was too slow.
pub(super) struct Watcher {
    pub(super) events: mpsc::Sender<KeepEvent>,
    pub(super) overflowed: bool,
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
    /// Flags of events that every node has to have.
    pub(super) flags: &'static str,
    /// Whether it is known that the server sends generic events, such as deletions.
    pub(super) generic: Generic,
    /// How often to poll where events are missing, if that is allowed.
    pub(super) poll: Option<Duration>,
    /// A check of the flags is under way; the last check found that the server sends no events.
    pub(super) rechecking: bool,
    pub(super) untold: bool,
    /// More has arrived than was taken in.
    pub(super) has_more: bool,
    /// Pipelines whose replies are here: kept for its room.
    pub(super) answered: Vec<Waiting>,
    /// Recipients whose replies will not come, and that have to be informed.
    pub(super) lost: VecDeque<Recipient>,
    pub(super) remote_calls: (mpsc::Sender<RemoteCall>, mpsc::Receiver<RemoteCall>),
    pub(super) tasks: JoinSet<Report>,
    pub(super) found: (mpsc::Sender<Found>, mpsc::Receiver<Found>),
    pub(super) refreshing: bool,
    pub(super) watches_answers: bool,
    pub(super) stats: Stats,
    pub(super) services: IdMap<ServiceId, Served>,
    pub(super) taps: Taps,
    pub(super) calls: IdMap<CallId, (Ticket, oneshot::Sender<Result<Bytes, CallError>>)>,
    pub(super) gathers:
        IdMap<GatherId, (Ticket, mpsc::UnboundedSender<Result<Gathered, CallError>>)>,
    pub(super) tickets: IdMap<Ticket, Asked>,
    pub(super) watchers: IdMap<WatchId, Watcher>,
    pub(super) has_slow_watchers: bool,
    pub(super) keep_patterns: IdMap<WatchId, KeepPattern>,
    /// Handles that wait until the server has an owned value, and which of its versions.
    pub(super) writing: Vec<(OwnedId, u64, Written)>,
    /// All nodes were subscribed to at least once.
    pub(super) has_begun: bool,
    pub(super) directory: Directory,
    pub(super) drains: Vec<(ServiceId, oneshot::Sender<()>)>,
    pub(super) closing: Option<oneshot::Sender<()>>,
    pub(super) info: Option<(Info, OwnedId, OwnedId)>,
    pub(super) upkeep: Upkeep,
    pub(super) connection: watch::Sender<Connection>,
    handlers: JoinSet<Outcome>,
    running: HashMap<tokio::task::Id, JobId>,
    base: Instant,
    pub(super) rng: fastrand::Rng,
}

/// What is known about generic events, which watches over kept values need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generic {
    Unproven,
    Proven,
    /// They do not come: watched values are looked at by the clock.
    Polled,
}

/// What a ticket stands for.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Call(CallId),
    Gather(GatherId),
}

/// What an engine starts with.
pub(super) struct Start {
    pub(super) unit: UnitName,
    pub(super) instance: String,
    pub(super) settings: Settings,
    pub(super) route: Arc<Route>,
    pub(super) patterns: BTreeSet<String>,
    pub(super) flags: &'static str,
    /// How often to poll if need be, and whether there is need already.
    pub(super) poll: Option<Duration>,
    pub(super) polls: bool,
    pub(super) info: Option<Info>,
    pub(super) heartbeat: Duration,
}

impl Engine {
    pub(super) fn new(start: Start, connection: watch::Sender<Connection>) -> Self {
        let mut rng = fastrand::Rng::new();
        let instance = start.instance;
        let core = Core::new(start.unit, &instance, start.settings.clone(), rng.fork());
        let upkeep = Upkeep::new(
            start.heartbeat,
            start.settings.poll_ms,
            start.route.response_timeout,
        );
        let mut engine = Self {
            settings: start.settings,
            route: start.route,
            core,
            fleet: Fleet::default(),
            patterns: start.patterns,
            version: 0,
            flags: start.flags,
            generic: match start.polls {
                true => Generic::Polled,
                false => Generic::Unproven,
            },
            poll: start.poll,
            rechecking: false,
            untold: false,
            has_more: false,
            answered: Vec::new(),
            lost: VecDeque::new(),
            remote_calls: mpsc::channel(REMOTE_CALL_LIMIT),
            tasks: JoinSet::new(),
            found: mpsc::channel(FOUND_LIMIT),
            refreshing: false,
            watches_answers: false,
            stats: Stats::default(),
            services: IdMap::default(),
            taps: Taps::default(),
            handlers: JoinSet::new(),
            running: HashMap::new(),
            calls: IdMap::default(),
            gathers: IdMap::default(),
            tickets: IdMap::default(),
            watchers: IdMap::default(),
            has_slow_watchers: false,
            keep_patterns: IdMap::default(),
            writing: Vec::new(),
            has_begun: false,
            directory: Directory::default(),
            drains: Vec::new(),
            closing: None,
            info: None,
            upkeep,
            connection,
            base: Instant::now(),
            rng,
        };
        if let Some(mut info) = start.info {
            let ttl_ms = 3 * start.heartbeat.as_millis() as u64;
            let now = engine.now();
            info.instance = instance;
            info.ttl_ms = ttl_ms;
            let told = info.to_json();
            let told = engine.core.own_shared("_info", told, ttl_ms, now);
            let stats = engine.stats.to_json(&info.instance);
            let stats = engine.core.own_shared("_stats", stats, ttl_ms, now);
            engine.info = Some((info, told, stats));
        }
        engine
    }

    /// Runs until the unit is closed or its last handle is dropped.
    pub(super) async fn run(
        mut self,
        mut asks: mpsc::Receiver<Ask>,
        mut back: mpsc::UnboundedReceiver<Withdrawal>,
    ) {
        let mut alarm = Box::pin(sleep_until(self.base));
        let mut alarm_at = Time(0);
        loop {
            self.settle();
            if self.is_closed() {
                break;
            }
            let at = self.next_alarm();
            if at != alarm_at {
                alarm_at = at;
                alarm
                    .as_mut()
                    .reset(self.base + Duration::from_millis(at.0));
            }
            // What was just decided goes out before anything else is looked at.
            poll_fn(|cx| {
                self.fleet.flush(cx);
                Poll::Ready(())
            })
            .await;
            if self.has_more {
                // Handlers and callers that the last step woke get their turn, and their part of the next write.
                tokio::task::yield_now().await;
                self.take_in();
                self.drain_ready(&mut asks, &mut back);
                continue;
            }
            tokio::select! {
                () = poll_fn(|cx| self.fleet.poll(cx)) => self.take_in(),
                ask = asks.recv() => match ask {
                    Some(ask) => self.asked(ask),
                    None => break,
                },
                Some(withdrawal) = back.recv() => self.withdrawn(withdrawal),
                Some(done) = self.handlers.join_next_with_id(), if !self.handlers.is_empty() => self.handled(done),
                Some(report) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.reported(report.unwrap_or(Report::Nothing));
                }
                Some(remote_call) = self.remote_calls.1.recv() => self.run_remote_call(remote_call),
                Some(found) = self.found.1.recv() => self.found(found),
                () = alarm.as_mut() => {
                    self.alarmed();
                    alarm_at = Time(0);
                }
            }
            self.drain_ready(&mut asks, &mut back);
        }
        self.connection.send_replace(Connection::Closed);
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
        while let Ok(withdrawal) = back.try_recv() {
            self.withdrawn(withdrawal);
        }
        for _ in 0..TURN_LIMIT {
            match asks.try_recv() {
                Ok(ask) => self.asked(ask),
                Err(_) => break,
            }
        }
        for _ in 0..TURN_LIMIT {
            match self.handlers.try_join_next_with_id() {
                Some(done) => self.handled(done),
                None => break,
            }
        }
        while let Ok(remote_call) = self.remote_calls.1.try_recv() {
            self.run_remote_call(remote_call);
        }
    }

    fn found(&mut self, found: Found) {
        let now = self.now();
        self.core
            .handle_found(found.token, &found.keys, found.step, now);
    }

    pub(super) fn now(&self) -> Time {
        Time(self.base.elapsed().as_millis() as u64)
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

    /// Carries out all that the core wants, and reports to it what failed at once.
    fn settle(&mut self) {
        loop {
            while let Some(output) = self.core.poll_output() {
                self.carry_out(output);
            }
            match self.lost.pop_front() {
                Some(recipient) => self.deliver(recipient, Err(Lost)),
                None => break,
            }
        }
        let core = &self.core;
        let drained: Vec<_> = self
            .drains
            .extract_if(.., |(service, _)| core.is_drained(*service))
            .collect();
        for (service, done) in drained {
            self.remove_service(service);
            let _ = done.send(());
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Run(op) => self.send_pipeline(Recipient::Core(op.token), op.commands),
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
                    return;
                };
                let handling = served.handler.handle(Request::new(request));
                let limit = served.handler_timeout;
                let task = self.handlers.spawn(async move {
                    let handled = timeout(limit, handling).await;
                    handled.unwrap_or_else(|_| {
                        Outcome::Bad(format!("the handler did not end within {limit:?}").into())
                    })
                });
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
            Output::OwnedWritten {
                owned,
                version,
                result,
            } => {
                let done = |(other, waits_for, _): &mut (OwnedId, u64, Written)| {
                    *other == owned && *waits_for <= version
                };
                for (_, _, written) in self.writing.extract_if(.., done) {
                    let _ = written.send(result.clone());
                }
            }
            Output::Watched { watch, event } => self.watched(watch, event),
        }
    }

    fn watched(&mut self, watch: WatchId, event: KeepEvent) {
        if self.directory.is(watch) {
            return self.directory.hear(event);
        }
        let Some(watcher) = self.watchers.get_mut(&watch) else {
            return;
        };
        if watcher.overflowed {
            return;
        }
        // What does not fit is made up for by a gap, once there is room.
        watcher.overflowed = watcher.events.try_send(event).is_err();
        self.has_slow_watchers |= watcher.overflowed;
    }

    /// Closing is done when all handlers have returned and all that was to be written is written.
    fn is_closed(&self) -> bool {
        let is_idle = || {
            let mut services = self.services.keys();
            services.all(|service| self.core.is_drained(*service))
        };
        self.closing.is_some() && self.lost.is_empty() && self.fleet.is_quiet() && is_idle()
    }
}

pub(super) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A number for this run of the program: 16 hex digits, of which a later run has higher ones.
pub(super) fn new_instance() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let unix_us = since.map_or(0, |since| since.as_micros() as u64);
    format!("{:016x}", unix_us << 8 | u64::from(fastrand::u8(..)))
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}
