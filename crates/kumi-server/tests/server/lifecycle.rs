//! Starting, stopping and talking to the operator: arguments, files, logs, signals.

use crate::common::{
    Client, Process, TEST_TIMEOUT, binary, eventually, free_port, request, run_to_end, text,
    with_outward_address,
};
use rustix::process::{Pid, Signal};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

fn write(dir: &TempDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_version_line_is_one_that_tools_read() {
    for flag in ["-v", "--version"] {
        let (code, out, err) = run_to_end(&[flag]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let version = out
            .split("v=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        assert!(out.starts_with("Redis server v=7.2."), "{out}");
        assert_eq!(version, Some(kumi_store::REDIS_VERSION));
        for part in ["sha=", "malloc=mimalloc", "bits=64", "build=", "kumi="] {
            assert!(out.contains(part), "{out} lacks {part}");
        }
        assert_eq!(out.lines().count(), 1);
    }
}

#[test]
fn help_is_short_and_names_the_usage() {
    for flag in ["-h", "--help"] {
        let (code, out, _) = run_to_end(&[flag]);
        assert_eq!(code, Some(0));
        assert!(out.starts_with("Usage: kumi-server"), "{out}");
    }
}

#[test]
fn modes_that_do_not_exist_are_refused_in_so_many_words() {
    for (args, word) in [
        (&["--test-memory", "100"][..], "test memory"),
        (&["--check-system"], "system check"),
        (&["sentinel.conf", "--sentinel"], "sentinel"),
    ] {
        let (code, _, err) = run_to_end(args);
        assert_eq!(code, Some(1));
        assert!(err.contains(word), "{err}");
    }
}

#[test]
fn a_wrong_line_is_named_with_its_file_and_number() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let file = write(&dir, "kumi.conf", text);
        let (code, _, err) = run_to_end(&[&file]);
        assert_eq!(code, Some(1), "{err}");
        for part in expected {
            assert!(err.contains(part), "{err} lacks {part}");
        }
    }
    check(
        "port 0\n\n# a comment\nno-such-thing 1\n",
        &["line 4", "kumi.conf", "no-such-thing 1"],
    );
    check("port 70000\n", &["line 1", "port 70000"]);
    check("port 0\ncluster-enabled yes\n", &["line 2", "Cluster"]);
    check("logfile \"open\n", &["line 1", "quotes"]);
    check("include nowhere.conf\n", &["line 1", "nowhere.conf"]);
}

#[test]
fn a_missing_file_and_an_unknown_flag_exit_with_1() {
    let (code, _, err) = run_to_end(&["/nowhere/kumi.conf"]);
    assert_eq!(code, Some(1));
    assert_eq!(
        err,
        "Fatal error, can't open config file '/nowhere/kumi.conf': No such file or directory (os error 2)\n"
    );
    let (code, _, err) = run_to_end(&["--port", "0", "--frobnicate", "yes"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("frobnicate"), "{err}");
}

#[test]
fn a_taken_port_is_named_with_the_reason_and_exit_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, out, err) = run_to_end(&["--port", &port, "--loglevel", "warning"]);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    let expected = format!("# Could not listen on 127.0.0.1:{port}: Address already in use");
    assert!(out.contains(&expected), "{out}");
    let last = format!("# Failed listening on port {port} (tcp), aborting.\n");
    assert!(out.ends_with(&last), "{out}");
    assert_eq!(out.lines().count(), 2);

    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let args = ["--port", &port, "--logfile", log.to_str().unwrap()];
    let (code, out, err) = run_to_end(&args);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("Could not listen on"),
        "standard error has it too: {err}"
    );
    assert!(fs::read_to_string(log).unwrap().contains(&expected));
}

#[test]
fn a_server_that_listens_nowhere_does_not_start() {
    let (code, out, _) = run_to_end(&["--port", "0"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("not listen anywhere"), "{out}");
}

#[test]
fn a_panic_inside_a_change_stops_the_server_and_says_so() {
    let mut server = Process::start(&["--enable-debug-command", "yes"]);
    let mut client = server.connect();
    client.send("DEBUG PANIC\r\n");
    client.expect("-ERR internal error\r\n");
    client.send("DEBUG PANIC IN-CHANGE\r\n");
    assert_eq!(server.wait().code(), Some(1));
    let said = "the engine panicked in the middle of a change";
    assert!(
        server.log.iter().any(|line| line.contains(said)),
        "{:#?}",
        server.log
    );
}

#[test]
fn log_lines_have_redis_shape() {
    let server = Process::start(&[
        "--daemonize",
        "yes",
        "--activerehashing",
        "yes",
        "--save",
        "",
    ]);
    let pid = server.child.id();
    for line in &server.log {
        let rest = line.strip_prefix(&format!("{pid}:M ")).unwrap();
        let parts: Vec<&str> = rest.splitn(6, ' ').collect();
        let [day, month, year, time, mark, message] = parts[..] else {
            panic!("{line}");
        };
        assert!(day.len() == 2 && day.parse::<u8>().is_ok(), "{line}");
        assert!(month.len() == 3 && year.len() == 4, "{line}");
        assert!(time.len() == 12 && &time[8..9] == ".", "{line}");
        assert!([".", "-", "*", "#"].contains(&mark), "{line}");
        assert!(!message.is_empty(), "{line}");
    }
    let inert: Vec<&String> = server
        .log
        .iter()
        .filter(|line| line.contains("no effect"))
        .collect();
    assert_eq!(
        inert.len(),
        1,
        "one warning, for what was asked and is not done: {inert:?}"
    );
    assert!(inert[0].contains("# 'daemonize yes'"), "{inert:?}");
    assert!(
        server
            .log
            .iter()
            .any(|line| line.ends_with("* Running mode=standalone, port=0."))
    );
}

#[test]
fn saved_data_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let path_text = path.to_str().unwrap();
    let args = ["--port", "0", "--unixsocket", "s", "--dir", path_text];
    let ready = "Ready to accept connections unix";
    let server = Process::start_in(dir, &args, ready);
    assert_eq!(server.connect().line("SET a 1"), "OK");
    assert_eq!(server.connect().line("SAVE"), "OK");
    assert_eq!(server.connect().line("SET b 2"), "OK");
    server.connect().send("SHUTDOWN SAVE\r\n");
    eventually(|| path.join("s").exists(), |exists| !exists);
    let files: Vec<_> = fs::read_dir(&path).unwrap().collect();
    assert_eq!(files.len(), 1, "only the RDB file is left: {files:?}");

    let again = tempfile::tempdir().unwrap();
    let restarted = Process::start_in(again, &args, ready);
    let mut client = Client::unix(&path.join("s"));
    assert_eq!(client.line("GET b"), "2");
    assert_eq!(client.line("DBSIZE"), "2");
    for expected in [
        "* Loading RDB produced by version 7.",
        "* RDB age ",
        "* RDB memory usage when created ",
        "* Done loading RDB, keys loaded: 2, keys expired: 0.",
        "* DB loaded from disk: ",
    ] {
        let told = restarted.log.iter().any(|line| line.contains(expected));
        assert!(told, "{expected}: {:#?}", restarted.log);
    }
    drop(restarted);

    let file = path.join("dump.rdb");
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(bytes.len() - 3);
    fs::write(&file, bytes).unwrap();
    let refused = binary()
        .args(["--port", "0", "--unixsocket", "s", "--dir", path_text])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stdout);
    assert!(
        said.contains("dump.rdb cannot be loaded: at byte"),
        "{said}"
    );
}

#[test]
fn both_kinds_of_listener_announce_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let port_text = port.to_string();
    let args = [
        "--port",
        &port_text,
        "--unixsocket",
        "s",
        "--unixsocketperm",
        "750",
    ];
    let server = Process::start_in(dir, &args, "Ready to accept connections unix");
    let tcp = |line: &String| line.ends_with("* Ready to accept connections tcp");
    assert!(server.log.iter().any(tcp));
    assert_eq!(Client::tcp(port).line("PING"), "PONG");
    assert_eq!(server.connect().line("PING"), "PONG");
    let mode = fs::metadata(server.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn a_stale_socket_file_is_replaced_and_another_file_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let args = ["--port", "0", "--unixsocket", "s"];
    let server = Process::start_in(dir, &args, "Ready to accept connections unix");
    assert_eq!(server.connect().line("PING"), "PONG");

    let dir = tempfile::tempdir().unwrap();
    let precious = write(&dir, "precious", "data");
    let (code, out, _) = run_to_end(&["--port", "0", "--unixsocket", &precious]);
    assert_eq!(code, Some(1));
    assert!(out.contains("precious"), "{out}");
    assert_eq!(fs::read_to_string(precious).unwrap(), "data");
}

#[test]
fn sigterm_and_sigint_end_the_server_with_everything_answered() {
    for signal in [Signal::TERM, Signal::INT] {
        const LEN: usize = 8 * 1024 * 1024;
        let mut server = Process::start(&["--pidfile", "pid"]);
        let pid = fs::read_to_string(server.dir.path().join("pid")).unwrap();
        assert_eq!(pid, format!("{}\n", server.child.id()));
        let mut client = server.connect();
        client.send(request(&[b"SET".as_slice(), b"big", &vec![b'x'; LEN]]));
        client.expect("+OK\r\n");
        // More than a socket holds, so most of it is still with the server when the signal comes.
        client.send("GET big\r\n");
        let mut other = server.connect();
        assert_eq!(other.line("STRLEN big"), LEN.to_string());
        server.signal(signal);
        server.wait_for_log("scheduling shutdown");
        let answer = client.read_to_end();
        assert_eq!(answer.len(), LEN + format!("${LEN}\r\n\r\n").len());
        assert_eq!(server.wait().code(), Some(0), "{:#?}", server.log);
        assert!(server.log.last().unwrap().contains("bye bye"));
        assert!(!server.socket().exists());
        assert!(!server.dir.path().join("pid").exists());
    }
}

#[test]
fn systemd_is_told_when_the_server_is_ready_and_when_it_stops() {
    for mode in ["systemd", "auto"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let supervisor = UnixDatagram::bind(&path).unwrap();
        supervisor.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let heard = || {
            let mut state = [0; 200];
            let len = supervisor.recv(&mut state).unwrap();
            String::from_utf8_lossy(&state[..len]).into_owned()
        };
        let socket = dir.path().join("s");
        let mut child = binary()
            .args(["--port", "0", "--supervised", mode, "--unixsocket"])
            .arg(&socket)
            .env("NOTIFY_SOCKET", &path)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(heard().starts_with("READY=1\n"));
        let info = Client::unix(&socket).line("INFO server");
        assert!(info.contains("process_supervised:systemd"), "{info}");
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(heard(), "STOPPING=1\n");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    // Asked for without a supervisor: the server logs that and runs.
    let server = Process::start(&["--supervised", "systemd"]);
    let warned = |line: &String| line.contains("NOTIFY_SOCKET is not set");
    assert!(server.log.iter().any(warned), "{:#?}", server.log);
}

#[test]
fn a_stop_by_a_signal_can_be_aborted_while_periodic_work_is_paused() {
    let mut server = Process::start(&["--enable-debug-command", "yes", "--save", ""]);
    let mut client = server.connect();
    let nothing = "-ERR No shutdown in progress.";
    assert_eq!(client.line("SHUTDOWN ABORT"), nothing);
    assert_eq!(client.line("DEBUG PAUSE-CRON 1"), "OK");
    server.signal(Signal::TERM);
    server.wait_for_log("scheduling shutdown");
    eventually(
        || client.line("SHUTDOWN ABORT"),
        |reply| {
            assert!(reply == "OK" || reply == nothing, "{reply}");
            reply == "OK"
        },
    );
    server.wait_for_log("Shutdown manually aborted");
    assert_eq!(client.line("SHUTDOWN ABORT"), nothing);
    assert_eq!(client.line("DEBUG PAUSE-CRON 0"), "OK");
    assert_eq!(client.line("PING"), "PONG");
    // Without the abort it stops as soon as periodic work goes on.
    assert_eq!(client.line("DEBUG PAUSE-CRON 1"), "OK");
    server.signal(Signal::TERM);
    server.wait_for_log("scheduling shutdown");
    assert_eq!(client.line("PING"), "PONG");
    assert_eq!(client.line("DEBUG PAUSE-CRON 0"), "OK");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn an_alarm_leaves_a_line_in_the_log() {
    let mut server = Process::start(&[]);
    server.signal(Signal::ALARM);
    server.wait_for_log("Received SIGALRM");
    assert_eq!(server.connect().line("PING"), "PONG");
}

#[test]
fn the_start_is_in_the_log_as_scripts_wait_for_it() {
    let server = Process::start(&["--always-show-logo", "yes"]);
    let pid = format!(" PID: {}", server.child.id());
    let place = |text: &str| server.log.iter().position(|line| line.contains(text));
    let (pid, initialized) = (place(&pid), place("Server initialized"));
    assert!(pid.is_some() && pid < initialized, "{:#?}", server.log);
    assert!(!server.log.iter().any(|line| line.contains("no effect")));
}

#[test]
fn requests_that_arrived_before_the_signal_are_answered() {
    let mut server = Process::start(&[]);
    let mut client = server.connect();
    client.send(request(&["INCR", "n"]).repeat(1000));
    server.signal(Signal::TERM);
    let replies: String = (1..=1000).map(|n| format!(":{n}\r\n")).collect();
    assert_eq!(String::from_utf8(client.read_to_end()).unwrap(), replies);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_second_sigint_does_not_wait_for_a_client_that_does_not_read() {
    let mut server = Process::start(&[]);
    let mut deaf = server.connect();
    let value = vec![b'x'; 8 * 1024 * 1024];
    deaf.send(request(&[b"SET".as_slice(), b"big", &value]));
    deaf.expect("+OK\r\n");
    deaf.send("GET big\r\n");
    let mut other = server.connect();
    assert_eq!(other.line("EXISTS big"), "1");
    server.signal(Signal::TERM);
    server.wait_for_log("User requested shutdown");
    // A supervisor that repeats its signal loses nothing.
    server.signal(Signal::TERM);
    server.wait_for_log("Received SIGTERM again");
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(1));
    assert!(server.log.iter().any(|line| line.contains("You insist")));
}

#[test]
fn a_client_that_does_not_read_delays_the_end_by_seconds_at_most() {
    let mut server = Process::start(&[]);
    let mut deaf = server.connect();
    let value = vec![b'x'; 8 * 1024 * 1024];
    deaf.send(request(&[b"SET".as_slice(), b"big", &value]));
    deaf.expect("+OK\r\n");
    deaf.send("GET big\r\n");
    assert_eq!(server.connect().line("EXISTS big"), "1");
    let start = std::time::Instant::now();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn sighup_is_ignored() {
    let mut server = Process::start(&[]);
    server.signal(Signal::HUP);
    assert_eq!(server.connect().line("PING"), "PONG");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn the_file_the_input_and_the_flags_are_read_in_that_order() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("conf.d")).unwrap();
    write(&dir, "conf.d/1.conf", "requirepass one\ntimeout 11\n");
    write(&dir, "conf.d/2.conf", "requirepass two\n");
    let file = write(
        &dir,
        "kumi.conf",
        "port 0\nunixsocket wrong\nrequirepass none\ninclude conf.d/*.conf\n",
    );
    let mut child = binary()
        .args([&file, "--unixsocket", "s", "-"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"unixsocket wrong-too\nmaxclients 7\n")
        .unwrap();
    drop(stdin);
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("Ready to accept connections unix") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert!(read > 0, "it did not start");
    }
    let mut client = Client::unix(&dir.path().join("s"));
    assert_eq!(client.line("AUTH two"), "OK");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn files_that_include_one_another_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a.conf");
    let b = dir.path().join("b.conf");
    fs::write(&a, format!("port 0\ninclude {}\n", b.display())).unwrap();
    fs::write(&b, format!("include {}\n", a.display())).unwrap();
    let (code, _, err) = run_to_end(&[a.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(err.contains("include one another"), "{err}");
}

#[test]
fn debians_own_file_loads() {
    let debian = Path::new("/etc/redis/redis.conf");
    let Ok(text) = fs::read_to_string(debian) else {
        eprintln!(
            "{} is not there: install redis-server to run this",
            debian.display()
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir, "redis.conf", &text);
    let port = free_port();
    let port_text = port.to_string();
    let args = [
        &file,
        "--port",
        &port_text,
        "--dir",
        ".",
        "--logfile",
        "",
        "--pidfile",
        "pid",
        "--bind",
        "127.0.0.1",
    ];
    let server = Process::start_in(dir, &args, "Ready to accept connections tcp");
    assert_eq!(Client::tcp(port).line("PING"), "PONG");
    drop(server);
}

#[test]
fn the_log_goes_where_logfile_says_and_survives_a_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = binary()
        .args([
            "--port",
            "0",
            "--unixsocket",
            "s",
            "--logfile",
            "log",
            "--loglevel",
            "verbose",
        ])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (log, socket) = (dir.path().join("log"), dir.path().join("s"));
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    eventually(|| read(&log), |log| log.contains("Ready to accept"));
    let moved = dir.path().join("log.1");
    fs::rename(&log, &moved).unwrap();
    assert_eq!(Client::unix(&socket).line("PING"), "PONG");
    let after = eventually(|| read(&log), |log| log.contains("Accepted"));
    assert!(
        after.contains(" - Accepted"),
        "verbose has its mark: {after}"
    );
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout.is_empty(), "nothing on the terminal");
}

#[test]
fn bind_takes_several_addresses_and_passes_over_optional_ones() {
    let port = free_port();
    let text = port.to_string();
    // 203.0.113.0/24 is set aside for documentation: no machine has it.
    let bind = ["127.0.0.1", "127.0.0.2", "-203.0.113.1", "-::1"].join(" ");
    let args = ["--port", &text, "--bind", &bind];
    let dir = tempfile::tempdir().unwrap();
    let _server = Process::start_in(dir, &args, "Ready to accept connections tcp");
    assert_eq!(Client::tcp(port).line("PING"), "PONG");
    let stream = std::net::TcpStream::connect(("127.0.0.2", port)).unwrap();
    assert_eq!(Client::new(stream).line("PING"), "PONG");

    let (code, out, _) = run_to_end(&["--port", &text, "--bind", "203.0.113.1"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("Could not listen on 203.0.113.1"), "{out}");
}

#[test]
fn protected_mode_refuses_clients_that_are_not_local() {
    with_outward_address(
        "lifecycle::protected_mode_refuses_clients_that_are_not_local",
        |outward| {
            let port = free_port();
            let port_text = port.to_string();
            let start_in = |dir: TempDir, extra: &[&str]| {
                let mut args = vec!["--port", &port_text, "--bind", "*"];
                args.extend(extra);
                Process::start_in(dir, &args, "Ready to accept connections tcp")
            };
            let start = |extra: &[&str]| start_in(tempfile::tempdir().unwrap(), extra);
            let outside = || Client::new(std::net::TcpStream::connect((outward, port)).unwrap());
            let refused = || {
                let answer = String::from_utf8(outside().read_to_end()).unwrap();
                assert!(
                    answer.starts_with("-DENIED Redis is running in protected mode"),
                    "{answer}"
                );
                assert!(
                    answer.ends_with("\r\n") && answer.matches('\n').count() == 1,
                    "{answer}"
                );
            };

            let server = start(&[]);
            refused();
            let mut local = Client::tcp(port);
            assert_eq!(local.line("PING"), "PONG");
            let say = |client: &mut Client<_>, line: &str| {
                let words: Vec<&str> = line.split(' ').map(|word| word.trim_matches('"')).collect();
                text(&client.ask(&words))
            };
            // A password of the default user opens the door, whoever sets it, and its end closes it.
            for (opens, closes) in [
                (
                    "ACL SETUSER default resetpass >secret",
                    "ACL SETUSER default nopass",
                ),
                (
                    "CONFIG SET requirepass secret",
                    "ACL SETUSER default nopass",
                ),
                (
                    "CONFIG SET requirepass other",
                    "CONFIG SET requirepass \"\"",
                ),
                // Without a password and without `nopass` nobody comes in as the default user.
                (
                    "ACL SETUSER default resetpass",
                    "ACL SETUSER default nopass",
                ),
            ] {
                assert_eq!(say(&mut local, opens), "OK", "{opens}");
                let denied = outside().line("PING");
                assert_eq!(denied, "-NOAUTH Authentication required.", "{opens}");
                assert_eq!(say(&mut local, closes), "OK", "{closes}");
                refused();
            }
            // A default user that is off may still be `nopass`.
            assert_eq!(local.line("ACL SETUSER default off"), "OK");
            refused();
            drop(server);

            let server = start(&["--protected-mode", "no"]);
            assert_eq!(outside().line("PING"), "PONG");
            drop(server);

            let server = start(&["--requirepass", "secret"]);
            assert_eq!(outside().line("AUTH secret"), "OK");
            drop(server);

            let server = start(&["--user", "default", "on", ">secret", "~*", "+@all"]);
            assert_eq!(outside().line("AUTH secret"), "OK");
            drop(server);

            // Users from a file alone, as Redis has it: what counts is the default user there, and without one it is as at
            // first.
            let users = "user alice on >pass ~* +@all\n";
            for (default, opens) in [
                ("user default off\n", true),
                ("user default on >secret ~* +@all\n", true),
                ("user default on nopass ~* +@all\n", false),
                ("", false),
            ] {
                let dir = tempfile::tempdir().unwrap();
                let file = dir.path().join("users.acl");
                fs::write(&file, format!("{default}{users}")).unwrap();
                let _server = start_in(dir, &["--aclfile", file.to_str().unwrap()]);
                if opens {
                    assert_eq!(outside().line("AUTH alice pass"), "OK", "{default}");
                } else {
                    refused();
                }
            }
        },
    );
}
