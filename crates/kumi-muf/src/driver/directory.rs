//! The units that run: a watch over `_info` of all units, which begins with the first request for the list.
//!
//! The first request is answered by a search of the keyspace, which may be large; later ones by the server's events since
//! then. After a gap the watch searches again by itself. A list that is not complete yet and that no caller waits for any
//! more is given up, and with it the search.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Steps of searches, and entries read: grows while the list is on its way.
    progress: Arc<AtomicU64>,
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

    /// How far the list has come; a number that only says whether it goes on.
    pub(super) fn progress(&self) -> Arc<AtomicU64> {
        self.progress.clone()
    }

    /// Whether a list is on its way that is waited for.
    pub(super) fn is_waited_for(&mut self) -> bool {
        self.waiting.retain(|reply| !reply.is_closed());
        !self.waiting.is_empty()
    }

    /// Whether a list is being made that no caller waits for.
    pub(super) fn is_abandoned(&mut self) -> bool {
        self.watch.is_some() && !self.live && !self.is_waited_for()
    }

    /// The keyspace may not be searched: all requests for the list fail, and the next one begins anew.
    pub(super) fn refuse(&mut self, server: &str, reason: &str) {
        for reply in std::mem::take(self).waiting {
            let _ = reply.send(Err(Error::refused(server, reason.to_owned())));
        }
    }

    pub(super) fn apply(&mut self, event: KeepEvent) {
        self.progress.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_no_caller_waits_for_any_more_is_abandoned() {
        let mut directory = Directory::default();
        assert!(!directory.is_abandoned(), "there is none");
        directory.watch = Some(WatchId(1));
        let ((first, first_list), (second, second_list)) = (oneshot::channel(), oneshot::channel());
        directory.list(first);
        directory.list(second);
        drop(first_list);
        assert!(!directory.is_abandoned(), "the second caller waits");
        drop(second_list);
        assert!(directory.is_abandoned());
        directory.apply(KeepEvent::Live);
        assert!(!directory.is_abandoned(), "it is complete");
    }

    #[test]
    fn every_entry_that_is_read_is_progress() {
        let mut directory = Directory::default();
        let progress = directory.progress();
        for number in 1..=3 {
            directory.apply(KeepEvent::Value {
                unit: "back".into(),
                id: "_info".into(),
                value: "{}".into(),
                ttl_ms: None,
            });
            assert_eq!(progress.load(Ordering::Relaxed), number);
        }
    }
}
