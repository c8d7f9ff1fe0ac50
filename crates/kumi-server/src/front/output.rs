//! Writing what sessions have waiting, and closing those that are done.

use crate::front::{EngineIo, Front};
use crate::net::conn::Stream;
use kumi_store::{Outputs, SessionKey};
use mio::{Interest, Token};
use std::io::{self, IoSlice};
use std::net::Shutdown;

/// Chunks given to the system in one call.
const MAX_SLICES: usize = 64;

impl Front {
    /// One write for every session with output, after the append-only file has what the replies acknowledge.
    pub(crate) fn flush(&mut self, engine: &mut EngineIo<'_>) {
        if !self.append_writes(engine) {
            return;
        }
        let list = engine.outputs.take_ready();
        for &key in &list {
            self.write(engine, key);
        }
        engine.outputs.recycle_ready(list);
        if engine.outputs.has_garbage() {
            self.discarder.discard_bytes(engine.outputs.take_garbage());
        }
        if !self.connections.unwritten.is_empty() {
            for key in std::mem::take(&mut self.connections.unwritten) {
                self.write(engine, key);
            }
        }
    }

    fn write(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        let slot = self.connections.slots.get_mut(key.slot as usize);
        let Some(conn) = slot.and_then(Option::as_deref_mut) else {
            return;
        };
        if conn.key != key || conn.write_blocked {
            return;
        }
        let running = conn.running;
        if running {
            // Only what was complete before its long command can be written now.
            self.connections.unwritten.push(key);
        }
        if conn.stream.has_unsent()
            && let Err(error) = conn.stream.send_unsent()
        {
            tracing::debug!(%error, "writing to a client failed");
            engine.store.note_leaving(key, "write error");
            return self.close(engine, key);
        }
        let (first, more) = engine.outputs.first_chunk(key);
        if first.is_empty() {
            if conn.watches_writable {
                self.watch_writable(engine, key, false);
            }
            return;
        }
        let mut len = first.len();
        let count = loop {
            let written = if more {
                write_chunks(&mut conn.stream, engine.outputs, key, &mut len)
            } else {
                conn.stream.write(first)
            };
            match written {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "writing to a client failed");
                    engine.store.note_leaving(key, "write error");
                    return self.close(engine, key);
                }
            }
        };
        if count < len || conn.watches_writable || conn.stream.has_unsent() {
            self.watch_writable(engine, key, count < len);
        }
        engine.store.written(engine.outputs, key, count);
        if count == len && more && !running && engine.outputs.pending(key) > 0 {
            // The socket took all it was given, and there is more than one call gives it.
            self.connections.unwritten.push(key);
        }
    }

    /// Has the poll report when a socket takes more, as long as something waits for that.
    pub(crate) fn watch_writable(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        waits: bool,
    ) {
        let slot = self.connections.slots.get_mut(key.slot as usize);
        let Some(conn) = slot.and_then(Option::as_deref_mut) else {
            return;
        };
        let waits = waits || conn.stream.has_unsent();
        if waits != conn.watches_writable {
            // Only while something waits: a Unix socket would announce room after every reply
            // that its peer reads.
            let interest = if waits {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            let token = Token(key.slot as usize);
            let registry = self.poller.poll.registry();
            if let Err(error) = conn.stream.reregister(registry, token, interest) {
                tracing::warn!(%error, "a client's socket cannot be watched");
                return self.close(engine, key);
            }
            conn.watches_writable = waits;
        }
        conn.write_blocked = waits;
    }

    /// Closes the connections whose last bytes are written.
    pub(crate) fn close_flushed(&mut self, engine: &mut EngineIo<'_>) {
        if self.connections.closing.is_empty() {
            return;
        }
        for key in std::mem::take(&mut self.connections.closing) {
            let flushed = engine.outputs.pending(key) == 0 && self.may_touch(key);
            let Some(conn) = self.connections.get(key) else {
                continue;
            };
            if flushed && !conn.stream.has_unsent() {
                conn.stream.finish();
                self.close(engine, key);
            } else {
                self.connections.closing.push(key);
            }
        }
    }

    /// Ends every connection, in an order that lets replies already written arrive.
    pub(crate) fn close_all(&mut self, engine: &mut EngineIo<'_>) {
        for conn in self.connections.slots.iter_mut().filter_map(Option::take) {
            let mut conn = *conn;
            conn.stream.finish();
            conn.stream.shutdown(Shutdown::Write);
            engine.store.note_leaving(conn.key, "the server stops");
            engine.store.disconnect(conn.key);
            engine.outputs.remove(conn.key);
        }
    }
}

/// One vectored write; `len` becomes the number of bytes the system was given.
fn write_chunks(
    stream: &mut Stream,
    outputs: &Outputs,
    key: SessionKey,
    len: &mut usize,
) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let filled = outputs.slices(key, &mut slices);
    let slices = &slices[..filled];
    *len = slices.iter().map(|slice| slice.len()).sum();
    stream.write_vectored(slices)
}
