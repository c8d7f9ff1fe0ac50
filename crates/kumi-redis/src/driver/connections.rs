//! All connections to a Redis server or to the primaries of a cluster, and what they report.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Context;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::buffered::BufferedStream;
use super::fleet::Fleet;
use super::node::{Connected, Route};
use super::remote::{REMOTE_CALL_LIMIT, Remote, RemoteCall};
use super::state::Connection;
use super::waiting::Waiting;
use crate::core::Error;
use crate::core::Time;
use crate::core::slots::{Address, SlotMap};
use crate::core::strings::{Lost, Replies};

/// The time since the connections were opened.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time now.
    pub fn now(self) -> Time {
        Time(self.0.elapsed().as_millis() as u64)
    }

    /// The instant of a time.
    pub fn instant(self, time: Time) -> Instant {
        self.0 + std::time::Duration::from_millis(time.0)
    }
}

/// What happened on the connections. Pushes are handed over by [`Connections::take_in`] without being stored.
pub enum Event<T> {
    /// The replies to a pipeline, or that there are none. `T` is the tag that was given with the pipeline.
    Replied(T, Replies),
    /// All nodes were subscribed to, or one of them again: pushes may have been missed.
    Subscribed {
        /// It is not the first time.
        again: bool,
    },
    /// No node is connected any more.
    Away,
}

/// A keyspace event.
pub struct Push<'a> {
    /// The channel pattern that brought it.
    pub pattern: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// What happened to the key: `set`, `expired`.
    pub event: &'a str,
}

/// All connections to a server or to the primaries of a cluster. `T` is the tag of a pipeline.
///
/// The order of calls: [`wait`](Self::wait) until it is true, [`take_in`](Self::take_in), [`poll_event`](Self::poll_event) until
/// there is none, and [`look_after`](Self::look_after) about once a second. Dropping it closes all connections.
pub struct Connections<T> {
    pub(super) route: Arc<Route>,
    pub(super) clock: Clock,
    pub(super) fleet: Fleet<T>,
    /// Connections made or tried so far to all nodes. A number is never used twice, not even for a node that left the map of
    /// slots and came back.
    pub(super) generations: u64,
    /// Patterns over keys that every node is subscribed to, and how often the set has grown.
    pub(super) patterns: BTreeSet<String>,
    pub(super) version: u64,
    /// Flags of events that every node has to have.
    pub(super) flags: &'static str,
    /// All nodes were subscribed to at least once.
    pub(super) has_begun: bool,
    /// The map of slots is being read.
    pub(super) is_refreshing: bool,
    /// When it was last begun to be read.
    pub(super) refreshed_at: Time,
    /// More has arrived than was taken in.
    pub(super) has_more: bool,
    /// Pipelines whose replies are here: kept for its room.
    pub(super) answered: Vec<Waiting<T>>,
    pub(super) events: VecDeque<Event<T>>,
    pub(super) remote_calls: (mpsc::Sender<RemoteCall>, mpsc::Receiver<RemoteCall>),
    pub(super) tasks: JoinSet<Report>,
    pub(super) state: watch::Sender<Connection>,
}

/// The result of one of this layer's tasks.
pub(super) enum Report {
    /// A connection was tried. `version` is that of the patterns it subscribed to.
    Connected {
        address: Address,
        attempt: u64,
        version: u64,
        result: Result<Box<Connected>, Error>,
        failures: u32,
    },
    /// A node's connection for large values was opened, or could not be.
    Bulk {
        address: Address,
        generation: u64,
        stream: Option<Box<BufferedStream>>,
    },
    /// A node did not reply to a ping.
    Silent { address: Address, generation: u64 },
    /// The cluster's map of slots, or none if it could not be read.
    SlotMap(Option<SlotMap>),
    /// A task ended that has no result.
    Nothing,
}

impl<T> Connections<T> {
    pub(super) fn new(route: Arc<Route>, patterns: BTreeSet<String>, flags: &'static str) -> Self {
        Self {
            route,
            clock: Clock::start(),
            fleet: Fleet::default(),
            generations: 0,
            patterns,
            version: 0,
            flags,
            has_begun: false,
            is_refreshing: false,
            refreshed_at: Time(0),
            has_more: false,
            answered: Vec::new(),
            events: VecDeque::new(),
            remote_calls: mpsc::channel(REMOTE_CALL_LIMIT),
            tasks: JoinSet::new(),
            state: watch::Sender::new(Connection::Connected),
        }
    }

    /// The clock of all times here.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The state, for handles that follow it.
    pub fn state(&self) -> watch::Receiver<Connection> {
        self.state.subscribe()
    }

    /// Publishes that nothing more will happen.
    pub fn close(&self) {
        self.state.send_replace(Connection::Closed);
    }

    /// The server of the URL, for errors.
    pub fn server(&self) -> Arc<str> {
        self.route.server().into()
    }

    /// Why the server is away, if an attempt to connect has failed.
    pub fn away_reason(&self) -> Option<String> {
        self.state.borrow().reason().map(str::to_owned)
    }

    /// Whether the server is part of a cluster.
    pub fn is_cluster(&self) -> bool {
        self.fleet.is_cluster()
    }

    /// Whether all nodes are connected.
    pub fn all_up(&self) -> bool {
        self.fleet.all_up()
    }

    /// Whether no reply is outstanding and no event is left.
    pub fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.fleet.is_quiet()
    }

    /// All connected nodes, for tasks.
    pub fn remotes(&self) -> Vec<Remote> {
        self.fleet.remotes()
    }

    /// Whether more has arrived than one step took in: `take_in` has to be called again.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Writes what is to go out, as far as it goes without waiting.
    pub fn flush(&mut self, cx: &mut Context<'_>) {
        self.fleet.flush(cx);
    }

    /// The next event; none until `take_in` or `wait` has brought one.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        self.events.pop_front()
    }

    /// Every node has to send the events of these flags from now on.
    pub fn need_events(&mut self, flags: &'static str) {
        self.flags = flags;
    }

    /// Whether a pattern over keys is subscribed to.
    pub fn is_subscribed(&self, glob: &str) -> bool {
        self.patterns.contains(glob)
    }

    pub(super) fn lose(&mut self, tag: Option<T>) {
        self.events
            .extend(tag.map(|tag| Event::Replied(tag, Err(Lost))));
    }
}
