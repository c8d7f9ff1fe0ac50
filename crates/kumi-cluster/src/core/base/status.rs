//! The status of a member, and its transitions.
//!
//! ```text
//!             snapshot applied           suspected             quorum stands
//!   Joining ------------------> Up <---------------> Suspect -----------------> Dead
//!      |                        |   refuted by the      |                        |
//!      | join_timeout           | leave  member         | leave                  | dead_timeout
//!      v                        v                       v                        v
//!   Removed <---------------- Leaving <-----------------+                     Removed
//! ```
//!
//! Besides, an active life becomes Dead or Removed when a later life of the same authority replaces it, or by an operator's
//! quarantine. A life that is Dead or Removed never becomes active again: a node that comes back has another uid.

/// The status of one life of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NodeStatus {
    /// Has asked to join, and has not received the table yet.
    Joining,
    /// A member.
    Up,
    /// At least one of its monitors receives nothing from it.
    Suspect,
    /// Leaving, and not gone yet.
    Leaving,
    /// Declared dead by a quorum of its monitors, replaced by a later life, or ended by an operator's quarantine.
    Dead,
    /// Left or dead; the record is a tombstone until it is collected.
    Removed,
}

impl NodeStatus {
    /// All of them, in the order of precedence at one incarnation.
    pub const ALL: [Self; 6] = [
        Self::Joining,
        Self::Up,
        Self::Suspect,
        Self::Leaving,
        Self::Dead,
        Self::Removed,
    ];

    /// Whether the member counts as part of the cluster.
    pub const fn is_active(self) -> bool {
        !self.is_terminal()
    }

    /// Whether this life is over. It never becomes active again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Dead | Self::Removed)
    }

    /// Whether one life of a node may go from `self` to `to`.
    ///
    /// Gossip may skip a status (a node can receive Leaving without having received Up), so such transitions are allowed. Going
    /// back is not, and neither is suspecting a member that is Joining.
    ///
    /// ```
    /// use kumi_cluster::NodeStatus::{Dead, Joining, Suspect, Up};
    ///
    /// assert!(Suspect.may_become(Up));
    /// assert!(!Dead.may_become(Up));
    /// assert!(!Joining.may_become(Suspect));
    /// ```
    pub const fn may_become(self, to: Self) -> bool {
        let ends = matches!(to, Self::Leaving | Self::Dead | Self::Removed);
        match self {
            Self::Joining => ends || matches!(to, Self::Up),
            Self::Up => ends || matches!(to, Self::Suspect),
            Self::Suspect => ends || matches!(to, Self::Up),
            Self::Leaving => to.is_terminal(),
            Self::Dead => matches!(to, Self::Removed),
            Self::Removed => false,
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Joining => 0,
            Self::Up => 1,
            Self::Suspect => 2,
            Self::Leaving => 3,
            Self::Dead => 4,
            Self::Removed => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The status in lower case, for tables and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Leaving => "leaving",
            Self::Dead => "dead",
            Self::Removed => "removed",
        }
    }
}

impl core::fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::NodeStatus::*;
    use super::*;

    #[test]
    fn the_allowed_steps_are_exactly_these() {
        let allowed = [
            (Joining, Up),
            (Joining, Leaving),
            (Joining, Dead),
            (Joining, Removed),
            (Up, Suspect),
            (Up, Leaving),
            (Up, Dead),
            (Up, Removed),
            (Suspect, Up),
            (Suspect, Leaving),
            (Suspect, Dead),
            (Suspect, Removed),
            (Leaving, Dead),
            (Leaving, Removed),
            (Dead, Removed),
        ];
        for from in NodeStatus::ALL {
            for to in NodeStatus::ALL {
                assert_eq!(
                    from.may_become(to),
                    allowed.contains(&(from, to)),
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn codes_lead_back_to_their_status() {
        for status in NodeStatus::ALL {
            assert_eq!(NodeStatus::from_code(status.code()), Some(status));
        }
        assert_eq!(NodeStatus::from_code(6), None);
    }
}
