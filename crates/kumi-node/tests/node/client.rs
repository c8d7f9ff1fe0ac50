//! A client that is no member: the status of all nodes, and what an operator tells them.

use std::path::Path;
use std::time::{Duration, Instant};

use kumi_jobs::{Context, NewTask, Task, TaskEnvelope, TaskError};
use kumi_node::core::status::{AttentionKind, ClusterStatus};
use kumi_node::core::store_pin::StoreId;
use kumi_node::driver::client::local::LocalNode;
use kumi_node::driver::client::{Access, ClientError, ClusterClient, NodeClient};
use kumi_node::{Builder, Node};
use kumi_unison::{ClientTls, ClusterKey, NetworkError, ProtocolClient, TlsError};

use crate::common::{
    builder, free_port, in_time, joining, key, runtime, seed, start_in, store_at, until,
    until_status,
};

#[derive(serde::Serialize, serde::Deserialize)]
struct Resize;

impl Task for Resize {
    const TYPE: &'static str = "resize";
    type Output = ();
}

/// A node with a worker.
fn working(builder: Builder) -> Builder {
    builder.handle(|_: Resize, _: Context<()>| async { Ok::<_, TaskError>(()) })
}

async fn store_node(name: &str, directory: &Path) -> Node {
    let node = builder(name, directory).store(store_at(free_port()));
    let node = node.start().await.expect("a node");
    node.ready().await;
    node
}

async fn working_node(name: &str, directory: &Path, first: &Node) -> Node {
    let node = working(joining(name, directory, seed(first)));
    let node = node.start().await.expect("a node");
    node.ready().await;
    node
}

fn access() -> Access {
    Access::key(&key(7)).expect("a key")
}

async fn client_of(node: &Node) -> ClusterClient {
    let address = seed(node).to_string();
    let client = ClusterClient::connect(&address, access()).await;
    client.expect("a node")
}

/// Asks until the merged status says something, and returns it. Every answer comes within seconds.
async fn until_merged(
    client: &mut ClusterClient,
    mut says: impl FnMut(&ClusterStatus) -> bool,
) -> ClusterStatus {
    loop {
        let asked = Instant::now();
        let status = client.status().await.expect("a node answers");
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "{:?}",
            asked.elapsed()
        );
        if says(&status) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn needs_attention(status: &ClusterStatus, kind: AttentionKind, subject: &str) -> bool {
    let mut attention = status.attention.iter();
    attention.any(|one| one.kind == kind && one.subject == subject)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_three_nodes_counts_once_and_tells_who_died_and_what_waits() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        let a = store_node("a", directory).await;
        let b = working_node("b", directory, &a).await;
        let doomed = runtime();
        let c = working(joining("c", directory, seed(&a)));
        let c = start_in(&doomed, c).await;
        c.ready().await;
        let mail = a.queue("mail").await.expect("a queue");
        let task = NewTask::new(TaskEnvelope::json("send", "1"));
        mail.enqueue_raw(task).await.expect("enqueued");

        let mut client = client_of(&a).await;
        let status = until_merged(&mut client, |status| {
            let is_up = status.members.iter().all(|member| member.status == "up");
            status.nodes.len() == 3 && status.members.len() == 3 && is_up
        })
        .await;
        assert!(status.silent.is_empty(), "{:?}", status.silent);
        let store = status.store.as_ref().expect("a store");
        assert_eq!((&*store.node, store.away_since_unix_ms), ("a", None));
        let queues: Vec<_> = status.queues.iter().collect();
        let waiting = queues.iter().filter(|queue| queue.name == "mail");
        let waiting: Vec<u64> = waiting.map(|queue| queue.waiting).collect();
        assert_eq!(waiting, [1], "{queues:?}");
        let workers = status.workers.iter().map(|worker| &*worker.node);
        assert_eq!(workers.collect::<Vec<_>>(), ["b", "c"]);

        std::mem::forget(c);
        doomed.shutdown_background();
        let status = until_merged(&mut client, |status| {
            needs_attention(status, AttentionKind::NodeSilent, "c")
                || needs_attention(status, AttentionKind::MemberDead, "c")
        })
        .await;
        assert_eq!(status.nodes.len(), 2, "{:?}", status.nodes);
        let status = until_merged(&mut client, |status| {
            needs_attention(status, AttentionKind::MemberDead, "c")
        })
        .await;
        let member = status.members.iter().find(|member| member.name == "c");
        assert_eq!(member.expect("it is listed").status, "dead");
        until_merged(&mut client, |status| {
            needs_attention(status, AttentionKind::QueueUnserved, "mail")
        })
        .await;

        // The node that was named at first, with the store.
        a.shutdown().await.expect("stopped");
        let status = until_merged(&mut client, |status| {
            needs_attention(status, AttentionKind::StoreAway, "")
        })
        .await;
        let store = status.store.expect("it is known");
        assert!(store.away_since_unix_ms.is_some());
        assert_eq!(status.nodes.len(), 1, "{:?}", status.nodes);
        client.close().await;
        b.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_drains_a_member_and_its_workers_see_it() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = store_node("a", directory.path()).await;
        let b = working_node("b", directory.path(), &a).await;
        until(|| a.members().members.len() == 2).await;
        let client = client_of(&a).await;
        let unknown = client.member("zz").await.err();
        match unknown {
            Some(ClientError::NoMember { name, known }) => {
                assert_eq!((&*name, known.join(" ")), ("zz", "a b".to_owned()));
            }
            other => panic!("{other:?}"),
        }
        let node = client.member("b").await.expect("a member");
        assert_eq!(node.status().await.expect("a status").node.name, "b");
        assert_eq!(node.drain().await.expect("an order"), 0);
        let jobs = a.jobs().await.expect("a queue");
        until_status(&b, |status| status.workers.iter().all(|one| one.draining)).await;
        let task = jobs.enqueue(Resize).await.expect("enqueued");
        let result = task.result();
        tokio::pin!(result);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut result).await;
        assert!(early.is_err(), "{early:?}");
        node.undrain().await.expect("an order");
        result.await.expect("a result");
        node.close().await;
        client.close().await;
        b.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_stops_a_member_and_learns_when_it_is_gone() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = store_node("a", directory.path()).await;
        let b = working_node("b", directory.path(), &a).await;
        until(|| a.members().members.len() == 2).await;
        let client = client_of(&a).await;
        let node = client.member("b").await.expect("a member");
        let grace = Duration::from_millis(1_500);
        let stopping = async {
            assert_eq!(b.stop_requested().await, grace);
            b.shutdown().await.expect("stopped");
        };
        let ordering = async {
            node.stop(grace).await.expect("an order");
            node.gone().await;
        };
        tokio::join!(stopping, ordering);
        until(|| a.members().members.len() == 1).await;
        client.close().await;
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_about_the_store_reaches_all_members_and_one_that_was_away() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        let a = store_node("a", directory).await;
        let used = a.status().await.store.expect("a store").id;
        let b = joining("b", directory, seed(&a)).store(store_at(free_port()));
        let b = b.start().await.expect("a node");
        let c = working_node("c", directory, &a).await;
        let d = working_node("d", directory, &a).await;
        until(|| c.members().members.len() == 4).await;
        d.shutdown().await.expect("stopped");
        until(|| c.members().members.len() == 3).await;

        // Through a node that has no store.
        let mut client = client_of(&c).await;
        let status = until_merged(&mut client, |status| {
            let mut kinds = status.attention.iter().map(|one| one.kind);
            kinds.any(|kind| kind == AttentionKind::StoreOther)
        })
        .await;
        let other = status.attention.iter();
        let mut other = other.filter(|one| one.kind == AttentionKind::StoreOther);
        let other: StoreId = other.next().expect("told").subject.parse().expect("an id");
        assert_ne!(other.as_str(), used);
        let decided = client.use_store(&other).await.expect("a decision");
        assert_eq!(decided.pinned, other.as_str());
        assert!(decided.behind.is_empty(), "{:?}", decided.behind);
        let uses_other = |status: &kumi_node::core::status::NodeStatus| {
            let store = status.store.as_ref();
            store.is_some_and(|store| store.id == other.as_str())
        };
        for node in [&a, &b, &c] {
            until_status(node, uses_other).await;
        }
        let d = working_node("d", directory, &c).await;
        until_status(&d, uses_other).await;
        client.close().await;
        for node in [d, c, b, a] {
            node.shutdown().await.expect("stopped");
        }
    })
    .await;
}

/// Opens a channel of a node, and closes it again.
async fn open(
    address: &str,
    tls: Result<ClientTls, TlsError>,
    name: &str,
) -> Result<(), NetworkError> {
    let connecting = ProtocolClient::connect(address, tls.expect("a key"));
    let connection = connecting.await.expect("a node");
    let opened = connection.open_channel(name).await;
    connection.close().await;
    opened.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_key_asks_and_orders_and_neither_joins_nor_opens_another_channel() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = store_node("a", directory.path()).await;
        let b = working_node("b", directory.path(), &a).await;
        let address = seed(&a).to_string();
        let operator = a.operator_key().expect("a key").expose().to_owned();
        let access = Access::operator(&operator).expect("a key");
        let client = ClusterClient::connect(&address, access).await;
        let mut client = client.expect("a node");
        until_merged(&mut client, |status| status.nodes.len() == 2).await;
        let node = client.member("b").await.expect("a member");
        node.drain().await.expect("an order");
        until_status(&b, |status| status.workers.iter().all(|one| one.draining)).await;
        node.close().await;
        client.close().await;

        let guest = ClusterKey::from_secret(operator.as_bytes()).expect("long enough");
        for name in ["cluster.gossip", "cluster.peer", "cluster.admin"] {
            let opened = open(&address, ClientTls::cluster(&key(7)), name).await;
            assert_eq!(opened, Ok(()), "{name} is there");
            let refused = open(&address, ClientTls::guest(&guest), name).await;
            let is_refused = matches!(refused, Err(NetworkError::Unavailable { .. }));
            assert!(is_refused, "{name}: {refused:?}");
        }
        let refused = open(&address, ClientTls::guest(&guest), "cluster.packets").await;
        let is_refused = matches!(refused, Err(NetworkError::Unavailable { .. }));
        assert!(is_refused, "{refused:?}");

        // As the key of a node it is a wrong one.
        let other = joining("z", directory.path(), seed(&a)).key(guest);
        let other = other.start().await.expect("it goes on asking");
        assert_eq!(other.status().await.node.state, "joining");
        assert_eq!(a.members().members.len(), 2);
        other.shutdown().await.ok();
        b.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_and_an_address_without_a_node_are_told_apart() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let a = store_node("a", directory.path()).await;
        let other = Access::key(&key(8)).expect("a key");
        let refused = NodeClient::connect(&seed(&a).to_string(), &other).await;
        let refused = refused.err().expect("another key");
        assert!(
            matches!(refused, ClientError::OtherKey { .. }),
            "{refused:?}"
        );

        let local = LocalNode::at(a.state_dir()).expect("readable");
        let local = local.expect("it is recorded");
        assert_eq!((local.name(), local.is_running()), ("a", true));
        let address = local.address().expect("it listens");
        assert_eq!(address, seed(&a).to_string());
        a.shutdown().await.expect("stopped");
        let nobody = NodeClient::connect(&address, &access()).await;
        let nobody = nobody.err().expect("nothing listens");
        assert!(
            matches!(nobody, ClientError::Unreachable { .. }),
            "{nobody:?}"
        );
    })
    .await;
}
