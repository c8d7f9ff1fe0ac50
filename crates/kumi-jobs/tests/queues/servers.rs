//! Servers for the tests, on loopback: a redis-server of the Debian package, a cluster of them, or a kumi-server. Killed when
//! dropped.

use crate::children;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The program of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Redis,
    Kumi,
}

/// Defines each of the tests, which take a `Kind`, once for redis-server and once for kumi-server.
macro_rules! on_both_servers {
    ($($test:ident),* $(,)?) => {
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(crate::servers::Kind::Redis).await;
            })*
        }
        mod on_kumi {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(crate::servers::Kind::Kumi).await;
            })*
        }
    };
}
pub(crate) use on_both_servers;

/// A server on a port of its own.
pub(crate) struct Server {
    kind: Kind,
    child: Child,
    pub(crate) port: u16,
    dir: tempfile::TempDir,
    args: Vec<String>,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        Self::with_args(kind, &[])
    }

    pub(crate) fn with_args(kind: Kind, args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        // Another process may take the port in between; then the server says so, and another one is tried.
        for _ in 0..20 {
            let port = free_ports(1)[0];
            if let Some(child) = start(kind, port, dir.path(), args) {
                let args = args.iter().map(ToString::to_string).collect();
                return Self {
                    kind,
                    child,
                    port,
                    dir,
                    args,
                };
            }
        }
        panic!("no port for a server");
    }

    /// The URL of a queue with a name of its own.
    pub(crate) fn url(&self) -> String {
        queue_url(self.port)
    }

    /// Kills the server and starts it again on its port, with what it saved.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    pub(crate) fn stop(&mut self) {
        end(&mut self.child);
    }

    /// Starts a server that was stopped.
    pub(crate) fn start_again(&mut self) {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let deadline = Instant::now() + Duration::from_secs(20);
        self.child = loop {
            match start(self.kind, self.port, self.dir.path(), &args) {
                Some(child) => break child,
                None => assert!(Instant::now() < deadline, "the port was taken"),
            }
        };
    }

    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        cli(self.port, arguments)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Three primaries with a replica each.
pub(crate) struct Cluster {
    nodes: Vec<Child>,
    pub(crate) ports: Vec<u16>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ports = free_ports(6);
        let nodes = ports.iter().map(|port| {
            let config = format!("nodes-{port}.conf");
            let args = [
                "--cluster-enabled",
                "yes",
                "--cluster-config-file",
                &config,
                "--cluster-node-timeout",
                "2000",
                "--repl-ping-replica-period",
                "1",
                "--repl-diskless-sync-delay",
                "0",
            ];
            start(Kind::Redis, *port, dir.path(), &args).expect("a node")
        });
        let cluster = Self {
            nodes: nodes.collect(),
            ports,
            _dir: dir,
        };
        let made = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(cluster.ports.iter().map(|port| format!("127.0.0.1:{port}")))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .expect("redis-cli is installed");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stdout)
        );
        wait_until("all nodes agree and replicas are linked", || {
            cluster.ports.iter().all(|port| {
                let state = cli(*port, &["CLUSTER", "INFO"]);
                let role = cli(*port, &["INFO", "replication"]);
                let linked =
                    role.contains("connected_slaves:1") || role.contains("master_link_status:up");
                state.contains("cluster_state:ok") && linked
            })
        });
        cluster
    }

    pub(crate) fn url(&self) -> String {
        queue_url(self.ports[0])
    }

    /// The index of the primary that holds a queue.
    pub(crate) fn primary_of(&self, queue_key: &str) -> usize {
        let slot: u16 = cli(self.ports[0], &["CLUSTER", "KEYSLOT", queue_key])
            .parse()
            .expect("a slot");
        let mine = |port: &u16| {
            let nodes = cli(*port, &["CLUSTER", "NODES"]);
            let me = nodes
                .lines()
                .find(|line| line.contains("myself"))
                .unwrap_or_default();
            let ranges = me.split_whitespace().skip(8).filter_map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                Some(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?)
            });
            me.contains("master") && ranges.into_iter().any(|range| range.contains(&slot))
        };
        self.ports
            .iter()
            .position(mine)
            .expect("the slot has an owner")
    }

    /// The index of the replica of a primary.
    pub(crate) fn replica_of(&self, primary: usize) -> usize {
        let primary = self.ports[primary].to_string();
        let is_replica = |port: &u16| {
            let role = cli(*port, &["ROLE"]);
            let role: Vec<&str> = role.lines().collect();
            role.first() == Some(&"slave") && role.get(2) == Some(&&*primary)
        };
        self.ports
            .iter()
            .position(is_replica)
            .expect("each primary has a replica")
    }

    pub(crate) fn kill(&mut self, index: usize) {
        end(&mut self.nodes[index]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(end);
    }
}

pub(crate) fn queue_url(port: u16) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let queue = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("redis://127.0.0.1:{port}/?queue=q{queue}")
}

pub(crate) fn cli(port: u16, arguments: &[&str]) -> String {
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &port.to_string()]).args(arguments);
    let output = cli.output().expect("redis-cli is installed");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Looks again and again, for half a minute.
pub(crate) fn wait_until(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !check() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A server that says it is ready; None if it could not start.
fn start(kind: Kind, port: u16, dir: &Path, args: &[&str]) -> Option<Child> {
    let port = port.to_string();
    let mut arguments = vec!["--port", &port, "--bind", "127.0.0.1", "--save", ""];
    arguments.extend(args);
    let mut command = match kind {
        Kind::Redis => {
            let mut redis = Command::new("redis-server");
            redis.args(arguments);
            redis
        }
        Kind::Kumi => children::server(&arguments),
    };
    let mut child = command
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-server is installed");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    while lines.read_line(&mut line).expect("text") > 0 {
        if line.contains("Ready to accept connections") {
            // Its output is read on, so that it never blocks on a full pipe.
            std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
            return Some(child);
        }
        line.clear();
    }
    end(&mut child);
    None
}

/// Ports that are free, as are those 10,000 above, which a cluster's nodes use among themselves.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let mut held = Vec::new();
    while held.len() < count {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            held.push((port, listener));
        }
    }
    held.into_iter().map(|(port, _)| port).collect()
}
