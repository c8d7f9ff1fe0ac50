//! Cuts a failing sequence down to the few requests that matter.
//!
//! It removes steps, then requests, then arguments, and keeps a cut whenever the servers still disagree about the same
//! command in the same way. That is no proof of minimality; it is bounded by a number of runs, because each run costs
//! the servers a handful of round trips.

use crate::command::{Delivery, Sequence, Step};
use crate::coverage::Coverage;
use crate::grammar::is_safe;
use crate::known_differences::{is_bound_to_a_version, is_odd_about_expired_keys};
use crate::run::{Mismatch, Outcome, Pair};

/// How many candidates are tried at most.
const RUNS: usize = 400;

/// The smallest sequence found, and its mismatch.
pub(crate) fn shrink(
    pair: &mut Pair,
    sequence: &Sequence,
    mismatch: &Mismatch,
) -> (Sequence, Mismatch) {
    let mut shrinker = Shrinker {
        pair,
        best: sequence.clone(),
        mismatch: mismatch.clone(),
        runs: 0,
    };
    // Nothing behind the failing step can matter.
    let mut shorter = sequence.clone();
    shorter.steps.truncate(mismatch.step + 1);
    shrinker.accepts(shorter);
    loop {
        let before = shrinker.best.clone();
        shrinker.drop_steps();
        shrinker.drop_requests();
        shrinker.simplify_delivery();
        shrinker.drop_arguments();
        if shrinker.best == before || shrinker.runs >= RUNS {
            break;
        }
    }
    (shrinker.best, shrinker.mismatch)
}

struct Shrinker<'a> {
    pair: &'a mut Pair,
    best: Sequence,
    mismatch: Mismatch,
    runs: usize,
}

impl Shrinker<'_> {
    /// Keeps the candidate if it still shows the difference.
    fn accepts(&mut self, candidate: Sequence) -> bool {
        if self.runs >= RUNS || candidate == self.best {
            return false;
        }
        self.runs += 1;
        match self.pair.run(&candidate, &mut Coverage::default()) {
            Ok(Outcome::Differs(mismatch))
                if mismatch.difference.signature == self.mismatch.difference.signature =>
            {
                self.best = candidate;
                self.mismatch = mismatch;
                true
            }
            _ => false,
        }
    }

    fn drop_steps(&mut self) {
        let mut size = (self.best.steps.len() / 2).max(1);
        loop {
            let mut from = 0;
            while from < self.best.steps.len() {
                let to = (from + size).min(self.best.steps.len());
                let mut candidate = self.best.clone();
                candidate.steps.drain(from..to);
                if !self.accepts(candidate) {
                    from = to;
                }
            }
            if size == 1 || self.runs >= RUNS {
                return;
            }
            size /= 2;
        }
    }

    fn drop_requests(&mut self) {
        for step in 0..self.best.steps.len() {
            let mut index = 0;
            while let Some(Step::Run { requests, .. }) = self.best.steps.get(step) {
                if requests.len() < 2 || index >= requests.len() {
                    break;
                }
                let mut candidate = self.best.clone();
                if let Step::Run { requests, .. } = &mut candidate.steps[step] {
                    requests.remove(index);
                }
                if !self.accepts(candidate) {
                    index += 1;
                }
            }
        }
    }

    fn simplify_delivery(&mut self) {
        for step in 0..self.best.steps.len() {
            let mut candidate = self.best.clone();
            if let Some(Step::Run { delivery, .. }) = candidate.steps.get_mut(step)
                && *delivery != Delivery::OneByOne
            {
                *delivery = Delivery::OneByOne;
                self.accepts(candidate);
            }
        }
        for notify in ["", "KEA"] {
            let mut candidate = self.best.clone();
            candidate.notify = notify.into();
            if self.accepts(candidate) {
                break;
            }
        }
        let mut candidate = self.best.clone();
        candidate.protocols.fill(2);
        candidate.subscriber = 2;
        self.accepts(candidate);
    }

    fn drop_arguments(&mut self) {
        for step in 0..self.best.steps.len() {
            let requests = self.best.steps[step].requests().len();
            for index in 0..requests {
                let mut arg = 1;
                while let Some(Step::Run { requests, .. }) = self.best.steps.get(step) {
                    if arg >= requests[index].args.len() {
                        break;
                    }
                    let mut candidate = self.best.clone();
                    if let Step::Run { requests, .. } = &mut candidate.steps[step] {
                        requests[index].args.remove(arg);
                        let request = &requests[index];
                        if !is_safe(request)
                            || is_bound_to_a_version(request)
                            || is_odd_about_expired_keys(request)
                        {
                            arg += 1;
                            continue;
                        }
                    }
                    if !self.accepts(candidate) {
                        arg += 1;
                    }
                }
            }
        }
    }
}
