//! What the commands over several sorted sets answer, and who is served when clients wait for one.

use crate::engine::store::Flow;
use crate::testing::{Lab, events};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

fn bulks(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let texts = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), texts.collect::<String>())
}

#[track_caller]
fn check(lab: &mut Lab, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        assert_eq!(lab.run(line), bulks(expected), "after {line:?}");
    }
}

fn two_sets() -> Lab {
    let mut lab = Lab::new();
    lab.check(&[
        ("ZADD a 1 x 2 y 3 z", ":3\r\n"),
        ("ZADD b 10 y 20 z 30 w", ":3\r\n"),
        ("SADD s y q", ":2\r\n"),
        ("SET text x", "+OK\r\n"),
    ]);
    lab
}

#[test]
fn scores_are_weighted_and_joined() {
    check(
        &mut two_sets(),
        &[
            ("ZUNION 2 a b", "x y z w"),
            ("ZUNION 2 a b WITHSCORES", "x 1 y 12 z 23 w 30"),
            (
                "ZUNION 2 a b WEIGHTS 10 -1 WITHSCORES",
                "w -30 x 10 y 10 z 10",
            ),
            ("ZUNION 2 a b AGGREGATE min WITHSCORES", "x 1 y 2 z 3 w 30"),
            (
                "ZUNION 2 a b aggregate MAX withscores",
                "x 1 y 10 z 20 w 30",
            ),
            ("ZUNION 2 a s WITHSCORES", "q 1 x 1 y 3 z 3"),
            ("ZUNION 1 missing", ""),
            ("ZINTER 2 a b WITHSCORES", "y 12 z 23"),
            ("ZINTER 3 a b s WITHSCORES WEIGHTS 1 2 3", "y 25"),
            ("ZINTER 2 a a WITHSCORES", "x 2 y 4 z 6"),
            ("ZINTER 2 a missing", ""),
            ("ZDIFF 2 a b WITHSCORES", "x 1"),
            ("ZDIFF 2 a s", "x z"),
            ("ZDIFF 2 a a", ""),
            ("ZDIFF 2 missing a", ""),
        ],
    );
    let mut lab = two_sets();
    lab.check(&[
        ("ZINTERCARD 2 a b", ":2\r\n"),
        ("ZINTERCARD 2 a b LIMIT 1", ":1\r\n"),
        ("ZINTERCARD 2 a b LIMIT 0", ":2\r\n"),
        ("ZADD i inf m", ":1\r\n"),
        ("ZADD j -inf m", ":1\r\n"),
        ("ZUNION 2 i j WITHSCORES", "*2\r\n$1\r\nm\r\n$1\r\n0\r\n"),
        (
            "ZUNION 1 i WEIGHTS 0 WITHSCORES",
            "*2\r\n$1\r\nm\r\n$1\r\n0\r\n",
        ),
    ]);
    lab.run("HELLO 3");
    assert_eq!(
        lab.run("ZDIFF 2 a b WITHSCORES"),
        "*1\r\n*2\r\n$1\r\nx\r\n,1\r\n"
    );
}

#[test]
fn errors_come_before_changes() {
    let syntax = "-ERR syntax error\r\n";
    two_sets().check(&[
        (
            "ZUNION x a",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "ZUNION 0 a",
            "-ERR at least 1 input key is needed for 'zunion' command\r\n",
        ),
        (
            "ZDIFFSTORE a -1 a",
            "-ERR at least 1 input key is needed for 'zdiffstore' command\r\n",
        ),
        ("ZUNIONSTORE a 3 a b", syntax),
        ("ZUNIONSTORE a 9223372036854775807 b", syntax),
        ("ZUNIONSTORE a 1 text NOPE", WRONG_TYPE),
        ("ZUNIONSTORE a 1 b WEIGHTS", syntax),
        (
            "ZUNIONSTORE a 1 b WEIGHTS x",
            "-ERR weight value is not a float\r\n",
        ),
        ("ZUNIONSTORE a 1 b AGGREGATE", syntax),
        ("ZUNIONSTORE a 1 b AGGREGATE avg", syntax),
        ("ZUNIONSTORE a 1 b WITHSCORES", syntax),
        ("ZDIFF 1 a WEIGHTS 1", syntax),
        ("ZDIFF 1 a AGGREGATE SUM", syntax),
        ("ZINTERCARD 1 a WITHSCORES", syntax),
        ("ZINTERCARD 1 a LIMIT", syntax),
        (
            "ZINTERCARD 1 a LIMIT -1",
            "-ERR LIMIT can't be negative\r\n",
        ),
        ("ZINTER 1 a LIMIT 1", syntax),
        ("ZRANGESTORE a b 0 -1 WITHSCORES", syntax),
        ("ZRANGESTORE a text 0 -1", WRONG_TYPE),
        ("ZMPOP 0 a MIN", "-ERR numkeys should be greater than 0\r\n"),
        ("ZMPOP 2 a MIN", syntax),
        ("ZMPOP 1 a LEFT", syntax),
        (
            "ZMPOP 1 a MIN COUNT 0",
            "-ERR count should be greater than 0\r\n",
        ),
        (
            "BZMPOP x 1 a MIN",
            "-ERR timeout is not a float or out of range\r\n",
        ),
        ("BZPOPMIN a -1", "-ERR timeout is negative\r\n"),
        ("BZPOPMIN text a 0", WRONG_TYPE),
        ("ZCARD a", ":3\r\n"),
        ("ZCARD b", ":3\r\n"),
    ]);
}

#[test]
fn results_take_the_place_of_their_key() {
    let mut lab = two_sets();
    lab.check(&[
        ("ZUNIONSTORE text 2 a b", ":4\r\n"),
        ("OBJECT ENCODING text", "$8\r\nlistpack\r\n"),
        ("ZINTERSTORE a 2 a b", ":2\r\n"),
        ("ZDIFFSTORE d 2 b a", ":1\r\n"),
        ("ZRANGESTORE e text 0 1", ":2\r\n"),
        ("ZRANGESTORE f text +inf (1 BYSCORE REV LIMIT 0 2", ":2\r\n"),
        ("ZRANGESTORE e missing 0 -1", ":0\r\n"),
        ("EXISTS e", ":0\r\n"),
    ]);
    check(
        &mut lab,
        &[
            ("ZRANGE a 0 -1 WITHSCORES", "y 12 z 23"),
            ("ZRANGE d 0 -1 WITHSCORES", "w 30"),
            ("ZRANGE f 0 -1 WITHSCORES", "z 23 w 30"),
        ],
    );
    two_sets().check_events(&[
        ("ZUNIONSTORE u 2 a b", &["new u", "zunionstore u"]),
        ("ZINTERSTORE u 2 a missing", &["keymiss missing", "del u"]),
        ("ZDIFFSTORE u 2 a b", &["new u", "zdiffstore u"]),
        ("ZRANGESTORE u a 0 0", &["zrangestore u"]),
        ("ZRANGESTORE u a 5 9", &["del u"]),
        ("ZMPOP 1 a MAX COUNT 9", &["zpopmax a", "del a"]),
    ]);
    two_sets().check_writes(&[
        ("ZUNIONSTORE u 2 a b", &["ZUNIONSTORE u 2 a b"]),
        ("ZINTERSTORE none 2 a missing", &[]),
        ("ZMPOP 2 missing a MIN COUNT 2", &["ZPOPMIN a 2"]),
        ("BZPOPMAX a 0", &["ZPOPMAX a"]),
        ("BZMPOP 0 1 b MAX COUNT 9", &["ZPOPMAX b 3"]),
    ]);
}

#[test]
fn members_are_taken_off_the_first_set_there_is() {
    let mut lab = two_sets();
    lab.check(&[
        ("ZMPOP 1 missing MIN", "*-1\r\n"),
        (
            "ZMPOP 2 missing a MIN COUNT 2",
            "*2\r\n$1\r\na\r\n*2\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n*2\r\n$1\r\ny\r\n$1\r\n2\r\n",
        ),
        (
            "BZPOPMAX missing b 0",
            "*3\r\n$1\r\nb\r\n$1\r\nw\r\n$2\r\n30\r\n",
        ),
        (
            "BZMPOP 0 1 b MIN",
            "*2\r\n$1\r\nb\r\n*1\r\n*2\r\n$1\r\ny\r\n$2\r\n10\r\n",
        ),
        ("MULTI", "+OK\r\n"),
        ("BZPOPMIN missing 0", "+QUEUED\r\n"),
        ("BZMPOP 0 1 missing MIN", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n*-1\r\n*-1\r\n"),
    ]);
}

#[test]
fn waiting_clients_are_served_in_order() {
    let mut lab = Lab::new();
    let mut waiter = |line: &str| {
        let client = lab.connect();
        assert_eq!(lab.run_as(client, line), "");
        assert_eq!(lab.last_flow, Flow::Blocked);
        client
    };
    let lowest = waiter("BZPOPMIN k z 0");
    let highest = waiter("BZPOPMAX z 0");
    let many = waiter("BZMPOP 0 2 k z MIN COUNT 9");
    let late = waiter("BZPOPMIN z 0.5");
    let list = waiter("BLPOP z 0");
    lab.configure("notify-keyspace-events", "EA");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
    lab.received(listener);
    lab.check(&[
        ("SET z x", "+OK\r\n"),
        ("DEL z", ":1\r\n"),
        ("ZADD src 1 a 2 b 3 c 4 d", ":4\r\n"),
        ("ZRANGESTORE z src 0 -1", ":4\r\n"),
        ("EXISTS z", ":0\r\n"),
    ]);
    assert_eq!(
        lab.received(lowest),
        "*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n"
    );
    assert_eq!(
        lab.received(highest),
        "*3\r\n$1\r\nz\r\n$1\r\nd\r\n$1\r\n4\r\n"
    );
    assert_eq!(
        lab.received(many),
        "*2\r\n$1\r\nz\r\n*2\r\n*2\r\n$1\r\nb\r\n$1\r\n2\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n"
    );
    let events = events(&lab.received(listener));
    let expected = [
        "zrangestore z",
        "zpopmin z",
        "zpopmax z",
        "zpopmin z",
        "del z",
    ];
    assert_eq!(events[3..], expected);
    lab.advance_ms(500);
    assert_eq!(lab.received(late), "*-1\r\n");
    assert_eq!(lab.received(list), "");
}

/// RESTORE of the sorted set `z` from a payload that a line cannot hold.
const RESTORE: &str = "EVAL return(redis.call('RESTORE','z',0,redis.call('DUMP','other'))) 0";

#[test]
fn a_sorted_set_that_replaces_another_value_wakes_nobody() {
    for line in [
        "ZUNIONSTORE z 1 other",
        "ZINTERSTORE z 2 other other",
        "ZDIFFSTORE z 2 other none",
        "ZRANGESTORE z other 0 -1",
        "GEOSEARCHSTORE z other FROMLONLAT 13 38 BYRADIUS 1 km",
        "GEORADIUS other 13 38 1 km STORE z",
        "GEORADIUSBYMEMBER other m 1 km STOREDIST z",
    ] {
        let mut lab = Lab::new();
        let client = lab.connect();
        assert_eq!(lab.run_as(client, "BZPOPMIN z 0"), "");
        lab.check(&[
            ("GEOADD other 13 38 m", ":1\r\n"),
            ("SET z x", "+OK\r\n"),
            (line, ":1\r\n"),
            // Neither does a member of a sorted set that exists.
            ("ZADD z 1 n", ":1\r\n"),
            ("ZCARD z", ":2\r\n"),
        ]);
        assert_eq!(lab.received(client), "", "{line}");
        lab.check(&[("DEL z", ":1\r\n"), ("ZADD z 1 n", ":1\r\n")]);
        let served = "*3\r\n$1\r\nz\r\n$1\r\nn\r\n$1\r\n1\r\n";
        assert_eq!(lab.received(client), served, "{line}");
    }
}

#[test]
fn every_way_a_sorted_set_appears_wakes() {
    let (scored, placed) = ("ZADD other 1 m", "GEOADD other 13 38 m");
    for (before, line) in [
        ("PING", "ZADD z 1 m"),
        ("PING", "ZINCRBY z 1 m"),
        ("PING", "GEOADD z 13 38 m"),
        ("PING", "MULTI|ZADD z 1 m|EXEC"),
        ("PING", "SELECT 1|ZADD z 1 m|MOVE z 0"),
        ("PING", "SELECT 1|ZADD z 1 m|SWAPDB 0 1"),
        (scored, "RENAME other z"),
        (scored, "COPY other z"),
        (scored, "ZUNIONSTORE z 1 other"),
        (scored, "ZINTERSTORE z 2 other other"),
        (scored, "ZDIFFSTORE z 2 other none"),
        (scored, "ZRANGESTORE z other 0 -1"),
        (scored, RESTORE),
        (
            placed,
            "GEOSEARCHSTORE z other FROMLONLAT 13 38 BYRADIUS 1 km",
        ),
        (placed, "GEORADIUS other 13 38 1 km STORE z"),
        (placed, "GEORADIUSBYMEMBER other m 1 km STOREDIST z"),
    ] {
        let mut lab = Lab::new();
        lab.run(before);
        let client = lab.connect();
        assert_eq!(lab.run_as(client, "BZPOPMIN none z 0"), "");
        assert_eq!(lab.last_flow, Flow::Blocked);
        for line in line.split('|') {
            assert_eq!(lab.received(client), "", "before {line}");
            lab.run(line);
        }
        let reply = lab.received(client);
        assert!(
            reply.starts_with("*3\r\n$1\r\nz\r\n$1\r\nm\r\n"),
            "after {line}: {reply}"
        );
        lab.check(&[("SELECT 0", "+OK\r\n"), ("EXISTS z", ":0\r\n")]);
    }
}
