//! Programs that misbehave and people who leave: what a backend does when its command hangs, talks nonsense or leaves
//! things behind, and what is printed when something cannot be.

use crate::support::{Server, ended};
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;

#[test]
fn a_line_that_answers_nothing_becomes_an_error() {
    for server in Server::each() {
        let script = r#"read -r line; echo '{"id":1}'
            read -r line; echo '{"id":2,"payload_base64":"?"}'
            cat >/dev/null"#;
        let mut backend = server.serve(&["p.*", "--pipe", script, "--concurrency", "1"]);
        server.fails(&["call", "web", "p.q"], 4, "neither payload nor error");
        server.fails(&["call", "web", "p.q"], 4, "not Base64");
        assert_eq!(backend.stop(Signal::TERM), Some(0), "nothing is open");
    }
}

#[test]
fn a_handler_that_does_not_end_is_answered_for() {
    for server in Server::each() {
        let limit = ["--handler-timeout", "300ms"];
        let exec = ["a.*", "--exec", "sleep 1000; true", "--concurrency", "1"];
        let mut hanging = server.serve(&[&exec[..], &limit].concat());
        let pipe = ["b.*", "--pipe", "cat >/dev/null", "--concurrency", "1"];
        let mut silent = server.serve(&[&pipe[..], &limit].concat());
        for method in ["a.b", "b.c"] {
            // Twice, because the first must not hold the only place.
            server.fails(&["call", "web", method], 4, "did not end within 300ms");
            server.fails(&["call", "web", method], 4, "did not end within 300ms");
        }
        assert_eq!(hanging.stop(Signal::TERM), Some(0));
        assert_eq!(silent.stop(Signal::TERM), Some(0));
    }
}

#[test]
fn what_a_command_leaves_in_the_background_holds_nothing_up() {
    let server = Server::redis();
    let command = "sleep 1000 & echo $!";
    let mut backend = server.serve(&["bg.*", "--exec", command, "--concurrency", "1"]);
    for _ in 0..2 {
        let pid = server.printed(&["call", "web", "bg.go", "--timeout", "20s"]);
        // It runs on, as it would for a shell.
        end_process(pid.trim());
    }
    assert_eq!(backend.stop(Signal::TERM), Some(0));
    let script =
        r#"read -r line; echo '{"id":1,"payload":"last words"}'; sleep 1000 & echo $! >&2"#;
    let mut backend = server.serve(&["p.*", "--pipe", script]);
    let answer = server.printed(&["call", "web", "p.q", "--timeout", "20s"]);
    assert_eq!(answer, "last words");
    assert_eq!(backend.ended(), Some(1), "the program has ended");
    end_process(&backend.next());
}

#[test]
fn a_backend_that_is_stopped_at_once_takes_its_commands_with_it() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    // The shell waits for a child of its own, which no signal to the shell alone would end.
    let command = format!("sleep 1000 & {tell} SET pid $! >/dev/null; wait");
    let mut backend = server.serve(&["a.*", "--exec", &command]);
    let call = server.start(&["call", "web", "a.b"]);
    let pid = server.until(&["GET", "pid"], |pid| !pid.is_empty());
    // Two of one kind could arrive as one.
    backend.signal(Signal::INT);
    assert_eq!(backend.stop(Signal::TERM), Some(1));
    ended(&pid);
    drop(call);
}

#[test]
fn no_more_of_a_payload_is_read_than_fits() {
    let server = Server::redis();
    for words in [
        ["call", "web", "a.b", "@/dev/zero"],
        ["keep", "web", "a", "@/dev/zero"],
    ] {
        server.fails(&words, 2, "1048576 bytes");
    }
    let endless = std::fs::File::open("/dev/zero").expect("a device");
    let output = server
        .command(&["call", "web", "a.b", "-"])
        .stdin(endless)
        .output()
        .expect("kumi is built");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_url_that_is_none_is_a_mistake_of_the_caller() {
    let server = Server::redis();
    for url in [
        "nonsense",
        "http://localhost",
        "redis://",
        "redis://h:port",
        "rediss://h/#insecure",
    ] {
        let output = server.run(&["call", "web", "a.b", "--url", url]);
        assert_eq!(output.status.code(), Some(2), "{url}: {output:?}");
    }
}

#[test]
fn why_a_server_cannot_be_reached_is_said_once() {
    let server = Server::redis();
    let url = "unix:///no/such/socket";
    let output = server.run(&["units", "--url", url]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn a_closed_port_is_named_at_once() {
    // A privileged port that no program listens on.
    let port = 1;
    let url = format!("redis://ann:sesame@127.0.0.1:{port}");
    let server = Server::redis();
    let started = std::time::Instant::now();
    for words in [
        &["units"][..],
        &["call", "web", "a.b"],
        &["keep", "web", "x", "--get"],
    ] {
        let output = server.run(&[words, &["--url", &url]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{said}");
        assert!(
            said.contains(&format!("redis://127.0.0.1:{port}")),
            "{said}"
        );
        assert!(said.contains("refused") && said.contains("--url"), "{said}");
        assert!(!said.contains("sesame"), "{said}");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn a_unit_that_stopped_is_not_listed() {
    for server in Server::each() {
        let mut backend = server.serve(&["a.*", "--exec", "cat", "--unit", "back"]);
        assert!(server.printed(&["units"]).contains("back"));
        assert_eq!(backend.stop(Signal::TERM), Some(0));
        // Nothing is deleted: the key was given a millisecond.
        let left_ms = server.cli(&["PTTL", "MUF/back/KEEP/_info"]);
        let left_ms: i64 = left_ms.parse().expect("a number");
        assert!(left_ms <= 1, "{left_ms}");
        server.until(&["EXISTS", "MUF/back/KEEP/_info"], |there| there == "0");
        assert_eq!(server.printed(&["units"]), "");
    }
}

#[test]
fn a_backend_whose_terminal_is_closed_leaves_in_order() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    let command = format!(
        "{tell} SET pid $$ >/dev/null; until {tell} GET go | grep -q yes; do sleep 0.05; done; echo done"
    );
    let words = ["a.*", "--exec", &command, "--unit", "back"];
    let mut backend = server.serve_on_hangup(&words);
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| server.printed(&["call", "web", "a.b"]));
        server.until(&["EXISTS", "pid"], |there| there == "1");
        backend.signal(Signal::HUP);
        server.until(&["EXISTS", "MUF/back/KEEP/_info"], |there| there == "0");
        // The shell on that terminal may say so too, and that is no second signal.
        backend.signal(Signal::HUP);
        server.cli(&["SET", "go", "yes"]);
        call.join().expect("the call does not fail")
    });
    assert_eq!(answer, "done\n");
    assert_eq!(backend.ended(), Some(0));
    ended(&server.cli(&["GET", "pid"]));
}

#[test]
fn a_backend_says_when_its_server_is_away_and_back() {
    let mut server = Server::redis();
    let mut backend = server.serve(&["a.*", "--exec", "cat"]);
    let url = server.url();
    server.kill();
    backend.until(&format!("{url} is away; requests wait until it is back"));
    let said = backend.until("cannot connect to ");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
    server.start_redis_again();
    backend.until(&format!("{url} is back after "));
    assert_eq!(server.printed(&["call", "web", "a.b", "hello"]), "hello");
    assert_eq!(backend.stop(Signal::TERM), Some(0));
}

#[test]
fn a_server_that_answers_is_not_called_unreachable() {
    let server = Server::redis();
    server.cli(&["CONFIG", "SET", "requirepass", "secret"]);
    let other = format!("{}?pass=secret&db=99", server.url());
    server.fails(&["units", "--url", &other], 7, "has no database 99");
    for query in ["", "?pass=wrong"] {
        let url = format!("{}{query}", server.url());
        let words = ["units", "--url", &url];
        server.fails(&words, 7, "refused the connection");
        server.fails(&words, 7, "redis://user:password@host:port/db");
    }
}

#[test]
fn an_empty_kumi_url_is_none() {
    let server = Server::redis();
    let output = server
        .command(&["units"])
        .env("KUMI_URL", "")
        .output()
        .expect("kumi is built");
    // Whether somebody serves the default address here is not known, but an empty URL would be a mistake.
    assert_ne!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_watch_ends_when_its_reader_leaves() {
    for words in [&["watch"][..], &["keep", "--watch", "*/*"]] {
        let server = Server::redis();
        let mut watch = server
            .command(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let mut output = watch.stdout.take().expect("it is piped");
        let mut first = [0];
        std::io::Read::read_exact(&mut output, &mut first).expect("a line");
        drop(output);
        // Nothing happens on the server, so there is no next line.
        assert!(watch.wait().expect("it is our child").success());
    }
}

#[test]
fn all_backends_answer_when_all_are_called() {
    for server in Server::each() {
        let _one = server.serve(&["who.*", "--exec", "echo one", "--unit", "one"]);
        let _two = server.serve(&["who.*", "--exec", "echo no >&2; exit 1", "--unit", "two"]);
        let lines = server.printed(&["call", "web", "who.is", "--all", "--count", "2"]);
        let mut lines: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        lines.sort_by_key(|line| line["backend"].to_string());
        assert_eq!(
            lines,
            [
                json!({"backend": "one", "payload": "one\n"}),
                json!({"backend": "two", "error": "no\n"}),
            ]
        );
        server.fails(
            &["call", "web", "no.body", "--all", "--timeout", "200ms"],
            5,
            "no backend answered",
        );
    }
}

#[test]
fn a_call_without_its_caller_is_offered_the_right_words() {
    let server = Server::redis();
    let _backend = server.serve(&["text.*", "--exec", "tr a-z A-Z", "--unit", "upper"]);
    let fix =
        "the caller's name comes first, before the method; try: kumi muf call me text.upper hello";
    server.fails(&["call", "text.upper", "hello"], 2, fix);
    let fix = "try: kumi muf call me text.upper 'it'\\''s' 'two words'";
    server.fails(&["call", "text.upper", "it's", "two words"], 2, fix);
    // The second word could be a method, and nobody serves it.
    let call = ["call", "text.upper", "notes.txt", "--ttl", "4s"];
    let fix = "text.upper is served: the caller's name comes first; try: kumi muf call me text.upper notes.txt";
    server.fails(&call, 5, fix);
    assert_eq!(
        server.printed(&["call", "me", "text.upper", "hello"]),
        "HELLO"
    );
}

#[test]
fn keys_outside_the_grammar_are_shown_as_ignored_and_told_once_for_each_unit() {
    for server in Server::each() {
        let watch = server.watch(&["watch"]);
        watch.until("watching");
        let lines = server.watch(&["watch", "--output", "text"]);
        lines.until("watching");
        let backend = server.serve(&["*", "--exec", "cat", "--unit", "back"]);
        let keys = [
            ("MUF/web/REQ/a.b~1.5", "the ID is neither"),
            ("MUF/web/REQ/a b", "the ID is neither"),
            (
                "MUF/my web/REQ/a",
                "the unit's name cannot be used: ' ' is not allowed",
            ),
            ("MUF/other/REQ/a/b", "exactly four levels"),
        ];
        for (key, reason) in keys {
            server.cli(&["SET", key, "x", "EX", "10"]);
            let line = watch.json();
            assert_eq!(
                (&line["kind"], &line["key"]),
                (&json!("ignored"), &json!(key))
            );
            let said = line["reason"].as_str().expect("a reason");
            assert!(said.contains(reason), "{said}");
            let line = lines.next();
            assert!(
                line.contains("! ignored") && line.contains(reason),
                "{line}"
            );
        }
        // The second one of web is not told.
        for (key, reason) in [keys[0], keys[2], keys[3]] {
            let line = backend.next();
            assert!(line.contains(key) && line.contains(reason), "{line}");
        }
        assert_eq!(server.printed(&["call", "web", "a.b", "fine"]), "fine");
    }
}

#[test]
fn a_request_that_is_set_again_is_one_line_and_measured_from_the_first() {
    let server = Server::redis();
    let watch = server.watch(&["watch"]);
    watch.until("watching");
    // No backend claims it, so its requester sets it again after a second.
    server.fails(&["call", "web", "no.body", "x", "--ttl", "3s"], 5, "");
    assert_eq!(watch.json()["kind"], "request");
    let end = watch.json();
    assert_eq!(end["kind"], "unanswered", "{end}");
    let after_ms = end["after_ms"].as_f64().expect("a number");
    assert!(after_ms >= 2_900.0, "{end}");
    // What a person types may be used again after its answer.
    let _backend = server.serve(&["*", "--exec", "cat"]);
    for _ in 0..2 {
        server.cli(&["SET", "MUF/me/REQ/hello", "x", "EX", "10"]);
        assert_eq!(watch.json()["kind"], "request");
        assert_eq!(watch.json()["kind"], "claim");
        assert_eq!(watch.json()["kind"], "answer");
    }
}

fn end_process(pid: &str) {
    let pid: i32 = pid
        .parse()
        .unwrap_or_else(|_| panic!("{pid:?} is no number"));
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("it runs and is ours");
}
