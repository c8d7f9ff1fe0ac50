//! One node from its start to its end, and nodes that are not let in.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kumi_node::config::{NodeConfig, StoreSection, StoreUrl};
use kumi_node::core::status::AttentionKind;
use kumi_node::driver::state_dir::StateDir;
use kumi_node::http::Readiness;
use kumi_node::{Node, NodeError};

use crate::common::{
    builder, free_port, in_time, joining, key, seed, store_at, store_with, until_status,
};

/// The reply to a GET.
fn get_all(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

/// The first line of the reply to a GET.
fn get(address: SocketAddr, path: &str) -> String {
    let reply = get_all(address, path).expect("a reply");
    reply.lines().next().unwrap_or_default().to_owned()
}

/// Sends a command until the store closes the connection. A store that has just started refuses SHUTDOWN for a moment.
pub(crate) async fn send_until_closed(port: u16, command: &'static str) {
    let sending = move || {
        loop {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream.write_all(command.as_bytes()).expect("sent");
            let mut reply = [0; 256];
            match stream.read(&mut reply) {
                Ok(1..) => std::thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
    };
    tokio::task::spawn_blocking(sending).await.expect("sent");
}

async fn upper(name: &str, directory: &std::path::Path, port: u16) -> Node {
    let handler = |request: kumi_muf::Request| async move {
        Ok::<_, kumi_muf::Error>(request.text()?.to_uppercase())
    };
    let node = builder(name, directory).store(store_at(port));
    let node = node.serve("text.upper", handler).start().await;
    let node = node.expect("a node");
    node.ready().await;
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_alone_has_a_store_calls_http_and_a_record_of_its_ports() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let node = upper("a", directory.path(), port).await;
        assert_eq!(node.members().members.len(), 1);
        let url = node.store_url().expect("a store");
        assert!(url.starts_with("redis://kumi-app:"), "{url}");
        assert!(url.ends_with(&format!("@127.0.0.1:{port}")), "{url}");
        let muf = node.muf().await.expect("a unit");
        let answer = muf.request("text.upper", "hello").await.expect("an answer");
        assert_eq!(answer.text().expect("text"), "HELLO");

        assert_eq!(node.readiness(), Readiness::Ready);
        let http = node.http_addresses()[0];
        let reply = tokio::task::spawn_blocking(move || {
            ["/healthz", "/readyz", "/metrics"].map(|path| get(http, path))
        });
        for line in reply.await.expect("replies") {
            assert_eq!(line, "HTTP/1.1 200 OK");
        }
        let state = StateDir::at(node.state_dir()).expect("a directory");
        let record = state.record().expect("readable").expect("recorded");
        assert_eq!((&*record.name, record.version), ("a", 1));
        assert_eq!(record.http, [http.to_string()]);
        assert_eq!(record.store, [format!("127.0.0.1:{port}")]);
        assert_eq!(record.membership, Some(seed(&node).to_string()));

        let status = node.status().await;
        // How full this machine's disk is does not matter here.
        let attention = status.attention.iter();
        let mut attention = attention.filter(|one| one.kind != AttentionKind::DiskFull);
        assert_eq!(attention.next(), None);
        assert_eq!((&*status.node.state, status.node.ready), ("up", true));
        assert_eq!(status.node.roles, ["member", "store", "worker", "http"]);
        let id = status.store.expect("a store").id;
        node.shutdown().await.expect("stopped");
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());

        // The data set is the same after a restart.
        let node = upper("a", directory.path(), port).await;
        let status = node.status().await;
        assert_eq!(status.store.expect("a store").id, id);
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_live_node_of_a_name_is_refused_by_name() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let first = upper("a", directory.path(), free_port()).await;
        let elsewhere = directory.path().join("elsewhere");
        let second = joining("a", &elsewhere, seed(&first)).start().await;
        let error = second.err().expect("refused").to_string();
        assert!(error.contains("has the name a already"), "{error}");
        assert!(error.contains("--name"), "{error}");
        first.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_key_is_not_let_in_and_says_so() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let first = upper("a", directory.path(), free_port()).await;
        let other = joining("b", directory.path(), seed(&first)).key(key(8));
        let other = other.start().await.expect("it goes on asking");
        assert_eq!(other.readiness(), Readiness::NotJoined);
        let notes = other.notes().join("\n");
        assert!(notes.contains("no seed has let this node in"), "{notes}");
        let status = other.status().await;
        assert_eq!((&*status.node.state, status.node.ready), ("joining", false));
        let mut told = status.attention.iter();
        let told = told.find(|one| one.kind == AttentionKind::SeedsUnreachable);
        let words = &told.expect("told").words;
        // With the error of that seed.
        assert!(words.contains(&format!("({}: ", seed(&first))), "{words}");
        assert_eq!(first.members().members.len(), 1);
        other.shutdown().await.ok();
        first.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_says_what_to_do() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let store = builder("a", directory.path()).store(store_at(port));
        let error = store.start().await.err().expect("refused");
        assert!(matches!(error, NodeError::Store(_)), "{error:?}");
        assert!(error.to_string().contains("choose another port"), "{error}");

        // A node that joins others needs their key.
        let keyless = Node::builder()
            .name("b")
            .state_dir(directory.path().join("keyless"))
            .join("127.0.0.1:9")
            .store(StoreSection::Off);
        let error = keyless.start().await.err().expect("refused").to_string();
        assert!(error.contains("--key-file"), "{error}");
        let error = builder("B", directory.path()).start().await.err();
        assert!(matches!(error, Some(NodeError::Invalid(_))), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_shuts_the_store_down_ends_the_node_in_order() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let node = upper("a", directory.path(), port).await;
        let muf = node.muf().await.expect("a unit");
        send_until_closed(port, "SHUTDOWN\r\n").await;
        node.store_ended().await;
        // Others are not told of a store that is not there.
        crate::common::until(|| {
            let member = node.members().members[0].clone();
            member.metadata.service("store").is_none()
        })
        .await;
        drop(muf);
        node.shutdown().await.expect("the store ended well");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_is_noticed_and_the_end_says_why() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let store = store_with(port, &[("enable-debug-command", "local")]);
        let node = builder("a", directory.path()).store(store).start().await;
        let node = node.expect("a node");
        node.ready().await;
        send_until_closed(port, "DEBUG PANIC IN-CHANGE\r\n").await;
        node.store_ended().await;
        let error = node.shutdown().await.expect_err("it failed");
        assert!(matches!(error, NodeError::StoreEnd(_)), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_says_that_the_store_loads_before_the_node_has_started() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("a/store");
        std::fs::create_dir_all(&data).expect("made");
        // The store reads its data from a pipe, and waits for what the test writes.
        let pipe = data.join("dump.rdb");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let http = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let store = store_with(free_port(), &[("appendonly", "no")]);
        let node = builder("a", directory.path()).ports(0, http.port());
        let starting = tokio::spawn(node.store(store).start());
        let loading = tokio::task::spawn_blocking(move || {
            // Bounded: a store that waits for the test would keep the process.
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_secs(30) {
                if let Ok(reply) = get_all(http, "/readyz") {
                    return Some((reply, get(http, "/healthz")));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            None
        });
        let loading = loading.await.expect("no panic");
        let empty = b"REDIS0011\xff\0\0\0\0\0\0\0\0";
        let feeding = tokio::task::spawn_blocking(move || std::fs::write(pipe, empty));
        feeding.await.expect("no panic").expect("written");
        let node = starting.await.expect("no panic").expect("a node");
        let (reply, health) = loading.expect("HTTP served while the store loaded");
        assert!(reply.starts_with("HTTP/1.1 503"), "{reply}");
        assert!(reply.contains("loading"), "{reply}");
        assert_eq!(health, "HTTP/1.1 200 OK");
        node.ready().await;
        let reply = tokio::task::spawn_blocking(move || get(http, "/readyz")).await;
        assert_eq!(reply.expect("a reply"), "HTTP/1.1 200 OK");
        node.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_in_one_directory_is_refused_and_changes_no_record() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let first = upper("a", directory.path(), free_port()).await;
        let state = StateDir::at(first.state_dir()).expect("a directory");
        let record = state.record().expect("readable");
        let second = joining("b", directory.path(), seed(&first)).state_dir(first.state_dir());
        let error = second.start().await.err().expect("refused").to_string();
        assert!(error.contains("node a (process "), "{error}");
        assert_eq!(state.record().expect("readable"), record);
        first.shutdown().await.expect("stopped");
        // The directory is free again.
        let third = builder("c", directory.path()).state_dir(state.path());
        let third = third.store(StoreSection::Off).start().await;
        third.expect("a node").shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantined_node_is_not_ready_and_says_so_until_it_is_let_in_again() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = upper("a", directory.path(), free_port()).await;
        let b = joining("b", directory.path(), seed(&a)).start().await;
        let b = b.expect("a node");
        b.ready().await;
        let address = b.cluster().authority().clone();
        let hour = Duration::from_secs(3_600);
        let ordered = a.cluster().quarantine(&address, "disk", hour);
        ordered.expect("quarantined");
        until_status(&b, |status| {
            let mut told = status.attention.iter();
            told.any(|one| {
                one.kind == AttentionKind::NodeQuarantined
                    && one.words.contains("by an operator (disk)")
            })
        })
        .await;
        assert_eq!(b.readiness(), Readiness::NotJoined);
        let status = b.status().await;
        let mut kinds = status.attention.iter().map(|one| one.kind);
        // Its seed answers.
        assert!(!kinds.any(|kind| kind == AttentionKind::SeedsUnreachable));
        a.cluster().release(&address).expect("released");
        until_status(&b, |status| {
            status.node.state == "up" && status.node.kept_out.is_none()
        })
        .await;
        b.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_url_that_cannot_be_read_ends_the_start_before_others_hear_of_the_node() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let first = upper("a", directory.path(), free_port()).await;
        let missing = directory.path().join("no-such-file");
        let other = joining("b", directory.path(), seed(&first));
        let other = other.store(StoreSection::Outside(StoreUrl::File(missing)));
        let error = other.start().await.err().expect("refused").to_string();
        assert!(error.contains("no-such-file"), "{error}");
        assert_eq!(first.members().members.len(), 1);
        first.shutdown().await.expect("stopped");
    })
    .await;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Endless;

impl kumi_jobs::Task for Endless {
    const TYPE: &'static str = "endless";
    type Output = ();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grace_ends_what_would_run_on() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = NodeConfig::default();
        // Longer than a test may take.
        config.node.stop_within = Some(Duration::from_secs(3_600));
        let (begun, mut begins) = tokio::sync::mpsc::channel(1);
        let node = builder("a", directory.path()).config(config);
        let node = node.handle(move |_: Endless, _: kumi_jobs::Context<()>| {
            let begun = begun.clone();
            async move {
                begun.send(()).await.ok();
                std::future::pending::<Result<(), kumi_jobs::TaskError>>().await
            }
        });
        let node = node.store(store_at(free_port())).start().await;
        let node = node.expect("a node");
        node.ready().await;
        let jobs = node.jobs().await.expect("a queue");
        jobs.enqueue(Endless).await.expect("enqueued");
        begins.recv().await.expect("it runs");
        let stopped = node.shutdown_within(Duration::from_millis(100)).await;
        stopped.expect("stopped");
    })
    .await;
}
