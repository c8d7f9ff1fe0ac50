//! `max-keys` and `max-value-size`: a command that is refused has changed nothing.

use crate::testing::Lab;

const DATA: &[&str] = &[
    "SADD set member-1 member-2 member-3",
    "SADD one member-1",
    "RPUSH list element-1 element-2",
    "ZADD zset 1 member-1 2 member-2",
    "GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
    "SET string some-longer-text",
    "SET target old",
    "SET number 9999999999",
    "PFADD hll a b",
];

/// Commands that create the key `new`, or a key of database 1.
const CREATING: &[&str] = &[
    "SMOVE set new member-1",
    "LMOVE list new LEFT LEFT",
    "RPOPLPUSH list new",
    "BLMOVE list new LEFT LEFT 0",
    "BRPOPLPUSH list new 0",
    "COPY list new",
    "COPY list list DB 1",
    "SORT list ALPHA STORE new",
    "SINTERSTORE new set one",
    "SUNIONSTORE new set one",
    "SDIFFSTORE new set one",
    "ZUNIONSTORE new 1 zset",
    "ZINTERSTORE new 1 zset",
    "ZDIFFSTORE new 1 zset",
    "ZRANGESTORE new zset 0 -1",
    "GEOSEARCHSTORE new geo FROMLONLAT 15 37 BYRADIUS 200 km",
    "GEORADIUS geo 15 37 200 km STORE new",
    "GEORADIUSBYMEMBER geo Palermo 200 km STOREDIST new",
    "PFMERGE new hll",
    "PFADD new a",
    "BITOP NOT new string",
    "SETBIT new 7 1",
    "BITFIELD new SET u8 0 1",
    "SETRANGE new 0 x",
    "APPEND new x",
    "INCR new",
    "INCRBYFLOAT new 1",
    "SET new x",
    "SET new x GET",
    "SETNX new x",
    "SETEX new 100 x",
    "GETSET new x",
    "MSET string changed new x",
    "MSETNX new x other y",
    "HSET new f v",
    "HSETNX new f v",
    "HINCRBY new f 1",
    "HINCRBYFLOAT new f 1",
    "SADD new member",
    "LPUSH new element",
    "ZADD new 1 member",
    "ZADD new INCR 1 member",
    "ZINCRBY new 1 member",
    "GEOADD new 13 38 member",
    "XADD new 1-1 f v",
    "XGROUP CREATE new g 0 MKSTREAM",
    "EVAL return(redis.call('RESTORE','new',0,redis.call('DUMP','list'))) 0",
];

/// Commands that store a value of more than ten bytes.
const ENLARGING: &[&str] = &[
    "SORT list ALPHA STORE target",
    "SINTERSTORE target set set",
    "SUNIONSTORE target set one",
    "SDIFFSTORE target set one",
    "ZUNIONSTORE target 1 zset",
    "ZINTERSTORE target 1 zset",
    "ZDIFFSTORE target 1 zset",
    "ZRANGESTORE target zset 0 -1",
    "GEOSEARCHSTORE target geo FROMLONLAT 15 37 BYRADIUS 200 km",
    "GEORADIUS geo 15 37 200 km STORE target",
    "GEORADIUSBYMEMBER geo Palermo 200 km STOREDIST target",
    "PFMERGE new hll",
    "PFADD new a",
    "BITOP NOT target string",
    "BITOP OR target number string",
    "SETBIT target 80 1",
    "BITFIELD target SET u8 80 1",
    "SETRANGE target 10 x",
    "APPEND target more-text",
    "INCR number",
    "INCRBYFLOAT number 1",
    "SET target some-longer-text",
    "SET target some-longer-text GET",
    "SETEX target 100 some-longer-text",
    "GETSET target some-longer-text",
    "MSET number 1 target some-longer-text",
    "MSETNX new x other some-longer-text",
    "EVAL return(redis.call('RESTORE','new',0,redis.call('DUMP','list'))) 0",
    "EVAL return(redis.call('RESTORE','target',0,redis.call('DUMP','list'),'REPLACE')) 0",
    "EVAL return(redis.call('RESTORE','target',0,redis.call('DUMP','set'),'REPLACE')) 0",
    "EVAL return(redis.call('RESTORE','target',0,redis.call('DUMP','string'),'REPLACE')) 0",
];

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.allow_debug();
    for line in DATA {
        let reply = lab.run(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    lab
}

/// Allows so many keys more than there are, or fewer if it is negative.
fn allow_more_keys(lab: &mut Lab, more: isize) {
    let keys = lab.store.keyspace.total_keys();
    let allowed = keys.checked_add_signed(more).expect("there are some");
    lab.configure("max-keys", &allowed.to_string());
}

#[track_caller]
fn check_refused(lab: &mut Lab, line: &str, why: &str) {
    let before = lab.run("DEBUG DIGEST");
    let reply = lab.run(line);
    assert!(
        reply.starts_with('-') && reply.contains(why),
        "{line}: {reply}"
    );
    assert_eq!(lab.run("DEBUG DIGEST"), before, "after {line}");
}

#[test]
fn a_key_too_many_changes_nothing() {
    let mut lab = lab();
    for more in [0, -1] {
        allow_more_keys(&mut lab, more);
        for line in CREATING {
            check_refused(&mut lab, line, "max-keys limit of");
        }
    }
    // All of them are commands that do create a key.
    for line in CREATING {
        let mut lab = self::lab();
        let before = lab.store.keyspace.total_keys();
        let reply = lab.run(line);
        assert!(lab.store.keyspace.total_keys() > before, "{line}: {reply}");
    }
}

#[test]
fn a_value_too_large_changes_nothing() {
    let mut lab = lab();
    lab.configure("max-value-size", "10");
    for line in ENLARGING {
        check_refused(&mut lab, line, "exceeds max-value-size of 10 bytes");
    }
    for line in ENLARGING {
        let mut lab = self::lab();
        let reply = lab.run(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
}

#[test]
fn keys_are_moved_and_replaced_at_the_limit() {
    let restore =
        "EVAL return(redis.call('RESTORE','target',0,redis.call('DUMP','list'),'REPLACE')) 0";
    let mut lab = lab();
    allow_more_keys(&mut lab, 0);
    lab.check(&[
        ("SMOVE one new member-1", ":1\r\n"),
        ("EXISTS one", ":0\r\n"),
        ("SMOVE set new member-2", ":1\r\n"),
        ("RENAME new renamed", "+OK\r\n"),
        ("RENAMENX renamed one", ":1\r\n"),
        ("MOVE zset 1", ":1\r\n"),
    ]);
    // Keys that are there already are not counted again.
    lab.configure("max-keys", "1");
    check_refused(&mut lab, "SMOVE set new member-1", "max-keys limit of 1");
    lab.check(&[
        ("SMOVE set one member-1", ":1\r\n"),
        ("SUNIONSTORE target one", ":2\r\n"),
        ("COPY list target REPLACE", ":1\r\n"),
        ("SET target old", "+OK\r\n"),
        (restore, "+OK\r\n"),
        ("LLEN target", ":2\r\n"),
        ("RENAME target new", "+OK\r\n"),
    ]);
}

#[test]
fn the_last_member_of_a_set_is_not_lost_above_the_limit() {
    let mut lab = lab();
    lab.configure("max-keys", "1");
    check_refused(&mut lab, "SMOVE one new member-1", "max-keys limit of 1");
}

#[test]
fn what_a_waiter_is_refused_stays() {
    let mut lab = Lab::new();
    lab.configure("max-keys", "1");
    let client = lab.connect();
    assert_eq!(lab.run_as(client, "BLMOVE l m LEFT LEFT 0"), "");
    lab.check(&[("RPUSH l 1", ":1\r\n")]);
    let reply = lab.received(client);
    assert!(reply.contains("max-keys limit of 1"), "{reply}");
    lab.check(&[("LRANGE l 0 -1", "*1\r\n$1\r\n1\r\n")]);
}

#[test]
fn a_reload_keeps_what_is_over_the_limits() {
    let mut lab = lab();
    let before = lab.run("DEBUG DIGEST");
    lab.configure("max-keys", "1");
    lab.configure("max-value-size", "1");
    lab.check(&[("DEBUG RELOAD", "+OK\r\n")]);
    assert_eq!(lab.run("DEBUG DIGEST"), before);
}
