//! What string commands leave behind besides their answers: events, records for a replica, counts; and the limits
//! they obey.

use crate::testing::Lab;

const TOO_MANY: &str = "-OOM command not allowed: max-keys limit of 2 keys reached\r\n";
const TOO_BIG: &str =
    "-OOM command not allowed: value of 11 bytes exceeds max-value-size of 10 bytes\r\n";
const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";

#[test]
fn string_commands_tell_what_they_did() {
    let mut lab = Lab::new();
    lab.check_events(&[
        ("GET a", &["keymiss a"]),
        ("SET a 1", &["new a", "set a"]),
        ("SET a 1 EX 100", &["set a", "expire a"]),
        ("SET a 1 KEEPTTL", &["set a"]),
        ("SET a 1 NX", &[]),
        ("SET b 1 XX", &[]),
        ("SET b 1 GET", &["keymiss b", "new b", "set b"]),
        ("SET c 1 XX GET", &["keymiss c"]),
        ("SETNX a 1", &[]),
        ("SETEX c 100 1", &["new c", "set c", "expire c"]),
        ("GETEX c", &[]),
        ("GETEX c PX 1000", &["expire c"]),
        ("GETEX c PERSIST", &["persist c"]),
        ("GETEX c PERSIST", &[]),
        ("GETEX c PXAT 1", &["del c"]),
        ("GETDEL b", &["del b"]),
        ("GETDEL b", &["keymiss b"]),
        ("GETSET b 1", &["keymiss b", "new b", "set b"]),
        ("MGET b none", &["keymiss none"]),
        ("MSET b 1 c 2", &["set b", "new c", "set c"]),
        ("MSETNX b 1 d 2", &[]),
        ("MSETNX d 1 d 2", &["new d", "set d", "set d"]),
        ("APPEND d 3", &["append d"]),
        ("APPEND e 3", &["new e", "append e"]),
        ("SETRANGE e 0 4", &["setrange e"]),
        ("SETRANGE f 0 4", &["new f", "setrange f"]),
        ("INCR f", &["incrby f"]),
        ("DECRBY f 2", &["incrby f"]),
        ("INCR g", &["new g", "incrby g"]),
        ("INCRBYFLOAT g 1.5", &["incrbyfloat g"]),
        ("INCRBYFLOAT h 1.5", &["new h", "incrbyfloat h"]),
        ("INCR a x", &[]),
        ("STRLEN none", &["keymiss none"]),
        ("GETRANGE none 0 1", &["keymiss none"]),
        ("LCS a none", &["keymiss none"]),
    ]);
}

#[test]
fn records_of_strings_carry_absolute_times() {
    let mut lab = Lab::new();
    lab.check_writes(&[
        ("SET a 1", &["SET a 1"]),
        ("SET a 1 EX 100", &["SET a 1 PXAT 1700000100000"]),
        ("SET a 1 XX PX 100 GET", &["SET a 1 PXAT 1700000000100"]),
        ("SET a 1 EXAT 1700000500", &["SET a 1 PXAT 1700000500000"]),
        ("SET a get XX GET KEEPTTL", &["SET a get XX KEEPTTL"]),
        ("SET a 1 NX", &[]),
        ("SETNX b 1", &["SETNX b 1"]),
        ("SETNX b 1", &[]),
        ("SETEX b 10 1", &["SET b 1 PXAT 1700000010000"]),
        ("PSETEX b 10 1", &["SET b 1 PXAT 1700000000010"]),
        ("GETEX b", &[]),
        ("GETEX b EX 20", &["PEXPIREAT b 1700000020000"]),
        ("GETEX b PERSIST", &["PERSIST b"]),
        ("GETEX b PERSIST", &[]),
        ("GETEX b EXAT 1", &["DEL b"]),
        ("GETDEL a", &["DEL a"]),
        ("GETDEL a", &[]),
        ("GETSET a 1", &["SET a 1"]),
        ("MSET a 1 b 2", &["MSET a 1 b 2"]),
        ("MSETNX a 1 b 2", &[]),
        ("APPEND a 2", &["APPEND a 2"]),
        ("SETRANGE a 0 x", &["SETRANGE a 0 x"]),
        ("SETRANGE a 0 \"\"", &[]),
        ("INCR b", &["INCR b"]),
        ("INCRBYFLOAT b 0.5", &["SET b 3.5 KEEPTTL"]),
        ("GET a", &[]),
    ]);
}

#[test]
fn lazy_deletions_are_recorded_as_unlinks() {
    let mut lab = Lab::new();
    lab.configure("lazyfree-lazy-user-del", "yes");
    lab.configure("lazyfree-lazy-expire", "yes");
    lab.run("MSET a 1 b 2 c 3");
    lab.check_writes(&[
        ("GETDEL a", &["UNLINK a"]),
        ("GETEX b EXAT 1", &["UNLINK b"]),
        ("EXPIRE c 0", &["UNLINK c"]),
    ]);
}

#[test]
fn string_commands_count_their_changes() {
    let mut lab = Lab::new();
    let changes = [
        ("SET a 1", 1),
        ("SET a 1 NX", 0),
        ("SET a 1 EX 10 GET", 1),
        ("GETEX a PERSIST", 1),
        ("GETEX a PERSIST", 0),
        ("MSET a 1 b 2 b 3", 3),
        ("MSETNX a 1 b 2", 0),
        ("APPEND a x", 1),
        ("SETRANGE a 0 \"\"", 0),
        ("SETRANGE a 0 y", 1),
        ("INCR b", 1),
        ("INCR a", 0),
        ("INCRBYFLOAT b 1", 1),
        ("GETDEL b", 1),
        ("GETDEL b", 0),
    ];
    for (line, expected) in changes {
        let before = lab.store.keyspace.dirty;
        lab.run(line);
        assert_eq!(
            lab.store.keyspace.dirty - before,
            expected,
            "after {line:?}"
        );
    }
}

#[test]
fn reads_count_hits_and_misses() {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    for line in [
        "GET a", "GET b", "MGET a b", "STRLEN a", "SET b 1", "INCR a",
    ] {
        lab.run(line);
    }
    let stats = lab.store.keyspace.stats;
    assert_eq!((stats.hits, stats.misses), (3, 2));
}

#[test]
fn nulls_and_maps_follow_the_protocol() {
    let mut lab = Lab::new();
    lab.run("MSET a ab b ab");
    lab.run("HELLO 3");
    lab.check(&[
        ("GET none", "_\r\n"),
        ("SET a ab NX", "_\r\n"),
        ("MGET none", "*1\r\n_\r\n"),
        ("GETDEL none", "_\r\n"),
        ("GETEX none", "_\r\n"),
        ("OBJECT ENCODING none", "_\r\n"),
        (
            "LCS a b IDX",
            "%2\r\n$7\r\nmatches\r\n*1\r\n*2\r\n*2\r\n:0\r\n:1\r\n*2\r\n:0\r\n:1\r\n$3\r\nlen\r\n:2\r\n",
        ),
    ]);
}

#[test]
fn values_are_bytes() {
    let mut lab = Lab::new();
    let client = lab.client;
    let value: Vec<u8> = (0..=255).collect();
    lab.send(client, &[b"SET", b"\0\r\n\xff", &value]);
    assert_eq!(lab.send(client, &[b"STRLEN", b"\0\r\n\xff"]), ":256\r\n");
    let got = lab.send(client, &[b"GETRANGE", b"\0\r\n\xff", b"65", b"67"]);
    assert_eq!(got, "$3\r\nABC\r\n");
}

#[test]
fn max_keys_refuses_new_keys_only() {
    let mut lab = Lab::new();
    lab.configure("max-keys", "2");
    lab.check(&[
        ("MSET a 1 b 2", "+OK\r\n"),
        ("SET a 3", "+OK\r\n"),
        ("SET c 1", TOO_MANY),
        ("SET c 1 XX", "$-1\r\n"),
        ("SETNX c 1", TOO_MANY),
        ("SETNX a 1", ":0\r\n"),
        ("SETEX c 10 1", TOO_MANY),
        ("GETSET c 1", TOO_MANY),
        ("APPEND c 1", TOO_MANY),
        ("SETRANGE c 0 1", TOO_MANY),
        ("INCR c", TOO_MANY),
        ("INCRBYFLOAT c 1", TOO_MANY),
        ("INCR a", ":4\r\n"),
        ("APPEND a 1", ":2\r\n"),
        ("EXISTS c", ":0\r\n"),
        ("DEL a", ":1\r\n"),
        ("SET c 1", "+OK\r\n"),
    ]);
}

#[test]
fn mset_over_a_limit_stores_nothing() {
    let mut lab = Lab::new();
    lab.configure("max-keys", "2");
    lab.configure("max-value-size", "10");
    lab.check(&[
        ("MSET a 1 b 2 c 3", TOO_MANY),
        ("MSETNX a 1 b 2 c 3", TOO_MANY),
        ("MSET a 1 b 12345678901", TOO_BIG),
        ("MSETNX a 1 b 12345678901", TOO_BIG),
        ("DBSIZE", ":0\r\n"),
        ("MSET a 1 a 2 b 3 b 4", "+OK\r\n"),
        ("MSET a 5 c 6", TOO_MANY),
        ("GET a", "$1\r\n2\r\n"),
    ]);
}

#[test]
fn max_value_size_bounds_every_way_to_grow() {
    let mut lab = Lab::new();
    lab.configure("max-value-size", "10");
    lab.check(&[
        ("SET a 12345678901", TOO_BIG),
        ("SET a hello-world", TOO_BIG),
        ("GETSET a hello-world", TOO_BIG),
        ("APPEND a hello-world", TOO_BIG),
        ("SETRANGE a 10 x", TOO_BIG),
        ("SETEX a 10 hello-world", TOO_BIG),
        ("EXISTS a", ":0\r\n"),
        ("SET a 9999999999", "+OK\r\n"),
        ("APPEND a x", TOO_BIG),
        ("SETRANGE a 10 x", TOO_BIG),
        ("INCR a", TOO_BIG),
        ("INCRBYFLOAT a 1", TOO_BIG),
        ("GET a", "$10\r\n9999999999\r\n"),
        ("SETRANGE a 9 x", ":10\r\n"),
        ("DECR a", "-ERR value is not an integer or out of range\r\n"),
    ]);
}

#[test]
fn strings_end_at_proto_max_bulk_len() {
    let mut lab = Lab::new();
    lab.configure("proto-max-bulk-len", "1mb");
    lab.check(&[
        ("SETRANGE a 1048576 x", TOO_LONG),
        ("EXISTS a", ":0\r\n"),
        ("SETRANGE a 1048575 x", ":1048576\r\n"),
        ("APPEND a x", TOO_LONG),
        ("SETRANGE a 1048576 x", TOO_LONG),
        ("SETRANGE a 1048576 \"\"", ":1048576\r\n"),
        ("STRLEN a", ":1048576\r\n"),
    ]);
}

#[test]
fn lcs_refuses_tables_over_proto_max_bulk_len() {
    let refusal =
        "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n";
    let mut lab = Lab::new();
    lab.configure("proto-max-bulk-len", "1mb");
    // 512 times 512 cells of four bytes are exactly the limit.
    lab.run("SETRANGE a 510 x");
    lab.run("SETRANGE b 511 x");
    lab.check(&[
        ("LCS a a LEN", ":511\r\n"),
        ("LCS a b LEN", refusal),
        ("LCS a b", refusal),
        ("LCS a b IDX", refusal),
    ]);
}

#[test]
fn appending_to_a_long_string_wastes_little_memory() {
    let mut lab = Lab::new();
    lab.run("SETRANGE a 4999999 x");
    lab.run("APPEND a x");
    let held = lab.store.keyspace.memory_bytes();
    assert!(held < 6_200_000, "{held} bytes for a string of 5,000,001");
    for _ in 0..1000 {
        lab.run("APPEND a x");
    }
    assert_eq!(lab.store.keyspace.memory_bytes(), held);
}

#[test]
fn counting_in_place_takes_no_memory() {
    let mut lab = Lab::new();
    lab.run("SET a 9");
    let held = lab.store.keyspace.memory_bytes();
    for _ in 0..1000 {
        lab.run("INCR a");
    }
    assert_eq!(lab.run("GET a"), "$4\r\n1009\r\n");
    assert_eq!(lab.store.keyspace.memory_bytes(), held);
}

#[test]
fn an_expired_key_counts_as_absent_to_every_write() {
    let mut lab = Lab::new();
    lab.store.keyspace.expiry.active = false;
    lab.run("SET a 5 PX 10");
    lab.run("SET b 5 PX 10");
    lab.run("SET c 5 PX 10");
    lab.run("SET d 5 PX 10");
    lab.advance_ms(10);
    lab.check_events(&[
        ("SETNX a 1", &["expired a", "new a", "set a"]),
        ("INCR b", &["expired b", "new b", "incrby b"]),
        ("APPEND c x", &["expired c", "new c", "append c"]),
        ("SET d x XX", &["expired d"]),
    ]);
    lab.check(&[
        ("MGET b c", "*2\r\n$1\r\n1\r\n$1\r\nx\r\n"),
        ("TTL b", ":-1\r\n"),
    ]);
}

#[test]
fn overwritten_values_are_counted() {
    let mut lab = Lab::new();
    lab.run("SET a short");
    let short = lab.store.keyspace.memory_bytes();
    lab.run("SET a other");
    assert_eq!(lab.store.keyspace.memory_bytes(), short);
    lab.run("SET a a-value-that-is-much-longer-than-it-was");
    let long = lab.store.keyspace.memory_bytes();
    assert!(long > short);
    lab.run("SET a a-value-that-is-just-as-long-as-it-was-");
    assert_eq!(lab.store.keyspace.memory_bytes(), long);
    lab.run("SET a short EX 100");
    lab.run("SET a other");
    assert_eq!(lab.store.keyspace.memory_bytes(), short);
    assert_eq!(lab.store.keyspace.next_deadline(), None);
}
