//! A host program that is killed takes its programs with it, and all that they started.
//!
//! Without the harness of tests, because the shim is this very program, started again: its `main` is the host's.

use kumi_node::programs::{self, Launcher, Output, Program, RestartRule, RunningProgram, Shim};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long processes may take to be gone.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match args.get(1).and_then(|word| word.to_str()) {
        Some("__exec") => return programs::exec(&args[2..]),
        Some("__guard") => return programs::guard(),
        Some("__host") => host(&args[2].to_string_lossy()),
        _ => {
            a_killed_host_leaves_no_process();
            programs_do_not_inherit_what_leads_to_the_hosts_secrets();
        }
    }
    ExitCode::SUCCESS
}

/// Prints what programs write.
struct Printed;

impl Output for Printed {
    fn text(&self, program: &str, text: &[u8]) {
        println!("{program} {}", String::from_utf8_lossy(text));
    }
    fn note(&self, program: &str, line: &str) {
        println!("{program} note: {line}");
    }
}

/// Runs a program until it is killed.
fn host(command: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let this = std::env::current_exe().expect("a path");
        let launcher = Launcher::with_shim(Shim::new(this, "__exec", "__guard"));
        let launcher = launcher.expect("the guard starts");
        let program = Program::new("p", command, &launcher, Arc::new(Printed));
        let _running = RunningProgram::start(program, RestartRule::default());
        std::future::pending::<()>().await;
    });
}

/// A host with these variables that runs a program, and the first line that the program writes.
fn started(command: &str, variables: &[(&str, &str)]) -> (Child, String) {
    let this = std::env::current_exe().expect("a path");
    let mut host = Command::new(this)
        .args(["__host", command])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the host starts");
    let output = host.stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    (host, line)
}

fn programs_do_not_inherit_what_leads_to_the_hosts_secrets() {
    let secret = [
        "KUMI_CLUSTER_KEY_FILE",
        "KUMI_TOKEN_FILE",
        "NOTIFY_SOCKET",
        "CREDENTIALS_DIRECTORY",
    ];
    let variables = secret.map(|name| (name, "/secret"));
    let variables = [&variables[..], &[("PLAIN", "1")]].concat();
    let command = "echo \"$PLAIN $(env | grep /secret)\"; exec sleep 1000";
    let (mut host, line) = started(command, &variables);
    host.kill().expect("SIGKILL");
    host.wait().expect("the host has ended");
    assert_eq!(line, "p 1 \n");
    println!("test programs_do_not_inherit_what_leads_to_the_hosts_secrets ... ok");
}

/// The program ignores SIGTERM and has a process in the background.
fn a_killed_host_leaves_no_process() {
    let command = "trap '' TERM; sleep 1000 & echo $! $$; wait";
    let (mut host, line) = started(command, &[]);
    let pids: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(pids.len(), 2, "{line}");
    assert!(pids.iter().all(|pid| is_running(pid)), "{line}");
    host.kill().expect("SIGKILL");
    host.wait().expect("the host has ended");
    let start = Instant::now();
    while pids.iter().any(|pid| is_running(pid)) {
        assert!(start.elapsed() < LIMIT, "{line} still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("test a_killed_host_leaves_no_process ... ok");
}

/// Whether a process exists and is not only waiting to be reaped.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
