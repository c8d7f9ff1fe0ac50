//! Which store this node uses, and whether it replies.
//!
//! ```text
//! members' metadata, pins, decisions -> choose (core/store_pin.rs) -> route -> probe -> Reach
//! ```
//! A store outside of the cluster is one route for ever. Otherwise the route follows the pin and the address that the
//! store's node announces. Everything that uses the store waits here for a route that replies, and begins again when the
//! route changes. A store that is away at the same route needs nothing: the clients connect again by themselves.

use super::keys::Keys;
use super::membership::{PIN_SERVICE, STORE_ID_SERVICE, STORE_SERVICE};
use super::route::{StoreRoute, is_loopback};
use super::state_dir::StateDir;
use super::store_probe::probe;
use crate::core::place;
use crate::core::store_pin::{LiveStore, Pin, StoreChoice, StoreFault, StoreId, StorePin};
use kumi_cluster::driver::MembershipRuntimeShared;
use kumi_cluster::{ClusterNode, ClusterWatch, Member};
use kumi_common::Chain;
use kumi_redis::ServerUrl;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

/// The queue of tasks that name none, unless the store's URL does.
const DEFAULT_QUEUE: &str = "default";

/// Decisions of people that wait; who makes one more waits.
const MAX_DECISIONS: usize = 8;

/// Which store is used, and what is wrong with the stores of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// How the store is reached; none before one was seen.
    pub(crate) route: Option<Arc<StoreRoute>>,
    /// The data set that the cluster uses.
    pub(crate) pinned: Option<StoreId>,
    /// What is wrong.
    pub(crate) faults: Vec<StoreFault>,
}

/// Whether the store of a route replies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reach {
    /// The route that was asked.
    pub(crate) route: Option<Arc<StoreRoute>>,
    /// Whether it replies to commands.
    pub(crate) is_up: bool,
    /// Whether it replies that it loads its data.
    pub(crate) is_loading: bool,
    /// Since when that is so, in milliseconds since 1970.
    pub(crate) since_unix_ms: u64,
    /// Why it does not reply.
    pub(crate) reason: Option<String>,
    /// How far this node's clock is ahead of the store's, in milliseconds.
    pub(crate) clock_ahead_ms: Option<i64>,
}

/// A person's decision, and the place for the id that holds then.
type Decision = (StoreId, oneshot::Sender<StoreId>);

/// The way to the store. Clones are the same one.
#[derive(Clone)]
pub(crate) struct StoreLink {
    choice: watch::Receiver<Choice>,
    reach: watch::Receiver<Reach>,
    decisions: Option<mpsc::Sender<Decision>>,
}

impl StoreLink {
    /// A link that always has this route. The second part probes it for as long as it is polled.
    pub(crate) fn outside(url: &str) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let route = Some(Arc::new(StoreRoute::outside(url)));
        let choice = watch::Sender::new(Choice {
            route,
            ..Choice::default()
        });
        let (reach, link) = Self::new(choice.subscribe(), None);
        let receiver = choice.subscribe();
        let probing = async move {
            // The sender stays, so that the route does.
            let _choice = choice;
            probe(receiver, reach).await;
        };
        (link, probing)
    }

    /// A link that follows the members. The second part does that for as long as it is polled.
    pub(crate) fn of_cluster(
        chooser: Chooser,
        node: &ClusterNode,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let choice = watch::Sender::new(Choice::default());
        let (decisions, made) = mpsc::channel(MAX_DECISIONS);
        let (reach, link) = Self::new(choice.subscribe(), Some(decisions));
        let probing = probe(choice.subscribe(), reach);
        let following = chooser.follow(node.shared(), node.subscribe(), choice, made);
        let both = async move {
            tokio::join!(probing, following);
        };
        (link, both)
    }

    fn new(
        choice: watch::Receiver<Choice>,
        decisions: Option<mpsc::Sender<Decision>>,
    ) -> (watch::Sender<Reach>, Self) {
        let since_unix_ms = unix_ms();
        let (sender, reach) = watch::channel(Reach {
            since_unix_ms,
            ..Reach::default()
        });
        let link = Self {
            choice,
            reach,
            decisions,
        };
        (sender, link)
    }

    /// Which store is used now.
    pub(crate) fn choice(&self) -> Choice {
        self.choice.borrow().clone()
    }

    /// Whether it replies.
    pub(crate) fn reach(&self) -> Reach {
        self.reach.borrow().clone()
    }

    /// The queue of tasks that name none: the one that the URL of a store outside of the cluster names, or the usual one.
    pub(crate) fn default_queue(&self) -> String {
        let route = self.choice.borrow().route.clone();
        let url = route.and_then(|route| ServerUrl::parse(&route.url).ok());
        let named = url.as_ref().and_then(ServerUrl::queue);
        named.unwrap_or(DEFAULT_QUEUE).to_owned()
    }

    /// Waits for a store that replies. Never returns if the node ends first.
    pub(crate) async fn up(&self) -> Arc<StoreRoute> {
        let mut reach = self.reach.clone();
        // A route that is not chosen any more may still reply; the probe is about to ask the new one.
        let is_chosen = |reach: &Reach| reach.route == self.choice.borrow().route;
        let is_up = reach.wait_for(|reach| reach.is_up && is_chosen(reach));
        let route = match is_up.await {
            Ok(reach) => reach.route.clone(),
            Err(_) => None,
        };
        match route {
            Some(route) => route,
            None => std::future::pending().await,
        }
    }

    /// Waits until another route is to be used than this one. Never returns if the node ends first.
    pub(crate) async fn left(&self, route: &Arc<StoreRoute>) {
        let mut choice = self.choice.clone();
        let is_other = |choice: &Choice| choice.route.as_ref() != Some(route);
        if choice.wait_for(is_other).await.is_err() {
            std::future::pending().await
        }
    }

    /// Decides that the cluster uses the store with this id, on behalf of a person. Returns the id that holds; none for a
    /// store outside of the cluster, or while the node ends.
    pub(crate) async fn use_store(&self, id: StoreId) -> Option<StoreId> {
        let (reply, decided) = oneshot::channel();
        let decisions = self.decisions.as_ref()?;
        decisions.send((id, reply)).await.ok()?;
        decided.await.ok()
    }
}

/// Chooses the store of a cluster.
pub(crate) struct Chooser {
    pub(crate) pin: StorePin,
    pub(crate) keys: Keys,
    pub(crate) state: StateDir,
    /// The name of this node, and the URL by which it reaches its own store, if it has one.
    pub(crate) own: Option<(String, String)>,
    pub(crate) is_on_loopback: bool,
    /// Tells the others which store is used.
    pub(crate) announce: Box<dyn Fn(&Pin) + Send + Sync>,
}

impl Chooser {
    /// Until membership ends. Then the last choice holds.
    async fn follow(
        mut self,
        shared: MembershipRuntimeShared,
        mut events: ClusterWatch,
        choice: watch::Sender<Choice>,
        mut decisions: mpsc::Receiver<Decision>,
    ) {
        let mut keys = self.keys.changes();
        loop {
            self.see(&shared.members().members, &choice);
            tokio::select! {
                // The URLs have passwords, and the pin names the cluster. The sender lives as long as this.
                _ = keys.changed() => self.write_pin(),
                event = events.next() => if event.is_none() {
                    break;
                },
                Some((id, reply)) = decisions.recv() => {
                    if self.pin.use_store(id.clone()) {
                        self.keep_pin();
                    }
                    let holds = self.pin.pin().map_or(id, |pin| pin.id.clone());
                    // A caller that does not wait any more is not told.
                    let _ = reply.send(holds);
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn see(&mut self, members: &[Member], choice: &watch::Sender<Choice>) {
        let announced = members.iter().filter_map(|member| {
            let text = member.metadata.service(PIN_SERVICE)?;
            Pin::from_announcement(text).ok()
        });
        let mut is_new = false;
        for pin in announced.collect::<Vec<_>>() {
            is_new |= self.pin.handle_announced(&pin);
        }
        is_new |= self
            .pin
            .handle_stores(members.iter().filter_map(live_store));
        if is_new {
            self.keep_pin();
        }
        let chosen = Choice {
            route: self.route(choice.borrow().route.clone()),
            pinned: self.pin.pin().map(|pin| pin.id.clone()),
            faults: self.pin.faults(),
        };
        choice.send_if_modified(|choice| {
            let is_other = *choice != chosen;
            *choice = chosen;
            is_other
        });
    }

    /// The route to the store of the choice. One whose node is away stays: clients connect again when it is back.
    fn route(&self, before: Option<Arc<StoreRoute>>) -> Option<Arc<StoreRoute>> {
        match self.pin.choice() {
            StoreChoice::Use(store) => {
                let own = self.own.as_ref();
                let own = own.filter(|(name, _)| store.node.name() == name);
                let mut route = match own {
                    Some((_, url)) => StoreRoute::own(&store, &self.keys, url),
                    None => StoreRoute::of_cluster(&store, &self.keys),
                };
                // Loopback of another machine is loopback of this one, where any server may be.
                if own.is_none() && !self.is_on_loopback && is_loopback(&route.address) {
                    route.problem = Some(place::loopback_store(&route.node));
                }
                let same = before.filter(|before| **before == route);
                Some(same.unwrap_or_else(|| Arc::new(route)))
            }
            StoreChoice::Away(id) => before.filter(|before| before.id.as_ref() == Some(&id)),
            StoreChoice::None => None,
        }
    }

    /// Writes the pin down, and announces it. A disk that is full keeps the old one until the next start, when the members
    /// announce it again.
    fn keep_pin(&self) {
        let Some(pin) = self.pin.pin() else {
            return;
        };
        tracing::info!(store = %pin.id, by = %pin.by, "the cluster uses this store");
        self.write_pin();
        (self.announce)(pin);
    }

    /// Writes the pin down, if there is one, with the ids of the cluster that the present keys give: a start with other keys
    /// does not read it.
    fn write_pin(&self) {
        if let Some(pin) = self.pin.pin()
            && let Err(error) = self.state.write_pin(pin, &self.keys.now().clusters)
        {
            tracing::error!(error = %Chain(&error), "the store that the cluster uses is not recorded");
        }
    }
}

/// The store that a member announces.
fn live_store(member: &Member) -> Option<LiveStore> {
    Some(LiveStore {
        id: member.metadata.service(STORE_ID_SERVICE)?.parse().ok()?,
        node: member.name_and_life()?,
        address: member.metadata.service(STORE_SERVICE)?.to_owned(),
    })
}

/// This machine's clock.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;
    use kumi_common::NameAndLife;
    use kumi_unison::ClusterKey;

    /// How a node, which is on loopback or not, reaches the store of node `a` at an address.
    fn route(address: &str, is_on_loopback: bool, own: Option<&str>) -> Arc<StoreRoute> {
        let directory = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(directory.path()).expect("made");
        let key = ClusterKey::from_secret(&[7; 32]).expect("long enough");
        let keys = Keys::read(&NodeConfig::default(), Some(&key), &state).expect("keys");
        let node: NameAndLife = "a~0000000000000001".parse().expect("a life");
        let mut chooser = Chooser {
            pin: StorePin::new(node.clone(), None),
            keys,
            state,
            own: own.map(|name| (name.to_owned(), "127.0.0.1:6379".to_owned())),
            is_on_loopback,
            announce: Box::new(|_| {}),
        };
        let store = LiveStore {
            id: "8c3d".parse().expect("an id"),
            node,
            address: address.to_owned(),
        };
        chooser.pin.handle_stores([store]);
        chooser.route(None).expect("a route")
    }

    #[test]
    fn loopback_of_another_machine_is_not_asked() {
        for near in ["127.0.0.1:6379", "[::1]:6379"] {
            let problem = route(near, false, None).problem.clone();
            let problem = problem.expect("it is another machine's");
            assert!(problem.contains("start node a with --bind"), "{problem}");
            assert_eq!(route(near, true, None).problem, None);
        }
        assert_eq!(route("10.0.0.1:6379", false, None).problem, None);
        // Its own store is this machine's.
        let own = route("10.0.0.1:6379", false, Some("a"));
        assert_eq!((&*own.address, &own.problem), ("127.0.0.1:6379", &None));
    }

    #[test]
    fn a_url_names_the_default_queue() {
        let queue = |url: &str| StoreLink::outside(url).0.default_queue();
        assert_eq!(queue("redis://localhost"), "default");
        assert_eq!(queue("redis://localhost/?queue=mail"), "mail");
    }
}
