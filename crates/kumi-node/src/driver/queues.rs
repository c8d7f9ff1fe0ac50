//! The queues of the store, for the releaser and for status.
//!
//! One connection per queue, made when it is first needed and kept for as long as the route to the store stays.

use super::keys::Keys;
use super::releaser::Queues;
use super::route::StoreRoute;
use super::store_link::StoreLink;
use crate::core::releaser::{ListedOwner, MAX_QUEUES};
use kumi_common::NameAndLife;
use kumi_jobs::{
    ClusterId, Gone, LEASE, NodeLife, Owner, Queue, QueueError, RedisOptions, RedisQueue, Released,
    Reply,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pages of owners that are read of one queue.
const MAX_PAGES: usize = 100;

/// Connections by the queue's name, all to the store of one route.
#[derive(Default)]
struct Open {
    route: Option<Arc<StoreRoute>>,
    queues: BTreeMap<String, Arc<RedisQueue>>,
}

/// The queues of the store. Clones share their connections.
#[derive(Clone)]
pub(crate) struct StoreQueues {
    link: StoreLink,
    /// They say which clusters' nodes are this cluster's: those of two ids while its key is replaced.
    keys: Keys,
    open: Arc<Mutex<Open>>,
    /// Shows that queues are in use, and holds nothing.
    owner: Owner,
}

impl StoreQueues {
    pub(crate) fn new(link: StoreLink, keys: &Keys) -> Self {
        Self {
            link,
            keys: keys.clone(),
            open: Arc::default(),
            owner: Owner::random(),
        }
    }

    /// The ids of this cluster: the first is written, the other one is accepted while the key is replaced.
    pub(crate) fn clusters(&self) -> Vec<ClusterId> {
        self.keys.now().clusters.clone()
    }

    /// A queue by its name, connected.
    pub(crate) async fn queue(&self, name: &str) -> Result<Arc<RedisQueue>, QueueError> {
        let route = self.route()?;
        if let Some(queue) = self.opened_at(&route).get(name) {
            return Ok(queue.clone());
        }
        let options = RedisOptions::from_url(&route.url)?.queue(name)?;
        let queue = Arc::new(options.connect().await?);
        let mut open = self.lock();
        if open.route.as_ref() == Some(&route) && open.queues.len() < MAX_QUEUES {
            open.queues.insert(name.to_owned(), queue.clone());
        }
        Ok(queue)
    }

    /// The names of all queues of the store.
    pub(crate) async fn all(&self) -> Result<Vec<String>, QueueError> {
        let route = self.route()?;
        RedisOptions::from_url(&route.url)?.queue_names().await
    }

    fn route(&self) -> Result<Arc<StoreRoute>, QueueError> {
        let reach = self.link.reach();
        let route = reach.route.filter(|_| reach.is_up);
        route.ok_or_else(|| QueueError::Config("the store is away".into()))
    }

    /// The connections over a route. Those over another one are closed.
    fn opened_at(&self, route: &Arc<StoreRoute>) -> BTreeMap<String, Arc<RedisQueue>> {
        let mut open = self.lock();
        if open.route.as_ref() != Some(route) {
            *open = Open {
                route: Some(route.clone()),
                queues: BTreeMap::new(),
            };
        }
        open.queues.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn owners_of_nodes(&self, queue: &str) -> Result<Vec<ListedOwner>, QueueError> {
        let queue = self.queue(queue).await?;
        let mut found = Vec::new();
        for cluster in &self.keys.now().clusters {
            let id: Arc<str> = cluster.to_string().into();
            let prefix = NodeLife::cluster_prefix(*cluster);
            let mut after = prefix.clone();
            for _ in 0..MAX_PAGES {
                let page = queue.owners_after(&after).await?;
                let in_cluster = |owner: &Owner| owner.as_str().starts_with(&prefix);
                let is_last = page.last().is_none_or(|last| !in_cluster(&last.owner));
                after = page
                    .last()
                    .map_or_else(String::new, |last| last.owner.as_str().to_owned());
                let nodes = page.iter().filter(|holding| in_cluster(&holding.owner));
                found.extend(nodes.filter_map(|holding| {
                    Some(ListedOwner {
                        cluster: id.clone(),
                        node: holding.owner.node()?.node,
                    })
                }));
                if is_last {
                    break;
                }
            }
        }
        Ok(found)
    }
}

impl Queues for StoreQueues {
    fn names(&self) -> Reply<'_, Vec<String>> {
        Box::pin(self.all())
    }

    fn release<'a>(
        &'a self,
        queue: &'a str,
        cluster: &'a str,
        life: &'a NameAndLife,
        silent_for: Duration,
    ) -> Reply<'a, Released> {
        Box::pin(async move {
            let cluster = cluster.parse().map_err(|_| {
                QueueError::Config(format!("{cluster:?} is not the id of a cluster"))
            })?;
            let gone = Gone::Node(NodeLife {
                cluster,
                node: life.clone(),
            });
            let queue = self.queue(queue).await?;
            queue.release_owner(&gone, silent_for).await
        })
    }

    fn beat<'a>(&'a self, queue: &'a str) -> Reply<'a, ()> {
        Box::pin(async move {
            let queue = self.queue(queue).await?;
            queue.heartbeat(&self.owner, LEASE).await?;
            Ok(())
        })
    }

    fn node_owners<'a>(&'a self, queue: &'a str) -> Reply<'a, Vec<ListedOwner>> {
        Box::pin(self.owners_of_nodes(queue))
    }
}
