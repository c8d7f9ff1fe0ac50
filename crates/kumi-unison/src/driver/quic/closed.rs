//! Errors that quinn does not report: a closed port, and a connection that was lost before a call had begun.
//!
//! A host replies to a datagram for a closed port with an ICMP message. The system reports it only on a connected socket,
//! and a QUIC endpoint's socket is not connected; so an empty datagram is sent from another socket. A server ignores it. If
//! the host is down, or a firewall drops packets, there is no reply, and the connect timeout ends the attempt.

use std::io::ErrorKind;
use std::net::SocketAddr;

use quinn::{Connection, ConnectionError};
use tokio::net::UdpSocket;

use super::address::any_local;
use crate::NetworkError;

/// Resolves when the host reports that the port is closed; pending otherwise.
pub(super) async fn closed_port(address: SocketAddr) {
    if !says_closed(address).await {
        std::future::pending().await
    }
}

async fn says_closed(address: SocketAddr) -> bool {
    let asked = async {
        let socket = UdpSocket::bind(any_local(address)).await?;
        socket.connect(address).await?;
        socket.send(&[]).await?;
        // Any datagram received shows that the port is open.
        socket.recv(&mut [0; 1]).await
    };
    let is_refusal = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
    asked.await.is_err_and(is_refusal)
}

/// Maps a lost connection to the error of a request that was not sent.
pub(super) fn lost_to(connection: &Connection) -> impl FnOnce(ConnectionError) -> NetworkError {
    let peer = connection.remote_address();
    move |_| NetworkError::lost(false, Some(peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_port_is_told_from_an_open_one() {
        let open = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = open.local_addr().unwrap();
        let mut asked = [0; 8];
        tokio::select! {
            biased;
            () = closed_port(address) => panic!("it is open"),
            received = open.recv_from(&mut asked) => assert_eq!(received.unwrap().0, 0),
        }
        drop(open);
        assert!(says_closed(address).await);
    }
}
