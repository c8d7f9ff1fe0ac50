//! Sweeps: finding requests that no push told of, after every subscription and every quarter of REQ's life.
//!
//! A found request is first looked at (`EXISTS RES ERR claim`): only an orphan, unanswered and unclaimed, is claimed.
//! What this backend knows of already, and what it knows to be answered, costs no command.

use std::collections::VecDeque;

use super::job::Origin;
use super::{Backend, Op, Output, Purpose, Replies, Time, Token};
use crate::core::command::{Command, Search, SearchToken};
use crate::core::key::{Audience, Key, RequestId, RequestKeys, Status};

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
            let asked = match id.audience() {
                Audience::All => [Status::Res, Status::Err]
                    .map(|status| keys.answer_of(status, self.unit.as_str()))
                    .to_vec(),
                _ => vec![keys.res(), keys.err(), keys.claim()],
            };
            let token = Token(Purpose::Check {
                unit: key.unit.to_owned(),
                id,
            });
            out.push_back(Output::Run(Op {
                token,
                commands: vec![Command::Exists(asked)],
            }));
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
        let orphan = matches!(replies.as_deref(), Ok([reply]) if *reply == crate::core::command::Reply::Number(0));
        if orphan {
            self.offer(unit, id, Origin::Sweep, now, out);
        }
    }
}
