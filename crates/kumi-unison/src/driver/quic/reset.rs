//! How a server that was started again ends the connections of the one before it.
//!
//! QUIC has a packet for that, the stateless reset: it proves itself by a token that the client was given when it
//! connected, and that token follows from a secret that follows from the private key and the server's authority, the
//! address that clients are given. So this works between processes with one certificate, or one cluster key; a development
//! certificate dies with its process, and with it the chance.
//!
//! The nodes of a cluster share a key. Without the authority, an attacker that sees a connection's packets could send one
//! of them to another node under the client's address, and the reset that comes back would end the connection.

use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator, EndpointConfig};
use ring::hmac;

use super::limits::endpoint_config;
use crate::tls::ResetSecret;

/// How long the numbers are that connections are known by.
const NUMBER_BYTES: usize = 8;

/// As [`endpoint_config`], for a server at this authority whose secret may outlive its process.
pub(super) fn server_endpoint_config(secret: &ResetSecret, authority: &str) -> EndpointConfig {
    let mut endpoint = endpoint_config();
    let of_all = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
    let of_server = hmac::sign(&of_all, authority.as_bytes());
    let key = hmac::Key::new(hmac::HMAC_SHA256, of_server.as_ref());
    endpoint
        .reset_key(Arc::new(key))
        .cid_generator(|| Box::new(Numbers::default()));
    endpoint
}

/// Makes random numbers. Those that quinn makes by itself are known to one process only, and packets with others are not
/// answered. Here all are, with some milliseconds between two answers at least, as quinn has it.
#[derive(Default)]
struct Numbers {
    last: u64,
}

impl ConnectionIdGenerator for Numbers {
    fn generate_cid(&mut self) -> ConnectionId {
        // It need not be secret, only another one.
        let next = self.last.wrapping_add(1);
        self.last = getrandom::u64().unwrap_or(next);
        ConnectionId::new(&self.last.to_le_bytes())
    }

    fn cid_len(&self) -> usize {
        NUMBER_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
