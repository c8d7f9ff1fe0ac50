//! Reports that the queue has not confirmed.

use super::super::claim::{Claim, Finish, Outcome};
use super::super::id::{TaskId, Token};

#[derive(Debug, Default)]
pub(super) struct Reports {
    /// With their attempt. The first `sent` of them are in flight.
    unconfirmed: Vec<(Finish, u32)>,
    sent: usize,
}

impl Reports {
    pub(super) fn len(&self) -> usize {
        self.unconfirmed.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    pub(super) fn push(&mut self, report: Finish, attempt: u32) {
        self.unconfirmed.push((report, attempt));
    }

    /// Reports a claim that was not started; its attempt is given back too.
    pub(super) fn give_back(&mut self, claim: &Claim) {
        self.unconfirmed.push(given_back(claim));
    }

    /// As `give_back`, before what is given back already: that is older, and comes to stand before these in its line.
    pub(super) fn give_back_first(&mut self, claims: &[Claim]) {
        let reports: Vec<_> = claims.iter().rev().map(given_back).collect();
        self.unconfirmed.splice(0..0, reports);
    }

    /// The reports of the next turn, at most so many.
    pub(super) fn send(&mut self, most: usize) -> Vec<Finish> {
        let reports = self.unconfirmed.iter().take(most);
        let reports: Vec<Finish> = reports.map(|(report, _)| report.clone()).collect();
        self.sent = reports.len();
        reports
    }

    /// The turn in flight failed: they are sent again.
    pub(super) fn unsent(&mut self) {
        self.sent = 0;
    }

    /// Takes the reports of the turn that was carried out.
    pub(super) fn confirm(&mut self) -> impl Iterator<Item = (Finish, u32)> + '_ {
        let sent = std::mem::take(&mut self.sent);
        self.unconfirmed.drain(..sent)
    }

    /// Whether there is one on this claim.
    pub(super) fn holds(&self, id: TaskId, token: Token) -> bool {
        let is_same = |(report, _): &(Finish, u32)| report.id == id && report.token == token;
        self.unconfirmed.iter().any(is_same)
    }

    pub(super) fn take_all(&mut self) -> Vec<Finish> {
        self.sent = 0;
        self.unconfirmed
            .drain(..)
            .map(|(report, _)| report)
            .collect()
    }
}

fn given_back(claim: &Claim) -> (Finish, u32) {
    (Finish::new(claim, Outcome::GivenBack), claim.attempt)
}
