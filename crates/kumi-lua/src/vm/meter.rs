//! What bounds work that is done outside the run loop: matching patterns and compiling.

use crate::vm::heap::Heap;
use crate::vm::host::Host;
use crate::vm::{Error, ErrorKind, Result};

/// Charges work to the budget of the running script.
pub(crate) struct Meter<'a> {
    pub(crate) fuel: &'a mut i64,
    pub(crate) interval: i64,
    pub(crate) host: &'a mut dyn Host,
}

impl Meter<'_> {
    #[inline]
    pub(crate) fn burn(&mut self, work: usize) -> Result<()> {
        *self.fuel -= work as i64;
        if *self.fuel < 0 {
            *self.fuel = self.interval;
            return self
                .host
                .interrupt()
                .map_err(|reason| Error::from(ErrorKind::Interrupted(reason)));
        }
        Ok(())
    }
}

/// What a compilation may use: time until the host is asked, and memory.
pub(crate) struct Budget<'a> {
    pub(crate) meter: Meter<'a>,
    /// Bytes that the heap and the compiler may have together.
    pub(crate) memory_bytes: usize,
}

impl Budget<'_> {
    /// Whether the heap has room for this many more bytes.
    pub(crate) fn has_room(&self, heap: &Heap, more: usize) -> bool {
        heap.demand().saturating_add(more) <= self.memory_bytes
    }
}
