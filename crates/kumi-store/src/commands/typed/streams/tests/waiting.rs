//! Clients that wait for streams.

use crate::base::ids::SessionKey;
use crate::engine::store::{Effect, Flow};
use crate::testing::Lab;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const NO_GROUP: &str =
    "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n";

#[track_caller]
fn waiter(lab: &mut Lab, line: &str) -> SessionKey {
    let client = lab.connect();
    assert_eq!(lab.run_as(client, line), "", "{line}");
    assert_eq!(lab.last_flow, Flow::Blocked, "{line}");
    client
}

fn read(id: &str) -> String {
    format!(
        "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n${}\r\n{id}\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        id.len()
    )
}

#[test]
fn all_readers_get_a_new_entry_and_one_consumer_of_each_group() {
    let mut lab = Lab::new();
    lab.run("XADD s 1-1 f v");
    lab.run("XGROUP CREATE s g $");
    lab.run("XGROUP CREATE s h $");
    let readers = [
        waiter(&mut lab, "XREAD BLOCK 0 STREAMS s $"),
        waiter(&mut lab, "XREAD COUNT 1 BLOCK 5000 STREAMS none s 0 1-1"),
    ];
    let consumers = [
        waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >"),
        waiter(&mut lab, "XREADGROUP GROUP h a BLOCK 0 STREAMS s >"),
    ];
    let second = waiter(&mut lab, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    let info = lab.run("INFO clients");
    assert!(info.contains("total_blocking_keys:2\r\n"), "{info}");
    assert!(
        info.contains("total_blocking_keys_on_nokey:1\r\n"),
        "{info}"
    );
    lab.run("XADD s 2-2 f v");
    for client in readers.into_iter().chain(consumers) {
        assert_eq!(lab.received(client), read("2-2"));
    }
    assert_eq!(lab.received(second), "");
    lab.run("XADD s 3-3 f v");
    assert_eq!(lab.received(second), read("3-3"));
    assert_eq!(lab.store.clients.blocked, 0);
    assert!(lab.store.keyspace.interest.waiters.is_empty());
}

/// How often commands have looked for a key.
fn looks(lab: &mut Lab) -> u64 {
    let info = lab.run("INFO stats");
    let field = |name: &str| -> u64 {
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        value
            .expect("INFO has the field")
            .parse()
            .expect("a number")
    };
    field("keyspace_hits:") + field("keyspace_misses:")
}

#[test]
fn an_entry_executes_the_commands_alone_that_it_serves() {
    const WAITERS: usize = 500;
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g $ MKSTREAM");
    lab.run("XGROUP CREATE s h $");
    let consumers: Vec<_> = (0..WAITERS)
        .map(|_| waiter(&mut lab, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"))
        .collect();
    let other = waiter(&mut lab, "XREADGROUP GROUP h c BLOCK 0 STREAMS s >");
    // Readers that wait for entries far behind.
    let readers: Vec<_> = (0..WAITERS)
        .map(|number| waiter(&mut lab, &format!("XREAD BLOCK 0 STREAMS s 1000-{number}")))
        .collect();
    let before = looks(&mut lab);
    lab.run("XADD s 2-2 f v");
    assert_eq!(lab.received(consumers[0]), read("2-2"));
    assert_eq!(lab.received(other), read("2-2"));
    assert!(looks(&mut lab) - before < 10, "two commands were executed");
    // What is added and removed in one go serves nobody, and executes nothing.
    let before = looks(&mut lab);
    lab.run("MULTI");
    lab.run("XADD s 3-3 f v");
    lab.run("XDEL s 3-3");
    lab.run("EXEC");
    assert!(looks(&mut lab) - before < 10, "nothing is to be had");
    lab.run("XADD s 1000-250 f v");
    assert_eq!(lab.received(consumers[1]), read("1000-250"));
    assert_eq!(lab.received(consumers[2]), "");
    for (number, reader) in readers.into_iter().enumerate() {
        let expected = if number < 250 {
            read("1000-250")
        } else {
            String::new()
        };
        assert_eq!(lab.received(reader), expected, "{number}");
    }
}

#[test]
fn readers_and_consumers_of_one_stream_are_served_in_the_order_they_came() {
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g $ MKSTREAM");
    let lines = [
        "XREAD BLOCK 0 STREAMS s 5-0",
        "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 STREAMS s 0",
        "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 STREAMS s 3-0",
        // A key that is named twice is one place in the order.
        "XREAD BLOCK 0 STREAMS s s 1-0 2-0",
    ];
    let clients = lines.map(|line| waiter(&mut lab, line));
    lab.run("XADD s 9-9 f v");
    let effects = lab.effects().into_iter();
    let resumes = effects.filter_map(|effect| match effect {
        Effect::Resume(key) => Some(key),
        _ => None,
    });
    let resumed: Vec<_> = resumes.collect();
    let expected = [0, 1, 2, 4, 5].map(|at| clients[at]);
    assert_eq!(resumed, expected);
    assert_eq!(lab.received(clients[3]), "");
}

#[test]
fn what_adds_no_entry_does_not_execute_a_waiting_command_again() {
    for line in [
        "XDEL s 1-1",
        "XTRIM s MAXLEN 0",
        "EXPIRE s 100",
        "XSETID s 9-9",
    ] {
        let mut lab = Lab::new();
        lab.run("XADD s 1-1 f v");
        let reader = waiter(&mut lab, "XREAD BLOCK 0 STREAMS t s $ $");
        // The command would find the wrong type if it were executed.
        lab.run("LPUSH t x");
        lab.run(line);
        assert_eq!(lab.received(reader), "", "{line}");
        lab.run("XADD s 20-20 f v");
        assert_eq!(lab.received(reader), WRONG_TYPE, "{line}");
    }
}

#[test]
fn a_reader_stays_and_a_consumer_answers_when_the_key_is_lost() {
    for (line, expected) in [
        ("DEL s", NO_GROUP),
        ("UNLINK s", NO_GROUP),
        ("FLUSHALL", NO_GROUP),
        ("FLUSHDB", NO_GROUP),
        ("RENAME s t", NO_GROUP),
        ("MOVE s 1", NO_GROUP),
        ("SWAPDB 0 1", NO_GROUP),
        ("PEXPIRE s -1", NO_GROUP),
        ("XGROUP DESTROY s g", NO_GROUP),
        ("SET s x", WRONG_TYPE),
        ("SADD o m|SINTERSTORE s o", WRONG_TYPE),
        ("SADD o m|SUNIONSTORE s o", WRONG_TYPE),
        ("SADD o m|SDIFFSTORE s o", WRONG_TYPE),
        ("RPUSH o 1|SORT o STORE s", WRONG_TYPE),
        ("ZADD o 1 m|ZUNIONSTORE s 1 o", WRONG_TYPE),
        ("ZADD o 1 m|ZRANGESTORE s o 0 -1", WRONG_TYPE),
        (
            "GEOADD o 13 38 m|GEOSEARCHSTORE s o FROMLONLAT 13 38 BYRADIUS 1 km",
            WRONG_TYPE,
        ),
        ("SET o x|BITOP NOT s o", WRONG_TYPE),
        ("SINTERSTORE s o", NO_GROUP),
        ("SET o x|COPY o s REPLACE", WRONG_TYPE),
        ("XADD o 9-9 f v|COPY o s REPLACE", NO_GROUP),
        ("MULTI|DEL s|LPUSH s 1|EXEC", WRONG_TYPE),
        ("MULTI|DEL s|XADD s 9-9 f v|EXEC", NO_GROUP),
    ] {
        let mut lab = Lab::new();
        lab.run("XGROUP CREATE s g 0 MKSTREAM");
        let reader = waiter(&mut lab, "XREAD BLOCK 0 STREAMS s 50-0");
        let consumer = waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
        for line in line.split('|') {
            lab.run(line);
        }
        assert_eq!(lab.received(consumer), expected, "{line}");
        assert_eq!(lab.received(reader), "", "{line}");
        assert_eq!(lab.store.clients.blocked, 1, "{line}");
    }
}

#[test]
fn an_expired_key_wakes_a_consumer() {
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    lab.run("PEXPIRE s 100");
    let consumer = waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    lab.advance_ms(99);
    assert_eq!(lab.received(consumer), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(consumer), NO_GROUP);
}

/// RESTORE of the stream `s` from a payload that a line cannot hold.
const RESTORE: &str = "EVAL return(redis.call('RESTORE','s',0,redis.call('DUMP','other'))) 0";

#[test]
fn every_way_a_stream_appears_wakes() {
    for (before, line) in [
        ("XADD other 5-5 f v", "RENAME other s"),
        ("XADD other 5-5 f v", "COPY other s"),
        ("XADD other 5-5 f v", RESTORE),
        ("PING", "SELECT 1|XADD s 5-5 f v|MOVE s 0"),
        ("PING", "SELECT 1|XADD s 5-5 f v|SWAPDB 0 1"),
        ("PING", "MULTI|XADD s 5-5 f v|EXEC"),
    ] {
        let mut lab = Lab::new();
        lab.run(before);
        let reader = waiter(&mut lab, "XREAD BLOCK 0 STREAMS s $");
        for line in line.split('|') {
            lab.run(line);
        }
        assert_eq!(lab.received(reader), read("5-5"), "{line}");
    }
}

#[test]
fn a_pause_of_writes_lets_a_reader_be_served_and_a_consumer_wait() {
    for (pause, served) in [("WRITE", true), ("ALL", false)] {
        let mut lab = Lab::new();
        lab.run("XGROUP CREATE s g 0 MKSTREAM");
        let consumer = waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
        let reader = waiter(&mut lab, "XREAD BLOCK 0 STREAMS s $");
        let later = waiter(&mut lab, "XREAD BLOCK 0 STREAMS s 2-2");
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            ("XADD s 1-1 f v", "+QUEUED\r\n"),
            (&format!("CLIENT PAUSE 100 {pause}"), "+QUEUED\r\n"),
            ("EXEC", "*2\r\n$3\r\n1-1\r\n+OK\r\n"),
        ]);
        let expected = if served { read("1-1") } else { String::new() };
        assert_eq!(lab.received(reader), expected, "{pause}");
        if served {
            // Other commands change nothing about that.
            lab.check(&[("XLEN s", ":1\r\n")]);
        }
        assert_eq!(lab.received(consumer), "", "{pause}");
        lab.advance_ms(100);
        assert_eq!(lab.received(consumer), read("1-1"), "{pause}");
        let expected = if served { String::new() } else { read("1-1") };
        assert_eq!(lab.received(reader), expected, "{pause}");
        lab.run("XADD s 3-3 f v");
        assert_eq!(lab.received(later), read("3-3"), "{pause}");
        assert!(!lab.store.keyspace.interest.waiters.has_ready());
    }
}

#[test]
fn a_consumer_is_woken_when_an_expired_stream_that_a_pause_kept_is_replaced() {
    let mut lab = Lab::new();
    lab.store.keyspace.expiry.active = false;
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    lab.run("PEXPIRE s 10");
    let consumer = waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    lab.advance_ms(20);
    assert_eq!(lab.received(consumer), "");
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("CLIENT PAUSE 100 WRITE", "+QUEUED\r\n"),
        ("SET s x", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n+OK\r\n"),
    ]);
    lab.advance_ms(100);
    assert_eq!(lab.received(consumer), WRONG_TYPE);
}

#[test]
fn nothing_waits_inside_a_transaction_or_without_block() {
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    lab.check(&[
        ("XREAD STREAMS s 0", "*-1\r\n"),
        ("XREADGROUP GROUP g a STREAMS s >", "*-1\r\n"),
        ("MULTI", "+OK\r\n"),
        ("XREAD BLOCK 0 STREAMS s 0", "+QUEUED\r\n"),
        ("XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n*-1\r\n*-1\r\n"),
        (
            "XREADGROUP GROUP g a BLOCK 0 STREAMS s 0",
            "*1\r\n*2\r\n$1\r\ns\r\n*0\r\n",
        ),
    ]);
}

#[test]
fn a_script_may_not_ask_to_wait() {
    let mut lab = Lab::new();
    let client = lab.client;
    for (call, expected) in [
        (
            "return redis.call('xread', 'BLOCK', 0, 'STREAMS', 's', '$')",
            "-ERR xread command is not allowed with BLOCK option from scripts",
        ),
        (
            "return redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', 0, 'STREAMS', 's', '>')",
            "-ERR XREADGROUP command is not allowed with BLOCK option from scripts",
        ),
        ("return redis.call('XREAD', 'STREAMS', 's', '0')", "$-1\r\n"),
    ] {
        let reply = lab.send(client, &[b"EVAL", call.as_bytes(), b"0"]);
        assert!(reply.starts_with(expected), "{reply}");
    }
}

#[test]
fn a_wait_ends_with_its_time() {
    let mut lab = Lab::new();
    let client = waiter(&mut lab, "XREAD BLOCK 100 STREAMS s $");
    lab.advance_ms(99);
    assert_eq!(lab.received(client), "");
    lab.advance_ms(1);
    assert_eq!(lab.received(client), "*-1\r\n");
    lab.check(&[
        (
            "XREAD BLOCK x STREAMS s $",
            "-ERR timeout is not an integer or out of range\r\n",
        ),
        ("XREAD BLOCK -1 STREAMS s $", "-ERR timeout is negative\r\n"),
        (
            "XREAD BLOCK 9223372036854775807 STREAMS s $",
            "-ERR timeout is out of range\r\n",
        ),
    ]);
}

#[test]
fn what_a_waiter_reads_is_recorded() {
    let mut lab = Lab::new();
    lab.run("XGROUP CREATE s g 0 MKSTREAM");
    lab.store.listen_to_writes(true);
    let client = waiter(&mut lab, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    assert_eq!(lab.writes(), ["XGROUP CREATECONSUMER s g a"]);
    lab.run("XADD s 1-1 f v");
    assert_eq!(lab.received(client), read("1-1"));
    let expected = [
        "XADD s 1-1 f v",
        "MULTI",
        "XCLAIM s g a 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
        "XGROUP SETID s g 1-1 ENTRIESREAD 1",
        "EXEC",
    ];
    assert_eq!(lab.writes(), expected);
}

#[test]
fn a_waiter_that_needs_memory_is_refused_when_there_is_none() {
    let mut lab = Lab::new();
    let mover = waiter(&mut lab, "BLMOVE l m LEFT LEFT 0");
    let popper = waiter(&mut lab, "BLPOP l 0");
    lab.run("RPUSH other 1");
    lab.configure("maxmemory", "1");
    lab.check(&[("RENAME other l", "+OK\r\n")]);
    assert_eq!(
        lab.received(mover),
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    );
    assert_eq!(lab.received(popper), "*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
}
