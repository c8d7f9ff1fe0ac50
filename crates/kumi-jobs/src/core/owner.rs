//! Owners: which worker holds a task.
//!
//! ```text
//! name~life                       a worker by itself
//! @cluster/name~life/part         a worker of a node of a cluster: one part of the node's life
//! ```
//! The name is `[a-z0-9][a-z0-9.-]{0,62}`, and so is the part; the cluster and the life are 16 hex digits. No name holds `@`, `/`
//! or `~`, so that no worker by itself can be taken for one of a node, nor for one of another cluster. Owners sort by
//! their text.

use super::id::ParseIdError;
use kumi_common::{InvalidNameAndLife, Name, NameAndLife};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What the owners of nodes begin with. No name begins so.
const NODE_MARK: char = '@';

/// Around the node of an owner. No name holds it.
const SEPARATOR: char = '/';

/// Hexadecimal digits of a cluster's id.
const CLUSTER_DIGITS: usize = 16;

/// A worker in one life: `name~life`, or `@cluster/name~life/part` if it belongs to a node of a cluster. A later life of a
/// name sorts higher. Cheap to clone.
///
/// ```
/// use kumi_jobs::{ClusterId, NodeLife, Owner};
///
/// let owner: Owner = "web-1~000000000000002a".parse()?;
/// assert_eq!((owner.name(), owner.life(), owner.node()), ("web-1", "000000000000002a", None));
///
/// let node: NodeLife = "@00000000000000c1/web-1~000000000000002a".parse()?;
/// let owner = node.owner("resize")?;
/// assert_eq!(owner.as_str(), "@00000000000000c1/web-1~000000000000002a/resize");
/// assert_eq!(owner.node(), Some(node));
/// # Ok::<(), kumi_jobs::ParseIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The part before `~`: the name, for a worker of a node with the mark and the cluster before it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('~').map_or("", |(name, _)| name)
    }

    /// The life: 16 hex digits.
    #[must_use]
    pub fn life(&self) -> &str {
        let rest = self.0.split_once('~').map_or("", |(_, rest)| rest);
        rest.split_once(SEPARATOR).map_or(rest, |(life, _)| life)
    }

    /// The node to which the worker belongs, if it does.
    #[must_use]
    pub fn node(&self) -> Option<NodeLife> {
        let (node, _) = self.0.rsplit_once(SEPARATOR)?;
        node.parse().ok()
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<NameAndLife> for Owner {
    fn from(written: NameAndLife) -> Self {
        Self(written.as_str().into())
    }
}

impl FromStr for Owner {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_owner = match text.starts_with(NODE_MARK) {
            false => text.parse::<NameAndLife>().is_ok(),
            true => text.rsplit_once(SEPARATOR).is_some_and(|(node, part)| {
                node.parse::<NodeLife>().is_ok() && Name::new(part).is_ok()
            }),
        };
        match is_owner {
            true => Ok(Self(text.into())),
            false => Err(ParseIdError::new(
                text,
                "an owner (name~life, or @cluster/name~life/part; the cluster and the life are 16 hex digits)",
            )),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The public id of a cluster. Its text is 16 hex digits in small letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(u64);

impl ClusterId {
    /// An id from its number.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

impl FromStr for ClusterId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == CLUSTER_DIGITS && text.bytes().all(is_digit);
        let raw = u64::from_str_radix(text, 16).ok().filter(|_| is_id);
        raw.map(Self)
            .ok_or_else(|| ParseIdError::new(text, "the id of a cluster (16 hex digits)"))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One life of a node of a cluster, `@cluster/name~life`. Its workers are owners, a part each.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeLife {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node and its life.
    pub node: NameAndLife,
}

impl NodeLife {
    /// The worker of this name in this life of the node.
    ///
    /// # Errors
    /// If the part is not `[a-z0-9][a-z0-9.-]{0,62}`.
    pub fn owner(&self, part: &str) -> Result<Owner, ParseIdError> {
        let name = Name::new(part)
            .map_err(|_| ParseIdError::new(part, "a part of a node (as a worker's name)"))?;
        Ok(Owner(format!("{self}{SEPARATOR}{name}").into()))
    }

    /// What the owners of this life begin with, and no others.
    pub(crate) fn prefix(&self) -> String {
        format!("{self}{SEPARATOR}")
    }

    /// What all owners of a cluster's nodes begin with: [`Queue::owners_after`](crate::Queue::owners_after) lists from there.
    #[must_use]
    pub fn cluster_prefix(cluster: ClusterId) -> String {
        format!("{NODE_MARK}{cluster}{SEPARATOR}")
    }
}

impl FromStr for NodeLife {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parts = text.strip_prefix(NODE_MARK);
        let parts = parts.and_then(|rest| rest.split_once(SEPARATOR));
        let parsed = parts.and_then(|(cluster, node)| {
            Some(Self {
                cluster: cluster.parse().ok()?,
                node: node.parse().map_err(|InvalidNameAndLife| ()).ok()?,
            })
        });
        parsed.ok_or_else(|| {
            ParseIdError::new(
                text,
                "a life of a node (@cluster/name~life, the cluster and the life being 16 hex digits)",
            )
        })
    }
}

impl fmt::Display for NodeLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::cluster_prefix(self.cluster), self.node)
    }
}

impl fmt::Debug for NodeLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_common::Life;

    fn name(random: &mut fastrand::Rng) -> Name {
        let length = random.usize(1..=63);
        let text: String = (0..length)
            .map(|_| char::from(*random.choice(b"abcxyz0189.-").unwrap()))
            .collect();
        Name::new(&text).unwrap_or_else(|_| Name::fitted(&text))
    }

    #[test]
    fn owners_survive_their_text() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let life = Life::from_raw(random.u64(..));
            let alone = name(&mut random).with_life(life);
            let owner = Owner::from(alone.clone());
            assert_eq!(owner.as_str().parse(), Ok(owner.clone()));
            assert_eq!(
                (owner.name(), owner.life()),
                (alone.name(), alone.life_text())
            );
            assert_eq!(owner.node(), None);

            let node = NodeLife {
                cluster: ClusterId::from_raw(random.u64(..)),
                node: alone.clone(),
            };
            assert_eq!(node.to_string().parse(), Ok(node.clone()));
            let part = name(&mut random);
            let owner = node.owner(part.as_str()).unwrap();
            assert_eq!(owner.as_str().parse(), Ok(owner.clone()));
            assert_eq!(owner.as_str(), node.prefix() + part.as_str());
            assert_eq!(
                (owner.node(), owner.life()),
                (Some(node), alone.life_text())
            );
        }
    }

    /// A text is read in one way at most, and owners are written as they were read.
    #[test]
    fn no_owner_of_one_kind_is_read_as_the_other() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut read = [0; 3];
        for _ in 0..100_000 {
            let alone = name(&mut random).with_life(Life::from_raw(random.u64(..)));
            let mut text = alone.to_string();
            if random.bool() {
                let cluster = ClusterId::from_raw(random.u64(..));
                let node = NodeLife {
                    cluster,
                    node: alone,
                };
                text = node.prefix() + name(&mut random).as_str();
            }
            for _ in 0..random.usize(0..3) {
                let at = random.usize(0..=text.len());
                match random.bool() {
                    true => text.insert(at, char::from(*random.choice(b"@/~a0.-A ").unwrap())),
                    false => drop((at < text.len()).then(|| text.remove(at))),
                }
            }
            let Ok(owner) = text.parse::<Owner>() else {
                read[2] += 1;
                continue;
            };
            assert_eq!(owner.as_str(), text);
            let is_alone = text.parse::<NameAndLife>().is_ok();
            assert_eq!(owner.node().is_some(), !is_alone, "{text}");
            assert_eq!(text.starts_with(NODE_MARK), !is_alone, "{text}");
            read[usize::from(is_alone)] += 1;
        }
        assert!(read.iter().all(|count| *count > 1_000), "{read:?}");
    }

    #[test]
    fn what_is_no_owner_is_refused() {
        let check = |text: &str| assert!(text.parse::<Owner>().is_err(), "{text}");
        for text in [
            "",
            "a",
            "A~0123456789abcdef",
            "a~0123",
            "-a~0123456789abcdef",
            "@/a~0123456789abcdef/p",
            "@00000000000000c1/a~0123456789abcdef",
            "@00000000000000c1/a~0123456789abcdef/",
            "@00000000000000c1/a~0123456789abcdef/p/q",
            "@00000000000000C1/a~0123456789abcdef/p",
            "@c1/a~0123456789abcdef/p",
            "@00000000000000c1/a~0123456789abcdef/P",
            "a~0123456789abcdef/p",
        ] {
            check(text);
        }
        assert!(Owner::new("Node 1").is_err());
        assert!(Owner::new("@00000000000000c1/a").is_err());
    }

    /// A queue lists the owners of one cluster from its prefix on, without a gap.
    #[test]
    fn the_owners_of_a_cluster_stand_together() {
        let cluster = ClusterId::from_raw(5);
        let prefix = NodeLife::cluster_prefix(cluster);
        let node: NodeLife = format!("{prefix}a~0000000000000001").parse().unwrap();
        let own = [node.owner("p").unwrap(), node.owner("q").unwrap()];
        let texts = [
            "@0000000000000004/a~0000000000000001/p",
            "0~0000000000000001",
        ];
        let below = texts.map(|text| text.parse::<Owner>().unwrap());
        let texts = [
            "@0000000000000006/a~0000000000000001/p",
            "a~0000000000000001",
        ];
        let above = texts.map(|text| text.parse::<Owner>().unwrap());
        for owner in &own {
            assert!(owner.as_str() > &*prefix && below.iter().all(|other| other < owner));
            assert!(above.iter().all(|other| other > owner));
        }
        assert!(below.iter().all(|other| other.as_str() < &*prefix));
    }

    /// `release --before` compares the lives of nodes and of workers.
    #[test]
    fn a_worker_that_starts_after_a_node_has_the_later_life_and_before_another_the_earlier() {
        let now = super::super::id::Timestamp::of_this_machine().as_ms();
        let worker = Owner::new("web-1").unwrap();
        let node = |at_ms: u64| Life::new(at_ms, 0).to_string();
        assert!(node(now).as_str() <= worker.life(), "{worker}");
        assert!(worker.life() < node(now + 3_600_000).as_str(), "{worker}");
    }
}
