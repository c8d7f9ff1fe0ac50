//! Connections with TLS in the front: accepting, reading, and handshakes that take too long.

use crate::front::{EngineIo, Front};
use crate::net::conn::{Input, READ_BYTES, Received, Stream};
use crate::net::listen::Transport;
use crate::net::tls::config::{TlsConfigError, TlsIdentity};
use crate::net::tls::failures::Failures;
use crate::net::tls::{self, TlsStream};
use kumi_store::SessionKey;
use kumi_store::config::TlsSettings;
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// A handshake that is not over after this long ends its connection.
const HANDSHAKE_NS: u64 = 10_000_000_000;

/// What connections with TLS are served with.
#[derive(Debug, Default)]
pub(crate) struct TlsAccess {
    /// For new connections to `tls-port`; none if there is none.
    pub(crate) config: Option<Arc<rustls::ServerConfig>>,
    /// For new connections of named users, with the certificate of the program around the server.
    for_users: Option<(TlsIdentity, Arc<rustls::ServerConfig>)>,
    /// When handshakes have to be over, by the steady clock, in the order they began.
    pub(super) handshakes: VecDeque<(u64, SessionKey)>,
    failures: Failures,
    /// The buffer that ciphertext is read into.
    ciphertext: Vec<u8>,
}

impl TlsAccess {
    /// Serves new connections of named users with this certificate.
    ///
    /// # Errors
    /// Why it cannot be used; the one before stays.
    pub(crate) fn set_identity(
        &mut self,
        identity: TlsIdentity,
        settings: &TlsSettings,
    ) -> Result<(), TlsConfigError> {
        let config = tls::config::build_for(&identity, settings)?;
        self.for_users = Some((identity, config));
        Ok(())
    }

    /// The same while the server runs; only where a certificate is in use.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn replace_identity(
        &mut self,
        identity: TlsIdentity,
        settings: &TlsSettings,
    ) -> Result<(), String> {
        if self.for_users.is_none() {
            return Err("this server has no listeners that decide by the address".to_owned());
        }
        self.set_identity(identity, settings)
            .map_err(|error| error.to_string())
    }

    /// The certificate of the program around the server, if there is one.
    pub(super) fn identity(&self) -> Option<TlsIdentity> {
        self.for_users
            .as_ref()
            .map(|(identity, _)| identity.clone())
    }

    /// Takes a new connection; with TLS it begins a handshake.
    pub(super) fn begin(&self, socket: TcpStream, transport: Transport) -> io::Result<Stream> {
        let config = match transport {
            Transport::Plain => return Ok(Stream::Tcp(socket)),
            Transport::Tls => self.config.clone(),
            Transport::TlsForUsers => self.for_users.as_ref().map(|(_, config)| config.clone()),
        };
        let config = config.ok_or_else(|| io::Error::other("TLS is not configured"))?;
        let stream = TlsStream::new(socket, config).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Notes when a handshake that begins now has to be over.
    pub(super) fn limit_handshake(&mut self, key: SessionKey, now_ns: u64) {
        self.handshakes.push_back((now_ns + HANDSHAKE_NS, key));
    }
}

impl Front {
    /// Closes connections whose handshake has taken too long.
    pub(crate) fn end_handshakes(&mut self, engine: &mut EngineIo<'_>) {
        let now_ns = self.clock.last().mono_ns;
        while let Some(&(until_ns, key)) = self.tls.handshakes.front()
            && until_ns <= now_ns
        {
            self.tls.handshakes.pop_front();
            let stuck = self
                .connections
                .get(key)
                .is_some_and(|conn| match &conn.stream {
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
        let mut scratch = std::mem::take(&mut self.tls.ciphertext);
        scratch.clear();
        scratch.reserve_exact(READ_BYTES);
        let mut received = Received::End;
        let mut failure = None;
        if let Some(conn) = self.connections.get(key)
            && let Stream::Tls(stream) = &mut conn.stream
        {
            received = stream.receive(&mut input, &mut scratch);
            failure = stream.failure.take();
        }
        self.tls.ciphertext = scratch;
        if let Some(failure) = failure {
            self.log_tls_failure(engine, key, &failure.to_string());
            if let Some(conn) = self.connections.get(key) {
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
        let Some(conn) = self.connections.get(key) else {
            return;
        };
        if conn.stream.has_unsent() {
            if !conn.watches_writable {
                self.watch_writable(engine, key, true);
            }
        } else if conn.write_blocked {
            conn.write_blocked = false;
            self.connections.unwritten.push(key);
        }
    }

    fn log_tls_failure(&mut self, engine: &EngineIo<'_>, key: SessionKey, reason: &str) {
        let client = engine.store.peer_address(key).unwrap_or_default();
        let now_ns = self.clock.last().mono_ns;
        self.tls.failures.log(now_ns, &client, reason);
    }
}

#[cfg(test)]
mod tests;
