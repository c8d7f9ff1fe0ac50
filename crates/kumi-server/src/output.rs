//! Writing what sessions have waiting, and closing those that are done.

use crate::front::Front;
use kumi_store::{SessionKey, Store};
use mio::{Interest, Token};
use std::io;
use std::net::Shutdown;

impl Front {
    /// One write for every session with output.
    pub(crate) fn flush(&mut self, store: &mut Store) {
        let list = store.sessions_with_output();
        for &key in &list {
            self.write(store, key);
        }
        store.recycle_output_list(list);
        if !self.unwritten.is_empty() {
            for key in std::mem::take(&mut self.unwritten) {
                self.write(store, key);
            }
        }
    }

    fn write(&mut self, store: &mut Store, key: SessionKey) {
        let slot = self.conns.get_mut(key.slot as usize);
        let Some(conn) = slot.and_then(Option::as_deref_mut) else {
            return;
        };
        if conn.key != key || conn.write_blocked {
            return;
        }
        if conn.running {
            self.unwritten.push(key);
            return;
        }
        let output = store.output(key);
        if output.is_empty() {
            return;
        }
        let len = output.len();
        let count = loop {
            match conn.stream.write(output) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "writing to a client failed");
                    return self.close(store, key);
                }
            }
        };
        let was_waiting = conn.watches_writable;
        if (count < len) != was_waiting {
            // Only while something waits: a Unix socket would announce room after every reply
            // that its peer reads.
            let interest = if count < len {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            let token = Token(key.slot as usize);
            let registry = self.poll.registry();
            if let Err(error) = conn.stream.reregister(registry, token, interest) {
                tracing::warn!(%error, "a client's socket cannot be watched");
                return self.close(store, key);
            }
            conn.watches_writable = count < len;
        }
        conn.write_blocked = count < len;
        store.written(key, count);
    }

    /// Reads nothing more from a connection and closes it once its output is written.
    pub(crate) fn close_after_flush(&mut self, key: SessionKey) {
        if let Some(conn) = self.conn(key)
            && !conn.closing
        {
            conn.closing = true;
            self.closing.push(key);
        }
    }

    /// Closes the connections whose last bytes are written.
    pub(crate) fn close_flushed(&mut self, store: &mut Store) {
        if self.closing.is_empty() {
            return;
        }
        for key in std::mem::take(&mut self.closing) {
            let flushed = store.output(key).is_empty() && self.may_touch(key);
            let Some(conn) = self.conn(key) else {
                continue;
            };
            if flushed {
                conn.stream.drain();
                self.close(store, key);
            } else {
                self.closing.push(key);
            }
        }
    }

    /// Whether any session's output still waits.
    pub(crate) fn has_output(&self, store: &Store) -> bool {
        let mut conns = self.conns.iter().flatten();
        conns.any(|conn| !store.output(conn.key).is_empty())
    }

    /// Ends every connection, in an order that lets replies already written arrive.
    pub(crate) fn close_all(&mut self, store: &mut Store) {
        for conn in self.conns.iter_mut().filter_map(Option::take) {
            let mut conn = *conn;
            conn.stream.drain();
            conn.stream.shutdown(Shutdown::Write);
            store.disconnect(conn.key);
        }
    }
}
