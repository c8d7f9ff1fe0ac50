//! The core behind a lock, for several owners.
//!
//! The lock is held for one call into the core and never while an event is handed out: events go into a queue under
//! the lock, and the first task that leaves it publishes them, in order, without it. A watcher may therefore call back
//! into the core without fear of a deadlock.

use super::counters::Counters;
use super::departures::{DEPARTURE_BUFFER, Item};
use super::own_life::LifeState;
use super::watch::{ClusterWatch, WATCH_BUFFER};
use crate::core::{
    Authority, ClusterEvent, ClusterProjection, Departure, GossipOutbound, MembershipRuntime,
    MembershipRuntimeOutcome, MembershipRuntimeState, MembershipSnapshot, NameAndLife,
    NodeIdentity, NodeStatus, TimerInstant,
};
use kumi_unison::driver::Subscription;
use std::collections::{BTreeSet, VecDeque};
use std::string::{String, ToString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;
use tokio::sync::{broadcast, watch};

/// A [`MembershipRuntime`] with its [`ClusterProjection`], shared. Cloning gives another handle to the same one.
///
/// ```
/// use kumi_cluster::{Authority, MembershipRuntimeConfig};
/// use kumi_cluster::core::{LocalNode, MembershipRuntime};
/// use kumi_cluster::driver::MembershipRuntimeShared;
/// use kumi_cluster::{MemberMetadata, TimerInstant};
///
/// let now = TimerInstant::from_millis(1);
/// let node = LocalNode {
///     authority: Authority::new("127.0.0.1:7000")?,
///     metadata: MemberMetadata::EMPTY,
///     unix_ms: 1_700_000_000_000,
///     uid: None,
/// };
/// let runtime = MembershipRuntime::new(MembershipRuntimeConfig::local(), node, 1, now)?;
/// let shared = MembershipRuntimeShared::new(runtime);
/// shared.with(|runtime| runtime.start_member(&[], now))?;
/// shared.turn(Vec::new(), now);
/// assert_eq!(shared.members().members.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MembershipRuntimeShared {
    inner: Arc<Mutex<Inner>>,
    counters: Arc<Counters>,
}

struct Inner {
    runtime: MembershipRuntime,
    core: ClusterProjection,
    /// Events that are not published yet. The task that leaves the lock empties it, so it holds one turn's at most.
    pending: VecDeque<ClusterEvent>,
    /// Whether a task is publishing at the moment. It publishes in order what is added meanwhile.
    publishing: bool,
    /// Lives that were reported as active and not as gone since. It changes only together with `departures`.
    lives: BTreeSet<NodeIdentity>,
    /// The life of this node itself.
    own_life: watch::Sender<LifeState>,
    /// Towards the watchers of lives; gone together with `events`.
    departures: Option<broadcast::Sender<Item>>,
    /// Towards the watchers; gone once nothing will be published any more, so that their streams end.
    events: Option<broadcast::Sender<ClusterEvent>>,
}

/// The result of one turn of the core: what to send, and when the next turn is due.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Turn {
    /// Messages for the transport.
    pub outbound: Vec<GossipOutbound>,
    /// Messages that were refused.
    pub refused: usize,
    /// When to take the next turn; `None` when the runtime has stopped.
    pub next_deadline: Option<TimerInstant>,
    /// Lives that ended in this turn.
    pub ended: Vec<NodeIdentity>,
    /// Whether a later life of this node's own authority has to be looked for, see
    /// [`MembershipRuntimeOutcome::meet`](crate::core::MembershipRuntimeOutcome::meet).
    pub meet: bool,
}

impl MembershipRuntimeShared {
    /// Takes a runtime over.
    pub fn new(runtime: MembershipRuntime) -> Self {
        Self::counted(runtime, Arc::default())
    }

    pub(super) fn counted(runtime: MembershipRuntime, counters: Arc<Counters>) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                runtime,
                core: ClusterProjection::new(),
                pending: VecDeque::new(),
                publishing: false,
                lives: BTreeSet::new(),
                own_life: watch::Sender::new(LifeState::Joining),
                departures: Some(broadcast::Sender::new(DEPARTURE_BUFFER)),
                events: Some(broadcast::Sender::new(WATCH_BUFFER)),
            })),
            counters,
        }
    }

    /// Calls into the core. Keep it short: all other callers wait.
    pub fn with<R>(&self, call: impl FnOnce(&mut MembershipRuntime) -> R) -> R {
        call(&mut self.lock().runtime)
    }

    /// Looks at what the core's events have built: the applied topology and its metrics.
    pub fn with_core<R>(&self, look: impl FnOnce(&ClusterProjection) -> R) -> R {
        look(&self.lock().core)
    }

    /// One turn: what has arrived goes in, the core is polled, its events are published.
    pub fn turn(&self, arrived: Vec<(Authority, Vec<u8>)>, now: TimerInstant) -> Turn {
        let mut turn = Turn::default();
        let mut guard = self.lock();
        let inner = &mut *guard;
        for (from, bytes) in &arrived {
            if let Err(error) = inner.runtime.handle_message(from, bytes, now) {
                tracing::debug!(peer = %from, %error, "refused a message");
                turn.refused += 1;
            }
        }
        let mut outcome = inner.runtime.poll(now);
        turn.outbound = core::mem::take(&mut outcome.gossip_outbound);
        for event in &outcome.membership_events {
            tracing::debug!(?event, "membership");
        }
        turn.ended = ended(&outcome.member_events);
        turn.meet = outcome.meet.is_some();
        inner.note_lives(&outcome);
        inner.note_own_life();
        let quarantines = inner.runtime.quarantine_snapshot();
        inner
            .pending
            .extend(inner.core.absorb(&outcome, quarantines));
        turn.next_deadline = inner.runtime.next_deadline();
        drop(guard);
        self.publish();
        turn
    }

    /// The active members now.
    pub fn members(&self) -> MembershipSnapshot {
        self.lock().runtime.snapshot()
    }

    /// The identity of this node; it changes when the node had to take a new uid.
    pub fn identity(&self) -> NodeIdentity {
        self.lock().runtime.identity()
    }

    /// `name~life` of a life that the core has a record of; `None` for a node without a name.
    pub(super) fn name_and_life(&self, identity: &NodeIdentity) -> Option<NameAndLife> {
        let inner = self.lock();
        let record = inner.runtime.table().record(&identity.authority);
        let record = record.filter(|record| record.uid == identity.uid)?;
        record.metadata.name_and_life(record.uid)
    }

    /// Whether the core has a record of a life of this authority, active or not.
    pub(super) fn has_record(&self, authority: &Authority) -> bool {
        self.lock().runtime.table().record(authority).is_some()
    }

    /// Whether the runtime is started, and as what.
    pub fn state(&self) -> MembershipRuntimeState {
        self.lock().runtime.state()
    }

    /// Everything that happens from now on, and the members at this moment. Dropping it cancels it.
    pub fn subscribe(&self) -> ClusterWatch {
        let inner = self.lock();
        let events = match &inner.events {
            Some(events) => Subscription::new(events.subscribe()),
            None => Subscription::ended(),
        };
        let first = inner.runtime.snapshot();
        drop(inner);
        ClusterWatch::new(first, events, self.counters.clone())
    }

    /// The lives that are active, and what becomes of them from now on.
    pub(super) fn lives(&self) -> (Arc<[NodeIdentity]>, Subscription<Item>) {
        let inner = self.lock();
        let departures = match &inner.departures {
            Some(departures) => Subscription::new(departures.subscribe()),
            None => Subscription::ended(),
        };
        (inner.lives.iter().cloned().collect(), departures)
    }

    /// The life of this node itself, from now on.
    pub(super) fn own_life(&self) -> watch::Receiver<LifeState> {
        self.lock().own_life.subscribe()
    }

    /// Ends all watches, once they have read what was published.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.own_life.send_replace(LifeState::Ended);
        inner.events = None;
        inner.departures = None;
    }

    fn publish(&self) {
        let mut inner = self.lock();
        if inner.publishing {
            return;
        }
        while !inner.pending.is_empty() {
            let batch = core::mem::take(&mut inner.pending);
            let events = inner.events.clone();
            inner.publishing = true;
            drop(inner);
            for event in batch {
                // Without a watcher the send fails, which is fine.
                let _ = events.as_ref().map(|events| events.send(event));
            }
            inner = self.lock();
            inner.publishing = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Updates the active uids and queues departures. Sending does not wait, so it is done under the lock: a watcher that begins finds
    /// each life either in the set or among what it is sent.
    fn note_lives(&mut self, outcome: &MembershipRuntimeOutcome) {
        for event in &outcome.member_events {
            if let ClusterEvent::MemberStatusChanged {
                node_id,
                authority,
                from: None,
                to,
                ..
            } = event
                && to.is_active()
            {
                // A node that starts again before any member knew it takes another uid without an event.
                self.lives.retain(|life| life.authority != *authority);
                self.lives.insert(NodeIdentity {
                    authority: authority.clone(),
                    uid: *node_id,
                });
            }
        }
        let departed = outcome.departures.iter().cloned().map(Item::Departed);
        let skipped = Some(outcome.departures_skipped).filter(|skipped| *skipped > 0);
        for item in departed.chain(skipped.map(Item::Skipped)) {
            if let Item::Departed(departure) = &item {
                log(departure);
                self.lives.remove(departure.identity());
                // The two lists do not say which came first. A life that is gone does not come back; one that was only
                // forgotten may have been learned again in the same turn.
                if let Departure::Forgotten { identity, .. } = departure
                    && self.is_active(identity)
                {
                    self.lives.insert(identity.clone());
                }
            }
            // Without a watcher the send fails, which is fine.
            let _ = self.departures.as_ref().map(|watchers| watchers.send(item));
        }
        if outcome.departures_skipped > 0 {
            let members = self.runtime.snapshot().members;
            self.lives = members.iter().map(|member| member.identity()).collect();
        }
    }

    fn note_own_life(&self) {
        let state = match self.runtime.status() {
            Some(NodeStatus::Joining) => LifeState::Joining,
            Some(NodeStatus::Up | NodeStatus::Suspect) => {
                LifeState::Up(self.runtime.identity().uid)
            }
            // An observer is never a member.
            None if self.runtime.state() == MembershipRuntimeState::Client => LifeState::Joining,
            _ => LifeState::Ended,
        };
        self.own_life.send_if_modified(|known| {
            let is_new = *known != state;
            *known = state;
            is_new
        });
    }

    /// Whether the core holds this life to be active. A core that has stopped holds none.
    fn is_active(&self, identity: &NodeIdentity) -> bool {
        let is_running = self.runtime.state() != MembershipRuntimeState::Stopped;
        let record = self.runtime.table().record(&identity.authority);
        is_running
            && record.is_some_and(|record| record.uid == identity.uid && record.status.is_active())
    }
}

impl core::fmt::Debug for MembershipRuntimeShared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("MembershipRuntimeShared")
            .field(&self.identity())
            .finish()
    }
}

fn log(departure: &Departure) {
    let name = || {
        let name = departure.name_and_life();
        name.map_or_else(|| departure.identity().to_string(), String::from)
    };
    match departure {
        Departure::Gone { cause, .. } => {
            tracing::debug!(node = %name(), ?cause, "a life of a node is over");
        }
        Departure::Forgotten { .. } => {
            tracing::debug!(node = %name(), "a life of a node is out of sight");
        }
    }
}

fn ended(events: &[ClusterEvent]) -> Vec<NodeIdentity> {
    let identities = events.iter().filter_map(|event| match event {
        ClusterEvent::MemberStatusChanged {
            node_id,
            authority,
            to,
            ..
        } if to.is_terminal() => Some(NodeIdentity {
            authority: authority.clone(),
            uid: *node_id,
        }),
        _ => None,
    });
    identities.collect()
}
