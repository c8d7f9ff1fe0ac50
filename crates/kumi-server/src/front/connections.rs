//! The connections of all sessions, and the lists of those that the loop has to come back to.

use crate::net::conn::{Conn, Stream};
use kumi_store::{Effect, Outputs, SessionKey};
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io;

/// Every connection, by the slot of its session.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(super) slots: Vec<Option<Box<Conn>>>,
    /// To read at the next turn without waiting for an event.
    pub(crate) unread: VecDeque<SessionKey>,
    /// To write to although the engine does not list them.
    pub(super) unwritten: Vec<SessionKey>,
    /// To close once their output is written.
    pub(super) closing: Vec<SessionKey>,
    /// Effects on connections that an inner turn may not touch.
    pub(super) deferred: Vec<Effect>,
}

impl Connections {
    /// Takes a new connection in, and has the poll report when it can be read.
    pub(super) fn add(
        &mut self,
        registry: &Registry,
        key: SessionKey,
        mut stream: Stream,
    ) -> io::Result<()> {
        let slot = key.slot as usize;
        stream.register(registry, Token(slot), Interest::READABLE)?;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(Box::new(Conn::new(stream, key)));
        Ok(())
    }

    /// The connection of a session, if it is still there.
    #[inline]
    pub(super) fn get(&mut self, key: SessionKey) -> Option<&mut Conn> {
        self.slots
            .get_mut(key.slot as usize)?
            .as_deref_mut()
            .filter(|conn| conn.key == key)
    }

    /// Has a connection read at the next turn, event or not.
    pub(super) fn list_unread(&mut self, key: SessionKey) {
        if let Some(conn) = self.get(key)
            && !conn.listed
        {
            conn.listed = true;
            self.unread.push_back(key);
        }
    }

    /// Reads nothing more from a connection and closes it once its output is written.
    pub(super) fn close_after_flush(&mut self, key: SessionKey) {
        if let Some(conn) = self.get(key)
            && !conn.closing
        {
            conn.closing = true;
            self.closing.push(key);
        }
    }

    /// Whether the next turn has something to do with them without waiting for an event.
    pub(super) fn have_work(&self) -> bool {
        !self.unread.is_empty() || !self.unwritten.is_empty() || !self.deferred.is_empty()
    }

    /// Whether any session's output still waits.
    pub(crate) fn have_output(&self, outputs: &Outputs) -> bool {
        let mut conns = self.slots.iter().flatten();
        conns.any(|conn| outputs.pending(conn.key) > 0 || conn.stream.has_unsent())
    }
}
