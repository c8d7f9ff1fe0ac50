//! The front with one TLS connection, turn by turn: no thread, and no time that passes.

use super::*;
use crate::base::shutdown::Shutdown;
use crate::net::listen::Listeners;
use kumi_store::{Config, Outputs, Peer, Store};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream as StdStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A test that waits this long has failed.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        );
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server.unwrap()), Arc::new(client))
}

/// A server that moves only when it is told to, and a client of it.
struct Pair {
    front: Front,
    store: Store,
    outputs: Outputs,
    key: SessionKey,
    session: ClientConnection,
    socket: StdStream,
    /// What the client has received, decrypted.
    received: Vec<u8>,
}

impl Pair {
    /// A connection whose handshake is over.
    fn new() -> Self {
        let (server, client) = configs();
        let config = Config::new();
        let shutdown = Shutdown::new();
        let mut front = Front::new(config.clone().into(), Listeners::none(), shutdown).unwrap();
        front.tls.config = Some(server);
        let now = front.clock.read();
        let mut store = Store::new(config, kumi_store::Seeds::from_seed(1), now);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = StdStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_nodelay(true).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        // Or the system would keep a reply back until the one before it is acknowledged.
        accepted.set_nodelay(true).unwrap();
        let stream = front
            .tls
            .begin(TcpStream::from_std(accepted), Transport::Tls)
            .unwrap();
        let key = store.connect(Peer::default(), now);
        let registry = front.poller.poll.registry();
        front.connections.add(registry, key, stream).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut pair = Self {
            front,
            store,
            outputs: Outputs::new(),
            key,
            session: ClientConnection::new(client, name).unwrap(),
            socket,
            received: Vec::new(),
        };
        let start = Instant::now();
        while pair.session.is_handshaking() || pair.tls().is_handshaking() {
            assert!(start.elapsed() < TEST_TIMEOUT, "no handshake");
            pair.send(b"");
            pair.turn();
            pair.receive();
        }
        pair.settle();
        pair
    }

    fn tls(&mut self) -> &mut TlsStream {
        match &mut self.front.connections.get(self.key).unwrap().stream {
            Stream::Tls(stream) => stream,
            Stream::Tcp(_) | Stream::Unix(_) => unreachable!("the connection speaks TLS"),
        }
    }

    /// Encrypts and sends all of it, for which the socket's buffers have room. Returns how many bytes of ciphertext
    /// that were.
    fn send(&mut self, mut bytes: &[u8]) -> usize {
        let mut sent = 0;
        loop {
            let taken = self.session.writer().write(bytes).unwrap();
            bytes = &bytes[taken..];
            while self.session.wants_write() {
                sent += self.session.write_tls(&mut self.socket).unwrap();
            }
            if bytes.is_empty() {
                return sent;
            }
        }
    }

    /// Sends, and waits until all of it has arrived. The server has not moved meanwhile.
    fn deliver(&mut self, bytes: &[u8]) {
        let sent = self.send(bytes);
        self.wait_for_ciphertext(sent);
    }

    /// Waits until the server's socket holds at least this many bytes.
    fn wait_for_ciphertext(&mut self, bytes: usize) {
        let start = Instant::now();
        let mut seen = vec![0; bytes];
        loop {
            match self.tls().socket.peek(&mut seen) {
                Ok(count) if count >= bytes => return,
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "the bytes do not arrive");
            std::thread::yield_now();
        }
    }

    fn turn(&mut self) {
        let mut engine = EngineIo {
            store: &mut self.store,
            outputs: &mut self.outputs,
        };
        self.front.turn(&mut engine, Duration::ZERO).unwrap();
    }

    fn is_listed(&mut self) -> bool {
        self.front
            .connections
            .get(self.key)
            .is_some_and(|conn| conn.listed)
    }

    /// Turns until there is nothing left to do without another event, and a few more: what has arrived is handled
    /// after that, or never.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.turn();
            while self.is_listed() {
                self.turn();
            }
        }
        self.receive();
    }

    fn receive(&mut self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.session.wants_read()
            && self.session.read_tls(&mut self.socket).is_ok_and(|n| n > 0)
        {
            let state = self.session.process_new_packets().unwrap();
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.session.reader().read_exact(&mut plain).unwrap();
            self.received.extend(plain);
        }
        self.socket.set_nonblocking(false).unwrap();
    }
}

/// A SET of a value of this many bytes.
fn set(key: &str, bytes: usize) -> Vec<u8> {
    let value = "v".repeat(bytes);
    format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n${bytes}\r\n{value}\r\n").into_bytes()
}

#[test]
fn an_event_while_the_connection_is_listed_is_not_lost() {
    let mut pair = Pair::new();
    // 10 KB of a request, which stay in front of the next read and take that much of its room.
    let first = set("a", 12_000);
    pair.deliver(&first[..10_000]);
    pair.settle();
    // One read that is not full (less than 64 KiB), and more than the room that is left: the room ends 2,000 bytes before
    // the end of a large argument.
    let start_of_second = first.len() - 10_000;
    let head = set("b", 50_000).len() - 50_002;
    let large = READ_BYTES - 10_000 - start_of_second - head + 2_000;
    let mut burst = first[10_000..].to_vec();
    burst.extend(set("b", large));
    burst.extend(set("c", 3_000));
    assert!(burst.len() < READ_BYTES - 1_000, "a read would be full");
    pair.deliver(&burst);
    pair.turn();
    assert!(pair.is_listed(), "requests wait inside of the connection");
    // The event arrives now. The large argument ends with the first read of the next turn, and what follows with the
    // second one: neither gets to the socket.
    pair.deliver(&set("d", 1));
    pair.settle();
    assert_eq!(
        String::from_utf8_lossy(&pair.received),
        "+OK\r\n".repeat(4),
        "the last request was not read"
    );
}

#[test]
fn an_end_while_the_connection_is_listed_closes_it() {
    let mut pair = Pair::new();
    let first = set("a", 12_000);
    pair.deliver(&first[..10_000]);
    pair.settle();
    let mut burst = first[10_000..].to_vec();
    burst.extend(set("b", READ_BYTES - 10_000));
    pair.deliver(&burst);
    pair.turn();
    assert!(pair.is_listed(), "requests wait inside of the connection");
    pair.socket.shutdown(std::net::Shutdown::Both).unwrap();
    let start = Instant::now();
    while pair.front.connections.get(pair.key).is_some() {
        assert!(
            start.elapsed() < TEST_TIMEOUT,
            "the descriptor is still held"
        );
        pair.turn();
    }
}
