//! The identity of a node: the address under which it is reached, and which of its lives this is.
//!
//! An authority is stable over restarts, a uid is not. Of two uids on one authority the higher one is the later life,
//! because a uid begins with the time of the start.

use crate::error::MembershipError;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;

/// The longest authority, in bytes.
pub const MAX_AUTHORITY_BYTES: usize = 255;

/// The address under which a node is reached, `host:port` as a rule. Cheap to clone.
///
/// Printable ASCII without spaces, so that it can be shown and logged as it is.
///
/// ```
/// use kumi_cluster::Authority;
///
/// let authority = Authority::new("10.0.0.1:7000")?;
/// assert_eq!(authority.as_str(), "10.0.0.1:7000");
/// assert!(Authority::new("two words").is_err());
/// # Ok::<(), kumi_cluster::MembershipError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority(Arc<str>);

impl Authority {
    /// Takes an address that is neither empty nor too long, and that consists of visible ASCII.
    pub fn new(text: &str) -> Result<Self, MembershipError> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > MAX_AUTHORITY_BYTES || !visible {
            return Err(MembershipError::InvalidAuthority);
        }
        Ok(Self(text.into()))
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where this authority sits on the ring.
    pub(crate) fn place(&self) -> u64 {
        crate::hash::bytes(self.0.as_bytes())
    }
}

impl Borrow<str> for Authority {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl core::str::FromStr for Authority {
    type Err = MembershipError;

    fn from_str(text: &str) -> Result<Self, MembershipError> {
        Self::new(text)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One life of a node: its start in milliseconds since 1970 and 22 random bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeUid(u64);

impl NodeUid {
    /// Bits below the milliseconds.
    const RANDOM_BITS: u32 = 22;

    /// No life: a member of a static cluster from which nothing was received.
    pub const UNKNOWN: Self = Self(0);

    /// A life that begins at `unix_ms`. The random bits keep two starts within one millisecond apart.
    pub const fn new(unix_ms: u64, random: u64) -> Self {
        let below = random & ((1 << Self::RANDOM_BITS) - 1);
        Self((unix_ms << Self::RANDOM_BITS) | below)
    }

    /// A uid from its number.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The uid as a number.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// When this life began, in milliseconds since 1970.
    pub const fn unix_ms(self) -> u64 {
        self.0 >> Self::RANDOM_BITS
    }

    /// The next higher uid; `None` for the largest possible uid, which only a made-up one is.
    pub(crate) fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Debug for NodeUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for NodeUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// An authority in one of its lives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIdentity {
    /// Where the node is reached.
    pub authority: Authority,
    /// Which life of it.
    pub uid: NodeUid,
}

impl fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.authority, self.uid)
    }
}

impl fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.authority, self.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_has_the_higher_uid_whatever_the_random_bits() {
        assert!(NodeUid::new(1_700_000_000_001, 0) > NodeUid::new(1_700_000_000_000, u64::MAX));
        assert_eq!(
            NodeUid::new(1_700_000_000_001, 99).unix_ms(),
            1_700_000_000_001
        );
    }

    #[test]
    fn an_authority_is_refused_when_it_could_not_be_shown() {
        for text in ["", "a b", "a\nb", "é:1", "\u{7f}"] {
            assert_eq!(Authority::new(text), Err(MembershipError::InvalidAuthority));
        }
        let long = "a".repeat(MAX_AUTHORITY_BYTES + 1);
        assert!(Authority::new(&long).is_err());
        assert!(Authority::new(&long[1..]).is_ok());
    }
}
