//! The conformance suite on every queue of this crate.

use crate::servers::{Cluster, Kind, Server, queue_url};
use futures_util::future::BoxFuture;
use kumi_jobs::conformance::{Harness, run_all};
use kumi_jobs::{InMemoryQueue, Queue, RedisOptions, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Queues on a port (or in memory), with one clock that the suite moves.
pub(crate) struct Virtual {
    port: Option<u16>,
    pub(crate) clock: Arc<AtomicU64>,
}

impl Virtual {
    pub(crate) fn new(port: Option<u16>) -> Self {
        Self {
            port,
            clock: Arc::new(AtomicU64::new(1_700_000_000_000)),
        }
    }
}

impl Harness for Virtual {
    fn queue(&self, settings: Settings) -> BoxFuture<'_, Arc<dyn Queue>> {
        Box::pin(async move {
            let clock = self.clock.clone();
            let Some(port) = self.port else {
                return Arc::new(InMemoryQueue::with_virtual_clock(settings, clock))
                    as Arc<dyn Queue>;
            };
            let options = RedisOptions::from_url(&queue_url(port)).expect("a URL");
            let queue = options
                .settings(settings)
                .virtual_clock(clock)
                .connect()
                .await;
            Arc::new(queue.expect("a queue"))
        })
    }

    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock
            .fetch_add(by.as_millis() as u64, Ordering::SeqCst);
        Box::pin(async {})
    }
}

#[tokio::test]
async fn memory_conforms() {
    run_all(&Virtual::new(None)).await;
}

#[tokio::test]
async fn redis_conforms() {
    let server = Server::start(Kind::Redis);
    run_all(&Virtual::new(Some(server.port))).await;
}

#[tokio::test]
async fn kumi_server_conforms() {
    let server = Server::start(Kind::Kumi);
    run_all(&Virtual::new(Some(server.port))).await;
}

#[tokio::test]
async fn the_documented_permissions_are_enough() {
    let page = include_str!("../../../../docs/jobs.md");
    let (_, rules) = page
        .split_once("ACL SETUSER jobs on >secret ")
        .expect("rules");
    let (rules, _) = rules.split_once("```").expect("their end");
    for kind in [Kind::Redis, Kind::Kumi] {
        let server = Server::start(kind);
        let mut command = vec!["ACL", "SETUSER", "default", "reset", "on", "nopass"];
        command.extend(rules.split_whitespace());
        assert_eq!(server.cli(&command), "OK");
        run_all(&Virtual::new(Some(server.port))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_cluster_conforms() {
    let cluster = tokio::task::spawn_blocking(Cluster::start)
        .await
        .expect("a cluster");
    run_all(&Virtual::new(Some(cluster.ports[0]))).await;
}
