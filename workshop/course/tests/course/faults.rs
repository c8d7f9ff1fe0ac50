//! The wire tests find mistakes: each fault of the `broken` server fails in the step and with the words of its snapshot.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test --test faults` writes the snapshots again; read the difference.

use std::fs;
use std::path::Path;
use std::thread;

use crate::common::run;
use course::files;

/// Each fault and the step that finds it.
const FAULTS: [(&str, u8); 16] = [
    ("closes-early", 1),
    ("forgets-crlf", 1),
    ("one-client-at-a-time", 1),
    ("drops-half-read", 2),
    ("forgets-the-second", 2),
    ("integers-as-strings", 2),
    ("crashes-on-binary", 2),
    ("case-sensitive", 2),
    ("wrong-null", 3),
    ("no-value-limit", 3),
    ("locks-twice", 3),
    ("ignores-expiry", 4),
    ("truncates-ttl", 4),
    ("incr-drops-ttl", 4),
    ("never-deletes-unread", 5),
    ("one-cycle-a-second", 5),
];

fn outcome_of(fault: &str) -> (Option<u8>, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_broken"));
    let (outcome, lines) = run(binary, &["--fault", fault], (1..=5).collect());
    let said: Vec<String> = lines.into_iter().skip_while(|line| !line.contains('✗')).collect();
    (outcome.red.map(|red| red.test.step), said.join("\n"))
}

#[test]
fn without_a_fault_everything_is_green() {
    assert_eq!(outcome_of("none"), (None, String::new()));
}

#[test]
fn each_fault_is_found_in_its_step_and_told_as_in_its_snapshot() {
    let folder = files::workshop().join("course/tests/course/snapshots");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let found = thread::scope(|scope| {
        let started = FAULTS.map(|(fault, _)| scope.spawn(move || outcome_of(fault)));
        started.map(|thread| thread.join().expect("no panic"))
    });
    let mut wrong = Vec::new();
    for ((fault, expected_step), (step, said)) in FAULTS.into_iter().zip(found) {
        let text = format!("step {}\n{said}\n", step.map_or("none".to_string(), |step| step.to_string()));
        if step != Some(expected_step) {
            wrong.push(format!("{fault}: expected step {expected_step}\n{text}"));
        }
        let path = folder.join(format!("{fault}.txt"));
        if update {
            fs::write(&path, &text).expect("written");
        }
        // Which number of keys is left when the time is up depends on the moment.
        let without_count = |text: &str| match fault {
            "one-cycle-a-second" => text.lines().filter(|line| !line.contains("got  ")).collect::<Vec<_>>().join("\n"),
            _ => text.to_string(),
        };
        let snapshot = fs::read_to_string(&path).unwrap_or_default();
        if without_count(&snapshot) != without_count(&text) {
            wrong.push(format!("{fault}: the snapshot says\n{snapshot}\nbut it is\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
