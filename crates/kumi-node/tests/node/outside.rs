//! Stores outside of the cluster: a real redis-server, and a valkey-server where there is one.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kumi_jobs::TaskState;
use kumi_node::config::{StoreSection, StoreUrl};
use kumi_node::http::Readiness;
use kumi_node::{Builder, Node};
use tempfile::TempDir;

use crate::common::{
    builder, free_port, in_time, joining, key, runtime, seed, start_in, until, until_status,
};
use crate::work::{Begun, Resize, quick, stuck};

/// The servers that tests run on.
const SERVERS: [&str; 2] = ["redis-server", "valkey-server"];

/// Less than a lease lasts after its last renewal, which is a second old at most.
const LEASE_HOLDS: Duration = Duration::from_secs(13);

/// A server that keeps its data in a directory. Dropping it kills it.
struct Outside {
    program: &'static str,
    port: u16,
    directory: TempDir,
    child: Option<Child>,
}

impl Outside {
    /// None if this machine has no such program. A redis-server has to be there.
    fn start(program: &'static str) -> Option<Outside> {
        let found = Command::new(program).arg("--version").output();
        if found.is_err() && program != SERVERS[0] {
            println!("skipped: there is no {program} on this machine");
            return None;
        }
        let mut outside = Outside {
            program,
            port: free_port(),
            directory: tempfile::tempdir().expect("a directory"),
            child: None,
        };
        outside.run();
        Some(outside)
    }

    /// Starts the server on its data, and waits until it takes connections.
    fn run(&mut self) {
        let port = self.port.to_string();
        let child = Command::new(self.program)
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--notify-keyspace-events", "K$xg", "--dir"])
            .arg(self.directory.path())
            .stdout(Stdio::null())
            .spawn();
        self.child = Some(child.expect("a server"));
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it is our child");
        }
    }

    fn store(&self) -> StoreSection {
        let url = format!("redis://127.0.0.1:{}", self.port);
        StoreSection::Outside(StoreUrl::Plain(url))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn ready(builder: Builder) -> Node {
    let node = builder.start().await.expect("a node");
    node.ready().await;
    node
}

/// Runs a test on each server that this machine has.
async fn on_each(test: impl AsyncFn(&mut Outside, &Path)) {
    for program in SERVERS {
        let Some(mut outside) = Outside::start(program) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a directory");
        in_time(test(&mut outside, directory.path())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_tasks_of_a_killed_node_go_over_an_outside_store() {
    on_each(async |outside, directory| {
        let begun = Begun::default();
        let a = builder("a", directory).store(outside.store());
        let a = ready(
            a.serve("text.upper", |request: kumi_muf::Request| async move {
                Ok::<_, kumi_muf::Error>(request.text()?.to_uppercase())
            }),
        )
        .await;
        let doomed = runtime();
        let b = joining("b", directory, seed(&a)).store(outside.store());
        let b = start_in(&doomed, stuck(b, "b", &begun)).await;
        b.ready().await;
        let muf = b.muf().await.expect("a unit");
        let answer = muf.request("text.upper", "hello").await.expect("an answer");
        assert_eq!(answer.text().expect("text"), "HELLO");
        drop((answer, muf));

        let jobs = a.jobs().await.expect("a queue");
        let handle = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| *begun.lock().expect("no panic") == ["b"]).await;
        let c = joining("c", directory, seed(&a)).store(outside.store());
        let c = ready(quick(c, "c", &begun)).await;
        until(|| a.members().members.len() == 3).await;
        let killed = Instant::now();
        std::mem::forget(b);
        doomed.shutdown_background();
        assert_eq!(handle.result().await.expect("a result"), "c");
        assert!(killed.elapsed() < LEASE_HOLDS, "{:?}", killed.elapsed());
        c.shutdown().await.expect("stopped");
        a.shutdown().await.expect("stopped");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outside_store_that_was_killed_is_used_again_and_nothing_is_lost() {
    on_each(async |outside, directory| {
        let begun = Begun::default();
        let a = builder("a", directory).store(outside.store());
        let a = ready(quick(a, "a", &begun)).await;
        a.drain(true);
        until_status(&a, |status| {
            status.workers.iter().all(|worker| worker.draining)
        })
        .await;
        let jobs = a.jobs().await.expect("a queue");
        let handle = jobs.enqueue(Resize).await.expect("enqueued");
        outside.kill();
        until(|| a.readiness() == Readiness::NoStore).await;
        a.drain(false);
        outside.run();
        until(|| a.readiness() == Readiness::Ready).await;
        assert_eq!(handle.result().await.expect("a result"), "a");
        assert_eq!(*begun.lock().expect("no panic"), ["a"]);
        a.shutdown().await.expect("stopped");
    })
    .await;
}

/// Both clusters have nodes of the same names, and use the same queue. One cluster dies as a whole, and so does a node of the
/// other one.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_on_one_outside_store_do_not_release_each_others_work() {
    on_each(async |outside, directory| {
        let begun = Begun::default();
        let (one, two) = (directory.join("one"), directory.join("two"));
        let doomed = runtime();
        let a1 = builder("a", &one).store(outside.store());
        let a1 = start_in(&doomed, stuck(a1, "a of one", &begun)).await;
        a1.ready().await;
        let b1 = joining("b", &one, seed(&a1)).store(outside.store());
        let b1 = start_in(&doomed, b1).await;
        b1.ready().await;
        let a2 = builder("a", &two).key(key(8)).store(outside.store());
        let a2 = ready(a2).await;
        let jobs = a2.jobs().await.expect("a queue");
        let of_one = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| *begun.lock().expect("no panic") == ["a of one"]).await;
        a1.drain(true);
        until_status(&a1, |status| {
            status.workers.iter().all(|worker| worker.draining)
        })
        .await;

        let b2 = joining("b", &two, seed(&a2)).key(key(8));
        let b2 = stuck(b2.store(outside.store()), "b of two", &begun);
        let b2 = start_in(&doomed, b2).await;
        b2.ready().await;
        let of_two = jobs.enqueue(Resize).await.expect("enqueued");
        until(|| begun.lock().expect("no panic").len() == 2).await;
        let c2 = joining("c", &two, seed(&a2)).key(key(8));
        let c2 = ready(quick(c2.store(outside.store()), "c of two", &begun)).await;
        until(|| a2.members().members.len() == 3).await;

        let killed = Instant::now();
        std::mem::forget((a1, b1, b2));
        doomed.shutdown_background();
        assert_eq!(of_two.result().await.expect("a result"), "c of two");
        assert!(killed.elapsed() < LEASE_HOLDS, "{:?}", killed.elapsed());
        let record = of_one.status().await.expect("a reply").expect("a task");
        assert_eq!((record.state, record.runs), (TaskState::Running, 1));

        // The lease gives it back, and nobody before.
        assert_eq!(of_one.result().await.expect("a result"), "c of two");
        assert!(killed.elapsed() > LEASE_HOLDS, "{:?}", killed.elapsed());
        assert_eq!(
            *begun.lock().expect("no panic"),
            ["a of one", "b of two", "c of two", "c of two"]
        );
        c2.shutdown().await.expect("stopped");
        a2.shutdown().await.expect("stopped");
    })
    .await;
}
