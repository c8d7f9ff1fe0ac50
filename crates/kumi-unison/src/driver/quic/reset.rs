//! Stateless reset: how a restarted server ends the connections of its previous process.
//!
//! The reset packet carries a token that the client received when it connected. The token is derived from a secret, and the
//! secret from the private key and the server's authority, which is the address that clients are given. So this works
//! between processes with the same certificate or cluster key. A development certificate is new in each process, and
//! connections to the previous one end by their idle timeout.
//!
//! The nodes of a cluster share a key. Without the authority, an attacker that sees a connection's packets could send one
//! of them to another node with the client's source address, and that node's reset would end the connection.

use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator, EndpointConfig};
use ring::hmac;

use super::limits::endpoint_config;
use crate::tls::ResetSecret;

/// The length of a connection id.
const ID_BYTES: usize = 8;

/// As [`endpoint_config`], for a server at this authority, with a reset key that the next process derives too.
pub(super) fn server_endpoint_config(secret: &ResetSecret, authority: &str) -> EndpointConfig {
    let mut endpoint = endpoint_config();
    let of_all = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
    let of_server = hmac::sign(&of_all, authority.as_bytes());
    let key = hmac::Key::new(hmac::HMAC_SHA256, of_server.as_ref());
    endpoint
        .reset_key(Arc::new(key))
        .cid_generator(|| Box::new(RandomIds::default()));
    endpoint
}

/// Random connection ids. quinn's default generator recognizes only ids of its own process, and sends no reset for others;
/// with this one it sends a reset for every id, limited by quinn to one in some milliseconds.
#[derive(Default)]
struct RandomIds {
    last: u64,
}

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        // It need not be secret, only unused.
        let next = self.last.wrapping_add(1);
        self.last = getrandom::u64().unwrap_or(next);
        ConnectionId::new(&self.last.to_le_bytes())
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
