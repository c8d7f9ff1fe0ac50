//! A Redis Cluster of three primaries, with or without replicas, made by the test from the Debian package.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::net::TcpListener;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kumi_muf::{Error, KeepEvent, Muf, ServerError, Stats, Traffic};

use crate::interop::{a_person_answers, a_person_calls, two_people};
use crate::support::{Place, echo, end, output, until_ready, wait_until};

/// Three primaries, and perhaps a replica of each. Killed when dropped.
struct Cluster {
    nodes: Vec<Child>,
    ports: Vec<u16>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    fn start(replicas: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ports = free_ports(if replicas { 6 } else { 3 });
        let nodes = ports.iter().map(|port| node(*port, dir.path())).collect();
        let cluster = Self {
            nodes,
            ports,
            _dir: dir,
        };
        let addresses = cluster.ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let made = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", if replicas { "1" } else { "0" }])
            .arg("--cluster-yes")
            .output()
            .expect("redis-cli is installed");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stdout)
        );
        wait_until("all agree, and replicas are linked", || {
            cluster.ports.iter().all(|port| {
                let state = cluster.ask(*port, &["CLUSTER", "INFO"]);
                let role = cluster.ask(*port, &["INFO", "replication"]);
                let linked =
                    role.contains("connected_slaves:1") || role.contains("master_link_status:up");
                state.contains("cluster_state:ok") && (linked || !replicas)
            })
        });
        cluster
    }

    /// What one node says.
    fn ask(&self, port: u16, arguments: &[&str]) -> String {
        output(cli(port).args(arguments))
    }

    /// Gives all slots of the last primary to the first, or back to the last.
    fn move_slots(&self, to_last: bool) {
        const SLOTS: [&str; 2] = ["10923", "16383"];
        let (first, last) = (self.ports[0], self.ports[self.ports.len() - 1]);
        let (from, to) = if to_last {
            (first, last)
        } else {
            (last, first)
        };
        // The owner before the others: it would claim them again.
        let others = self.ports.iter().filter(|port| **port != from);
        for port in [&from].into_iter().chain(others) {
            self.ask(*port, &[&["CLUSTER", "DELSLOTSRANGE"][..], &SLOTS].concat());
        }
        let added = self.ask(to, &[&["CLUSTER", "ADDSLOTSRANGE"][..], &SLOTS].concat());
        assert_eq!(added, "OK");
        self.ask(to, &["CLUSTER", "BUMPEPOCH"]);
        wait_until("all agree on the slots", || {
            self.ports.iter().all(|port| {
                let slots = self.ask(*port, &["CLUSTER", "SLOTS"]);
                let names_last = slots.lines().any(|line| line == last.to_string());
                let state = self.ask(*port, &["CLUSTER", "INFO"]);
                names_last == to_last && state.contains("cluster_state:ok")
            })
        });
    }

    /// How many connections of units the last primary has.
    fn units_at_last(&self) -> usize {
        let clients = self.ask(self.ports[self.ports.len() - 1], &["CLIENT", "LIST"]);
        let is_unit = |line: &&str| line.contains("lib-name=kumi-muf") || line.contains("~");
        clients.lines().filter(is_unit).count()
    }

    fn primaries(&self) -> Vec<usize> {
        let is_primary = |port: &u16| {
            self.ask(*port, &["INFO", "replication"])
                .contains("role:master")
        };
        (0..self.ports.len())
            .filter(|index| is_primary(&self.ports[*index]))
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(end);
    }
}

impl Place for Cluster {
    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.ports[0])
    }

    fn cli(&self, arguments: &[&str]) -> String {
        output(cli(self.ports[0]).arg("-c").args(arguments))
    }

    fn keys(&self, glob: &str) -> Vec<String> {
        let scan = |port: &u16| self.ask(*port, &["--scan", "--pattern", glob]);
        let found: Vec<String> = self.ports.iter().map(scan).collect();
        found
            .iter()
            .flat_map(|keys| keys.lines())
            .map(str::to_owned)
            .collect()
    }

    fn everywhere(&self) -> Vec<Command> {
        self.ports.iter().map(|port| cli(*port)).collect()
    }
}

fn cli(port: u16) -> Command {
    let mut cli = Command::new("redis-cli");
    cli.args(["-p", &port.to_string()]);
    cli
}

fn node(port: u16, dir: &std::path::Path) -> Child {
    let file = format!("nodes-{port}.conf");
    until_ready(
        Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--cluster-enabled", "yes"])
            .args([
                "--cluster-config-file",
                &file,
                "--cluster-node-timeout",
                "2000",
            ])
            .args(["--repl-ping-replica-period", "1", "--cluster-port", "0"])
            .current_dir(dir),
    )
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

#[tokio::test(flavor = "multi_thread")]
async fn redis_cli_is_enough_on_a_cluster_too() {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(false));
    let cluster = cluster.await.expect("a cluster");
    two_people(&cluster).await;
    a_person_answers(&cluster).await;
    a_person_calls(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_and_onlookers_see_all_primaries_of_a_cluster() {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(false));
    let cluster = cluster.await.expect("a cluster");
    let sensor = Muf::connect(&cluster.url(), "sensor")
        .await
        .expect("a unit");
    let web = Muf::connect(&cluster.url(), "web").await.expect("a unit");
    let names: BTreeSet<String> = (0..12).map(|n| format!("v{n}")).collect();
    for name in &names {
        sensor.keep(name, "before").await.expect("kept");
    }
    let mut watch = web.watch_keep("sensor/*").await.expect("a watch");
    let mut next = async || {
        let next = tokio::time::timeout(Duration::from_secs(30), watch.next());
        next.await.expect("no hang").expect("open")
    };
    let mut shown = BTreeSet::new();
    while let KeepEvent::Value { id, .. } = next().await {
        shown.insert(id);
    }
    assert_eq!(shown, names, "the snapshot is of all primaries");

    // Changes, deletions and ends, on whichever primary they happen.
    for name in &names {
        sensor.keep(name, "after").await.expect("kept");
    }
    let mut changed = BTreeSet::new();
    while changed.len() < names.len() {
        match next().await {
            KeepEvent::Value { id, value, .. } if value == "after" => changed.insert(id),
            other => panic!("{other:?}"),
        };
    }
    for name in &names {
        cluster.cli(&["DEL", &format!("MUF/sensor/KEEP/{name}")]);
    }
    let mut deleted = BTreeSet::new();
    while deleted.len() < names.len() {
        match next().await {
            KeepEvent::Deleted { id, .. } => deleted.insert(id),
            other => panic!("{other:?}"),
        };
    }
    let brief = sensor.keep("brief", "x").ttl(Duration::from_secs(1));
    brief.await.expect("kept");
    assert!(matches!(next().await, KeepEvent::Value { .. }));
    assert!(matches!(next().await, KeepEvent::Expired { id, .. } if id == "brief"));

    // One primary's pushes break off: something may have been missed.
    cluster.ask(cluster.ports[1], &["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(next().await, KeepEvent::Gap);
    assert_eq!(next().await, KeepEvent::Live);

    // An onlooker sees the traffic of others wherever their keys are.
    let mut tap = web.tap().await.expect("a tap");
    sensor.serve("a.b", echo).await.expect("a service");
    let caller = Muf::connect(&cluster.url(), "caller")
        .await
        .expect("a unit");
    let calls = 10;
    for _ in 0..calls {
        caller.request("a.b", "x").await.expect("an answer");
    }
    let mut answered = BTreeSet::new();
    while answered.len() < calls {
        let next = tokio::time::timeout(Duration::from_secs(30), tap.next());
        let traffic = next.await.expect("no hang").expect("open").expect("read");
        if let Traffic::Key(seen) = traffic
            && seen.status.as_str() == "RES"
        {
            assert_eq!(seen.unit, "caller");
            answered.insert(seen.id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_leaves_the_map_of_slots_and_comes_back_serves_again() {
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(false));
    let cluster = Arc::new(cluster.await.expect("a cluster"));
    let backend = Muf::connect(&cluster.url(), "back").await.expect("a unit");
    backend.serve("a.b", echo).await.expect("a service");
    let web = Muf::connect(&cluster.url(), "web").await.expect("a unit");
    let mut watch = web.watch_keep("back/v*").await.expect("a watch");
    let moved = async |to_last: bool, expected: usize| {
        let (at, web) = (cluster.clone(), web.clone());
        let moving = tokio::task::spawn_blocking(move || at.move_slots(to_last));
        moving.await.expect("moved");
        // A call that is redirected makes units read the map again.
        let until = Instant::now() + Duration::from_secs(60);
        while cluster.units_at_last() != expected {
            assert!(Instant::now() < until, "not {expected} connections");
            web.request("a.b", "x").await.expect("an answer");
        }
    };
    // A connection for commands and one for pushes of each unit.
    let connections = cluster.units_at_last();
    assert_eq!(connections, 4);
    for _ in 0..2 {
        moved(false, 0).await;
        moved(true, connections).await;
        let before = (web.stats().await, backend.stats().await);
        // What watched over the first connection looks at it once more within three seconds.
        let until = Instant::now() + Duration::from_secs(5);
        let mut calls = 0;
        while Instant::now() < until || calls < 100 {
            web.request("a.b", "x").await.expect("an answer");
            calls += 1;
        }
        let after = (web.stats().await, backend.stats().await);
        let reconnects = |stats: Result<Stats, Error>| stats.expect("open").reconnects;
        assert_eq!(reconnects(before.0), reconnects(after.0));
        assert_eq!(reconnects(before.1), reconnects(after.1));
    }
    assert!(web.connection().is_connected());
    // Its events arrive: these keys are on all primaries.
    let names: BTreeSet<String> = (0..12).map(|n| format!("v{n}")).collect();
    for name in &names {
        backend.keep(name, "after").await.expect("kept");
    }
    let mut seen = BTreeSet::new();
    while seen.len() < names.len() {
        let next = tokio::time::timeout(Duration::from_secs(30), watch.next());
        if let KeepEvent::Value { id, .. } = next.await.expect("no hang").expect("open") {
            seen.insert(id);
        }
    }
    assert_eq!(seen, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_slots_is_an_error_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_ports(1)[0];
    let mut alone = node(port, dir.path());
    let connecting = Muf::connect(&format!("redis://127.0.0.1:{port}"), "web").await;
    end(&mut alone);
    match connecting.map(|_| ()) {
        Err(Error::Server(ServerError::Connect { address, source })) => {
            assert_eq!(address, format!("127.0.0.1:{port}"));
            assert!(source.to_string().contains("no node has slots"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_serves_calls_and_survives_a_failover() {
    let mut cluster = tokio::task::spawn_blocking(|| Cluster::start(true))
        .await
        .expect("a cluster");
    let backend = Muf::connect(&cluster.url(), "back").await.expect("a unit");
    backend.serve("*", echo).await.expect("a service");
    let web = Muf::connect(&cluster.url(), "web").await.expect("a unit");

    // IDs fall on all primaries.
    for n in 0..100 {
        let answer = web.request("a.b", n.to_string()).await.expect("an answer");
        assert_eq!(answer.bytes(), &n.to_string());
    }
    // A bare ID has its keys anywhere.
    for id in ["x", "y", "hello"] {
        let request = format!("MUF/me/REQ/{id}");
        cluster.cli(&["SET", &request, "v", "EX", "10"]);
        wait_until("a bare ID is answered", || {
            cluster.cli(&["GET", &format!("MUF/me/RES/{id}")]) == "v"
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

#[tokio::test(flavor = "multi_thread")]
async fn large_values_are_carried_on_a_cluster_too_and_their_answers_do_not_stay() {
    let cluster = Cluster::start(false);
    let backend = Muf::connect(&cluster.url(), "back").await.expect("a unit");
    backend.serve("*", echo).await.expect("a service");
    let web = Muf::connect(&cluster.url(), "web").await.expect("a unit");
    let call = |number: usize| {
        let payload = vec![number as u8; 300_000];
        let call = web.request("a.b", payload.clone()).into_future();
        async move { assert!(call.await.expect("an answer").bytes() == &payload) }
    };
    futures_util::future::join_all((0..24).map(call)).await;
    wait_until("the lives of all answers are cut", || {
        let answers = cluster.keys("MUF/web/RES/*");
        let left = |key: &String| cluster.cli(&["PTTL", key]).parse::<i64>();
        answers
            .iter()
            .all(|key| left(key).is_ok_and(|left| left <= 4_000))
    });
    // A bare ID has no tag: its keys are on several nodes.
    let large = "x".repeat(100_000);
    cluster.cli(&["SET", "MUF/me/REQ/large", &large, "EX", "10"]);
    wait_until("an answer", || {
        cluster.cli(&["STRLEN", "MUF/me/RES/large"]) == "100000"
    });
    let gathered = web.gather("a.b", large.clone()).count(1);
    let gathered = gathered.await.expect("an answer");
    assert_eq!(gathered[0].result, Ok(large.into()));
}
