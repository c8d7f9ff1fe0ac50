//! ACL LOG: what was denied, the newest first, repetitions counted.

use crate::base::clock::Now;
use std::collections::VecDeque;

/// Repetitions within this time are one entry.
const GROUPING_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Auth,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    TopLevel,
    Multi,
    Lua,
}

impl Context {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) context: Context,
    /// The command, key or channel that was denied; `AUTH` for a wrong password.
    pub(crate) object: Vec<u8>,
    pub(crate) username: Vec<u8>,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) client: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct AclLog {
    entries: VecDeque<Entry>,
    last_id: u64,
}

impl AclLog {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds an entry, or counts it with one like it.
    pub(crate) fn add(&mut self, mut entry: Entry, now: Now, limit: usize) {
        let now_ms = now.unix_ms();
        let like = self.entries.iter().position(|known| {
            known.reason == entry.reason
                && known.context == entry.context
                && known.object == entry.object
                && known.username == entry.username
                && now_ms.saturating_sub(known.updated_ms) <= GROUPING_MS
        });
        match like.and_then(|at| self.entries.remove(at)) {
            Some(known) => {
                entry = Entry {
                    count: known.count + 1,
                    id: known.id,
                    created_ms: known.created_ms,
                    ..entry
                };
            }
            None => {
                entry.id = self.last_id;
                self.last_id += 1;
                entry.count = 1;
                entry.created_ms = now_ms;
            }
        }
        entry.updated_ms = now_ms;
        self.entries.push_front(entry);
        self.entries.truncate(limit);
    }
}
