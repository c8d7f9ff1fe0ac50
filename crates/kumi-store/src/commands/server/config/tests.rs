use crate::config::NotifyFlags;
use crate::engine::session::Peer;
use crate::testing::Lab;

#[test]
fn get_answers_each_match_of_several_patterns_once() {
    let mut lab = Lab::new();
    lab.check(&[
            (
                "CONFIG GET hz MAXMEMORY maxm*samples hz",
                "*6\r\n$2\r\nhz\r\n$2\r\n10\r\n$9\r\nMAXMEMORY\r\n$1\r\n0\r\n$17\r\nmaxmemory-samples\r\n$1\r\n5\r\n",
            ),
            ("CONFIG GET nothing", "*0\r\n"),
            (
                "CONFIG GET",
                "-ERR wrong number of arguments for 'config|get' command\r\n",
            ),
        ]);
    lab.run("HELLO 3");
    lab.check(&[("CONFIG GET hz", "%1\r\n$2\r\nhz\r\n$2\r\n10\r\n")]);
}

#[test]
fn set_changes_all_or_nothing() {
    let mut lab = Lab::new();
    lab.check(&[
            ("CONFIG SET hz 20 maxmemory 1kb", "+OK\r\n"),
            (
                "CONFIG GET hz maxmemory",
                "*4\r\n$2\r\nhz\r\n$2\r\n20\r\n$9\r\nmaxmemory\r\n$4\r\n1024\r\n",
            ),
            (
                "CONFIG SET hz 30 maxmemory x",
                "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value\r\n",
            ),
            (
                "CONFIG SET hz 30 nope 1",
                "-ERR Unknown option or number of arguments for CONFIG SET - 'nope'\r\n",
            ),
            ("CONFIG SET hz 30 maxmemory", "-ERR syntax error\r\n"),
            (
                "CONFIG SET databases 3",
                "-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config\r\n",
            ),
            ("CONFIG GET hz", "*2\r\n$2\r\nhz\r\n$2\r\n20\r\n"),
        ]);
    let words: [&[u8]; 4] = [b"CONFIG", b"SET", b"no\xff", b"1"];
    assert_eq!(
        lab.send_raw(lab.client, &words),
        b"-ERR Unknown option or number of arguments for CONFIG SET - 'no\xff'\r\n"
    );
}

#[test]
fn what_the_host_cannot_apply_is_taken_back() {
    let mut lab = Lab::new();
    lab.host.refuses = Some("port");
    lab.check(&[
        (
            "CONFIG SET hz 30 port 7000",
            "-ERR CONFIG SET failed (possibly related to argument 'port') - the lab refuses\r\n",
        ),
        (
            "CONFIG GET hz port",
            "*4\r\n$2\r\nhz\r\n$2\r\n10\r\n$4\r\nport\r\n$4\r\n6379\r\n",
        ),
    ]);
}

#[test]
fn a_change_acts_at_once() {
    let mut lab = Lab::new();
    lab.check(&[
        ("CONFIG SET notify-keyspace-events KEA", "+OK\r\n"),
        ("CONFIG SET max-keys 1", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
    ]);
    assert!(lab.run("SET b 1").starts_with("-OOM"));
    assert_ne!(lab.store.keyspace.notices.flags, NotifyFlags::NONE);
}

#[test]
fn protected_directives_follow_the_peer() {
    let mut lab = Lab::new();
    lab.configure("enable-protected-configs", "local");
    assert!(lab.run("CONFIG SET dir /tmp").starts_with("-ERR CONFIG"));
    let now = lab.host.now;
    for (addr, unix) in [("127.0.0.1:4000", false), ("[::1]:4000", false), ("", true)] {
        let peer = Peer {
            addr: addr.into(),
            unix,
            ..Peer::default()
        };
        let local = lab.store.connect(peer, now);
        assert_eq!(lab.run_as(local, "CONFIG SET dir /tmp"), "+OK\r\n");
    }
}

#[test]
fn resetstat_forgets_what_was_counted() {
    let mut lab = Lab::new();
    lab.check(&[
        ("GET a", "$-1\r\n"),
        (
            "NOPE",
            "-ERR unknown command 'NOPE', with args beginning with: \r\n",
        ),
    ]);
    assert!(lab.run("INFO stats").contains("keyspace_misses:1\r\n"));
    lab.check(&[("CONFIG RESETSTAT", "+OK\r\n")]);
    let info = lab.run("INFO everything");
    for line in [
        "keyspace_misses:0",
        "total_error_replies:0",
        "total_commands_processed:1",
        "cmdstat_config|resetstat:calls=1",
    ] {
        assert!(info.contains(line), "{line} in {info}");
    }
    assert!(!info.contains("cmdstat_get"), "{info}");
    assert!(!info.contains("errorstat_"), "{info}");
}

#[test]
fn rewrite_says_what_the_host_says() {
    Lab::new().check(&[(
        "CONFIG REWRITE",
        "-ERR The server is running without a config file\r\n",
    )]);
}
