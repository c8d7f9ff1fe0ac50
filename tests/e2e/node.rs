//! A `kumi up` of its own for each test, on a Unix socket in a directory of its own, and `redis-cli` to talk to it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before the test fails. Only a failing test ever waits that long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A running node. Dropping it ends it.
pub(crate) struct Node {
    child: Child,
    stdout: Lines,
    directory: TempDir,
}

impl Node {
    /// Starts a node with these options besides its socket, and waits for its banner.
    pub(crate) fn start(options: &[&str]) -> Node {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["up", "--port", "0", "--unixsocket"])
            .arg(directory.path().join("node.sock"))
            .args(options)
            .env("XDG_STATE_HOME", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let stdout = Lines::of(child.stdout.take().expect("it is piped"));
        let node = Node {
            child,
            stdout,
            directory,
        };
        while !node.stdout.next().contains("ctrl-c") {}
        node
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("node.sock")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// `redis-cli` for this node, with more arguments to come.
    pub(crate) fn redis_cli(&self) -> Command {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket());
        command
    }

    /// Runs one command as `redis-cli` does it for a terminal, where replies show their types.
    pub(crate) fn cli(&self, line: &str) -> String {
        let words = line.split_whitespace();
        output(self.redis_cli().arg("--no-raw").args(words), b"")
    }

    /// Feeds lines to one `redis-cli`.
    pub(crate) fn script(&self, lines: &str) -> String {
        output(self.redis_cli().arg("--no-raw"), lines.as_bytes())
    }

    /// Compares what `redis-cli` prints for each line.
    #[track_caller]
    pub(crate) fn check(&self, lines: &[(&str, &str)]) {
        for (line, expected) in lines {
            assert_eq!(self.cli(line).trim_end(), *expected, "after {line}");
        }
    }

    /// A `redis-cli` that goes on printing.
    pub(crate) fn listen(&self, words: &[&str]) -> Listening {
        let mut child = self
            .redis_cli()
            .arg("--no-raw")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli is installed");
        let lines = Lines::of(child.stdout.take().expect("it is piped"));
        Listening { child, lines }
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn stop(mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs and is ours");
        wait(&mut self.child)
    }

    /// Waits for a node that ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A `redis-cli` in the background. Dropping it ends it.
pub(crate) struct Listening {
    child: Child,
    lines: Lines,
}

impl Listening {
    /// The next line it prints.
    pub(crate) fn next(&self) -> String {
        self.lines.next()
    }

    /// Reads on until a line holds this text.
    pub(crate) fn until(&self, text: &str) -> String {
        loop {
            let line = self.next();
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Lines of a running program's output, read on a thread so that waiting for one can end.
struct Lines(Receiver<String>);

impl Lines {
    fn of(stdout: ChildStdout) -> Lines {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Lines(receiver)
    }

    fn next(&self) -> String {
        match self.0.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {TIMEOUT:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the program ended without that line"),
        }
    }
}

/// Runs a program to its end and answers what it printed.
pub(crate) fn output(command: &mut Command, input: &[u8]) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    // A program that has heard enough closes its end; what it printed tells more than this error would.
    let _ = stdin.write_all(input);
    drop(stdin);
    wait(&mut child);
    let bytes = reader.join().expect("reading does not panic");
    String::from_utf8_lossy(&bytes.expect("a pipe can be read")).into_owned()
}

fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status;
        }
        if started.elapsed() > TIMEOUT {
            end(child);
            panic!("still running after {TIMEOUT:?}");
        }
        // There is no portable way to wait for a child with a limit; nothing depends on how long this takes.
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn end(child: &mut Child) {
    // Both fail only for a child that has ended already.
    let _ = child.kill();
    let _ = child.wait();
}
