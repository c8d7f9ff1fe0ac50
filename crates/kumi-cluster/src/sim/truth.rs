//! The state of the simulated world, which no node knows: which processes run, and which were disturbed lately.
//!
//! The checker decides by it whether a life may be declared dead. A life that ran, was not stopped for long, and whose links
//! worked for a while may not be, as long as only few others were disturbed: where a quorum of monitors receives nothing,
//! nothing is promised.

use std::collections::BTreeSet;
use std::vec::Vec;

use crate::core::NodeUid;

/// Which nodes run, and which are disturbed.
#[derive(Clone, Debug)]
pub struct Truth {
    subjects: Vec<Subject>,
    /// How long a disturbance excuses a death after it has ended.
    memory_us: u64,
    /// How many others may be disturbed while all others are still safe.
    tolerance: usize,
    /// Until when nothing is promised to any member; `u64::MAX` while it lasts.
    upheaval_until_us: u64,
    /// Lives that were declared dead while that was allowed. Other nodes may learn of it at any time.
    declared_dead: BTreeSet<(usize, NodeUid)>,
    /// Lives that were asked to leave.
    leavers: BTreeSet<(usize, NodeUid)>,
    /// Authorities that an operator wanted to quarantine at any time.
    quarantined: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Subject {
    running: Option<NodeUid>,
    /// Until when it is disturbed; `u64::MAX` while that lasts. 0 if it never was.
    disturbed_until_us: u64,
    /// What disturbs it now; two disturbances may overlap.
    disturbances: u32,
    /// The incarnation the subject itself has reached, of the life it reached it in.
    incarnation: (NodeUid, u64),
}

impl Truth {
    /// A world of so many authorities.
    pub fn new(subjects: usize, monitors: usize, memory_us: u64) -> Self {
        let monitors = monitors.min(subjects.saturating_sub(1));
        Self {
            subjects: std::vec![Subject::default(); subjects],
            memory_us,
            tolerance: tolerance(monitors),
            upheaval_until_us: 0,
            declared_dead: BTreeSet::new(),
            leavers: BTreeSet::new(),
            quarantined: BTreeSet::new(),
        }
    }

    /// A life has begun.
    pub fn began(&mut self, subject: usize, uid: NodeUid) {
        self.subjects[subject].running = Some(uid);
        self.reached(subject, uid, 1);
    }

    /// The process has ended.
    pub fn ended(&mut self, subject: usize) {
        self.subjects[subject].running = None;
    }

    /// The life that runs, if any.
    pub fn running(&self, subject: usize) -> Option<NodeUid> {
        self.subjects.get(subject)?.running
    }

    /// The life that runs was asked to leave, and agreed.
    pub fn leaves(&mut self, subject: usize) {
        let running = self.running(subject);
        self.leavers.extend(running.map(|uid| (subject, uid)));
    }

    /// Whether this life was asked to leave.
    pub fn was_asked_to_leave(&self, subject: usize, uid: NodeUid) -> bool {
        self.leavers.contains(&(subject, uid))
    }

    /// An operator is about to quarantine this subject.
    pub fn quarantines(&mut self, subject: usize) {
        self.quarantined.insert(subject);
    }

    /// Whether an operator ever gave that order.
    pub fn was_quarantined(&self, subject: usize) -> bool {
        self.quarantined.contains(&subject)
    }

    /// Whether a life with a later uid was started.
    pub fn has_later_life(&self, subject: usize, uid: NodeUid) -> bool {
        let known = self.subjects.get(subject);
        known.is_some_and(|known| known.incarnation.0 > uid)
    }

    /// The subject has reached this incarnation.
    pub fn reached(&mut self, subject: usize, uid: NodeUid, incarnation: u64) {
        let known = &mut self.subjects[subject].incarnation;
        *known = (*known).max((uid, incarnation));
    }

    /// Whether the record of another member may have this incarnation of that life: only the subject raises it.
    pub fn has_reached(&self, subject: usize, uid: NodeUid, incarnation: u64) -> bool {
        let Some(known) = self.subjects.get(subject) else {
            return false;
        };
        uid < known.incarnation.0 || (uid, incarnation) <= known.incarnation
    }

    /// A disturbance of one node begins: from now on it may be declared dead.
    pub fn disturb(&mut self, subject: usize) {
        let subject = &mut self.subjects[subject];
        subject.disturbances += 1;
        subject.disturbed_until_us = u64::MAX;
    }

    /// One disturbance has ended.
    pub fn calm(&mut self, subject: usize, at_us: u64) {
        let subject = &mut self.subjects[subject];
        subject.disturbances = subject.disturbances.saturating_sub(1);
        if subject.disturbances == 0 {
            subject.disturbed_until_us = at_us;
        }
    }

    /// Something begins that affects every member, as a partition does.
    pub fn upheaval(&mut self) {
        self.upheaval_until_us = u64::MAX;
    }

    /// It has ended.
    pub fn upheaval_over(&mut self, at_us: u64) {
        self.upheaval_until_us = at_us;
    }

    /// Whether any member may give this life up now. A yes is remembered.
    pub fn deserves_death(&mut self, subject: usize, uid: NodeUid, at_us: u64) -> bool {
        let deserved = self.running(subject) != Some(uid)
            || self.declared_dead.contains(&(subject, uid))
            || self.remembers(self.upheaval_until_us, at_us)
            || self.remembers(self.subjects[subject].disturbed_until_us, at_us)
            || self.disturbed(at_us) > self.tolerance;
        if deserved {
            self.declared_dead.insert((subject, uid));
        }
        deserved
    }

    /// How many are, or were until shortly ago, disturbed.
    fn disturbed(&self, at_us: u64) -> usize {
        let until = self
            .subjects
            .iter()
            .map(|subject| subject.disturbed_until_us);
        until.filter(|&until| self.remembers(until, at_us)).count()
    }

    fn remembers(&self, until_us: u64, at_us: u64) -> bool {
        until_us != 0 && until_us.saturating_add(self.memory_us) >= at_us
    }
}

/// How many bad monitors every member survives: half of a quorum, and one in any case.
fn tolerance(monitors: usize) -> usize {
    let quorum = match monitors {
        9.. => (monitors * 7).div_ceil(9),
        fewer => (fewer * 2).div_ceil(3),
    };
    (quorum / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: NodeUid = NodeUid::from_raw(7);

    fn truth() -> Truth {
        let mut truth = Truth::new(12, 9, 1000);
        (0..12).for_each(|subject| truth.began(subject, UID));
        truth
    }

    #[test]
    fn a_node_that_is_well_does_not_deserve_death() {
        assert!(!truth().deserves_death(3, UID, 99));
    }

    #[test]
    fn an_ended_or_earlier_life_does() {
        let mut truth = truth();
        truth.ended(3);
        assert!(truth.deserves_death(3, UID, 99));
        assert!(truth.deserves_death(4, NodeUid::from_raw(6), 99));
    }

    #[test]
    fn a_disturbance_excuses_for_a_while_after_its_end() {
        let mut truth = truth();
        truth.disturb(3);
        truth.disturb(3);
        truth.calm(3, 100);
        assert!(
            truth.clone().deserves_death(3, UID, 9_999),
            "one disturbance lasts"
        );
        truth.calm(3, 200);
        assert!(truth.clone().deserves_death(3, UID, 1200));
        assert!(!truth.clone().deserves_death(3, UID, 1201));
        assert!(
            !truth.deserves_death(4, UID, 1100),
            "one node that receives nothing is no excuse for others"
        );
    }

    #[test]
    fn too_many_disturbed_monitors_excuse_everybody() {
        let mut truth = truth();
        (0..3).for_each(|subject| truth.disturb(subject));
        assert!(!truth.clone().deserves_death(9, UID, 50));
        truth.disturb(3);
        assert!(truth.deserves_death(9, UID, 50));
    }

    #[test]
    fn a_death_that_was_deserved_may_be_learned_of_later() {
        let mut truth = truth();
        truth.upheaval();
        assert!(truth.deserves_death(3, UID, 50));
        truth.upheaval_over(60);
        assert!(truth.deserves_death(3, UID, 99_999));
        assert!(!truth.deserves_death(4, UID, 99_999));
    }

    #[test]
    fn only_the_subject_raises_its_incarnation() {
        let mut truth = truth();
        truth.reached(3, UID, 4);
        assert!(truth.has_reached(3, UID, 4) && !truth.has_reached(3, UID, 5));
        assert!(
            truth.has_reached(3, NodeUid::from_raw(6), 99),
            "an earlier life is over"
        );
        assert!(
            !truth.has_reached(3, NodeUid::from_raw(8), 1),
            "that one was not started"
        );
    }
}
