//! The example in `examples/` runs, and keeps its promise.

use std::process::Command;

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_stage_example_answers_every_call() {
    let server = Server::redis();
    let url = server.url();
    let run = tokio::task::spawn_blocking(move || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "run",
            "--quiet",
            "--package",
            "kumi-muf",
            "--example",
            "stage",
            "--",
            &url,
        ]);
        cargo.output()
    });
    let output = run.await.expect("no panic").expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("0 callers without one"), "{text}");
}
