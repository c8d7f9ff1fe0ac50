//! The tasks that run a channel's stream, as the core knows them: the wakers of those that wait.

use std::task::Waker;

use super::Effects;

/// The wakers of the writer and the reader, each while it waits.
#[derive(Default)]
pub(super) struct Tasks {
    writer: Option<Waker>,
    reader: Option<Waker>,
}

impl Tasks {
    /// The writer waits.
    pub(super) fn keep_writer(&mut self, waker: &Waker) {
        keep_waker(&mut self.writer, waker);
    }

    /// The reader waits.
    pub(super) fn keep_reader(&mut self, waker: &Waker) {
        keep_waker(&mut self.reader, waker);
    }

    /// Wakes the writer, if it waits.
    pub(super) fn wake_writer(&mut self, effects: &mut Effects) {
        // It may have been taken by an earlier part of the same step.
        effects.writer = self.writer.take().or(effects.writer.take());
    }

    /// Wakes both, if they wait.
    pub(super) fn wake_all(&mut self, effects: &mut Effects) {
        self.wake_writer(effects);
        effects.reader = self.reader.take().or(effects.reader.take());
    }
}

/// Puts a waker into a slot, without a clone if it would wake the same task.
pub(super) fn keep_waker(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(kept) => kept.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}
