//! The schedules of `cron` entries, declared as the node's set in each queue: what the configuration does not have any more is
//! removed. Any worker of a queue runs them.
//!
//! The set is called `@cluster/node`, so that neither a program's set nor the node of another cluster on the same store has
//! its name. Each queue is declared by itself: one that refuses is tried again, and keeps no other from its schedules.

use super::queues::StoreQueues;
use super::store_link::StoreLink;
use crate::config::Cron;
use kumi_common::{Chain, doubled};
use kumi_jobs::{Jobs, NodeLife, QueueError};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The pause after the first round in which a queue refused; it doubles up to the second.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(60);

/// Declares the schedules of this node once per route to the store and when they change, for as long as it is polled.
pub(crate) async fn declare(
    mut entries: watch::Receiver<Vec<Cron>>,
    node: String,
    link: StoreLink,
    queues: StoreQueues,
) {
    loop {
        let route = link.up().await;
        let now = entries.borrow_and_update().clone();
        let declaring = Declaring {
            entries: &now,
            node: &node,
            default_queue: link.default_queue(),
            queues: &queues,
        };
        let declared = async {
            declaring.run().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = declared => {}
            () = link.left(&route) => {}
            // Without a sender nothing changes any more.
            Ok(()) = entries.changed() => {}
        }
    }
}

/// The schedules of this node, and the store over one route.
struct Declaring<'a> {
    entries: &'a [Cron],
    node: &'a str,
    default_queue: String,
    queues: &'a StoreQueues,
}

impl Declaring<'_> {
    /// Returns when the set of every queue is declared.
    async fn run(&self) {
        let named = self.entries.iter().map(|entry| self.queue_of(entry));
        let mut waiting: BTreeSet<String> = named.map(str::to_owned).collect();
        let mut is_listed = false;
        let mut failures = 0;
        loop {
            if !is_listed {
                match self.queues.all().await {
                    // A queue from which all schedules of this node were removed has them still.
                    Ok(names) => {
                        waiting.extend(names);
                        is_listed = true;
                    }
                    Err(error) => {
                        tracing::warn!(error = %Chain(&error), "the queues cannot be listed, in which schedules may be left");
                    }
                }
            }
            let mut refused = BTreeSet::new();
            for queue in waiting {
                if let Err(error) = self.declare_in(&queue).await {
                    tracing::warn!(queue, error = %Chain(&error), "the schedules of a queue are not declared yet");
                    refused.insert(queue);
                }
            }
            waiting = refused;
            if is_listed && waiting.is_empty() {
                return;
            }
            sleep(doubled(RETRY_FIRST, RETRY_MOST, failures)).await;
            failures += 1;
        }
    }

    /// Declares the set of one queue. While the cluster's key is replaced, what is left of the set under the other id is
    /// removed.
    async fn declare_in(&self, queue: &str) -> Result<(), QueueError> {
        let jobs = Jobs::with_queue(self.queues.queue(queue).await?);
        for (at, cluster) in self.queues.clusters().iter().enumerate() {
            let prefix = NodeLife::cluster_prefix(*cluster);
            let set = jobs.schedules(&format!("{prefix}{}", self.node));
            let entries = self
                .entries
                .iter()
                .filter(|entry| self.queue_of(entry) == queue);
            let entries = entries.filter(|_| at == 0);
            let set = entries.fold(set, |set, entry| set.schedule(entry.schedule()));
            set.declare().await?;
        }
        Ok(())
    }

    fn queue_of<'a>(&'a self, entry: &'a Cron) -> &'a str {
        entry.queue.as_deref().unwrap_or(&self.default_queue)
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::store_client::StoreClient;
    use super::*;
    use crate::config::NodeConfig;
    use kumi_jobs::{ClusterId, RedisOptions};
    use std::sync::Arc;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    /// Far beyond what any step takes.
    const STUCK: Duration = Duration::from_secs(60);

    fn entry(name: &str, queue: Option<&str>) -> Cron {
        let text = match queue {
            Some(queue) => format!("cron {name:?} \"0 9 * * *\" queue={queue:?}"),
            None => format!("cron {name:?} \"0 9 * * *\""),
        };
        let config = NodeConfig::parse("kumi.kdl", &text).expect("a configuration");
        config.cron.into_iter().next().expect("an entry")
    }

    /// A server, and nodes that declare there.
    struct Lab {
        url: String,
        link: StoreLink,
        tasks: JoinSet<()>,
        _server: kumi_server::Embedded,
    }

    impl Lab {
        fn new() -> Self {
            let server = kumi_server::embedded().expect("a server");
            let url = server.url().to_owned();
            let (link, probing) = StoreLink::outside(&url);
            let mut tasks = JoinSet::new();
            tasks.spawn(probing);
            Self {
                url,
                link,
                tasks,
                _server: server,
            }
        }

        async fn queue(&self, name: &str) -> Jobs {
            let options = RedisOptions::from_url(&self.url).expect("a URL");
            let options = options.queue(name).expect("a name");
            Jobs::with_queue(Arc::new(options.connect().await.expect("a queue")))
        }

        async fn declare(&self, cluster: u64, node: &str, entries: &[Cron]) {
            self.link.up().await;
            let queues = StoreQueues::new(
                self.link.clone(),
                &Keys::of_clusters(&[ClusterId::from_raw(cluster)]),
            );
            let declaring = Declaring {
                entries,
                node,
                default_queue: self.link.default_queue(),
                queues: &queues,
            };
            timeout(STUCK, declaring.run()).await.expect("in time");
        }

        async fn schedules(&self, queue: &str) -> Vec<String> {
            let jobs = self.queue(queue).await;
            let (_, schedules) = jobs.queue().schedules().await.expect("listed");
            let names = schedules.into_iter().map(|schedule| schedule.name);
            let names: BTreeSet<String> = names.collect();
            names.into_iter().collect()
        }
    }

    #[tokio::test]
    async fn a_node_removes_its_own_schedules_and_no_others_of_its_name() {
        let lab = Lab::new();
        lab.link.up().await;
        let mail = lab.queue("mail").await;
        let program = mail
            .schedules("a")
            .schedule(entry("digest", None).schedule());
        program.declare().await.expect("declared");
        lab.declare(1, "a", &[entry("one", Some("mail")), entry("two", None)])
            .await;
        lab.declare(2, "a", &[entry("other", Some("mail"))]).await;
        assert_eq!(lab.schedules("mail").await, ["digest", "one", "other"]);
        assert_eq!(lab.schedules("default").await, ["two"]);
        lab.declare(1, "a", &[]).await;
        assert_eq!(lab.schedules("mail").await, ["digest", "other"]);
        assert!(lab.schedules("default").await.is_empty());
        drop(lab.tasks);
    }

    #[tokio::test]
    async fn a_queue_that_refuses_keeps_no_other_from_its_schedules() {
        let mut lab = Lab::new();
        lab.link.up().await;
        // A queue of another format, which comes first.
        lab.queue("a-later-one").await;
        let client = StoreClient::connect(&lab.url).await;
        let set = ["SET", "kumi:jobs:{a-later-one}:version", "999"];
        let set = client.expect("a connection").call(&set).await;
        assert_eq!(set.expect("set"), ["OK"]);
        let queues = StoreQueues::new(
            lab.link.clone(),
            &Keys::of_clusters(&[ClusterId::from_raw(1)]),
        );
        let entries = vec![
            entry("one", Some("a-later-one")),
            entry("two", Some("mail")),
        ];
        let entries = watch::Sender::new(entries);
        let declaring = declare(entries.subscribe(), "a".into(), lab.link.clone(), queues);
        lab.tasks.spawn(declaring);
        let declared = async {
            while lab.schedules("mail").await.is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(STUCK, declared).await.expect("declared");
    }
}
