//! Arguments too long to be copied twice: each is collected in a buffer of its exact size and then
//! shared.
//!
//! What of such an argument lies in the caller's buffer is moved here. The rest can be read
//! straight into [`Decoder::large_room`](crate::Decoder::large_room).

use crate::SharedBytes;
use crate::args::Span;

/// Arguments of at least this many bytes get a buffer of their own.
pub const LARGE_ARG_BYTES: usize = 32 * 1024;

/// Room made before that many bytes have arrived. A longer claim alone takes no more memory.
const FIRST_ROOM_BYTES: usize = 1024 * 1024;

/// The large arguments of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Large {
    /// Complete ones, in order.
    done: Vec<SharedBytes>,
    /// The one that is arriving.
    filling: Vec<u8>,
    /// Bytes that the last call moved from the caller's buffer to `filling`.
    moved: usize,
}

impl Large {
    #[inline]
    pub(crate) fn done(&self) -> &[SharedBytes] {
        &self.done
    }

    pub(crate) fn take_done(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.done)
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        if !self.done.is_empty() || self.filling.capacity() > 0 {
            *self = Self::default();
        }
    }

    /// Bytes held.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.done.is_empty() {
            return self.filling.len();
        }
        let done: usize = self.done.iter().map(|bytes| bytes.len()).sum();
        done + self.filling.len()
    }

    /// Moves the start of `rest` to the argument of `len` bytes; returns how much that was.
    pub(crate) fn fill(&mut self, rest: &[u8], len: usize) -> usize {
        let count = rest.len().min(len - self.filling.len());
        if count > 0 {
            if self.filling.capacity() - self.filling.len() < count {
                let capacity = len.min(FIRST_ROOM_BYTES.max(self.filling.len() + count));
                self.filling.reserve_exact(capacity - self.filling.len());
            }
            self.filling.extend_from_slice(&rest[..count]);
        }
        self.moved = count;
        count
    }

    /// How much of the argument of `len` bytes is still to come.
    pub(crate) fn missing(&self, len: usize) -> usize {
        len - self.filling.len()
    }

    /// Bytes of it for which there is room already.
    pub(crate) fn free(&self) -> usize {
        self.filling.capacity() - self.filling.len()
    }

    /// Room for more of the argument of `len` bytes. `None` when the system has no such memory.
    pub(crate) fn room(&mut self, len: usize) -> Option<&mut Vec<u8>> {
        let have = self.filling.len();
        if self.filling.capacity() == have {
            let capacity = if have < FIRST_ROOM_BYTES {
                len.min(FIRST_ROOM_BYTES)
            } else {
                len
            };
            self.filling.try_reserve_exact(capacity - have).ok()?;
        }
        Some(&mut self.filling)
    }

    /// Removes from the caller's buffer what was moved here, which ends at `pos`, and returns how
    /// much that was. What was read past the end of the argument goes to the end of the buffer.
    pub(crate) fn settle(&mut self, buf: &mut Vec<u8>, pos: usize, len: usize) -> usize {
        let moved = std::mem::take(&mut self.moved);
        if moved > 0 && pos <= buf.len() {
            buf.drain(pos - moved..pos);
        }
        if self.filling.len() > len {
            buf.extend_from_slice(&self.filling[len..]);
            self.filling.truncate(len);
        }
        moved
    }

    /// The argument is complete; its place in the list of arguments.
    pub(crate) fn finish(&mut self) -> Span {
        let bytes = std::mem::take(&mut self.filling);
        self.moved = 0;
        self.done.push(SharedBytes::new(bytes));
        Span::large(self.done.len() - 1)
    }
}
