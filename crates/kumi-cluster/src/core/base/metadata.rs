//! The metadata of a member: roles, version, addresses of its services, and its name.
//!
//! The core carries the bytes and never acts on them. They are written here and read here; bytes that some other
//! version wrote read as empty instead of failing, because a member's label is no reason to refuse the member.
//!
//! ```text
//!   version: len, text | roles: count, (len, text)* | services: count, (len, name, len, address)*
//!   | the node's name: len, text
//! ```
//!
//! A node of an earlier version does not write the name, and does not read what follows the services.
//!
//! Lengths and counts are one byte below 128 and two up to the limit, seven bits in each, the lower ones first.

use crate::core::base::error::MembershipError;
use crate::core::base::identity::NodeUid;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use kumi_common::{Name as NodeName, NameAndLife};

/// The most metadata that travels with a record, in bytes.
pub const MAX_METADATA_BYTES: usize = 512;

/// Encoded metadata, cheap to clone.
///
/// ```
/// use kumi_cluster::MemberMetadata;
///
/// let metadata = MemberMetadata::build("1.2.0", &["worker"], &[("http", "10.0.0.1:80")])?;
/// assert_eq!(metadata.version(), "1.2.0");
/// assert_eq!(metadata.roles(), ["worker"]);
/// assert_eq!(metadata.services(), [("http", "10.0.0.1:80")]);
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberMetadata(Option<Arc<[u8]>>);

/// No version, no roles and no services.
const NOTHING: &[u8] = &[0, 0, 0];

/// What the bytes say once they are read.
#[derive(Debug, Default)]
struct Parsed<'a> {
    version: &'a str,
    roles: Vec<&'a str>,
    services: Vec<(&'a str, &'a str)>,
}

impl MemberMetadata {
    /// Empty metadata. Allocates nothing.
    pub const EMPTY: Self = Self(None);

    /// Writes metadata from its parts.
    pub fn build(
        version: &str,
        roles: &[&str],
        services: &[(&str, &str)],
    ) -> Result<Self, MembershipError> {
        let mut out = Vec::new();
        put(&mut out, version);
        count(&mut out, roles.len());
        for role in roles {
            put(&mut out, role);
        }
        count(&mut out, services.len());
        for (name, address) in services {
            put(&mut out, name);
            put(&mut out, address);
        }
        Self::from_bytes(&out)
    }

    /// Takes bytes as they are.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MembershipError> {
        if bytes.len() > MAX_METADATA_BYTES {
            return Err(MembershipError::MetadataTooLarge { len: bytes.len() });
        }
        Ok(match bytes {
            [] => Self::EMPTY,
            bytes => Self(Some(bytes.into())),
        })
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The version of the program that the member runs.
    pub fn version(&self) -> &str {
        self.parsed().version
    }

    /// The roles of the member.
    pub fn roles(&self) -> Vec<&str> {
        self.parsed().roles
    }

    /// Names of services and where they are reached.
    pub fn services(&self) -> Vec<(&str, &str)> {
        self.parsed().services
    }

    /// The address of one service.
    pub fn service(&self, name: &str) -> Option<&str> {
        let services = self.parsed().services.into_iter();
        let mut found = services.filter(|(known, _)| *known == name);
        found.next().map(|(_, address)| address)
    }

    /// The same with another address of one service, or without that service. Version, roles, other services and the name
    /// stay; bytes that [`build`](Self::build) did not write are replaced.
    ///
    /// ```
    /// use kumi_cluster::MemberMetadata;
    ///
    /// let metadata = MemberMetadata::build("1.2.0", &["worker"], &[("http", "10.0.0.1:80")])?;
    /// let metadata = metadata.with_service("store", Some("10.0.0.1:6379"))?.with_service("http", None)?;
    /// assert_eq!(metadata.services(), [("store", "10.0.0.1:6379")]);
    /// assert_eq!(metadata.roles(), ["worker"]);
    /// # Ok::<(), kumi_cluster::core::MembershipError>(())
    /// ```
    pub fn with_service(&self, name: &str, address: Option<&str>) -> Result<Self, MembershipError> {
        let mut parsed = self.parsed();
        parsed.services.retain(|(known, _)| *known != name);
        parsed
            .services
            .extend(address.map(|address| (name, address)));
        self.rebuilt(&parsed)
    }

    /// The same with other roles.
    pub fn with_roles(&self, roles: &[&str]) -> Result<Self, MembershipError> {
        let mut parsed = self.parsed();
        parsed.roles = roles.to_vec();
        self.rebuilt(&parsed)
    }

    fn rebuilt(&self, parsed: &Parsed<'_>) -> Result<Self, MembershipError> {
        let built = Self::build(parsed.version, &parsed.roles, &parsed.services)?;
        match self.name() {
            Some(name) => built.with_name(&name),
            None => Ok(built),
        }
    }

    /// The name of the node; `None` where it announces none, as nodes of earlier versions do.
    pub fn name(&self) -> Option<NodeName> {
        let (_, rest) = parse(self.as_bytes())?;
        name_in(rest)
    }

    /// The same with this name of the node, instead of the one that it has. The name is part of the 512 bytes. Bytes that
    /// [`build`](Self::build) did not write stay as they are, and have no name.
    pub fn with_name(&self, name: &NodeName) -> Result<Self, MembershipError> {
        let bytes = match self.as_bytes() {
            [] => NOTHING,
            bytes => bytes,
        };
        let Some((_, rest)) = parse(bytes) else {
            return Ok(self.clone());
        };
        let is_foreign = !rest.is_empty() && name_in(rest).is_none();
        let mut out = match bytes.strip_suffix(rest) {
            Some(before) if !is_foreign => before.to_vec(),
            _ => return Ok(self.clone()),
        };
        put(&mut out, name.as_str());
        Self::from_bytes(&out)
    }

    /// `name~life` of a node with this metadata; `None` for a node without a name.
    pub(crate) fn name_and_life(&self, uid: NodeUid) -> Option<NameAndLife> {
        self.name().map(|name| name.with_life(uid))
    }

    fn parsed(&self) -> Parsed<'_> {
        let read = parse(self.as_bytes()).map(|(parsed, _)| parsed);
        read.unwrap_or_default()
    }
}

impl Default for MemberMetadata {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for MemberMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberMetadata({} bytes)", self.as_bytes().len())
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// What does not fit two groups of seven bits is past the limit of the whole anyway.
fn count(out: &mut Vec<u8>, len: usize) {
    let low = (len & 0x7f) as u8;
    match len >> 7 {
        0 => out.push(low),
        high => out.extend_from_slice(&[low | 0x80, (high & 0x7f) as u8]),
    }
}

/// What the bytes say, and what follows the services.
fn parse(bytes: &[u8]) -> Option<(Parsed<'_>, &[u8])> {
    let (version, mut rest) = text(bytes)?;
    let mut parsed = Parsed {
        version,
        ..Parsed::default()
    };
    let (roles, after) = number(rest)?;
    rest = after;
    for _ in 0..roles {
        let (role, after) = text(rest)?;
        parsed.roles.push(role);
        rest = after;
    }
    let (services, after) = number(rest)?;
    rest = after;
    for _ in 0..services {
        let (name, after) = text(rest)?;
        let (address, after) = text(after)?;
        parsed.services.push((name, address));
        rest = after;
    }
    Some((parsed, rest))
}

/// The name that follows the services.
fn name_in(rest: &[u8]) -> Option<NodeName> {
    let (name, _) = text(rest)?;
    NodeName::new(name).ok()
}

fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = number(bytes)?;
    let (text, rest) = rest.split_at_checked(len)?;
    Some((core::str::from_utf8(text).ok()?, rest))
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [low @ ..0x80, rest @ ..] => Some((usize::from(*low), rest)),
        [low, high @ 1..0x80, rest @ ..] => {
            Some((usize::from(*low & 0x7f) | usize::from(*high) << 7, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn metadata_past_the_limit_is_refused() {
        let long = [b'x'; MAX_METADATA_BYTES + 1];
        assert_eq!(
            MemberMetadata::from_bytes(&long),
            Err(MembershipError::MetadataTooLarge { len: 513 })
        );
        assert!(MemberMetadata::from_bytes(&long[1..]).is_ok());
        let role = "r".repeat(200);
        assert!(MemberMetadata::build("1", &[&role, &role, &role], &[]).is_err());
    }

    #[test]
    fn one_long_text_may_fill_it_and_the_refusal_names_the_whole() {
        let room = MAX_METADATA_BYTES - 8;
        let text = "v".repeat(room);
        let metadata = MemberMetadata::build("1", &[], &[("k", &text)]).expect("just fits");
        assert_eq!(metadata.as_bytes().len(), MAX_METADATA_BYTES);
        assert_eq!(metadata.services(), [("k", &*text)]);
        let roles = vec!["r"; 200];
        let metadata = MemberMetadata::build("", &roles, &[]).expect("short");
        assert_eq!(metadata.roles(), roles);
        for len in [room + 1, 70_000] {
            let refused = MemberMetadata::build("1", &[], &[("k", &"v".repeat(len))]);
            let len = len + 8;
            assert_eq!(refused, Err(MembershipError::MetadataTooLarge { len }));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_as_something(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..513)) {
            let metadata = MemberMetadata::from_bytes(&bytes).expect("at most 512");
            let parts = (metadata.version(), metadata.roles(), metadata.services());
            let written = MemberMetadata::build(parts.0, &parts.1, &parts.2).expect("no longer than it was");
            proptest::prop_assert_eq!(parts, (written.version(), written.roles(), written.services()));
        }
    }

    #[test]
    fn a_name_is_added_and_replaced_and_changes_nothing_else() {
        let [first, second] = ["web-1", "web-2"].map(|name| NodeName::new(name).expect("a name"));
        let parts = MemberMetadata::build("1", &["web"], &[("http", "a:80")]).expect("short");
        for unnamed in [MemberMetadata::EMPTY, parts] {
            assert_eq!(unnamed.name(), None);
            let named = unnamed.with_name(&first).expect("short");
            assert_eq!(named.name(), Some(first.clone()));
            let uid = NodeUid::from_raw(0xff);
            let written = named.name_and_life(uid).expect("it has a name");
            assert_eq!(written.as_str(), "web-1~00000000000000ff");
            let again = named.with_name(&second).expect("short");
            assert_eq!(again.name(), Some(second.clone()));
            for named in [named, again] {
                assert_eq!(named.version(), unnamed.version());
                assert_eq!(named.roles(), unnamed.roles());
                assert_eq!(named.services(), unnamed.services());
            }
        }
    }

    #[test]
    fn a_name_needs_room_and_foreign_bytes_have_none() {
        let name = NodeName::new("web-1").expect("a name");
        let full = "v".repeat(MAX_METADATA_BYTES - 8);
        let full = MemberMetadata::build("1", &[], &[("k", &full)]).expect("just fits");
        let refused = full.with_name(&name);
        let len = MAX_METADATA_BYTES + 6;
        assert_eq!(refused, Err(MembershipError::MetadataTooLarge { len }));
        // The last ones are of some other writer behind what reads as a version, roles and services.
        for bytes in [&[9][..], &[0, 3, 1], &[0, 0, 0, 9], &[0, 0, 0, 1, b'_']] {
            let foreign = MemberMetadata::from_bytes(bytes).expect("short");
            assert_eq!(foreign.with_name(&name), Ok(foreign.clone()));
            assert_eq!(foreign.name(), None);
        }
    }

    #[test]
    fn foreign_bytes_read_as_nothing_said() {
        for bytes in [&[9][..], &[1, 0xff, 0, 0], &[0, 3, 1], &[0, 0, 1, 1, b'a']] {
            let metadata = MemberMetadata::from_bytes(bytes).expect("short");
            assert_eq!(metadata.version(), "");
            assert!(metadata.roles().is_empty() && metadata.services().is_empty());
            assert_eq!(metadata.as_bytes(), bytes);
        }
    }
}
