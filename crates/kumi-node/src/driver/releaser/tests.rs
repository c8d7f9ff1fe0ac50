//! Real nodes in memory, with a queue in memory and with one on an embedded server.

use super::*;
use kumi_cluster::{
    MemberMetadata, MembershipRuntimeConfig, MemoryNetwork, NodeOptions, Transport,
};
use kumi_jobs::{
    Ask, Gone, InMemoryQueue, NewTask, Owner, Queue, QueueError, RedisOptions, Room, TaskEnvelope,
    TaskId, TaskState,
};

const CLUSTER: &str = "c1";
const QUEUE: &str = "mail";

/// Far beyond what any step takes, so that a test that is stuck fails instead of hanging.
const STUCK: Duration = Duration::from_secs(60);

/// One queue, whose owners are written as `name~life`. All of them are of one cluster.
struct OneQueue {
    queue: Arc<dyn Queue>,
    /// Holds nothing.
    beating: Owner,
    /// Beats so far.
    beats: AtomicU64,
}

impl OneQueue {
    fn new(queue: Arc<dyn Queue>) -> Self {
        Self {
            queue,
            beating: Owner::random(),
            beats: AtomicU64::new(0),
        }
    }
}

impl Queues for OneQueue {
    fn names(&self) -> Reply<'_, Vec<String>> {
        Box::pin(async { Ok(vec![QUEUE.to_owned()]) })
    }

    fn release<'a>(
        &'a self,
        queue: &'a str,
        cluster: &'a str,
        life: &'a NameAndLife,
        silent_for: Duration,
    ) -> Reply<'a, Released> {
        assert_eq!((queue, cluster), (QUEUE, CLUSTER));
        Box::pin(async move {
            let gone = Gone::Life(Owner::from(life.clone()));
            self.queue.release_owner(&gone, silent_for).await
        })
    }

    fn beat<'a>(&'a self, queue: &'a str) -> Reply<'a, ()> {
        assert_eq!(queue, QUEUE);
        Box::pin(async move {
            let lease = Duration::from_secs(15);
            self.queue.heartbeat(&self.beating, lease).await?;
            self.beats.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn node_owners<'a>(&'a self, _queue: &'a str) -> Reply<'a, Vec<ListedOwner>> {
        Box::pin(async move {
            let owners = self.queue.owners().await?;
            let nodes = owners.into_iter().map(|holding| ListedOwner {
                cluster: CLUSTER.into(),
                node: holding.owner.as_str().parse().expect("name~life"),
            });
            Ok(nodes.collect())
        })
    }
}

/// A node in memory that runs a releaser.
struct Lab {
    network: MemoryNetwork,
    queue: Arc<dyn Queue>,
    first: Option<kumi_cluster::Authority>,
}

impl Lab {
    fn new(queue: Arc<dyn Queue>) -> Self {
        Self {
            network: MemoryNetwork::new(),
            queue,
            first: None,
        }
    }

    async fn node(&mut self, name: &str) -> (ClusterNode, RunningReleaser) {
        let metadata = MemberMetadata::build("0", &[RELEASER_ROLE], &[]).unwrap();
        let options = NodeOptions::new(MembershipRuntimeConfig::local())
            .name(Name::new(name).unwrap())
            .metadata(metadata)
            .seeds(self.first.clone());
        let node = ClusterNode::start(options, Transport::memory(&self.network))
            .await
            .unwrap();
        self.first.get_or_insert_with(|| node.authority().clone());
        let rules = ReleaserRules::new([CLUSTER.into()]);
        let queues = Arc::new(OneQueue::new(self.queue.clone()));
        let releaser = RunningReleaser::start(rules, &node, queues);
        (node, releaser)
    }

    /// Claims a task as a worker of the node would.
    async fn claim(&self, node: &ClusterNode) -> TaskId {
        let task = NewTask::new(TaskEnvelope::json("resize", "1"));
        let id = task.id;
        self.queue.enqueue(vec![task]).await.unwrap();
        let ask = Ask {
            owner: Owner::from(node.name_and_life()),
            nonce: 1,
            lease: Duration::from_secs(3_600),
            types: vec![Room {
                task_type: "resize".into(),
                room: 1,
            }],
            max: 1,
        };
        let claims = self.queue.dequeue_ready(ask).await.unwrap();
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].id, id);
        id
    }

    /// Waits until a task is in line again, and says why. Nothing here shows that the queue is in use, without which it
    /// would not release anybody: that is the releaser's part.
    async fn given_back(&self, id: TaskId) -> String {
        loop {
            let record = self.queue.get_status(id).await.unwrap().expect("a task");
            if record.state == TaskState::Queued {
                return record.last_error.unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The lease would hold for an hour: only a release gives the task back.
async fn the_task_of_a_crashed_node_is_given_back(queue: Arc<dyn Queue>) {
    let mut lab = Lab::new(queue);
    let (a, releaser_a) = lab.node("a").await;
    let (b, releaser_b) = lab.node("b").await;
    let (c, releaser_c) = lab.node("c").await;
    for node in [&a, &b, &c] {
        until(|| node.members().members.len() == 3 && node.status() == Some(NodeStatus::Up)).await;
    }
    let crashed = b.name_and_life();
    let id = lab.claim(&b).await;
    let kept = lab.claim(&c).await;
    // The worker of the living node renews its lease.
    let renewing = async {
        let owner = Owner::from(c.name_and_life());
        loop {
            lab.queue
                .heartbeat(&owner, Duration::from_secs(3_600))
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    drop(releaser_b);
    b.shutdown().await;
    let why = tokio::select! {
        why = lab.given_back(id) => why,
        () = renewing => unreachable!("it never ends"),
    };
    assert_eq!(why, format!("worker {crashed} was declared gone"));
    let record = lab.queue.get_status(kept).await.unwrap().expect("a task");
    assert_eq!(record.state, TaskState::Running);
    until(|| {
        let all = [&releaser_a, &releaser_c].map(|releaser| releaser.stats().released_tasks);
        all.iter().sum::<u64>() == 1
    })
    .await;
    releaser_a.stop().await;
    releaser_c.stop().await;
}

/// The worker that crashed was the only program that used the queue.
#[tokio::test]
async fn the_task_of_a_crashed_node_is_given_back_on_a_quiet_queue() {
    let test = async {
        let mut lab = Lab::new(Arc::new(InMemoryQueue::new()));
        let (a, releaser_a) = lab.node("a").await;
        let (b, releaser_b) = lab.node("b").await;
        let (_c, releaser_c) = lab.node("c").await;
        for node in [&a, &b] {
            until(|| node.members().members.len() == 3 && node.status() == Some(NodeStatus::Up))
                .await;
        }
        let id = lab.claim(&b).await;
        let crashed = b.name_and_life();
        drop(releaser_b);
        b.shutdown().await;
        let why = lab.given_back(id).await;
        assert_eq!(why, format!("worker {crashed} was declared gone"));
        releaser_a.stop().await;
        releaser_c.stop().await;
    };
    tokio::time::timeout(STUCK, test).await.expect("in time");
}

#[tokio::test]
async fn the_task_of_a_crashed_node_is_given_back_in_memory() {
    let test = the_task_of_a_crashed_node_is_given_back(Arc::new(InMemoryQueue::new()));
    tokio::time::timeout(STUCK, test).await.expect("in time");
}

#[tokio::test]
async fn the_task_of_a_crashed_node_is_given_back_on_a_server() {
    let server = kumi_server::embedded().unwrap();
    let options = RedisOptions::from_url(server.url())
        .unwrap()
        .queue(QUEUE)
        .unwrap();
    let queue = options.connect().await.unwrap();
    let test = the_task_of_a_crashed_node_is_given_back(Arc::new(queue));
    tokio::time::timeout(STUCK, test).await.expect("in time");
}

/// Nobody was there to see it die: the comparison finds its owner.
#[tokio::test]
async fn the_task_of_a_node_that_died_before_this_one_started_is_given_back() {
    let test = async {
        let mut lab = Lab::new(Arc::new(InMemoryQueue::new()));
        // Another cluster uses the same queue, and shows that it is in use while no node of this one runs.
        let mut other = Lab::new(lab.queue.clone());
        let (other, releaser_of_other) = other.node("o").await;
        releaser_of_other.stop().await;
        let queues = Arc::new(OneQueue::new(lab.queue.clone()));
        let rules = ReleaserRules::new(["c2".into()]);
        let releaser_of_other = RunningReleaser::start(rules, &other, queues.clone());
        until(|| queues.beats.load(Ordering::Relaxed) > 0).await;
        let (dead, releaser) = lab.node("b").await;
        until(|| dead.status() == Some(NodeStatus::Up)).await;
        let crashed = dead.name_and_life();
        let id = lab.claim(&dead).await;
        drop(releaser);
        dead.shutdown().await;
        lab.first = None;
        let (_a, releaser) = lab.node("a").await;
        let why = lab.given_back(id).await;
        assert_eq!(why, format!("worker {crashed} was declared gone"));
        releaser.stop().await;
        releaser_of_other.stop().await;
    };
    tokio::time::timeout(STUCK, test).await.expect("in time");
}

/// Queues that panic, fail, and at last reply.
struct Failing {
    inner: OneQueue,
    calls: AtomicU64,
}

impl Failing {
    fn fails(&self) -> bool {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("a mistake in a queue"),
            calls => calls < 4,
        }
    }
}

fn away<T>() -> Result<T, QueueError> {
    Err(QueueError::Protocol("away".into()))
}

impl Queues for Failing {
    fn names(&self) -> Reply<'_, Vec<String>> {
        self.inner.names()
    }

    fn release<'a>(
        &'a self,
        queue: &'a str,
        cluster: &'a str,
        life: &'a NameAndLife,
        silent_for: Duration,
    ) -> Reply<'a, Released> {
        match self.fails() {
            true => Box::pin(async { away() }),
            false => self.inner.release(queue, cluster, life, silent_for),
        }
    }

    fn beat<'a>(&'a self, queue: &'a str) -> Reply<'a, ()> {
        self.inner.beat(queue)
    }

    fn node_owners<'a>(&'a self, _queue: &'a str) -> Reply<'a, Vec<ListedOwner>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[tokio::test]
async fn a_call_that_panics_or_fails_is_repeated() {
    let test = async {
        let mut lab = Lab::new(Arc::new(InMemoryQueue::new()));
        let (a, releaser) = lab.node("a").await;
        releaser.stop().await;
        let (b, releaser) = lab.node("b").await;
        releaser.stop().await;
        // Two nodes agree on the death of a third.
        let (_c, releaser) = lab.node("c").await;
        releaser.stop().await;
        let queues = Arc::new(Failing {
            inner: OneQueue::new(lab.queue.clone()),
            calls: AtomicU64::new(0),
        });
        let rules = ReleaserRules::new([CLUSTER.into()]);
        let releaser = RunningReleaser::start(rules, &a, queues.clone());
        until(|| a.members().members.len() == 3 && b.status() == Some(NodeStatus::Up)).await;
        let id = lab.claim(&b).await;
        b.shutdown().await;
        lab.given_back(id).await;
        assert!(queues.calls.load(Ordering::Relaxed) > 4);
        until(|| {
            releaser.stats()
                == ReleaserStats {
                    released_tasks: 1,
                    pending_lives: 0,
                }
        })
        .await;
        releaser.stop().await;
    };
    tokio::time::timeout(STUCK, test).await.expect("in time");
}

/// A store without a queue, which counts how often it is asked for one.
#[derive(Default)]
struct Empty(AtomicU64);

impl Queues for Empty {
    fn names(&self) -> Reply<'_, Vec<String>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Vec::new()) })
    }

    fn release<'a>(
        &'a self,
        _queue: &'a str,
        _cluster: &'a str,
        _life: &'a NameAndLife,
        _silent_for: Duration,
    ) -> Reply<'a, Released> {
        Box::pin(async { away() })
    }

    fn beat<'a>(&'a self, _queue: &'a str) -> Reply<'a, ()> {
        Box::pin(async { away() })
    }

    fn node_owners<'a>(&'a self, _queue: &'a str) -> Reply<'a, Vec<ListedOwner>> {
        Box::pin(async { away() })
    }
}

#[tokio::test(start_paused = true)]
async fn queues_are_looked_for_when_a_node_departed() {
    let mut lab = Lab::new(Arc::new(InMemoryQueue::new()));
    let (a, releaser) = lab.node("a").await;
    releaser.stop().await;
    let (b, releaser) = lab.node("b").await;
    releaser.stop().await;
    until(|| a.members().members.len() == 2 && b.status() == Some(NodeStatus::Up)).await;
    let queues = Arc::new(Empty::default());
    let rules = ReleaserRules::new([CLUSTER.into()]);
    let releaser = RunningReleaser::start(rules, &a, queues.clone());
    until(|| queues.0.load(Ordering::Relaxed) == 1).await;
    let began = tokio::time::Instant::now();
    b.leave().await.expect("it leaves");
    until(|| a.members().members.len() == 1).await;
    until(|| queues.0.load(Ordering::Relaxed) == 2).await;
    assert!(began.elapsed() < NAMES_EVERY / 2, "{:?}", began.elapsed());
    releaser.stop().await;
}

/// A queue whose operator switched releases off.
struct SwitchedOff(AtomicU64);

impl Queues for SwitchedOff {
    fn names(&self) -> Reply<'_, Vec<String>> {
        Box::pin(async { Ok(vec![QUEUE.to_owned()]) })
    }

    fn release<'a>(
        &'a self,
        _queue: &'a str,
        _cluster: &'a str,
        _life: &'a NameAndLife,
        _silent_for: Duration,
    ) -> Reply<'a, Released> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Released::Off) })
    }

    fn beat<'a>(&'a self, _queue: &'a str) -> Reply<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn node_owners<'a>(&'a self, _queue: &'a str) -> Reply<'a, Vec<ListedOwner>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[tokio::test]
async fn a_queue_with_releases_switched_off_leaves_no_life_pending() {
    let test = async {
        let mut lab = Lab::new(Arc::new(InMemoryQueue::new()));
        let (a, releaser) = lab.node("a").await;
        releaser.stop().await;
        let (b, releaser) = lab.node("b").await;
        releaser.stop().await;
        let (_c, releaser) = lab.node("c").await;
        releaser.stop().await;
        let queues = Arc::new(SwitchedOff(AtomicU64::new(0)));
        let rules = ReleaserRules::new([CLUSTER.into()]);
        let releaser = RunningReleaser::start(rules, &a, queues.clone());
        until(|| a.members().members.len() == 3 && b.status() == Some(NodeStatus::Up)).await;
        b.shutdown().await;
        until(|| queues.0.load(Ordering::Relaxed) > 0).await;
        until(|| releaser.stats() == ReleaserStats::default()).await;
        assert_eq!(queues.0.load(Ordering::Relaxed), 1);
        releaser.stop().await;
    };
    tokio::time::timeout(STUCK, test).await.expect("in time");
}
