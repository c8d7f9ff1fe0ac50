//! The units that run: a watch over `_info` of all units, which begins with the first question.
//!
//! The first question is answered by a search of the keyspace, which may be large; later ones by the server's events since
//! then. After a gap the watch searches again by itself.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use super::ask::{After, Report};
use super::engine::Engine;
use crate::Error;
use crate::core::{KeepEvent, KeepPattern, WatchId};
use crate::discovery::Info;

type Reply = oneshot::Sender<Result<Vec<Info>, Error>>;

/// The units that are known.
#[derive(Default)]
pub(super) struct Directory {
    watch: Option<WatchId>,
    units: BTreeMap<String, Info>,
    /// All that is there is known.
    live: bool,
    waiting: Vec<Reply>,
}

impl Directory {
    pub(super) fn is(&self, watch: WatchId) -> bool {
        self.watch == Some(watch)
    }

    pub(super) fn hear(&mut self, event: KeepEvent) {
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

impl Engine {
    /// Answers with the units that run, now or when they are known.
    pub(super) fn list_units(&mut self, reply: Reply) {
        if self.directory.live {
            let _ = reply.send(Ok(self.directory.units.values().cloned().collect()));
            return;
        }
        self.directory.waiting.retain(|reply| !reply.is_closed());
        self.directory.waiting.push(reply);
        if self.directory.watch.is_none() {
            let pattern = KeepPattern::of_infos();
            let glob = pattern.key_glob();
            self.directory.watch = Some(self.core.watch(pattern));
            self.subscribe(vec![glob], After::Directory);
        }
    }

    /// The directory's pattern is subscribed to, or may not be searched for.
    pub(super) fn directory_subscribed(&mut self, refused: Option<String>) {
        let Some(watch) = self.directory.watch else {
            return;
        };
        let Some(text) = refused else {
            return self.core.watch_ready(watch);
        };
        self.core.cancel_watch(watch);
        self.unsubscribe(&KeepPattern::of_infos().key_glob());
        for reply in std::mem::take(&mut self.directory).waiting {
            let _ = reply.send(Err(Error::Refused(text.clone())));
        }
    }

    /// Pings every node, first where pushes come and then where replies come: what was said before is taken in then.
    pub(super) fn barrier(&mut self, reply: oneshot::Sender<Result<(), Error>>) {
        if !self.fleet.all_up() {
            let _ = reply.send(Err(Error::Disconnected));
            return;
        }
        let remotes = self.fleet.remotes();
        self.tasks.spawn(async move {
            for mut remote in remotes {
                if remote.ping().await.is_err() {
                    let _ = reply.send(Err(Error::Disconnected));
                    return Report::Nothing;
                }
            }
            let _ = reply.send(Ok(()));
            Report::Nothing
        });
    }
}
