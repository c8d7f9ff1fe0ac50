//! All nodes of a cluster, asked at once: their replies are merged into one status.
//!
//! The members that the first node names are asked side by side, each with a deadline of its own. A node that does not reply
//! is named in the result and holds nobody up. Connections are kept from one status to the next, for a watch.

use super::{Access, ClientError, NodeClient};
use crate::core::status::{ClusterStatus, MAX_NODES, MemberStatus, NodeStatus};
use crate::core::store_pin::StoreId;
use crate::driver::store_link::unix_ms;
use futures_util::StreamExt;
use kumi_common::Shown;
use kumi_unison::NetworkError;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a node may take to reply, connecting included.
const REPLY_WITHIN: Duration = Duration::from_secs(2);

/// The same for a node that did not reply the last time, so that a watch goes on at its pace.
const SILENT_WITHIN: Duration = Duration::from_secs(1);

/// Nodes that are asked at a time, and connections that are kept.
const MAX_AT_ONCE: usize = 64;

/// Rounds of asking: the node that is known, the members that it names, and those that joined meanwhile.
const ROUNDS: usize = 3;

/// How long members may take to hear of a decision about the store, and how often they are asked.
const AGREE_WITHIN: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// Characters of a name that an error shows.
const NAME_CHARS: usize = 63;

/// A decision about the store, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreDecision {
    /// The id that the node that was asked uses now.
    pub pinned: String,
    /// The nodes that use another store so far, or did not reply.
    pub behind: Vec<String>,
}

/// A client of all nodes of a cluster, of which one is known.
pub struct ClusterClient {
    access: Access,
    entry: String,
    /// By address.
    nodes: BTreeMap<String, Known>,
}

/// What is remembered of a node between two questions.
#[derive(Default)]
struct Known {
    client: Option<NodeClient>,
    was_silent: bool,
}

/// What nodes replied.
struct Replies {
    statuses: Vec<NodeStatus>,
    /// Names of live members that did not reply.
    silent: Vec<String>,
}

impl ClusterClient {
    /// Connects to a node of the cluster at `host:port`, the port being that of membership.
    ///
    /// # Errors
    /// If no node answers there, or not with this key.
    pub async fn connect(address: &str, access: Access) -> Result<Self, ClientError> {
        let client = NodeClient::connect(address, &access).await?;
        let known = Known {
            client: Some(client),
            was_silent: false,
        };
        let entry = address.to_owned();
        Ok(Self {
            access,
            nodes: BTreeMap::from([(entry.clone(), known)]),
            entry,
        })
    }

    /// Asks all nodes for their status, and merges what they reply. It takes no longer than a few seconds. Dropping the future
    /// loses connections that were kept, and nothing else.
    ///
    /// # Errors
    /// If no node replies.
    pub async fn status(&mut self) -> Result<ClusterStatus, ClientError> {
        let replies = self.ask_all().await?;
        let merged = ClusterStatus::merge(replies.statuses, replies.silent, unix_ms());
        // Nodes that left are not asked again.
        let addresses: BTreeSet<&str> = merged
            .members
            .iter()
            .filter(|member| is_live(member))
            .map(|member| member.address.as_str())
            .collect();
        let entry = &self.entry;
        self.nodes
            .retain(|address, _| address == entry || addresses.contains(address.as_str()));
        Ok(merged)
    }

    /// Connects to the node that was named at first.
    ///
    /// # Errors
    /// If it does not answer any more.
    pub async fn entry(&self) -> Result<NodeClient, ClientError> {
        NodeClient::connect(&self.entry, &self.access).await
    }

    /// Connects to a member by its name.
    ///
    /// # Errors
    /// If no live member has that name, or it does not answer.
    pub async fn member(&self, name: &str) -> Result<NodeClient, ClientError> {
        let entry = self.entry().await?;
        let status = entry.status().await?;
        if status.node.name == name {
            return Ok(entry);
        }
        entry.close().await;
        let live = || status.members.iter().filter(|member| is_live(member));
        let named = live().filter(|member| member.name == name);
        // One that has crashed may be listed until it is declared dead; its restart has a later life.
        let named = named.max_by_key(|member| (member.status == "up", member.life.clone()));
        match named {
            Some(member) => NodeClient::connect(&member.address, &self.access).await,
            None => {
                let mut known: Vec<String> = live().map(|member| shown(&member.name)).collect();
                known.sort();
                let name = shown(name);
                Err(ClientError::NoMember { name, known })
            }
        }
    }

    /// Makes the cluster use the store of this id, and waits some seconds until all members have heard of it.
    ///
    /// # Errors
    /// If the node refuses, or no node replies.
    pub async fn use_store(&mut self, id: &StoreId) -> Result<StoreDecision, ClientError> {
        let entry = self.entry().await?;
        let pinned = entry.use_store(id).await?;
        entry.close().await;
        let until = Instant::now() + AGREE_WITHIN;
        loop {
            let replies = self.ask_all().await?;
            let others = replies.statuses.iter();
            let others = others.filter(|status| !uses(status, &pinned));
            let mut behind: Vec<String> = others.map(|status| shown(&status.node.name)).collect();
            behind.extend(replies.silent);
            if behind.is_empty() || Instant::now() >= until {
                behind.sort();
                return Ok(StoreDecision { pinned, behind });
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// Closes all connections, and waits until that is sent.
    pub async fn close(self) {
        let clients = self.nodes.into_values().filter_map(|known| known.client);
        futures_util::future::join_all(clients.map(NodeClient::close)).await;
    }

    async fn ask_all(&mut self) -> Result<Replies, ClientError> {
        let mut statuses = Vec::new();
        let mut asked = BTreeSet::new();
        let mut failed = BTreeMap::new();
        let mut round: BTreeSet<String> = self.nodes.keys().cloned().collect();
        round.insert(self.entry.clone());
        for _ in 0..ROUNDS {
            asked.extend(round.iter().cloned());
            for (address, reply) in self.ask(round).await {
                match reply {
                    Ok(status) => statuses.push(status),
                    // It replied that it is another kind of member.
                    Err(ClientError::NoStatus { .. }) if address != self.entry => {}
                    Err(error) => {
                        failed.insert(address, error);
                    }
                }
            }
            let unasked = unheard(&statuses).filter(|member| !asked.contains(&member.address));
            let room = MAX_NODES.saturating_sub(asked.len());
            round = unasked
                .map(|member| member.address.clone())
                .take(room)
                .collect();
            if round.is_empty() {
                break;
            }
        }
        if statuses.is_empty() {
            // The node that was named says most about what is wrong.
            let named = failed.remove(&self.entry);
            let error = named.or_else(|| failed.into_values().next());
            return Err(error.unwrap_or(ClientError::Lost(NetworkError::closed())));
        }
        let silent = unheard(&statuses).filter(|member| failed.contains_key(&member.address));
        let silent: BTreeSet<String> = silent.map(|member| member.name.clone()).collect();
        Ok(Replies {
            silent: silent.into_iter().collect(),
            statuses,
        })
    }

    /// Asks nodes, given by address, side by side.
    async fn ask(
        &mut self,
        addresses: BTreeSet<String>,
    ) -> Vec<(String, Result<NodeStatus, ClientError>)> {
        let mut asking = Vec::new();
        for address in addresses {
            let known = self.nodes.remove(&address).unwrap_or_default();
            asking.push(ask_one(self.access.clone(), address, known));
        }
        let mut asking = futures_util::stream::iter(asking).buffer_unordered(MAX_AT_ONCE);
        let mut replies = Vec::new();
        while let Some((address, mut known, reply)) = asking.next().await {
            if self.nodes.len() >= MAX_AT_ONCE {
                known.client = None;
            }
            self.nodes.insert(address.clone(), known);
            replies.push((address, reply));
        }
        replies
    }
}

async fn ask_one(
    access: Access,
    address: String,
    known: Known,
) -> (String, Known, Result<NodeStatus, ClientError>) {
    let within = match known.was_silent {
        true => SILENT_WITHIN,
        false => REPLY_WITHIN,
    };
    let asking = async {
        // A connection that was kept may have ended meanwhile.
        if let Some(client) = known.client
            && let Ok(status) = client.status().await
        {
            return Ok((client, status));
        }
        let client = NodeClient::connect(&address, &access).await?;
        let status = client.status().await?;
        Ok((client, status))
    };
    let replied = timeout(within, asking).await.unwrap_or_else(|_| {
        Err(ClientError::Unreachable {
            address: address.clone(),
            source: NetworkError::deadline(),
        })
    });
    let (client, reply) = match replied {
        Ok((client, status)) => (Some(client), Ok(status)),
        Err(error) => (None, Err(error)),
    };
    let known = Known {
        client,
        was_silent: reply.is_err(),
    };
    (address, known, reply)
}

/// The live members that replies name and that have not replied themselves.
fn unheard(statuses: &[NodeStatus]) -> impl Iterator<Item = &MemberStatus> {
    let replied: BTreeSet<&str> = statuses.iter().map(|one| one.node.name.as_str()).collect();
    let members = statuses.iter().flat_map(|status| &status.members);
    members.filter(move |member| is_live(member) && !replied.contains(&*member.name))
}

/// Whether a member may reply: it has not died, and has not left.
fn is_live(member: &MemberStatus) -> bool {
    !matches!(&*member.status, "dead" | "removed")
}

/// Whether a node uses this store, or one outside of the cluster, which no decision changes.
fn uses(status: &NodeStatus, id: &str) -> bool {
    let store = status.store.as_ref();
    store.is_none_or(|store| store.id == id || (store.node.is_empty() && store.id.is_empty()))
}

fn shown(name: &str) -> String {
    let shown = Shown {
        bytes: name.as_bytes(),
        limit_chars: NAME_CHARS,
    };
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::status::NodeSelf;

    fn status(name: &str, members: &[(&str, &str, &str)]) -> NodeStatus {
        let members = members.iter().map(|(name, address, status)| MemberStatus {
            name: (*name).into(),
            address: (*address).into(),
            status: (*status).into(),
            ..MemberStatus::default()
        });
        NodeStatus {
            node: NodeSelf {
                name: name.into(),
                ..NodeSelf::default()
            },
            members: members.collect(),
            ..NodeStatus::default()
        }
    }

    #[test]
    fn live_members_are_asked_unless_they_have_replied_by_another_address() {
        let members = [
            ("a", "10.0.0.1:7400", "up"),
            ("b", "10.0.0.2:7400", "up"),
            ("c", "10.0.0.3:7400", "suspect"),
            ("d", "10.0.0.4:7400", "dead"),
        ];
        let names = |replies: &[NodeStatus]| {
            let unheard: BTreeSet<&str> = unheard(replies).map(|member| &*member.name).collect();
            unheard.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut replies = vec![status("a", &members)];
        assert_eq!(names(&replies), ["b", "c"]);
        replies.push(status("c", &members));
        assert_eq!(names(&replies), ["b"]);
    }

    #[test]
    fn a_store_outside_of_the_cluster_is_not_behind_a_decision() {
        let mut node = status("a", &[]);
        assert!(uses(&node, "8c3d"));
        let mut store = crate::core::status::StoreStatus {
            id: "8c3d".into(),
            node: "s".into(),
            ..Default::default()
        };
        node.store = Some(store.clone());
        assert!(uses(&node, "8c3d"));
        assert!(!uses(&node, "77aa"));
        (store.id, store.node) = (String::new(), String::new());
        node.store = Some(store);
        assert!(uses(&node, "77aa"));
    }
}
