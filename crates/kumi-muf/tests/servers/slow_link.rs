//! Large values over a slow link: nothing is given up that is on its way, and nothing small waits for it.

use std::future::IntoFuture;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kumi_muf::{Error, KeepEvent, Muf, Request};

use crate::support::{Place, Server, echo};

/// Bytes that a connection may carry before the others have their turn.
const TURN_BYTES: usize = 16 * 1024;

const MEGABYTE: usize = 1_000_000;

/// A link to a server that carries a number of bytes per second each way, shared by all connections.
struct SlowLink {
    url: String,
}

/// One direction of a link: when what was put on it has been carried.
struct Direction {
    bytes_per_second: usize,
    free_at: Mutex<Instant>,
}

impl Direction {
    fn new(bytes_per_second: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_per_second,
            free_at: Mutex::new(Instant::now()),
        })
    }

    /// Waits until these bytes have been carried.
    fn carry(&self, count: usize) {
        let takes = Duration::from_secs_f64(count as f64 / self.bytes_per_second as f64);
        let until = {
            let mut free_at = self.free_at.lock().expect("no panic");
            *free_at = (*free_at).max(Instant::now()) + takes;
            *free_at
        };
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

impl SlowLink {
    /// Its threads end with the connections, and with the test.
    fn new(server: &Server, bytes_per_second: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("an address"));
        let path = server.url().trim_start_matches("unix://").to_owned();
        let (up, down) = (
            Direction::new(bytes_per_second),
            Direction::new(bytes_per_second),
        );
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&path) else {
                    continue;
                };
                let (from, to) = (client.try_clone(), server.try_clone());
                let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                let (up, down) = (up.clone(), down.clone());
                std::thread::spawn(move || {
                    copy(from, &to, &up);
                    let _ = to.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || {
                    copy(server, &client, &down);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { url }
    }

    async fn unit(&self, name: &str) -> Muf {
        Muf::connect(&self.url, name).await.expect("a unit")
    }
}

fn copy(mut from: impl Read, mut to: impl Write, direction: &Direction) {
    let mut bytes = [0; TURN_BYTES];
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
    {
        direction.carry(count);
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Calls with a megabyte each, all at once, and how many were answered with the same.
async fn answered(web: &Muf, calls: usize, timeout: Duration) -> Vec<Result<(), Error>> {
    let call = |number: usize| {
        let payload = vec![number as u8; MEGABYTE];
        let call = web.request("a.b", payload.clone()).timeout(timeout);
        let call = call.into_future();
        async move {
            let answer = call.await?;
            assert!(answer.bytes() == &payload, "call {number}");
            Ok(())
        }
    };
    futures_util::future::join_all((0..calls).map(call)).await
}

/// Megabits per second, and seconds for all calls: less than the whole unless `KUMI_MUF_SLOW_LINK` is set.
fn link() -> (usize, Duration) {
    match std::env::var_os("KUMI_MUF_SLOW_LINK") {
        Some(_) => (8, Duration::from_secs(90)),
        None => (40, Duration::from_secs(30)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_and_answers_over_a_slow_link_are_answered_once() {
    let (megabits, timeout) = link();
    let checks = Server::each().map(|server| async move {
        let slow = SlowLink::new(&server, megabits * MEGABYTE / 8);
        let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let mut backends = Vec::new();
        for name in ["one", "two"] {
            let backend = slow.unit(name).await;
            let runs = runs.clone();
            let handler = move |request: Request| {
                runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                echo(request)
            };
            backend.serve("a.b", handler).await.expect("a service");
            backends.push(backend);
        }
        let web = slow.unit("web").await;
        let began = Instant::now();
        let results = answered(&web, 16, timeout).await;
        let failed: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
        println!("{megabits} Mbit/s: {:?}, {failed:?}", began.elapsed());
        assert!(failed.is_empty(), "{} of 16 failed", failed.len());
        assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 16);
        let reconnects = web.stats().await.expect("statistics").reconnects;
        assert_eq!(reconnects, 0);
        drop(server);
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_call_does_not_wait_for_large_ones() {
    for server in Server::each() {
        let slow = SlowLink::new(&server, 2 * MEGABYTE);
        let backend = slow.unit("back").await;
        backend.serve("a.b", echo).await.expect("a service");
        let web = slow.unit("web").await;
        web.request("a.b", vec![1; 100_000]).await.expect("answer");
        let large = web.clone();
        let large = tokio::spawn(async move { answered(&large, 8, Duration::from_secs(60)).await });
        // The large ones are on their way when the first is at the server.
        let mut longest = Duration::ZERO;
        while !large.is_finished() {
            let began = Instant::now();
            web.request("a.b", "x").await.expect("an answer");
            longest = longest.max(began.elapsed());
        }
        println!("a small call took {longest:?} at most");
        // All of them take eight seconds and more.
        assert!(longest < Duration::from_secs(4), "{longest:?}");
        let failed = large.await.expect("no panic");
        assert!(failed.iter().all(Result::is_ok), "{failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_call_does_not_wait_for_a_large_kept_value() {
    for server in Server::each() {
        let slow = SlowLink::new(&server, 2 * MEGABYTE);
        let limit_bytes = 8 * MEGABYTE;
        let back = Muf::builder(&server.url(), "back").payload_limit(limit_bytes);
        let back = back.connect().await.expect("a unit");
        back.serve("a.b", echo).await.expect("a service");
        back.keep("large", vec![1; limit_bytes])
            .await
            .expect("kept");
        let web = Muf::builder(&slow.url, "web").payload_limit(limit_bytes);
        let web = web.connect().await.expect("a unit");
        let mut watch = web.watch_keep("back/*").await.expect("a watch");
        let reader = web.clone();
        let reads = [
            tokio::spawn(async move {
                let value = reader.read_keep("back", "large").await.expect("a value");
                value.expect("it is kept").bytes().len()
            }),
            tokio::spawn(async move {
                match watch.next().await {
                    Some(KeepEvent::Value { value, .. }) => value.len(),
                    other => panic!("{other:?}"),
                }
            }),
        ];
        // Both take eight seconds together. Behind them, the calls would be answered when both are here.
        for _ in 0..5 {
            web.request("a.b", "x").await.expect("an answer");
        }
        assert!(!reads.iter().all(tokio::task::JoinHandle::is_finished));
        for read in reads {
            assert_eq!(read.await.expect("no panic"), limit_bytes);
        }
    }
}
