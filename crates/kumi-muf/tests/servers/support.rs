//! Real servers for tests: each on a Unix socket or loopback port of its own, in a directory that goes with it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kumi_muf::{Builder, Error, Muf, Request};
use tokio::task::JoinHandle;

use crate::children;

/// Somewhere that redis-cli and units can meet: one server, or a cluster.
pub(crate) trait Place {
    fn url(&self) -> String;

    /// What `redis-cli` prints, without the last newline.
    fn cli(&self, arguments: &[&str]) -> String;

    /// All keys that match.
    fn keys(&self, glob: &str) -> Vec<String>;

    /// Commands of `redis-cli`, once on each node that sends events.
    fn everywhere(&self) -> Vec<Command>;

    /// `redis-cli` listening for the first push on a pattern. When this returns, it is subscribed.
    fn listen(&self, channel: &str) -> JoinHandle<()> {
        let (heard, events) = std::sync::mpsc::channel();
        let mut listeners = Vec::new();
        for mut cli in self.everywhere() {
            cli.args(["PSUBSCRIBE", channel]).stdout(Stdio::piped());
            let mut child = cli.spawn().expect("redis-cli is installed");
            let mut lines = BufReader::new(child.stdout.take().expect("a pipe"))
                .lines()
                .map_while(Result::ok);
            // It says that it is subscribed before anything else.
            let subscribed = lines.by_ref().any(|line| line == "psubscribe");
            assert!(subscribed, "redis-cli subscribes");
            let heard = heard.clone();
            std::thread::spawn(move || {
                if lines.any(|line| line == "pmessage") {
                    let _ = heard.send(());
                }
            });
            listeners.push(child);
        }
        drop(heard);
        tokio::task::spawn_blocking(move || {
            let told = events.recv();
            for mut listener in listeners {
                end(&mut listener);
            }
            told.expect("a push arrives");
        })
    }
}

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kumi,
    Redis,
}

/// A server process. Killed when dropped.
pub(crate) struct Server {
    kind: Kind,
    child: Child,
    dir: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let child = launch(kind, &dir);
        Self { kind, child, dir }
    }

    /// One of each kind: what holds on one has to hold on the other.
    pub(crate) fn each() -> impl Iterator<Item = Self> {
        [Kind::Kumi, Kind::Redis].into_iter().map(|kind| {
            println!("on {kind:?}");
            Self::start(kind)
        })
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

    /// Kills the process and starts it again, with nothing in memory.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = launch(self.kind, &self.dir);
    }

    pub(crate) fn kill(&mut self) {
        end(&mut self.child);
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

impl Place for Server {
    fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn cli(&self, arguments: &[&str]) -> String {
        output(self.everywhere().remove(0).args(arguments))
    }

    fn keys(&self, glob: &str) -> Vec<String> {
        let keys = self.cli(&["--scan", "--pattern", glob]);
        keys.lines().map(str::to_owned).collect()
    }

    fn everywhere(&self) -> Vec<Command> {
        let mut cli = Command::new("redis-cli");
        cli.arg("-s").arg(self.socket());
        vec![cli]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a command prints, without the last newline.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().expect("redis-cli is installed");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn launch(kind: Kind, dir: &tempfile::TempDir) -> Child {
    let socket = dir.path().join("s");
    let _ = std::fs::remove_file(&socket);
    let socket = socket.to_str().expect("a path in UTF-8");
    let arguments = ["--port", "0", "--save", "", "--unixsocket", socket];
    let mut command = match kind {
        Kind::Kumi => children::program("server", &arguments),
        Kind::Redis => {
            let mut redis = Command::new("redis-server");
            redis.args(arguments);
            redis
        }
    };
    until_ready(command.current_dir(dir.path()))
}

/// Starts a server and waits until it says in its log that it is ready.
pub(crate) fn until_ready(command: &mut Command) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let mut log = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while log.read_line(&mut line).expect("a log") > 0 {
        if line.contains("eady to accept connections") {
            // The rest is read so that the pipe never fills.
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
            return child;
        }
        line.clear();
    }
    panic!("the server ended: {:?}", child.wait());
}

/// For a state that sends no event when it is reached, and has to be polled.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A handler that sends back what it got.
pub(crate) async fn echo(request: Request) -> Result<bytes::Bytes, Error> {
    Ok(request.payload().clone())
}
