//! Counters of the cases that runs are meant to reach, so that a test fails when a case is never reached.

use std::fmt;

macro_rules! coverage {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counters of what happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Coverage {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Coverage {
            /// Each counter with its name.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// Adds what another run saw.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

coverage! {
    /// Messages that arrived and were taken in.
    messages,
    /// Messages that were refused.
    refused_messages,
    /// Sweeps over all nodes.
    sweeps,
    /// A member became known.
    joins,
    /// A member became Suspect.
    suspicions,
    /// A node refuted a suspicion.
    refutations,
    /// A member became Up again after suspicion.
    recoveries,
    /// A member became Dead.
    deads,
    /// A member became Leaving.
    leaves,
    /// A member became Removed.
    removals,
    /// A life was reported as gone or forgotten.
    departures,
    /// A node learned that it was declared dead, and came back under a new uid.
    rejoins,
    /// A node found out that a later life had taken over, and stopped.
    superseded,
    /// A node received nothing for so long that it began another life.
    isolations,
    /// A node found out that an operator had quarantined it.
    quarantined_self,
    /// A member was quarantined, or was refused because it is.
    quarantines,
    /// A quarantine ended.
    releases,
    /// Two lives of one authority both sent messages.
    conflicts,
    /// A peer of another cluster was reported.
    refused_peers,
    /// A node noticed that it was late.
    late,
    /// A node was let in by a seed.
    welcomes,
    /// Whole tables that were handed over.
    snapshots,
    /// Members that a node declared dead itself, by a quorum.
    convictions,
    /// Accusations that were withdrawn.
    withdrawals,
    /// A node received from a member that it suspected, and sent it the suspicion.
    reachable,
    /// Transitions that were not allowed.
    refused_steps,
    /// Topology events.
    topologies,
    /// Topology windows that closed without a difference.
    cancelled_windows,
    /// An observer lost sight of a member.
    lost_sights,
    /// Deaths that were checked against the truth.
    judged_deaths,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, count)) in self.counters().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_counter_by_counter() {
        let mut all = Coverage {
            deads: 2,
            ..Coverage::default()
        };
        all.add(&Coverage {
            deads: 3,
            topologies: 1,
            ..Coverage::default()
        });
        assert_eq!((all.deads, all.topologies, all.joins), (5, 1, 0));
        assert!(std::format!("{all}").contains("deads 5"));
    }
}
