//! Which command was begun last, for whatever looks at the engine from outside while it runs: the report of a crash.

use crate::base::ids::CommandId;
use crate::engine::command::CommandIndex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The command that was begun last. Reading it takes neither a lock nor memory.
#[derive(Clone, Debug)]
pub struct RunningCommand {
    /// The number of arguments above the row's position plus one; 0 before the first command.
    state: Arc<AtomicU64>,
    names: Arc<[Box<str>]>,
}

const ID_BITS: u32 = 16;

impl RunningCommand {
    pub(crate) fn new(index: &CommandIndex) -> Self {
        Self {
            state: Arc::default(),
            names: index
                .iter()
                .map(|(_, indexed)| indexed.full_name.clone())
                .collect(),
        }
    }

    #[inline]
    pub(crate) fn set(&self, id: CommandId, args: usize) {
        let state = (args as u64) << ID_BITS | (u64::from(id.0) + 1);
        self.state.store(state, Ordering::Relaxed);
    }

    /// Its name, as `get` or `client|id`, and how many arguments it has besides; none before the first command.
    #[must_use]
    pub fn get(&self) -> Option<(&str, u32)> {
        let state = self.state.load(Ordering::Relaxed);
        let position = (state & ((1 << ID_BITS) - 1)).checked_sub(1)?;
        let name = self.names.get(usize::try_from(position).ok()?)?;
        let args = u32::try_from(state >> ID_BITS).unwrap_or(u32::MAX);
        Some((name, args.saturating_sub(1)))
    }
}
