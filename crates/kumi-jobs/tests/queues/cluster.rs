//! A queue whose slot moves to another primary, and one whose primary is lost.

use crate::servers::{Cluster, cli, queue_url, wait_until};
use crate::work::{self, Effects};
use kumi_common::Chain;
use kumi_jobs::{Jobs, QueueError, TaskId, TaskState};

async fn cluster() -> Cluster {
    let cluster = tokio::task::spawn_blocking(Cluster::start);
    cluster.await.expect("a cluster")
}

fn queue_key(url: &str) -> String {
    let name = url.split("queue=").nth(1).expect("a name");
    format!("kumi:jobs:{{{name}}}:")
}

/// The slot of a queue on its way from one primary to another.
struct Migration {
    slot: String,
    /// Port and id of each.
    source: (u16, String),
    target: (u16, String),
}

impl Migration {
    /// Moves all keys. The source answers ASK from here on.
    fn begin(cluster: &Cluster, queue_key: &str) -> Self {
        let from = cluster.primary_of(queue_key);
        // The first three nodes are primaries.
        let node = |index: usize| {
            let port = cluster.ports[index];
            (port, cli(port, &["CLUSTER", "MYID"]))
        };
        let (source, target) = (node(from), node((from + 1) % 3));
        let slot = cli(source.0, &["CLUSTER", "KEYSLOT", queue_key]);
        let set = |port: u16, state: &str, id: &str| {
            let done = cli(port, &["CLUSTER", "SETSLOT", &slot, state, id]);
            assert_eq!(done, "OK");
        };
        set(target.0, "IMPORTING", &source.1);
        set(source.0, "MIGRATING", &target.1);
        let keys = cli(source.0, &["CLUSTER", "GETKEYSINSLOT", &slot, "10000"]);
        let port = target.0.to_string();
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"];
        migrate.extend(keys.lines());
        assert_eq!(cli(source.0, &migrate), "OK");
        Self {
            slot,
            source,
            target,
        }
    }

    /// Whether a client was sent to the target with ASK.
    fn was_asked(&self) -> bool {
        let stats = cli(self.target.0, &["INFO", "commandstats"]);
        stats.contains("cmdstat_asking:")
    }

    /// The source answers MOVED from here on.
    fn end(&self) {
        for port in [self.target.0, self.source.0] {
            let node = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.target.1];
            assert_eq!(cli(port, &node), "OK");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_follows_its_slot_to_another_primary() {
    let cluster = cluster().await;
    let url = cluster.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::tasks(100);
    let (before, meanwhile) = tasks.split_at(50);
    work::enqueue(&**jobs.queue(), before).await;
    let key = queue_key(&url);
    let migration = tokio::task::block_in_place(|| Migration::begin(&cluster, &key));
    // While the slot is on its way, a call is repeated until the slot has arrived.
    let (queue, late) = (jobs.queue().clone(), meanwhile.to_vec());
    let enqueue = tokio::spawn(async move { queue.enqueue(late).await });
    tokio::task::block_in_place(|| {
        wait_until("the target is asked", || migration.was_asked());
        migration.end();
    });
    enqueue.await.expect("no panic").expect("enqueued");
    let owner = cluster.primary_of(&key);
    assert_eq!(cluster.ports[owner], migration.target.0);
    let effects = Effects::default();
    let ids = tasks.iter().map(|task| task.id).collect();
    let done = work::all_succeed(&**jobs.queue(), ids);
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    assert_eq!(effects.order_violations(), 0);
}

/// Without `replicas`, a failover may lose what the replica had not received: the test prints how much, and checks that
/// what is left runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failover_without_replicas_loses_is_only_what_was_enqueued_last() {
    let mut cluster = cluster().await;
    let url = cluster.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::plain_tasks(400);
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    for (index, batch) in tasks.chunks(20).enumerate() {
        if index == 10 {
            let primary = cluster.primary_of(&queue_key(&url));
            cluster.kill(primary);
        }
        // An enqueue that failed for want of a server is repeated by its producer.
        loop {
            match jobs.queue().enqueue(batch.to_vec()).await {
                Ok(_) => break,
                Err(QueueError::Io(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    let mut known = Vec::new();
    for id in &ids {
        if jobs.get_status(*id).await.expect("a reply").is_some() {
            known.push(*id);
        }
    }
    let lost = ids.len() - known.len();
    println!("{lost} of {} tasks were lost in the failover", ids.len());
    // What came after the failover is all there.
    assert!(known.ends_with(&ids[200..]), "{lost} lost");
    let effects = Effects::default();
    let done = work::all_succeed(&**jobs.queue(), known.clone());
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    let counts = jobs.queue().counts_by_state().await.expect("counts");
    assert_eq!(counts.of(TaskState::Succeeded), known.len() as u64);
}

/// The shard with the list of all queues is lost, and holds nothing else of the queue.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_shard_does_not_concern_the_queues_of_others() {
    let mut cluster = cluster().await;
    for port in &cluster.ports {
        let rule = ["CONFIG", "SET", "cluster-require-full-coverage", "no"];
        assert_eq!(cli(*port, &rule), "OK");
    }
    let dead = cluster.primary_of("kumi:jobs:queues");
    let (url, alive) = loop {
        let url = queue_url(0);
        let alive = cluster.primary_of(&queue_key(&url));
        if alive != dead {
            break (url, cluster.ports[alive]);
        }
    };
    let url = url.replace(":0/", &format!(":{alive}/"));
    let replica = cluster.replica_of(dead);
    cluster.kill(replica);
    cluster.kill(dead);
    let jobs = tokio::time::timeout(std::time::Duration::from_secs(60), Jobs::connect(&url)).await;
    let jobs = jobs.expect("in time").expect("a queue");
    let tasks = work::tasks(10);
    work::enqueue(&**jobs.queue(), &tasks).await;
    let effects = Effects::default();
    let ids = tasks.iter().map(|task| task.id).collect();
    let done = work::all_succeed(&**jobs.queue(), ids);
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_shard_reads_as_in_muf() {
    let mut cluster = cluster().await;
    let url = cluster.url();
    let dead = cluster.primary_of(&queue_key(&url));
    let others = cluster.ports.iter().enumerate();
    let mut others = others.filter(|(index, _)| *index != dead && *index < 3);
    let (_, alive) = others.next().expect("another primary");
    let url = url.replace(&format!(":{}/", cluster.ports[0]), &format!(":{alive}/"));
    let replica = cluster.replica_of(dead);
    cluster.kill(replica);
    cluster.kill(dead);
    let (queue, unit) = tokio::join!(Jobs::connect(&url), kumi_muf::Muf::connect(&url, "web"));
    let queue = queue.map(|_| ()).expect_err("no queue");
    let unit = unit.map(|_| ()).expect_err("no unit");
    let text = Chain(&queue).to_string();
    assert_eq!(text, Chain(&unit).to_string());
    let address = format!("cannot connect to 127.0.0.1:{}: ", cluster.ports[dead]);
    assert!(text.starts_with(&address), "{text}");
}
