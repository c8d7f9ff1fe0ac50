//! Starts server processes on private Unix sockets and ends them on drop.
//!
//! Readiness is the server's own word: its log line, not a delay. The log's tail is kept, so that a failing test can
//! show what the server said.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::client::Client;

/// How long a server may take to say that it is ready.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How many log lines are kept.
const LOG_LINES: usize = 60;

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    socket: PathBuf,
    log: Arc<Mutex<VecDeque<String>>>,
    /// Holds the socket and whatever the server writes; removed last.
    _dir: tempfile::TempDir,
}

impl Server {
    /// Starts `binary` with `flags` behind those that give it a private socket and directory.
    pub(crate) fn start(binary: &Path, flags: &[&str]) -> Result<Server, String> {
        let dir = tempfile::Builder::new()
            .prefix("kumi-test-")
            .tempdir()
            .map_err(|error| format!("no temporary directory: {error}"))?;
        let socket = dir.path().join("s");
        let mut child = Command::new(binary)
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(dir.path())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", binary.display()))?;

        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (ready, is_ready) = channel();
        if let Some(stdout) = child.stdout.take() {
            follow(stdout, Arc::clone(&log), ready.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            follow(stderr, Arc::clone(&log), ready);
        }
        let mut server = Server {
            child,
            socket,
            log,
            _dir: dir,
        };
        // Both senders are gone once the process has closed its output, so a server that dies at once is no wait.
        match is_ready.recv_timeout(START_LIMIT) {
            Ok(()) => Ok(server),
            Err(_) => {
                let status = server.child.try_wait();
                Err(format!(
                    "{} did not become ready ({status:?}); it said:\n{}",
                    binary.display(),
                    server.log_tail()
                ))
            }
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn connect(&self, timeout: Duration) -> Result<Client, String> {
        Client::connect(&self.socket, timeout).map_err(|error| {
            format!(
                "no connection to {}: {error}; the server said:\n{}",
                self.socket.display(),
                self.log_tail()
            )
        })
    }

    /// The last lines of the server's log.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log.lock().expect("no holder of the log panics");
        log.iter().map(|line| format!("    {line}\n")).collect()
    }

    /// Waits for the process to end by itself.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus, String> {
        let started = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if started.elapsed() < limit => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                other => return Err(format!("still running after {limit:?}: {other:?}")),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that has ended already refuses both, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the tail of a server's output and tells when it says that it is ready.
fn follow(
    stream: impl Read + Send + 'static,
    log: Arc<Mutex<VecDeque<String>>>,
    ready: Sender<()>,
) {
    std::thread::spawn(move || {
        let mut ready = Some(ready);
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.to_lowercase().contains("ready to accept connections")
                && let Some(ready) = ready.take()
            {
                // Nobody listens any more when the other stream was first.
                let _ = ready.send(());
            }
            let mut log = log.lock().expect("no holder of the log panics");
            if log.len() == LOG_LINES {
                log.pop_front();
            }
            log.push_back(line);
        }
    });
}
