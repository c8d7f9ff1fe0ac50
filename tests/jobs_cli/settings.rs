//! What is stored with a queue and a task: what is kept, back-offs, and the format.

use crate::Server;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn what_a_queue_keeps_is_stored_with_it() {
    let server = Server::start();
    let kept = |arguments: &[&str]| json_of(&server.ok(&[&["keep"], arguments].concat()));
    let default = json!({
        "succeeded": 10_000, "succeeded_for_ms": 3_600_000,
        "dead": 100_000, "dead_for_ms": 604_800_000,
    });
    assert_eq!(kept(&[]), default);
    kept(&["--succeeded", "0"]);
    let changed = kept(&["--dead-for", "24h"]);
    let expected = json!({
        "succeeded": 0, "succeeded_for_ms": 3_600_000,
        "dead": 100_000, "dead_for_ms": 86_400_000,
    });
    assert_eq!((&changed, kept(&[])), (&expected, expected.clone()));
    // A worker, which says nothing about it, keeps no succeeded task.
    let worker = server.work(&["--type", "echo", "--exec", "cat"]);
    let id = server.ok(&["enqueue", "echo", "1"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.run(&["status", &id]).status.success() {
        assert!(Instant::now() < deadline, "it is kept");
    }
    worker.stop();
    let text = server.ok(&["keep", "--output", "text"]);
    let expected = "succeeded 0 for 1h, cancelled likewise\ndead 100000 for 24h";
    assert_eq!(text, expected);
}

#[test]
fn a_success_that_is_not_kept_is_reported_to_its_producer() {
    let server = Server::start();
    server.ok(&["keep", "--succeeded", "0"]);
    // The worker is idle, so that the task may have ended before anybody asks for it.
    let worker = server.work(&["--type", "echo,fail", "--exec", "read n; exit $n"]);
    for _ in 0..5 {
        let done = server.run(&["enqueue", "echo", "0", "--wait"]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(
            said.contains("succeeded") && said.contains("its result is gone"),
            "{said}"
        );
        assert_eq!(done.stdout, b"");
    }
    let failed = server.run(&["enqueue", "fail", "65", "--wait"]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(3), "{said}");
    worker.stop();
}

#[test]
fn a_back_off_comes_from_the_task_or_from_the_worker() {
    let server = Server::start();
    let worker = server.work(&[
        "--type=mine,other,third",
        "--exec=exit 1",
        "--backoff=20m..1h",
        "--backoff=other=3h",
    ]);
    // Each delay is between half of the back-off and all of it.
    for (arguments, minutes) in [
        (&["mine", "--backoff", "10h"][..], 300..=600),
        (&["other"][..], 90..=180),
        (&["third"][..], 10..=20),
    ] {
        let id = server.ok(&[&["enqueue"], arguments].concat());
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            let status = json_of(&server.ok(&["status", &id]));
            if status["state"] == "retry_scheduled" {
                break status;
            }
            assert!(Instant::now() < deadline, "{status}");
        };
        let at = |name: &str| status[name].as_u64().expect("milliseconds");
        let delay = (at("next_run_at") - at("updated_at")) / 60_000;
        assert!(minutes.contains(&delay), "{arguments:?}: {delay} min");
    }
    worker.stop();
    for wrong in ["soon", "5s..1s"] {
        let refused = server.run(&["enqueue", "mine", "--backoff", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn a_queue_of_the_format_before_is_moved() {
    let server = Server::start();
    server.ok(&["enqueue", "echo", "1"]);
    let set = Command::new("redis-cli")
        .args(["-u", &server.url, "SET", "kumi:jobs:{test}:version", "2"])
        .output();
    assert!(set.expect("redis-cli is installed").status.success());
    let refused = server.run(&["counts"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("'kumi jobs upgrade'"), "{said}");
    let moved = server.ok(&["upgrade", "test"]);
    assert_eq!(moved, "test is moved from format 2 to format 3");
    let again = server.ok(&["upgrade", "test"]);
    assert_eq!(again, "test has format 3 already");
    let counts = json_of(&server.ok(&["counts"]));
    assert_eq!(counts["states"]["queued"], 1);
    let missing = server.run(&["upgrade", "nothing"]);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("there is no queue 'nothing'"), "{said}");
}

#[test]
fn releases_by_membership_are_switched_off_and_on_again() {
    let server = Server::start();
    let releases = |arguments: &[&str]| json_of(&server.ok(&[&["releases"], arguments].concat()));
    assert_eq!(releases(&[]), json!({ "releases": true }));
    assert_eq!(releases(&["off"]), json!({ "releases": false }));
    assert_eq!(releases(&[]), json!({ "releases": false }));
    assert_eq!(server.ok(&["releases", "--output", "text"]), "off");
    assert_eq!(releases(&["on"]), json!({ "releases": true }));
    assert_eq!(server.run(&["releases", "maybe"]).status.code(), Some(2));
}
