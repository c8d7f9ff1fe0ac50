use crate::engine::session::PackedName;
use crate::engine::store::Flow;
use crate::testing::Lab;
use kumi_resp::{Batch, Limits, encode};

/// Sends lines as one packet of the first client; returns what came back.
fn send(lab: &mut Lab, lines: &[&str]) -> String {
    let mut buffer = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        encode::array(&mut buffer, words.len());
        for word in words {
            encode::bulk(&mut buffer, word.as_bytes());
        }
    }
    let (client, mut at) = (lab.client, 0);
    while at < buffer.len() {
        let mut batch = Batch::default();
        let mut end = at;
        while let Some(next) = batch.decode(&buffer, end, &Limits::default(), usize::MAX) {
            let args = batch.args(&buffer, batch.len() - 1);
            end = next;
            if !lab.store.plan(client, args) {
                break;
            }
        }
        let (executed, flow) = lab.execute_batch(client, &batch, &buffer);
        at = batch.end(executed - 1);
        if flow != Flow::Done {
            break;
        }
    }
    lab.received(client)
}

#[test]
fn a_run_answers_what_single_requests_answer() {
    let mut lab = Lab::new();
    let lines = [
        "SET a 1",
        "INCR a",
        "GET a",
        "get",
        "NOPE",
        "MSET b 2 c 3",
        "MGET a b c d",
        "DEL a",
        "EXISTS a",
        "SELECT 1",
        "GET b",
        "SET b other",
        "SELECT 0",
        "GET b",
    ];
    let mut single = Lab::new();
    let expected: String = lines.iter().map(|line| single.run(line)).collect();
    assert_eq!(send(&mut lab, &lines), expected);
}

#[test]
fn what_a_command_changes_holds_for_the_next_of_its_run() {
    let mut lab = Lab::new();
    let answer = send(&mut lab, &["MULTI", "SET a 1", "GET a", "EXEC", "GET a"]);
    let expected = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n$1\r\n1\r\n";
    assert_eq!(answer, expected);
    let answer = send(
        &mut lab,
        &["CLIENT REPLY OFF", "SET a 2", "CLIENT REPLY ON", "GET a"],
    );
    assert_eq!(answer, "+OK\r\n$1\r\n2\r\n");
    let answer = send(&mut lab, &["HELLO 3", "GET missing"]);
    assert!(answer.ends_with("_\r\n"), "{answer}");
}

/// Sends lines in one packet to a store with one key, and compares all replies.
#[track_caller]
fn check_replies(lines: &[&str], expected: &[&str]) {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    lab.run("ACL SETUSER reader on nopass ~* +get +auth");
    assert_eq!(send(&mut lab, lines), expected.concat(), "{lines:?}");
}

const OK: &str = "+OK\r\n";
const ONE: &str = "$1\r\n1\r\n";

#[test]
fn a_state_that_refuses_commands_holds_for_the_next_of_its_run() {
    check_replies(
        &["GET a", "SUBSCRIBE c", "GET a", "UNSUBSCRIBE c", "GET a"],
        &[
            ONE,
            "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
            "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n",
            "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n",
            ONE,
        ],
    );
    let denied = "-NOPERM User reader has no permissions to run the 'set' command\r\n";
    check_replies(
        &["SET a 1", "AUTH reader x", "SET a 2", "GET a"],
        &[OK, OK, denied, ONE],
    );
    let denied = "-NOPERM User default has no permissions to run the 'set' command\r\n";
    check_replies(
        &["SET a 1", "ACL SETUSER default -set", "SET a 2", "GET a"],
        &[OK, OK, denied, ONE],
    );
    let short = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    check_replies(
        &[
            "CONFIG SET maxmemory 1",
            "SET a 2",
            "GET a",
            "CONFIG SET maxmemory 0",
            "SET a 3",
        ],
        &[OK, short, ONE, OK, OK],
    );
    check_replies(
        &["GET a", "CLIENT PAUSE 1000 WRITE", "GET a", "SET a 2"],
        &[ONE, OK, ONE],
    );
    check_replies(
        &[
            "CLIENT REPLY SKIP",
            "GET a",
            "GET a",
            "CLIENT REPLY OFF",
            "GET a",
        ],
        &[ONE],
    );
}

#[test]
fn a_held_command_of_a_run_is_the_last_that_was_executed() {
    let mut lab = Lab::new();
    let lines = ["CLIENT PAUSE 1000 WRITE", "SET a 1", "SET a 2"];
    assert_eq!(send(&mut lab, &lines), OK);
    lab.advance_ms(1000);
    assert_eq!(lab.received(lab.client), OK);
    lab.check(&[("GET a", ONE)]);
}

#[test]
fn a_monitor_may_not_go_on_with_its_run() {
    let mut lab = Lab::new();
    let answer = send(&mut lab, &["MONITOR", "GET a"]);
    let refused = "-ERR Replica can't interact with the keyspace\r\n";
    assert!(
        answer.starts_with(OK) && answer.contains(refused),
        "{answer}"
    );
}

#[test]
fn monitors_see_every_command_of_a_run() {
    let mut lab = Lab::new();
    let monitor = lab.connect();
    send(&mut lab, &["SET a 1"]);
    lab.run_as(monitor, "MONITOR");
    send(&mut lab, &["SET a 2", "GET a"]);
    let shown = lab.received(monitor);
    let shown: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split_once("] "))
        .map(|(_, words)| words)
        .collect();
    assert_eq!(shown, [r#""SET" "a" "2""#, r#""GET" "a""#]);
}

#[test]
fn keys_are_tracked_from_the_next_command_of_a_run_on() {
    let mut lab = Lab::new();
    let lines = [
        "GET a",
        "SET a 1",
        "HELLO 3",
        "CLIENT TRACKING ON",
        "SET a 2",
        "GET a",
        "SET a 3",
    ];
    let answer = send(&mut lab, &lines);
    let expected = "+OK\r\n+OK\r\n$1\r\n2\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
    assert!(answer.ends_with(expected), "{answer}");
}

#[test]
fn no_two_names_are_packed_alike() {
    let names = [
        "",
        "a",
        "\0",
        "\0a",
        "get",
        "GET",
        "getrang",
        "getrange",
        "getrange\0",
        "sismember",
        "aaa",
        "aaaa",
        "aaaaa",
        "aaaaaaaa",
        "aaaaaaaaa",
        "abcdefgxijklmnop",
        "abcdefghijklmnop",
    ];
    for (index, name) in names.iter().enumerate() {
        for other in &names[index + 1..] {
            assert_ne!(
                PackedName::new(name.as_bytes()),
                PackedName::new(other.as_bytes()),
                "{name:?} {other:?}"
            );
        }
        assert!(PackedName::new(name.as_bytes()).is_some(), "{name:?}");
    }
    assert_eq!(PackedName::new(b"12345678901234567"), None);
}

#[test]
fn names_that_alternate_are_told_apart() {
    check_run(&[
        "GET a",
        "get a",
        "GETRANGE a 0 0",
        "GET a",
        "GET",
        "GETDEL b",
        "SISMEMBER s m",
        "SISMEMBER s n",
        "SMISMEMBER s m",
        "CLIENT GETNAME",
        "CLIENT NO-TOUCH off",
        "CLIENT",
        "OBJECT ENCODING a",
        "OBJECT REFCOUNT a",
    ]);
}

#[test]
fn a_run_of_a_killed_session_executes_nothing() {
    let mut lab = Lab::new();
    let killer = lab.connect();
    let id = lab.run("CLIENT ID");
    let id = id.trim_matches([':', '\r', '\n']);
    assert_eq!(
        lab.run_as(killer, &format!("CLIENT KILL ID {id}")),
        ":1\r\n"
    );
    // Its socket was readable in the turn of the loop that killed it.
    assert_eq!(send(&mut lab, &["SET a 1", "SET b 1"]), "");
    assert_eq!(lab.run_as(killer, "EXISTS a b"), ":0\r\n");
}

#[test]
fn a_run_ends_where_its_session_closes() {
    let mut lab = Lab::new();
    assert_eq!(
        send(&mut lab, &["SET a 1", "QUIT", "SET a 2"]),
        "+OK\r\n+OK\r\n"
    );
    let mut other = Lab::new();
    std::mem::swap(&mut other.store, &mut lab.store);
    let second = other
        .store
        .connect(crate::engine::session::Peer::default(), other.host.now);
    assert_eq!(other.run_as(second, "GET a"), "$1\r\n1\r\n");
}

#[test]
fn a_command_that_changes_decoding_ends_the_plan() {
    let mut lab = Lab::new();
    let plan = |lab: &mut Lab, line: &str| {
        let args = kumi_resp::OwnedArgs::from_slices(line.split(' '));
        let client = lab.client;
        lab.store.plan(client, args.as_args())
    };
    assert!(plan(&mut lab, "GET a"));
    assert!(plan(&mut lab, "CLIENT ID"));
    for line in [
        "AUTH x",
        "HELLO 3",
        "RESET",
        "CONFIG SET proto-max-bulk-len 1mb",
    ] {
        assert!(!plan(&mut lab, line), "{line}");
    }
}

/// Sends lines in one packet to a store with a few keys; the replies are those of the same lines sent one at a time.
#[track_caller]
fn check_run(lines: &[&str]) {
    let [mut lab, mut single] = [(); 2].map(|()| {
        let mut lab = Lab::new();
        for line in [
            "MSET a 1 b 2",
            "HSET h f 1",
            "SADD s m",
            "ZADD z 1 m",
            "XADD x 1-1 f v",
            "RPUSH l 1 2",
        ] {
            lab.run(line);
        }
        lab
    });
    let expected: String = lines.iter().map(|line| single.run(line)).collect();
    assert_eq!(send(&mut lab, lines), expected, "{lines:?}");
}

/// Reads of all keys, which are planned before the first command of their run is executed.
const READS: [&str; 8] = [
    "GET a",
    "GET b",
    "HGET h f",
    "SISMEMBER s m",
    "ZSCORE z m",
    "XLEN x",
    "LLEN l",
    "EXISTS a b h s z x l",
];

#[test]
fn keys_that_a_run_deletes_or_moves_are_not_found_by_their_hints() {
    for changes in [
        &["FLUSHALL"][..],
        &["FLUSHDB"],
        &["SWAPDB 0 1"],
        &["SWAPDB 0 1", "SELECT 1"],
        &["RENAME a b"],
        &["RENAME h a", "RENAME s h", "RENAME z s", "RENAME x z"],
        &["MOVE a 1", "MOVE h 1", "MOVE x 1"],
        &["EXPIRE a 0", "EXPIRE h 0", "EXPIRE z 0", "EXPIRE x 0"],
        &["DEL a h s z x l"],
        &["DEL h z", "ZADD h 2 f", "HSET z m 3"],
        &["FLUSHALL", "MSET a 5 b 6", "HSET h f 7", "XADD x 2-1 f v"],
    ] {
        check_run(&[changes, &READS[..]].concat());
        check_run(&[&READS[..], changes, &READS[..]].concat());
    }
}

#[test]
fn a_blocking_command_takes_what_its_run_has_pushed() {
    check_run(&["LPUSH new 1", "BLPOP new 0", "LLEN new", "PING"]);
    check_run(&["BLPOP l 0", "BRPOP l 0", "EXISTS l"]);
    check_run(&["ZADD new 1 m", "BZPOPMIN new 0", "EXISTS new"]);
}

#[test]
fn a_slow_command_of_a_run_is_the_one_in_the_slow_log() {
    let lines = ["GET a", "GET b", "GET c", "GET d", "GET e", "GET f"];
    for (slow, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let mut lab = Lab::new();
        lab.host.passing_ns = (0..lines.len())
            .map(|index| if index == slow { 20_000_000 } else { 0 })
            .collect();
        send(&mut lab, &lines);
        assert!(
            lab.host.passing_ns.is_empty(),
            "{name}: all share a reading"
        );
        let log = lab.run("SLOWLOG GET");
        let entry = format!(":20000\r\n*2\r\n$3\r\nGET\r\n$1\r\n{name}\r\n");
        assert!(log.starts_with("*1\r\n") && log.contains(&entry), "{log}");
        let stats = lab.run("INFO commandstats");
        let expected = "cmdstat_get:calls=6,usec=20000,";
        assert!(stats.contains(expected), "{name}: {stats}");
    }
}
