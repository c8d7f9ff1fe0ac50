//! Connections with TLS in the front: accepting, reading, and handshakes that take too long.

use crate::front::{EngineIo, Front};
use crate::net::conn::{Input, READ_BYTES, Received, Stream};
use crate::net::tls::TlsStream;
use kumi_store::SessionKey;
use mio::net::TcpStream;
use std::io;

/// A handshake that is not over after this long ends its connection.
const HANDSHAKE_NS: u64 = 10_000_000_000;

impl Front {
    /// Begins a handshake.
    pub(crate) fn begin_tls(&self, socket: TcpStream) -> io::Result<Stream> {
        let config = self.tls.clone();
        let config = config.ok_or_else(|| io::Error::other("TLS is not configured"))?;
        let stream = TlsStream::new(socket, config).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Notes when a handshake has to be over.
    pub(crate) fn limit_handshake(&mut self, key: SessionKey) {
        let until_ns = self.clock.last().mono_ns + HANDSHAKE_NS;
        self.handshakes.push_back((until_ns, key));
    }

    /// Closes connections whose handshake has taken too long.
    pub(crate) fn end_handshakes(&mut self, engine: &mut EngineIo<'_>) {
        let now_ns = self.clock.last().mono_ns;
        while let Some(&(until_ns, key)) = self.handshakes.front()
            && until_ns <= now_ns
        {
            self.handshakes.pop_front();
            let stuck = self.conn(key).is_some_and(|conn| match &conn.stream {
                Stream::Tls(stream) => stream.is_handshaking(),
                Stream::Tcp(_) | Stream::Unix(_) => false,
            });
            if stuck {
                self.log_tls_failure(engine, key, "the handshake took too long");
                self.close(engine, key);
            }
        }
    }

    /// Reads once from a connection with TLS and executes what is complete.
    pub(crate) fn serve_tls(
        &mut self,
        engine: &mut EngineIo<'_>,
        key: SessionKey,
        mut input: Box<Input>,
    ) {
        let mut scratch = std::mem::take(&mut self.ciphertext);
        scratch.clear();
        scratch.reserve_exact(READ_BYTES);
        let mut received = Received::End;
        let mut failure = None;
        if let Some(conn) = self.conn(key)
            && let Stream::Tls(stream) = &mut conn.stream
        {
            received = stream.receive(&mut input, &mut scratch);
            failure = stream.failure.take();
        }
        self.ciphertext = scratch;
        if let Some(failure) = failure {
            self.log_tls_failure(engine, key, &failure.to_string());
            if let Some(conn) = self.conn(key) {
                // Unread input would reset the connection and take the alert with it.
                conn.stream.drain();
            }
        }
        if received != Received::End {
            // Parts of a handshake that the socket did not take.
            self.watch_unsent(engine, key);
        }
        self.take(engine, key, input, received);
    }

    /// Has the rest of a handshake sent when the socket takes more, and replies that waited for its end written.
    fn watch_unsent(&mut self, engine: &mut EngineIo<'_>, key: SessionKey) {
        let Some(conn) = self.conn(key) else {
            return;
        };
        if conn.stream.has_unsent() {
            if !conn.watches_writable {
                self.watch_writable(engine, key, true);
            }
        } else if conn.write_blocked {
            conn.write_blocked = false;
            self.unwritten.push(key);
        }
    }

    fn log_tls_failure(&mut self, engine: &EngineIo<'_>, key: SessionKey, reason: &str) {
        let client = engine.store.peer_address(key).unwrap_or_default();
        let now_ns = self.clock.last().mono_ns;
        self.tls_failures.log(now_ns, &client, reason);
    }
}

#[cfg(test)]
mod tests;
