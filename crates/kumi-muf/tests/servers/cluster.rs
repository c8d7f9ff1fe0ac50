//! A Redis Cluster of three primaries and three replicas, made by the test from the Debian package.

use std::future::IntoFuture;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kumi_muf::{Error, KeepEvent, Muf, Request};

/// Six nodes. Killed when dropped.
struct Cluster {
    nodes: Vec<Child>,
    ports: Vec<u16>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ports = free_ports(6);
        let nodes = ports.iter().map(|port| node(*port, dir.path())).collect();
        let cluster = Self {
            nodes,
            ports,
            _dir: dir,
        };
        for port in &cluster.ports {
            wait_until("a node answers", || cluster.cli(*port, &["PING"]) == "PONG");
        }
        let addresses = cluster.ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let made = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .expect("redis-cli is installed");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stdout)
        );
        wait_until("all agree, and replicas are linked", || {
            cluster.ports.iter().all(|port| {
                let state = cluster.cli(*port, &["CLUSTER", "INFO"]);
                let role = cluster.cli(*port, &["INFO", "replication"]);
                state.contains("cluster_state:ok")
                    && (role.contains("connected_slaves:1")
                        || role.contains("master_link_status:up"))
            })
        });
        cluster
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.ports[0])
    }

    fn cli(&self, port: u16, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-c", "-p", &port.to_string()])
            .args(arguments)
            .output();
        String::from_utf8_lossy(&output.expect("redis-cli is installed").stdout)
            .trim_end()
            .to_owned()
    }

    fn primaries(&self) -> Vec<usize> {
        let is_primary = |port: &u16| {
            self.cli(*port, &["INFO", "replication"])
                .contains("role:master")
        };
        (0..self.ports.len())
            .filter(|index| is_primary(&self.ports[*index]))
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

fn node(port: u16, dir: &std::path::Path) -> Child {
    Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--cluster-enabled",
            "yes",
        ])
        .args([
            "--cluster-node-timeout",
            "2000",
            "--cluster-config-file",
            &format!("nodes-{port}.conf"),
        ])
        .args(["--repl-ping-replica-period", "1", "--cluster-port", "0"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed")
}

/// Ports whose bus port (10,000 above) is free too.
fn free_ports(count: usize) -> Vec<u16> {
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

/// A cluster tells nobody when it has settled; it has to be asked.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_serves_calls_and_survives_a_failover() {
    let mut cluster = tokio::task::spawn_blocking(Cluster::start)
        .await
        .expect("a cluster");
    let backend = Muf::connect(&cluster.url(), "back").await.expect("a unit");
    backend
        .serve("*", |request: Request| async move {
            Ok::<_, Error>(request.payload().clone())
        })
        .await
        .expect("a service");
    let web = Muf::connect(&cluster.url(), "web").await.expect("a unit");

    // IDs fall on all primaries.
    for n in 0..100 {
        let answer = web.request("a.b", n.to_string()).await.expect("an answer");
        assert_eq!(answer.bytes(), &n.to_string());
    }
    // A bare ID has its keys anywhere.
    for id in ["x", "y", "hello"] {
        cluster.cli(
            cluster.ports[0],
            &["SET", &format!("MUF/me/REQ/{id}"), "v", "EX", "10"],
        );
        wait_until("a bare ID is answered", || {
            cluster.cli(cluster.ports[0], &["GET", &format!("MUF/me/RES/{id}")]) == "v"
        });
    }
    assert_eq!(
        web.gather("a.b", "all")
            .count(1)
            .await
            .expect("answers")
            .len(),
        1
    );
    let mut watch = web.watch_keep("back/*").await.expect("a watch");
    assert_eq!(watch.next().await, Some(KeepEvent::Live));
    for n in 0..10 {
        backend
            .keep(&format!("v{n}"), n.to_string())
            .await
            .expect("kept");
    }
    for _ in 0..10 {
        assert!(matches!(watch.next().await, Some(KeepEvent::Value { .. })));
    }
    let units: Vec<String> = web
        .units()
        .await
        .expect("units")
        .into_iter()
        .map(|info| info.unit)
        .collect();
    assert_eq!(units, ["back", "web"]);

    // One primary dies while calls are in flight; its replica is promoted.
    let victim = cluster.primaries()[1];
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let call = web
                .request("a.b", n.to_string())
                .ttl(Duration::from_secs(30))
                .timeout(Duration::from_secs(40));
            tokio::spawn(call.into_future())
        })
        .collect();
    cluster.nodes[victim].kill().expect("it lived");
    let mut later = Vec::new();
    for n in 0..50 {
        let call = web
            .request("a.b", n.to_string())
            .ttl(Duration::from_secs(30))
            .timeout(Duration::from_secs(40));
        later.push(tokio::spawn(call.into_future()));
    }
    let (mut answers, mut others) = (0, Vec::new());
    for call in calls.into_iter().chain(later) {
        match call.await.expect("no caller hangs") {
            Ok(_) => answers += 1,
            Err(error) => others.push(error),
        }
    }
    assert!(others.is_empty(), "{answers} answers, and {others:?}");
    assert_eq!(answers, 250);
}
