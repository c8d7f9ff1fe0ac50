//! What travels on the admin channel. Fields may be added; readers skip what they do not know.

use crate::core::{
    Authority, ClusterEvent, DownReason, Member, MemberMetadata, MembershipSnapshot, NodeIdentity,
    NodeUid, QuarantineReason,
};
use crate::driver::{DriverMetrics, MembershipRuntimeShared};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The cluster as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterView {
    /// The cluster's name.
    pub cluster: String,
    /// The node that was asked.
    pub node: String,
    /// Its uid, in hexadecimal digits.
    pub uid: String,
    /// Its name and life, `name~life`; `None` from a node of an earlier version.
    pub name_and_life: Option<String>,
    /// The hash of the active members, in hexadecimal digits: equal on nodes that agree.
    pub hash: String,
    /// Every member that is known, those that died or left a short while ago included, sorted by authority.
    pub members: Vec<MemberRow>,
    /// The quarantines in force.
    pub quarantines: Vec<QuarantineRow>,
    /// Connections to other nodes.
    pub connections: usize,
    /// What the node's driver counted.
    pub metrics: DriverMetrics,
}

/// One member, as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemberRow {
    /// Where it is reached.
    pub authority: String,
    /// Which life of it, in hexadecimal digits.
    pub uid: String,
    /// Its name and life, `name~life`; `None` for a member that announces no name.
    pub name_and_life: Option<String>,
    /// What it is, in lower case.
    pub status: String,
    /// Its incarnation: increased each time it refutes a suspicion.
    pub incarnation: u64,
    /// Its phi; only where the answering node watches it.
    pub phi: Option<f64>,
    /// Milliseconds since the answering node received anything from it.
    pub last_seen_ms: Option<u64>,
    /// Whether it is the asked node.
    pub is_self: bool,
    /// The version of the program it runs.
    pub version: String,
    /// What it is for.
    pub roles: Vec<String>,
    /// The rest of its metadata, such as services and their addresses.
    pub services: Vec<(String, String)>,
}

impl MemberRow {
    /// Whether it counts as part of the cluster.
    pub fn is_active(&self) -> bool {
        !matches!(self.status.as_str(), "dead" | "removed")
    }
}

/// A member that is kept out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct QuarantineRow {
    /// The authority that is kept out.
    pub authority: String,
    /// Which life of it; all of them when it is not there.
    pub uid: Option<String>,
    /// Why, in printable characters.
    pub reason: String,
    /// How much longer.
    pub remaining_ms: u64,
}

/// What `quarantine` asks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QuarantineOrder {
    pub(super) authority: String,
    #[serde(default)]
    pub(super) reason: String,
    pub(super) for_ms: u64,
}

/// What `release` asks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReleaseOrder {
    pub(super) authority: String,
}

/// What `metadata` asks. The version stays as it is: it is the program's, not the operator's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MetadataOrder {
    pub(super) roles: Vec<String>,
    pub(super) services: Vec<(String, String)>,
}

/// Something that happened, as watchers over the network see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AdminEvent {
    /// The set of active members changed.
    Topology {
        /// The hash of the set.
        hash: String,
        /// All active members.
        members: Vec<String>,
        /// Members that joined, as authority#uid.
        joined: Vec<String>,
        /// Members that left.
        left: Vec<String>,
        /// Members that died.
        dead: Vec<String>,
        /// Authorities that are kept out at the moment.
        blocked: Vec<String>,
        /// By authority#uid, the `name~life` of the members that joined, left and died, as far as they have names.
        #[serde(default)]
        names: BTreeMap<String, String>,
    },
    /// A member went from one status to another.
    Status {
        /// The member.
        authority: String,
        /// Which life.
        uid: String,
        /// Its name and life, `name~life`, if it has a name.
        #[serde(default)]
        name_and_life: Option<String>,
        /// From what, unless it was unknown.
        from: Option<String>,
        /// To what.
        to: String,
    },
    /// The metadata of a member changed.
    Metadata {
        /// The member.
        authority: String,
        /// Which life.
        uid: String,
        /// Its name and life, `name~life`, if it has a name.
        #[serde(default)]
        name_and_life: Option<String>,
        /// Its version.
        version: String,
        /// Its roles.
        roles: Vec<String>,
        /// Its services, by name.
        services: Vec<(String, String)>,
    },
    /// A member is kept out, or was refused because it is.
    Quarantined {
        /// The member.
        authority: String,
        /// Which life, unless all of them.
        uid: Option<String>,
        /// Why.
        reason: String,
    },
    /// The quarantine of an authority has ended.
    Released {
        /// The authority.
        authority: String,
    },
    /// The node found out that the others have given it up.
    SelfDowned {
        /// Its identity before, as authority#uid.
        was: String,
        /// Its identity now; `None` if it stopped.
        now: Option<String>,
        /// Why.
        reason: String,
        /// By authority#uid, the `name~life` of both.
        #[serde(default)]
        names: BTreeMap<String, String>,
    },
    /// Two nodes are configured with one address.
    Conflict {
        /// The address.
        authority: String,
        /// The life that counts.
        current: String,
        /// The one that should be gone.
        other: String,
    },
    /// A peer of another cluster or version.
    PeerRefused {
        /// From where.
        authority: String,
        /// Why.
        reason: String,
    },
    /// The node was refused because a live member has its name.
    NameTaken {
        /// The name.
        name: String,
        /// The member that has it, as authority#uid.
        holder: String,
    },
    /// A topology could not be applied.
    TopologyApplyFailed {
        /// Why.
        reason: String,
    },
    /// The watcher was too slow, and this many events are missing.
    Missed {
        /// How many.
        events: u64,
    },
    /// An event of a kind that this version does not know.
    #[serde(other)]
    Other,
}

impl AdminEvent {
    /// An event as it travels on this channel, without the names of members.
    pub fn of(event: &ClusterEvent) -> Self {
        Self::named(event, |_| None)
    }

    fn named(event: &ClusterEvent, name_of: impl Fn(&NodeIdentity) -> Option<String>) -> Self {
        let names = |identities: &[NodeIdentity]| -> Vec<String> {
            identities
                .iter()
                .map(|identity| identity.to_string())
                .collect()
        };
        match event {
            ClusterEvent::TopologyUpdated {
                topology,
                members,
                joined,
                left,
                dead,
                blocked,
                ..
            } => Self::Topology {
                hash: hash_text(topology.hash),
                members: members
                    .iter()
                    .map(|member| member.authority.to_string())
                    .collect(),
                joined: names(joined),
                left: names(left),
                dead: names(dead),
                blocked: blocked
                    .iter()
                    .map(|authority| authority.to_string())
                    .collect(),
                names: names_of(joined.iter().chain(&**left).chain(&**dead), name_of),
            },
            ClusterEvent::MemberStatusChanged {
                node_id,
                authority,
                from,
                to,
                ..
            } => Self::Status {
                authority: authority.to_string(),
                uid: node_id.to_string(),
                name_and_life: name_of(&NodeIdentity {
                    authority: authority.clone(),
                    uid: *node_id,
                }),
                from: from.map(|status| status.to_string()),
                to: to.to_string(),
            },
            ClusterEvent::MemberQuarantined {
                authority,
                node_id,
                reason,
                ..
            } => Self::Quarantined {
                authority: authority.to_string(),
                uid: node_id.map(|uid| uid.to_string()),
                reason: reason_text(reason),
            },
            ClusterEvent::QuarantineReleased { authority, .. } => Self::Released {
                authority: authority.to_string(),
            },
            ClusterEvent::SelfDowned {
                identity,
                successor,
                reason,
                ..
            } => Self::SelfDowned {
                was: identity.to_string(),
                now: successor.as_ref().map(|identity| identity.to_string()),
                reason: down_text(*reason).into(),
                names: names_of([identity].into_iter().chain(successor), name_of),
            },
            ClusterEvent::AuthorityConflict {
                authority,
                current,
                other,
                ..
            } => Self::Conflict {
                authority: authority.to_string(),
                current: current.to_string(),
                other: other.to_string(),
            },
            ClusterEvent::PeerRefused {
                authority, reason, ..
            } => Self::PeerRefused {
                authority: authority.to_string(),
                reason: reason.to_string(),
            },
            ClusterEvent::NameTaken { name, holder, .. } => Self::NameTaken {
                name: name.to_string(),
                holder: holder.to_string(),
            },
            ClusterEvent::TopologyApplyFailed { reason, .. } => Self::TopologyApplyFailed {
                reason: reason.to_string(),
            },
        }
    }
}

/// The names of those lives that have one, by authority#uid.
fn names_of<'a>(
    identities: impl Iterator<Item = &'a NodeIdentity>,
    name_of: impl Fn(&NodeIdentity) -> Option<String>,
) -> BTreeMap<String, String> {
    let named = identities.filter_map(|identity| Some((identity.to_string(), name_of(identity)?)));
    named.collect()
}

/// Events as they travel on this channel, with names, and with the events that follow from the state before.
#[derive(Debug)]
pub struct AdminEvents {
    /// The members of the last topology, and those that are dead.
    known: BTreeMap<Authority, (NodeUid, MemberMetadata)>,
    /// Has the names of members that are not in a topology yet.
    shared: Option<MembershipRuntimeShared>,
}

impl AdminEvents {
    /// Begins with the members as they are when the events begin.
    pub fn new(first: &MembershipSnapshot) -> Self {
        let mut events = Self {
            known: BTreeMap::new(),
            shared: None,
        };
        let _ = events.changed(&first.members);
        events
    }

    /// Looks up there the names of members that were not in a topology yet.
    #[must_use]
    pub fn names_from(mut self, shared: MembershipRuntimeShared) -> Self {
        self.shared = Some(shared);
        self
    }

    /// The events to send for one event of the core. A topology is followed by the metadata that has changed.
    pub fn of(&mut self, event: &ClusterEvent) -> Vec<AdminEvent> {
        let members: &[Member] = match event {
            ClusterEvent::TopologyUpdated { members, .. } => members,
            _ => &[],
        };
        let name_of = |identity: &NodeIdentity| self.name_of(identity, members);
        let mut told = Vec::from([AdminEvent::named(event, name_of)]);
        if let ClusterEvent::TopologyUpdated { members, .. } = event {
            told.extend(self.changed(members));
        }
        told
    }

    /// `name~life`, from the topology that came, the one before it, or what the node knows by now.
    fn name_of(&self, identity: &NodeIdentity, members: &[Member]) -> Option<String> {
        let NodeIdentity { authority, uid } = identity;
        let place = members.binary_search_by(|member| member.authority.cmp(authority));
        let member = place.ok().and_then(|place| members.get(place));
        if let Some(member) = member.filter(|member| member.uid == *uid) {
            return member.name_and_life().map(String::from);
        }
        if let Some((_, metadata)) = self.known.get(authority).filter(|known| known.0 == *uid) {
            return metadata.name_and_life(*uid).map(String::from);
        }
        let shared = self.shared.as_ref()?;
        shared.name_and_life(identity).map(String::from)
    }

    fn changed(&mut self, members: &[Member]) -> Vec<AdminEvent> {
        let mut changed = Vec::new();
        let mut known = BTreeMap::new();
        for Member {
            authority,
            uid,
            metadata,
            ..
        } in members
        {
            let before = self.known.get(authority);
            if before.is_some_and(|before| before.0 == *uid && before.1 != *metadata) {
                let roles = metadata.roles().into_iter();
                let services = metadata.services().into_iter();
                changed.push(AdminEvent::Metadata {
                    authority: authority.to_string(),
                    uid: uid.to_string(),
                    name_and_life: metadata.name_and_life(*uid).map(String::from),
                    version: metadata.version().into(),
                    roles: roles.map(Into::into).collect(),
                    services: services
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                });
            }
            known.insert(authority.clone(), (*uid, metadata.clone()));
        }
        // A life that is over has its name while there is a record of its authority: events of its end are still to come.
        // The record may be of a later life already, where events are delivered late.
        for (authority, before) in core::mem::take(&mut self.known) {
            if known.contains_key(&authority) {
                continue;
            }
            let shared = self.shared.as_ref();
            if shared.is_some_and(|shared| shared.has_record(&authority)) {
                known.insert(authority, before);
            }
        }
        self.known = known;
        changed
    }
}

/// A hash as it is shown.
pub(super) fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

pub(super) fn reason_text(reason: &QuarantineReason) -> String {
    reason.to_string()
}

fn down_text(reason: DownReason) -> &'static str {
    match reason {
        DownReason::Dead => "dead",
        DownReason::Quarantined => "quarantined",
        DownReason::Superseded => "superseded",
        DownReason::Claimed => "claimed",
        DownReason::Isolated => "isolated",
        DownReason::NameTaken => "name_taken",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_later_version_are_read_as_something() {
        let event: AdminEvent =
            serde_json::from_str(r#"{"kind":"earthquake","strength":7}"#).expect("json");
        assert_eq!(event, AdminEvent::Other);
        let event = AdminEvent::Missed { events: 3 };
        let text = serde_json::to_string(&event).expect("json");
        assert_eq!(text, r#"{"kind":"missed","events":3}"#);
    }

    #[test]
    fn a_view_may_lack_what_its_reader_knows() {
        let view: ClusterView = serde_json::from_str(
            r#"{"cluster":"x","members":[{"authority":"a:1","status":"up"}]}"#,
        )
        .expect("json");
        assert_eq!(view.members[0].phi, None);
        assert!(view.members[0].is_active());
    }
}
