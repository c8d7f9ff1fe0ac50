//! Programs behind `serve --pipe` that stop reading or write lines that are not what they should be.

use crate::BRACKETS;
use crate::support::{Server, ended};
use rustix::process::Signal;

/// A program that answers the first requests with these lines, and then listens.
fn script(lines: &[&str]) -> String {
    let each = |line: &&str| format!("read -r request; printf '%b\\n' '{line}'\n");
    let answers: String = lines.iter().map(each).collect();
    format!("{answers}cat >/dev/null")
}

#[test]
fn a_program_that_stopped_reading_does_not_hold_up_the_end() {
    let server = Server::redis();
    let pipe = ["p.*", "--pipe", "sleep 1000"];
    let limits = ["--handler-timeout", "300ms", "--concurrency", "32"];
    let mut backend = server.serve(&[&pipe[..], &limits].concat());
    // A line that does not fit into a pipe, and more than are kept behind it.
    let large = "x".repeat(100_000);
    let ids: Vec<String> = (0..24).map(|n| format!("p.q~{n}")).collect();
    for id in &ids {
        let key = format!("MUF/web/REQ/{id}");
        server.cli(&["SET", &key, &large, "EX", "30"]);
    }
    for id in &ids {
        let key = format!("MUF/web/ERR/{id}");
        server.until(&["EXISTS", &key], |there| there == "1");
    }
    assert_eq!(backend.stop(Signal::TERM), Some(0));
    backend.until("killing it");
}

#[test]
fn a_killed_program_takes_what_it_started_with_it() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    let program = format!("sleep 1000 & {tell} SET pid $! >&2; wait");
    let mut backend = server.serve(&["p.*", "--pipe", &program]);
    let pid = server.until(&["GET", "pid"], |pid| !pid.is_empty());
    assert_eq!(backend.stop(Signal::TERM), Some(0));
    ended(&pid);
}

/// The shell, a program that it waits for, and one in the background, of both ways to serve.
#[test]
fn nothing_outlives_a_backend_that_is_killed() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    let program = |key: &str| {
        format!("sleep 1000 & a=$!; sleep 1000 & {tell} SET {key} \"$$ $a $!\" >&2; wait; echo")
    };
    let mut piped = server.serve(&["p.*", "--pipe", &program("piped")]);
    let mut executed = server.serve(&["e.*", "--exec", &program("executed")]);
    server.cli(&["SET", "MUF/web/REQ/e.q~1", "", "EX", "60"]);
    for (key, backend) in [("piped", &mut piped), ("executed", &mut executed)] {
        let pids = server.until(&["GET", key], |pids| !pids.is_empty());
        assert_eq!(backend.stop(Signal::KILL), None);
        for pid in pids.split(' ') {
            ended(pid);
        }
    }
}

#[test]
fn null_is_no_error_and_json_goes_through_as_written() {
    for server in Server::each() {
        let json = r#"{"z": 12345678901234567890123, "a":0.10000000000000000001}"#;
        let payload = format!(r#"{{"id":2,"payload":{json}}}"#);
        let lines = [r#"{"id":1,"payload":"ok","error":null}"#, &payload];
        let _backend = server.serve(&["p.*", "--pipe", &script(&lines)]);
        assert_eq!(server.printed(&["call", "web", "p.q"]), "ok");
        assert_eq!(server.printed(&["call", "web", "p.q"]), json);
    }
}

#[test]
fn a_wrong_line_that_names_a_request_is_answered_at_once() {
    let server = Server::redis();
    let lines = [
        r#"{"id":1,"payload":"\0377"}"#,
        r#"{"id":2,"payload":"\\ud800"}"#,
        r#"{"id":"3","payload":"x"}"#,
        r#"{"id":4,"payload":"x"#,
        r#"{"payload":"x"}\n{"id":5,"payload":"fine"}"#,
    ];
    let mut backend = server.serve(&["p.*", "--pipe", &script(&lines)]);
    for reason in [
        "not UTF-8",
        "not Unicode",
        "not the number",
        "not a JSON object",
    ] {
        server.fails(&["call", "web", "p.q"], 4, reason);
    }
    assert_eq!(server.printed(&["call", "web", "p.q"]), "fine");
    backend.until("no answer (no id)");
    assert_eq!(backend.stop(Signal::TERM), Some(0), "nothing is open");
}

#[test]
fn a_line_that_is_too_long_is_one_error() {
    let server = Server::redis();
    let script = r#"read -r request; printf '{"id":1,"payload":"'; head -c 9000000 /dev/zero | tr '\0' x; echo '"}'
        read -r request; echo '{"id":2,"payload":"fine"}'
        cat >/dev/null"#;
    let mut backend = server.serve(&["p.*", "--pipe", script]);
    server.fails(&["call", "web", "p.q"], 4, "more than 8388608 bytes");
    assert_eq!(server.printed(&["call", "web", "p.q"]), "fine");
    assert_eq!(backend.stop(Signal::TERM), Some(0));
}

#[test]
fn a_program_that_crashes_is_started_again() {
    for server in Server::each() {
        let tell = format!("redis-cli -s {}", server.socket().display());
        // The first program crashes with a request in its hands; its successors answer with their number.
        let script = format!(
            r#"run=$({tell} INCR runs); read -r request; [ "$run" -gt 2 ] || exit 3
            echo "{{\"id\":1,\"payload\":\"run $run\"}}"; cat >/dev/null"#
        );
        let mut backend = server.serve(&["p.*", "--pipe", &script]);
        server.fails(&["call", "web", "p.q"], 4, "has ended");
        let first = backend.until("started again in 0.1 s");
        assert!(first.contains("exit status: 3"), "{first}");
        server.fails(&["call", "web", "p.q"], 4, "has ended");
        backend.until("started again in 0.2 s");
        // This one is sent while no program runs, or to the next one: it waits, and is answered.
        assert_eq!(server.printed(&["call", "web", "p.q"]), "run 3");
        assert_eq!(backend.stop(Signal::TERM), Some(0));
    }
}

/// Sets requests with this payload, and returns their IDs.
fn ask(server: &Server, count: usize, payload: &str) -> Vec<String> {
    let ids: Vec<String> = (0..count).map(|n| format!("p.q~{n}")).collect();
    for id in &ids {
        let key = format!("MUF/web/REQ/{id}");
        server.cli(&["SET", &key, payload, "EX", "60"]);
    }
    ids
}

/// Waits for the answers, and counts those that are errors.
fn count_errors(server: &Server, ids: &[String]) -> usize {
    let failed = |id: &&String| {
        let [good, bad] = ["RES", "ERR"].map(|kind| format!("MUF/web/{kind}/{id}"));
        server.until(&["EXISTS", &good, &bad], |there| there == "1");
        server.cli(&["EXISTS", &bad]) == "1"
    };
    ids.iter().filter(failed).count()
}

#[test]
fn requests_wait_while_a_program_that_closed_its_output_lives_on() {
    for server in Server::each() {
        let tell = format!("redis-cli -s {}", server.socket().display());
        let script = format!(
            r#"if [ "$({tell} INCR runs)" = 1 ]; then read -r request; exec >&-; exec sleep 1000; fi; exec {BRACKETS}"#
        );
        let mut backend = server.serve(&["p.*", "--pipe", &script, "--concurrency", "1"]);
        let ids = ask(&server, 5, "x");
        assert_eq!(count_errors(&server, &ids), 1, "the one that it had");
        assert_eq!(backend.stop(Signal::TERM), Some(0));
    }
}

#[test]
fn requests_that_were_not_written_go_to_the_next_program() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    let script = format!(
        r#"if [ "$({tell} INCR runs)" = 1 ]; then
            until [ "$({tell} GET go)" = yes ]; do sleep 0.05; done; exec >&-; exec sleep 1000
        fi; exec {BRACKETS}"#
    );
    let mut backend = server.serve(&["p.*", "--pipe", &script, "--concurrency", "32"]);
    // A line that does not fit into a pipe, and more than are kept behind it.
    let ids = ask(&server, 24, &"x".repeat(100_000));
    for id in &ids {
        let key = format!("MUF/web/KEEP/{id}.claim");
        server.until(&["EXISTS", &key], |there| there == "1");
    }
    server.cli(&["SET", "go", "yes"]);
    let failed = count_errors(&server, &ids);
    assert_eq!(failed, 1, "the one whose line had begun");
    assert_eq!(backend.stop(Signal::TERM), Some(0));
}

#[test]
fn a_backend_that_stops_does_not_wait_for_a_program_without_input() {
    let server = Server::redis();
    let tell = format!("redis-cli -s {}", server.socket().display());
    let script = format!("exec <&-; {tell} SET closed yes </dev/null >&2; exec sleep 1000");
    let mut backend = server.serve(&["p.*", "--pipe", &script]);
    server.until(&["GET", "closed"], |value| value == "yes");
    let ids = ask(&server, 2, "x");
    for id in &ids {
        let key = format!("MUF/web/KEEP/{id}.claim");
        server.until(&["EXISTS", &key], |there| there == "1");
    }
    assert_eq!(backend.stop(Signal::TERM), Some(0));
    assert_eq!(count_errors(&server, &ids), 2);
}

#[test]
fn a_program_that_cannot_be_run_ends_the_backend() {
    let server = Server::redis();
    let mut backend = server.serve(&["p.*", "--pipe", "/no/such/program"]);
    backend.until("the program cannot be run");
    assert_eq!(backend.ended(), Some(1));
}

#[test]
fn a_backend_that_stops_while_its_program_is_down_answers_what_waits() {
    let server = Server::redis();
    let script = "read -r request; exit 3";
    let mut backend = server.serve(&["p.*", "--pipe", script]);
    for pause in ["0.1", "0.2", "0.4", "0.8", "1.6", "3.2"] {
        server.fails(&["call", "web", "p.q"], 4, "has ended");
        backend.until(&format!("started again in {pause} s"));
    }
    server.cli(&["SET", "MUF/web/REQ/p.q~waits", "x", "EX", "30"]);
    server.until(&["EXISTS", "MUF/web/KEEP/p.q~waits.claim"], |there| {
        there == "1"
    });
    assert_eq!(backend.stop(Signal::TERM), Some(0));
    let error = server.cli(&["GET", "MUF/web/ERR/p.q~waits"]);
    assert!(error.contains("has ended"), "{error}");
}
