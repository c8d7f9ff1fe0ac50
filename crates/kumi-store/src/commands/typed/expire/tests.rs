//! What the commands of expiry answer, as a real server was seen to answer, and what happens as time passes.

mod model;
mod passing;

use crate::testing::Lab;

#[test]
fn deadlines_are_set_and_read() {
    Lab::new().check(&[
        ("SET a v", "+OK\r\n"),
        ("TTL a", ":-1\r\n"),
        ("PTTL a", ":-1\r\n"),
        ("EXPIRETIME a", ":-1\r\n"),
        ("PEXPIRETIME a", ":-1\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("TTL a", ":100\r\n"),
        ("PEXPIRE a 200000", ":1\r\n"),
        ("TTL a", ":200\r\n"),
        ("EXPIREAT a 9223372036854775", ":1\r\n"),
        ("PEXPIRETIME a", ":9223372036854775000\r\n"),
        ("PEXPIREAT a 9223372036854775807", ":1\r\n"),
        ("PEXPIRETIME a", ":9223372036854775807\r\n"),
        ("EXPIRETIME a", ":9223372036854776\r\n"),
        ("PERSIST a", ":1\r\n"),
        ("PERSIST a", ":0\r\n"),
        ("TTL a", ":-1\r\n"),
        ("EXPIRE none 100", ":0\r\n"),
        ("PERSIST none", ":0\r\n"),
        ("TTL none", ":-2\r\n"),
        ("PTTL none", ":-2\r\n"),
        ("EXPIRETIME none", ":-2\r\n"),
        ("PEXPIRETIME none", ":-2\r\n"),
    ]);
}

#[test]
fn deadlines_change_only_under_their_conditions() {
    Lab::new().check(&[
        ("SET a v", "+OK\r\n"),
        ("EXPIRE a 100 XX", ":0\r\n"),
        ("EXPIRE a 100 GT", ":0\r\n"),
        ("EXPIRE a 100 XX GT", ":0\r\n"),
        ("EXPIRE a 100 XX LT", ":0\r\n"),
        ("EXPIRE a 100 nx", ":1\r\n"),
        ("EXPIRE a 200 NX", ":0\r\n"),
        ("EXPIRE a 50 GT", ":0\r\n"),
        ("EXPIRE a 200 GT", ":1\r\n"),
        ("EXPIRE a 300 LT", ":0\r\n"),
        ("EXPIRE a 100 LT", ":1\r\n"),
        ("EXPIRE a 300 XX", ":1\r\n"),
        ("EXPIRE a 400 XX GT", ":1\r\n"),
        ("EXPIRE a 500 LT XX", ":0\r\n"),
        ("TTL a", ":400\r\n"),
        ("PERSIST a", ":1\r\n"),
        ("EXPIRE a 100 LT", ":1\r\n"),
        ("TTL a", ":100\r\n"),
    ]);
}

#[test]
fn deadlines_out_of_range_are_refused() {
    Lab::new().check(&[
        ("SET a v EX 100", "+OK\r\n"),
        (
            "EXPIRE a x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "EXPIRE a 1.5",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "EXPIRE a 9223372036854775807",
            "-ERR invalid expire time in 'expire' command\r\n",
        ),
        (
            "EXPIRE a 9223372036854775",
            "-ERR invalid expire time in 'expire' command\r\n",
        ),
        (
            "EXPIRE a -9223372036854775808",
            "-ERR invalid expire time in 'expire' command\r\n",
        ),
        (
            "PEXPIRE a 9223372036854775807",
            "-ERR invalid expire time in 'pexpire' command\r\n",
        ),
        (
            "EXPIREAT a 9223372036854776",
            "-ERR invalid expire time in 'expireat' command\r\n",
        ),
        (
            "PEXPIREAT a 9223372036854775808",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "EXPIRE none x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "EXPIRE none 9223372036854775807",
            "-ERR invalid expire time in 'expire' command\r\n",
        ),
        (
            "EXPIRE a 100 NX XX",
            "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
        ),
        (
            "EXPIRE a 100 NX GT",
            "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
        ),
        (
            "EXPIRE a 100 LT NX",
            "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
        ),
        (
            "EXPIRE a 100 GT LT",
            "-ERR GT and LT options at the same time are not compatible\r\n",
        ),
        ("EXPIRE a 100 FOO", "-ERR Unsupported option FOO\r\n"),
        ("EXPIRE a x FOO", "-ERR Unsupported option FOO\r\n"),
        (
            "EXPIRE a",
            "-ERR wrong number of arguments for 'expire' command\r\n",
        ),
        ("TTL a", ":100\r\n"),
    ]);
}

#[test]
fn deadlines_in_the_past_delete() {
    Lab::new().check(&[
        ("MSET a 1 b 2 c 3 d 4 e 5", "+OK\r\n"),
        ("EXPIRE a 0", ":1\r\n"),
        ("PEXPIRE b -1", ":1\r\n"),
        ("EXPIREAT c 1", ":1\r\n"),
        ("PEXPIREAT d -9223372036854775808", ":1\r\n"),
        ("EXPIRE e 0 XX", ":0\r\n"),
        ("EXPIRE e 0 GT", ":0\r\n"),
        ("EXPIRE e 0 LT", ":1\r\n"),
        ("EXISTS a b c d e", ":0\r\n"),
        ("EXPIRE e 0", ":0\r\n"),
    ]);
}

#[test]
fn seconds_are_rounded_to_the_nearest() {
    let mut lab = Lab::new();
    lab.run("SET a v");
    for (ms, shown) in [
        (499, 0),
        (500, 1),
        (1000, 1),
        (1499, 1),
        (1500, 2),
        (99_999, 100),
    ] {
        lab.run(&format!("PEXPIRE a {ms}"));
        assert_eq!(lab.run("TTL a"), format!(":{shown}\r\n"), "of {ms} ms");
        assert_eq!(lab.run("PTTL a"), format!(":{ms}\r\n"));
    }
    lab.check(&[
        ("PEXPIREAT a 1700000100499", ":1\r\n"),
        ("EXPIRETIME a", ":1700000100\r\n"),
        ("PEXPIREAT a 1700000100500", ":1\r\n"),
        ("EXPIRETIME a", ":1700000101\r\n"),
        ("PEXPIRETIME a", ":1700000100500\r\n"),
    ]);
}

#[test]
fn expire_tells_what_it_did() {
    Lab::new().check_events(&[
        ("MSET a 1 b 2", &["new a", "set a", "new b", "set b"]),
        ("EXPIRE a 100", &["expire a"]),
        ("EXPIRE a 100 NX", &[]),
        ("PEXPIREAT a 1700000200000", &["expire a"]),
        ("PERSIST a", &["persist a"]),
        ("PERSIST a", &[]),
        ("EXPIRE a 0 XX", &[]),
        ("EXPIRE a 0", &["del a"]),
        ("EXPIRE a 10", &[]),
        ("EXPIREAT b 1700000000", &["del b"]),
        ("TTL none", &["keymiss none"]),
        ("PEXPIRETIME none", &["keymiss none"]),
    ]);
}

#[test]
fn records_of_expiry_carry_absolute_times() {
    let mut lab = Lab::new();
    lab.check_writes(&[
        ("MSET a 1 b 2", &["MSET a 1 b 2"]),
        ("EXPIRE a 100", &["PEXPIREAT a 1700000100000"]),
        ("PEXPIRE a 100 LT", &["PEXPIREAT a 1700000000100 LT"]),
        ("EXPIREAT a 1700000300", &["PEXPIREAT a 1700000300000"]),
        ("EXPIRE a 5 GT", &[]),
        ("PERSIST a", &["PERSIST a"]),
        ("PERSIST a", &[]),
        ("EXPIRE a 0", &["DEL a"]),
        ("PEXPIREAT b 1700000400000", &["PEXPIREAT b 1700000400000"]),
        ("TTL b", &[]),
    ]);
}

#[test]
fn expire_counts_its_changes() {
    let mut lab = Lab::new();
    lab.run("SET a v");
    let changes = [
        ("EXPIRE a 100", 1),
        ("EXPIRE a 100 NX", 0),
        ("EXPIRE none 100", 0),
        ("PERSIST a", 1),
        ("PERSIST a", 0),
        ("EXPIRE a 0", 1),
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
