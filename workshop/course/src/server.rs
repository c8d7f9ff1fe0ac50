//! Starts a server under test and reads its log.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running server; it is killed when this is dropped.
pub struct Server {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    /// Reads the log until the process ends.
    reader: Option<JoinHandle<()>>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts a binary with `--port 0` and waits until its log says where it listens. The error is the last log line.
    pub fn start(binary: &Path, arguments: &[&str]) -> Result<Server, String> {
        let mut child = Command::new(binary)
            .args(arguments)
            .args(["--port", "0"])
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let reader = child.stderr.take().map(|stderr| {
            let log = log.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                }
            })
        });
        let mut server = Server { child, log, reader, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            // Looked at before the log is read: of a process that has ended, the log is complete.
            let running = server.is_running();
            let address = server.log().iter().find_map(|line| line.split("listening on ").nth(1)?.trim().parse().ok());
            if let Some(address) = address {
                server.address = address;
                return Ok(server);
            }
            if !running || Instant::now() > deadline {
                // The standard library's advice on backtraces comes after the panic's own line.
                let log = server.log();
                return Err(log.iter().rfind(|line| !line.contains("RUST_BACKTRACE")).cloned().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The log's lines so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// False once the process has ended; its log is complete then.
    pub fn is_running(&mut self) -> bool {
        let running = matches!(self.child.try_wait(), Ok(None));
        if let Some(reader) = self.reader.take_if(|_| !running) {
            let _ = reader.join();
        }
        running
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The missing piece that a `todo!` named, in the log from line `from` on: step and file. A later step's is not
    /// what a test of `step` misses: a background task may have reached it.
    pub fn todo_since(&self, from: usize, step: u8) -> Option<(u8, String)> {
        // The reply and the log line come by two roads; give the line a moment.
        let deadline = Instant::now() + Duration::from_millis(300);
        loop {
            let found = self.log().iter().skip(from).find_map(|line| {
                let (missing, file) = line.split("not yet implemented: step ").nth(1)?.split_once(": ")?;
                let missing = missing.parse().ok().filter(|missing| *missing <= step)?;
                Some((missing, file.split_whitespace().next()?.to_string()))
            });
            if found.is_some() || Instant::now() > deadline {
                return found;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
