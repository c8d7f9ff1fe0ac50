//! A view from outside: called at every step with what it changed, never able to change anything.

use crate::core::{EnvelopeError, MembershipRuntime, MembershipRuntimeOutcome, TimerInstant};

/// Looks at every step of a world. Places are places in the network, subjects are numbers of authorities.
pub trait Watch {
    /// A process began, and has not had a turn yet.
    fn started(&mut self, at_us: u64, place: usize, subject: usize, runtime: &MembershipRuntime) {
        let _ = (at_us, place, subject, runtime);
    }

    /// A process is about to end without a message.
    fn ended(&mut self, at_us: u64, place: usize, runtime: &MembershipRuntime) {
        let _ = (at_us, place, runtime);
    }

    /// A message was taken in, or refused.
    fn delivered(
        &mut self,
        at_us: u64,
        place: usize,
        runtime: &MembershipRuntime,
        refused: Option<&EnvelopeError>,
    ) {
        let _ = (at_us, place, runtime, refused);
    }

    /// A node had a turn, and this came of it.
    fn polled(
        &mut self,
        at_us: u64,
        place: usize,
        now: TimerInstant,
        runtime: &MembershipRuntime,
        outcome: &MembershipRuntimeOutcome,
    );

    /// A node asked for one more turn at once, over and over.
    fn stuck(&mut self, at_us: u64, place: usize);
}
