//! Scripts that run longer than `busy-reply-threshold`.

use crate::testing::Lab;

impl Lab {
    /// Scripts count as slow from their first interruption on.
    fn make_scripts_slow(&mut self) {
        self.configure("busy-reply-threshold", "1");
        self.host.tick_ns = 1_000_000;
    }
}

#[test]
fn a_long_script_lets_others_be_answered_and_can_be_killed() {
    let mut lab = Lab::new();
    lab.make_scripts_slow();
    let other = lab.connect();
    lab.host.meanwhile = vec![(other, "GET a"), (other, "SCRIPT KILL")];
    let reply = lab.eval("while true do end", &[]);
    assert!(
        reply.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "),
        "{reply}"
    );
    let busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";
    assert_eq!(lab.received(other), format!("{busy}+OK\r\n"));
    lab.check(&[
        (
            "SCRIPT KILL",
            "-NOTBUSY No scripts in execution right now.\r\n",
        ),
        ("GET a", "$-1\r\n"),
    ]);
    // Also inside a library function, and past a pcall.
    for script in [
        "return string.find(('a'):rep(300000), ('a?'):rep(300000)..'b')",
        "while true do pcall(function() while true do end end) end",
    ] {
        lab.host.meanwhile = vec![(other, "SCRIPT KILL")];
        assert!(
            lab.eval(script, &[]).starts_with("-ERR Script killed"),
            "{script}"
        );
    }
}

#[test]
fn a_long_compilation_lets_others_be_answered_and_can_be_killed() {
    let mut lab = Lab::new();
    lab.make_scripts_slow();
    let other = lab.connect();
    let source = "local x ".to_owned() + &"x = 1 ".repeat(200_000);
    let library = format!("#!lua name=long\n{source}");
    let words: [&[&str]; 4] = [
        &["EVAL", &source, "0"],
        &["SCRIPT", "LOAD", &source],
        &["FUNCTION", "LOAD", &library],
        &["EVAL", "return loadstring(ARGV[1])", "0", &source],
    ];
    for words in words {
        let command = words[0];
        let (kill, other_kill) = match command {
            "FUNCTION" => ("FUNCTION KILL", "SCRIPT KILL"),
            _ => ("SCRIPT KILL", "FUNCTION KILL"),
        };
        lab.host.meanwhile = vec![(other, "GET a"), (other, other_kill), (other, kill)];
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let client = lab.client;
        let reply = lab.send(client, &words);
        assert!(reply.starts_with("-ERR "), "{command}: {reply}");
        assert!(
            reply.contains("Script killed by user with"),
            "{command}: {reply}"
        );
        let replies = lab.received(other);
        assert!(
            replies.starts_with("-BUSY Redis is busy running a script."),
            "{replies}"
        );
        assert!(replies.ends_with("+OK\r\n"), "{command}: {replies}");
        assert_eq!(lab.host.meanwhile.len(), 0, "{command}");
        lab.check(&[("GET a", "$-1\r\n")]);
        lab.check_eval("return 7", ":7\r\n");
    }
    // Without a kill they end by themselves.
    lab.host.meanwhile = vec![(other, "GET a")];
    let client = lab.client;
    assert_eq!(
        lab.send(client, &[b"EVAL", source.as_bytes(), b"0"]),
        "$-1\r\n"
    );
    assert!(lab.received(other).starts_with("-BUSY"));
}

#[test]
fn with_a_threshold_of_zero_no_script_is_slow() {
    let mut lab = Lab::new();
    lab.make_scripts_slow();
    lab.configure("busy-reply-threshold", "0");
    let other = lab.connect();
    lab.host.meanwhile = vec![(other, "SCRIPT KILL")];
    lab.check_eval("for i=1,1000000 do end return 1", ":1\r\n");
    assert_eq!(lab.host.meanwhile.len(), 1, "another client was served");
    assert_eq!(lab.received(other), "");
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    let mut lab = Lab::new();
    lab.make_scripts_slow();
    let other = lab.connect();
    lab.host.meanwhile = vec![(other, "SCRIPT KILL"), (other, "SHUTDOWN")];
    lab.check_eval(
        "redis.call('set','a','1') for i=1,1000000 do end return 1",
        ":1\r\n",
    );
    let replies = lab.received(other);
    assert!(replies.starts_with("-UNKILLABLE Sorry"), "{replies}");
    assert!(replies.contains("-BUSY"), "{replies}");
}

#[test]
fn an_orderly_stop_waits_for_a_script_that_has_written() {
    const WRITES: &str =
        "redis.call('set','a','1') for i=1,1000000 do end redis.call('set','b','2') return 7";
    let mut lab = Lab::new();
    lab.store.listen_to_writes(true);
    lab.make_scripts_slow();
    lab.host.stops = true;
    let reply = lab.eval("while true do end", &[]);
    assert!(reply.starts_with("-ERR the server stops"), "{reply}");
    lab.check_eval(WRITES, ":7\r\n");
    let writes = lab.writes();
    assert!(writes.iter().any(|line| line == "set b 2"), "{writes:?}");
    lab.host.failed = true;
    let reply = lab.eval(WRITES, &[]);
    assert!(reply.starts_with("-ERR the server stops"), "{reply}");
}

#[test]
fn a_script_that_shutdown_ends_leaves_nothing_in_the_log() {
    for before in ["", "SET in exec"] {
        let mut lab = Lab::new();
        lab.store.listen_to_writes(true);
        lab.make_scripts_slow();
        lab.run("SET x 1");
        let other = lab.connect();
        lab.host.meanwhile = vec![(other, "SHUTDOWN NOSAVE")];
        let script = "redis.call('select', 1) redis.call('set','a','1') redis.call('set','b','2') while true do end";
        if before.is_empty() {
            let reply = lab.eval(script, &[]);
            assert!(reply.starts_with("-ERR the server stops"), "{reply}");
        } else {
            lab.run("MULTI");
            lab.run(before);
            lab.eval(script, &[]);
            lab.run("SET behind it");
            lab.run("EXEC");
        }
        assert_eq!(lab.writes(), ["SET x 1"]);
        // Its writes are not readable.
        let stranger = lab.connect();
        for client in [lab.client, stranger] {
            let reply = lab.run_as(client, "GET a");
            assert!(reply.starts_with("-BUSY"), "{reply}");
        }
        assert!(lab.writes().is_empty());
    }
}

#[test]
fn clients_that_wait_are_served_after_a_long_script() {
    let mut lab = Lab::new();
    lab.make_scripts_slow();
    let (waiter, other) = (lab.connect(), lab.connect());
    assert_eq!(lab.run_as(waiter, "BLPOP l 0"), "");
    lab.host.meanwhile = vec![(other, "SCRIPT KILL")];
    lab.check_eval(
        "redis.call('rpush','l','a') for i=1,1000000 do end return redis.call('llen','l')",
        ":1\r\n",
    );
    assert!(lab.received(other).starts_with("-UNKILLABLE"));
    assert_eq!(lab.received(waiter), "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
}
