//! What is reported to the operator once and not with every message: peers that were refused, and two nodes with one address.

use super::clock::Now;
use crate::core::base::identity::{Authority, NodeUid};
use crate::core::base::time::TimerInstant;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

/// The most peers whose refusal is remembered, so that it is reported once.
const MAX_REFUSED_PEERS: usize = 256;
/// The most authorities that are looked at for conflicts.
const MAX_CONFLICTS: usize = 64;
/// So many messages of an earlier uid, while the later one sends messages too, are a conflict.
const CONFLICT_TIMES: u32 = 3;

/// Two uids of one authority that both send messages.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    other: NodeUid,
    times: u32,
    /// When the earlier uid last sent a message.
    heard_at: TimerInstant,
}

#[derive(Debug, Default)]
pub(crate) struct Reports {
    refused_peers: BTreeSet<Authority>,
    conflicts: BTreeMap<Authority, Conflict>,
}

impl Reports {
    /// Notes that messages of a peer are refused; whether that has to be reported.
    pub(crate) fn refused(&mut self, peer: &Authority) -> bool {
        self.refused_peers.len() < MAX_REFUSED_PEERS && self.refused_peers.insert(peer.clone())
    }

    /// Notes a message of an earlier uid of an authority whose later uid sends messages too; whether that has to be
    /// reported. After `pause` without such a message, counting starts over.
    pub(crate) fn conflict(
        &mut self,
        authority: &Authority,
        other: NodeUid,
        pause: Duration,
        now: Now,
    ) -> bool {
        self.conflicts
            .retain(|_, conflict| now.own.saturating_since(conflict.heard_at) <= pause);
        if self.conflicts.len() >= MAX_CONFLICTS && !self.conflicts.contains_key(authority) {
            return false;
        }
        let first = Conflict {
            other,
            times: 0,
            heard_at: now.own,
        };
        let conflict = self.conflicts.entry(authority.clone()).or_insert(first);
        if conflict.other != other {
            *conflict = first;
        }
        conflict.heard_at = now.own;
        conflict.times = conflict.times.saturating_add(1);
        conflict.times == CONFLICT_TIMES
    }

    pub(crate) fn forget_conflict(&mut self, authority: &Authority) {
        self.conflicts.remove(authority);
    }

    pub(crate) fn clear_conflicts(&mut self) {
        self.conflicts.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.refused_peers.len() + self.conflicts.len()
    }
}
