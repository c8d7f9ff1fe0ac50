//! Other programs that tests need, as processes that can be killed: this test program itself, started again with a role.
//!
//! So nothing has to be built beforehand, and what is tested is what was compiled just now. A child ends when its
//! standard input does: not even a killed test leaves one behind.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};

use kumi_muf::{Muf, Request};

const ROLE: &str = "KUMI_MUF_TEST_ROLE";
const ARGUMENTS: &str = "KUMI_MUF_TEST_ARGUMENTS";

/// A program that plays a role. It says what it has to say on its standard output.
pub(crate) fn program(role: &str, arguments: &[&str]) -> Command {
    let this = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(this);
    command
        .args(["--exact", "children::a_child_plays_its_role", "--nocapture"])
        .env(ROLE, role)
        .env(ARGUMENTS, arguments.join("\n"));
    command
}

#[test]
fn a_child_plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else {
        let mut child = program("server", &["--version"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        // It ends when its input does, and has to say its version before that.
        let input = child.stdin.take();
        let version = child.wait_with_output().expect("a child");
        drop(input);
        let said = String::from_utf8_lossy(&version.stdout).into_owned();
        assert!(said.contains("Redis server v="), "{said}");
        assert!(version.status.success());
        return;
    };
    let arguments = std::env::var(ARGUMENTS).expect("arguments");
    let arguments: Vec<String> = arguments.split('\n').map(str::to_owned).collect();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    match role.as_str() {
        "server" => serve_redis(arguments),
        "hanging-backend" => hang(&arguments[0], &arguments[1]),
        other => panic!("there is no role {other}"),
    }
}

/// kumi-server, with its own arguments.
fn serve_redis(arguments: Vec<String>) {
    let arguments = arguments.into_iter().map(Into::into);
    let ended = kumi_server::main_from_args(arguments);
    std::process::exit(i32::from(ended != ExitCode::SUCCESS));
}

/// A backend of `a.b` that begins every request and finishes none. It says `serving`, then `began` for each.
fn hang(url: &str, unit: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let muf = Muf::connect(url, unit).await.expect("a unit");
        let begin = |_: Request| {
            println!("began");
            std::future::pending::<Result<(), String>>()
        };
        muf.serve("a.b", begin).await.expect("a service");
        println!("serving");
        std::future::pending::<()>().await;
    });
}
