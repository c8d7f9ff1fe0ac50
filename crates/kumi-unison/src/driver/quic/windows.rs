//! The flow-control windows of an endpoint's connections, which are smaller the more connections there are.
//!
//! Bytes that were received and not read, or written and not acknowledged, are in QUIC's buffers, which no budget counts.
//! So the connections divide a quarter of the endpoint's memory limit between them, for each direction. The number of shares
//! is a power of two: it doubles when there are more connections than shares, and falls when at most a quarter of the shares
//! is used. So a new or a closed connection seldom changes the windows of the others.
//!
//! A smaller window holds for what is granted from then on; credit that the client has, and bytes that are written, stay.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quinn::Connection;

use super::limits::ServerLimits;

/// The connections of an endpoint, and how their windows are divided.
pub(super) struct Windows {
    limits: ServerLimits,
    shares: Mutex<Shares>,
}

struct Shares {
    /// By their stable ids.
    connections: HashMap<usize, Connection>,
    count: usize,
}

impl Windows {
    pub(super) fn new(limits: &ServerLimits) -> Windows {
        Windows {
            limits: limits.clone(),
            shares: Mutex::new(Shares {
                connections: HashMap::new(),
                count: 1,
            }),
        }
    }

    /// Gives a connection its share until the returned value is dropped.
    pub(super) fn join(&self, connection: &Connection) -> Member<'_> {
        let id = connection.stable_id();
        let mut shares = self.lock();
        shares.connections.insert(id, connection.clone());
        if !self.divide(&mut shares) {
            self.set(connection, shares.count);
        }
        Member { windows: self, id }
    }

    /// Changes the number of shares if the number of connections requires it. Returns whether it did, in which case the
    /// windows of all connections were set.
    fn divide(&self, shares: &mut Shares) -> bool {
        let count = share_count(shares.count, shares.connections.len());
        if count == shares.count {
            return false;
        }
        shares.count = count;
        for connection in shares.connections.values() {
            self.set(connection, count);
        }
        true
    }

    fn set(&self, connection: &Connection, count: usize) {
        connection.set_receive_window(self.limits.receive_window(count));
        connection.set_send_window(self.limits.send_window(count));
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many shares there are for this many connections, when there were `before`.
fn share_count(before: usize, connections: usize) -> usize {
    let wanted = connections.max(1).next_power_of_two();
    if wanted > before || wanted <= before / 4 {
        wanted
    } else {
        before
    }
}

/// A connection that has a share.
pub(super) struct Member<'a> {
    windows: &'a Windows,
    id: usize,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut shares = self.windows.lock();
        shares.connections.remove(&self.id);
        self.windows.divide(&mut shares);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;

    use quinn::{ClientConfig, Endpoint, ServerConfig, TokioRuntime};

    use super::super::limits::{bind_socket, endpoint_config, transport_config};
    use super::super::server::server_config;
    use super::*;
    use crate::{ClientTls, ServerTls};

    const KIB: usize = 1024;

    fn limits() -> ServerLimits {
        ServerLimits::new()
            .max_connections(4)
            .max_total_bytes(1024 * KIB)
            .min_connection_bytes(20 * KIB)
    }

    /// A server that no task serves, and clients of it that may be sent anything.
    struct Lab {
        tls: ClientTls,
        server: Endpoint,
        client: Endpoint,
    }

    fn endpoint(config: Option<ServerConfig>) -> Endpoint {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = bind_socket(any).unwrap();
        Endpoint::new(endpoint_config(), config, socket, Arc::new(TokioRuntime)).unwrap()
    }

    impl Lab {
        fn new() -> Lab {
            let tls = ServerTls::development(&["localhost"]).unwrap();
            Lab {
                server: endpoint(Some(server_config(&limits(), &tls).unwrap())),
                client: endpoint(None),
                tls: ClientTls::pinned([tls.fingerprint()]).unwrap(),
            }
        }

        /// The server's end of a new connection, and the client's.
        async fn connect(&self) -> (Connection, Connection) {
            let address = self.server.local_addr().unwrap();
            let (_attempt, crypto) = self.tls.attempt("localhost", address).unwrap();
            let idle = Duration::from_secs(30);
            let mut config = ClientConfig::new(crypto);
            config.transport_config(Arc::new(transport_config(8, 1 << 26, idle, None)));
            let connecting = self
                .client
                .connect_with(config, address, "localhost")
                .unwrap();
            let accepting = async {
                let incoming = self.server.accept().await.unwrap();
                incoming.accept().unwrap().await.unwrap()
            };
            let (here, there) = tokio::join!(accepting, connecting);
            (here, there.unwrap())
        }
    }

    #[test]
    fn windows_change_when_connections_have_doubled_or_most_are_gone() {
        let mut count = 1;
        let mut after = |connections| {
            count = share_count(count, connections);
            count
        };
        assert_eq!([1, 2, 3, 4, 5].map(&mut after), [1, 2, 4, 4, 8]);
        assert_eq!([4, 5, 3, 4, 2].map(&mut after), [8, 8, 8, 8, 2]);
        assert_eq!([3, 0].map(&mut after), [4, 1]);
    }

    #[tokio::test]
    async fn a_client_may_send_its_share_and_before_that_the_smallest() {
        let lab = Lab::new();
        let (here, there) = lab.connect().await;
        let data = vec![0; 1024 * KIB];
        let (mut send, _receive) = there.open_bi().await.unwrap();
        assert_eq!(send.write(&data).await, Ok(64 * KIB));
        let windows = Windows::new(&limits());
        let _member = windows.join(&here);
        assert_eq!(send.write(&data).await, Ok(192 * KIB));
    }

    #[tokio::test]
    async fn connections_that_come_and_go_change_the_windows_of_those_there_are() {
        let lab = Lab::new();
        let windows = Windows::new(&limits());
        let (first, _client) = lab.connect().await;
        let _member = windows.join(&first);
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(lab.connect().await);
        }
        let members: Vec<_> = others.iter().map(|(here, _)| windows.join(here)).collect();
        let data = vec![0; 1024 * KIB];
        let (mut send, _receive) = first.open_bi().await.unwrap();
        assert_eq!(send.write(&data).await, Ok(64 * KIB));
        drop(members);
        // Of the first write some may not be acknowledged.
        let written = send.write(&data).await.unwrap();
        assert!(
            (192 * KIB..=256 * KIB).contains(&written),
            "{written} bytes"
        );
    }
}
