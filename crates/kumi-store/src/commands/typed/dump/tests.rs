//! DUMP and RESTORE alone, against recordings of 7.2, and in both directions with a redis-server.

use crate::data::rdb::{Compression, Writer, seal};
use crate::reference::Reference;
use crate::support::frame::Frame;
use crate::testing::Lab;

/// Commands that fill the key `k`, for every type and encoding that 7.0 has.
fn fillings() -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let many = |command: &str, count: usize, each: &dyn Fn(usize) -> String| {
        let mut line = words(command);
        for index in 0..count {
            line.extend(words(&each(index)));
        }
        line
    };
    let long = "x".repeat(100);
    vec![
        words("SET k hello"),
        words("SET k 12345"),
        words("SET k -9223372036854775808"),
        words(&format!("SET k {long}")),
        words(&format!("SET k {}", "ab".repeat(3000))),
        words("RPUSH k a 1 -7 300 70000 5000000000 hello"),
        many("RPUSH k", 3000, &|index| format!("element-{index}")),
        words(&format!("RPUSH k {} b", "y".repeat(20_000))),
        words("SADD k 1 2 300"),
        words("SADD k 1 70000 -5"),
        words("SADD k 1 5000000000"),
        words("SADD k a b 1"),
        many("SADD k", 600, &|index| index.to_string()),
        many("SADD k", 600, &|index| format!("member-{index}")),
        words("HSET k a 1 b two c -3"),
        words(&format!("HSET k a {long}")),
        many("HSET k", 700, &|index| format!("field-{index} {index}")),
        words("ZADD k 1 a 2.5 b -inf c inf d 0 1"),
        words(&format!("ZADD k 1 {long} 3 b")),
        many("ZADD k", 300, &|index| format!("{index}.5 member-{index}")),
        words("XADD k 1-1 field value other 5"),
        words("PFADD k a b c"),
        words("SETBIT k 1000 1"),
    ]
}

fn refs<T: AsRef<[u8]>>(words: &[T]) -> Vec<&[u8]> {
    words.iter().map(AsRef::as_ref).collect()
}

/// The bulk string of a raw reply.
#[track_caller]
fn bulk(reply: &[u8]) -> Vec<u8> {
    let end = reply
        .iter()
        .position(|&byte| byte == b'\n')
        .expect("a header");
    assert_eq!(reply[0], b'$', "{}", reply.escape_ascii());
    reply[end + 1..reply.len() - 2].to_vec()
}

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab
}

/// What a value is besides its content: the digest, the encoding and the deadline.
fn digest(lab: &mut Lab) -> String {
    lab.run("DEBUG DIGEST-VALUE k")
}

#[test]
fn a_value_of_every_type_and_encoding_goes_there_and_back() {
    let mut redis = Reference::start();
    let mut lab = lab();
    for filling in fillings() {
        let name = filling
            .iter()
            .take(4)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        redis.call(&["FLUSHALL"]);
        lab.run("FLUSHALL");
        assert!(!matches!(redis.call(&filling), Frame::Error(_)), "{name}");
        let dumped = redis.text(&["DUMP", "k"]);
        let reply = lab.send(lab.client, &[b"RESTORE", b"k", b"0", &dumped]);
        assert_eq!(reply, "+OK\r\n", "{name}");
        let Frame::Array(digests) = redis.call(&["DEBUG", "DIGEST-VALUE", "k"]) else {
            panic!("{name}: no digest");
        };
        let expected = digests[0].text().expect("a digest is text");
        let expected = format!("*1\r\n+{}\r\n", String::from_utf8_lossy(expected));
        assert_eq!(digest(&mut lab), expected, "{name} from redis-server");
        // And what was stored by the same command is the same value.
        if !name.starts_with("XADD") {
            let kept = lab.run("OBJECT ENCODING k");
            lab.run("DEL k");
            lab.send(lab.client, &refs(&filling));
            assert_eq!(digest(&mut lab), expected, "{name} by command");
            if !name.starts_with("PFADD") && !name.starts_with("SETBIT") {
                assert_eq!(lab.run("OBJECT ENCODING k"), kept, "{name}");
            }
        }
        let ours = bulk(&lab.send_raw(lab.client, &[b"DUMP", b"k"]));
        redis.call(&["DEL", "k"]);
        let restored = redis.call(&[b"RESTORE".as_slice(), b"k", b"0", &ours]);
        assert_eq!(restored.text(), Some(b"OK".as_slice()), "{name}");
        let Frame::Array(digests) = redis.call(&["DEBUG", "DIGEST-VALUE", "k"]) else {
            panic!("{name}: no digest");
        };
        let found = digests[0].text().expect("a digest is text");
        let found = format!("*1\r\n+{}\r\n", String::from_utf8_lossy(found));
        assert_eq!(found, expected, "{name} in redis-server");
    }
}

#[test]
fn a_set_of_more_integers_than_an_intset_may_have_comes_back_as_a_hashtable() {
    let mut redis = Reference::start();
    let mut lab = lab();
    for limit in ["2", "3"] {
        redis.call(&["CONFIG", "SET", "set-max-intset-entries", limit]);
        lab.configure("set-max-intset-entries", limit);
        lab.run("SADD k 1 2 3 x");
        lab.run("SREM k x");
        let dumped = bulk(&lab.send_raw(lab.client, &[b"DUMP", b"k"]));
        let restore = [b"RESTORE".as_slice(), b"k", b"0", &dumped, b"REPLACE"];
        redis.call(&restore);
        assert_eq!(lab.send(lab.client, &restore), "+OK\r\n");
        let expected = redis.text(&["OBJECT", "ENCODING", "k"]);
        let expected = format!(
            "${}\r\n{}\r\n",
            expected.len(),
            String::from_utf8_lossy(&expected)
        );
        assert_eq!(lab.run("OBJECT ENCODING k"), expected, "limit {limit}");
    }
}

#[test]
fn a_skiplist_keeps_the_sign_of_a_zero_and_a_listpack_has_none() {
    let mut lab = lab();
    let long = "x".repeat(100);
    for (score, member, expected) in [
        ("1", long.as_str(), "-0"),
        ("-1", &long, "-0"),
        ("1", "b", "0"),
    ] {
        lab.run("DEL k");
        lab.run(&format!("ZADD k {score} {member}"));
        lab.run("ZADD k -0.0 a");
        let expected = format!("${}\r\n{expected}\r\n", expected.len());
        lab.check(&[
            ("ZSCORE k a", &expected),
            ("DEBUG RELOAD", "+OK\r\n"),
            ("ZSCORE k a", &expected),
        ]);
    }
}

#[test]
fn the_digest_of_all_data_is_that_of_redis() {
    let mut redis = Reference::start();
    let mut lab = lab();
    for (number, mut filling) in fillings().into_iter().enumerate() {
        if filling[0] == "XADD" {
            continue;
        }
        filling[1] = format!("key-{number}");
        let db = (number % 3).to_string();
        redis.call(&["SELECT", &db]);
        lab.run(&format!("SELECT {db}"));
        redis.call(&filling);
        lab.send(lab.client, &refs(&filling));
        if number % 4 == 0 {
            redis.call(&["EXPIRE", &filling[1], "1000"]);
            lab.run(&format!("EXPIRE {} 1000", filling[1]));
        }
    }
    let expected = redis.text(&["DEBUG", "DIGEST"]);
    let expected = format!("+{}\r\n", String::from_utf8_lossy(&expected));
    assert_eq!(lab.run("DEBUG DIGEST"), expected);
    // The serialiser loses nothing.
    lab.check(&[("DEBUG RELOAD", "+OK\r\n"), ("DEBUG DIGEST", &expected)]);
}

#[test]
fn restore_answers_and_refuses_as_redis_does() {
    let mut lab = lab();
    lab.run("SET k hello");
    let payload = bulk(&lab.send_raw(lab.client, &[b"DUMP", b"k"]));
    let client = lab.client;
    let check = |lab: &mut Lab, words: &[&[u8]], expected: &str| {
        let mut all = vec![b"RESTORE".as_slice()];
        all.extend_from_slice(words);
        assert_eq!(lab.send(client, &all), expected, "{words:?}");
    };
    let busy = "-BUSYKEY Target key name already exists.\r\n";
    let wrong = "-ERR DUMP payload version or checksum are wrong\r\n";
    check(&mut lab, &[b"k", b"0", &payload], busy);
    check(&mut lab, &[b"k", b"x", b"y"], busy);
    check(
        &mut lab,
        &[b"n", b"-1", &payload],
        "-ERR Invalid TTL value, must be >= 0\r\n",
    );
    check(
        &mut lab,
        &[b"n", b"x", &payload],
        "-ERR value is not an integer or out of range\r\n",
    );
    check(&mut lab, &[b"n", b"0", b""], wrong);
    let mut damaged = payload.clone();
    damaged[1] = 0xff;
    check(&mut lab, &[b"n", b"0", &damaged], wrong);
    lab.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    check(
        &mut lab,
        &[b"n", b"0", &damaged],
        "-ERR Bad data format\r\n",
    );
    lab.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 0");
    check(
        &mut lab,
        &[b"n", b"0", &payload, b"FOO"],
        "-ERR syntax error\r\n",
    );
    check(
        &mut lab,
        &[b"n", b"0", &payload, b"IDLETIME", b"-1"],
        "-ERR Invalid IDLETIME value, must be >= 0\r\n",
    );
    check(
        &mut lab,
        &[b"n", b"0", &payload, b"FREQ", b"256"],
        "-ERR Invalid FREQ value, must be >= 0 and <= 255\r\n",
    );
    check(
        &mut lab,
        &[b"n", b"0", &payload, b"FREQ", b"1", b"IDLETIME", b"1"],
        "-ERR syntax error\r\n",
    );
    lab.check(&[("EXISTS n", ":0\r\n"), ("GET k", "$5\r\nhello\r\n")]);
    check(
        &mut lab,
        &[b"n", b"0", &payload, b"IDLETIME", b"70"],
        "+OK\r\n",
    );
    lab.check(&[("OBJECT IDLETIME n", ":70\r\n"), ("TTL n", ":-1\r\n")]);
    check(&mut lab, &[b"n", b"5000", &payload, b"REPLACE"], "+OK\r\n");
    lab.check(&[("PTTL n", ":5000\r\n"), ("GET n", "$5\r\nhello\r\n")]);
    // What has passed is not stored, and what was there goes.
    check(
        &mut lab,
        &[b"n", b"5", &payload, b"REPLACE", b"ABSTTL"],
        "+OK\r\n",
    );
    lab.check(&[("EXISTS n", ":0\r\n")]);
    // A sum that no signed number holds has passed, too.
    check(
        &mut lab,
        &[b"n", b"9223372036854775807", &payload],
        "+OK\r\n",
    );
    lab.check(&[("EXISTS n", ":0\r\n")]);
}

#[test]
fn restore_tells_of_itself() {
    let mut lab = lab();
    lab.run("SET k 5");
    // An integer needs no bytes that a line cannot hold, but its footer does: the payload goes in as it is.
    let payload = bulk(&lab.send_raw(lab.client, &[b"DUMP", b"k"]));
    let client = lab.client;
    lab.configure("notify-keyspace-events", "EAn");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
    lab.received(listener);
    lab.store.listen_to_writes(true);
    let mut restore = |ttl: &str, more: &[&[u8]]| {
        let mut words = vec![b"RESTORE".as_slice(), b"k", ttl.as_bytes(), &payload];
        words.extend_from_slice(more);
        assert_eq!(lab.send(client, &words), "+OK\r\n");
        let events = crate::testing::events(&lab.received(listener));
        let writes: Vec<String> = lab.writes();
        let writes = writes.into_iter().map(|write| {
            let words: Vec<&str> = write.split(' ').collect();
            // The payload is the fourth word.
            let shown = words.iter().enumerate();
            let shown = shown
                .filter(|(index, _)| *index != 3)
                .map(|(_, word)| *word);
            shown.collect::<Vec<_>>().join(" ")
        });
        (events, writes.collect::<Vec<_>>())
    };
    let (events, writes) = restore("0", &[b"REPLACE"]);
    assert_eq!(events, ["new k", "restore k"]);
    assert_eq!(writes, ["RESTORE k 0 REPLACE"]);
    let (_, writes) = restore("1000", &[b"REPLACE"]);
    assert_eq!(writes, ["RESTORE k 1700000001000 REPLACE ABSTTL"]);
    let (events, writes) = restore("1", &[b"REPLACE", b"ABSTTL"]);
    assert_eq!(events, ["del k"]);
    assert_eq!(writes, ["DEL k"]);
    lab.configure("lazyfree-lazy-server-del", "yes");
    lab.run("SET k 5");
    lab.writes();
    let words = [
        b"RESTORE".as_slice(),
        b"k",
        b"1",
        &payload,
        b"REPLACE",
        b"ABSTTL",
    ];
    assert_eq!(lab.send(client, &words), "+OK\r\n");
    assert_eq!(lab.writes(), ["UNLINK k"]);
}

#[test]
fn reload_knows_its_options() {
    let mut lab = lab();
    let broken = "-ERR Error trying to load the RDB dump, check server logs.\r\n";
    lab.check(&[
        ("DEBUG RELOAD NOSAVE", broken),
        (
            "DEBUG RELOAD FOO",
            "-ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.\r\n",
        ),
        ("SET a 1", "+OK\r\n"),
        ("HSET h f v", ":1\r\n"),
        ("SET t 1 PX 100", "+OK\r\n"),
        ("DEBUG RELOAD", "+OK\r\n"),
        ("SET a 2", "+OK\r\n"),
        ("SET b 1", "+OK\r\n"),
        ("DEBUG RELOAD NOSAVE NOFLUSH", broken),
        ("GET a", "$1\r\n2\r\n"),
        ("DEBUG RELOAD NOSAVE NOFLUSH MERGE", "+OK\r\n"),
        ("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n"),
        ("PTTL t", ":100\r\n"),
    ]);
    lab.advance_ms(100);
    lab.check(&[
        ("DEBUG RELOAD NOSAVE", "+OK\r\n"),
        ("MGET a b t", "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n"),
        ("HGET h f", "$1\r\nv\r\n"),
        ("DBSIZE", ":2\r\n"),
    ]);
}

/// The payload of a stream with nodes of one entry each, and with these counters.
fn stream_payload(nodes: &[(u64, u64)], [last, first, deleted]: [u64; 3], added: u64) -> Vec<u8> {
    // Live, deleted, fields: f; 0. Then flags, ms, seq, v, 4 elements.
    const LISTPACK: &[u8] = b"\x1d\0\0\0\x0a\0\x01\x01\0\x01\x01\x01\x81f\x02\0\x01\x02\x01\0\x01\0\x01\x81v\x02\x04\x01\xff";
    let mut payload = vec![19];
    let mut writer = Writer::new(&mut payload, Compression::None);
    writer.length(nodes.len() as u64);
    for (ms, entry_ms) in nodes {
        writer.string(&[ms.to_be_bytes(), 1_u64.to_be_bytes()].concat());
        let mut node = LISTPACK.to_vec();
        node[19] = u8::try_from(entry_ms - ms).unwrap();
        writer.string(&node);
    }
    writer.length(nodes.len() as u64);
    for ms in [last, first, deleted] {
        writer.length(ms);
        writer.length(1);
    }
    writer.length(added);
    writer.length(0);
    seal(&mut payload);
    payload
}

/// The ids of nodes and of their entries.
type Nodes = &'static [(u64, u64)];

#[test]
fn a_stream_whose_ids_are_out_of_order_is_refused() {
    const BAD: &str = "-ERR Bad data format\r\n";
    const T: u64 = 10_000_000_000_000 - 1;
    let cases: &[(Nodes, u64, &str)] = &[
        (&[(T, T)], T, "+OK\r\n"),
        (&[(T, T)], 5, BAD),
        (&[(T, T + 9)], T + 8, BAD),
        (&[(T, T + 9)], T + 9, "+OK\r\n"),
        (&[(3, 4), (5, 5)], 5, "+OK\r\n"),
        (&[(3, 5), (5, 5)], 5, BAD),
        (&[(3, 7), (5, 5)], 7, BAD),
        (&[(5, 5), (3, 3)], 9, BAD),
        (&[(5, 5), (5, 5)], 9, BAD),
    ];
    for (nodes, last, expected) in cases {
        let mut lab = lab();
        let payload = stream_payload(nodes, [*last, nodes[0].0, 0], 1);
        let reply = lab.send(lab.client, &[b"RESTORE", b"k", b"0", &payload]);
        assert_eq!(reply, *expected, "{nodes:?} {last}");
        for _ in 0..150 {
            lab.run("XADD k * a b");
        }
        assert!(lab.run("XINFO STREAM k").contains("radix-tree-nodes"));
    }
}

#[test]
fn counters_of_a_stream_that_contradict_its_entries_are_corrected() {
    let mut lab = lab();
    let payload = stream_payload(&[(3, 3), (5, 5)], [9, 4, 0], 0);
    let reply = lab.send(lab.client, &[b"RESTORE", b"k", b"0", &payload]);
    assert_eq!(reply, "+OK\r\n");
    let info = lab.run("XINFO STREAM k");
    assert!(info.contains("entries-added\r\n:2\r\n"), "{info}");
    assert!(
        info.contains("recorded-first-entry-id\r\n$3\r\n3-1\r\n"),
        "{info}"
    );
    let payload = stream_payload(&[(3, 3)], [9, 3, 0], u64::MAX);
    let reply = lab.send(lab.client, &[b"RESTORE", b"full", b"0", &payload]);
    assert_eq!(reply, "+OK\r\n");
    assert!(lab.run("XADD full 10-0 a b").contains("10-0"));
}

#[test]
fn a_list_with_a_node_of_no_bytes_is_refused() {
    const QUICKLIST_2: u8 = 18;
    let mut lab = lab();
    for (bytes, expected) in [("x", "+OK\r\n"), ("", "-ERR Bad data format\r\n")] {
        let mut payload = vec![QUICKLIST_2, 1, 1];
        Writer::new(&mut payload, Compression::None).string(bytes.as_bytes());
        seal(&mut payload);
        let reply = lab.send(lab.client, &[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
        assert_eq!(reply, expected, "{bytes:?}");
    }
}
