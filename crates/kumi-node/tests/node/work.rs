//! Tasks on three nodes, of which one is killed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kumi_jobs::{Context, Gone, Released, Task, TaskError};
use kumi_node::config::{NodeConfig, StoreSection, StoreUrl};
use kumi_node::core::status::NodeStatus;
use kumi_node::{Builder, Node};

use crate::common::{
    builder, free_port, in_time, joining, runtime, seed, start_in, store_at, until, until_status,
};

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Resize;

impl Task for Resize {
    const TYPE: &'static str = "resize";
    type Output = String;
}

/// Where tasks were begun, by the names of nodes.
pub(crate) type Begun = Arc<Mutex<Vec<String>>>;

/// A node whose tasks end at once.
pub(crate) fn quick(builder: Builder, name: &'static str, begun: &Begun) -> Builder {
    let begun = begun.clone();
    builder.handle(move |_: Resize, _: Context<()>| {
        begun.lock().expect("no panic").push(name.to_owned());
        async move { Ok::<_, TaskError>(name.to_owned()) }
    })
}

/// A node whose tasks never end.
pub(crate) fn stuck(builder: Builder, name: &'static str, begun: &Begun) -> Builder {
    let begun = begun.clone();
    builder.handle(move |_: Resize, _: Context<()>| {
        begun.lock().expect("no panic").push(name.to_owned());
        std::future::pending::<Result<String, TaskError>>()
    })
}

async fn store_node(directory: &Path) -> Node {
    let node = builder("a", directory).store(store_at(free_port()));
    let node = node.start().await.expect("a node");
    node.ready().await;
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_of_a_killed_node_is_run_by_another_one() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let begun = Begun::default();
        let a = store_node(directory.path()).await;
        let doomed = runtime();
        let b = joining("b", directory.path(), seed(&a));
        let b = start_in(&doomed, stuck(b, "b", &begun)).await;
        b.ready().await;
        let jobs = a.jobs().await.expect("a queue");
        let handle = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| *begun.lock().expect("no panic") == ["b"]).await;

        // It comes when the task is taken, so that it cannot have it before.
        let c = joining("c", directory.path(), seed(&a));
        let c = quick(c, "c", &begun).start().await.expect("a node");
        c.ready().await;
        until(|| a.members().members.len() == 3).await;
        let killed = std::time::Instant::now();
        std::mem::forget(b);
        doomed.shutdown_background();
        assert_eq!(handle.result().await.expect("a result"), "c");
        // Its lease would have held for 15 s.
        assert!(
            killed.elapsed() < Duration::from_secs(12),
            "{:?}",
            killed.elapsed()
        );
        assert_eq!(*begun.lock().expect("no panic"), ["b", "c"]);
        c.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_drains_takes_no_task_and_takes_them_again() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let begun = Begun::default();
        let node = builder("a", directory.path()).store(store_at(free_port()));
        let node = quick(node, "a", &begun).start().await.expect("a node");
        node.ready().await;
        let jobs = node.jobs().await.expect("a queue");
        let first = jobs.enqueue(Resize).await.expect("enqueued");
        assert_eq!(first.result().await.expect("a result"), "a");
        node.drain(true);
        until_draining(&node).await;
        let second = jobs.enqueue(Resize).await.expect("enqueued");
        let result = second.result();
        tokio::pin!(result);
        let early = tokio::time::timeout(Duration::from_secs(1), &mut result).await;
        assert!(early.is_err(), "{early:?}");
        node.drain(false);
        assert_eq!(result.await.expect("a result"), "a");
        node.shutdown().await.expect("stopped");
    })
    .await;
}

async fn until_draining(node: &Node) {
    until_status(node, |status| {
        status.workers.iter().all(|worker| worker.draining)
    })
    .await;
}

/// The node is a member all the while, and takes no new life: another node did not see it, and found it silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_was_declared_gone_goes_on_as_another_owner() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let begun = Begun::default();
        let node = builder("a", directory.path()).store(store_at(free_port()));
        let first = Arc::new(AtomicBool::new(true));
        let noted = begun.clone();
        let node = node.handle(move |_: Resize, _: Context<()>| {
            noted.lock().expect("no panic").push("a".to_owned());
            let is_first = first.swap(false, Ordering::Relaxed);
            async move {
                if is_first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, TaskError>("a".to_owned())
            }
        });
        let node = node.start().await.expect("a node");
        node.ready().await;
        let life = node.name().clone();
        let jobs = node.jobs().await.expect("a queue");
        let handle = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| !begun.lock().expect("no panic").is_empty()).await;
        let owners = jobs.queue().owners().await.expect("owners");
        let mut nodes = owners.iter().filter_map(|holding| holding.owner.node());
        let gone = Gone::Node(nodes.next().expect("the owner is a node"));
        let released = jobs.queue().release_owner(&gone, Duration::ZERO);
        assert_eq!(released.await.expect("a reply"), Released::Tasks(1));

        assert_eq!(handle.result().await.expect("a result"), "a");
        let second = jobs.enqueue(Resize).await.expect("enqueued");
        assert_eq!(second.result().await.expect("a result"), "a");
        let me = node.cluster().name_and_life();
        assert_eq!(me, life, "it took no new life");
        node.shutdown().await.expect("stopped");
    })
    .await;
}

/// Handlers work on the queue that `jobs()` enqueues to, whatever the store's URL calls it.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_queue_is_the_one_of_the_url() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let server = kumi_server::embedded().expect("a server");
        let begun = Begun::default();
        for (url, queue) in [
            (server.url().to_owned(), "default"),
            (format!("{}?queue=mail", server.url()), "mail"),
        ] {
            let outside = StoreSection::Outside(StoreUrl::Plain(url));
            let node = builder(queue, directory.path()).store(outside);
            let node = quick(node, queue, &begun).start().await.expect("a node");
            node.ready().await;
            let jobs = node.jobs().await.expect("a queue");
            assert_eq!(jobs.queue().name(), queue);
            let handle = jobs.enqueue(Resize).await.expect("enqueued");
            assert_eq!(handle.result().await.expect("a result"), queue);
            assert_eq!(node.status().await.workers[0].queue, queue);
            node.shutdown().await.expect("stopped");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_longer_than_the_operator_allows_is_cut_off_and_run_elsewhere() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let begun = Begun::default();
        let a = store_node(directory.path()).await;
        let mut patient = NodeConfig::default();
        patient.node.stop_within = Some(Duration::from_secs(3_600));
        let b = joining("b", directory.path(), seed(&a)).config(patient);
        let b = stuck(b, "b", &begun).start().await.expect("a node");
        b.ready().await;
        let jobs = a.jobs().await.expect("a queue");
        let handle = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| *begun.lock().expect("no panic") == ["b"]).await;
        let c = joining("c", directory.path(), seed(&a));
        let c = quick(c, "c", &begun).start().await.expect("a node");
        c.ready().await;
        let left = b.shutdown_within(Duration::from_millis(100)).await;
        left.expect("stopped");
        assert_eq!(handle.result().await.expect("a result"), "c");
        c.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_starts_and_stops_programs_and_leaves_the_others_alone() {
    in_time(async {
        let directory = tempfile::tempdir().expect("a directory");
        let node = builder("a", directory.path()).store(store_at(free_port()));
        let run = |name: &str, command: &str| format!("run \"{name}\" exec=\"{command}\"\n");
        let parsed = |text: &str| NodeConfig::parse("kumi.kdl", text).expect("sound");
        let first = run("one", "sleep 1000") + &run("two", "sleep 1000");
        let node = node.config(parsed(&first)).start().await.expect("a node");
        node.ready().await;
        let running = |status: &NodeStatus| -> Vec<String> {
            let programs = status.programs.iter();
            let running = programs.filter(|program| program.state == "running");
            running.map(|program| program.name.clone()).collect()
        };
        until_status(&node, |status| running(status) == ["one", "two"]).await;

        let second = run("two", "sleep 1000") + &run("three", "sleep 1000");
        let mut to = node.config().await;
        to.run = parsed(&second).run;
        let record = node.reload(&to).await;
        assert_eq!(record.applied, ["run one: removed", "run three: added"]);
        assert_eq!((record.refused.len(), record.restart.len()), (0, 0));
        until_status(&node, |status| running(status) == ["three", "two"]).await;

        to.node.preset = Some(kumi_node::config::Preset::Wan);
        let record = node.reload(&to).await;
        assert_eq!(record.restart, ["node preset: changed"]);
        assert!(record.applied.is_empty());
        // It is told again, because it still is not so.
        assert_eq!(node.reload(&to).await.restart.len(), 1);
        node.shutdown().await.expect("stopped");
    })
    .await;
}
