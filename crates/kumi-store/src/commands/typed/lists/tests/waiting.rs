//! Clients that wait for lists: who is served with what, when, and what others see of it.

use crate::base::ids::SessionKey;
use crate::engine::store::{Effect, Flow};
use crate::testing::{Lab, events, requests};
use kumi_resp::{Batch, Limits, encode};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

impl Lab {
    /// A new client that waits with `line`.
    #[track_caller]
    fn waiter(&mut self, line: &str) -> SessionKey {
        let client = self.connect();
        assert_eq!(self.run_as(client, line), "", "{line}");
        assert_eq!(self.last_flow, Flow::Blocked, "{line}");
        client
    }

    fn id_of(&self, client: SessionKey) -> u64 {
        self.store
            .clients
            .sessions
            .get(client)
            .map_or(0, |session| session.id)
    }
}

#[test]
fn what_is_there_is_taken_at_once() {
    Lab::new().check(&[
        ("RPUSH b 1 2 3 4", ":4\r\n"),
        ("BLPOP a b 0", "*2\r\n$1\r\nb\r\n$1\r\n1\r\n"),
        ("BRPOP a b 0", "*2\r\n$1\r\nb\r\n$1\r\n4\r\n"),
        (
            "BLMPOP 0 2 a b LEFT COUNT 9",
            "*2\r\n$1\r\nb\r\n*2\r\n$1\r\n2\r\n$1\r\n3\r\n",
        ),
        ("EXISTS b", ":0\r\n"),
        ("RPUSH a 1 2", ":2\r\n"),
        ("BLMOVE a b LEFT RIGHT 0", "$1\r\n1\r\n"),
        ("BRPOPLPUSH a b 0", "$1\r\n2\r\n"),
        ("LRANGE b 0 -1", "*2\r\n$1\r\n2\r\n$1\r\n1\r\n"),
        ("SET s x", "+OK\r\n"),
        ("BLPOP s b 0", WRONG_TYPE),
        ("BLPOP b s 0", "*2\r\n$1\r\nb\r\n$1\r\n2\r\n"),
        ("BLPOP none s 0", WRONG_TYPE),
        ("BLMPOP 0 1 s LEFT", WRONG_TYPE),
        ("BLMOVE s b LEFT LEFT 0", WRONG_TYPE),
        ("BLMOVE b s LEFT LEFT 0", WRONG_TYPE),
        ("BRPOPLPUSH b s 0", WRONG_TYPE),
        ("LLEN b", ":1\r\n"),
    ]);
}

#[test]
fn arguments_are_checked_before_keys() {
    let not_float = "-ERR timeout is not a float or out of range\r\n";
    let negative = "-ERR timeout is negative\r\n";
    let numkeys = "-ERR numkeys should be greater than 0\r\n";
    let syntax = "-ERR syntax error\r\n";
    Lab::new().check(&[
        ("RPUSH l 1", ":1\r\n"),
        ("BLPOP l x", not_float),
        ("BRPOP l -1", negative),
        ("BLPOP l 1e17", "-ERR timeout is out of range\r\n"),
        ("BLMOVE l m UP LEFT x", syntax),
        ("BLMOVE l m LEFT LEFT x", not_float),
        ("BRPOPLPUSH l m -0.5", negative),
        ("BLMPOP x 1 l LEFT", not_float),
        ("BLMPOP 0 0 l LEFT", numkeys),
        ("BLMPOP x 0 l LEFT", numkeys),
        ("BLMPOP x 1 l UP", syntax),
        ("BLMPOP 0 x l LEFT", numkeys),
        ("BLMPOP 0 2 l LEFT", syntax),
        ("BLMPOP 0 1 l UP", syntax),
        ("BLMPOP 0 1 l LEFT COUNT", syntax),
        (
            "BLMPOP 0 1 l LEFT COUNT 0",
            "-ERR count should be greater than 0\r\n",
        ),
        ("BLMPOP 0 9223372036854775807 l LEFT", syntax),
        ("LLEN l", ":1\r\n"),
    ]);
}

#[test]
fn first_come_first_served() {
    let mut lab = Lab::new();
    let first = lab.waiter("BLPOP l m 0");
    let second = lab.waiter("BRPOP l 0");
    let third = lab.waiter("BLMPOP 0 2 m l RIGHT COUNT 2");
    lab.check(&[
        ("RPUSH l 1 2 3 4 5", ":5\r\n"),
        ("LRANGE l 0 -1", "*1\r\n$1\r\n2\r\n"),
    ]);
    assert_eq!(lab.received(first), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    assert_eq!(lab.received(second), "*2\r\n$1\r\nl\r\n$1\r\n5\r\n");
    assert_eq!(
        lab.received(third),
        "*2\r\n$1\r\nl\r\n*2\r\n$1\r\n4\r\n$1\r\n3\r\n"
    );
    let resumed: Vec<_> = lab.effects();
    assert!(
        matches!(resumed[..], [Effect::Resume(a), Effect::Resume(b), Effect::Resume(c)]
        if (a, b, c) == (first, second, third))
    );
    assert_eq!(lab.store.clients.blocked, 0);
    assert!(lab.store.keyspace.interest.waiters.is_empty());
}

#[test]
fn one_that_finds_nothing_keeps_its_place() {
    let mut lab = Lab::new();
    let first = lab.waiter("BLPOP l 0");
    let second = lab.waiter("BLPOP l 0");
    // The list is gone again before the transaction ends.
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("RPUSH l 1", "+QUEUED\r\n"),
        ("DEL l", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n:1\r\n:1\r\n"),
        ("SET l x", "+OK\r\n"),
        ("DEL l", ":1\r\n"),
        ("SADD l x", ":1\r\n"),
        ("FLUSHALL", "+OK\r\n"),
    ]);
    assert_eq!(lab.received(first), "");
    lab.check(&[("RPUSH l 2", ":1\r\n")]);
    assert_eq!(lab.received(first), "*2\r\n$1\r\nl\r\n$1\r\n2\r\n");
    assert_eq!(lab.received(second), "");
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("RPUSH l 3", "+QUEUED\r\n"),
        ("LPUSH l 4", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n:1\r\n:2\r\n"),
    ]);
    assert_eq!(
        lab.received(second),
        "*2\r\n$1\r\nl\r\n$1\r\n4\r\n",
        "after EXEC as a whole"
    );
}

#[test]
fn a_transaction_does_not_wait() {
    Lab::new().check(&[
        ("MULTI", "+OK\r\n"),
        ("BLPOP l 0", "+QUEUED\r\n"),
        ("BLMPOP 0 1 l LEFT", "+QUEUED\r\n"),
        ("BLMOVE l m LEFT LEFT 0", "+QUEUED\r\n"),
        ("BRPOPLPUSH l m 0", "+QUEUED\r\n"),
        ("RPUSH l 1", "+QUEUED\r\n"),
        ("BRPOP l 0", "+QUEUED\r\n"),
        (
            "EXEC",
            "*6\r\n*-1\r\n*-1\r\n$-1\r\n$-1\r\n:1\r\n*2\r\n$1\r\nl\r\n$1\r\n1\r\n",
        ),
    ]);
}

#[test]
fn chains_are_served_to_their_end() {
    let mut lab = Lab::new();
    let last = lab.waiter("BLPOP c 0");
    let middle = lab.waiter("BRPOPLPUSH b c 0");
    let first = lab.waiter("BLMOVE a b LEFT RIGHT 0");
    // A ring: it pops what it pushes itself, once.
    let ring = lab.waiter("BLMOVE r r LEFT RIGHT 0");
    lab.check(&[("RPUSH a x", ":1\r\n"), ("DBSIZE", ":0\r\n")]);
    for client in [first, middle] {
        assert_eq!(lab.received(client), "$1\r\nx\r\n");
    }
    assert_eq!(lab.received(last), "*2\r\n$1\r\nc\r\n$1\r\nx\r\n");
    lab.check(&[("RPUSH r y", ":1\r\n"), ("LLEN r", ":1\r\n")]);
    assert_eq!(lab.received(ring), "$1\r\ny\r\n");
}

#[test]
fn a_destination_of_another_type_ends_the_wait_with_an_error() {
    let mut lab = Lab::new();
    lab.run("SET s x");
    let client = lab.waiter("BLMOVE l s LEFT LEFT 0");
    let behind = lab.waiter("BLPOP l 0");
    lab.check(&[("RPUSH l 1", ":1\r\n")]);
    assert_eq!(lab.received(client), WRONG_TYPE);
    assert_eq!(lab.received(behind), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
}

/// RESTORE of the list `l` from a payload that a line cannot hold.
const RESTORE: &str = "EVAL return(redis.call('RESTORE','l',0,redis.call('DUMP','other'))) 0";
const RESTORE_REPLACE: &str =
    "EVAL return(redis.call('RESTORE','l',0,redis.call('DUMP','other'),'REPLACE')) 0";

#[test]
fn every_way_a_list_appears_wakes() {
    for (before, line) in [
        ("RPUSH other 1", "RENAME other l"),
        ("RPUSH other 1", "RENAMENX other l"),
        ("RPUSH other 1", "COPY other l"),
        ("RPUSH other 1", "LMOVE other l LEFT LEFT"),
        ("RPUSH other 1", "RPOPLPUSH other l"),
        ("RPUSH other 1", "BLMOVE other l LEFT LEFT 0"),
        ("RPUSH other 1", "SORT other STORE l"),
        ("RPUSH other 1", RESTORE),
        ("SET l x", "MULTI|DEL l|RPUSH l 1|EXEC"),
        ("PING", "SELECT 1|RPUSH l 1|SWAPDB 0 1"),
        ("PING", "SELECT 1|RPUSH l 1|MOVE l 0"),
        ("PING", "LPUSH l 1"),
    ] {
        let mut lab = Lab::new();
        let client = lab.waiter("BLPOP none l 0");
        lab.run(before);
        for line in line.split('|') {
            assert_eq!(lab.received(client), "", "before {line}");
            lab.run(line);
        }
        assert_eq!(
            lab.received(client),
            "*2\r\n$1\r\nl\r\n$1\r\n1\r\n",
            "after {line}"
        );
    }
}

#[test]
fn a_list_that_replaces_another_value_wakes_nobody() {
    for value in ["SET l x", "SADD l x", "ZADD l 1 x", "XADD l 1-1 f v"] {
        let mut lab = Lab::new();
        let client = lab.waiter("BLPOP l 0");
        lab.run(value);
        lab.check(&[
            ("RPUSH other 1", ":1\r\n"),
            ("SORT other STORE l", ":1\r\n"),
            // Neither does an element of a list that exists.
            ("RPUSH l 2", ":2\r\n"),
            ("SORT other STORE l", ":1\r\n"),
        ]);
        assert_eq!(lab.received(client), "", "{value}");
        lab.check(&[("DEL l", ":1\r\n"), ("RPUSH l 3", ":1\r\n")]);
        let served = "*2\r\n$1\r\nl\r\n$1\r\n3\r\n";
        assert_eq!(lab.received(client), served, "{value}");
    }
}

#[test]
fn a_list_in_the_place_of_a_removed_key_wakes() {
    for line in ["RENAME other l", "COPY other l REPLACE", RESTORE_REPLACE] {
        let mut lab = Lab::new();
        let client = lab.waiter("BLPOP l 0");
        lab.check(&[("SET l x", "+OK\r\n"), ("RPUSH other 1", ":1\r\n")]);
        assert_eq!(lab.received(client), "", "before {line}");
        lab.run(line);
        let served = "*2\r\n$1\r\nl\r\n$1\r\n1\r\n";
        assert_eq!(lab.received(client), served, "after {line}");
    }
}

#[test]
fn the_database_is_the_one_of_the_command() {
    let mut lab = Lab::new();
    let client = lab.connect();
    lab.run_as(client, "SELECT 3");
    lab.run_as(client, "BLPOP l 0");
    lab.run("RPUSH l 0");
    assert_eq!(lab.received(client), "");
    lab.check(&[("SELECT 3", "+OK\r\n"), ("RPUSH l 3", ":1\r\n")]);
    assert_eq!(lab.received(client), "*2\r\n$1\r\nl\r\n$1\r\n3\r\n");
}

#[test]
fn waits_end_on_the_steady_clock() {
    let mut lab = Lab::new();
    let soon = lab.waiter("BLPOP l 0.1");
    let later = lab.waiter("BLMOVE l m LEFT LEFT 0.1005");
    let never = lab.waiter("BLPOP l 0");
    // The wall clock alone ends nothing.
    lab.host.now.unix_us += 3_600_000_000;
    lab.advance_ms(99);
    assert_eq!(lab.received(soon), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(soon), "*-1\r\n");
    assert_eq!(lab.received(later), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(later), "*-1\r\n", "a null array, as in Redis");
    lab.advance_ms(1_000_000);
    assert_eq!(lab.received(never), "");
    lab.run("RPUSH l 1 2");
    assert_eq!(lab.received(never), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    assert_eq!(lab.received(soon), "");
    let stats = lab.run("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=2,"), "{stats}");
    assert!(stats.contains("cmdstat_blmove:calls=1,"), "{stats}");
}

#[test]
fn client_unblock_ends_a_wait() {
    let mut lab = Lab::new();
    let timeout = lab.waiter("BLPOP l 0");
    let error = lab.connect();
    lab.run_as(error, "HELLO 3");
    lab.run_as(error, "BRPOP l 0");
    let third = lab.connect();
    lab.run_as(third, "HELLO 3");
    lab.run_as(third, "BRPOP l 0");
    for (client, how, expected) in [
        (timeout, "", "*-1\r\n"),
        (
            error,
            "ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
        (third, "TIMEOUT", "_\r\n"),
    ] {
        let line = format!("CLIENT UNBLOCK {} {how}", lab.id_of(client));
        lab.check(&[(&line, ":1\r\n"), (&line, ":0\r\n")]);
        assert_eq!(lab.received(client), expected);
    }
    let stats = lab.run("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=1,"), "{stats}");
    let failed = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_brpop:"));
    assert!(
        failed.is_some_and(|line| line.contains("calls=2,") && line.ends_with("failed_calls=1"))
    );
    lab.check(&[("RPUSH l 1", ":1\r\n"), ("LLEN l", ":1\r\n")]);
}

#[test]
fn clients_that_are_gone_take_nothing() {
    let mut lab = Lab::new();
    let gone = lab.waiter("BLPOP l m 0");
    let killed = lab.waiter("BLPOP l 0");
    let last = lab.waiter("BLPOP l 0");
    lab.store.disconnect(gone);
    let line = format!("CLIENT KILL ID {}", lab.id_of(killed));
    lab.check(&[(&line, ":1\r\n"), ("RPUSH l 1", ":1\r\n")]);
    assert_eq!(lab.received(killed), "");
    assert_eq!(lab.received(last), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    assert!(lab.store.keyspace.interest.waiters.is_empty());
    assert_eq!(lab.store.clients.blocked, 0);
}

#[test]
fn reply_modes_hold_for_the_late_answer() {
    let mut lab = Lab::new();
    let (off, skip) = (lab.connect(), lab.connect());
    lab.run_as(off, "CLIENT REPLY OFF");
    lab.run_as(off, "BLPOP l 0");
    lab.run_as(skip, "CLIENT REPLY SKIP");
    lab.run_as(skip, "BLPOP l 0");
    lab.check(&[("RPUSH l 1 2 3", ":3\r\n"), ("LLEN l", ":1\r\n")]);
    assert_eq!(lab.received(off), "");
    assert_eq!(lab.received(skip), "");
    assert_eq!(lab.run_as(off, "PING"), "");
    assert_eq!(lab.run_as(skip, "PING"), "+PONG\r\n");
    lab.run("DEL l");
    lab.run_as(off, "BLPOP l 1");
    lab.advance_ms(1000);
    assert_eq!(lab.received(off), "");
    let stats = lab.run("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=3,"), "{stats}");
}

#[test]
fn monitors_and_statistics_see_a_command_once() {
    let mut lab = Lab::new();
    let monitor = lab.connect();
    lab.run_as(monitor, "MONITOR");
    let client = lab.waiter("BLPOP l 0");
    assert_eq!(lab.received(monitor).matches("BLPOP").count(), 1);
    let stats = lab.run("INFO commandstats");
    assert!(
        !stats.contains("cmdstat_blpop"),
        "it has not ended: {stats}"
    );
    lab.run("RPUSH l 1");
    assert_eq!(lab.received(client), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    assert!(!lab.received(monitor).contains("BLPOP"));
    let stats = lab.run("INFO commandstats");
    assert!(stats.contains("cmdstat_blpop:calls=1,"), "{stats}");
}

#[test]
fn writes_are_recorded_as_the_twins_that_do_not_wait() {
    let mut lab = Lab::new();
    lab.store.listen_to_writes(true);
    let (pop, chain, many) = (
        lab.waiter("BRPOP l 0"),
        lab.waiter("blmove l m left Right 0"),
        lab.waiter("BLMPOP 0 1 m LEFT COUNT 5"),
    );
    lab.run("RPUSH l 1 2");
    let served = ["RPUSH l 1 2", "RPOP l", "LMOVE l m left Right", "LPOP m 1"];
    assert_eq!(lab.writes(), served);
    for client in [pop, chain, many] {
        assert_ne!(lab.received(client), "");
    }
    lab.waiter("BLPOP l 0");
    let transaction = "MULTI|RPUSH l 1 2|BRPOPLPUSH l m 0|BLPOP m 0|BLPOP m 0|EXEC";
    transaction.split('|').for_each(|line| {
        lab.run(line);
    });
    let writes = requests(&lab.store.take_writes());
    let expected = [
        "MULTI",
        "RPUSH l 1 2",
        "RPOPLPUSH l m",
        "LPOP m",
        "EXEC",
        "LPOP l",
    ];
    assert_eq!(writes, expected);
}

#[test]
fn events_are_those_of_push_and_pop() {
    let mut lab = Lab::new();
    lab.configure("notify-keyspace-events", "EA");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
    lab.received(listener);
    lab.waiter("BLMOVE l m LEFT RIGHT 0");
    lab.waiter("BRPOP m 0");
    lab.run("RPUSH l 1");
    let received = events(&lab.received(listener));
    let expected = ["rpush l", "rpush m", "lpop l", "del l", "rpop m", "del m"];
    assert_eq!(received, expected);
}

#[test]
fn a_packet_goes_on_behind_a_wait() {
    let mut lab = Lab::new();
    let mut buffer = Vec::new();
    for line in ["LPUSH l 1", "BLPOP l 0", "BLPOP l 0", "GET l"] {
        let words: Vec<&str> = line.split(' ').collect();
        encode::array(&mut buffer, words.len());
        for word in words {
            encode::bulk(&mut buffer, word.as_bytes());
        }
    }
    let (mut batch, mut end) = (Batch::default(), 0);
    while let Some(next) = batch.decode(&buffer, end, &Limits::default(), usize::MAX) {
        end = next;
        let args = batch.args(&buffer, batch.len() - 1);
        lab.store.plan(lab.client, args);
    }
    let client = lab.client;
    let (executed, flow) = lab.execute_batch(client, &batch, &buffer);
    assert_eq!((executed, flow), (3, Flow::Blocked));
    assert_eq!(lab.received(client), ":1\r\n*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    let other = lab.connect();
    assert_eq!(lab.run_as(other, "RPUSH l 2"), ":1\r\n");
    assert_eq!(lab.received(client), "*2\r\n$1\r\nl\r\n$1\r\n2\r\n");
    assert!(matches!(lab.effects()[..], [Effect::Resume(key)] if key == client));
}

#[test]
fn a_pause_holds_waiters_back() {
    let mut lab = Lab::new();
    let client = lab.waiter("BLPOP l 0");
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("RPUSH l 1", "+QUEUED\r\n"),
        ("CLIENT PAUSE 100 WRITE", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n:1\r\n+OK\r\n"),
        ("LLEN l", ":1\r\n"),
    ]);
    assert_eq!(lab.received(client), "");
    lab.advance_ms(100);
    assert_eq!(lab.received(client), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
}

#[test]
fn a_user_who_lost_the_permission_gets_an_error_when_woken() {
    let mut lab = Lab::new();
    lab.run("ACL SETUSER me on nopass ~* +@all");
    for (rule, error) in [
        ("resetkeys", "-NOPERM No permissions to access a key\r\n"),
        (
            "-blpop",
            "-NOPERM User me has no permissions to run the 'blpop' command\r\n",
        ),
    ] {
        let client = lab.connect();
        assert_eq!(lab.run_as(client, "AUTH me x"), "+OK\r\n");
        assert_eq!(lab.run_as(client, "BLPOP l 0"), "");
        lab.run(&format!("ACL SETUSER me {rule}"));
        lab.check(&[("RPUSH l a", ":1\r\n"), ("LPOP l", "$1\r\na\r\n")]);
        assert_eq!(lab.received(client), error);
        lab.run("ACL SETUSER me ~* +@all");
    }
    assert!(lab.run("ACL LOG 1").contains("blpop"));
}

#[test]
fn a_key_that_was_deleted_first_is_served_when_it_appeared() {
    for gone in ["DEL b", "FLUSHDB", "SWAPDB 0 1"] {
        let mut lab = Lab::new();
        let (one, other) = (lab.waiter("BLPOP c 0"), lab.waiter("BLPOP c b 0"));
        lab.check(&[("SADD b m", ":1\r\n"), ("MULTI", "+OK\r\n")]);
        for line in [gone, "RPUSH c 1", "RPUSH b 2"] {
            assert_eq!(lab.run(line), "+QUEUED\r\n");
        }
        lab.run("EXEC");
        assert_eq!(lab.received(one), "*2\r\n$1\r\nc\r\n$1\r\n1\r\n", "{gone}");
        assert_eq!(
            lab.received(other),
            "*2\r\n$1\r\nb\r\n$1\r\n2\r\n",
            "{gone}"
        );
    }
}

#[test]
fn a_key_is_ready_from_when_it_holds_a_type_that_some_client_waits_for() {
    for (before, bystander, is_first) in [
        ("SET b x", "", false),
        ("SADD b x", "", false),
        ("ZADD b 1 x", "", false),
        ("SET b x", "BZPOPMIN z 0", false),
        // As in Redis, the client that waits for the type need not wait for the key.
        ("ZADD b 1 x", "BZPOPMIN z 0", true),
        ("XADD b 1-1 f v", "BZPOPMIN z 0", false),
        ("XADD b 1-1 f v", "XREAD BLOCK 0 STREAMS s $", true),
        ("RPUSH b x", "", true),
        ("SWAPDB 0 1", "", false),
    ] {
        let mut lab = Lab::new();
        let (one, other) = (lab.waiter("BLPOP c 0"), lab.waiter("BLPOP c b 0"));
        if !bystander.is_empty() {
            lab.waiter(bystander);
        }
        for line in ["SELECT 1", "SADD b x", "SELECT 0", "MULTI"] {
            lab.run(line);
        }
        for line in [before, "DEL b", "RPUSH c 1", "RPUSH b 2"] {
            assert_eq!(lab.run(line), "+QUEUED\r\n");
        }
        lab.run("EXEC");
        let (c, b) = (
            "*2\r\n$1\r\nc\r\n$1\r\n1\r\n",
            "*2\r\n$1\r\nb\r\n$1\r\n2\r\n",
        );
        // Woken by `b`, the second client takes from `c`, which its command names first.
        let expected = if is_first { ("", c) } else { (c, b) };
        let received = (lab.received(one), lab.received(other));
        let received = (received.0.as_str(), received.1.as_str());
        assert_eq!(received, expected, "{before}, {bystander}");
    }
}
