//! `kumi up` as a node among others: joining, programs, the end of a node, reloads, and what goes wrong.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before the test fails. Only a failing test ever waits that long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A directory for one test: the nodes' state, their files, and what their programs write.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        let path = self.path(name);
        path.to_str().expect("a plain path").to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("a file");
        self.text(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut kumi = Command::new(env!("CARGO_BIN_EXE_kumi"));
        kumi.args(args)
            .current_dir(self.0.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("KUMI_CLUSTER_KEY_FILE")
            .env_remove("KUMI_URL")
            .stdin(Stdio::null());
        kumi
    }

    /// What a command says that has to end by itself.
    #[track_caller]
    fn kumi(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("kumi is built");
        let pid = Pid::from_child(&child);
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match ended.recv_timeout(TIMEOUT) {
            Ok(output) => output.expect("it is our child"),
            Err(_) => {
                // It has not been waited for, so the number is still its own.
                let _ = kill_process(pid, Signal::KILL);
                panic!("{args:?} did not end");
            }
        }
    }

    /// What a command that has to succeed prints.
    #[track_caller]
    fn printed(&self, args: &[&str]) -> String {
        let output = self.kumi(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.trim_end().to_owned()
    }

    /// Checks the code of a command that has to fail, and that its message holds each text.
    #[track_caller]
    fn fails(&self, args: &[&str], code: i32, texts: &[&str]) {
        let output = self.kumi(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        for text in texts {
            assert!(said.contains(text), "{args:?}: no {text:?} in {said}");
        }
    }

    /// A node, whose state directory is named as it is.
    fn start(&self, name: &str, args: &[&str]) -> Node {
        self.try_start(name, args)
            .unwrap_or_else(|(code, text)| panic!("{args:?} ended with {code:?}: {text}"))
    }

    fn try_start(&self, name: &str, args: &[&str]) -> Result<Node, (Option<i32>, String)> {
        let state = self.text(name);
        let mut command = self.command(&["up", "--name", name, "--state-dir", &state]);
        let mut child = command
            .args(["--preset", "local"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let lines = lines(child.stdout.take().expect("it is piped"));
        let mut banner = String::new();
        while let Ok(line) = lines.recv_timeout(TIMEOUT) {
            banner += &format!("{line}\n");
            if line.contains("ctrl-c") {
                return Ok(Node {
                    child,
                    banner,
                    lines,
                    state: PathBuf::from(state),
                });
            }
        }
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("it is piped");
        let status = wait(&mut child);
        let _ = stderr.read_to_string(&mut said);
        Err((status.code(), format!("{banner}{said}")))
    }

    /// A node with a store on a free port of loopback. Somebody may take the port between the look and the start.
    fn first(&self, args: &[&str]) -> (Node, String) {
        for _ in 0..10 {
            let port = free_port().to_string();
            let mut all = vec!["--port", &port, "--cluster-port", "0", "--http-port", "0"];
            all.extend_from_slice(args);
            match self.try_start("a", &all) {
                Ok(node) => return (node, format!("redis://127.0.0.1:{port}")),
                Err((code, text)) => assert_eq!(code, Some(3), "{text}"),
            }
        }
        panic!("ten free ports were taken");
    }

    /// A node that joins another one.
    fn joining(&self, name: &str, first: &Node, args: &[&str]) -> Node {
        let (seed, key) = (first.membership(), first.key_file());
        let mut all = vec!["--join", &seed, "--key-file", &key];
        all.extend_from_slice(&["--cluster-port", "0", "--http-port", "0"]);
        all.extend_from_slice(args);
        self.start(name, &all)
    }
}

/// A running node. Dropping it ends it.
struct Node {
    child: Child,
    banner: String,
    lines: Receiver<String>,
    state: PathBuf,
}

impl Node {
    fn record(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.state.join("node.json")).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Where its membership listens.
    fn membership(&self) -> String {
        let record = self.record();
        record["membership"]
            .as_str()
            .expect("an address")
            .to_owned()
    }

    fn key_file(&self) -> String {
        let path = self.state.join("cluster.key");
        path.to_str().expect("a plain path").to_owned()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs and is ours");
    }

    fn ended(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }

    /// Reads on until a line of its log holds this text.
    fn until(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|_| panic!("no line with {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The first line of the reply to a GET.
    fn get(&self, path: &str) -> String {
        let record = self.record();
        let address = record["http"][0].as_str().expect("an address").to_owned();
        let mut stream = TcpStream::connect(address).expect("a connection");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply.lines().next().unwrap_or_default().to_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a child that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a node, and returns with its banner.
fn banner_of(command: &mut Command) -> (Child, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("kumi is built");
    let lines = lines(child.stdout.take().expect("it is piped"));
    let mut banner = String::new();
    while !banner.contains("ctrl-c") {
        let line = lines.recv_timeout(TIMEOUT);
        banner += &line.unwrap_or_else(|_| panic!("no end of the banner:\n{banner}"));
        banner.push('\n');
    }
    (child, banner)
}

/// What redis-cli prints.
fn redis(url: &str, words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-u", url])
        .args(words)
        .output();
    String::from_utf8_lossy(&output.expect("redis-cli is installed").stdout).into_owned()
}

fn lines(stdout: std::process::ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn wait(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the end of a node", || {
        status = child.try_wait().expect("it is our child");
        status.is_some()
    });
    status.expect("it has ended")
}

/// Waits until something holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < TIMEOUT, "waited for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("it is bound").port()
}

/// The names of nodes that have written a line into a file, in order.
fn begun(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split('~').next());
    names.map(str::to_owned).collect()
}

/// A node that runs tasks of the type `resize`: each writes the node's name and waits for a file.
fn waiting_work(place: &Place) -> String {
    let (begun, go) = (place.text("begun"), place.text("go"));
    let command = format!(
        "echo $KUMI_NODE >> {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo '\\\"done\\\"'"
    );
    place.write("work.kdl", &format!("work \"resize\" exec=\"{command}\"\n"))
}

#[test]
fn a_node_alone_has_a_key_a_record_and_http_and_says_where_they_are() {
    let place = Place::new();
    // Whether it is ours or another program's: the usual port is taken.
    let _taken = UdpSocket::bind("127.0.0.1:7400");
    let port = free_port().to_string();
    let mut node = place.start("a", &["--port", &port]);
    let banner = node.banner.clone();
    assert!(banner.contains("port 7400 is taken"), "{banner}");
    assert!(
        banner.contains("/udp") && banner.contains("http://127.0.0.1:"),
        "{banner}"
    );
    assert!(!banner.contains("--join"), "{banner}");
    let record = node.record();
    assert_eq!(
        (&record["name"], &record["version"]),
        (&"a".into(), &1.into())
    );
    assert_eq!(record["store"][0], format!("127.0.0.1:{port}"));
    assert!(!node.membership().ends_with(":7400"));
    until("a store", || node.get("/readyz") == "HTTP/1.1 200 OK");
    let mode = |path: PathBuf| {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(node.state.join("cluster.key")), 0o600);
    assert_eq!(mode(node.state.clone()), 0o700);

    let state = place.text("a");
    let url = place.printed(&["url", "--state-dir", &state]);
    let redis = |words: &[&str]| redis(&url, words);
    assert_eq!(redis(&["set", "greeting", "hello"]), "OK\n");
    assert!(redis(&["config", "get", "port"]).contains("NOPERM"));
    let operator = place.printed(&["key", "operator", "--state-dir", &state]);
    let metrics = place.printed(&["key", "metrics", "--key-file", &node.key_file()]);
    assert_eq!((operator.len(), metrics.len()), (43, 43));
    assert_ne!(operator, metrics);

    node.signal(Signal::TERM);
    assert_eq!(node.ended().code(), Some(0));
    // The data is there again, and the same key.
    let key = fs::read(node.state.join("cluster.key")).expect("a key");
    let node = place.start(
        "a",
        &["--port", &port, "--cluster-port", "0", "--http-port", "0"],
    );
    assert_eq!(redis(&["get", "greeting"]), "hello\n");
    assert_eq!(
        fs::read(node.state.join("cluster.key")).expect("a key"),
        key
    );
}

#[test]
fn an_ephemeral_node_says_where_it_is_and_leaves_nothing() {
    let place = Place::new();
    let temporary = place.path("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let port = free_port().to_string();
    let mut command = place.command(&["up", "--ephemeral", "--port", &port]);
    command
        .args(["--cluster-port", "0", "--http-port", "0"])
        .env("TMPDIR", &temporary);
    let (mut child, banner) = banner_of(&mut command);
    let state = banner
        .lines()
        .find_map(|line| line.strip_prefix("  state  "));
    let state = state.and_then(|line| line.split_once(" (--state-dir"));
    let (state, _) = state.unwrap_or_else(|| panic!("no directory in:\n{banner}"));
    let url = place.printed(&["url", "--state-dir", state]);
    assert!(url.ends_with(&format!(":{port}")), "{url}");
    let entries = |path: &Path| fs::read_dir(path).expect("a directory").count();
    assert_eq!(entries(&temporary), 1);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(wait(&mut child).code(), Some(0));
    assert_eq!(entries(&temporary), 0);
    assert!(!place.path("state").exists());
}

#[test]
fn a_second_node_on_the_port_of_the_first_is_told_another_one() {
    let place = Place::new();
    let port = free_port();
    let text = port.to_string();
    let up = [
        "up",
        "--port",
        &text,
        "--cluster-port",
        "0",
        "--http-port",
        "0",
    ];
    let (mut child, _) = banner_of(&mut place.command(&up));
    let other = port.checked_add(1).unwrap_or(6380);
    let other = format!("choose another port: kumi up --port {other}");
    let pid = format!("(process {})", child.id());
    place.fails(&up, 3, &[&other, &pid]);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(wait(&mut child).code(), Some(0));
}

#[test]
fn a_node_on_all_addresses_of_both_kinds_starts() {
    if TcpListener::bind("[::]:0").is_err() {
        // A machine without IPv6.
        return;
    }
    let place = Place::new();
    // The last one is kept for documents: no machine has it.
    let (a, _) = place.first(&["--bind", "*", "--bind", "::*", "--bind=-192.0.2.1"]);
    for address in ["https://0.0.0.0:", "https://[::]:"] {
        assert!(a.banner.contains(address), "{}", a.banner);
    }
}

#[test]
fn a_signal_saves_what_its_directive_says() {
    let place = Place::new();
    let saving = ["--set", "appendonly=no", "--set", "save=3600 1"];
    let stop = ["--set", "shutdown-on-sigterm=nosave"];
    for (more, saved) in [(&stop[..], false), (&[], true)] {
        let (mut a, url) = place.first(&[&saving[..], more].concat());
        assert_eq!(redis(&url, &["set", "greeting", "hello"]), "OK\n");
        a.signal(Signal::TERM);
        assert_eq!(a.ended().code(), Some(0));
        let dump = a.state.join("store/dump.rdb");
        assert_eq!(dump.exists(), saved, "{more:?}");
    }
}

#[test]
fn a_store_that_cannot_be_saved_outlives_the_first_signal() {
    let place = Place::new();
    let saving = ["--set", "appendonly=no", "--set", "save=3600 1"];
    for by_signal in [true, false] {
        let (mut a, url) = place.first(&saving);
        assert_eq!(redis(&url, &["set", "greeting", "hello"]), "OK\n");
        // No file can take the place of a directory.
        let dump = a.state.join("store/dump.rdb");
        fs::create_dir(&dump).expect("a directory");
        a.signal(Signal::TERM);
        a.until("Errors trying to shut down the server");
        assert_eq!(redis(&url, &["get", "greeting"]), "hello\n");
        if by_signal {
            a.signal(Signal::TERM);
            assert_eq!(a.ended().code(), Some(1));
            fs::remove_dir(&dump).expect("empty");
        } else {
            fs::remove_dir(&dump).expect("empty");
            redis(&url, &["shutdown"]);
            assert_eq!(a.ended().code(), Some(0));
            assert!(dump.is_file());
        }
    }
}

#[test]
fn a_task_runs_on_the_node_that_joined_and_has_the_program() {
    let place = Place::new();
    let (mut a, url) = place.first(&[]);
    let kdl = place.write(
        "kumi.kdl",
        "work \"greet\" exec=\"read name; echo \\\"from $KUMI_NODE\\\" >&2; echo '\\\"hello\\\"'\"\n",
    );
    let mut b = place.joining("b", &a, &["--config", &kdl]);
    assert!(!b.banner.contains("  store "), "{}", b.banner);
    let id = place.printed(&["jobs", "--url", &url, "enqueue", "greet", "\"you\""]);
    let from = b.until("greet: from");
    assert!(from.contains("from b~"), "{from}");
    until("the result", || {
        let status = place.printed(&["jobs", "--url", &url, "status", &id]);
        status.contains("hello")
    });
    // A program on b's machine finds the store too.
    let of_b = place.printed(&["url", "--state-dir", &place.text("b")]);
    assert!(of_b.starts_with("redis://kumi-app:"), "{of_b}");
    b.signal(Signal::TERM);
    assert_eq!(b.ended().code(), Some(0));
    a.signal(Signal::TERM);
    assert_eq!(a.ended().code(), Some(0));
}

#[test]
fn the_task_of_a_killed_node_is_run_by_another_one() {
    let place = Place::new();
    let kdl = waiting_work(&place);
    let (a, url) = place.first(&[]);
    let b = place.joining("b", &a, &["--config", &kdl]);
    let id = place.printed(&["jobs", "--url", &url, "enqueue", "resize", "1"]);
    let path = place.path("begun");
    until("the task", || begun(&path) == ["b"]);
    let _c = place.joining("c", &a, &["--config", &kdl]);
    let killed = Instant::now();
    b.signal(Signal::KILL);
    until("the other node", || begun(&path) == ["b", "c"]);
    // The lease alone would have held it for 15 seconds.
    assert!(
        killed.elapsed() < Duration::from_secs(12),
        "{:?}",
        killed.elapsed()
    );
    fs::write(place.path("go"), "").expect("a file");
    until("the result", || {
        let status = place.printed(&["jobs", "--url", &url, "status", &id]);
        status.contains("done")
    });
    assert_eq!(begun(&path), ["b", "c"]);
}

#[test]
fn the_first_signal_waits_for_tasks_and_the_second_does_not() {
    let place = Place::new();
    let kdl = waiting_work(&place);
    let (a, url) = place.first(&[]);
    let mut b = place.joining("b", &a, &["--config", &kdl]);
    let id = place.printed(&["jobs", "--url", &url, "enqueue", "resize", "1"]);
    until("the task", || begun(&place.path("begun")) == ["b"]);
    b.signal(Signal::TERM);
    b.until("scheduling shutdown");
    assert!(
        b.child.try_wait().expect("ours").is_none(),
        "it did not wait"
    );
    fs::write(place.path("go"), "").expect("a file");
    assert_eq!(b.ended().code(), Some(0));
    let status = place.printed(&["jobs", "--url", &url, "status", &id]);
    assert!(status.contains("done"), "{status}");

    fs::remove_file(place.path("go")).expect("a file");
    let mut b = place.joining("b", &a, &["--config", &kdl]);
    place.printed(&["jobs", "--url", &url, "enqueue", "resize", "2"]);
    until("the task", || begun(&place.path("begun")) == ["b", "b"]);
    b.signal(Signal::TERM);
    b.until("scheduling shutdown");
    b.signal(Signal::TERM);
    assert_eq!(b.ended().code(), Some(1));
}

#[test]
fn a_reload_applies_what_can_change_and_names_what_cannot() {
    let place = Place::new();
    let (begun_at, state) = (place.text("begun"), place.text("a"));
    let work = |task: &str| format!("work \"{task}\" exec=\"echo $KUMI_NODE >> {begun_at}\"\n");
    let kdl = place.write("kumi.kdl", &work("one"));
    let (a, url) = place.first(&["--config", &kdl]);
    let same = place.printed(&["reload", "--state-dir", &state]);
    assert_eq!(same, "nothing has changed");

    let other = format!(
        "node {{ preset \"wan\"; advertise \"a.example\" }}\nstore {{ maxmemory \"123mb\" }}\n{}",
        work("two")
    );
    place.write("kumi.kdl", &other);
    let said = place.printed(&["reload", "--state-dir", &state]);
    for line in [
        "applied: store maxmemory: added",
        "applied: work one: removed",
        "applied: work two: added",
        "needs a restart: node advertise: added",
    ] {
        assert!(said.contains(line), "no {line:?} in:\n{said}");
    }
    a.until("needs a restart: node advertise");
    place.printed(&["jobs", "--url", &url, "enqueue", "two", "1"]);
    until("the task", || begun(&place.path("begun")) == ["a"]);
    let port = url.rsplit(':').next().expect("a port").to_owned();
    let maxmemory = Command::new("redis-cli")
        .args(["-p", &port, "config", "get", "maxmemory"])
        .output()
        .expect("redis-cli is installed");
    let maxmemory = String::from_utf8_lossy(&maxmemory.stdout).into_owned();
    assert_eq!(maxmemory, "maxmemory\n128974848\n");

    place.write("kumi.kdl", "wrk \"two\"\n");
    let said = ["nothing was changed", "did you mean work?"];
    place.fails(&["reload", "--state-dir", &state], 4, &said);
    place.printed(&["jobs", "--url", &url, "enqueue", "two", "1"]);
    until("the task", || begun(&place.path("begun")) == ["a", "a"]);
}

#[test]
fn a_reload_signals_no_process_but_a_node_that_listens() {
    let place = Place::new();
    let state = place.text("a");
    let reload = ["reload", "--state-dir", &state];
    let (mut a, _) = place.first(&[]);
    let mut record = a.record();
    assert_eq!(record["reloads_on_hangup"], true);
    let path = a.state.join("node.json");
    record["reloads_on_hangup"] = false.into();
    fs::write(&path, record.to_string()).expect("written");
    place.fails(&reload, 2, &["does not listen to SIGHUP"]);
    a.signal(Signal::KILL);
    a.ended();
    // The number of the node is another program's now, which SIGHUP would end.
    let mut other = Command::new("sleep").arg("600").spawn().expect("started");
    record["reloads_on_hangup"] = true.into();
    record["pid"] = other.id().into();
    fs::write(&path, record.to_string()).expect("written");
    place.fails(&reload, 2, &["node a does not run"]);
    let ended = other.try_wait().expect("our child");
    other.kill().expect("it runs or was not waited for");
    other.wait().expect("our child");
    assert_eq!(ended, None);
}

#[test]
fn the_url_is_that_of_the_store_in_use() {
    let place = Place::new();
    let (a, url) = place.first(&[]);
    let key = place.text("b/cluster.key");
    fs::create_dir(place.path("b")).expect("a directory");
    fs::copy(a.key_file(), &key).expect("a copy");
    // b has a store, and the cluster uses that of a.
    let port = free_port().to_string();
    let store = place.write("store.kdl", "store\n");
    let b = place.joining("b", &a, &["--config", &store, "--port", &port]);
    until("a store", || b.record()["used_store"].is_string());
    let of_b = place.printed(&["url", "--state-dir", &place.text("b")]);
    let address = url.trim_start_matches("redis://");
    assert!(of_b.ends_with(&format!("@{address}")), "{of_b}");

    let ports = ["--cluster-port", "0", "--http-port", "0"];
    let c = place.start("c", &[&["--store", &url], &ports[..]].concat());
    until("a store", || c.record()["used_store"].is_string());
    let words = "outside of the cluster";
    place.fails(&["url", "--state-dir", &place.text("c")], 2, &[words]);
}

#[test]
fn a_key_that_is_added_is_accepted_after_a_reload() {
    let place = Place::new();
    let state = place.text("a");
    let (a, _) = place.first(&[]);
    place.printed(&["key", "new", "new.key"]);
    let (old, new) = (a.key_file(), place.text("new.key"));
    let secret = |path: &str| fs::read_to_string(path).expect("a key").trim().to_owned();
    let (first, second) = (secret(&old), secret(&new));
    fs::write(&old, format!("{first}\n{second}\n")).expect("written");
    let said = place.printed(&["reload", "--state-dir", &state]);
    assert!(said.contains("applied: key file: changed"), "{said}");
    // A node that has the new key alone is let in when the keys were swapped.
    fs::write(&old, format!("{second}\n{first}\n")).expect("written");
    place.printed(&["reload", "--state-dir", &state]);
    let seed = a.membership();
    let b = place.start(
        "b",
        &[
            "--join",
            &seed,
            "--key-file",
            &new,
            "--cluster-port",
            "0",
            "--http-port",
            "0",
        ],
    );
    assert!(!b.banner.contains("no seed"), "{}", b.banner);
    until("a store", || b.get("/readyz") == "HTTP/1.1 200 OK");
}

#[test]
fn what_keeps_a_node_from_starting_is_said_with_the_way_out() {
    let place = Place::new();
    let (a, _) = place.first(&[]);
    let (seed, key) = (a.membership(), a.key_file());
    let other = place.text("other");
    let up = |more: &[&'static str]| {
        let mut args: Vec<String> = ["up", "--state-dir", &other, "--http-port", "0"]
            .map(str::to_owned)
            .to_vec();
        args.extend(more.iter().map(|word| match *word {
            "SEED" => seed.clone(),
            "KEY" => key.clone(),
            word => word.to_owned(),
        }));
        args
    };
    let fails = |more: &[&'static str], code, texts: &[&str]| {
        let args = up(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.fails(&args, code, texts);
    };
    let joining = ["--join", "SEED", "--key-file", "KEY", "--cluster-port", "0"];
    let with = |more: &[&'static str]| [&joining[..], more].concat();
    fails(
        &with(&["--name", "a"]),
        1,
        &["has the name a already", "--name"],
    );
    fails(
        &with(&["--port", "7000"]),
        2,
        &["--port", "--join", "kumi.kdl"],
    );
    fails(
        &["--join", "SEED", "--cluster-port", "0"],
        1,
        &["--key-file", "copy the key file"],
    );
    fails(
        &with(&["--bind", "192.0.2.1"]),
        1,
        &["is on loopback", "--bind"],
    );
    fails(&["--bind", "here"], 2, &["\"here\"", "IP address"]);
    fails(
        &["--store", "redis://127.0.0.1:1", "--port", "7000"],
        2,
        &["--port", "--store"],
    );
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let store = free_port().to_string();
    place.fails(
        &[
            "up",
            "--state-dir",
            &other,
            "--port",
            &store,
            "--cluster-port",
            &port,
        ],
        3,
        &[&format!("127.0.0.1:{port} is in use"), "--cluster-port"],
    );
    let kdl = place.write("bad.kdl", "node \"a\"\nwork \"x\"\n");
    place.fails(&["up", "--config", &kdl], 4, &["bad.kdl:2", "exec"]);
    place.write("join.kdl", "node { join \"127.0.0.1:1\" }\n");
    place.fails(
        &["up", "--config", "join.kdl", "--port", &store],
        2,
        &["--port", "join in kumi.kdl"],
    );
    place.write("store.kdl", "store #false\n");
    place.fails(
        &["up", "--config", "store.kdl", "--port", &store],
        2,
        &["port", "store #false"],
    );
}

#[test]
fn a_node_that_is_not_let_in_goes_on_asking_and_says_why() {
    let place = Place::new();
    let (a, _) = place.first(&[]);
    place.printed(&["key", "new", "other.key"]);
    let seed = a.membership();
    let ports = ["--cluster-port", "0", "--http-port", "0"];
    let mut args = vec!["--join", &seed, "--key-file", "other.key"];
    args.extend(ports);
    let stranger = place.start("b", &args);
    let words = "no seed has let this node in yet";
    assert!(stranger.banner.contains(words), "{}", stranger.banner);
    let why = "does not belong to this cluster";
    assert!(stranger.banner.contains(why), "{}", stranger.banner);
    assert!(
        stranger.banner.contains("--key-file"),
        "{}",
        stranger.banner
    );
    assert!(stranger.get("/readyz").contains("503"));
    // Nobody listens there.
    let key = a.key_file();
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let nobody = nobody.local_addr().expect("an address").to_string();
    let mut args = vec!["--join", &nobody, "--key-file", &key];
    args.extend(ports);
    let lonely = place.start("c", &args);
    assert!(lonely.banner.contains(words), "{}", lonely.banner);
    assert!(lonely.banner.contains(&nobody), "{}", lonely.banner);
}

/// An address of this machine that is not on loopback; none if it has no network.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address that is kept for documents. Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
}

#[test]
fn the_line_for_other_machines_can_be_pasted_there() {
    let Some(address) = outward_address() else {
        // A machine without a network: the other tests show nodes on loopback.
        return;
    };
    let place = Place::new();
    let bind = address.to_string();
    let (a, _) = place.first(&["--bind", &bind]);
    let line = a
        .banner
        .lines()
        .find(|line| line.contains("kumi up --join"));
    let line = line.unwrap_or_else(|| panic!("{}", a.banner)).trim();
    let words: Vec<&str> = line.split_whitespace().skip(3).collect();
    assert_eq!(words[0], "--join", "{line}");
    assert!(a.banner.contains(&a.key_file()), "{}", a.banner);
    fs::copy(a.key_file(), place.path("kumi.key")).expect("a copy");
    let mut args = words;
    args.extend(["--cluster-port", "0", "--http-port", "0"]);
    let b = place.start("b", &args);
    assert!(
        b.banner.contains(&format!("binding {bind}")),
        "{}",
        b.banner
    );
    until("a store", || b.record()["used_store"].is_string());

    // The store speaks TLS there, and programs of the team log in.
    for node in ["a", "b"] {
        let url = place.printed(&["url", "--state-dir", &place.text(node)]);
        assert!(url.starts_with("rediss://kumi-app:"), "{url}");
        place.printed(&["jobs", "--url", &url, "enqueue", "greet", "1"]);
    }
    let port = a.record()["store"][0]
        .as_str()
        .expect("an address")
        .to_owned();
    let port = port.rsplit(':').next().expect("a port").to_owned();
    let plain = Command::new("redis-cli")
        .args(["-h", &bind, "-p", &port, "ping"])
        .output();
    let plain = plain.expect("redis-cli is installed");
    assert!(!String::from_utf8_lossy(&plain.stdout).contains("PONG"));
}
