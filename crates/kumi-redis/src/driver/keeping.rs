//! Keeping nodes connected and subscribed, and following a cluster's map of slots.
//!
//! A node is usable only while both its connections are. When either breaks, or a ping gets no reply, the node is
//! dropped and connected anew, with a pause that grows; then an event says that pushes may have been missed. Bytes that arrive
//! count as life: a reply that is on its way over a slow link is not overdue.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::connections::{Connections, Event, Report};
use super::events::{Events, ensure_events};
use super::fleet::Up;
use super::lane::{Arrivals, Bulk, Lane};
use super::node::{Connected, Route};
use super::remote::Remote;
use super::scan::refusal;
use super::state::Connection;
use super::stream::unusable;
use super::waiting::Waiting;
use crate::core::Error;
use crate::core::slots::{Address, SlotMap, name};

/// First pause before a node is connected again. It doubles up to a second.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_DOUBLINGS: u32 = 6;

/// How often a node is pinged, and how long the reply may take.
const PING_EVERY: Duration = Duration::from_secs(3);
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// How old the map of slots of a cluster without trouble may become before it is asked for again, within a second. A node
/// that joins is subscribed to soon after that, and finds requests that were made meanwhile: their TTL, 10 s by default,
/// is to be longer.
const REFRESH_MS: u64 = 4_000;

/// What a new subscription has to find out besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checks {
    /// Whether the server permits SCAN.
    pub scan: bool,
    /// Whether events of all flags arrive, where the flags cannot be read.
    pub events: bool,
}

/// All connected nodes were subscribed to one more pattern.
#[derive(Debug)]
pub struct Subscribed {
    /// They send the events that are needed.
    pub sends_events: bool,
    /// A node's error, if it does not permit SCAN.
    pub search_refused: Option<String>,
    /// The patterns that a node refused, with its error.
    pub refused: Vec<(String, String)>,
}

/// The flags of all connected nodes were looked at again.
#[derive(Debug)]
pub struct EventsChecked {
    /// Some had to be set.
    pub mended: bool,
    /// All that is needed is sent.
    pub sends_events: bool,
}

impl<T> Connections<T> {
    /// Connects to the server, or to all primaries of its cluster, and subscribes all of them to the patterns over keys.
    /// Also whether all of them send events.
    pub async fn open(
        route: Route,
        patterns: BTreeSet<String>,
        flags: &'static str,
    ) -> Result<(Self, bool), Error> {
        let route = Arc::new(route);
        let mut first = route.unless_plain(route.open(None)).await?;
        let slot_map = route.slot_map(&mut first).await;
        let slot_map = slot_map.map_err(|source| route.failed(None, source))?;
        let slot_map = slot_map.unwrap_or_else(SlotMap::single);
        if slot_map.primaries.is_empty() {
            let source = unusable("it is part of a cluster in which no node has slots");
            return Err(route.failed(None, source));
        }
        let mut connections = Self::new(route.clone(), patterns, flags);
        let channels = connections.channels();
        let mut connected = Vec::new();
        for address in &slot_map.primaries {
            let node = route.connect(name(address), &channels, flags).await?;
            connected.push((address.clone(), node));
        }
        let sends_events = connected.iter().all(|(_, node)| node.sends_events);
        let _ = connections.fleet.adopt(slot_map);
        for (address, node) in connected {
            connections.node_up(&address, node);
        }
        Ok((connections, sends_events))
    }

    /// Puts a connected node to use.
    fn node_up(&mut self, address: &Address, connected: Connected) {
        let Some(node) = self.fleet.nodes.get_mut(address) else {
            return;
        };
        // Dropping a connection that is in use would lose the replies that it waits for.
        if node.up.is_some() {
            return;
        }
        self.generations += 1;
        let generation = self.generations;
        node.generation = generation;
        node.trouble = None;
        let remote = Remote {
            address: address.clone(),
            generation,
            remote_calls: self.remote_calls.0.clone(),
        };
        self.tasks.spawn(watch_over(remote.clone()));
        let now = self.clock.now();
        node.up = Some(Up {
            commands: Lane::new(connected.commands.into_stream(), now),
            bulk: Bulk::default(),
            pushes: connected.pushes.into_stream(),
            confirming: VecDeque::new(),
            arrivals: Arrivals::new(now),
            remote,
        });
        tracing::info!(node = %address, "subscribed");
        self.publish_state();
        if self.fleet.all_up() || self.has_begun {
            let again = std::mem::replace(&mut self.has_begun, true);
            self.events.push_back(Event::Subscribed { again });
        }
    }

    pub(super) fn node_down(&mut self, address: &Address, generation: u64) {
        let Some(node) = self.fleet.nodes.get_mut(address) else {
            return;
        };
        if node.generation != generation {
            return;
        }
        let Some(up) = node.up.take() else { return };
        tracing::info!(node = %address, "connection lost");
        self.publish_state();
        if self.fleet.none_up() {
            self.events.push_back(Event::Away);
        }
        self.lose_all(up);
        self.connect(address.clone(), 0);
        self.refresh_slots(true);
    }

    /// Publishes whether all nodes are there and why one is not, if that has changed.
    fn publish_state(&self) {
        let (all_up, reason) = (self.fleet.all_up(), self.fleet.trouble());
        self.state.send_if_modified(|connection| {
            let since = match &*connection {
                Connection::Closed => return false,
                Connection::Away { since, .. } => *since,
                Connection::Connected => std::time::Instant::now(),
            };
            let next = match all_up {
                true => Connection::Connected,
                false => Connection::Away { since, reason },
            };
            let changed = *connection != next;
            *connection = next;
            changed
        });
    }

    /// Marks everything that waits for a lost connection as lost.
    fn lose_all(&mut self, mut up: Up<T>) {
        let waiting = up.commands.waiting.into_iter().chain(up.bulk.close());
        for tag in waiting.map(Waiting::into_lost) {
            self.lose(tag);
        }
    }

    /// Looks at all nodes, now and then: drops those with an overdue reply, and follows the cluster's map of slots.
    pub fn look_after(&mut self) {
        self.drop_silent_nodes();
        self.refresh_slots(false);
    }

    /// Drops nodes with an overdue reply: all replies behind it are overdue too. A connection for large values is dropped
    /// alone.
    fn drop_silent_nodes(&mut self) {
        let now = self.clock.now();
        let timeout_ms = self.route.response_timeout.as_millis() as u64;
        let silent = |up: &Up<T>| up.is_overdue(now, timeout_ms);
        let mut lost = VecDeque::new();
        for (address, node) in &mut self.fleet.nodes {
            let bulk = node.up.as_mut().map(|up| &mut up.bulk);
            if let Some(bulk) = bulk.filter(|bulk| bulk.is_overdue(now, timeout_ms)) {
                tracing::info!(node = %address, "no reply in time on the connection for large values");
                lost.extend(bulk.close());
            }
        }
        for waiting in lost {
            self.lose(waiting.into_lost());
        }
        let nodes = self.fleet.nodes.iter();
        let silent: Vec<(Address, u64)> = nodes
            .filter(|(_, node)| node.up.as_ref().is_some_and(silent))
            .map(|(address, node)| (address.clone(), node.generation))
            .collect();
        for (address, generation) in silent {
            tracing::info!(node = %address, "no reply in time");
            self.node_down(&address, generation);
        }
    }

    /// Connects a node, after a pause if it was tried before.
    fn connect(&mut self, address: Address, failures: u32) {
        let Some(node) = self.fleet.nodes.get_mut(&address) else {
            return;
        };
        self.generations += 1;
        let attempt = self.generations;
        node.attempt = attempt;
        let (route, flags, version) = (self.route.clone(), self.flags, self.version);
        let patterns = self.channels();
        self.tasks.spawn(async move {
            if failures > 0 {
                sleep(RETRY_FIRST * 2u32.pow(failures.min(RETRY_DOUBLINGS))).await;
            }
            let result = route.connect(name(&address), &patterns, flags).await;
            Report::Connected {
                address,
                attempt,
                version,
                failures: failures + u32::from(result.is_err()),
                result: result.map(Box::new),
            }
        });
    }

    /// One of this layer's tasks has ended.
    pub(super) fn reported(&mut self, report: Report) {
        match report {
            Report::Connected {
                address,
                attempt,
                version,
                result,
                failures,
            } => {
                // If not, the node has left the map of slots, and perhaps come back: there is a later attempt if it has.
                if self.fleet.awaits(&address, attempt) {
                    self.connected(address, attempt, version, result, failures);
                }
            }
            Report::Silent {
                address,
                generation,
            } => self.ping_failed(&address, generation),
            Report::Bulk {
                address,
                generation,
                stream,
            } => self.bulk_opened(&address, generation, stream),
            Report::SlotMap(slot_map) => {
                self.is_refreshing = false;
                let Some(slot_map) = slot_map else { return };
                let (missing, dropped) = self.fleet.adopt(slot_map);
                for up in dropped.into_iter().filter_map(|node| node.up) {
                    self.lose_all(up);
                }
                for address in missing {
                    self.connect(address, 0);
                }
                self.publish_state();
            }
            Report::Nothing => {}
        }
    }

    /// A node was connected, or not. `version` is that of the patterns that it was subscribed to.
    fn connected(
        &mut self,
        address: Address,
        attempt: u64,
        version: u64,
        result: Result<Box<Connected>, Error>,
        failures: u32,
    ) {
        let mut connected = match result {
            Ok(connected) if version == self.version => return self.node_up(&address, *connected),
            Ok(connected) => connected,
            Err(error) => {
                self.report_trouble(&address, &error);
                self.connect(address, failures);
                return self.refresh_slots(true);
            }
        };
        // There are more patterns now than when it began.
        let (patterns, version, flags) = (self.channels(), self.version, self.flags);
        let route = self.route.clone();
        self.tasks.spawn(async move {
            ensure_events(&mut connected.commands, flags).await;
            let pushes = &mut connected.pushes;
            let subscribed = route.subscribe(name(&address), pushes, &patterns).await;
            Report::Connected {
                address,
                attempt,
                version,
                failures: failures + u32::from(subscribed.is_err()),
                result: subscribed.map(|()| connected),
            }
        });
    }

    /// A ping was not answered in time. If bytes came meanwhile, on the connection that the reply is to come on, the link is
    /// slow and the node lives.
    fn ping_failed(&mut self, address: &Address, generation: u64) {
        let now = self.clock.now();
        let timeout_ms = PING_TIMEOUT.as_millis() as u64 / 2;
        match self.fleet.up_of(address, generation) {
            Some(up) if !up.is_overdue(now, timeout_ms) => {
                let remote = up.remote.clone();
                self.tasks.spawn(watch_over(remote));
            }
            _ => self.node_down(address, generation),
        }
    }

    /// Logs and publishes why a node cannot be connected, once for each reason: a certificate that does not fit, or a node
    /// that is gone, stays so for long.
    fn report_trouble(&mut self, address: &Address, error: &Error) {
        let Some(node) = self.fleet.nodes.get_mut(address) else {
            return;
        };
        let error = error.chain();
        if node.trouble.as_deref() == Some(&*error) {
            tracing::debug!(node = %address, %error, "cannot connect");
            return;
        }
        tracing::warn!(node = %address, %error, "cannot connect, will try again");
        node.trouble = Some(error.into());
        self.publish_state();
    }

    /// Subscribes all nodes to patterns over keys. The future does it; a node that fails there is dropped by its
    /// pings, and subscribed to everything when it comes back.
    ///
    /// A pattern that is in the set already is subscribed to all the same: the confirmation of an earlier caller may be
    /// outstanding, and may be an error, which each caller has to get.
    pub fn subscribe(
        &mut self,
        globs: Vec<String>,
        checks: Checks,
    ) -> impl Future<Output = Subscribed> + Send + use<T> {
        let prefix = self.route.channel_prefix();
        for glob in &globs {
            self.version += u64::from(self.patterns.insert(glob.clone()));
        }
        let (mut remotes, flags) = (self.fleet.remotes(), self.flags);
        let route = self.route.clone();
        async move {
            let mut subscribed = Subscribed {
                sends_events: true,
                search_refused: None,
                refused: Vec::new(),
            };
            for remote in &mut remotes {
                if checks.scan && subscribed.search_refused.is_none() {
                    subscribed.search_refused = remote.search_refused().await;
                }
                let events = ensure_events(remote, flags).await;
                if checks.events && events == Events::Unknown {
                    subscribed.sends_events &= still_sends_events(&route, remote, flags).await;
                }
                for glob in &globs {
                    let result = remote.psubscribe(&format!("{prefix}{glob}")).await;
                    if let Some(reason) = result.err().as_ref().and_then(refusal) {
                        subscribed.refused.push((glob.clone(), reason));
                    }
                }
            }
            subscribed
        }
    }

    /// Unsubscribes all nodes from a pattern over keys.
    pub fn unsubscribe(&mut self, glob: &str) {
        self.patterns.remove(glob);
        let channel = format!("{}{glob}", self.route.channel_prefix());
        // Sent here and now, so that a later subscription to the same pattern comes after it.
        for remote in self.fleet.remotes() {
            self.run_remote_call(remote.punsubscribe(&channel));
        }
    }

    /// Checks that all nodes still send the events that are needed, and sets their flags if not.
    pub fn check_events(&self) -> impl Future<Output = EventsChecked> + Send + use<T> {
        let (mut remotes, flags) = (self.fleet.remotes(), self.flags);
        let route = self.route.clone();
        async move {
            let (mut mended, mut sends_events) = (false, true);
            for remote in &mut remotes {
                match ensure_events(remote, flags).await {
                    Events::On => {}
                    Events::Mended => mended = true,
                    Events::Unknown => {
                        sends_events &= still_sends_events(&route, remote, flags).await
                    }
                }
            }
            EventsChecked {
                mended,
                sends_events,
            }
        }
    }

    /// Patterns as channels of keyspace events.
    fn channels(&self) -> Vec<String> {
        let prefix = self.route.channel_prefix();
        self.patterns
            .iter()
            .map(|glob| format!("{prefix}{glob}"))
            .collect()
    }

    /// Reads the cluster's map of slots: at once when something is wrong, else now and then.
    pub(super) fn refresh_slots(&mut self, wrong: bool) {
        let now = self.clock.now();
        let due = wrong || !self.fleet.all_up() || now.since(self.refreshed_at) >= REFRESH_MS;
        if !self.fleet.is_cluster() || self.is_refreshing || !due {
            return;
        }
        self.is_refreshing = true;
        self.refreshed_at = now;
        let (route, known) = (self.route.clone(), self.fleet.remotes());
        let addresses: Vec<Address> = self.fleet.nodes.keys().cloned().collect();
        self.tasks.spawn(async move {
            if wrong {
                sleep(Duration::from_millis(50)).await;
            }
            // A node that was taken out of the cluster still answers, with a map of nothing.
            let names_nodes = |slot_map: &SlotMap| !slot_map.primaries.is_empty();
            for mut remote in known {
                let asked = route.slot_map(&mut remote).await;
                if let Some(slot_map) = asked.ok().flatten().filter(names_nodes) {
                    return Report::SlotMap(Some(slot_map));
                }
            }
            for address in addresses.iter().map(Some).chain([None]) {
                let Ok(mut line) = route.open(address.and_then(name)).await else {
                    continue;
                };
                let asked = route.slot_map(&mut line).await;
                if let Some(slot_map) = asked.ok().flatten().filter(names_nodes) {
                    return Report::SlotMap(Some(slot_map));
                }
            }
            Report::SlotMap(None)
        });
    }
}

/// Whether a connected node sends events, where its flags cannot be read. A node that does not reply is about to be
/// connected anew, and proved then.
async fn still_sends_events(route: &Route, remote: &mut Remote, flags: &str) -> bool {
    let address = remote.address.clone();
    route
        .probe(name(&address), remote, flags)
        .await
        .unwrap_or(true)
}

/// Pings both connections of a node until one does not reply.
async fn watch_over(mut remote: Remote) -> Report {
    loop {
        sleep(PING_EVERY).await;
        if !matches!(timeout(PING_TIMEOUT, remote.answers()).await, Ok(true)) {
            return Report::Silent {
                address: remote.address,
                generation: remote.generation,
            };
        }
    }
}
