//! Debian's `redis-cli` and `redis-benchmark` against a node, in the ways people use them.

use crate::node::{Node, output};
use rustix::process::Signal;
use std::fmt::Write;
use std::process::Command;

#[test]
fn a_first_session_reads_as_with_redis() {
    Node::start(&[]).check(&[
        ("PING", "PONG"),
        ("SET greeting hello", "OK"),
        ("GET greeting", "\"hello\""),
        ("GET nothing", "(nil)"),
        ("INCR visits", "(integer) 1"),
        ("INCRBY visits 41", "(integer) 42"),
        (
            "INCR greeting",
            "(error) ERR value is not an integer or out of range",
        ),
        ("EXPIRE greeting 100", "(integer) 1"),
        ("TTL greeting", "(integer) 100"),
        ("PERSIST greeting", "(integer) 1"),
        ("TTL greeting", "(integer) -1"),
        ("TTL nothing", "(integer) -2"),
        ("MSET a 1 b 2", "OK"),
        ("MGET a b c", "1) \"1\"\n2) \"2\"\n3) (nil)"),
        ("DEL a b c", "(integer) 2"),
        ("DBSIZE", "(integer) 2"),
        ("TYPE greeting", "string"),
        ("RPUSH list a b", "(integer) 2"),
        ("LRANGE list 0 -1", "1) \"a\"\n2) \"b\""),
        ("HSET hash field value", "(integer) 1"),
        ("ZADD sorted 1 one", "(integer) 1"),
        ("TYPE sorted", "zset"),
        (
            "NOSUCH list a",
            "(error) ERR unknown command 'NOSUCH', with args beginning with: 'list' 'a'",
        ),
        (
            "GET",
            "(error) ERR wrong number of arguments for 'get' command",
        ),
    ]);
}

#[test]
fn a_key_with_a_ttl_is_gone_when_its_time_has_come() {
    let node = Node::start(&["--set", "notify-keyspace-events=Ex"]);
    let listening = node.listen(&["PSUBSCRIBE", "__keyevent@0__:*"]);
    listening.until("(integer) 1");
    node.check(&[("SET short lived PX 50", "OK")]);
    assert_eq!(listening.until("pmessage"), "1) \"pmessage\"");
    listening.until("__keyevent@0__:expired");
    assert_eq!(listening.next(), "4) \"short\"");
    node.check(&[("GET short", "(nil)"), ("DBSIZE", "(integer) 0")]);
}

#[test]
fn a_transaction_comes_through_standard_input() {
    let node = Node::start(&[]);
    let printed = node.script("MULTI\nSET a 1\nINCR a\nINCR b\nEXEC\nGET a\n");
    assert_eq!(
        printed,
        "OK\nQUEUED\nQUEUED\nQUEUED\n1) OK\n2) (integer) 2\n3) (integer) 1\n\"2\"\n"
    );
    let printed = node.script("MULTI\nNOSUCH\nEXEC\nWATCH a\nMULTI\nDISCARD\nEXEC\n");
    assert!(printed.contains("(error) EXECABORT"), "{printed}");
    assert!(
        printed.ends_with("OK\nOK\nOK\n(error) ERR EXEC without MULTI\n"),
        "{printed:?}"
    );
}

#[test]
fn mass_insertion_through_a_pipe_loses_nothing() {
    const KEYS: usize = 100_000;
    let node = Node::start(&[]);
    let mut commands = String::new();
    for index in 0..KEYS {
        let key = format!("key:{index:06}");
        write!(
            commands,
            "*3\r\n$3\r\nSET\r\n$10\r\n{key}\r\n$5\r\nvalue\r\n"
        )
        .expect("writing to a String");
    }
    let printed = output(node.redis_cli().arg("--pipe"), commands.as_bytes());
    assert!(
        printed.contains(&format!("errors: 0, replies: {KEYS}")),
        "{printed}"
    );
    node.check(&[
        ("DBSIZE", &format!("(integer) {KEYS}")),
        ("GET key:099999", "\"value\""),
    ]);
}

#[test]
fn a_scan_finds_every_key_of_its_pattern() {
    let node = Node::start(&[]);
    let keys = |prefix: &str| {
        (0..500)
            .map(|index| format!("{prefix}:{index:03}"))
            .collect::<Vec<_>>()
    };
    let (users, others) = (keys("user"), keys("other"));
    let sets: String = users
        .iter()
        .chain(&others)
        .map(|key| format!("SET {key} x\n"))
        .collect();
    node.script(&sets);
    let printed = output(
        node.redis_cli().args(["--scan", "--pattern", "user:*"]),
        b"",
    );
    let mut found: Vec<&str> = printed.lines().collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, users);
}

#[test]
fn big_keys_are_found() {
    let node = Node::start(&[]);
    let value = "x".repeat(10_000);
    node.script(&format!("SET small x\nSET large {value}\n"));
    let printed = output(node.redis_cli().arg("--bigkeys"), b"");
    assert!(
        printed.contains("Biggest string found") && printed.contains("has 10000 bytes"),
        "{printed}"
    );
    let printed = output(node.redis_cli().arg("--memkeys"), b"");
    assert!(
        printed.contains("Biggest string found '\"large\"'"),
        "{printed}"
    );
}

#[test]
fn monitor_shows_what_others_do() {
    let node = Node::start(&[]);
    let monitor = node.listen(&["MONITOR"]);
    monitor.until("OK");
    node.check(&[("SET a hello", "OK")]);
    // The node sends commands of its own, CLIENT SETINFO among them.
    let line = monitor.until(r#""SET" "a""#);
    assert!(line.ends_with(r#""SET" "a" "hello""#), "{line}");
    assert!(line.contains("[0 unix:"), "{line}");
}

#[test]
fn a_subscriber_hears_what_another_publishes() {
    let node = Node::start(&[]);
    let subscriber = node.listen(&["SUBSCRIBE", "news", "weather"]);
    subscriber.until("(integer) 2");
    node.check(&[
        ("PUBLISH news rain", "(integer) 1"),
        ("PUBLISH sports rain", "(integer) 0"),
        ("PUBSUB NUMSUB news", "1) \"news\"\n2) (integer) 1"),
    ]);
    assert_eq!(subscriber.next(), "1) \"message\"");
    assert_eq!(subscriber.next(), "2) \"news\"");
    assert_eq!(subscriber.next(), "3) \"rain\"");
}

#[test]
fn resp3_replies_have_their_own_shapes() {
    let node = Node::start(&[]);
    let resp3 = |line: &str| {
        let words = line.split_whitespace();
        output(node.redis_cli().args(["-3", "--no-raw"]).args(words), b"")
    };
    assert_eq!(resp3("CONFIG GET maxmemory"), "1# \"maxmemory\" => \"0\"\n");
    assert_eq!(resp3("GET nothing"), "(nil)\n");
    let hello = resp3("HELLO 3");
    assert!(hello.contains("\"proto\" => (integer) 3"), "{hello}");
    assert!(hello.contains("\"server\" => \"redis\""), "{hello}");
}

#[test]
fn databases_are_separate_and_a_binary_value_survives() {
    let node = Node::start(&[]);
    let value: Vec<u8> = (0..=255).collect();
    let printed = output(
        node.redis_cli().args(["-n", "3", "-x", "SET", "blob"]),
        &value,
    );
    assert_eq!(printed, "OK\n");
    node.check(&[
        ("EXISTS blob", "(integer) 0"),
        ("-n 3 STRLEN blob", "(integer) 256"),
    ]);
    let expected = r#"\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\x0b\x0c\r\x0e\x0f\x10"#;
    assert!(node.cli("-n 3 GET blob").contains(expected));
}

#[test]
fn a_password_keeps_strangers_out() {
    let node = Node::start(&["--set", "requirepass=secret"]);
    let (with, without) = ("--no-auth-warning -a secret GET a", "GET a");
    node.check(&[
        (without, "(error) NOAUTH Authentication required."),
        (with, "(nil)"),
        (
            "AUTH wrong",
            "(error) WRONGPASS invalid username-password pair or user is disabled.",
        ),
    ]);
}

#[test]
fn a_benchmark_runs_through() {
    let node = Node::start(&[]);
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.arg("-s").arg(node.socket());
    benchmark.args([
        "-q",
        "-n",
        "20000",
        "-P",
        "16",
        "-t",
        "ping,set,get,incr,mset",
    ]);
    let printed = output(&mut benchmark, b"");
    for name in [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "MSET (10 keys)",
    ] {
        let line = printed.split(['\r', '\n']).find(|line| {
            line.starts_with(&format!("{name}: ")) && line.contains("requests per second")
        });
        assert!(line.is_some(), "nothing on {name} in {printed}");
    }
}

#[test]
fn a_rewritten_configuration_is_what_the_next_node_starts_with() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("node.conf");
    std::fs::write(&file, "# mine\ntimeout 5\n").expect("a writable directory");
    let file = file.to_str().expect("a plain path");
    // The directory is part of the configuration, so it outlives the first node.
    let data = home.path().join("data");
    let options = [
        "--redis-conf",
        file,
        "--dir",
        data.to_str().expect("a plain path"),
    ];
    let node = Node::start(&options);
    node.check(&[
        ("CONFIG SET timeout 77 maxmemory 100mb", "OK"),
        ("CONFIG REWRITE", "OK"),
    ]);
    assert!(node.stop(Signal::TERM).success());
    let text = std::fs::read_to_string(file).expect("still there");
    assert!(text.starts_with("# mine\ntimeout 77\n"), "{text}");
    Node::start(&options).check(&[
        ("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"104857600\""),
        ("CONFIG GET timeout", "1) \"timeout\"\n2) \"77\""),
    ]);
}

#[test]
fn what_is_in_flight_is_answered_before_the_end() {
    let node = Node::start(&[]);
    let mut commands = String::from("MULTI\n");
    for _ in 0..1000 {
        commands.push_str("INCR counter\n");
    }
    commands.push_str("EXEC\nSHUTDOWN NOSAVE\n");
    let printed = node.script(&commands);
    assert!(printed.contains("1000) (integer) 1000"), "{printed}");
    assert!(node.ended().success());
}
