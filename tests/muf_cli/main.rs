//! `kumi muf` as a script meets it: through the built binary, on redis-server and on `kumi server`.

mod edges;
mod pipe;
#[path = "../support/process.rs"]
mod process;
mod reuse;
mod support;
mod terminal;
mod tls;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::Server;

/// A line-protocol backend in one `sed`: it puts the payload into angle brackets.
const BRACKETS: &str =
    r#"sed -u 's/.*"id":\([0-9]*\),.*"payload":"\([^"]*\)".*/{"id":\1,"payload":"<\2>"}/'"#;

#[test]
fn a_shell_command_answers_calls() {
    for server in Server::each() {
        let mut backend = server.serve(&["text.*", "--exec", "tr a-z A-Z", "--unit", "upper"]);
        assert_eq!(
            server.printed(&["call", "web", "text.upper", "hello"]),
            "HELLO"
        );
        let output = server.run_with(&["call", "web", "text.upper", "-"], b"from stdin\n");
        assert_eq!(output.stdout, b"FROM STDIN\n");
        assert_eq!(
            server.printed(&[
                "call",
                "web",
                "text.upper",
                "a",
                "--text",
                "--timeout",
                "20s"
            ]),
            "A\n"
        );
        assert_eq!(server.printed(&["call", "web", "text.upper"]), "");
        assert_eq!(backend.stop(Signal::INT), Some(0), "ctrl-c drains");
    }
}

#[test]
fn bytes_of_files_and_answers_are_not_touched() {
    let server = Server::redis();
    let _backend = server.serve(&["echo.*", "--exec", "cat"]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(file.path(), &bytes).expect("it is ours");
    let at = format!("@{}", file.path().display());
    let output = server.run(&["call", "web", "echo.bytes", &at]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
}

#[test]
fn the_command_knows_what_it_is_asked() {
    let server = Server::redis();
    let _backend = server.serve(&[
        "*",
        "--exec",
        r#"printf '%s|%s|%s|' "$MUF_METHOD" "$MUF_UNIT" "$MUF_ATTEMPT"; printf %s "$MUF_ID""#,
    ]);
    let answer = server.printed(&["call", "web", "a.b"]);
    assert!(answer.starts_with("a.b|web|1|a.b~"), "{answer}");
    // The catch-all also answers what a person types.
    let watch = server.watch(&["watch"]);
    watch.until("watching");
    server.cli(&["SET", "MUF/me/REQ/hello", "x", "EX", "10"]);
    watch.until(r#""kind":"answer""#);
    assert_eq!(server.cli(&["GET", "MUF/me/RES/hello"]), "|me|1|hello");
}

#[test]
fn every_way_to_fail_has_its_exit_code() {
    for mut server in Server::each() {
        let command = r#"case "$MUF_METHOD" in
            *.no) echo 'no such thing' >&2; exit 3;;
            *.quiet) exit 9;;
            *.slow) exec sleep 60;;
            *) cat;;
        esac"#;
        let mut backend = server.serve(&["a.*", "--exec", command, "--unit", "backend"]);
        server.fails(&["call", "web", "a.no"], 4, "no such thing");
        server.fails(&["call", "web", "a.quiet"], 4, "9");
        server.fails(&["call", "web", "b.c", "--ttl", "300ms"], 5, "no backend");
        server.fails(
            &["call", "web", "a.slow", "--timeout", "1500ms"],
            6,
            "backend",
        );
        server.fails(&["call", "web", "nodots"], 2, "nodots");
        server.fails(&["call", "w*b", "a.b"], 2, "");
        server.fails(
            &["call", "web", "a.b", "@/no/such/file"],
            2,
            "/no/such/file",
        );
        server.fails(&["call", "web", "a.b", "{", "--json"], 2, "not JSON");
        server.fails(&["call", "web", "a.b", "--timeout", "soon"], 2, "500ms");
        server.fails(&["serve", "a.*"], 2, "--exec");
        server.fails(&["serve", "a.*"], 2, "--pipe");
        let both = ["serve", "a.*", "--exec", "cat", "--pipe", "cat"];
        server.fails(&both, 2, "cannot be used with");
        let list = ["call", "web", "a.b", "[1, 2]", "--json"];
        assert_eq!(server.printed(&list), "[1, 2]\n");
        // The slow one is still at work. It goes with its backend at the second signal.
        backend.signal(Signal::INT);
        assert_eq!(backend.stop(Signal::TERM), Some(1));
        server.kill();
        server.fails(
            &["call", "web", "a.b", "--timeout", "1s"],
            7,
            "cannot reach unix:",
        );
    }
}

#[test]
fn the_url_of_the_command_line_wins() {
    let (here, there) = (Server::redis(), Server::redis());
    let url = there.url();
    here.printed(&["keep", "s", "t", "21", "--url", &url]);
    assert_eq!(there.cli(&["GET", "MUF/s/KEEP/t"]), "21");
    assert_eq!(here.cli(&["EXISTS", "MUF/s/KEEP/t"]), "0");
}

#[test]
fn a_program_answers_line_by_line() {
    for server in Server::each() {
        let mut backend = server.serve(&["p.*", "--pipe", BRACKETS, "--concurrency", "2"]);
        for word in ["one", "two", "three"] {
            assert_eq!(
                server.printed(&["call", "web", "p.q", word]),
                format!("<{word}>")
            );
        }
        assert_eq!(backend.stop(Signal::TERM), Some(0));
    }
}

#[test]
fn a_program_may_answer_with_errors_and_bytes_and_may_end() {
    let server = Server::redis();
    let script = r#"read -r line; echo '{"id":1,"error":"no"}'
        read -r line; echo 'what?'; echo '{"id":2,"payload_base64":"AP8="}'
        read -r line"#;
    let mut backend = server.serve(&["p.*", "--pipe", script]);
    server.fails(&["call", "web", "p.q"], 4, "no");
    assert_eq!(server.run(&["call", "web", "p.q"]).stdout, b"\x00\xff");
    server.fails(&["call", "web", "p.q"], 4, "ended");
    assert_eq!(backend.ended(), Some(1));
}

#[test]
fn a_backend_that_drains_answers_what_it_has_taken() {
    let server = Server::redis();
    let watch = server.watch(&["watch"]);
    watch.until("watching");
    // It ends when a key is set, which is after the signal.
    let command = format!(
        "until redis-cli -s {} GET go | grep -q yes; do sleep 0.05; done; echo done",
        server.url().trim_start_matches("unix://")
    );
    let mut backend = server.serve(&["slow.*", "--exec", &command]);
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| server.printed(&["call", "web", "slow.work"]));
        watch.until(r#""kind":"claim""#);
        backend.signal(Signal::INT);
        server.cli(&["SET", "go", "yes"]);
        call.join().expect("the call does not fail")
    });
    assert_eq!(answer, "done\n");
    assert_eq!(backend.ended(), Some(0));
}

#[test]
fn watching_matches_requests_with_claims_and_answers() {
    for server in Server::each() {
        let watch = server.watch(&["watch"]);
        assert_eq!(watch.json()["kind"], "watching");
        let _backend = server.serve(&[
            "text.*",
            "--exec",
            r#"[ "$MUF_METHOD" = text.upper ] || { echo bad >&2; exit 1; }; tr a-z A-Z"#,
            "--unit",
            "upper",
        ]);
        server.printed(&["call", "web", "text.upper", "hello"]);
        let seen = [watch.json(), watch.json(), watch.json()];
        let ids: Vec<&Value> = seen.iter().map(|line| &line["id"]).collect();
        assert!(ids[0] == ids[1] && ids[1] == ids[2], "{seen:?}");
        let brief = |line: &Value| {
            json!([
                line["kind"],
                line["unit"],
                line["method"],
                line["backend"],
                line["payload"]
            ])
        };
        assert_eq!(
            seen.each_ref().map(brief),
            [
                json!(["request", "web", "text.upper", null, "hello"]),
                json!(["claim", "web", "text.upper", "upper", null]),
                json!(["answer", "web", "text.upper", "upper", "HELLO"]),
            ]
        );
        let claimed_ms = seen[1]["after_ms"].as_f64().expect("a number");
        let answered_ms = seen[2]["after_ms"].as_f64().expect("a number");
        assert!(0.0 <= claimed_ms && claimed_ms <= answered_ms, "{seen:?}");
        server.fails(&["call", "web", "text.lower", "x"], 4, "bad");
        let error: Value = serde_json::from_str(&watch.until(r#""kind":"error""#)).expect("JSON");
        assert_eq!(error["payload"], "bad\n");
        assert_eq!(error["size_bytes"], 4);
    }
}

#[test]
fn watching_shows_requests_without_an_answer() {
    let server = Server::redis();
    let watch = server.watch(&["watch", "--output", "text"]);
    watch.until("watching");
    server.fails(&["call", "web", "no.body", "x", "--ttl", "200ms"], 5, "");
    let request = watch.until("->");
    assert!(request.contains("web no.body"), "{request}");
    assert!(!request.contains('\x1b'), "no colour but on a terminal");
    watch.until("unanswered no backend claimed it");
}

#[test]
fn values_are_kept_and_read() {
    for server in Server::each() {
        assert_eq!(server.printed(&["keep", "sensor", "t", "21.5"]), "");
        assert_eq!(server.printed(&["keep", "sensor", "t", "--get"]), "21.5");
        let ttl: u32 = server
            .cli(&["TTL", "MUF/sensor/KEEP/t"])
            .parse()
            .expect("a TTL");
        assert!((86_000..=86_400).contains(&ttl), "{ttl}");
        server.printed(&["keep", "sensor", "t", "22", "--ttl", "90s"]);
        let ttl: u32 = server
            .cli(&["TTL", "MUF/sensor/KEEP/t"])
            .parse()
            .expect("a TTL");
        assert!((60..=90).contains(&ttl), "{ttl}");
        server.printed(&["keep", "sensor", "t", "23", "--forever"]);
        assert_eq!(server.cli(&["TTL", "MUF/sensor/KEEP/t"]), "-1");
        server.fails(
            &["keep", "sensor", "none", "--get"],
            8,
            "MUF/sensor/KEEP/none",
        );
        assert_eq!(server.printed(&["keep", "sensor", "t", "--delete"]), "");
        server.fails(&["keep", "sensor", "t", "--get"], 8, "nothing is kept");
        server.fails(&["keep", "sensor", "t", "--delete"], 8, "nothing is kept");
        server.fails(&["keep", "sensor", "_info", "x"], 2, "_info");
        server.fails(&["keep", "sensor", "t"], 2, "VALUE");
        server.fails(
            &["keep", "sensor", "t", "x", "--ttl", "1s", "--forever"],
            2,
            "--forever",
        );
    }
}

#[test]
fn kept_values_are_watched() {
    for server in Server::each() {
        server.printed(&["keep", "sensor-1", "t", "20"]);
        server.printed(&["keep", "other", "t", "0"]);
        let watch = server.watch(&["keep", "--watch", "sensor-*/t"]);
        let value = watch.json();
        assert_eq!(value["kind"], "value");
        assert_eq!(
            (&value["unit"], &value["value"]),
            (&json!("sensor-1"), &json!("20"))
        );
        assert!(value["ttl_ms"].as_u64().is_some_and(|ms| ms > 80_000_000));
        assert_eq!(watch.json(), json!({"kind": "live"}));
        server.printed(&["keep", "sensor-2", "t", "30", "--forever"]);
        assert_eq!(
            watch.json(),
            json!({"kind": "value", "unit": "sensor-2", "id": "t", "value": "30", "ttl_ms": null})
        );
        server.cli(&["DEL", "MUF/sensor-1/KEEP/t"]);
        assert_eq!(
            watch.json(),
            json!({"kind": "deleted", "unit": "sensor-1", "id": "t"})
        );
        // Nothing is deleted: the key expires at once.
        server.printed(&["keep", "sensor-2", "t", "--delete"]);
        assert_eq!(
            watch.json(),
            json!({"kind": "expired", "unit": "sensor-2", "id": "t"})
        );
    }
}

#[test]
fn units_lists_who_is_there() {
    for server in Server::each() {
        assert_eq!(server.printed(&["units"]), "");
        let _one = server.serve(&["text.*", "--exec", "cat", "--unit", "upper"]);
        let _two = server.serve(&["*", "--exec", "cat", "--unit", "catchall"]);
        let lines = server.printed(&["units"]);
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        for line in &lines {
            let seen_ms = line["seen_ms_ago"].as_u64().expect("it was seen");
            assert!(seen_ms < 15_000, "{line}");
        }
        let brief = |line: &Value| json!([line["unit"], line["services"]]);
        assert_eq!(
            lines.iter().map(brief).collect::<Vec<_>>(),
            [json!(["catchall", ["*"]]), json!(["upper", ["text.*"]])]
        );
        let table = server.printed(&["units", "--output", "text"]);
        let firsts = table.lines().map(|line| line.split_whitespace().next());
        assert_eq!(
            firsts.flatten().collect::<Vec<_>>(),
            ["UNIT", "catchall", "upper"]
        );
        assert!(
            table.lines().skip(1).all(|line| line.ends_with(" ago")),
            "{table}"
        );
    }
}

#[test]
fn the_help_tells_the_exit_codes_and_the_line_protocol() {
    let server = Server::redis();
    let call = server.printed(&["call", "--help"]);
    for text in ["Exit codes:", "  5  no backend", "KUMI_URL", "@file"] {
        assert!(call.contains(text), "no {text} in {call}");
    }
    let serve = server.printed(&["serve", "--help"]);
    for text in ["MUF_METHOD", "payload_base64", "--concurrency"] {
        assert!(serve.contains(text), "no {text} in {serve}");
    }
}

#[test]
fn a_call_without_a_service_names_the_units_that_run() {
    let server = Server::redis();
    let _backend = server.serve(&["text.upper", "--exec", "cat", "--unit", "upper"]);
    let call = ["call", "web", "text.lower", "--ttl", "4s"];
    server.fails(&call, 5, "these units run: upper (text.upper)");
    // Before the hint's time, and after it.
    for timeout in ["300ms", "4s"] {
        let output = server.run(&["call", "web", "text.lower", "--all", "--timeout", timeout]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{said}");
        let hint = "these units run: upper (text.upper)";
        assert_eq!(said.matches(hint).count(), 1, "{timeout}: {said}");
        assert!(said.ends_with("no backend answered\n"), "{timeout}: {said}");
    }
}
