//! Quarantines: which authorities and uids may not be members for a while. No other module decides that.
//!
//! There are two kinds. The detector's quarantine follows every death and blocks that uid only: a restarted node may join at
//! once. The operator's quarantine blocks the authority with all its uids, and is gossiped with a version and the time that
//! remains. A version is applied once, so stale gossip does not renew a quarantine.
//!
//! A quarantine is lifted by an order with a later version and no remaining time. A member that missed that order still has the
//! earlier one, and gossips it. So a node keeps an order past its own end and past the end of every order that it replaced, and
//! includes it in comparisons for as long. The time for which it is still kept is sent along, so that all nodes drop it at about
//! the same time.

use crate::core::base::identity::{Authority, NodeUid};
use crate::core::base::reason::{QuarantineReason, ReasonText};
use crate::core::base::time::{TimerInstant, millis};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// The longest quarantine.
pub const MAX_QUARANTINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// A quarantine that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuarantineEntry {
    /// The authority that is blocked.
    pub authority: Authority,
    /// Which life of it; `None` blocks all of them.
    pub uid: Option<NodeUid>,
    /// Why.
    pub reason: QuarantineReason,
    /// Until when.
    pub expires_at: TimerInstant,
}

/// An operator's quarantine as it is gossiped: with the time that remains, because nodes do not share a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRumor {
    /// The authority that is blocked.
    pub authority: Authority,
    /// Which order of an operator this is; a later one has the higher version.
    pub version: u64,
    /// The remaining time in milliseconds; 0 lifts the quarantine.
    pub remaining_ms: u64,
    /// For how much longer the order is kept, in milliseconds, so that no earlier order is applied again.
    pub remember_ms: u64,
    /// The operator's reason.
    pub text: ReasonText,
}

/// The quarantine of a life that was declared dead.
#[derive(Clone, Debug)]
struct Detected {
    uid: NodeUid,
    reason: QuarantineReason,
    expires_at: TimerInstant,
}

/// An operator's order, in force or past its end.
#[derive(Clone, Debug)]
struct Order {
    version: u64,
    text: ReasonText,
    expires_at: TimerInstant,
    /// When the order is dropped.
    forget_at: TimerInstant,
    /// Whether it is in force and has not been reported as released.
    in_force: bool,
}

impl Order {
    /// Whether the authority is blocked. Once the release was reported it is not, also when the clock is set back.
    fn binds(&self, now: TimerInstant) -> bool {
        self.in_force && now < self.expires_at
    }
}

/// The effect of an operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderTaken {
    /// It, or a later one, was known; nothing changed.
    Known,
    /// The authority is quarantined by it from now on.
    Imposed,
    /// It ended a quarantine.
    Lifted,
    /// It is kept, but there was no quarantine to end.
    Noted,
    /// The table is full; the order was not taken.
    Full,
}

/// All quarantines of one node.
///
/// ```
/// use core::time::Duration;
/// use kumi_cluster::core::{Authority, NodeUid, QuarantineReason, QuarantineTable, TimerInstant};
///
/// let (authority, now) = (Authority::new("a:1")?, TimerInstant::ZERO);
/// let mut table = QuarantineTable::new(100, Duration::from_secs(60));
/// table.quarantine(&authority, NodeUid::from_raw(3), QuarantineReason::Unreachable, Duration::from_secs(5), now);
/// assert!(table.blocks(&authority, NodeUid::from_raw(3), now).is_some());
/// assert!(table.blocks(&authority, NodeUid::from_raw(4), now).is_none(), "a restarted node may join");
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuarantineTable {
    limit: usize,
    /// For how long an order is kept past its end.
    memory: Duration,
    detected: BTreeMap<Authority, Detected>,
    orders: BTreeMap<Authority, Order>,
    /// No entry ends before this; `None` without entries.
    next_expiry: Option<TimerInstant>,
}

impl QuarantineTable {
    /// A table of at most `limit` entries of each kind, which keeps orders for `memory` past their end. When it is full, the
    /// order past its end that would be dropped first makes room.
    pub fn new(limit: usize, memory: Duration) -> Self {
        Self {
            limit,
            memory,
            detected: BTreeMap::new(),
            orders: BTreeMap::new(),
            next_expiry: None,
        }
    }

    /// Blocks one life of an authority, in place of an earlier one; whether that changed anything. A full table takes nothing:
    /// the tombstone of the record still refuses that uid. [`QuarantineTable::order`] blocks all lives of an authority.
    pub fn quarantine(
        &mut self,
        authority: &Authority,
        uid: NodeUid,
        reason: QuarantineReason,
        ttl: Duration,
        now: TimerInstant,
    ) -> bool {
        let known = self.detected.get(authority);
        let later = known.is_none_or(|known| known.uid < uid);
        if !later || (known.is_none() && self.detected.len() >= self.limit) {
            return false;
        }
        let expires_at = now + ttl.min(MAX_QUARANTINE);
        let detected = Detected {
            uid,
            reason,
            expires_at,
        };
        self.detected.insert(authority.clone(), detected);
        self.expires(expires_at);
        true
    }

    /// For how long an order is kept past its end.
    pub fn memory(&self) -> Duration {
        self.memory
    }

    /// Applies an operator's order, given at this node or received by gossip.
    ///
    /// Only a higher version is applied. One without remaining time ends the quarantine, the detector's included.
    pub fn order(&mut self, rumor: &QuarantineRumor, now: TimerInstant) -> OrderTaken {
        let remaining = Duration::from_millis(rumor.remaining_ms).min(MAX_QUARANTINE);
        let remember = Duration::from_millis(rumor.remember_ms)
            .max(remaining)
            .min(MAX_QUARANTINE + self.memory);
        let mut forget_at = now + remember;
        let mut was_in_force = false;
        if let Some(known) = self.orders.get_mut(&rumor.authority) {
            if rumor.version <= known.version {
                // At another node it replaced an order that lasts longer than any that was known here. A difference that
                // the time on the way explains does not count.
                let longer = forget_at > known.forget_at + self.memory / 2;
                if rumor.version == known.version && longer {
                    known.forget_at = forget_at;
                }
                return OrderTaken::Known;
            }
            forget_at = forget_at.max(known.forget_at);
            was_in_force = known.in_force;
        } else if remaining.is_zero() && remember < self.memory / 4 {
            // All are about to forget it, and some have.
            return OrderTaken::Known;
        } else if !self.has_room() {
            return OrderTaken::Full;
        }
        let lifts = remaining.is_zero();
        let order = Order {
            version: rumor.version,
            text: rumor.text.clone(),
            expires_at: now + remaining,
            forget_at,
            in_force: !lifts,
        };
        self.expires(if lifts {
            order.forget_at
        } else {
            order.expires_at
        });
        self.orders.insert(rumor.authority.clone(), order);
        if !lifts {
            return OrderTaken::Imposed;
        }
        if self.clear(&rumor.authority) || was_in_force {
            OrderTaken::Lifted
        } else {
            OrderTaken::Noted
        }
    }

    /// Whether one more order can be taken in; a spent one makes room.
    fn has_room(&mut self) -> bool {
        if self.orders.len() < self.limit {
            return true;
        }
        let spent = self.orders.iter().filter(|(_, order)| !order.in_force);
        let next = spent.min_by_key(|(_, order)| order.forget_at);
        let Some(authority) = next.map(|(authority, _)| authority.clone()) else {
            return false;
        };
        self.orders.remove(&authority).is_some()
    }

    /// Lifts the detector's quarantine of an authority; whether there was one.
    pub fn clear(&mut self, authority: &Authority) -> bool {
        self.detected.remove(authority).is_some()
    }

    /// The quarantine that blocks this life of an authority: the operator's, else the detector's.
    pub fn blocks(
        &self,
        authority: &Authority,
        uid: NodeUid,
        now: TimerInstant,
    ) -> Option<QuarantineEntry> {
        self.ordered(authority, now).or_else(|| {
            let detected = self.detected.get(authority)?;
            (detected.uid == uid && now < detected.expires_at)
                .then(|| detected_entry(authority, detected))
        })
    }

    /// The operator's quarantine of an authority that is in force.
    pub fn ordered(&self, authority: &Authority, now: TimerInstant) -> Option<QuarantineEntry> {
        let order = self.orders.get(authority)?;
        order.binds(now).then(|| ordered_entry(authority, order))
    }

    /// Ends quarantines whose time is over and drops orders that need not be kept; returns the quarantines that ended.
    pub fn poll_expired(&mut self, now: TimerInstant) -> Vec<QuarantineEntry> {
        if self.next_expiry.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let mut released = Vec::new();
        self.detected.retain(|authority, detected| {
            let over = now >= detected.expires_at;
            if over {
                released.push(detected_entry(authority, detected));
            }
            !over
        });
        for (authority, order) in &mut self.orders {
            if order.in_force && now >= order.expires_at {
                order.in_force = false;
                released.push(ordered_entry(authority, order));
            }
        }
        self.orders.retain(|_, order| now < order.forget_at);
        self.next_expiry = self.earliest_after(now);
        released
    }

    /// When [`QuarantineTable::poll_expired`] is due next.
    pub fn next_expiry(&self) -> Option<TimerInstant> {
        self.next_expiry
    }

    /// The quarantines in force, sorted by authority; an operator's entry replaces the detector's.
    pub fn snapshot(&self, now: TimerInstant) -> Vec<QuarantineEntry> {
        let mut entries: BTreeMap<&Authority, QuarantineEntry> = BTreeMap::new();
        for (authority, detected) in &self.detected {
            if now < detected.expires_at {
                entries.insert(authority, detected_entry(authority, detected));
            }
        }
        for (authority, order) in &self.orders {
            if order.binds(now) {
                entries.insert(authority, ordered_entry(authority, order));
            }
        }
        entries.into_values().collect()
    }

    /// The operator's order for an authority, with the time that remains now.
    pub fn rumor(&self, authority: &Authority, now: TimerInstant) -> Option<QuarantineRumor> {
        let order = self.orders.get(authority)?;
        Some(rumor_of(authority, order, now))
    }

    /// The orders for members that missed them, with the time that remains now. Those in force come first.
    pub fn rumors(&self, now: TimerInstant) -> Vec<QuarantineRumor> {
        let mut orders: Vec<(&Authority, &Order)> = self.shared(now).collect();
        orders.sort_by_key(|(_, order)| !order.in_force);
        orders
            .into_iter()
            .map(|(authority, order)| rumor_of(authority, order, now))
            .collect()
    }

    /// Orders in force, and those past their end that are kept for at least half of `memory`. Nodes do not drop an order at
    /// the same moment, so in the last part of its time it is kept but not sent.
    fn shared(&self, now: TimerInstant) -> impl Iterator<Item = (&Authority, &Order)> {
        let least = self.memory / 2;
        self.orders.iter().filter(move |(_, order)| {
            order.binds(now) || order.forget_at.saturating_since(now) >= least
        })
    }

    /// The highest version of any order about this authority.
    pub fn version_of(&self, authority: &Authority) -> u64 {
        self.orders.get(authority).map_or(0, |order| order.version)
    }

    /// A hash over the orders for other members: equal on nodes with the same orders.
    pub(crate) fn digest(&self, now: TimerInstant) -> u64 {
        self.shared(now).fold(0, |sum, (authority, order)| {
            sum.wrapping_add(crate::core::base::hash::fold(
                authority.place(),
                order.version,
            ))
        })
    }

    /// How many entries there are, orders past their end included.
    pub fn len(&self) -> usize {
        self.detected.len() + self.orders.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn expires(&mut self, at: TimerInstant) {
        self.next_expiry = Some(self.next_expiry.map_or(at, |next| next.min(at)));
    }

    fn earliest_after(&self, now: TimerInstant) -> Option<TimerInstant> {
        let detected = self.detected.values().map(|detected| detected.expires_at);
        let orders = self.orders.values().map(|order| {
            if order.binds(now) {
                order.expires_at
            } else {
                order.forget_at
            }
        });
        detected.chain(orders).min()
    }
}

fn detected_entry(authority: &Authority, detected: &Detected) -> QuarantineEntry {
    QuarantineEntry {
        authority: authority.clone(),
        uid: Some(detected.uid),
        reason: detected.reason.clone(),
        expires_at: detected.expires_at,
    }
}

fn ordered_entry(authority: &Authority, order: &Order) -> QuarantineEntry {
    QuarantineEntry {
        authority: authority.clone(),
        uid: None,
        reason: QuarantineReason::Operator(order.text.clone()),
        expires_at: order.expires_at,
    }
}

fn rumor_of(authority: &Authority, order: &Order, now: TimerInstant) -> QuarantineRumor {
    QuarantineRumor {
        authority: authority.clone(),
        version: order.version,
        remaining_ms: if order.binds(now) {
            // Less than a millisecond must not become 0, which would lift the quarantine.
            millis(order.expires_at.saturating_since(now)).max(1)
        } else {
            0
        },
        remember_ms: millis(order.forget_at.saturating_since(now)),
        text: order.text.clone(),
    }
}

#[cfg(test)]
mod tests;
