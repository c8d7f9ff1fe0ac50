//! Quarantines: which authorities and uids may not be members for a while. No other module decides that.
//!
//! There are two kinds, and they are kept apart. The detector's quarantine follows every death and blocks that one uid:
//! a restarted node may join at once. The operator's blocks the authority whatever its uid, and is gossiped with a version
//! and the time that remains. A version that was seen once never counts again, so stale gossip cannot renew it.
//!
//! To lift an order is an order of its own, with a later version and no time. It has to outlive what it lifts: a member
//! that missed it still has the earlier order, and would bring it back. An order is therefore remembered for a while past
//! its own end and past the end of every order that it replaced, it is part of comparisons for as long, and the time
//! that is left of this memory travels with it, so that all forget it together and none brings it up again.

use crate::core::identity::{Authority, NodeUid};
use crate::core::time::{TimerInstant, millis};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The longest text of a reason, in bytes after escaping.
pub const MAX_REASON_BYTES: usize = 128;

/// The longest quarantine.
pub const MAX_QUARANTINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why a member is quarantined. Text from outside is escaped and cut to a limit before it gets here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuarantineReason {
    /// A quorum of monitors did not hear that uid.
    Unreachable,
    /// An operator said so.
    Operator(ReasonText),
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("unreachable"),
            Self::Operator(text) if text.as_str().is_empty() => f.write_str("by an operator"),
            Self::Operator(text) => write!(f, "by an operator ({text})"),
        }
    }
}

/// Text that is safe to show: printable ASCII, at most [`MAX_REASON_BYTES`].
///
/// ```
/// use kumi_cluster::core::ReasonText;
///
/// assert_eq!(ReasonText::escaped("disk\n\u{1b}[31m").as_str(), "disk\\n\\u{1b}[31m");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasonText(Option<Arc<str>>);

impl ReasonText {
    /// Escapes whatever could not be shown, and cuts the rest off at a character.
    pub fn escaped(raw: &str) -> Self {
        let mut text = String::new();
        for character in raw.chars() {
            let plain = character == ' ' || character.is_ascii_graphic() && character != '\\';
            let len = if plain {
                1
            } else {
                character.escape_default().len()
            };
            if text.len() + len > MAX_REASON_BYTES {
                break;
            }
            if plain {
                text.push(character);
            } else {
                text.extend(character.escape_default());
            }
        }
        Self((!text.is_empty()).then(|| text.into()))
    }

    /// Takes text that came over the wire only if it was escaped properly.
    pub(crate) fn from_wire(text: &str) -> Option<Self> {
        let shown = text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !shown || text.len() > MAX_REASON_BYTES {
            return None;
        }
        Some(Self((!text.is_empty()).then(|| text.into())))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for ReasonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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

/// An operator's quarantine as it travels: with the time that remains, because clocks are not shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineRumor {
    /// The authority that is blocked.
    pub authority: Authority,
    /// Which order of an operator this is; a later one has the higher version.
    pub version: u64,
    /// How much longer, in milliseconds; 0 lifts it.
    pub remaining_ms: u64,
    /// How much longer it is remembered, in milliseconds, so that no earlier order comes back.
    pub remember_ms: u64,
    /// What the operator said.
    pub text: ReasonText,
}

/// A life that the detector has given up.
#[derive(Clone, Debug)]
struct Detected {
    uid: NodeUid,
    reason: QuarantineReason,
    expires_at: TimerInstant,
}

/// An operator's order, in force or spent.
#[derive(Clone, Debug)]
struct Order {
    version: u64,
    text: ReasonText,
    expires_at: TimerInstant,
    /// When the version may be forgotten.
    forget_at: TimerInstant,
    /// Whether it has not been reported as released.
    in_force: bool,
}

impl Order {
    /// Whether it keeps any member out. An end that was reported stays, also when the clock is set back.
    fn binds(&self, now: TimerInstant) -> bool {
        self.in_force && now < self.expires_at
    }
}

/// What came of an operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderTaken {
    /// It, or a later one, was known.
    Known,
    /// The authority is quarantined by it from now on.
    Imposed,
    /// It ended a quarantine.
    Lifted,
    /// It is remembered, but there was nothing to end.
    Noted,
    /// There is no room for it.
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
/// assert!(table.blocks(&authority, NodeUid::from_raw(4), now).is_none(), "a restart is welcome");
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuarantineTable {
    limit: usize,
    /// How long an order is remembered past its end.
    memory: Duration,
    detected: BTreeMap<Authority, Detected>,
    orders: BTreeMap<Authority, Order>,
    /// No entry runs out before this; `None` when there is nothing to run out.
    next_expiry: Option<TimerInstant>,
}

impl QuarantineTable {
    /// A table of at most `limit` entries of each kind, which remembers spent orders for `memory`. When it is full, the
    /// order that is nearest to being forgotten makes room.
    pub fn new(limit: usize, memory: Duration) -> Self {
        Self {
            limit,
            memory,
            detected: BTreeMap::new(),
            orders: BTreeMap::new(),
            next_expiry: None,
        }
    }

    /// Blocks one life of an authority. A later life replaces an earlier one, never the other way round; whether it is
    /// new. Full tables take nothing: the tombstone of the record still refuses that uid. To block an authority whatever
    /// its life is an operator's [`QuarantineTable::order`].
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

    /// For how long an order is remembered past its end.
    pub fn memory(&self) -> Duration {
        self.memory
    }

    /// Takes an operator's order in, from here or from gossip.
    ///
    /// Only a higher version is news. One of no remaining time ends the quarantine, the detector's included.
    pub fn order(&mut self, rumor: &QuarantineRumor, now: TimerInstant) -> OrderTaken {
        let remaining = Duration::from_millis(rumor.remaining_ms).min(MAX_QUARANTINE);
        let remember = Duration::from_millis(rumor.remember_ms)
            .max(remaining)
            .min(MAX_QUARANTINE + self.memory);
        let mut forget_at = now + remember;
        let mut was_in_force = false;
        if let Some(known) = self.orders.get_mut(&rumor.authority) {
            if rumor.version <= known.version {
                // Elsewhere it has replaced an order that lasts longer than any that was known here. What it takes a
                // message to travel is no reason to remember it any longer.
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

    /// Lifts what the detector blocked.
    pub fn clear(&mut self, authority: &Authority) -> bool {
        self.detected.remove(authority).is_some()
    }

    /// The quarantine that keeps this life of an authority out, the operator's first.
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

    /// The operator's quarantine of an authority.
    pub fn ordered(&self, authority: &Authority, now: TimerInstant) -> Option<QuarantineEntry> {
        let order = self.orders.get(authority)?;
        order.binds(now).then(|| ordered_entry(authority, order))
    }

    /// Lets go of what has run out, and returns what was released by that.
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

    /// When [`QuarantineTable::poll_expired`] has something to do.
    pub fn next_expiry(&self) -> Option<TimerInstant> {
        self.next_expiry
    }

    /// What is in force, sorted by authority; an operator's entry hides the detector's.
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

    /// The operator's order for an authority as it travels now.
    pub fn rumor(&self, authority: &Authority, now: TimerInstant) -> Option<QuarantineRumor> {
        let order = self.orders.get(authority)?;
        Some(travelling(authority, order, now))
    }

    /// All orders that others should know, as they travel now: for members that missed them. Those in force come first.
    pub fn rumors(&self, now: TimerInstant) -> Vec<QuarantineRumor> {
        let mut told: Vec<(&Authority, &Order)> = self.told(now).collect();
        told.sort_by_key(|(_, order)| !order.in_force);
        told.into_iter()
            .map(|(authority, order)| travelling(authority, order, now))
            .collect()
    }

    /// Orders in force, and those spent ones that are remembered for some time yet. Nodes do not forget an order at the
    /// very same moment; the last part of its time it is kept, but no longer told.
    fn told(&self, now: TimerInstant) -> impl Iterator<Item = (&Authority, &Order)> {
        let least = self.memory / 2;
        self.orders.iter().filter(move |(_, order)| {
            order.binds(now) || order.forget_at.saturating_since(now) >= least
        })
    }

    /// The highest version of any order about this authority.
    pub fn version_of(&self, authority: &Authority) -> u64 {
        self.orders.get(authority).map_or(0, |order| order.version)
    }

    /// A number that differs, as good as always, when the orders differ that others should know.
    pub(crate) fn digest(&self, now: TimerInstant) -> u64 {
        self.told(now).fold(0, |sum, (authority, order)| {
            sum.wrapping_add(crate::core::hash::fold(authority.place(), order.version))
        })
    }

    /// How many entries there are, spent ones included.
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

fn travelling(authority: &Authority, order: &Order, now: TimerInstant) -> QuarantineRumor {
    QuarantineRumor {
        authority: authority.clone(),
        version: order.version,
        remaining_ms: if order.binds(now) {
            // A part of a millisecond is more than nothing, which would lift it.
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
