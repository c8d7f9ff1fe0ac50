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
use ring::rand::{SecureRandom, SystemRandom};

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
        .cid_generator(|| Box::new(Numbers));
    endpoint
}

/// Makes random numbers. Those that quinn makes by itself are known to one process only, and packets with others are not
/// answered. Here all are, with some milliseconds between two answers at least, as quinn has it.
struct Numbers;

impl ConnectionIdGenerator for Numbers {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut number = [0; NUMBER_BYTES];
        if SystemRandom::new().fill(&mut number).is_err() {
            // It need not be secret, only another one.
            number = fastrand::u64(..).to_le_bytes();
        }
        ConnectionId::new(&number)
    }

    fn cid_len(&self) -> usize {
        NUMBER_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
