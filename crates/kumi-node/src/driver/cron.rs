//! The schedules of `cron` entries, declared as the node's set in each queue: what the configuration does not have any more is
//! removed. Any worker of a queue runs them.

use super::queues::StoreQueues;
use super::store_link::StoreLink;
use super::work::connect;
use crate::config::Cron;
use kumi_common::Chain;
use kumi_jobs::{Jobs, QueueError};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// The pause after a declaration that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Declares the schedules of this node once per route to the store, for as long as it is polled.
pub(crate) async fn declare(
    entries: Vec<Cron>,
    node: String,
    link: StoreLink,
    queues: StoreQueues,
) {
    loop {
        let route = link.up().await;
        match declare_at(&route.url, &entries, &node, &queues).await {
            Ok(()) => link.left(&route).await,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "schedules are not declared yet");
                sleep(RETRY).await;
            }
        }
    }
}

async fn declare_at(
    url: &str,
    entries: &[Cron],
    node: &str,
    queues: &StoreQueues,
) -> Result<(), QueueError> {
    let mut sets: BTreeMap<Option<String>, Vec<&Cron>> = BTreeMap::new();
    // A queue from which all schedules of this node were removed has them still.
    for name in queues.all().await? {
        sets.entry(Some(name)).or_default();
    }
    for entry in entries {
        sets.entry(entry.queue.clone()).or_default().push(entry);
    }
    // The default queue is listed by its name, and has one set.
    if let Some(unnamed) = sets.remove(&None) {
        let jobs = connect(url, None).await?;
        let name = jobs.queue().name().to_owned();
        sets.entry(Some(name)).or_default().extend(unnamed);
    }
    for (queue, entries) in sets {
        let jobs = Jobs::with_queue(queues.queue(&queue.unwrap_or_default()).await?);
        let set = entries.iter().fold(jobs.schedules(node), |set, entry| {
            set.schedule(entry.schedule())
        });
        set.declare().await?;
    }
    Ok(())
}
