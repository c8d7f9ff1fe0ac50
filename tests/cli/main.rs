//! The `kumi` command as a person or a script meets it: helps, completions, the banner, exit codes.

#[path = "../e2e/node.rs"]
#[expect(dead_code, reason = "the end-to-end tests use more of it")]
mod node;

mod config;
mod nodes;
mod operate;

use node::Node;
use rustix::process::Signal;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn kumi(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kumi"))
        .args(args)
        // Not the state of the user who runs the tests.
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .output()
        .expect("kumi is built")
}

/// Standard output of a run that has to succeed.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = kumi(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Checks the exit code, that nothing but one line is said, and that it holds each text.
#[track_caller]
fn fails(args: &[&str], code: i32, texts: &[&str]) {
    let output = kumi(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert_eq!(output.stdout, b"", "{args:?}");
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    for text in texts {
        assert!(error.contains(text), "{args:?}: no {text:?} in {error:?}");
    }
}

#[test]
fn the_version_is_one_line() {
    let line = format!("kumi {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed(&["--version"]), line);
    assert_eq!(printed(&["-V"]), line);
}

#[test]
fn the_short_help_fits_a_screen_and_the_long_one_tells_all() {
    let short = printed(&["-h"]);
    // A line for each command, and the few options that are used most.
    assert!(short.lines().count() <= 40, "{short}");
    for word in [
        "up",
        "server",
        "completions",
        "--port",
        "--join",
        "--redis-conf",
    ] {
        assert!(short.contains(word), "no {word} in {short}");
    }
    let long = printed(&["--help"]);
    for text in [
        "Examples:",
        "kumi up --port 7000",
        "Exit codes:",
        "  3  an address",
    ] {
        assert!(long.contains(text), "no {text} in {long}");
        assert!(!short.contains(text), "{text} in {short}");
    }
    assert!(printed(&["help", "up"]).contains("Exit codes:"));
    assert!(printed(&["completions", "--help"]).contains("bash"));
}

#[test]
fn every_shell_has_a_completion_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("completions"), "{shell}: {script}");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let script = printed(&["completions", "bash"]);
    let complete = |words: &str, index: usize| {
        let line = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={index}\n\
             _kumi kumi \"${{COMP_WORDS[$COMP_CWORD]}}\" kumi; echo \"${{COMPREPLY[@]}}\""
        );
        // As a file: the script is longer than one argument may be.
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(line.as_bytes()).expect("a temporary file");
        let output = Command::new("bash").arg("--norc").arg(file.path()).output();
        String::from_utf8(output.expect("bash is there").stdout).expect("text")
    };
    assert_eq!(complete("kumi comp", 1), "completions\n");
    assert_eq!(complete("kumi up --po", 2), "--port\n");
    assert_eq!(complete("kumi completions z", 2), "zsh\n");
    assert_eq!(complete("kumi muf call --id", 3), "--idle\n");
    assert_eq!(complete("kumi muf call --qui", 3), "\n");
    assert_eq!(complete("kumi jobs counts --qu", 3), "--queue\n");
}

#[test]
fn nonsense_on_the_command_line_exits_with_2() {
    for args in [
        &["down"][..],
        &["up", "--port", "x"],
        &["--set", "maxmemory"],
        &["completions", "tcsh"],
    ] {
        let output = kumi(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    fails(&["up", "--port", "0"], 2, &["--port", "--unixsocket"]);
}

#[test]
fn a_taken_port_is_one_clear_line_and_exits_with_3() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it is bound").port();
    let address = format!("127.0.0.1:{port}");
    let next = format!("kumi up --port {}", port.checked_add(1).unwrap_or(6380));
    fails(
        &["up", "--port", &port.to_string()],
        3,
        &[&address, "taken", &next],
    );
    fails(&["-p", &port.to_string()], 3, &[&address]);
}

#[test]
fn a_configuration_that_cannot_be_followed_exits_with_4() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, text).expect("a writable directory");
        path.to_str().expect("a plain path").to_owned()
    };
    let unknown = file("unknown.conf", "port 7000\n# fine\nprot 7001\n");
    fails(
        &["up", "--redis-conf", &unknown],
        4,
        &[&unknown, "line 3", "prot 7001"],
    );
    let refused = file("refused.conf", "cluster-enabled yes\n");
    fails(
        &["up", "--redis-conf", &refused],
        4,
        &["line 1", "cluster-enabled yes"],
    );
    let including = file("including.conf", &format!("include {refused}\n"));
    fails(
        &["up", "--redis-conf", &including],
        4,
        &[&refused, "line 1"],
    );
    fails(
        &["up", "--redis-conf", "/no/such.conf"],
        4,
        &["/no/such.conf", "No such file"],
    );
    fails(
        &["up", "--set", "nosuch=1"],
        4,
        &["'nosuch'", "no such directive"],
    );
    fails(&["up", "--set", "maxmemory=lots"], 4, &["'maxmemory'"]);
}

#[test]
fn any_other_failure_exits_with_1() {
    // An address of the documentation range, which no machine has.
    fails(
        &["up", "--bind", "192.0.2.1", "-p", "7000"],
        1,
        &["192.0.2.1:7000"],
    );
    fails(
        &["up", "--set", "dir=/no/such/directory"],
        1,
        &["/no/such/directory"],
    );
}

#[test]
fn a_node_stops_cleanly_when_asked() {
    for signal in [Signal::INT, Signal::TERM] {
        let node = Node::start(&[]);
        let socket = node.socket();
        assert_eq!(node.stop(signal).code(), Some(0), "{signal:?}");
        assert!(!socket.exists(), "{signal:?} left the socket file");
    }
    let node = Node::start(&[]);
    node.cli("SHUTDOWN");
    assert_eq!(node.ended().code(), Some(0));
}

#[test]
fn a_node_whose_engine_panics_exits_with_1() {
    let node = Node::start(&["--set", "enable-debug-command=yes"]);
    // The client is disconnected: nothing is replied.
    assert_eq!(node.cli("DEBUG PANIC IN-CHANGE"), "");
    assert_eq!(node.ended().code(), Some(1));
}

#[test]
fn the_banners_lines_can_be_pasted() {
    let banner = paste_the_banner(&[]);
    assert!(banner.contains("127.0.0.1:"), "{banner}");
    assert!(!banner.contains("0.0.0.0"), "{banner}");
}

#[test]
fn a_node_with_tls_is_reached_by_the_banners_lines_and_keeps_its_authority() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let directory = home.path().join("tls");
    let path = directory.to_str().expect("a plain path");
    let banner = paste_the_banner(&["--tls", "--tls-dir", path]);
    assert!(banner.contains("(TLS)"), "{banner}");
    let authority = || std::fs::read(directory.join("ca.pem")).expect("it was made");
    let before = authority();
    paste_the_banner(&["--tls", "--tls-dir", path]);
    assert_eq!(authority(), before);
}

/// Starts a node, runs the commands of its banner, and returns the banner.
fn paste_the_banner(args: &[&str]) -> String {
    let (mut child, banner) = start_on_a_free_port(args);
    let commands = banner.lines().filter_map(|line| {
        let at = line.find("redis-cli")?;
        Some(line[at..].to_owned())
    });
    let mut replies = Vec::new();
    for command in commands {
        let output = Command::new("sh").args(["-c", &command]).output();
        let output = output.expect("there is a shell");
        replies.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(replies, ["OK\n", "world\n"], "{banner}");
    banner
}

#[test]
fn a_node_listens_on_both_loopback_addresses() {
    use std::io::{Read, Write};
    if TcpListener::bind("[::1]:0").is_err() {
        // A machine without IPv6: the address is optional, and the other tests show that a node starts.
        return;
    }
    let (mut child, banner) = start_on_a_free_port(&[]);
    let mut replies = Vec::new();
    for address in banner.split_whitespace() {
        let Ok(address) = address.parse::<std::net::SocketAddr>() else {
            continue;
        };
        let mut stream = std::net::TcpStream::connect(address).expect("the node listens");
        stream.write_all(b"PING\r\n").expect("it reads");
        let mut reply = [0; 7];
        stream.read_exact(&mut reply).expect("it replies");
        replies.push((address.ip().to_string(), reply));
    }
    let _ = child.kill();
    let _ = child.wait();
    let pong = *b"+PONG\r\n";
    let expected = [("127.0.0.1".to_owned(), pong), ("::1".to_owned(), pong)];
    assert_eq!(replies, expected, "{banner}");
}

/// A node with a TCP port, and its banner. Somebody may take the port between the look and the start; then another
/// one is tried.
fn start_on_a_free_port(args: &[&str]) -> (std::process::Child, String) {
    use std::io::{BufRead, BufReader};
    for _ in 0..10 {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["--port", &port.to_string(), "--ephemeral"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let mut banner = String::new();
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.expect("text");
            banner += &format!("{line}\n");
            if line.contains("ctrl-c") {
                return (child, banner);
            }
        }
        let status = child.wait().expect("it is our child");
        assert_eq!(status.code(), Some(3), "{banner}");
    }
    panic!("ten free ports were taken");
}

#[test]
fn options_win_over_the_file_and_the_file_over_defaults() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().join("node.conf");
    std::fs::write(&path, "timeout 5\nmaxmemory 1mb\ndatabases 4\n").expect("a writable directory");
    let path = path.to_str().expect("a plain path");
    let node = Node::start(&[
        "--redis-conf",
        path,
        "--set",
        "timeout=7",
        "--set",
        "maxmemory=2mb",
    ]);
    node.check(&[
        ("CONFIG GET timeout", "1) \"timeout\"\n2) \"7\""),
        ("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"2097152\""),
        ("CONFIG GET databases", "1) \"databases\"\n2) \"4\""),
        ("CONFIG GET bind", "1) \"bind\"\n2) \"127.0.0.1 -::1\""),
        ("SELECT 4", "(error) ERR DB index is out of range"),
    ]);
}

#[test]
fn server_takes_what_redis_server_takes() {
    assert!(printed(&["server", "--version"]).starts_with("Redis server v=7.2."));
    assert!(printed(&["server", "-v"]).starts_with("Redis server v=7.2."));
    assert!(printed(&["server", "--help"]).contains("redis.conf"));
    for args in [
        &["server", "--nosuch", "1"][..],
        &["server", "/no/such.conf"],
        &["server", "--port", "x"],
    ] {
        assert_eq!(kumi(args).status.code(), Some(1), "{args:?}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let output = kumi(&["server", "--bind", "127.0.0.1", "--port", &port]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn server_serves_as_kumi_server_does() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let socket = home.path().join("server.sock");
    let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
        .args(["server", "--port", "0", "--unixsocket"])
        .arg(&socket)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kumi is built");
    wait_for_line(&mut child, "Ready to accept connections");
    let reply = node::output(
        Command::new("redis-cli").arg("-s").arg(&socket).arg("PING"),
        b"",
    );
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(reply, "PONG\n");
    assert!(
        Path::new(&socket).exists(),
        "a killed server cannot tidy up"
    );
}

fn wait_for_line(child: &mut std::process::Child, text: &str) {
    use std::io::{BufRead, BufReader};
    let stdout = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains(text)),
        "it ended without {text:?}"
    );
}

#[test]
fn a_node_keeps_its_data_unless_it_is_ephemeral() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let socket = home.path().join("s");
    let run = |options: &[&str], line: &str| -> (String, String) {
        use std::io::{BufRead, BufReader};
        let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["up", "--port", "0", "--unixsocket"])
            .arg(&socket)
            .args(options)
            .env("XDG_STATE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let mut banner = String::new();
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            banner += &format!("{}\n", line.expect("text"));
            if banner.contains("ctrl-c") {
                break;
            }
        }
        let mut client = Command::new("redis-cli");
        client.arg("-s").arg(&socket).args(line.split(' '));
        let reply = node::output(&mut client, b"");
        let _ = child.kill();
        let _ = child.wait();
        (banner, reply)
    };
    let (banner, reply) = run(&[], "set a 1");
    assert_eq!(reply, "OK\n", "{banner}");
    let id = |banner: &str| {
        let mut words = banner
            .split_whitespace()
            .skip_while(|&word| word != "store");
        words.find(|word| word.len() == 33).map(str::to_owned)
    };
    let first = id(&banner).expect("the id of the store");
    let (banner, reply) = run(&[], "get a");
    assert_eq!(
        (reply.as_str(), id(&banner)),
        ("1\n", Some(first)),
        "{banner}"
    );
    let instance = std::fs::read_dir(home.path().join("kumi"))
        .expect("its state")
        .next();
    let store = instance
        .expect("one")
        .expect("readable")
        .path()
        .join("store");
    assert!(store.join("appendonlydir/appendonly.aof.manifest").exists());
    let (banner, reply) = run(&["--ephemeral"], "get a");
    assert_eq!(reply, "\n");
    assert!(banner.contains("everything in memory"), "{banner}");
    let other = home.path().join("other");
    let (banner, reply) = run(&["--dir", other.to_str().expect("a plain path")], "get a");
    assert_eq!(reply, "\n");
    assert!(
        banner.contains(other.to_str().expect("a plain path")),
        "{banner}"
    );
    let other = other.to_str().expect("a plain path");
    let (banner, _) = run(&["--dir", other, "--set", "appendonly=no"], "ping");
    assert!(banner.contains("not saved by itself"), "{banner}");

    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let checked = kumi(&["check-aof", &text(&store.join("appendonlydir"))]);
    assert!(checked.status.success(), "{checked:?}");
    let increment = store.join("appendonlydir/appendonly.aof.1.incr.aof");
    let mut bytes = std::fs::read(&increment).expect("the increment");
    let good = bytes.len();
    bytes.extend_from_slice(b"*1\r\n$4\r\nPI");
    std::fs::write(&increment, &bytes).expect("it can be written");
    fails_saying(
        &["check-aof", &text(&store.join("appendonlydir"))],
        &format!("at byte {good} of"),
    );
    let fixed = kumi(&[
        "check-aof",
        "--fix",
        &text(&store.join("appendonlydir/appendonly.aof.manifest")),
    ]);
    assert!(fixed.status.success(), "{fixed:?}");
    assert_eq!(std::fs::read(&increment).expect("it is there").len(), good);
    let base = text(&store.join("appendonlydir/appendonly.aof.1.base.rdb"));
    assert!(kumi(&["check-rdb", &base]).status.success());
    std::fs::write(&base, b"REDIS0010\xfa").expect("it can be written");
    fails_saying(&["check-rdb", &base], "damaged");
}

/// A check that finds something ends with 1 and says what.
#[track_caller]
fn fails_saying(args: &[&str], expected: &str) {
    let output = kumi(args);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(expected), "{text} lacks {expected}");
}
