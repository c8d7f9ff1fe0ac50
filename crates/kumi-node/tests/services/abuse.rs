//! Clients that are broken or hostile. After each, the server answers as before.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kumi_node::http::{HttpOptions, HttpServer, NodeSnapshot, QueueFacts};

use rustix::process::{Resource, Rlimit};

use crate::web::{
    Facts, LONG, TOKEN, at, connect, get, get_with, loopback, parsed, raw, rest, serve, wildcard,
};

fn server(change: impl FnOnce(&mut HttpOptions)) -> (HttpServer, Arc<Facts>) {
    let mut options = HttpOptions::default();
    change(&mut options);
    let facts = Facts::new();
    (serve(vec![loopback(), wildcard()], options, &facts), facts)
}

/// xorshift, seeded, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[test]
fn garbage_ends_its_own_connection_alone() {
    let (server, _) = server(|options| options.header_wait = Duration::from_millis(300));
    let pieces: [&[u8]; 12] = [
        b"GET ",
        b"/metrics",
        b" HTTP/1.1\r\n",
        b"host: localhost\r\n",
        b"\r\n\r\n",
        b"content-length: 99999999999999999999\r\n",
        b"transfer-encoding: chunked\r\n",
        b"\0\xff\xfe",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"expect: 100-continue\r\n",
        b"upgrade: h2c\r\nconnection: upgrade\r\n",
    ];
    for seed in 1..=150_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = Vec::new();
        for _ in 0..random.below(12) {
            match random.below(4) {
                0 => bytes.extend((0..random.below(40)).map(|_| random.next() as u8)),
                _ => bytes.extend_from_slice(pieces[random.below(pieces.len())]),
            }
        }
        let mut stream = connect(at(&server, 0));
        // The server may have closed already.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        rest(stream);
    }
    assert_eq!(get(at(&server, 0), "/healthz").0, 200);
}

#[test]
fn headers_that_never_end_are_given_up_on() {
    let (server, _) = server(|options| options.header_wait = Duration::from_millis(500));
    let mut slow: Vec<_> = (0..100).map(|_| connect(at(&server, 0))).collect();
    for stream in &mut slow {
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nx: ")
            .unwrap();
    }
    assert_eq!(
        get(at(&server, 0), "/healthz").0,
        200,
        "while they are open"
    );
    // One byte at a time buys no more time.
    let mut dripping = slow.pop().unwrap();
    let began = Instant::now();
    while dripping.write_all(b"x").is_ok() {
        assert!(began.elapsed() < LONG, "the server does not close");
        std::thread::sleep(Duration::from_millis(5));
    }
    for stream in slow {
        rest(stream);
    }
    assert_eq!(get(at(&server, 0), "/healthz").0, 200);
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let (server, _) = server(|options| options.header_wait = Duration::from_millis(200));
    assert_eq!(rest(connect(at(&server, 0))), "");
    // Also after a request that was answered.
    let mut stream = connect(at(&server, 0));
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let all = rest(stream);
    assert_eq!(parsed(&all), (200, parsed(&all).1, "ok\n".to_owned()));
}

#[test]
fn headers_that_are_too_large_or_too_many_are_refused() {
    let (server, _) = server(|_| {});
    let huge = "x".repeat(100_000);
    let many = (0..200)
        .map(|number| format!("x{number}: y\r\n"))
        .collect::<String>();
    let start = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    for request in [
        format!("{start}x: {huge}\r\n\r\n"),
        format!("{start}{many}\r\n"),
        format!("{start}{huge}"),
    ] {
        let mut stream = connect(at(&server, 0));
        let _ = stream.write_all(request.as_bytes());
        let said = rest(stream);
        // What the server closes before it has read all, the system may reset, and drop the answer.
        let may_be_cut = said.is_empty() && request.len() > huge.len();
        assert!(may_be_cut || said.starts_with("HTTP/1.1 431"), "{said}");
    }
    let long_query = |length| {
        let query = "x".repeat(length);
        let mut stream = connect(at(&server, 0));
        let request = format!(
            "GET /healthz?{query} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        );
        let _ = stream.write_all(request.as_bytes());
        rest(stream)
    };
    assert!(long_query(1_000).starts_with("HTTP/1.1 200"));
    let said = long_query(huge.len());
    assert!(!said.contains(" 200 "), "{said}");
    let fits = format!("{start}x: {}\r\n\r\n", "x".repeat(8_000));
    assert_eq!(parsed(&raw(at(&server, 0), &fits)).0, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (server, _) = server(|_| {});
    let mut requests = String::new();
    for number in 0..500 {
        let path = if number % 2 == 0 {
            "/healthz"
        } else {
            "/other"
        };
        requests += &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    requests += "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut stream = connect(at(&server, 0));
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || writing.write_all(requests.as_bytes()));
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    writer.join().unwrap().unwrap();
    let statuses: Vec<&str> = text
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| &text[at + 9..at + 12])
        .collect();
    assert_eq!(statuses.len(), 501);
    for (number, status) in statuses[..500].iter().enumerate() {
        assert_eq!(*status, if number % 2 == 0 { "200" } else { "404" });
    }
}

#[test]
fn a_thousand_idle_connections_keep_nobody_out() {
    // A thousand ends of clients are more than the usual limit of descriptors leaves room for.
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit
            .maximum
            .map_or(Some(4096), |most| Some(most.min(4096))),
        ..limit
    };
    if limit.current < raised.current {
        rustix::process::setrlimit(Resource::Nofile, raised).unwrap();
    }
    let (server, _) = server(|options| {
        options.connection_limit = 64;
        options.header_wait = LONG * 10;
        options.idle_limit = LONG * 10;
    });
    let connections: Vec<_> = (0..1000).map(|_| connect(at(&server, 0))).collect();
    let began = Instant::now();
    loop {
        let header = format!("authorization: Bearer {TOKEN}");
        let (status, _, text) = get_with(at(&server, 1), "/metrics", &header);
        assert_eq!(status, 200, "the other listener");
        if text.contains("\nkumi_http_connections_evicted_total 936\n")
            && text.contains("\nkumi_http_connections 65\n")
        {
            assert!(text.contains("\nkumi_http_connections_refused_total 0\n"));
            break;
        }
        assert!(began.elapsed() < LONG, "{text}");
    }
    // The idle ones keep nobody out.
    assert!(answers(&server));
    let mut open = Vec::new();
    for (number, stream) in connections.iter().enumerate() {
        let mut stream = stream;
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 12]);
        if read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            open.push(number);
        }
    }
    // The first ones were idle for longest; the request above took the place of another.
    assert_eq!(open, (937..1000).collect::<Vec<_>>());
}

#[test]
fn requests_that_are_being_answered_keep_their_places() {
    let (server, facts) = server(|options| {
        options.connection_limit = 4;
        options.snapshot_wait = LONG * 10;
        options.idle_limit = LONG * 10;
    });
    // No metrics until the permit is given back.
    assert_eq!(facts.gate.forget_permits(1), 1);
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
        connection: close\r\n\r\n"
    );
    let mut busy: Vec<_> = (0..4).map(|_| connect(at(&server, 1))).collect();
    for stream in &mut busy {
        stream.write_all(request.as_bytes()).unwrap();
    }
    let began = Instant::now();
    while facts.tokens.load(Ordering::SeqCst) < 4 {
        assert!(began.elapsed() < LONG, "the requests do not arrive");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(rest(connect(at(&server, 1))).starts_with("HTTP/1.1 503"));
    facts.gate.add_permits(1);
    for stream in busy {
        assert!(rest(stream).starts_with("HTTP/1.1 200"));
    }
}

/// Whether the first listener has a place for a request.
fn answers(server: &HttpServer) -> bool {
    let mut stream = connect(at(server, 0));
    // The connection may be closed before that.
    let _ =
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    rest(stream).starts_with("HTTP/1.1 200")
}

#[test]
fn places_are_given_back() {
    let (server, _) = server(|options| options.connection_limit = 8);
    for _ in 0..100 {
        drop(connect(at(&server, 0)));
    }
    let began = Instant::now();
    while !answers(&server) {
        assert!(began.elapsed() < LONG, "no place was given back");
    }
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let (server, facts) = server(|options| {
        options.idle_limit = Duration::from_millis(300);
        options.header_wait = LONG * 10;
    });
    let queue = |number| QueueFacts {
        queue: format!("{number:0>200}"),
        ..QueueFacts::default()
    };
    *facts.snapshot.lock().unwrap() = NodeSnapshot {
        queues: (0..1000).map(queue).collect(),
        ..NodeSnapshot::default()
    };
    let mut stream = connect(at(&server, 0));
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    // Half a megabyte each: the sockets' buffers are full soon, and no response can be sent.
    for _ in 0..200 {
        if stream.write_all(request).is_err() {
            break;
        }
    }
    let began = Instant::now();
    while stream.write_all(request).is_ok() {
        assert!(began.elapsed() < LONG, "the server does not close");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(get(at(&server, 0), "/healthz").0, 200);
}
