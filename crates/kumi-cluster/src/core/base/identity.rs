//! The identity of a node: the address under which it is reached, and which of its lives this is.
//!
//! An authority is stable over restarts, a uid is not. Of two uids on one authority the higher one is the later life,
//! because a uid begins with the time of the start.

use crate::core::base::error::MembershipError;
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use kumi_common::Name;

/// One life of a node: its start in milliseconds since 1970 and 22 random bits. Workers of jobs and MUF instances have
/// lives of the same form.
pub use kumi_common::Life as NodeUid;

/// The longest name of a cluster, in bytes.
pub const MAX_CLUSTER_NAME_BYTES: usize = 64;

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
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
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

    /// The name of a node at this address that was given none: the address in lower case, `10.0.0.1-7400` for
    /// `10.0.0.1:7400`.
    pub fn default_name(&self) -> Name {
        Name::fitted(&self.0)
    }

    /// Where this authority sits on the ring.
    pub(crate) fn place(&self) -> u64 {
        crate::core::base::hash::bytes(self.0.as_bytes())
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
    fn an_authority_is_refused_when_it_could_not_be_shown() {
        for text in ["", "a b", "a\nb", "é:1", "\u{7f}"] {
            assert_eq!(Authority::new(text), Err(MembershipError::InvalidAuthority));
        }
        let long = "a".repeat(MAX_AUTHORITY_BYTES + 1);
        assert!(Authority::new(&long).is_err());
        assert!(Authority::new(&long[1..]).is_ok());
    }
}
