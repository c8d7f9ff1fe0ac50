//! The cluster as the rest of a program sees it: the current members, counters, and the stream of events.
//!
//! It applies what the runtime reports and nothing else. A topology that does not follow from the one before is never
//! half applied. From outside, it is refused as a whole. From the runtime it means that one before it was lost on the
//! way: that is reported as `TopologyApplyFailed`, and its members are the new beginning, so that the next one follows
//! again. Other events of the same outcome are published all the same.

use crate::core::base::identity::{Authority, NodeIdentity};
use crate::core::base::reason::ReasonText;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::membership::MembershipRuntimeOutcome;
use crate::core::protocol::event::ClusterEvent;
use crate::core::protocol::topology::{Difference, members_hash};
use crate::core::state::quarantine::QuarantineEntry;
use crate::core::state::snapshot::Member;
use crate::core::views::event_stream::EventStream;
use crate::core::views::identity_table::IdentityTable;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What is counted about the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterMetrics {
    /// Active members.
    pub members: usize,
    /// Members under suspicion.
    pub suspects: usize,
    /// Authorities that are quarantined.
    pub quarantined: usize,
    /// Topologies applied.
    pub topologies: u64,
    /// Topologies refused.
    pub topologies_refused: u64,
    /// Changes of members' statuses.
    pub status_changes: u64,
    /// Members that died.
    pub deaths: u64,
}

/// Why a topology was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The hash is not the one of the members.
    #[error("the hash does not fit the members")]
    Hash,
    /// The members do not follow from the former ones by the difference in the event.
    #[error("the difference does not lead to the members")]
    Difference,
    /// The event is older than the one applied last.
    #[error("the event is older than the last one")]
    Stale,
    /// The event is not a topology.
    #[error("not a topology")]
    NotATopology,
}

/// A projection of the runtime's events: the current members, identities, quarantines and counters.
///
/// ```
/// use kumi_cluster::core::{Authority, ClusterProjection, LocalNode, MemberMetadata, MembershipRuntime, MembershipRuntimeConfig, TimerInstant};
///
/// let node = LocalNode {
///     authority: Authority::new("a:1")?,
///     metadata: MemberMetadata::EMPTY,
///     unix_ms: 1_700_000_000_000,
///     uid: None,
/// };
/// let mut runtime = MembershipRuntime::new(MembershipRuntimeConfig::local(), node, 1, TimerInstant::ZERO)?;
/// runtime.start_member(&[], TimerInstant::ZERO)?;
/// let mut core = ClusterProjection::new();
/// let mut watcher = core.events().subscribe();
///
/// while let Some(now) = runtime.next_deadline().filter(|&at| at < TimerInstant::from_millis(300)) {
///     let outcome = runtime.poll(now);
///     let events = core.absorb(&outcome, runtime.quarantine_snapshot());
///     // Publishing is a step of its own, so that a caller can let go of its locks first.
///     core.events_mut().publish_all(events);
/// }
/// assert_eq!(core.metrics().members, 1);
/// assert!(core.events().drain(&mut watcher).count() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ClusterProjection {
    members: Arc<[Member]>,
    hash: u64,
    observed_at: TimerInstant,
    metrics: ClusterMetrics,
    identities: IdentityTable,
    events: EventStream,
}

impl ClusterProjection {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members of the last topology applied.
    pub fn members(&self) -> &Arc<[Member]> {
        &self.members
    }

    /// The hash of the last topology applied.
    pub fn topology_hash(&self) -> u64 {
        self.hash
    }

    /// The counters.
    pub fn metrics(&self) -> &ClusterMetrics {
        &self.metrics
    }

    /// The identities of members, and the quarantines.
    pub fn identities(&self) -> &IdentityTable {
        &self.identities
    }

    /// The stream to read from.
    pub fn events(&self) -> &EventStream {
        &self.events
    }

    /// The stream to publish on.
    pub fn events_mut(&mut self) -> &mut EventStream {
        &mut self.events
    }

    /// Applies an outcome of the runtime, and returns the events to publish, in order. Publishing is left to the caller, which
    /// does it when it holds no lock.
    pub fn absorb(
        &mut self,
        outcome: &MembershipRuntimeOutcome,
        quarantine: Vec<QuarantineEntry>,
    ) -> Vec<ClusterEvent> {
        self.metrics.quarantined = quarantine.len();
        self.identities.sync_quarantine(quarantine);
        let mut events = outcome.quarantine_events.clone();
        for event in &outcome.member_events {
            self.count(event);
            events.push(event.clone());
        }
        let Some(topology) = &outcome.topology_event else {
            return events;
        };
        if let Err(error) = self.absorb_topology(topology) {
            let observed_at = match topology {
                ClusterEvent::TopologyUpdated { observed_at, .. } => *observed_at,
                _ => self.observed_at,
            };
            let reason = ReasonText::escaped(&alloc::format!("{error}"));
            events.push(ClusterEvent::TopologyApplyFailed {
                reason,
                observed_at,
            });
            if error != TopologyError::Difference {
                return events;
            }
        }
        events.push(topology.clone());
        events
    }

    /// Applies a topology of the runtime. They come in order, so one that seems old only means that the clock went
    /// back; and one that does not follow is where to go on from.
    fn absorb_topology(&mut self, event: &ClusterEvent) -> Result<(), TopologyError> {
        let checked = Checked::of(event).inspect_err(|_| self.metrics.topologies_refused += 1)?;
        let follows = checked.follows(&self.members);
        self.metrics.topologies_refused += u64::from(!follows);
        self.take_over(checked);
        if follows {
            Ok(())
        } else {
            Err(TopologyError::Difference)
        }
    }

    /// Applies a topology of any origin. Refused as a whole when it does not follow from the one before.
    pub fn apply_topology_for_external(
        &mut self,
        event: &ClusterEvent,
    ) -> Result<(), TopologyError> {
        let checked = Checked::of(event).and_then(|checked| {
            if checked.observed_at < self.observed_at {
                return Err(TopologyError::Stale);
            }
            if !checked.follows(&self.members) {
                return Err(TopologyError::Difference);
            }
            Ok(checked)
        });
        let checked = checked.inspect_err(|_| self.metrics.topologies_refused += 1)?;
        self.take_over(checked);
        Ok(())
    }

    fn take_over(&mut self, checked: Checked<'_>) {
        let members = checked.members.clone();
        self.metrics.topologies += 1;
        self.metrics.members = members.len();
        let suspects = members
            .iter()
            .filter(|member| member.status == NodeStatus::Suspect);
        self.metrics.suspects = suspects.count();
        self.identities.sync_members(&members);
        self.members = members;
        self.hash = checked.hash;
        self.observed_at = checked.observed_at;
    }

    fn count(&mut self, event: &ClusterEvent) {
        if let ClusterEvent::MemberStatusChanged { to, .. } = event {
            self.metrics.status_changes += 1;
            self.metrics.deaths += u64::from(*to == NodeStatus::Dead);
        }
    }

    /// The member at an authority, if it is active.
    pub fn member(&self, authority: &Authority) -> Option<&Member> {
        let index = self
            .members
            .binary_search_by(|member| member.authority.cmp(authority));
        index.ok().map(|index| &self.members[index])
    }
}

/// A topology whose hash is the one of its members.
struct Checked<'a> {
    members: &'a Arc<[Member]>,
    hash: u64,
    joined: &'a [NodeIdentity],
    left: &'a [NodeIdentity],
    dead: &'a [NodeIdentity],
    observed_at: TimerInstant,
}

impl<'a> Checked<'a> {
    fn of(event: &'a ClusterEvent) -> Result<Self, TopologyError> {
        let ClusterEvent::TopologyUpdated {
            topology,
            members,
            joined,
            left,
            dead,
            observed_at,
            ..
        } = event
        else {
            return Err(TopologyError::NotATopology);
        };
        if members_hash(members) != topology.hash {
            return Err(TopologyError::Hash);
        }
        Ok(Self {
            members,
            hash: topology.hash,
            joined,
            left,
            dead,
            observed_at: *observed_at,
        })
    }

    /// Whether the difference that it tells leads from those members to its own.
    fn follows(&self, before: &[Member]) -> bool {
        let difference = Difference::between(before, self.members);
        let mut gone: Vec<&NodeIdentity> = self.left.iter().chain(self.dead).collect();
        gone.sort();
        difference.joined == self.joined && difference.gone.iter().eq(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::base::identity::NodeUid;
    use crate::core::base::metadata::MemberMetadata;
    use crate::core::protocol::topology::ClusterTopology;
    use crate::core::state::record::MemberRecord;

    fn member(name: &str) -> Member {
        let authority = Authority::new(name).expect("valid");
        let identity = NodeIdentity {
            authority,
            uid: NodeUid::from_raw(1),
        };
        Member::of(&MemberRecord::new(
            identity,
            NodeStatus::Up,
            MemberMetadata::EMPTY,
        ))
    }

    fn updated(members: &[&str], joined: &[&str], ms: u64) -> ClusterEvent {
        let members: Arc<[Member]> = members.iter().map(|name| member(name)).collect();
        let joined: Arc<[NodeIdentity]> =
            joined.iter().map(|name| member(name).identity()).collect();
        let topology = ClusterTopology {
            joined: joined.clone(),
            hash: members_hash(&members),
            ..Default::default()
        };
        ClusterEvent::TopologyUpdated {
            topology: Arc::new(topology),
            members,
            joined,
            left: Arc::from([]),
            dead: Arc::from([]),
            blocked: Arc::from([]),
            observed_at: TimerInstant::from_millis(ms),
        }
    }

    fn outcome(topology: ClusterEvent) -> MembershipRuntimeOutcome {
        MembershipRuntimeOutcome {
            quarantine_events: alloc::vec![ClusterEvent::QuarantineReleased {
                authority: member("q").authority,
                observed_at: TimerInstant::ZERO,
            }],
            topology_event: Some(topology),
            ..Default::default()
        }
    }

    #[test]
    fn after_a_lost_topology_the_next_one_is_the_new_beginning_and_that_is_told() {
        let mut core = ClusterProjection::new();
        // The one in which a came was lost.
        let events = core.absorb(&outcome(updated(&["a", "b"], &["b"], 5)), Vec::new());
        assert!(
            matches!(
                *events,
                [
                    ClusterEvent::QuarantineReleased { .. },
                    ClusterEvent::TopologyApplyFailed { .. },
                    ClusterEvent::TopologyUpdated { .. },
                ]
            ),
            "{events:?}"
        );
        assert_eq!(core.members().len(), 2);
        assert_eq!(core.metrics().topologies_refused, 1);
        let events = core.absorb(&outcome(updated(&["a", "b", "c"], &["c"], 6)), Vec::new());
        assert!(
            matches!(events[1..], [ClusterEvent::TopologyUpdated { .. }]),
            "{events:?}"
        );
        assert_eq!(core.metrics().topologies_refused, 1);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_make_the_runtimes_own_topology_stale() {
        let mut core = ClusterProjection::new();
        core.absorb(&outcome(updated(&["a"], &["a"], 9)), Vec::new());
        core.absorb(&outcome(updated(&["a", "b"], &["b"], 3)), Vec::new());
        assert_eq!(core.metrics().topologies_refused, 0);
        assert_eq!(core.members().len(), 2);
    }

    #[test]
    fn a_topology_from_outside_that_does_not_follow_is_refused_whole() {
        let mut core = ClusterProjection::new();
        assert_eq!(
            core.apply_topology_for_external(&updated(&["a", "b"], &["a"], 5)),
            Err(TopologyError::Difference)
        );
        assert!(core.members().is_empty());
        assert_eq!(core.metrics().topologies_refused, 1);
        assert_eq!(
            core.apply_topology_for_external(&updated(&["a"], &["a"], 5)),
            Ok(())
        );
        assert_eq!(
            core.apply_topology_for_external(&updated(&["a", "b"], &["b"], 6)),
            Ok(())
        );
        assert_eq!(core.metrics().members, 2);
        assert!(core.member(&member("b").authority).is_some());
        let stale = updated(&["a", "b", "c"], &["c"], 1);
        assert_eq!(
            core.apply_topology_for_external(&stale),
            Err(TopologyError::Stale)
        );
    }

    #[test]
    fn a_false_hash_and_a_foreign_event_are_refused() {
        let mut core = ClusterProjection::new();
        let ClusterEvent::TopologyUpdated {
            members,
            joined,
            left,
            dead,
            blocked,
            observed_at,
            ..
        } = updated(&["a"], &["a"], 1)
        else {
            panic!("another event");
        };
        let topology = Arc::new(ClusterTopology::default());
        let event = ClusterEvent::TopologyUpdated {
            topology,
            members,
            joined,
            left,
            dead,
            blocked,
            observed_at,
        };
        assert_eq!(
            core.apply_topology_for_external(&event),
            Err(TopologyError::Hash)
        );
        let other = ClusterEvent::QuarantineReleased {
            authority: member("a").authority,
            observed_at,
        };
        assert_eq!(
            core.apply_topology_for_external(&other),
            Err(TopologyError::NotATopology)
        );
    }
}
