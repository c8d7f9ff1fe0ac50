//! The wire tests are right about Redis: what they demand of everyone holds for redis-server and for kumi-server.
//!
//! `KUMI_SERVER` names a built kumi-server; `workshop/ci.sh` sets it.

use std::path::{Path, PathBuf};

use crate::common::{Other, scratch};
use course::lang::Lang;
use course::runner::{self, Options, Target};

fn check(name: &str, program: &Path, arguments: &[&str]) {
    let server = Other::start(program, arguments, &scratch(name));
    let options = Options { steps: vec![1, 2, 3, 4, 6, 7], seed: 7, lang: Lang::En };
    let mut lines = Vec::new();
    let outcome = runner::run(&Target::Running(server.address), &options, |line| lines.push(line.to_string()));
    let said = lines.join("\n");
    assert!(outcome.expect("it runs").red.is_none(), "{name}:\n{said}");
    assert!(said.contains("(course only: skipped)"), "{said}");
}

#[test]
fn redis_server_passes() {
    check("redis-server", Path::new("redis-server"), &["--save", ""]);
}

#[test]
fn kumi_server_passes() {
    let program = std::env::var_os("KUMI_SERVER").map(PathBuf::from);
    let program =
        program.expect("KUMI_SERVER names no kumi-server: run workshop/ci.sh, or `cargo build -p kumi-server` first");
    check("kumi-server", &program, &["--save", ""]);
}
