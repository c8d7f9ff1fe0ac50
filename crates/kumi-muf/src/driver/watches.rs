//! Watches over kept values: the recipients of events, and which of them were too slow.

use tokio::sync::mpsc;

use crate::core::{IdMap, KeepEvent, KeepPattern, WatchId};

/// A watch: where its events go, and whether the receiver was too slow.
struct Watcher {
    pattern: KeepPattern,
    events: mpsc::Sender<KeepEvent>,
    overflowed: bool,
}

/// All watches of handles.
#[derive(Default)]
pub(super) struct Watches {
    watchers: IdMap<WatchId, Watcher>,
    has_slow: bool,
}

impl Watches {
    pub(super) fn add(
        &mut self,
        watch: WatchId,
        pattern: KeepPattern,
        events: mpsc::Sender<KeepEvent>,
    ) {
        let watcher = Watcher {
            pattern,
            events,
            overflowed: false,
        };
        self.watchers.insert(watch, watcher);
    }

    /// Forgets a watch. Returns the keys that no other watch needs.
    pub(super) fn remove(&mut self, watch: WatchId) -> Option<String> {
        let glob = self.watchers.remove(&watch)?.pattern.key_glob();
        (!self.need(&glob)).then_some(glob)
    }

    /// Whether a watch is over exactly these keys.
    pub(super) fn need(&self, glob: &str) -> bool {
        let mut watchers = self.watchers.values();
        watchers.any(|watcher| watcher.pattern.key_glob() == glob)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    /// Whether one of them was too slow and is owed a gap.
    pub(super) fn has_slow(&self) -> bool {
        self.has_slow
    }

    /// Values that a snapshot may show this watch now. A quarter of its events is left to changes.
    pub(super) fn room(&self, watch: WatchId) -> Option<usize> {
        let watcher = self.watchers.get(&watch)?;
        let (free, limit) = (watcher.events.capacity(), watcher.events.max_capacity());
        Some(match watcher.overflowed {
            true => 0,
            false => free.saturating_sub(limit / 4),
        })
    }

    /// Hands an event to its watch. What does not fit is made up for by a gap, once there is room.
    pub(super) fn show(&mut self, watch: WatchId, event: KeepEvent) {
        let Some(watcher) = self.watchers.get_mut(&watch) else {
            return;
        };
        if !watcher.overflowed {
            watcher.overflowed = watcher.events.try_send(event).is_err();
            self.has_slow |= watcher.overflowed;
        }
    }

    /// The watches that were too slow and have room again.
    pub(super) fn recovered(&mut self) -> Vec<WatchId> {
        let roomy =
            |watcher: &Watcher| watcher.events.capacity() >= watcher.events.max_capacity() / 2;
        let mut recovered = Vec::new();
        for (watch, watcher) in &mut self.watchers {
            if watcher.overflowed && roomy(watcher) {
                watcher.overflowed = false;
                recovered.push(*watch);
            }
        }
        self.has_slow = self.watchers.values().any(|watcher| watcher.overflowed);
        recovered
    }
}
