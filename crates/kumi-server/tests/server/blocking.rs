//! Clients that wait, over real sockets: chains, kills, pauses, timeouts, slow readers.

use crate::common::{Client, eventually, request};
use kumi_server::{Embedded, embedded};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How much later than its timeout a wait may end on a busy machine.
const LATE: Duration = Duration::from_secs(5);

/// Clients of one server, one of which asks about the others.
struct Room {
    server: Embedded,
    observer: Client<UnixStream>,
    waiting: usize,
}

impl Room {
    fn new() -> Self {
        let server = embedded().unwrap();
        let observer = Client::unix(server.path());
        Self {
            server,
            observer,
            waiting: 0,
        }
    }

    fn connect(&self) -> Client<UnixStream> {
        Client::unix(self.server.path())
    }

    /// A client that waits with a command when this returns.
    fn waiter(&mut self, words: &[&str]) -> Client<UnixStream> {
        let mut client = self.connect();
        self.wait(&mut client, words);
        client
    }

    fn wait(&mut self, client: &mut Client<UnixStream>, words: &[&str]) {
        client.send(request(words));
        self.waiting += 1;
        self.expect_waiting(self.waiting);
    }

    /// Waits until so many clients wait.
    fn expect_waiting(&mut self, count: usize) {
        let wanted = format!("blocked_clients:{count}\r\n");
        let look = || self.observer.line("INFO clients");
        eventually(look, |info| info.contains(&wanted));
        self.waiting = count;
    }
}

fn id_of(client: &mut Client<UnixStream>) -> String {
    client.line("CLIENT ID")
}

#[test]
fn a_chain_of_moves_carries_an_element_to_its_end() {
    let mut room = Room::new();
    let mut last = room.waiter(&["BLPOP", "d", "0"]);
    let mut third = room.waiter(&["BRPOPLPUSH", "c", "d", "0"]);
    let mut second = room.waiter(&["BLMOVE", "b", "c", "LEFT", "RIGHT", "0"]);
    let mut first = room.waiter(&["BLMOVE", "a", "b", "RIGHT", "LEFT", "0"]);
    assert_eq!(room.observer.line("RPUSH a x"), "1");
    for client in [&mut first, &mut second, &mut third] {
        client.expect("$1\r\nx\r\n");
    }
    last.expect("*2\r\n$1\r\nd\r\n$1\r\nx\r\n");
    assert_eq!(room.observer.line("DBSIZE"), "0");
    room.expect_waiting(0);
}

#[test]
fn what_a_waiter_sent_behind_its_wait_is_answered_after_it() {
    let mut room = Room::new();
    let mut client = room.connect();
    let mut bytes = request(&["BLPOP", "l", "0"]);
    bytes.extend(request(&["SET", "k", "v"]));
    bytes.extend(request(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]));
    bytes.extend(request(&["GET", "k"]));
    client.send(bytes);
    room.expect_waiting(1);
    assert_eq!(room.observer.line("EXISTS k"), "0");
    assert_eq!(room.observer.line("RPUSH l x"), "1");
    client.expect("*2\r\n$1\r\nl\r\n$1\r\nx\r\n+OK\r\n");
    room.expect_waiting(1);
    assert_eq!(room.observer.line("XADD s 1-1 f v"), "1-1");
    client.expect(
        "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n$1\r\nv\r\n",
    );
}

#[test]
fn a_waiter_that_is_killed_or_leaves_takes_nothing() {
    let mut room = Room::new();
    let mut killed = room.connect();
    let id = id_of(&mut killed);
    room.wait(&mut killed, &["BLPOP", "l", "0"]);
    let left = room.waiter(&["BLPOP", "l", "0"]);
    let mut stays = room.waiter(&["BLPOP", "l", "0"]);
    assert_eq!(room.observer.line(&format!("CLIENT KILL ID {id}")), "1");
    assert!(killed.read_to_end().is_empty());
    drop(left);
    room.expect_waiting(1);
    assert_eq!(room.observer.line("RPUSH l x y"), "2");
    stays.expect("*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    assert_eq!(room.observer.line("LLEN l"), "1");
}

#[test]
fn a_waiter_can_be_unblocked_in_both_ways() {
    let mut room = Room::new();
    for (how, reply) in [
        ("TIMEOUT", "*-1\r\n"),
        (
            "ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
    ] {
        let mut client = room.connect();
        let id = id_of(&mut client);
        room.wait(&mut client, &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
        let unblock = format!("CLIENT UNBLOCK {id} {how}");
        assert_eq!(room.observer.line(&unblock), "1");
        client.expect(reply);
        assert_eq!(room.observer.line(&unblock), "0");
        room.expect_waiting(0);
        assert_eq!(client.line("PING"), "PONG");
    }
}

#[test]
fn while_clients_are_paused_waiters_are_not_served() {
    let mut room = Room::new();
    let mut waiter = room.waiter(&["BLPOP", "l", "0"]);
    assert_eq!(room.observer.line("CLIENT PAUSE 600000 WRITE"), "OK");
    let mut writer = room.connect();
    room.wait(&mut writer, &["RPUSH", "l", "x"]);
    assert_eq!(room.observer.line("EXISTS l"), "0");
    assert_eq!(room.observer.line("CLIENT UNPAUSE"), "OK");
    writer.expect(":1\r\n");
    waiter.expect("*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    // A wait that ends while clients are paused ends in time.
    assert_eq!(room.observer.line("CLIENT PAUSE 600000 WRITE"), "OK");
    let mut reader = room.connect();
    reader.send(request(&["XREAD", "BLOCK", "1", "STREAMS", "s", "$"]));
    reader.expect("*-1\r\n");
    assert_eq!(room.observer.line("CLIENT UNPAUSE"), "OK");
}

#[test]
fn a_wait_lasts_as_long_as_it_was_asked_to() {
    let room = Room::new();
    for (words, millis) in [
        (&["BLPOP", "l", "0.2"][..], 200),
        (&["BZPOPMIN", "z", "0.001"], 1),
        (&["XREAD", "BLOCK", "150", "STREAMS", "s", "$"], 150),
    ] {
        let mut client = room.connect();
        let begin = Instant::now();
        client.send(request(words));
        client.expect("*-1\r\n");
        let (took, asked) = (begin.elapsed(), Duration::from_millis(millis));
        assert!(took >= asked, "{words:?} took {took:?}");
        assert!(took < asked + LATE, "{words:?} took {took:?}");
    }
}

#[test]
fn a_waiter_that_does_not_read_delays_no_other_client() {
    let mut room = Room::new();
    let large = "x".repeat(8 << 20);
    let mut slow = room.waiter(&["BLPOP", "l", "0"]);
    let mut quick = room.waiter(&["BLPOP", "l", "0"]);
    let mut writer = room.connect();
    writer.send(request(&["RPUSH", "l", &large, "small"]));
    writer.expect(":2\r\n");
    quick.expect("*2\r\n$1\r\nl\r\n$5\r\nsmall\r\n");
    assert_eq!(room.observer.line("PING"), "PONG");
    slow.expect(format!("*2\r\n$1\r\nl\r\n${}\r\n{large}\r\n", large.len()));
    assert_eq!(slow.line("PING"), "PONG");
}

#[test]
fn a_thousand_waiters_get_one_element_each() {
    let mut room = Room::new();
    let mut clients: Vec<_> = (0..1000)
        .map(|_| {
            let mut client = room.connect();
            client.send(request(&["BLPOP", "l", "0"]));
            client
        })
        .collect();
    room.expect_waiting(1000);
    let elements: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let mut words = vec!["RPUSH", "l"];
    words.extend(elements.iter().map(String::as_str));
    let mut writer = room.connect();
    writer.send(request(&words));
    writer.expect(":1000\r\n");
    room.expect_waiting(0);
    assert_eq!(room.observer.line("EXISTS l"), "0");
    let mut got: Vec<String> = clients
        .iter_mut()
        .map(|client| crate::common::text(&client.reply()))
        .collect();
    got.sort();
    got.dedup();
    assert_eq!(got.len(), 1000);
}

#[test]
fn consumers_of_a_group_share_entries_and_lose_the_group_together() {
    let mut room = Room::new();
    assert_eq!(room.observer.line("XGROUP CREATE s g $ MKSTREAM"), "OK");
    let mut wait = |consumer: &str| {
        room.waiter(&[
            "XREADGROUP",
            "GROUP",
            "g",
            consumer,
            "BLOCK",
            "0",
            "STREAMS",
            "s",
            ">",
        ])
    };
    let mut consumers = [wait("a"), wait("b"), wait("c")];
    assert_eq!(room.observer.line("XADD s 1-1 f v"), "1-1");
    let entry = "*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
    consumers[0].expect(format!("*1\r\n*2\r\n$1\r\ns\r\n*1\r\n{entry}"));
    assert_eq!(room.observer.line("XGROUP DESTROY s g"), "1");
    for client in &mut consumers[1..] {
        client.expect(
            "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n",
        );
    }
    room.expect_waiting(0);
}
