//! The attempts of this node to join: how often seeds were asked, which comes next, and when.

use crate::core::base::identity::NodeIdentity;
use crate::core::base::time::TimerInstant;

/// A join in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Attempt {
    rounds: u32,
    next_seed: usize,
    /// It has retried with a higher uid once, and does not do so again.
    raised: bool,
    /// Another joining node named this one as its seed.
    asked: bool,
    /// And so did one whose authority is lower: that one starts the cluster.
    asked_by_lower: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Joining {
    attempt: Option<Attempt>,
    /// The live member that has this node's name, as a seed answered last.
    refused_by: Option<NodeIdentity>,
    /// When the next round is due, in the runtime's own time.
    retry_at: Option<TimerInstant>,
}

impl Joining {
    /// Begins to join for the first time since the start.
    pub(crate) fn begin(&mut self, at: TimerInstant) {
        self.attempt = Some(Attempt::default());
        self.retry_at = Some(at);
    }

    /// Begins to join after the life that was a member, or joining, ended. A node that was a member is not the later start:
    /// a later life has taken its place.
    pub(crate) fn begin_again(&mut self, at: TimerInstant) {
        let raised = self.attempt.is_none_or(|attempt| attempt.raised);
        self.attempt = Some(Attempt {
            raised,
            ..Attempt::default()
        });
        self.retry_at = Some(at);
    }

    /// A seed refused this node because of a live member with its name; whether that is another member than before. The rounds
    /// are counted anew: seeds answer, so this node does not start a cluster of its own.
    pub(crate) fn refused(&mut self, by: &NodeIdentity) -> bool {
        if let Some(attempt) = &mut self.attempt {
            attempt.rounds = 0;
        }
        let is_new = self.refused_by.as_ref() != Some(by);
        self.refused_by = Some(by.clone());
        is_new
    }

    /// The live member that has this node's name.
    pub(crate) fn refused_by(&self) -> Option<&NodeIdentity> {
        self.refused_by.as_ref()
    }

    /// No join is in progress any more.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_in_progress(&self) -> bool {
        self.attempt.is_some()
    }

    pub(crate) fn retry_at(&mut self, at: TimerInstant) {
        self.retry_at = Some(at);
    }

    pub(crate) fn deadline(&self) -> Option<TimerInstant> {
        self.retry_at
    }

    /// How many rounds seeds were asked in.
    pub(crate) fn rounds(&self) -> u32 {
        self.attempt.map_or(0, |attempt| attempt.rounds)
    }

    /// Counts a round; how many there were.
    pub(crate) fn count_round(&mut self) -> u32 {
        if let Some(attempt) = &mut self.attempt {
            attempt.rounds = attempt.rounds.saturating_add(1);
        }
        self.rounds()
    }

    /// The position of the next of so many seeds, one after the other.
    pub(crate) fn next_seed(&mut self, seeds: usize) -> usize {
        let Some(attempt) = &mut self.attempt else {
            return 0;
        };
        let index = attempt.next_seed % seeds.max(1);
        attempt.next_seed = index + 1;
        index
    }

    /// Whether this start may take a higher uid than it has, which it may once.
    pub(crate) fn raise(&mut self) -> bool {
        match &mut self.attempt {
            Some(attempt) if !attempt.raised => {
                attempt.raised = true;
                true
            }
            _ => false,
        }
    }

    /// Another joining node asked this one.
    pub(crate) fn asked(&mut self, by_lower: bool) {
        if let Some(attempt) = &mut self.attempt {
            attempt.asked = true;
            attempt.asked_by_lower |= by_lower;
        }
    }

    /// Whether another joining node asked this one, and whether one of a lower authority did.
    pub(crate) fn was_asked(&self) -> (bool, bool) {
        self.attempt.map_or((false, false), |attempt| {
            (attempt.asked, attempt.asked_by_lower)
        })
    }
}
