//! `kumi jobs work --exec`: programs that cannot be run, are stopped, or outlive nobody.

use super::{Server, Worker, end, wait_until};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

/// Whether a process is there and is no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.ok().and_then(|stat| {
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.chars().next()
    });
    state.is_some_and(|state| state != 'Z')
}

/// A worker whose standard error is the caller's to read, and what it says first.
fn start(server: &Server, arguments: &[&str]) -> (Worker, BufReader<ChildStderr>) {
    let mut command = server.command(&["work"]);
    let child = command.args(arguments).stderr(Stdio::piped()).spawn();
    let mut child: Child = child.expect("kumi runs");
    let mut lines = BufReader::new(child.stderr.take().expect("its standard error"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    assert!(line.contains("working on"), "{line}");
    (Worker(child), lines)
}

/// Waits for the text of a file that a program writes in one go.
fn written(path: &std::path::Path) -> String {
    let mut text = String::new();
    wait_until("the program wrote it", || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    });
    text.trim_end().to_owned()
}

#[test]
fn the_first_word_of_the_command_is_checked_at_the_start() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "echo").expect("a file");
    let (plain, missing) = (
        plain.display().to_string(),
        format!("{}/no", dir.path().display()),
    );
    for (program, text) in [
        (
            "no-such-program-anywhere --fast",
            "no program 'no-such-program-anywhere'",
        ),
        (&*missing, "No such file"),
        (&*plain, "not executable"),
        ("/tmp", "not a program"),
    ] {
        let output = server.run(&["work", "--type", "a", "--exec", program]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(text) && !said.contains("working on"),
            "{said}"
        );
    }
    // A word of the shell, and one that only the shell can read.
    for program in ["read n; echo $n", "A=1; echo $A"] {
        server.work(&["--type", "a", "--exec", program]).stop();
    }
}

#[test]
fn a_command_that_cannot_be_run_ends_the_worker_after_three_tasks() {
    let server = Server::start();
    for _ in 0..5 {
        server.ok(&["enqueue", "a"]);
    }
    let program = "true; no-such-program-anywhere";
    let (mut worker, mut lines) = start(&server, &["--type", "a", "--exec", program]);
    let mut said = String::new();
    lines.read_to_string(&mut said).expect("text");
    let status = worker.0.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("3 tasks in a row"), "{said}");
    assert!(said.contains("no-such-program-anywhere"), "{said}");
    assert_eq!(server.count("running"), 0, "what it held is given back");
    assert_eq!(
        server.count("dead"),
        0,
        "an ordinary failure is tried again"
    );
    assert_eq!(server.count("retry_scheduled") + server.count("queued"), 5);
    // Other failures between them are no trouble.
    let worker = server.work(&["--type", "b", "--exec", "read n; exit $n"]);
    for code in ["127", "126", "1", "127", "126"] {
        server.ok(&["enqueue", "b", code, "--max-attempts", "1"]);
    }
    wait_until("all are dead", || server.count("dead") == 5);
    worker.stop();
}

#[test]
fn a_program_whose_task_is_cancelled_may_end_by_itself() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let (pids, note) = (dir.path().join("pids"), dir.path().join("note"));
    // The one that the shell waits for ends on SIGTERM, the other one ignores it.
    let program = format!(
        "trap 'echo ended > {note}; exit 1' TERM; (trap '' TERM; exec sleep 1000) & echo $$ $! > {pids}; wait",
        note = note.display(),
        pids = pids.display()
    );
    let worker = server.work(&["--type", "a", "--kill-after", "1s", "--exec", &program]);
    let id = server.ok(&["enqueue", "a"]);
    let started = written(&pids);
    server.ok(&["cancel", &id]);
    assert_eq!(written(&note), "ended");
    wait_until("it is cancelled", || {
        server.field(&id, "state") == "cancelled"
    });
    for pid in started.split(' ') {
        wait_until("it is gone", || !is_alive(pid));
    }
    worker.stop();
}

#[test]
fn a_program_over_its_time_limit_gets_a_signal_first() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let note = dir.path().join("note");
    let program = format!(
        "trap 'echo ended > {}; exit 0' TERM; while :; do sleep 0.1; done",
        note.display()
    );
    let limits = ["--time-limit", "1s", "--kill-after", "20s"];
    let arguments = [&["--type", "a", "--exec", &program][..], &limits].concat();
    let worker = server.work(&arguments);
    let output = server.run(&["enqueue", "a", "--max-attempts", "1", "--wait"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the time limit of 1s ended"), "{said}");
    assert_eq!(written(&note), "ended");
    worker.stop();
    // One that ignores the signal is killed.
    let limits = ["--time-limit", "1s", "--kill-after", "1s"];
    let program = "trap '' TERM; while :; do sleep 0.1; done";
    let worker = server.work(&[&["--type", "b", "--exec", program][..], &limits].concat());
    let output = server.run(&["enqueue", "b", "--max-attempts", "1", "--wait"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    worker.stop();
}

#[test]
fn nothing_outlives_a_worker_that_is_killed() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let pids = dir.path().join("pids");
    // The shell, a program that it waits for, and one in the background.
    let program = format!(
        "sleep 1000 & a=$!; sleep 1000 & echo $$ $a $! > {}; wait; echo",
        pids.display()
    );
    let worker = server.work(&["--type", "a", "--exec", &program]);
    server.ok(&["enqueue", "a"]);
    let started = written(&pids);
    assert!(started.split(' ').all(is_alive));
    send("-KILL", worker.0.id());
    for pid in started.split(' ') {
        wait_until("it is gone", || !is_alive(pid));
    }
}

/// As `timeout` does, which signals its child and then its group.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let (pids, go) = (dir.path().join("pids"), dir.path().join("go"));
    let program = format!(
        "echo $$ > {}; until [ -e {} ]; do sleep 0.05; done; echo",
        pids.display(),
        go.display()
    );
    let (mut worker, mut lines) = start(&server, &["--type", "a", "--exec", &program]);
    let id = server.ok(&["enqueue", "a"]);
    written(&pids);
    send("-TERM", worker.0.id());
    send("-TERM", worker.0.id());
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    assert!(line.contains("at most 30s"), "{line}");
    std::fs::write(&go, "").expect("a file");
    worker.0.wait().expect("it ends");
    assert_eq!(server.field(&id, "state"), "succeeded");
    end(&mut worker.0);
}

#[test]
fn a_second_signal_stops_a_worker_at_once() {
    let server = Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let pids = dir.path().join("pids");
    let program = format!(
        "trap '' TERM INT; echo $$ > {}; sleep 1000; echo",
        pids.display()
    );
    let (mut worker, mut lines) = start(&server, &["--type", "a", "--exec", &program]);
    let id = server.ok(&["enqueue", "a"]);
    let pid = written(&pids);
    send("-INT", worker.0.id());
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    assert!(
        line.contains("at most 30s") && line.contains("again"),
        "{line}"
    );
    assert!(is_alive(&pid));
    let started = Instant::now();
    send("-INT", worker.0.id());
    worker.0.wait().expect("it ends");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    wait_until("its program is gone", || !is_alive(&pid));
    assert_eq!(
        server.field(&id, "state"),
        "queued",
        "its task is given back"
    );
    end(&mut worker.0);
}
