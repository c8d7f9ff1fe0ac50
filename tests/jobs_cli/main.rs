//! `kumi jobs` through the built binary, on a redis-server.

mod exec;
mod people;
mod settings;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

/// A redis-server on loopback. Dropping it ends it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        Self::with_options(|port| vec!["--port".into(), port.into()])
    }

    /// With options that depend on the port, which is that of its URL.
    fn with_options(options: impl Fn(&str) -> Vec<String>) -> Self {
        // The port may be taken in between; then another one is tried.
        for _ in 0..20 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            drop(listener);
            let mut child = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--save", ""])
                .args(options(&port.to_string()))
                .stdout(Stdio::piped())
                .spawn()
                .expect("redis-server is installed");
            let url = format!("redis://127.0.0.1:{port}");
            if said(&mut child, "Ready to accept connections") {
                return Self { child, url };
            }
            end(&mut child);
        }
        panic!("no port for a redis-server");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut kumi = Command::new(env!("CARGO_BIN_EXE_kumi"));
        kumi.args(["jobs", "--url", &self.url, "--queue", "test"])
            .args(arguments);
        kumi.stdin(Stdio::null());
        kumi
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("kumi runs")
    }

    /// What a command that succeeds prints.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim_end()
            .to_owned()
    }

    fn field(&self, id: &str, name: &str) -> serde_json::Value {
        let status: serde_json::Value =
            serde_json::from_str(&self.ok(&["status", id])).expect("JSON");
        status[name].clone()
    }

    /// A worker that says when it works. Dropping it ends it.
    fn work(&self, arguments: &[&str]) -> Worker {
        let mut command = self.command(&["work"]);
        let mut child = command
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("kumi runs");
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        assert!(line.contains("working on"), "{line}");
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        Worker(child)
    }

    fn count(&self, state: &str) -> u64 {
        let counts: serde_json::Value = serde_json::from_str(&self.ok(&["counts"])).expect("JSON");
        counts["states"][state].as_u64().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

struct Worker(Child);

impl Worker {
    /// Asks it to stop and waits for its end.
    fn stop(mut self) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill runs").success());
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a child's output until it says this; false if it ends first.
fn said(child: &mut Child, word: &str) -> bool {
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    while lines.read_line(&mut line).expect("text") > 0 {
        if line.contains(word) {
            std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
            return true;
        }
        line.clear();
    }
    false
}

#[test]
fn any_program_is_a_worker() {
    let server = Server::start();
    let program = r#"read n; case $n in 65) printf '\033[31mbad' >&2; exit 65;; esac; echo "$KUMI_TASK_TYPE $n $KUMI_ATTEMPT""#;
    let worker = server.work(&[
        "--type",
        "echo,other",
        "--exec",
        program,
        "--concurrency",
        "4",
    ]);
    assert_eq!(
        server.ok(&["enqueue", "echo", "7", "--wait"]),
        r#""echo 7 1""#
    );
    let failed = server.run(&["enqueue", "other", "65", "--wait"]);
    assert_eq!(failed.status.code(), Some(3));
    // Nothing that a program writes moves the cursor of a terminal.
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains(r"is dead: \u{1b}[31mbad"), "{said}");
    worker.stop();
    let counts: serde_json::Value = serde_json::from_str(&server.ok(&["counts"])).expect("JSON");
    assert_eq!(
        (&counts["states"]["succeeded"], &counts["states"]["dead"]),
        (&1.into(), &1.into())
    );
    assert_eq!(server.ok(&["retry", "--all"]), "1 requeued");
    let listed = server.ok(&["list", "--state", "queued"]);
    assert!(
        listed.contains(r#""type":"other""#) && listed.lines().count() == 1,
        "{listed}"
    );
}

#[test]
fn a_program_may_print_more_than_is_kept() {
    let server = Server::start();
    let program = r#"read n; head -c 3000000 /dev/zero | tr '\0' x >&$n; printf ' the end' >&2; [ $n = 1 ] || exit 65"#;
    let worker = server.work(&["--type", "chatty", "--exec", program]);
    let done = server.run(&["enqueue", "chatty", "1", "--wait"]);
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("too large to keep"), "{said}");
    let failed = server.run(&["enqueue", "chatty", "2", "--wait"]);
    assert_eq!(failed.status.code(), Some(3));
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        said.contains("is dead: xxx") && said.contains("x the end"),
        "{said}"
    );
    worker.stop();
    let counts: serde_json::Value = serde_json::from_str(&server.ok(&["counts"])).expect("JSON");
    assert_eq!(counts["states"]["succeeded"], 1);
}

#[test]
fn an_operator_sees_and_steers_tasks() {
    let server = Server::start();
    let id = server.ok(&["enqueue", "mail", r#"{"to":"a"}"#, "--unique", "k"]);
    assert_eq!(server.ok(&["enqueue", "mail", "--unique", "k"]), id);
    assert_eq!(server.field(&id, "state"), "queued");
    assert_eq!(server.field(&id, "payload")["to"], "a");
    let text = server.ok(&["counts", "--output", "text"]);
    assert!(text.contains("no worker asks for mail"), "{text}");
    let metrics = server.ok(&["counts", "--prometheus"]);
    assert!(
        metrics.contains(r#"kumi_jobs_tasks{type="mail",state="queued"} 1"#),
        "{metrics}"
    );
    server.ok(&["pause"]);
    assert!(server.ok(&["counts"]).contains(r#""paused":true"#));
    server.ok(&["resume"]);
    assert!(server.ok(&["cancel", &id]).ends_with("cancelled"));
    assert_eq!(server.field(&id, "state"), "cancelled");
    let later = server.ok(&["enqueue", "mail", "--delay", "1h", "--priority", "high"]);
    assert_eq!(server.field(&later, "state"), "scheduled");
    assert_eq!(server.ok(&["purge"]), "1 purged");
    assert_eq!(server.run(&["status", &id]).status.code(), Some(8));
    assert_eq!(server.run(&["enqueue", "mail", "{"]).status.code(), Some(2));
    let fails_with = |url: &str, text: &str| {
        let kumi = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["jobs", "--url", url, "counts"])
            .output()
            .expect("kumi runs");
        let said = String::from_utf8_lossy(&kumi.stderr);
        assert_eq!(kumi.status.code(), Some(2), "{said}");
        assert!(said.contains(text), "{said}");
    };
    fails_with(&format!("{}/99", server.url), "has no database 99");
    let with_tls = server.url.replace("redis:", "rediss:");
    fails_with(&with_tls, "answers without TLS");
    server.ok(&[
        "cron",
        "set",
        "digest",
        "0 9 * * MON-FRI",
        "digest",
        "--zone",
        "Asia/Tokyo",
        "--priority",
        "low",
    ]);
    let schedules = server.ok(&["cron", "list"]);
    assert!(
        schedules.contains(r#""zone":"Asia/Tokyo""#) && schedules.contains(r#""priority":"low""#),
        "{schedules}"
    );
    let large = format!("\"{}\"", "x".repeat(100_000));
    for payload in ["{", &format!("[{large},{large},{large}]")] {
        let refused = cron_from_stdin(&server, payload);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(
        server
            .run(&["cron", "set", "x", "61 * * * *", "digest"])
            .status
            .code(),
        Some(2)
    );
    server.ok(&["cron", "remove", "digest"]);
    assert_eq!(
        server.run(&["cron", "remove", "digest"]).status.code(),
        Some(8)
    );
}

#[test]
fn dead_tasks_are_brought_back_by_id_and_by_type() {
    let server = Server::start();
    let worker = server.work(&["--type", "mail,other", "--exec", "exit 65"]);
    let ids = [
        server.ok(&["enqueue", "mail", "--unique", "k"]),
        server.ok(&["enqueue", "other"]),
    ];
    for id in &ids {
        wait_until("it is dead", || server.field(id, "state") == "dead");
    }
    worker.stop();
    let refused = |id: &str, code: i32, text: &str| {
        let output = server.run(&["retry", id]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(text) && output.stdout.is_empty(), "{said}");
    };
    let holder = server.ok(&["enqueue", "mail", "--unique", "k"]);
    refused(&ids[0], 9, &format!("{holder} has its unique key"));
    server.ok(&["cancel", &holder]);
    let queued = format!("{} queued", ids[0]);
    assert_eq!(server.ok(&["retry", &ids[0]]), queued);
    refused(&ids[0], 9, "is queued, not dead");
    refused("00000000000000000000000000000001", 8, "there is no task");
    // Of several, those that can be are brought back, and each other one is named.
    let both = server.run(&["retry", &ids[0], &ids[1], &holder]);
    assert_eq!(both.status.code(), Some(9));
    let said = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(said.contains(&ids[0]) && said.contains(&holder), "{said}");
    assert_eq!(server.field(&ids[1], "state"), "queued");
    server.ok(&["cancel", &ids[0]]);
    let worker = server.work(&["--type", "other", "--exec", "exit 65"]);
    wait_until("it is dead", || server.field(&ids[1], "state") == "dead");
    worker.stop();
    assert_eq!(server.ok(&["retry", "--type", "mail"]), "0 requeued");
    assert_eq!(server.ok(&["retry", "--type", "other"]), "1 requeued");
    assert_eq!(server.field(&ids[1], "state"), "queued");
}

#[test]
fn a_worker_logs_what_becomes_of_tasks() {
    let server = Server::start();
    let id = server.ok(&["enqueue", "echo"]);
    let words = ["work", "--log", "info", "--type", "echo", "--exec", "cat"];
    let mut command = server.command(&words);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("kumi runs");
    let lines = BufReader::new(child.stderr.take().expect("its standard error")).lines();
    let about = lines
        .map(|line| line.expect("text"))
        .filter(|line| line.contains(&id));
    let about: Vec<String> = about.take(2).collect();
    end(&mut child);
    assert!(about[0].contains("Started"), "{about:?}");
    assert!(about[1].contains("Succeeded"), "{about:?}");
}

#[test]
fn a_worker_whose_standard_error_is_not_read_works_on() {
    let server = Server::start();
    for _ in 0..10 {
        server.ok(&["enqueue", "chatty"]);
    }
    // A pipe holds 64 KiB.
    let program = "head -c 20000 /dev/zero >&2";
    let words = [
        "work", "--log", "trace", "--type", "chatty", "--exec", program,
    ];
    let mut command = server.command(&words);
    let worker = Worker(command.stderr(Stdio::piped()).spawn().expect("kumi runs"));
    wait_until("all tasks succeed", || {
        let counts = server.ok(&["counts"]);
        let counts: serde_json::Value = serde_json::from_str(&counts).expect("JSON");
        counts["states"]["succeeded"] == 10
    });
    worker.stop();
}

/// `cron set` with a payload on standard input.
fn cron_from_stdin(server: &Server, payload: &str) -> Output {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, payload).expect("a file");
    let stdin = std::fs::File::open(&file).expect("a file");
    let mut command = server.command(&["cron", "set", "large", "* * * * *", "t", "-"]);
    command.stdin(stdin).output().expect("kumi runs")
}

#[test]
fn a_trace_context_reaches_the_program() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let server = Server::start();
    let enqueue = |trace: &str| {
        let mut command = server.command(&["enqueue", "trace", "--wait"]);
        let output = command.env("TRACEPARENT", trace).output();
        String::from_utf8(output.expect("kumi runs").stdout).expect("text")
    };
    let worker = server.work(&["--type", "trace", "--exec", r#"echo "<$TRACEPARENT>""#]);
    assert_eq!(enqueue(TRACE), format!("\"<{TRACE}>\"\n"));
    assert_eq!(enqueue("not one"), "\"<>\"\n");
    worker.stop();
}

#[test]
fn an_operator_limits_types_and_releases_crashed_workers() {
    let server = Server::start();
    server.ok(&["limit", "hang", "1"]);
    let ids = [
        server.ok(&["enqueue", "hang"]),
        server.ok(&["enqueue", "hang"]),
    ];
    let name = ["--name", "crashing", "-c", "2"];
    let arguments = [&["--type", "hang", "--exec", HANGS][..], &name].concat();
    let mut worker = server.work(&arguments);
    wait_until("the first one runs", || {
        server.field(&ids[0], "state") == "running"
    });
    assert_eq!(server.field(&ids[1], "state"), "queued", "the type is full");
    let owner = server.field(&ids[0], "owner");
    let owner = owner.as_str().expect("an owner");
    assert!(owner.starts_with("crashing~"), "{owner}");
    let refused = server.run(&["release", owner, "--silent-for", "1h"]);
    assert_eq!(refused.status.code(), Some(9), "it is alive");
    end(&mut worker.0);
    let released = server.ok(&["release", owner, "--silent-for", "1ms"]);
    assert_eq!(released, "1 given back");
    assert_eq!(server.field(&ids[0], "state"), "queued");
    // The bound is lifted: a second worker runs both.
    server.ok(&["limit", "hang"]);
    let worker = server.work(&["--type", "hang", "-c", "2", "--exec", HANGS]);
    wait_until("both run", || {
        ids.iter().all(|id| server.field(id, "state") == "running")
    });
    drop(worker);
}

/// A program that ends only when its worker does.
const HANGS: &str = "while kill -0 $PPID 2>/dev/null; do sleep 0.2; done";

/// Looks again and again, for half a minute.
fn wait_until(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !check() {
        assert!(std::time::Instant::now() < deadline, "never: {what}");
    }
}

#[test]
fn every_move_can_be_watched() {
    let server = Server::start();
    let mut tail = server.command(&["tail"]);
    let mut tail = tail
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kumi runs");
    let mut notes = BufReader::new(tail.stderr.take().expect("its standard error"));
    let mut line = String::new();
    notes.read_line(&mut line).expect("text");
    assert!(line.contains("watching"), "{line}");
    let id = server.ok(&["enqueue", "mail"]);
    server.ok(&["cancel", &id]);
    let lines = BufReader::new(tail.stdout.take().expect("its output")).lines();
    let states: Vec<String> = lines
        .take(2)
        .map(|line| {
            let event: serde_json::Value =
                serde_json::from_str(&line.expect("text")).expect("JSON");
            assert_eq!(event["id"], id);
            event["to"].as_str().expect("a state").to_owned()
        })
        .collect();
    end(&mut tail);
    assert_eq!(states, ["queued", "cancelled"]);
}

#[test]
fn a_closed_port_is_named_at_once() {
    // A privileged port that no program listens on.
    let port = 1;
    let url = format!("redis://ann:sesame@127.0.0.1:{port}");
    let started = std::time::Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_kumi"))
        .args(["jobs", "--url", &url, "counts"])
        .output()
        .expect("kumi runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{port}")), "{said}");
    assert!(said.contains("--url") && !said.contains("sesame"), "{said}");
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn tasks_travel_over_tls() {
    let dir = tempfile::tempdir().expect("a directory");
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let write = |name: &str, pem: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, pem).expect("a file");
        path.display().to_string()
    };
    let certificate = write("cert.pem", made.cert.pem());
    let key = write("key.pem", made.signing_key.serialize_pem());
    // Clients have to show a certificate too, which is the same one.
    let server = Server::with_options(|port| {
        let options = [
            ("--port", "0"),
            ("--tls-port", port),
            ("--tls-cert-file", &certificate),
            ("--tls-key-file", &key),
            ("--tls-ca-cert-file", &certificate),
        ];
        let words = options.iter().flat_map(|(name, value)| [name, value]);
        words.map(ToString::to_string).collect()
    });
    let url = server
        .url
        .replace("redis://127.0.0.1", "rediss://localhost");
    let run = |more: &[&str], command: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args([&["jobs", "--url", &url], more, command].concat())
            .output()
            .expect("kumi runs")
    };
    let trust = ["--cacert", &certificate];
    let all = [&trust[..], &["--cert", &certificate, "--key", &key]].concat();
    assert!(run(&all, &["enqueue", "mail"]).status.success());
    let counts = run(&all, &["counts"]);
    let counts: serde_json::Value = serde_json::from_slice(&counts.stdout).expect("JSON");
    assert_eq!(counts["states"]["queued"], 1);
    let fails = |more: &[&str], code: i32, text: &str| {
        let output = run(more, &["counts"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(text), "{said}");
    };
    fails(&[], 7, "--cacert");
    fails(&trust, 7, "cannot connect to localhost");
    // The certificates that are given are enough, whatever becomes of the system's.
    let without_system = Command::new(env!("CARGO_BIN_EXE_kumi"))
        .args([&["jobs", "--url", &url], &all[..], &["counts"]].concat())
        .env("SSL_CERT_FILE", "/no/such/file")
        .env("SSL_CERT_DIR", "/no/such/directory")
        .output()
        .expect("kumi runs");
    assert!(without_system.status.success(), "{without_system:?}");
    fails(&["--cacert", "/no/such/file"], 2, "/no/such/file");
    fails(&["--cacert", &key], 2, "no certificate");
    fails(&["--cert", &certificate], 2, "--key");
}
