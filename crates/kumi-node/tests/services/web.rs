//! An HTTP server with facts that a test sets, and a client on a bare socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kumi_node::http::{HttpListener, HttpOptions, HttpServer, NodeSnapshot, Readiness, Source};
use tokio::sync::Semaphore;

/// A wait that ends a test which would hang.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The token that opens metrics.
pub(crate) const TOKEN: &str = "a-token-of-the-test";

/// Facts that a test sets.
pub(crate) struct Facts {
    pub(crate) readiness: Mutex<Readiness>,
    pub(crate) snapshot: Mutex<NodeSnapshot>,
    /// Snapshots that were begun.
    pub(crate) begun: AtomicU64,
    /// Each snapshot takes one permit and gives it back.
    pub(crate) gate: Arc<Semaphore>,
    /// Tokens that were presented.
    pub(crate) tokens: AtomicU64,
}

impl Facts {
    pub(crate) fn new() -> Arc<Facts> {
        Arc::new(Facts {
            readiness: Mutex::new(Readiness::Ready),
            snapshot: Mutex::default(),
            begun: AtomicU64::new(0),
            gate: Arc::new(Semaphore::new(1)),
            tokens: AtomicU64::new(0),
        })
    }
}

impl Source for Facts {
    fn readiness(&self) -> Readiness {
        *self.readiness.lock().expect("no panic")
    }

    fn snapshot(&self) -> Pin<Box<dyn Future<Output = NodeSnapshot> + Send>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let (gate, snapshot) = (
            self.gate.clone(),
            self.snapshot.lock().expect("no panic").clone(),
        );
        Box::pin(async move {
            let _permit = gate.acquire().await.expect("open");
            snapshot
        })
    }

    fn is_metrics_token(&self, presented: &[u8]) -> bool {
        self.tokens.fetch_add(1, Ordering::SeqCst);
        presented == TOKEN.as_bytes()
    }
}

pub(crate) fn loopback() -> HttpListener {
    HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a port")
}

/// A listener that is not bound to loopback; it is reached there all the same.
pub(crate) fn wildcard() -> HttpListener {
    HttpListener::bind(([0, 0, 0, 0], 0).into()).expect("a port")
}

pub(crate) fn serve(
    listeners: Vec<HttpListener>,
    options: HttpOptions,
    facts: &Arc<Facts>,
) -> HttpServer {
    HttpServer::start(listeners, options, facts.clone()).expect("a server")
}

/// Where a test reaches the n-th listener.
pub(crate) fn at(server: &HttpServer, number: usize) -> SocketAddr {
    ([127, 0, 0, 1], server.addresses()[number].port()).into()
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a timeout");
    stream.set_write_timeout(Some(LONG)).expect("a timeout");
    stream
}

/// What a server sends until it closes. That it closes by a reset is no matter.
pub(crate) fn rest(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) => {
                use std::io::ErrorKind::{TimedOut, WouldBlock};
                let timed_out = matches!(error.kind(), TimedOut | WouldBlock);
                assert!(!timed_out, "the server does not close");
                break;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a request as it is, and reads to the end.
pub(crate) fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("sent");
    rest(stream)
}

/// GET with one more header: status, headers and body.
pub(crate) fn get_with(address: SocketAddr, path: &str, header: &str) -> (u16, String, String) {
    let end = if header.is_empty() { "" } else { "\r\n" };
    parsed(&raw(
        address,
        &format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}{end}\r\n"
        ),
    ))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    get_with(address, path, "")
}

pub(crate) fn parsed(response: &str) -> (u16, String, String) {
    let (head, body) = response.split_once("\r\n\r\n").expect(response);
    let status = head
        .get(9..12)
        .and_then(|status| status.parse().ok())
        .expect(head);
    (status, head.to_ascii_lowercase(), body.to_owned())
}
