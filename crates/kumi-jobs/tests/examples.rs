//! The examples run and end well.

use std::process::Command;

/// The example beside this test, which cargo builds with it; only a lone `--test examples` has to build it first.
fn example(name: &str) -> Command {
    let this = std::env::current_exe().expect("this program has a path");
    let target = this.ancestors().nth(2).expect("a target folder");
    let built = target.join("examples").join(name);
    if built.exists() {
        return Command::new(built);
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "-q", "-p", "kumi-jobs", "--example", name]);
    cargo
}

#[test]
fn examples_end_well() {
    for name in ["email", "import", "agent", "digest"] {
        let output = example(name).output().expect(name);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {complaint}");
    }
}
