//! What the HTTP server is started with, besides its listeners.

use std::sync::Arc;
use std::time::Duration;

use super::hosts::HostNames;

/// The TLS configuration of a listener's next connection. It changes when a certificate is renewed.
pub type TlsSource = Arc<dyn Fn() -> Arc<rustls::ServerConfig> + Send + Sync>;

/// Limits of the HTTP server, and the names that it answers to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Names in `Host` that are answered besides IP addresses and `localhost`.
    pub hosts: HostNames,
    /// How long a client may take for a request's headers, or for a handshake, and be silent between two requests.
    pub header_wait: Duration,
    /// How long a connection lasts after its last request was answered: how long a client may take to read a response.
    pub idle_limit: Duration,
    /// How long `/metrics` waits for its facts.
    pub snapshot_wait: Duration,
    /// Open connections of each listener. A further one takes the place of the one that has been idle for longest; if none
    /// is idle, it is told so and closed.
    pub connection_limit: usize,
    /// Open connections of each listener from one address of another machine. Further ones are told so and closed.
    pub peer_limit: usize,
    /// How long a stop waits for responses under way.
    pub stop_wait: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            hosts: HostNames::default(),
            header_wait: Duration::from_secs(10),
            idle_limit: Duration::from_secs(30),
            snapshot_wait: Duration::from_secs(5),
            connection_limit: 256,
            peer_limit: 64,
            stop_wait: Duration::from_secs(2),
        }
    }
}
