use crate::engine::session::Peer;
use crate::testing::Lab;
use std::time::Duration;

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab
}

#[test]
fn debug_is_off_unless_configured() {
    let mut lab = Lab::new();
    let refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.\r\n";
    lab.check(&[("DEBUG SLEEP 0", refused), ("DEBUG HELP", refused)]);
    lab.configure("enable-debug-command", "local");
    lab.check(&[("DEBUG SLEEP 0", refused)]);
    let peer = Peer {
        unix: true,
        ..Peer::default()
    };
    let now = lab.host.now;
    let local = lab.store.connect(peer, now);
    assert_eq!(lab.run_as(local, "DEBUG SLEEP 0"), "+OK\r\n");
}

#[test]
fn sleep_stops_the_host() {
    let mut lab = lab();
    lab.check(&[("DEBUG SLEEP 1.5", "+OK\r\n"), ("debug sleep x", "+OK\r\n")]);
    assert_eq!(lab.host.slept, Duration::from_millis(1500));
}

#[test]
fn active_expiry_can_be_turned_off() {
    let mut lab = lab();
    lab.check(&[("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n")]);
    assert!(!lab.store.keyspace.expiry.active);
    lab.check(&[("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n")]);
    assert!(lab.store.keyspace.expiry.active);
}

#[test]
fn object_describes_the_value() {
    let mut lab = lab();
    lab.run("SET number 300");
    lab.run("SET word bar");
    lab.run(&format!("SET text {}", "x".repeat(100)));
    lab.advance_ms(7_000);
    for (key, expected) in [
        ("number", "refcount:1 encoding:int serializedlength:3 lru:"),
        ("word", "refcount:1 encoding:embstr serializedlength:4 lru:"),
        ("text", "refcount:1 encoding:raw serializedlength:13 lru:"),
    ] {
        let line = lab.run(&format!("DEBUG OBJECT {key}"));
        assert!(line.starts_with("+Value at:0x"), "{line}");
        assert!(line.contains(expected), "{line}");
        assert!(line.ends_with("lru_seconds_idle:7\r\n"), "{line}");
    }
    lab.check(&[("DEBUG OBJECT nothing", "-ERR no such key\r\n")]);
}

#[test]
fn object_finds_a_key_that_has_expired_and_is_still_there() {
    let mut lab = lab();
    lab.check(&[
        ("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n"),
        ("SET key value PX 100", "+OK\r\n"),
    ]);
    lab.advance_ms(200);
    for _ in 0..2 {
        let line = lab.run("DEBUG OBJECT key");
        assert!(line.contains("encoding:embstr"), "{line}");
    }
    // Any other look removes it.
    lab.check(&[
        ("EXISTS key", ":0\r\n"),
        ("DEBUG OBJECT key", "-ERR no such key\r\n"),
    ]);
}

#[test]
fn a_panic_is_answered_and_leaves_the_connection_usable() {
    lab().check(&[
        ("DEBUG PANIC", "-ERR internal error\r\n"),
        ("PING", "+PONG\r\n"),
        ("DEBUG PANIC NOW", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn a_panic_inside_a_change_is_not_caught() {
    let mut lab = lab();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        lab.run("DEBUG PANIC IN-CHANGE")
    }));
    assert!(outcome.is_err());
}

#[test]
fn a_change_that_ended_leaves_no_mark() {
    let mut lab = lab();
    let lines = [
        "SET a 1",
        "INCR a",
        "APPEND a 2",
        "EXPIRE a 100",
        "PERSIST a",
        "RENAME a b",
        "COPY b c",
        "DEL b",
        "HSET h f v",
        "HINCRBY h f 1",
        "HDEL h f",
        "SADD s 1 2",
        "SREM s 1",
        "FLUSHALL",
    ];
    for line in lines {
        lab.run(line);
        assert!(!lab.store.keyspace.changing, "after {line}");
    }
}

#[test]
fn busy_serves_no_other_client_before_the_threshold() {
    let mut lab = lab();
    lab.configure("busy-reply-threshold", "60");
    lab.check(&[("DEBUG BUSY 0.05", "+OK\r\n")]);
    assert_eq!(lab.host.slept, Duration::from_millis(50));
    lab.check(&[("DEBUG BUSY 0.1", "+OK\r\n")]);
    assert_eq!(lab.host.slept, Duration::from_millis(110));
}

#[test]
fn others_are_told_busy_meanwhile() {
    let mut lab = lab();
    lab.configure("busy-reply-threshold", "0");
    let other = lab.connect();
    lab.host.meanwhile = vec![(other, "PING"), (other, "SHUTDOWN ABORT")];
    lab.check(&[("DEBUG BUSY 0.1", "+OK\r\n")]);
    assert_eq!(
        lab.received(other),
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n-ERR No shutdown in progress.\r\n"
    );
    assert_eq!(lab.host.now.mono_ns, 100_000_000);
    assert_eq!(lab.run_as(other, "PING"), "+PONG\r\n");
}

#[test]
fn a_paused_cron_neither_expires_nor_samples() {
    let mut lab = lab();
    lab.check(&[
        ("DEBUG PAUSE-CRON 1", "+OK\r\n"),
        ("SET k v PX 10", "+OK\r\n"),
    ]);
    lab.advance_ms(500);
    assert_eq!(lab.store.keyspace.total_keys(), 1);
    let ahead_ms = lab.store.next_deadline() - lab.host.now.unix_ms();
    assert!((1..=100).contains(&ahead_ms), "{ahead_ms} ms");
    lab.check(&[("DEBUG PAUSE-CRON 0", "+OK\r\n")]);
    lab.advance_ms(1);
    assert_eq!(lab.store.keyspace.total_keys(), 0);
}

#[test]
fn populate_creates_the_keys_that_are_missing() {
    let positive = "-ERR value is out of range, must be positive\r\n";
    lab().check(&[
        ("SET key:1 kept", "+OK\r\n"),
        ("DEBUG POPULATE 3", "+OK\r\n"),
        ("MGET key:0 key:1 key:2", "*3\r\n$7\r\nvalue:0\r\n$4\r\nkept\r\n$7\r\nvalue:2\r\n"),
        ("DEBUG POPULATE 2 p 3", "+OK\r\n"),
        ("GET p:1", "$3\r\nval\r\n"),
        ("DEBUG POPULATE 1 q 9", "+OK\r\n"),
        ("GET q:0", "$9\r\nvalue:0\0\0\r\n"),
        ("DBSIZE", ":6\r\n"),
        ("DEBUG POPULATE x", positive),
        ("DEBUG POPULATE -1", positive),
        ("DEBUG POPULATE 1 a b", positive),
        (
            "DEBUG POPULATE 1 a 1000000000000",
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
        ),
        ("DEBUG POPULATE", "-ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.\r\n"),
    ]);
}

#[test]
fn output_buffers_show_the_sizes_redis_gives_them() {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab.check(&[("DEBUG REPLYBUFFER PEAK-RESET-TIME 100", "+OK\r\n")]);
    let rbs = |lab: &mut Lab| {
        let line = lab.run("CLIENT INFO");
        let at = line.find(" rbs=").expect("a field") + 5;
        let size: String = line[at..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        size.parse::<usize>().expect("a number")
    };
    assert_eq!(rbs(&mut lab), 16_384);
    for _ in 0..5 {
        lab.advance_ms(200);
    }
    assert!((1024..2048).contains(&rbs(&mut lab)));
    lab.check(&[("DEBUG REPLYBUFFER PEAK-RESET-TIME NEVER", "+OK\r\n")]);
    for _ in 0..5 {
        let value = "x".repeat(20_000);
        assert!(lab.run(&format!("ECHO {value}")).len() > 20_000);
        lab.advance_ms(200);
    }
    assert_eq!(rbs(&mut lab), 16_384);
    lab.check(&[("DEBUG REPLYBUFFER RESIZING 0", "+OK\r\n")]);
    assert!(
        lab.run("DEBUG REPLYBUFFER PEAK-RESET-TIME soon")
            .starts_with("-ERR")
    );
    assert!(lab.run("DEBUG REPLYBUFFER NOPE 1").starts_with("-ERR"));
}

#[test]
fn protocol_shows_every_reply_type() {
    let cases = [
        ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
        ("integer", ":12345\r\n", ":12345\r\n"),
        ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
        ("null", "$-1\r\n", "_\r\n"),
        (
            "array",
            "*3\r\n:0\r\n:1\r\n:2\r\n",
            "*3\r\n:0\r\n:1\r\n:2\r\n",
        ),
        (
            "SET",
            "*3\r\n:0\r\n:1\r\n:2\r\n",
            "~3\r\n:0\r\n:1\r\n:2\r\n",
        ),
        (
            "map",
            "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
            "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
        ),
        (
            "attrib",
            "$39\r\nSome real reply following the attribute\r\n",
            "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n",
        ),
        (
            "push",
            "-ERR RESP2 is not supported by this command\r\n",
            ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
        ),
        (
            "verbatim",
            "$25\r\nThis is a verbatim\nstring\r\n",
            "=29\r\ntxt:This is a verbatim\nstring\r\n",
        ),
        ("true", ":1\r\n", "#t\r\n"),
        ("false", ":0\r\n", "#f\r\n"),
        (
            "bignum",
            "$37\r\n1234567999999999999999999999999999999\r\n",
            "(1234567999999999999999999999999999999\r\n",
        ),
    ];
    let mut lab = lab();
    for (name, resp2, _) in cases {
        assert_eq!(lab.run(&format!("DEBUG PROTOCOL {name}")), resp2, "{name}");
    }
    lab.run("HELLO 3");
    for (name, _, resp3) in cases {
        assert_eq!(lab.run(&format!("DEBUG PROTOCOL {name}")), resp3, "{name}");
    }
    lab.check(&[(
        "DEBUG PROTOCOL nope",
        "-ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false\r\n",
    )]);
}

#[test]
fn error_and_log_answer() {
    lab().check(&[
        ("DEBUG ERROR OOPS", "-OOPS\r\n"),
        ("DEBUG LOG hello", "+OK\r\n"),
        ("DEBUG CLIENT-ENFORCE-REPLY-LIST 1", "+OK\r\n"),
        ("DEBUG DICT-RESIZING 0", "+OK\r\n"),
        (
            "DEBUG CONFIG-REWRITE-FORCE-ALL",
            "-ERR The server is running without a config file\r\n",
        ),
    ]);
}

#[test]
fn the_sleep_before_the_aof_is_written_is_set_and_taken_back() {
    let mut lab = lab();
    assert_eq!(lab.store.flush_sleep(), None);
    lab.check(&[("DEBUG AOF-FLUSH-SLEEP 500", "+OK\r\n")]);
    let time = Duration::from_micros(500);
    assert_eq!(lab.store.flush_sleep(), Some(time));
    lab.check(&[("DEBUG AOF-FLUSH-SLEEP 0", "+OK\r\n")]);
    assert_eq!(lab.store.flush_sleep(), None);
}

#[test]
fn what_does_not_exist_is_refused_clearly() {
    let mut lab = lab();
    for name in ["JMAP", "ASSERT", "STRUCTSIZE"] {
        let expected = format!("-ERR DEBUG {name} does not exist in kumi\r\n");
        assert_eq!(lab.run(&format!("DEBUG {name}")), expected);
    }
    lab.check(&[
        (
            "DEBUG nope",
            "-ERR unknown subcommand or wrong number of arguments for 'nope'. Try DEBUG HELP.\r\n",
        ),
        (
            "DEBUG SLEEP",
            "-ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.\r\n",
        ),
        (
            "DEBUG",
            "-ERR wrong number of arguments for 'debug' command\r\n",
        ),
    ]);
    let lines = 1 + 2 * super::HOOKS.len();
    let help = format!("*{lines}\r\n+DEBUG <subcommand>");
    assert!(lab.run("DEBUG HELP").starts_with(&help));
}

#[test]
fn object_tells_of_the_nodes_of_a_list() {
    let mut lab = lab();
    lab.configure("list-max-listpack-size", "2");
    lab.run("RPUSH l a b c d e");
    let line = lab.run("DEBUG OBJECT l");
    let expected = " ql_nodes:3 ql_avg_node:1.67 ql_listpack_max:2 ql_compressed:0 ql_uncompressed_size:36\r\n";
    assert!(line.ends_with(expected), "{line}");
    lab.configure("list-compress-depth", "1");
    let line = lab.run("DEBUG OBJECT l");
    assert!(line.contains(" ql_compressed:1 "), "{line}");
    lab.configure("list-max-listpack-size", "-2");
    lab.check(&[
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 10b", "+OK\r\n"),
        ("RPUSH l 0123456789", ":6\r\n"),
    ]);
    let line = lab.run("DEBUG OBJECT l");
    assert!(line.contains(" ql_nodes:4 "), "{line}");
    // The list keeps the limit it was created with.
    assert!(line.contains(" ql_listpack_max:2 "), "{line}");
    lab.check(&[
        (
            "DEBUG QUICKLIST-PACKED-THRESHOLD 4gb",
            "-ERR argument must be a memory value bigger than 1 and smaller than 4gb\r\n",
        ),
        ("DEBUG QUICKLIST-PACKED-THRESHOLD 0", "+OK\r\n"),
        (
            "DEBUG QUICKLIST l",
            "+Quicklist structure printed on stdout\r\n",
        ),
        (
            "DEBUG LISTPACK l",
            "-ERR Not a listpack encoded object.\r\n",
        ),
        ("HSET h f v", ":1\r\n"),
        (
            "DEBUG LISTPACK h",
            "+Listpack structure printed on stdout\r\n",
        ),
        (
            "DEBUG QUICKLIST h",
            "-ERR Not a quicklist encoded object.\r\n",
        ),
        ("DEBUG LISTPACK nothing", "-ERR no such key\r\n"),
    ]);
}

#[test]
fn loadaof_is_not_recorded_and_does_not_load_itself() {
    let mut lab = lab();
    lab.store.listen_to_writes(true);
    lab.host.aof = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n\
        *2\r\n$5\r\nDEBUG\r\n$7\r\nLOADAOF\r\n\
        *3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n"
        .to_vec();
    for lines in [&["DEBUG LOADAOF"][..], &["MULTI", "DEBUG LOADAOF", "EXEC"]] {
        for line in lines {
            lab.run(line);
        }
        assert_eq!(lab.writes(), Vec::<String>::new(), "{lines:?}");
        lab.check(&[("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n")]);
    }
    lab.run("DEBUG SET-DISABLE-DENY-SCRIPTS 1");
    let reply = lab.send(
        lab.client,
        &[b"EVAL", b"return redis.call('debug','loadaof')", b"0"],
    );
    assert!(
        reply.starts_with("-ERR DEBUG LOADAOF is not allowed"),
        "{reply}"
    );
}
