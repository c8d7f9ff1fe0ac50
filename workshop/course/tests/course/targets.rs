//! The course's targets hold for the solution: concurrent clients, commands a second, reply time, memory, limits, garbage.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::stages;
use course::bytes::command;
use course::server::Server;
use course::wire::Client;

fn connect(address: SocketAddr) -> Client {
    Client::connect(address).expect("the server accepts")
}

#[test]
fn the_targets_of_the_course_hold() {
    let server = Server::start(&stages()[7], &[]).expect("it starts");
    ten_and_a_hundred_clients(server.address);
    one_client_is_fast(server.address);
    garbage_does_not_end_it(server.address);
    ten_thousand_keys_need_little_memory(&server);
    health_figures(server.address);
    let mut client = connect(server.address);
    client.call_line(&[b"SET", b"one-more", b"x"], b"-ERR").expect("the limit of keys");
    client.call_line(&[b"SET", b"key0", &vec![b'x'; 512 * 1024 + 1]], b"-ERR").expect("the limit of a value");
    client.send(b"*1\r\n$1048577\r\n");
    client.expect_closed().expect("the limit of a message");
    // The log goes its own way; give each line a while.
    let deadline = Instant::now() + Duration::from_secs(10);
    let logged =
        |level: &str, text: &str| server.log().iter().any(|line| line.starts_with(level) && line.contains(text));
    for (level, text) in [
        ("INFO", "listening on 127.0.0.1:"),
        ("INFO", " connected"),
        ("INFO", " disconnected"),
        ("WARNING", "command failed: the limit of 10000 keys"),
        ("WARNING", "closed: Protocol error: message is too long"),
    ] {
        while !logged(level, text) {
            assert!(Instant::now() < deadline, "no {level} {text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// INFO shows connections, commands and keys.
fn health_figures(address: SocketAddr) {
    let (mut client, _other) = (connect(address), connect(address));
    client.call(&[b"DBSIZE"], b":10000\r\n").expect("full");
    let expected = b"connected_clients:2\r\n";
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        client.send(&command(&[b"INFO"]));
        let report = client.read_reply().0;
        let shows = |figure: &[u8]| report.windows(figure.len()).any(|window| window == figure);
        assert!(shows(b"keys:10000\r\n") && shows(b"total_commands_processed:") && shows(b"active_expired_keys:0"));
        // The connections of the tests before this one are on their way out.
        if shows(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{}", String::from_utf8_lossy(&report));
    }
}

/// Each client writes and reads its own key, all at the same time.
fn ten_and_a_hundred_clients(address: SocketAddr) {
    for count in [10, 100] {
        std::thread::scope(|scope| {
            for number in 0..count {
                scope.spawn(move || {
                    let mut client = connect(address);
                    let key = format!("client{number}").into_bytes();
                    for round in 0..20 {
                        let value = format!("{round}").into_bytes();
                        client.call(&[b"SET", &key, &value], b"+OK\r\n").expect("OK");
                        client.call(&[b"GET", &key], &course::bytes::bulk(&value)).expect("the value");
                    }
                });
            }
        });
    }
}

/// Over 1,000 commands a second one after the other, half of them in under 10 ms. Both have room for a busy machine.
fn one_client_is_fast(address: SocketAddr) {
    let mut client = connect(address);
    let mut times: Vec<Duration> = Vec::new();
    let started = Instant::now();
    for _ in 0..2_000 {
        let sent = Instant::now();
        client.call(&[b"SET", b"k", b"v"], b"+OK\r\n").expect("OK");
        client.call(&[b"GET", b"k"], b"$1\r\nv\r\n").expect("the value");
        times.push(sent.elapsed() / 2);
    }
    let per_second = 4_000.0 / started.elapsed().as_secs_f64();
    times.sort();
    assert!(times[times.len() / 2] < Duration::from_millis(10), "the median is {:?}", times[times.len() / 2]);
    assert!(per_second > 1_000.0, "{per_second:.0} commands a second");
}

fn garbage_does_not_end_it(address: SocketAddr) {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..200 {
        let mut bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        // Half of them begin like a command.
        if random.bool() {
            bytes.splice(0..0, *b"*3\r\n$3\r\n");
        }
        connect(address).send(&bytes);
    }
    connect(address).call(&[b"PING"], b"+PONG\r\n").expect("it is still there");
}

fn ten_thousand_keys_need_little_memory(server: &Server) {
    let mut client = connect(server.address);
    let there = client.call_line(&[b"DBSIZE"], b":").expect("a number");
    let there: usize = String::from_utf8_lossy(&there[1..]).parse().expect("a number");
    let value = vec![b'x'; 1024];
    for number in 0..10_000 - there {
        let key = format!("key{number}").into_bytes();
        client.send(&command(&[b"SET", &key, &value]));
        client.expect(b"+OK\r\n").expect("OK");
    }
    client.call(&[b"DBSIZE"], b":10000\r\n").expect("full");
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", server.id())) else {
        // Only Linux tells it this way.
        return;
    };
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    let kilobytes: u64 = kilobytes.expect("the memory in use");
    assert!(kilobytes < 100 * 1024, "{kilobytes} kB");
}
