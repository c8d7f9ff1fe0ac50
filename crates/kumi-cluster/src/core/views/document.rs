//! Names of the original design document that nothing else needs. A provider written from the document finds them here; the
//! driver does not use them.
//!
//! `docs/design/cluster.md` lists where arguments or results differ from the document, and why.

use crate::core::base::error::{EnvelopeError, GossipTransportError, MembershipRuntimeError};
use crate::core::base::identity::Authority;
use crate::core::base::time::TimerInstant;
use crate::core::membership::{MembershipRuntime, MembershipRuntimeOutcome};
use crate::core::state::snapshot::MembershipSnapshot;
use crate::core::wire::transport::GossipTransport;
use alloc::vec::Vec;

pub use crate::core::protocol::rumor_queue::RumorQueue as GossipEngine;
pub use crate::core::views::projection::ClusterProjection as ClusterCore;

/// The part of the runtime that a provider needs.
pub trait MembershipRuntimePort {
    /// Begins to take part.
    fn start_member(
        &mut self,
        seeds: &[Authority],
        now: TimerInstant,
    ) -> Result<(), MembershipRuntimeError>;
    /// Stops at once, and sends nothing.
    fn stop(&mut self) -> Result<(), MembershipRuntimeError>;
    /// The active members.
    fn snapshot(&self) -> MembershipSnapshot;
    /// Runs the timers that are due, and returns what is to be sent and published.
    fn poll(&mut self, now: TimerInstant) -> MembershipRuntimeOutcome;
}

impl MembershipRuntimePort for MembershipRuntime {
    fn start_member(
        &mut self,
        seeds: &[Authority],
        now: TimerInstant,
    ) -> Result<(), MembershipRuntimeError> {
        Self::start_member(self, seeds, now)
    }

    fn stop(&mut self) -> Result<(), MembershipRuntimeError> {
        Self::stop(self)
    }

    fn snapshot(&self) -> MembershipSnapshot {
        Self::snapshot(self)
    }

    fn poll(&mut self, now: TimerInstant) -> MembershipRuntimeOutcome {
        Self::poll(self, now)
    }
}

/// What happened to the messages of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pumped {
    /// Envelopes that were refused.
    pub refused: Vec<(Authority, EnvelopeError)>,
    /// Messages that the transport did not take.
    pub unsent: Vec<GossipTransportError>,
}

/// One turn of a node on a transport: everything that has arrived goes in, and everything to be sent goes out. A
/// failure of one message never holds up the others. The events of the outcome are left for the caller.
pub fn pump(
    runtime: &mut MembershipRuntime,
    transport: &mut impl GossipTransport,
    now: TimerInstant,
) -> (MembershipRuntimeOutcome, Pumped) {
    let mut pumped = Pumped::default();
    for (from, bytes) in transport.poll_deltas() {
        if let Err(error) = runtime.handle_message(&from, &bytes, now) {
            pumped.refused.push((from, error));
        }
    }
    let mut outcome = runtime.poll(now);
    for outbound in outcome.gossip_outbound.drain(..) {
        if let Err(error) = transport.send(outbound) {
            pumped.unsent.push(error);
        }
    }
    (outcome, pumped)
}
