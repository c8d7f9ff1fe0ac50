//! The units that run: a watch over `_info` of all units, which begins with the first question.
//!
//! The first question is answered by a search of the keyspace, which may be large; later ones by the server's events since
//! then. After a gap the watch searches again by itself.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::core::{KeepEvent, WatchId};
use crate::discovery::Info;
use crate::error::Error;

pub(super) type Reply = oneshot::Sender<Result<Vec<Info>, Error>>;

/// The units that are known.
#[derive(Default)]
pub(super) struct Directory {
    pub(super) watch: Option<WatchId>,
    units: BTreeMap<String, Info>,
    /// All that is there is known.
    live: bool,
    waiting: Vec<Reply>,
}

impl Directory {
    pub(super) fn is(&self, watch: WatchId) -> bool {
        self.watch == Some(watch)
    }

    /// Answers with the units that run, now or when they are known.
    pub(super) fn list(&mut self, reply: Reply) {
        if self.live {
            let _ = reply.send(Ok(self.units.values().cloned().collect()));
            return;
        }
        self.waiting.retain(|reply| !reply.is_closed());
        self.waiting.push(reply);
    }

    /// The keyspace may not be searched: all questions fail, and the next one begins anew.
    pub(super) fn refuse(&mut self, server: &str, reason: &str) {
        for reply in std::mem::take(self).waiting {
            let _ = reply.send(Err(Error::refused(server, reason.to_owned())));
        }
    }

    pub(super) fn apply(&mut self, event: KeepEvent) {
        match event {
            KeepEvent::Value { unit, value, .. } => match Info::read(&unit, &value) {
                Some(info) => {
                    self.units.insert(unit, info);
                }
                None => {
                    self.units.remove(&unit);
                }
            },
            KeepEvent::TooLarge { unit, .. }
            | KeepEvent::Deleted { unit, .. }
            | KeepEvent::Expired { unit, .. } => {
                self.units.remove(&unit);
            }
            KeepEvent::Gap => {
                self.units.clear();
                self.live = false;
            }
            KeepEvent::Live => {
                self.live = true;
                for reply in std::mem::take(&mut self.waiting) {
                    let _ = reply.send(Ok(self.units.values().cloned().collect()));
                }
            }
        }
    }
}
