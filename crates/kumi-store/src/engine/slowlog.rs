//! SLOWLOG's ring of slow commands.

use std::collections::VecDeque;

/// Arguments and bytes shown per entry, as Redis clips them.
const SHOWN_ARGS: usize = 32;
const SHOWN_BYTES: usize = 128;

#[derive(Debug)]
pub(crate) struct SlowEntry {
    pub(crate) id: u64,
    pub(crate) unix_s: u64,
    pub(crate) duration_us: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) addr: String,
    pub(crate) name: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    entries: VecDeque<SlowEntry>,
    limit: usize,
    next_id: u64,
}

impl SlowLog {
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.entries.truncate(limit);
    }

    /// Adds an entry in front; its id is assigned here.
    pub(crate) fn push(&mut self, entry: SlowEntry) {
        if self.limit == 0 {
            return;
        }
        self.entries.push_front(SlowEntry {
            id: self.next_id,
            ..entry
        });
        self.next_id += 1;
        self.entries.truncate(self.limit);
    }

    /// Newest first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SlowEntry> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn reset(&mut self) {
        self.entries.clear();
    }
}

/// Clips a request to what an entry keeps.
pub(crate) fn clip(args: kumi_resp::Args<'_>) -> Vec<Vec<u8>> {
    let total = args.len();
    let kept = if total > SHOWN_ARGS {
        SHOWN_ARGS - 1
    } else {
        total
    };
    let mut shown: Vec<Vec<u8>> = args
        .iter()
        .take(kept)
        .map(|arg| {
            if arg.len() <= SHOWN_BYTES {
                return arg.to_vec();
            }
            let more = format!("... ({} more bytes)", arg.len() - SHOWN_BYTES);
            [&arg[..SHOWN_BYTES], more.as_bytes()].concat()
        })
        .collect();
    if kept < total {
        shown.push(format!("... ({} more arguments)", total - kept).into_bytes());
    }
    shown
}
