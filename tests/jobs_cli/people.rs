//! What `kumi jobs` shows people: tables, times, ids by their beginnings, and what a purge will forget.

use super::{Server, wait_until};
use std::process::Output;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server with some tasks of type `mail` that are dead, and their ids, the oldest first.
fn with_dead(count: usize) -> (Server, Vec<String>) {
    let server = Server::start();
    let program = "read n; echo \"the disk of $n is full\" >&2; exit 65";
    let worker = server.work(&["--type", "mail", "--exec", program]);
    let enqueue = |n| server.ok(&["enqueue", "mail", &format!("{n}")]);
    let ids: Vec<String> = (0..count).map(enqueue).collect();
    wait_until("all are dead", || server.count("dead") == count as u64);
    worker.stop();
    (server, ids)
}

fn text(server: &Server, arguments: &[&str]) -> String {
    server.ok(&[arguments, &["--output", "text"]].concat())
}

#[test]
fn a_listing_has_a_header_ages_reasons_and_a_limit() {
    let (server, ids) = with_dead(3);
    server.ok(&["enqueue", "later", "--delay", "1h"]);
    let listed = text(&server, &["list", "--state", "dead"]);
    let lines: Vec<&str> = listed.lines().collect();
    for word in ["ID", "STATE", "TRIES", "AGE", "TYPE", "REASON"] {
        assert!(lines[0].contains(word), "{listed}");
    }
    assert_eq!(lines.len(), 4, "{listed}");
    assert!(lines[1].starts_with(&ids[2]), "the newest first: {listed}");
    assert!(lines[1].contains(" ago "), "{listed}");
    assert!(
        lines[1].ends_with("mail  the disk of 2 is full"),
        "{listed}"
    );
    let scheduled = text(&server, &["list", "--state", "scheduled"]);
    assert!(
        scheduled.contains(" in 59m") || scheduled.contains(" in 1h"),
        "{scheduled}"
    );
    // A part of it, which says how to go on.
    let output = server.run(&[
        "list", "--state", "dead", "--limit", "2", "--order", "oldest",
    ]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let id =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["id"].clone();
    assert_eq!(shown.lines().map(id).collect::<Vec<_>>(), ids[..2]);
    let said = said(&output);
    let (_, cursor) = said.split_once("--cursor ").expect("a cursor");
    let cursor = cursor.split(' ').next().expect("a word");
    let rest = server.ok(&[
        "list", "--state", "dead", "--order", "oldest", "--cursor", cursor,
    ]);
    assert_eq!(rest.lines().map(id).collect::<Vec<_>>(), ids[2..]);
    let wrong = server.run(&["list", "--state", "dead", "--cursor", "x"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_search_says_how_far_it_looked() {
    let (server, ids) = with_dead(4);
    let output = server.run(&["list", "--state", "dead", "--search", "disk of 1"]);
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        found.contains(&ids[1]) && found.lines().count() == 1,
        "{found}"
    );
    assert!(
        said(&output).contains("looked at 4 tasks, found 1"),
        "{}",
        said(&output)
    );
    assert_eq!(server.ok(&["retry", "--search", "disk of 3"]), "1 requeued");
    assert_eq!(server.field(&ids[3], "state"), "queued");
    server.ok(&["enqueue", "other"]);
    assert_eq!(
        server.ok(&["cancel", "--state", "queued", "--type", "mail"]),
        "1 cancelled"
    );
    assert_eq!(server.count("queued"), 1);
}

#[test]
fn a_task_is_named_by_the_beginning_of_its_id() {
    let server = Server::start();
    let enqueue = |id: &str| server.ok(&["enqueue", "mail", "--id", id]);
    let first = enqueue("019abcdef01270008000000000000001");
    let second = enqueue("019abcdef01270008000000000000a02");
    assert_eq!(server.field("019abcdef012700080000000000000", "id"), first);
    assert_eq!(
        server.field("019abcde-f012-7000-8000-000000000a", "id"),
        second
    );
    let several = server.run(&["status", "019a"]);
    assert_eq!(several.status.code(), Some(8));
    let text = said(&several);
    assert!(text.contains(&first) && text.contains(&second), "{text}");
    assert_eq!(server.run(&["status", "ffff"]).status.code(), Some(8));
    assert_eq!(server.run(&["status", "mine"]).status.code(), Some(2));
    assert!(
        server
            .ok(&["cancel", "019abcdef0127000800000000000000"])
            .starts_with(&first)
    );
}

#[test]
fn times_are_local_and_the_next_run_is_shown() {
    let server = Server::start();
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["--output", "text"]].concat();
        let mut command = server.command(&arguments);
        let output = command.env("TZ", "Asia/Tokyo").output().expect("kumi runs");
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let at = ["enqueue", "mail", "--at", "2099-01-02T03:04:05"];
    let id = run(&at).trim_end().to_owned();
    // 3:04 in Tokyo is 18:04 of the day before in Greenwich.
    let due = server.field(&id, "next_run_at").as_u64().expect("a time");
    let expected = 4_070_973_845_000_u64;
    assert!(due.abs_diff(expected) < 10_000, "{due}");
    let status = run(&["status", &id]);
    let line = status.lines().find(|line| line.starts_with("next_run_at"));
    let line = line.expect("the time of its run");
    assert!(
        line.contains("2099-01-02 03:04:") && line.contains("(in "),
        "{line}"
    );
    run(&[
        "cron",
        "set",
        "digest",
        "0 9 1 1 *",
        "mail",
        "--zone",
        "Asia/Tokyo",
    ]);
    let schedules = run(&["cron", "list"]);
    let lines: Vec<&str> = schedules.lines().collect();
    assert!(
        lines[0].contains("NAME") && lines[0].contains("NEXT RUN"),
        "{schedules}"
    );
    assert!(
        lines[1].starts_with("digest") && lines[1].contains("-01-01 09:00:00 (in "),
        "{schedules}"
    );
}

#[test]
fn a_purge_says_what_it_forgets_and_leaves_the_dead() {
    let (server, ids) = with_dead(2);
    let cancelled = server.ok(&["enqueue", "mail"]);
    server.ok(&["cancel", &cancelled]);
    let dry = server.run(&["purge", "--dry-run"]);
    let text = said(&dry);
    assert!(
        text.contains("0 succeeded, 1 cancelled; 2 dead stay"),
        "{text}"
    );
    assert_eq!(server.count("cancelled"), 1);
    assert_eq!(server.ok(&["purge"]), "1 purged");
    assert_eq!(server.count("dead"), 2);
    let output = server.run(&["purge", "--state", "dead", "--search", "disk of 0"]);
    assert!(
        said(&output).contains("2 dead, those that match"),
        "{}",
        said(&output)
    );
    assert_eq!(server.run(&["status", &ids[0]]).status.code(), Some(8));
    assert_eq!(server.count("dead"), 1);
    assert_eq!(
        server.run(&["purge", "--state", "queued"]).status.code(),
        Some(2)
    );
}

#[test]
fn queues_and_workers_are_listed() {
    let server = Server::start();
    let id = server.ok(&["enqueue", "hang"]);
    let idle = text(&server, &["workers"]);
    assert!(idle.contains("no worker runs a task"), "{idle}");
    assert!(idle.contains("no worker asks for hang"), "{idle}");
    let worker = server.work(&["--type", "hang", "--name", "busy", "--exec", super::HANGS]);
    wait_until("it runs", || server.field(&id, "state") == "running");
    let workers = text(&server, &["workers"]);
    let line = workers.lines().nth(1).expect("a worker");
    assert!(
        line.starts_with("busy~") && line.contains("  1  "),
        "{workers}"
    );
    assert!(
        workers.contains("asked for within the last minute: hang"),
        "{workers}"
    );
    let queues = text(&server, &["queues"]);
    let lines: Vec<&str> = queues.lines().collect();
    assert!(
        lines[0].contains("QUEUE") && lines[0].contains("running"),
        "{queues}"
    );
    assert_eq!(lines.len(), 2, "asking adds none: {queues}");
    assert!(lines[1].starts_with("test"), "{queues}");
    let queues: serde_json::Value = serde_json::from_str(&server.ok(&["queues"])).expect("JSON");
    assert_eq!(
        (&queues["queue"], &queues["running"]),
        (&"test".into(), &1.into())
    );
    drop(worker);
}

#[test]
fn moves_are_shown_with_their_time_and_reason() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let server = Server::start();
    let mut command = server.command(&["tail", "--output", "text"]);
    let spawned = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut tail = spawned.expect("kumi runs");
    let mut notes = BufReader::new(tail.stderr.take().expect("its standard error"));
    notes.read_line(&mut String::new()).expect("text");
    let worker = server.work(&["--type", "mail", "--exec", "echo full >&2; exit 65"]);
    server.ok(&["enqueue", "mail"]);
    let lines = BufReader::new(tail.stdout.take().expect("its output")).lines();
    let lines: Vec<String> = lines.take(4).map(|line| line.expect("text")).collect();
    super::end(&mut tail);
    worker.stop();
    assert!(
        lines[0].starts_with("TIME") && lines[0].contains("REASON"),
        "{lines:?}"
    );
    assert!(
        lines[3].contains(" dead ") && lines[3].ends_with("mail  full"),
        "{lines:?}"
    );
}

#[test]
fn options_of_every_command_come_last_in_help() {
    let server = Server::start();
    for command in ["list", "enqueue", "work"] {
        let help = server.ok(&[command, "--help"]);
        let (own, every) = help
            .split_once("Options of every command:")
            .expect("a heading");
        for option in ["--url", "--queue", "--output", "--cacert"] {
            assert!(
                every.contains(option) && !own.contains(&format!("{option} <")),
                "{help}"
            );
        }
        assert!(own.contains("--help"), "{help}");
    }
}
