//! The name of a node: what its lives have in common, wherever it runs.

use crate::error::MembershipError;
use crate::identity::{Authority, NodeUid};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// The longest name of a node, in bytes.
pub const MAX_NODE_NAME_BYTES: usize = 63;

/// What is kept of the end of an address that is too long for a name: a hyphen and a port.
const END_BYTES: usize = 6;

/// A node's name, `[a-z0-9][a-z0-9.-]{0,62}`. Cheap to clone.
///
/// A name with the uid of a life is written `name~life`, the form that owners of jobs have.
///
/// ```
/// use kumi_cluster::{NodeName, NodeUid};
///
/// let name = NodeName::new("web-1")?;
/// assert_eq!(name.with_life(NodeUid::from_raw(42)), "web-1~000000000000002a");
/// assert!(NodeName::new("Web 1").is_err());
/// # Ok::<(), kumi_cluster::MembershipError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// Takes a name of 1 to 63 lower-case letters, digits, dots and hyphens that begins with a letter or a digit.
    pub fn new(text: &str) -> Result<Self, MembershipError> {
        let is_name = (1..=MAX_NODE_NAME_BYTES).contains(&text.len())
            && text.bytes().all(may_hold)
            && text.bytes().next().is_some_and(may_begin);
        match is_name {
            true => Ok(Self(text.into())),
            false => Err(MembershipError::InvalidNodeName),
        }
    }

    /// The name of a node that was given none: its address in lower case, `10.0.0.1-7400` for `10.0.0.1:7400`. An
    /// address that is too long loses the end of its host.
    pub fn of_authority(authority: &Authority) -> Self {
        let bytes = authority.as_str().bytes();
        let bytes = bytes.filter(|byte| !matches!(byte, b'[' | b']'));
        let fitted = bytes.map(|byte| match byte.to_ascii_lowercase() {
            byte if may_hold(byte) => char::from(byte),
            _ => '-',
        });
        let mut name: String = fitted.skip_while(|c| matches!(c, '.' | '-')).collect();
        if name.is_empty() {
            name.push_str("node");
        }
        if name.len() > MAX_NODE_NAME_BYTES {
            let end = name.len() - END_BYTES;
            name.replace_range(MAX_NODE_NAME_BYTES - END_BYTES..end, "");
        }
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name with one life of the node: `name~life`, the life being 16 hexadecimal digits.
    pub fn with_life(&self, life: NodeUid) -> String {
        format!("{self}~{life}")
    }
}

fn may_begin(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn may_hold(byte: u8) -> bool {
    may_begin(byte) || matches!(byte, b'.' | b'-')
}

impl core::str::FromStr for NodeName {
    type Err = MembershipError;

    fn from_str(text: &str) -> Result<Self, MembershipError> {
        Self::new(text)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lower_case_letters_digits_dots_and_hyphens() {
        let longest = "a".repeat(MAX_NODE_NAME_BYTES);
        for right in ["a", "0", "web-1", "node3.example", "a-", &longest] {
            let name = NodeName::new(right).expect(right);
            assert_eq!(name.as_str(), right);
        }
        let long = "a".repeat(MAX_NODE_NAME_BYTES + 1);
        for wrong in [
            "", "-a", ".a", "Web", "a b", "a~b", "a_b", "a:1", "é", "a\n", &long,
        ] {
            let refused = NodeName::new(wrong);
            assert_eq!(refused, Err(MembershipError::InvalidNodeName), "{wrong:?}");
        }
    }

    #[test]
    fn a_node_without_a_name_is_named_after_its_address() {
        let check = |address: &str, expected: &str| {
            let authority = Authority::new(address).expect("an address");
            let name = NodeName::of_authority(&authority);
            assert_eq!(name.as_str(), expected);
            assert!(NodeName::new(expected).is_ok(), "{expected}");
        };
        check("10.0.0.1:7400", "10.0.0.1-7400");
        check("Node_3.Example:7400", "node-3.example-7400");
        check("[::1]:7400", "1-7400");
        check("[fe80::1%eth0]:7400", "fe80--1-eth0-7400");
        check("[]", "node");
        let host = "h".repeat(200);
        let expected = format!("{}-65535", &host[..MAX_NODE_NAME_BYTES - END_BYTES]);
        check(&format!("{host}:65535"), &expected);
    }
}
