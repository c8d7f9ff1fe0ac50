use crate::testing::Lab;

#[test]
fn slow_commands_are_logged_newest_first() {
    let mut lab = Lab::new();
    lab.check(&[
            ("SLOWLOG GET", "*0\r\n"),
            ("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n"),
            ("CLIENT SETNAME me", "+OK\r\n"),
            ("PING", "+PONG\r\n"),
            (
                "SLOWLOG GET 2",
                "*2\r\n*6\r\n:2\r\n:1700000000\r\n:0\r\n*1\r\n$4\r\nPING\r\n$0\r\n\r\n$2\r\nme\r\n\
                 *6\r\n:1\r\n:1700000000\r\n:0\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n$0\r\n\r\n$2\r\nme\r\n",
            ),
            ("SLOWLOG LEN", ":4\r\n"),
            ("CONFIG SET slowlog-max-len 2", "+OK\r\n"),
            ("SLOWLOG LEN", ":2\r\n"),
            ("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n"),
            ("SLOWLOG RESET", "+OK\r\n"),
            ("SLOWLOG LEN", ":0\r\n"),
        ]);
}

#[test]
fn only_commands_above_the_threshold_are_logged() {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab.check(&[
        ("CONFIG SET slowlog-log-slower-than 50000", "+OK\r\n"),
        ("DEBUG SLEEP 0.049", "+OK\r\n"),
        ("SLOWLOG LEN", ":0\r\n"),
        ("DEBUG SLEEP 0.05", "+OK\r\n"),
        ("SLOWLOG LEN", ":1\r\n"),
    ]);
    assert!(lab.run("SLOWLOG GET").contains(":50000\r\n"));
}

#[test]
fn reset_is_queued_and_kept_from_subscribers_although_it_is_named_like_another_command() {
    let mut lab = Lab::new();
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("SLOWLOG RESET", "+QUEUED\r\n"),
        ("LATENCY RESET", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n:0\r\n"),
    ]);
    lab.run("SUBSCRIBE a");
    let refused = lab.run("SLOWLOG RESET");
    assert!(
        refused.starts_with("-ERR Can't execute 'slowlog|reset'"),
        "{refused}"
    );
}

#[test]
fn wrong_counts_are_refused() {
    let refused = "-ERR count should be greater than or equal to -1\r\n";
    Lab::new().check(&[
        ("SLOWLOG GET -1", "*0\r\n"),
        ("SLOWLOG GET -2", refused),
        ("SLOWLOG GET x", refused),
        (
            "SLOWLOG GET 1 2",
            "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n",
        ),
        (
            "SLOWLOG LEN x",
            "-ERR wrong number of arguments for 'slowlog|len' command\r\n",
        ),
        (
            "SLOWLOG",
            "-ERR wrong number of arguments for 'slowlog' command\r\n",
        ),
    ]);
}

#[test]
fn long_requests_are_clipped() {
    let mut lab = Lab::new();
    lab.run("CONFIG SET slowlog-log-slower-than 0");
    let long = "x".repeat(130);
    lab.run(&format!("WATCH {long} {}", "k ".repeat(40)));
    let shown = lab.run("SLOWLOG GET 1");
    assert!(shown.contains("... (2 more bytes)"), "{shown}");
    assert!(shown.contains("... (11 more arguments)"), "{shown}");
}
