//! The example in `examples/` runs, and keeps its promise.

use std::process::Command;

use crate::support::{Place, Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_stage_example_answers_every_call() {
    for server in Server::each() {
        let url = server.url();
        let run = tokio::task::spawn_blocking(move || stage().arg(url).output());
        let output = run.await.expect("no panic").expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains("0 callers without one"), "{text}");
    }
}

/// The example beside this test, which cargo builds with it; only a lone `--test servers` has to build it first.
fn stage() -> Command {
    let this = std::env::current_exe().expect("this program has a path");
    let target = this.ancestors().nth(2).expect("a target folder");
    let built = target.join("examples/stage");
    if built.exists() {
        return Command::new(built);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "-q", "-p", "kumi-muf", "--example", "stage", "--"]);
    cargo
}
