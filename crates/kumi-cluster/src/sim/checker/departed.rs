//! Which causes a node may give for the end of a life.

use super::Truth;
use crate::core::{GoneCause, NodeUid};

/// A life that a node reports as gone, and what the checker knows about it.
pub(super) struct Departed {
    pub(super) subject: usize,
    pub(super) uid: NodeUid,
    /// It is a life of the reporting node itself.
    pub(super) is_own: bool,
    /// The reporting node never saw it Up.
    pub(super) was_joining: bool,
    pub(super) ended_elsewhere: bool,
}

impl Departed {
    /// Whether that life may have ended in this way, as far as it can be known.
    pub(super) fn may_be(&self, cause: GoneCause, truth: &mut Truth, at_us: u64) -> bool {
        let (subject, uid) = (self.subject, self.uid);
        match cause {
            // A node learns of its own death from others. A joiner from which nothing arrives is removed without a suspicion.
            GoneCause::Died if self.is_own => {
                self.ended_elsewhere
                    || truth.was_asked_to_leave(subject, uid)
                    || truth.was_quarantined(subject)
            }
            GoneCause::Died => {
                self.was_joining
                    || self.ended_elsewhere
                    || truth.deserves_death(subject, uid, at_us)
            }
            // A tombstone of a member that was Up does not tell how it came about.
            GoneCause::Left => self.ended_elsewhere || truth.was_asked_to_leave(subject, uid),
            GoneCause::Replaced => truth.has_later_life(subject, uid),
            GoneCause::Quarantined => truth.was_quarantined(subject),
        }
    }
}
