//! The driver: the state of the one task that owns a unit's core and its connections.
//!
//! Its methods are in the files above this one: `handles.rs` serves the handles, `outputs.rs` carries out what the core wants,
//! `reports.rs` goes on where its tasks ended, `upkeep.rs` does what is due by the clock, and `run.rs` is the task itself.
//! Nothing is locked, because nothing is shared. Tasks and handlers are in `JoinSet`s and end with the driver.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use kumi_redis::{Checks, Clock, Connections};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::calls::Calls;
use super::directory::Directory;
use super::messages::{After, Found, Recipient, Report, Stats, Written};
use super::notifications::{Generic, Notifications};
use super::schedule::Schedule;
use super::services::Services;
use super::taps::Taps;
use super::watches::Watches;
use crate::core::{Core, OwnedId, SearchToken, ServiceId, Settings, Time, UnitName};
use crate::discovery::Info;

/// Batches of keys that searches may have ready for the core.
const FOUND_LIMIT: usize = 16;

/// See the module.
pub(super) struct Driver {
    pub(super) unit: UnitName,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) core: Core,
    pub(super) connections: Connections<Recipient>,
    pub(super) notifications: Notifications,
    pub(super) services: Services,
    pub(super) calls: Calls,
    pub(super) watches: Watches,
    pub(super) taps: Taps,
    pub(super) directory: Directory,
    /// Handles that wait until the server has an owned value, and which of its versions.
    pub(super) writing: Vec<(OwnedId, u64, Written)>,
    /// What this unit shows of itself, and the two values that show it.
    pub(super) info: Option<(Info, OwnedId, OwnedId)>,
    /// Whether this unit shows what it does: its description, its counters, and what it served.
    pub(super) is_shown: bool,
    /// Patterns whose subscriptions are not confirmed yet, once for each subscription.
    pub(super) subscribing: Vec<String>,
    pub(super) stats: Stats,
    pub(super) schedule: Schedule,
    pub(super) tasks: JoinSet<Report>,
    pub(super) found: (mpsc::Sender<Found>, mpsc::Receiver<Found>),
    /// The tasks of searches under way.
    pub(super) searches: HashMap<SearchToken, AbortHandle>,
    pub(super) closing: Option<oneshot::Sender<()>>,
    pub(super) rng: fastrand::Rng,
}

/// What a driver starts with.
pub(super) struct Start {
    pub(super) unit: UnitName,
    pub(super) instance: String,
    pub(super) settings: Settings,
    pub(super) connections: Connections<Recipient>,
    pub(super) response_timeout: Duration,
    /// How often to poll if need be.
    pub(super) poll: Option<Duration>,
    pub(super) info: Option<Info>,
    pub(super) heartbeat: Duration,
    /// Of all random numbers of this unit, from the operating system.
    pub(super) seed: u64,
}

impl Driver {
    pub(super) fn new(start: Start) -> Self {
        let mut rng = fastrand::Rng::with_seed(start.seed);
        let Start {
            instance, settings, ..
        } = start;
        let mut driver = Self {
            unit: start.unit.clone(),
            core: Core::new(start.unit, &instance, settings.clone(), rng.fork()),
            clock: start.connections.clock(),
            connections: start.connections,
            notifications: Notifications::new(start.poll, settings.poll_ms.is_none()),
            services: Services::default(),
            calls: Calls::default(),
            watches: Watches::default(),
            taps: Taps::default(),
            directory: Directory::default(),
            writing: Vec::new(),
            info: None,
            is_shown: start.info.is_some(),
            subscribing: Vec::new(),
            stats: Stats::default(),
            schedule: Schedule::new(start.heartbeat, settings.poll_ms, start.response_timeout),
            tasks: JoinSet::new(),
            found: mpsc::channel(FOUND_LIMIT),
            searches: HashMap::new(),
            closing: None,
            rng,
            settings,
        };
        if let Some(info) = start.info {
            driver.show(info, instance, start.heartbeat);
        }
        driver
    }

    /// Keeps the two values by which other units find this one.
    fn show(&mut self, mut info: Info, instance: String, heartbeat: Duration) {
        let ttl_ms = 3 * heartbeat.as_millis() as u64;
        let now = self.now();
        info.instance = instance;
        info.ttl_ms = ttl_ms;
        let shown = self.core.own_shared("_info", info.to_json(), ttl_ms, now);
        let stats = self.stats.to_json(&info.instance);
        let stats = self.core.own_shared("_stats", stats, ttl_ms, now);
        self.info = Some((info, shown, stats));
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(super) fn current_stats(&self) -> Stats {
        self.stats
            .with(self.core.backend_counters(), self.core.pending_calls())
    }

    /// Writes which services there are now. With a new one this process represents all processes of its name.
    pub(super) fn show_services(&mut self, new: bool) {
        let now = self.now();
        if let Some((info, owned, _)) = &mut self.info {
            info.services = self.services.active();
            match new {
                true => {
                    self.core.change_owned(*owned, info.to_json(), now);
                }
                false => self.core.update_owned(*owned, info.to_json(), now),
            }
        }
    }

    /// Subscribes to patterns over keys; the report goes on with what they are for.
    pub(super) fn subscribe(&mut self, globs: Vec<String>, after: After) {
        let checks = Checks {
            scan: matches!(after, After::Watch(..) | After::Serve(_) | After::Directory),
            // What else is needed was proved when the node was connected.
            events: matches!(after, After::Watch(..))
                && self.notifications.generic == Generic::Unproven,
        };
        self.subscribing.extend_from_slice(&globs);
        let subscribing = self.connections.subscribe(globs.clone(), checks);
        self.tasks.spawn(async move {
            Report::Subscribed {
                globs,
                after,
                subscribed: subscribing.await,
            }
        });
    }

    /// Subscribes to the answers of all services: other backends answer too.
    pub(super) fn watch_answers(&mut self) {
        self.subscribe(self.services.answer_globs(), After::Answers);
    }

    /// Forgets a service, and unsubscribes from what only that one served.
    pub(super) fn remove_service(&mut self, service: ServiceId) {
        self.core.remove_service(service);
        let Some(removed) = self.services.all.remove(&service) else {
            return;
        };
        if self.services.has_pattern(&removed.pattern) {
            return;
        }
        for glob in [removed.request_glob(), removed.answer_glob()] {
            if self.connections.is_subscribed(&glob) {
                self.give_up(&glob);
            }
        }
    }

    /// Pushes may have been missed.
    pub(super) fn missed(&mut self) {
        let now = self.now();
        self.core.handle_subscribed(now);
        if self.directory.is_waited_for()
            && let Some(watch) = self.directory.watch
        {
            self.core.watch_hurry(watch);
        }
        self.taps.gap();
    }
}

pub(super) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}
