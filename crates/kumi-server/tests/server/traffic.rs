//! Bytes on the wire, in every unfriendly shape: cut, packed, huge, malformed, never read.

use crate::common::{Client, Process, eventually, request, text};
use kumi_resp::Frame;
use kumi_server::{Embedded, embedded, embedded_with};
use kumi_store::Config;
use kumi_store::config::Origin;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn server(directives: &[(&str, &str)]) -> Embedded {
    let mut config = Config::new();
    let pairs: Vec<(&[u8], &[u8])> = directives
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    let _changes = config.set_many(&pairs, Origin::Startup).unwrap();
    embedded_with(config).unwrap()
}

fn connect(server: &Embedded) -> Client<UnixStream> {
    Client::unix(server.path())
}

#[test]
fn a_request_that_arrives_byte_by_byte_is_answered_once_complete() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    let mut bytes = request(&["SET", "key", "a value"]);
    bytes.extend(b"GET key\r\n");
    bytes.extend(request(&["GET", "key"]));
    for byte in &bytes {
        client.send([*byte]);
    }
    client.expect("+OK\r\n$7\r\na value\r\n$7\r\na value\r\n");
}

#[test]
fn every_cut_of_a_pipeline_gives_the_same_answers() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    let mut bytes = Vec::new();
    for words in [
        &["SET", "k", "1"][..],
        &["INCR", "k"],
        &["GET", "k"],
        &["DEL", "k"],
    ] {
        bytes.extend(request(words));
    }
    for cut in 1..bytes.len() {
        client.send(&bytes[..cut]);
        // Whatever is complete is answered before the rest is sent, so the cut reaches the server.
        let mut other = connect(&server);
        assert_eq!(other.line("PING"), "PONG");
        client.send(&bytes[cut..]);
        client.expect("+OK\r\n:2\r\n$1\r\n2\r\n:1\r\n");
    }
}

#[test]
fn ten_thousand_requests_in_one_write_are_answered_in_order() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    let (mut bytes, mut replies) = (Vec::new(), String::new());
    for n in 1..=10_000 {
        bytes.extend(request(&["INCR", "n"]));
        replies.push_str(&format!(":{n}\r\n"));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    client.expect(replies);
    writing.join().unwrap();
}

#[test]
fn a_value_of_64_mb_comes_back_whole() {
    const LEN: usize = 64 * 1024 * 1024;
    let server = embedded().unwrap();
    let mut client = connect(&server);
    let value: Vec<u8> = (0..LEN).map(|n| (n % 251) as u8).collect();
    client.send(request(&[b"SET".as_slice(), b"big", &value]));
    client.expect("+OK\r\n");
    // Somebody else is served while it travels back.
    client.send(request(&["GET", "big"]));
    let mut other = connect(&server);
    assert_eq!(other.line("STRLEN big"), LEN.to_string());
    client.expect(format!("${LEN}\r\n"));
    client.expect(&value);
    client.expect("\r\n");
    assert_eq!(client.line("PING"), "PONG");
}

#[test]
fn garbage_is_answered_with_an_error_and_a_close() {
    #[track_caller]
    fn check(server: &Embedded, garbage: &[u8], expected: &str) {
        let mut client = connect(server);
        client.send(garbage);
        let answer = client.read_to_end();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }
    let server = embedded().unwrap();
    let s = &server;
    check(
        s,
        b"*a\r\n",
        "-ERR Protocol error: invalid multibulk length\r\n",
    );
    check(
        s,
        b"*1\r\n+OK\r\n",
        "-ERR Protocol error: expected '$', got '+'\r\n",
    );
    check(
        s,
        b"*1\r\n$-5\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    );
    check(
        s,
        b"GET \"open\r\n",
        "-ERR Protocol error: unbalanced quotes in request\r\n",
    );
    check(
        s,
        &[b'x'; 70_000],
        "-ERR Protocol error: too big inline request\r\n",
    );
    check(
        s,
        &[b"\0".to_vec(), b"line\n".repeat(14_000)].concat(),
        "-ERR Protocol error: too big inline request\r\n",
    );
    check(
        s,
        b"*1\r\n$536870913\r\n",
        "-ERR Protocol error: invalid bulk length\r\n",
    );
    let mut client = connect(s);
    assert_eq!(client.line("PING"), "PONG");
}

#[test]
fn replies_before_a_protocol_error_are_flushed_and_nothing_after_it_runs() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    let mut bytes = request(&["SET", "a", "1"]);
    bytes.extend(request(&["GET", "a"]));
    bytes.extend(b"*1\r\nGARBAGE\r\n");
    bytes.extend(request(&["SET", "a", "2"]));
    client.send(bytes);
    let answer = client.read_to_end();
    assert_eq!(
        String::from_utf8_lossy(&answer),
        "+OK\r\n$1\r\n1\r\n-ERR Protocol error: expected '$', got 'G'\r\n"
    );
    assert_eq!(connect(&server).line("GET a"), "1");
}

#[test]
fn quit_is_answered_before_the_connection_closes() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    client.send("PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.read_to_end(), b"+PONG\r\n+OK\r\n");
}

#[test]
fn a_client_that_stops_sending_still_gets_its_replies() {
    let server = embedded().unwrap();
    let mut client = connect(&server);
    client.send("SET a 1\r\nGET a\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read_to_end(), b"+OK\r\n$1\r\n1\r\n");
}

#[test]
fn a_stopped_sender_gets_all_of_a_large_reply() {
    const LEN: usize = 20 * 1024 * 1024;
    let server = embedded().unwrap();
    let mut client = connect(&server);
    client.send(request(&[b"SET".as_slice(), b"big", &vec![b'x'; LEN]]));
    client.expect("+OK\r\n");
    client.send("GET big\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read_to_end().len(), LEN + "$20971520\r\n\r\n".len());
}

#[test]
fn a_client_that_never_reads_is_closed_at_the_limit_without_effect_on_others() {
    let limits = "normal 4mb 0 0";
    let server = server(&[("client-output-buffer-limit", limits)]);
    let mut other = connect(&server);
    let big = "v".repeat(64 * 1024);
    assert_eq!(text(&other.ask(&["SET", "big", &big])), "OK");
    let mut deaf = connect(&server);
    let id = deaf.line("CLIENT ID");
    let mut writer = deaf.stream.try_clone().unwrap();
    // Far more than sockets and the limit can hold: it ends because the server closes.
    let writing = std::thread::spawn(move || {
        let bytes = request(&["GET", "big"]).repeat(100);
        while writer.write_all(&bytes).is_ok() {}
    });
    let mut slowest = Duration::ZERO;
    let list = ["CLIENT", "LIST", "ID", &id];
    eventually(
        || {
            let start = std::time::Instant::now();
            let listed = text(&other.ask(&list));
            slowest = slowest.max(start.elapsed());
            listed
        },
        String::is_empty,
    );
    writing.join().unwrap();
    assert!(slowest.as_secs() < 5, "another client waited {slowest:?}");
    assert_eq!(other.line("PING"), "PONG");
}

#[test]
fn a_stalled_subscriber_is_closed_at_its_limit_and_the_others_hear_everything() {
    let server = server(&[("client-output-buffer-limit", "pubsub 1mb 0 0")]);
    let mut stalled = connect(&server);
    assert_eq!(stalled.line("SUBSCRIBE news"), "subscribe,news,1");
    let mut listener = connect(&server);
    assert_eq!(listener.line("SUBSCRIBE news"), "subscribe,news,1");
    let mut publisher = connect(&server);
    let message = "m".repeat(10_000);
    let mut receivers = String::new();
    for _ in 0..1000 {
        receivers = text(&publisher.ask(&["PUBLISH", "news", &message]));
        assert_eq!(
            text(&listener.reply()),
            format!("message,news,{message}"),
            "the subscriber that reads gets every message"
        );
    }
    assert_eq!(receivers, "1", "the stalled one is gone");
    // What it was sent before that is still there to read, and then the end.
    let mut rest = Vec::new();
    let _ = stalled.stream.read_to_end(&mut rest);
    assert!(rest.len() < 4_000_000, "{}", rest.len());
}

#[test]
fn a_request_larger_than_max_message_size_is_refused_before_it_is_read() {
    let server = server(&[("max-message-size", "1000")]);
    let refusal = b"-ERR Protocol error: larger than max-message-size\r\n";
    let mut client = connect(&server);
    client.send(request(&["SET", "k", &"v".repeat(900)]));
    client.expect("+OK\r\n");
    // Only the length is sent, not the value.
    client.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000\r\n");
    assert_eq!(client.read_to_end(), refusal);
    let mut client = connect(&server);
    client.send(request(&["SET", "k", &"v".repeat(1000)]));
    assert_eq!(client.read_to_end(), refusal);
    let mut client = connect(&server);
    client.send("SET k ".to_owned() + &"v".repeat(1000));
    assert_eq!(client.read_to_end(), refusal);
    let mut client = connect(&server);
    let stored = client.ask(&["GET", "k"]);
    assert_eq!(stored, Frame::Bulk("v".repeat(900).into_bytes()));
}

#[test]
fn input_beyond_the_query_buffer_limit_closes_the_connection() {
    let server = server(&[("client-query-buffer-limit", "1mb")]);
    let mut client = connect(&server);
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let _ = writer.write_all(b"*2\r\n$3\r\nGET\r\n$300000000\r\n");
        let megabyte = vec![b'x'; 1 << 20];
        while writer.write_all(&megabyte).is_ok() {}
    });
    assert_eq!(client.read_to_end(), b"");
    writing.join().unwrap();
    assert_eq!(connect(&server).line("PING"), "PONG");
}

#[test]
fn a_client_without_the_password_is_held_short() {
    let server = server(&[("requirepass", "secret")]);
    let mut client = connect(&server);
    assert_eq!(client.line("PING"), "-NOAUTH Authentication required.");
    client.send("*11\r\n");
    assert_eq!(
        client.read_to_end(),
        b"-ERR Protocol error: unauthenticated multibulk length\r\n"
    );
    let mut client = connect(&server);
    // The same batch authenticates and then uses what that allows.
    let mut bytes = request(&["AUTH", "secret"]);
    bytes.extend(request(&[
        "MSET", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5",
    ]));
    client.send(bytes);
    client.expect("+OK\r\n+OK\r\n");
    // Answers that pile up without the password end the connection; a moderate batch does not.
    let refusal = "-NOAUTH Authentication required.\r\n";
    let mut client = connect(&server);
    client.send("PING\r\n".repeat(100));
    client.expect(refusal.repeat(100));
    let mut flood = connect(&server);
    flood.send("PING\r\n".repeat(5_000));
    assert!(flood.read_to_end().len() < refusal.len() * 5_000);
    client.send("PING\r\n");
    client.expect(refusal);
}

#[test]
fn an_idle_client_is_closed_after_the_timeout() {
    let server = server(&[("timeout", "1")]);
    let mut idle = connect(&server);
    let mut subscriber = connect(&server);
    assert_eq!(subscriber.line("SUBSCRIBE a"), "subscribe,a,1");
    assert_eq!(idle.line("PING"), "PONG");
    assert_eq!(idle.read_to_end(), b"");
    assert_eq!(subscriber.line("PING"), "pong,", "subscribers may be idle");
}

#[test]
fn a_client_that_sends_slowly_is_not_idle() {
    let server = server(&[("timeout", "2")]);
    let mut slow = connect(&server);
    slow.send("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$24\r\n");
    // Six seconds in all, and never half a second of silence.
    for _ in 0..24 {
        slow.send("x");
        std::thread::sleep(Duration::from_millis(250));
    }
    slow.send("\r\n");
    slow.expect("+OK\r\n");
}

#[test]
fn input_behind_a_paused_command_waits_until_the_pause_ends() {
    let server = embedded().unwrap();
    let mut control = connect(&server);
    assert_eq!(control.line("CLIENT PAUSE 100000 WRITE"), "OK");
    let mut client = connect(&server);
    client.send("SET a 1\r\nGET a\r\n");
    client.send("INCR a\r\n");
    eventually(
        || text(&control.ask(&["CLIENT", "LIST"])),
        |list| list.contains("flags=b"),
    );
    assert_eq!(control.line("GET a"), "nil");
    assert_eq!(control.line("CLIENT UNPAUSE"), "OK");
    client.expect("+OK\r\n$1\r\n1\r\n:2\r\n");
}

#[test]
fn a_long_pipeline_behind_a_paused_command_is_kept() {
    let server = embedded().unwrap();
    let mut control = connect(&server);
    assert_eq!(control.line("CLIENT PAUSE 100000 WRITE"), "OK");
    let mut client = connect(&server);
    let value = "v".repeat(100);
    for number in 0..6000 {
        client.send(format!("SET key:{number} {value}\r\n"));
    }
    assert_eq!(control.line("CLIENT UNPAUSE"), "OK");
    client.expect("+OK\r\n".repeat(6000));
    assert_eq!(control.line("DBSIZE"), "6000");
}

#[test]
fn a_paused_client_that_leaves_is_forgotten() {
    let server = embedded().unwrap();
    let mut control = connect(&server);
    assert_eq!(control.line("CLIENT PAUSE 100000 WRITE"), "OK");
    let mut client = connect(&server);
    let id = client.line("CLIENT ID");
    client.send("SET a 1\r\n");
    drop(client);
    let list = ["CLIENT", "LIST", "ID", &id];
    eventually(|| text(&control.ask(&list)), String::is_empty);
    assert_eq!(control.line("CLIENT UNPAUSE"), "OK");
    assert_eq!(control.line("GET a"), "nil");
}

#[test]
fn a_killed_client_loses_its_connection() {
    let server = embedded().unwrap();
    let mut control = connect(&server);
    let mut client = connect(&server);
    let id = client.line("CLIENT ID");
    assert_eq!(control.line(&format!("CLIENT KILL ID {id}")), "1");
    assert_eq!(client.read_to_end(), b"");
    let own = control.line("CLIENT ID");
    assert_eq!(
        control.line(&format!("CLIENT KILL ID {own} SKIPME no")),
        "1"
    );
    assert_eq!(control.read_to_end(), b"");
}

#[test]
fn what_a_client_sent_before_it_was_killed_does_not_run() {
    let server = server(&[("enable-debug-command", "yes")]);
    let (mut busy, mut killer) = (connect(&server), connect(&server));
    let mut client = connect(&server);
    let id = client.line("CLIENT ID");
    // Both requests arrive while the server sleeps, so one turn of its loop reads both.
    busy.send("DEBUG SLEEP 0.2\r\n");
    killer.send(format!("CLIENT KILL ID {id}\r\n"));
    client.send(request(&["SET", "a", "1"]));
    busy.expect("+OK\r\n");
    killer.expect(":1\r\n");
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(killer.line("EXISTS a"), "0");
}

#[test]
fn one_client_more_than_maxclients_is_told_so() {
    let server = server(&[("maxclients", "3")]);
    let mut clients: Vec<_> = (0..3).map(|_| connect(&server)).collect();
    for client in &mut clients {
        assert_eq!(client.line("PING"), "PONG");
    }
    assert_eq!(
        connect(&server).read_to_end(),
        b"-ERR max number of clients reached\r\n"
    );
    drop(clients.pop());
    eventually(
        || {
            let mut client = connect(&server);
            // The refusal may arrive before the question is sent.
            let _ = client.stream.write_all(b"PING\r\n");
            text(&client.reply())
        },
        |answer| answer == "PONG",
    );
}

#[test]
fn a_busy_pipeliner_does_not_starve_others() {
    let server = embedded().unwrap();
    let mut busy = connect(&server);
    let mut writer = busy.stream.try_clone().unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopping = stop.clone();
    let writing = std::thread::spawn(move || {
        let bytes = request(&["PING"]).repeat(10_000);
        while !stopping.load(std::sync::atomic::Ordering::Relaxed) {
            writer.write_all(&bytes).unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let reading = std::thread::spawn(move || {
        let mut sink = [0; 1 << 16];
        while busy.stream.read(&mut sink).unwrap() > 0 {}
    });
    let mut other = connect(&server);
    for _ in 0..200 {
        assert_eq!(other.line("PING"), "PONG");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writing.join().unwrap();
    reading.join().unwrap();
}

#[test]
fn ten_thousand_connections_are_served() {
    const CLIENTS: u64 = 10_000;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Other tests of this program have files open too.
    let wanted = CLIENTS + 2_000;
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum.map(|maximum| maximum.max(wanted)),
        };
        setrlimit(Resource::Nofile, raised).unwrap_or_else(|error| {
            panic!("this test needs {wanted} file descriptors ('ulimit -n {wanted}'): {error}")
        });
    }
    let server = Process::start(&["--maxclients", "12000"]);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for round in 0..2 {
        for client in &mut clients {
            client.send("INCR n\r\n");
        }
        let mut sum = 0;
        for client in &mut clients {
            let Frame::Integer(n) = client.reply() else {
                panic!("INCR answers a number");
            };
            sum += n as u64;
        }
        let before = round * CLIENTS;
        let expected: u64 = (before + 1..=before + CLIENTS).sum();
        assert_eq!(sum, expected);
    }
    clients.truncate(1);
    let survivor = &mut clients[0];
    eventually(
        || text(&survivor.ask(&["CLIENT", "LIST"])).lines().count(),
        |&count| count == 1,
    );
}
