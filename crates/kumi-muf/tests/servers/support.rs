//! Real servers for tests: each on a Unix socket or loopback port of its own, in a directory that goes with it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kumi_muf::{Builder, Muf};

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Kumi,
}

/// A server process. Killed when dropped.
pub(crate) struct Server {
    kind: Kind,
    child: Child,
    dir: tempfile::TempDir,
}

impl Server {
    pub(crate) fn redis() -> Self {
        Self::start(Kind::Redis).expect("redis-server is installed")
    }

    /// Starts a server; none if its program is not there.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let child = launch(kind, &dir)?;
        Some(Self { kind, child, dir })
    }

    /// Servers to run a test on: redis-server, and kumi-server if it was built.
    pub(crate) fn each() -> Vec<Self> {
        [Kind::Redis, Kind::Kumi]
            .into_iter()
            .filter_map(Self::start)
            .collect()
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) async fn unit(&self, name: &str) -> Muf {
        self.builder(name).connect().await.expect("a connection")
    }

    pub(crate) fn builder(&self, name: &str) -> Builder {
        Muf::builder(&self.url(), name)
    }

    /// What `redis-cli` prints, without the last newline.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .arg("-s")
            .arg(self.socket())
            .args(arguments)
            .output();
        let output = output.expect("redis-cli is installed");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// `redis-cli` listening for the first push on a pattern; the thread ends with it.
    pub(crate) fn cli_waits_for(&self, channel: &str) -> tokio::task::JoinHandle<()> {
        let mut child = Command::new("redis-cli")
            .arg("-s")
            .arg(self.socket())
            .args(["PSUBSCRIBE", channel])
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli is installed");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"))
            .lines()
            .map_while(Result::ok);
        // It says that it is subscribed before anything else.
        assert!(
            lines.by_ref().any(|line| line == "psubscribe"),
            "redis-cli subscribes"
        );
        tokio::task::spawn_blocking(move || {
            assert!(lines.any(|line| line == "pmessage"), "a push arrives");
            let _ = child.kill();
            let _ = child.wait();
        })
    }

    /// Kills the process and starts it again, with nothing in memory.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = launch(self.kind, &self.dir).expect("it started before");
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// IDs of client connections, by type.
    pub(crate) fn clients(&self, kind: &str) -> Vec<String> {
        let list = self.cli(&["CLIENT", "LIST", "TYPE", kind]);
        let id = |line: &str| Some(line.split_once("id=")?.1.split(' ').next()?.to_owned());
        list.lines()
            .filter(|line| !line.contains("cmd=client"))
            .filter_map(id)
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(kind: Kind, dir: &tempfile::TempDir) -> Option<Child> {
    let socket = dir.path().join("s");
    let _ = std::fs::remove_file(&socket);
    let program = match kind {
        Kind::Redis => PathBuf::from("redis-server"),
        Kind::Kumi => kumi_server()?,
    };
    let mut child = Command::new(program)
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut log = BufReader::new(child.stdout.take()?);
    // A server says in its log when it is ready; after that the log is read so that the pipe never fills.
    let mut line = String::new();
    while log.read_line(&mut line).ok()? > 0 {
        if line.contains("eady to accept connections") {
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return Some(child);
        }
        line.clear();
    }
    let _ = child.wait();
    None
}

/// The kumi-server that was built beside this test, or the one that `KUMI_SERVER` names.
fn kumi_server() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("KUMI_SERVER") {
        return Some(path.into());
    }
    let target = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let built = target.join("kumi-server");
    if !built.exists() {
        println!(
            "{} is not built; testing on redis-server only",
            built.display()
        );
        return None;
    }
    Some(built)
}
