//! What a server leaves behind when it crashes: its report in the log, and files that are whole. And what it logs of clients
//! that leave.

use crate::common::{Process, text};
use rustix::process::Signal;
use std::fs;
use std::os::unix::process::ExitStatusExt;

const SECRET: &str = "a-value-that-is-nobodys-business";

/// A server with an append-only file, debug commands and a log file of its own.
fn start(dir: tempfile::TempDir, more: &[&str]) -> Process {
    let socket = dir.path().join("s");
    let mut args = vec![
        "--port",
        "0",
        "--unixsocket",
        socket.to_str().unwrap(),
        "--enable-debug-command",
        "yes",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ];
    args.extend(more);
    Process::start_in(dir, &args, "Ready to accept connections unix")
}

/// The lines of the log from the one that contains `first` on.
fn from<'l>(log: &'l [String], first: &str) -> &'l [String] {
    let at = log.iter().position(|line| line.contains(first));
    &log[at.unwrap_or_else(|| panic!("no line with {first:?}: {log:#?}"))..]
}

fn has(log: &[String], text: &str) -> bool {
    log.iter().any(|line| line.contains(text))
}

/// Ends a server by a crash, and checks its report and that what it acknowledged is there when it starts again.
fn check(crash: impl FnOnce(&Process), signal: Signal) {
    let mut server = start(tempfile::tempdir().unwrap(), &[]);
    let mut client = server.connect();
    assert_eq!(text(&client.ask(&["SET", "kept", SECRET])), "OK");
    crash(&server);
    let status = server.wait();
    assert_eq!(
        status.signal(),
        Some(signal.as_raw()),
        "the signal ends the process"
    );
    let report = from(&server.log, "=== KUMI CRASH REPORT");
    let crashed = format!(
        "kumi {} (Redis {}) crashed by signal: {}, si_code: ",
        kumi_store::KUMI_VERSION,
        kumi_store::REDIS_VERSION,
        signal.as_raw()
    );
    assert!(has(report, &crashed), "{report:#?}");
    assert!(has(report, "build id: "), "{report:#?}");
    assert!(has(report, "last command: "), "{report:#?}");
    assert!(has(report, "instruction: 0x"), "{report:#?}");
    let addresses = report.iter().filter(|line| line.contains(" stack: 0x"));
    assert!(addresses.count() > 3, "{report:#?}");
    assert!(
        has(report, "=== END OF THE CRASH REPORT ==="),
        "{report:#?}"
    );
    assert!(
        !has(report, SECRET) && !has(report, "# Server"),
        "{report:#?}"
    );

    // The directory outlives the server that crashed in it.
    let empty = tempfile::tempdir().unwrap();
    let dir = std::mem::replace(&mut server.dir, empty);
    let _ = fs::remove_file(dir.path().join("s"));
    let again = start(dir, &[]);
    assert_eq!(text(&again.connect().ask(&["GET", "kept"])), SECRET);
}

#[test]
fn an_access_to_memory_that_is_not_there_leaves_a_report() {
    check(
        |server| {
            let mut client = server.connect();
            client.send("DEBUG SEGFAULT\r\n");
            assert_eq!(client.read_to_end(), b"");
        },
        Signal::SEGV,
    );
}

#[test]
fn every_signal_of_a_crash_leaves_a_report() {
    for signal in [Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL] {
        check(|server| server.signal(signal), signal);
    }
}

#[test]
fn the_report_goes_to_the_log_file_and_can_be_turned_off() {
    for enabled in ["yes", "no"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        let socket = dir.path().join("s");
        let mut server = crate::common::binary()
            .args(["--port", "0", "--unixsocket", socket.to_str().unwrap()])
            .args(["--logfile", path.to_str().unwrap()])
            .current_dir(dir.path())
            .spawn()
            .unwrap();
        crate::common::eventually(
            || fs::read_to_string(&path).unwrap_or_default(),
            |log| log.contains("Ready to accept connections unix"),
        );
        let mut client = crate::common::Client::unix(&socket);
        let set = client.ask(&["CONFIG", "SET", "crash-log-enabled", enabled]);
        assert_eq!(text(&set), "OK");
        let pid = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process(pid, Signal::SEGV).unwrap();
        assert_eq!(server.wait().unwrap().signal(), Some(Signal::SEGV.as_raw()));
        let log = fs::read_to_string(&path).unwrap();
        assert_eq!(
            log.contains("crashed by signal: 11"),
            enabled == "yes",
            "{log}"
        );
        if enabled == "yes" {
            assert!(
                log.contains("last command: config|set with 3 arguments"),
                "{log}"
            );
        }
    }
}

#[test]
fn a_panic_in_a_command_is_reported_and_the_server_goes_on() {
    let mut server = start(tempfile::tempdir().unwrap(), &[]);
    let mut client = server.connect();
    client.ask(&["SET", "kept", SECRET]);
    assert_eq!(
        text(&client.ask(&["DEBUG", "PANIC"])),
        "-ERR internal error"
    );
    assert_eq!(text(&client.ask(&["GET", "kept"])), SECRET);
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let report = from(&server.log, "panic: ");
    assert!(has(report, "DEBUG PANIC was called"), "{report:#?}");
    assert!(has(report, "build id: "), "{report:#?}");
    assert!(
        has(report, "last command: debug with 1 arguments"),
        "{report:#?}"
    );
    assert!(has(report, "stack: 0x"), "{report:#?}");
    assert!(
        has(
            report,
            "a command panicked; its client got an internal error"
        ),
        "{report:#?}"
    );
    assert!(!has(report, SECRET), "{report:#?}");
    assert!(
        !has(report, "# Server"),
        "the server goes on and can be asked: {report:#?}"
    );
}

#[test]
fn a_panic_that_ends_the_server_leaves_a_report_with_info() {
    let mut server = start(tempfile::tempdir().unwrap(), &[]);
    let mut client = server.connect();
    client.ask(&["SET", "kept", SECRET]);
    client.send("DEBUG PANIC IN-CHANGE\r\n");
    assert_eq!(client.read_to_end(), b"");
    assert!(!server.wait().success());
    let report = from(&server.log, "panic: ");
    assert!(
        has(report, "last command: debug with 2 arguments"),
        "{report:#?}"
    );
    let info = from(report, "INFO after the panic");
    assert!(
        has(info, "# Server") && has(info, "used_memory:"),
        "{info:#?}"
    );
    assert!(!has(report, SECRET), "{report:#?}");
    let empty = tempfile::tempdir().unwrap();
    let dir = std::mem::replace(&mut server.dir, empty);
    let _ = fs::remove_file(dir.path().join("s"));
    let again = start(dir, &[]);
    assert_eq!(text(&again.connect().ask(&["GET", "kept"])), SECRET);
}

#[test]
fn an_embedded_server_leaves_the_signals_of_its_program_alone() {
    let builder = kumi_server::Embedded::builder();
    let server = builder.set("enable-debug-command", "yes").start().unwrap();
    let mut client = crate::common::Client::unix(server.path());
    let reply = text(&client.ask(&["DEBUG", "SEGFAULT"]));
    assert!(
        reply.starts_with("-ERR DEBUG SEGFAULT would end a program"),
        "{reply}"
    );
    // The kernel's list of signals with a handler, as bits.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    let abort = 1_u64 << (Signal::ABORT.as_raw() - 1);
    assert_eq!(caught & abort, 0, "nothing handles SIGABRT");
}

#[test]
fn clients_that_leave_are_logged_with_address_reason_and_age() {
    let mut server = start(tempfile::tempdir().unwrap(), &["--loglevel", "verbose"]);
    let mut admin = server.connect();
    for (reason, last) in [
        ("closed by the client", None),
        ("QUIT", Some("QUIT\r\n")),
        ("protocol error", Some("*1\r\n$x\r\n")),
        ("CLIENT KILL", None),
        ("HTTP request", Some("POST / HTTP/1.1\r\n")),
    ] {
        let mut client = server.connect();
        let name = reason.replace(' ', "-");
        client.ask(&["CLIENT", "SETNAME", &name]);
        let id = text(&client.ask(&["CLIENT", "ID"]));
        match last {
            Some(last) => {
                client.send(last);
                client.read_to_end();
            }
            None if reason == "CLIENT KILL" => {
                admin.ask(&["CLIENT", "KILL", "ID", &id]);
            }
            None => drop(client),
        }
        let line = format!("Client closed connection id={id} addr=");
        server.wait_for_log(&line);
        let line = server.log.last().unwrap();
        assert!(line.contains(&format!(" name={name} ")), "{line}");
        assert!(line.contains(" age="), "{line}");
        assert!(line.ends_with(&format!(" reason={reason}")), "{line}");
        assert!(line.contains(" - "), "at verbose: {line}");
    }
    server.signal(Signal::TERM);
    server.wait();
    assert!(
        has(&server.log, "reason=the server stops"),
        "{:#?}",
        server.log
    );
}
