//! What is promised, and how a broken promise is written down.

use core::fmt;
use std::string::String;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in virtual microseconds.
    pub at_us: u64,
    /// At which place it was seen.
    pub place: usize,
    /// Which promise.
    pub promise: Promise,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at_us as f64 / 1e6;
        write!(
            f,
            "at {seconds:.3} s on n{}: {:?}: {}",
            self.place, self.promise, self.detail
        )
    }
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A life that was seen Dead or Removed is never seen active again.
    NoResurrection,
    /// The incarnation of a life never goes down, and only the subject raises it.
    IncarnationsRise,
    /// Every step of a status is an allowed one, and starts where the last one ended.
    LegalSteps,
    /// Records change only together with events.
    EventsTellEverything,
    /// A running node with working links is never Dead.
    NoFalseDeath,
    /// A quarantined authority is not active.
    QuarantinedStayOut,
    /// One topology event per window.
    OneTopologyPerWindow,
    /// Topology events, replayed, give the snapshot.
    ReplayIsTheSnapshot,
    /// Every queue and map stays within its limit.
    BoundedMemory,
    /// A node does not ask for turns for ever.
    Progress,
    /// Every life that was reported as active has exactly one reported departure, and no other life has one.
    DeparturesAreTold,
    /// All nodes agree in time.
    Convergence,
}
