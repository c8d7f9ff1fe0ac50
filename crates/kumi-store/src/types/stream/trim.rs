//! XTRIM and the trimming of XADD: whole nodes from the front, then marks inside the first node that stays.

use super::node::{self, Node};
use super::{Stream, StreamId};

/// What is to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrimTo {
    /// At most so many entries.
    MaxLen(u64),
    /// No entry below this id.
    MinId(StreamId),
}

/// How to trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) to: TrimTo,
    /// `~`: only whole nodes are removed.
    pub(crate) approximate: bool,
    /// No more entries than this are removed; 0 for no limit.
    pub(crate) limit: u64,
}

impl Stream {
    /// Removes entries from the front, and returns how many.
    pub(crate) fn trim(&mut self, trim: Trim) -> u64 {
        let mut deleted = 0;
        while let Some((master, block)) = self.nodes.first() {
            if let TrimTo::MaxLen(max) = trim.to
                && self.length <= max
            {
                break;
            }
            let node = Node::new(master, block);
            let live = node.live();
            if trim.limit > 0 && deleted + live > trim.limit {
                break;
            }
            let whole = match trim.to {
                TrimTo::MaxLen(max) => self.length.saturating_sub(live) >= max,
                TrimTo::MinId(min) => node.last_id().is_none_or(|last| last < min),
            };
            if whole {
                self.node_bytes -= block.heap_bytes();
                self.nodes.pop_first();
                self.length = self.length.saturating_sub(live);
                deleted += live;
                continue;
            }
            if !trim.approximate {
                deleted += self.trim_first_node(trim.to);
            }
            break;
        }
        if self.length == 0 {
            // The counters of a serialised stream may name a first entry although there is none.
            self.first_id = StreamId::MIN;
        } else if deleted > 0 {
            self.find_first();
        }
        deleted
    }

    /// Marks the entries of the first node that have to go.
    fn trim_first_node(&mut self, to: TrimTo) -> u64 {
        let Some((master, block)) = self.nodes.first_mut() else {
            return 0;
        };
        let node = Node::new(master, block);
        let excess = match to {
            TrimTo::MaxLen(max) => self.length.saturating_sub(max),
            TrimTo::MinId(_) => u64::MAX,
        };
        let doomed: Vec<_> = node
            .places()
            .filter(|place| place.is_live())
            .take(usize::try_from(excess).unwrap_or(usize::MAX))
            .take_while(|place| match to {
                TrimTo::MaxLen(_) => true,
                TrimTo::MinId(min) => place.id() < min,
            })
            .collect();
        let before = block.heap_bytes();
        node::mark_deleted(block, &doomed);
        self.node_bytes = self.node_bytes - before + block.heap_bytes();
        self.length -= doomed.len() as u64;
        doomed.len() as u64
    }
}
