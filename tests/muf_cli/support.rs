//! Servers and running `kumi muf` commands, each of its own and gone with its test.

use super::process;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before the test fails. Only a failing test ever waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on a Unix socket. Dropping it ends it.
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    /// A redis-server, and `kumi server`, which takes the same words.
    pub(crate) fn each() -> [Server; 2] {
        let mut kumi = Command::new(env!("CARGO_BIN_EXE_kumi"));
        kumi.arg("server");
        [Self::redis(), Self::start_program(kumi)]
    }

    pub(crate) fn redis() -> Server {
        Self::start_program(Command::new("redis-server"))
    }

    fn start_program(program: Command) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let child = launch(program, directory.path());
        Server { child, directory }
    }

    /// A redis-server in the place of one that was killed.
    pub(crate) fn start_redis_again(&mut self) {
        self.child = launch(Command::new("redis-server"), self.directory.path());
    }

    /// A redis-server that also speaks TLS, and asks for the same certificate that it shows.
    pub(crate) fn redis_with_tls() -> (Server, Tls) {
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str, pem: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, pem).expect("it is ours");
            path.display().to_string()
        };
        let certificate = file("cert.pem", &made.cert.pem());
        let key = file("key.pem", &made.signing_key.serialize_pem());
        // The port may be taken between here and there; redis-server cannot choose a free port itself.
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut redis = Command::new("redis-server");
        redis
            .args(["--bind", "127.0.0.1", "127.0.0.2"])
            .args(["--tls-port", &port.to_string()])
            .args(["--tls-cert-file", &certificate])
            .args(["--tls-key-file", &key])
            .args(["--tls-ca-cert-file", &certificate]);
        let server = Self::start_program(redis);
        let tls = Tls {
            url: format!("rediss://localhost:{port}"),
            certificate,
            key,
            _directory: directory,
        };
        (server, tls)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}/s", self.directory.path().display())
    }

    /// `kumi muf` for this server, with more words to come.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.through(Command::new(env!("CARGO_BIN_EXE_kumi")), words)
    }

    /// As [`Self::command`], by a program that runs kumi.
    fn through(&self, mut program: Command, words: &[&str]) -> Command {
        program.arg("muf").args(words).env("KUMI_URL", self.url());
        program
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, b"")
    }

    /// Runs a command with this as its standard input.
    pub(crate) fn run_with(&self, words: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read its input is none the worse for it.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("it is our child")
    }

    /// Runs a command that has to succeed, and answers what it printed.
    #[track_caller]
    pub(crate) fn printed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that has to fail, and compares its exit code and part of what it says.
    #[track_caller]
    pub(crate) fn fails(&self, words: &[&str], code: i32, text: &str) {
        let output = self.run(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(error.contains(text), "{words:?}: no {text:?} in {error:?}");
        assert_eq!(output.stdout, b"", "{words:?}");
    }

    /// Starts a command whose output is not read.
    pub(crate) fn start(&self, words: &[&str]) -> Running {
        self.watch(words)
    }

    /// Starts a command on a terminal of its own.
    pub(crate) fn on_terminal(&self, words: &[&str]) -> Running {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("{} muf {}", env!("CARGO_BIN_EXE_kumi"), words.join(" "));
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--flush", "--return", "--command", &line])
            .arg("/dev/null")
            .env("KUMI_URL", self.url())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR");
        let mut child = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is installed");
        let lines = lines(child.stdout.take().expect("it is piped"));
        Running { child, lines }
    }

    /// Starts `kumi muf serve` and waits until it serves.
    pub(crate) fn serve(&self, words: &[&str]) -> Running {
        let words: Vec<&str> = [&["serve"], words].concat();
        Self::until_it_serves(self.command(&words))
    }

    /// As [`Self::serve`], where SIGHUP ends it also if these tests run under nohup: children inherit that it is ignored.
    pub(crate) fn serve_on_hangup(&self, words: &[&str]) -> Running {
        let words: Vec<&str> = [&["serve"], words].concat();
        let mut program = Command::new("env");
        program.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_kumi")]);
        Self::until_it_serves(self.through(program, &words))
    }

    fn until_it_serves(mut command: Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let lines = lines(child.stderr.take().expect("it is piped"));
        until(&lines, "serving");
        Running { child, lines }
    }

    /// Starts a command that goes on printing.
    pub(crate) fn watch(&self, words: &[&str]) -> Running {
        let mut child = self
            .command(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let lines = lines(child.stdout.take().expect("it is piped"));
        Running { child, lines }
    }

    /// What `redis-cli` prints.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .arg("-s")
            .arg(self.directory.path().join("s"))
            .args(words)
            .output()
            .expect("redis-cli is installed");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Asks `redis-cli` until it prints what is wanted.
    pub(crate) fn until(&self, words: &[&str], wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let printed = self.cli(words);
            if wanted(&printed) {
                return printed;
            }
            assert!(started.elapsed() < PATIENCE, "{words:?}: {printed}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the server before its time.
    pub(crate) fn kill(&mut self) {
        process::kill(&mut self.child);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a server in a directory and waits until it is ready.
fn launch(mut program: Command, directory: &Path) -> Child {
    let mut child = program
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(directory.join("s"))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let log = lines(child.stdout.take().expect("it is piped"));
    until(&log, "eady to accept connections");
    child
}

/// How to reach a server by TLS.
pub(crate) struct Tls {
    pub(crate) url: String,
    /// Paths of files.
    pub(crate) certificate: String,
    pub(crate) key: String,
    _directory: TempDir,
}

/// A command in the background. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn next(&self) -> String {
        next(&self.lines)
    }

    /// Reads on until a line holds this text.
    pub(crate) fn until(&self, text: &str) -> String {
        until(&self.lines, text)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let line = self.next();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(&self.child, signal);
    }

    /// Sends a signal, and answers the exit code; none if it was killed.
    pub(crate) fn stop(&mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        process::ended(&mut self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// Waits until there is no such process.
pub(crate) fn ended(pid: &str) {
    let started = Instant::now();
    // A process that ended and whose parent has not noticed has no command line.
    let is_there = || {
        let line = std::fs::read(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| !line.is_empty())
    };
    while is_there() {
        assert!(started.elapsed() < PATIENCE, "{pid} is still running");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lines of a program, read on a thread so that waiting for one can end.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // The pipe is read on, so that the program is never held up.
            let _ = sender.send(line);
        }
    });
    receiver
}

#[track_caller]
fn next(lines: &Receiver<String>) -> String {
    lines.recv_timeout(PATIENCE).expect("another line in time")
}

#[track_caller]
fn until(lines: &Receiver<String>, text: &str) -> String {
    loop {
        let line = next(lines);
        if line.contains(text) {
            return line;
        }
    }
}
