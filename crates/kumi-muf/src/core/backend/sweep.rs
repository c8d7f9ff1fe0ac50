//! Sweeps: finding requests that no push told of, after every subscription and every quarter of REQ's life.
//!
//! A found request is first looked at (`EXISTS RES ERR`, `PTTL claim`). An orphan, unanswered and unclaimed, is claimed
//! at once; one that another backend works on is kept in mind until that claim may have lapsed, as if this backend had
//! tried and lost. What it knows of already, and what it knows to be answered, costs no command.

use std::collections::VecDeque;

use super::job::Origin;
use super::{Backend, Output, Time};
use crate::core::command::{Command, Purpose, Replies, Reply, Search, SearchToken};
use crate::core::key::{Audience, Key, RequestId, RequestKeys, Status};

/// What PTTL says of a key that is not there.
pub(super) const ABSENT: i64 = -2;

impl Backend {
    /// Pushes arrive from now on. What was on its way is tried again by its own failure; what nobody told us is swept.
    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        self.recent.clear();
        if self.services.is_empty() {
            self.sweep_at = Some(now);
            return;
        }
        self.begin_sweep(false, now, out);
    }

    pub(super) fn begin_sweep(&mut self, paced: bool, now: Time, out: &mut VecDeque<Output>) {
        self.sweep += 1;
        self.sweeping = true;
        self.sweep_at = Some(now.plus(self.settings.sweep_ms()));
        let token = SearchToken(Search::Sweep(self.sweep));
        let mut globs = self
            .services
            .values()
            .filter(|service| !service.draining)
            .map(|s| s.pattern.id_glob());
        let glob = match (globs.next(), globs.next()) {
            (Some(only), None) => only,
            _ => "*".into(),
        };
        out.push_back(Output::Search {
            token,
            pattern: format!("MUF/*/REQ/{glob}"),
            paced,
        });
    }

    pub(crate) fn found(
        &mut self,
        sweep: u64,
        keys: &[String],
        done: bool,
        out: &mut VecDeque<Output>,
    ) {
        if done && sweep == self.sweep {
            self.sweeping = false;
        }
        for text in keys {
            let Some(key) = Key::parse(text).filter(|key| key.status == Status::Req) else {
                continue;
            };
            let Some(id) = RequestId::parse(key.id) else {
                continue;
            };
            let known = self.by_key.contains_key(&(key.unit.to_owned(), id.clone()));
            if known || self.recent.contains(key.unit, &id) || self.service_for(&id).is_none() {
                continue;
            }
            let keys = RequestKeys {
                unit: key.unit,
                id: &id,
            };
            let commands = match id.audience() {
                Audience::All => {
                    let own = |status| keys.answer_of(status, self.unit.as_str());
                    vec![Command::Exists(vec![own(Status::Res), own(Status::Err)])]
                }
                _ => vec![
                    Command::Exists(vec![keys.res(), keys.err()]),
                    Command::TimeToLive(keys.claim()),
                ],
            };
            let purpose = Purpose::Check {
                unit: key.unit.to_owned(),
                id,
            };
            out.push_back(Output::run(purpose, commands));
        }
    }

    pub(crate) fn checked(
        &mut self,
        unit: &str,
        id: &RequestId,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Ok([Reply::Number(0), claim @ ..]) = replies.as_deref() else {
            return;
        };
        match claim.first().map_or(ABSENT, Reply::number) {
            ABSENT => self.offer(unit, id, Origin::Sweep, now, out),
            left_ms => {
                // A claim without an end is a person's, and means what it says.
                if let Ok(left_ms) = u64::try_from(left_ms) {
                    self.await_lapse(unit, id, left_ms, now, out);
                }
            }
        }
    }

    /// Another backend works on a request, and has to show for `left_ms` more that it lives.
    fn await_lapse(
        &mut self,
        unit: &str,
        id: &RequestId,
        left_ms: u64,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let known = self.by_key.contains_key(&(unit.to_owned(), id.clone()));
        let Some(service) = self.service_for(id).filter(|_| !known) else {
            return;
        };
        let job_id = self.insert(unit, id, service, Origin::Takeover);
        self.lose(job_id, Some(left_ms), now, out);
    }
}
