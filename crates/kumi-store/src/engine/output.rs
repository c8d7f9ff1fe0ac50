//! Bytes that wait to be written to clients: a slab of chunked output buffers, by session slot.
//!
//! The front owns the [`Outputs`] and lends them to the engine for each call. The engine appends
//! replies and pushes; the front writes chunks to sockets and reports how much was taken. Between
//! calls the engine holds no byte for a socket.
//!
//! Replies of a running command go to its session's buffer at once. Messages pushed to that same
//! session meanwhile (its own PUBLISH, its own keyspace events) wait in `late` and follow the
//! command's reply, as in Redis.

mod buffer;

use crate::base::ids::SessionKey;
pub(crate) use buffer::CHUNK_BYTES;
use buffer::{Buffer, Pool};
use kumi_resp::SharedBytes;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::IoSlice;

/// What CLIENT LIST shows of a session's output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputUse {
    /// Memory of all chunks; a shared value counts with its length.
    pub(crate) memory: usize,
    /// `obl`: bytes in the first buffer.
    pub(crate) first_len: usize,
    /// `oll`: chunks behind the first buffer.
    pub(crate) more_chunks: usize,
    /// `omem`: memory of those.
    pub(crate) more_memory: usize,
    /// Some of the output is written and some is not: the front waits for room in the socket.
    pub(crate) half_written: bool,
}

/// The output of one session.
#[derive(Debug, Default)]
struct Output {
    /// The session this slot belongs to now.
    key: Option<SessionKey>,
    buffer: Buffer,
    /// Pushes to this session while a command of its own runs.
    late: Option<Box<Buffer>>,
    /// A command of this session runs: what it wrote may still be cut back, so only what is before it is written.
    running: bool,
    /// The position in the buffer where the running command began to write.
    complete: usize,
    /// Bytes before that position that were written meanwhile. They stay in the buffer until the command ends, because
    /// it counts positions from the first of them.
    early: usize,
    /// On the list of sessions with output.
    listed: bool,
}

impl Output {
    /// Bytes that wait, in both buffers. Pushes that passed the limit count although they are dropped, so that the
    /// session is closed.
    #[inline]
    fn pending(&self) -> usize {
        let late = self.late.as_deref().map_or(0, Buffer::demand);
        self.buffer.pending().saturating_sub(self.early) + late
    }

    /// Where a push goes. Pushes behind a running command may use what its reply has left of the limit.
    fn push_target(&mut self) -> &mut Buffer {
        if !self.running {
            return &mut self.buffer;
        }
        let late = self.late.get_or_insert_default();
        // What has been written meanwhile does not wait any more.
        let written = match self.buffer.is_over_limit() {
            true => 0,
            false => self.early,
        };
        late.set_limit(self.buffer.limit_left().saturating_add(written));
        late
    }
}

/// The output buffers of all sessions.
#[derive(Debug, Default)]
pub struct Outputs {
    slots: Vec<Output>,
    /// The reply of a command that a script called.
    script: Buffer,
    pool: Pool,
    ready: Vec<SessionKey>,
    /// Shared values are counted again when their bytes are more than this.
    count_above: usize,
}

/// Bytes of shared values that are not counted at once.
const UNCOUNTED_BYTES: usize = 1024 * 1024;

/// In place of a session's slot: the buffer for the replies of commands that a script calls.
pub(crate) const SCRIPT_SLOT: usize = usize::MAX;

impl Outputs {
    /// An empty slab; slots are added as sessions get output.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sessions that have got output since the last call.
    pub fn take_ready(&mut self) -> Vec<SessionKey> {
        std::mem::take(&mut self.ready)
    }

    /// Gives a taken list back, so that its allocation is used again.
    pub fn recycle_ready(&mut self, mut list: Vec<SessionKey>) {
        if self.ready.is_empty() {
            list.clear();
            self.ready = list;
        }
    }

    /// Bytes that wait for a session. None do while its running command is over the limit: they will not be written.
    #[must_use]
    pub fn pending(&self, key: SessionKey) -> usize {
        match self.get(key) {
            Some(output) if !output.buffer.is_over_limit() => output.pending(),
            _ => 0,
        }
    }

    /// The first bytes to write for a session, and whether more chunks follow. While a command of
    /// the session runs these are of replies that were complete before it.
    #[must_use]
    pub fn first_chunk(&self, key: SessionKey) -> (&[u8], bool) {
        match self.get(key) {
            // What the buffer holds now is the end of a reply that was dropped.
            Some(output) if output.buffer.is_over_limit() => (&[], false),
            Some(output) if !output.running => output.buffer.first_chunk(),
            Some(output) => output.buffer.first_until(output.early, output.complete),
            None => (&[], false),
        }
    }

    /// Fills `slices` with the chunks to write for a session, for one vectored write; returns how
    /// many were filled.
    pub fn slices<'a>(&'a self, key: SessionKey, slices: &mut [IoSlice<'a>]) -> usize {
        match self.get(key) {
            Some(output) if output.buffer.is_over_limit() => 0,
            Some(output) if !output.running => output.buffer.slices(0, usize::MAX, slices),
            Some(output) => output.buffer.slices(output.early, output.complete, slices),
            None => 0,
        }
    }

    /// A copy of all bytes that wait for a session, for a front that has no sockets.
    #[must_use]
    pub fn to_vec(&self, key: SessionKey) -> Vec<u8> {
        self.get(key)
            .map_or_else(Vec::new, |output| output.buffer.to_vec())
    }

    /// Removes `count` bytes that were written for a session.
    pub(crate) fn written(&mut self, key: SessionKey, count: usize) {
        if let Some(output) = matching(&mut self.slots, key) {
            output.listed = false;
            if output.running {
                output.early += count;
            } else {
                output.buffer.written(count, &mut self.pool);
            }
        }
    }

    /// Drops what waits for a session that is closed without being written to. Nothing that its running command writes
    /// is kept either.
    pub(crate) fn clear(&mut self, key: SessionKey) {
        if let Some(output) = matching(&mut self.slots, key) {
            if output.running {
                let pending = output.pending();
                output.buffer.give_up(pending, &mut self.pool);
            } else {
                std::mem::take(&mut output.buffer).discard(&mut self.pool);
            }
            if let Some(late) = output.late.take() {
                late.discard(&mut self.pool);
            }
            (output.complete, output.early) = (0, 0);
        }
    }

    /// Forgets the output of a session that has ended.
    pub fn remove(&mut self, key: SessionKey) {
        if let Some(output) = matching(&mut self.slots, key) {
            let Output { buffer, late, .. } = std::mem::take(output);
            buffer.discard(&mut self.pool);
            if let Some(late) = late {
                late.discard(&mut self.pool);
            }
        }
    }

    /// Large values whose last reference was written. Drop them on a thread that may take its
    /// time.
    pub fn take_garbage(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.pool.garbage)
    }

    /// Whether [`Outputs::take_garbage`] would return anything.
    #[must_use]
    pub fn has_garbage(&self) -> bool {
        !self.pool.garbage.is_empty()
    }

    /// Memory of all chunks with output in them, and of shared values that only the output holds as of the last
    /// `Outputs::count_shared`. Values that the data set holds too count there.
    #[inline]
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.own_bytes() + self.pool.orphan_bytes
    }

    /// The same with all shared values, each as often as it waits: what `omem` and `obl` of all clients are together.
    #[inline]
    #[must_use]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.own_bytes() + self.pool.shared_bytes
    }

    #[inline]
    fn own_bytes(&self) -> usize {
        self.pool.in_use() + self.slots.capacity() * size_of::<Output>()
    }

    /// Counts the shared values that only the output holds: the data set had them when they were sent, and has not any
    /// more. It looks at all that wait.
    pub(crate) fn count_shared(&mut self) {
        let mut held: HashMap<*const u8, usize> = HashMap::new();
        self.pool.orphan_bytes = 0;
        if self.pool.shared_bytes > 0 {
            let slots = self.slots.iter();
            let late = slots.clone().filter_map(|output| output.late.as_deref());
            let buffers = slots.map(|output| &output.buffer).chain(late);
            for bytes in buffers.flat_map(Buffer::shared) {
                let places = held.entry(bytes.as_ptr()).or_default();
                *places += 1;
                if *places == bytes.owners() {
                    self.pool.orphan_bytes += bytes.heap_bytes();
                }
            }
        }
        // Each count is paid for by as much output as a quarter of what it looked at.
        let shared = self.pool.shared_bytes;
        self.count_above = shared + shared / 4 + UNCOUNTED_BYTES;
    }

    pub(crate) fn usage(&self, key: SessionKey) -> OutputUse {
        self.get(key)
            .map(|output| output.buffer.usage())
            .unwrap_or_default()
    }

    /// A command of the session begins; it may have `limit` bytes waiting in all. Returns the slot
    /// that [`Outputs::running`] takes.
    #[inline]
    pub(crate) fn begin(&mut self, key: SessionKey, limit: usize) -> usize {
        let slot = self.slot(key);
        let output = &mut self.slots[slot];
        output.running = true;
        output.complete = output.buffer.len();
        output.buffer.set_limit(limit);
        slot
    }

    /// The command ended: its late pushes follow its reply. Returns the bytes that waited when the
    /// limit was passed, if it was; then all output is gone and the session has to be closed.
    #[inline]
    pub(crate) fn end(&mut self, slot: usize) -> Option<usize> {
        let output = &mut self.slots[slot];
        output.running = false;
        output.buffer.end_discard(&mut self.pool);
        let early = std::mem::take(&mut output.early);
        if early > 0 && !output.buffer.is_over_limit() {
            output.buffer.written(early, &mut self.pool);
        }
        if let Some(late) = output.late.take() {
            output.buffer.append_buffer(*late, &mut self.pool);
        }
        output.buffer.take_overflow()
    }

    /// The buffer of a running session, with the pool its chunks come from.
    #[inline]
    pub(crate) fn running(&mut self, slot: usize) -> (&mut Buffer, &mut Pool) {
        let buffer = match self.slots.get_mut(slot) {
            Some(output) => &mut output.buffer,
            None => &mut self.script,
        };
        (buffer, &mut self.pool)
    }

    /// Empties the buffer for replies to a script.
    pub(crate) fn clear_script(&mut self) {
        if self.script.len() > 0 {
            self.script.cut_back(0, &mut self.pool);
        }
    }

    /// The length of the reply of the command that a script called last.
    pub(crate) fn script_reply_bytes(&self) -> usize {
        self.script.len()
    }

    /// The reply of the command that a script called last.
    pub(crate) fn script_reply(&self) -> Cow<'_, [u8]> {
        match self.script.first_chunk() {
            (bytes, false) => Cow::Borrowed(bytes),
            (_, true) => Cow::Owned(self.script.to_vec()),
        }
    }

    /// Appends encoded bytes to a session's output, behind the reply of its running command.
    pub(crate) fn push(&mut self, key: SessionKey, bytes: &[u8]) {
        let slot = self.slot(key);
        let buffer = self.slots[slot].push_target();
        buffer.append(bytes, &mut self.pool);
    }

    /// Appends a long value to a session's output by reference, as [`Outputs::push`] does.
    pub(crate) fn push_shared(&mut self, key: SessionKey, bytes: &SharedBytes) {
        let slot = self.slot(key);
        let buffer = self.slots[slot].push_target();
        buffer.append_shared(bytes, &mut self.pool);
    }

    /// Puts a session on the list of those with output; returns how many bytes wait, those behind its running command's
    /// reply included.
    #[inline]
    pub(crate) fn list(&mut self, key: SessionKey) -> usize {
        if self.pool.shared_bytes > self.count_above {
            self.count_shared();
        }
        let Some(output) = matching(&mut self.slots, key) else {
            return 0;
        };
        if output.buffer.pending() > 0 && !output.listed {
            output.listed = true;
            self.ready.push(key);
        }
        output.pending()
    }

    #[inline]
    fn get(&self, key: SessionKey) -> Option<&Output> {
        self.slots
            .get(key.slot as usize)
            .filter(|output| output.key == Some(key))
    }

    /// The slot of a session. What an earlier session left there is dropped.
    #[inline]
    fn slot(&mut self, key: SessionKey) -> usize {
        if self.get(key).is_none() {
            self.take_slot(key);
        }
        key.slot as usize
    }

    #[cold]
    fn take_slot(&mut self, key: SessionKey) {
        let slot = key.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Output::default);
        }
        if let Some(earlier) = self.slots[slot].key {
            self.remove(earlier);
        }
        self.slots[slot].key = Some(key);
    }
}

#[inline]
fn matching(slots: &mut [Output], key: SessionKey) -> Option<&mut Output> {
    slots
        .get_mut(key.slot as usize)
        .filter(|output| output.key == Some(key))
}

#[cfg(test)]
mod tests;
