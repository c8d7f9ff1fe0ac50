//! A network within one process: nodes find each other by name, and tests may cut it.

use super::error::DriverError;
use crate::core::Authority;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, MemoryClient, NetworkError, ServerIdentity,
    UnisonChannel,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::string::ToString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::vec::Vec;

/// Nodes of one process. Cloning gives another handle to the same network.
#[derive(Clone, Debug, Default)]
pub struct MemoryNetwork(Arc<Mutex<Nodes>>);

/// The first port that a node gets which asks for any.
const FIRST_PORT: u16 = 49_152;

struct Nodes {
    /// The port that was given last to a node that asked for any.
    last_port: u16,
    registries: BTreeMap<Authority, ChannelRegistry>,
    /// Pairs that cannot reach each other, the lower name first.
    cuts: BTreeSet<(Authority, Authority)>,
    /// What was connected, so that a cut ends it.
    lines: Vec<Weak<MemoryLine>>,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            last_port: FIRST_PORT - 1,
            registries: BTreeMap::new(),
            cuts: BTreeSet::new(),
            lines: Vec::new(),
        }
    }
}

impl Nodes {
    fn live(&self, wanted: impl Fn(&MemoryLine) -> bool) -> Vec<Arc<MemoryLine>> {
        let live = self.lines.iter().filter_map(Weak::upgrade);
        live.filter(|line| wanted(line)).collect()
    }
}

impl core::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.registries.keys()).finish()
    }
}

impl MemoryNetwork {
    /// A network without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts two nodes off from each other: what they have is closed, and nothing new comes about.
    pub fn cut(&self, one: &Authority, other: &Authority) {
        let pair = pair(one, other);
        let mut nodes = self.nodes();
        let cut = nodes.live(|line| line.ends == pair);
        nodes.cuts.insert(pair);
        drop(nodes);
        cut.iter().for_each(|line| line.close());
    }

    /// Takes all cuts back.
    pub fn heal(&self) {
        self.nodes().cuts.clear();
    }

    /// Where a node is that wants to be at `bind`: port 0 stands for any, as on a real network.
    pub(super) fn free_address(&self, mut bind: SocketAddr) -> SocketAddr {
        if bind.port() == 0 {
            let mut nodes = self.nodes();
            nodes.last_port = nodes.last_port.checked_add(1).unwrap_or(FIRST_PORT);
            bind.set_port(nodes.last_port);
        }
        bind
    }

    pub(super) fn join(
        &self,
        authority: &Authority,
        registry: &ChannelRegistry,
    ) -> Result<(), DriverError> {
        let mut nodes = self.nodes();
        if nodes.registries.contains_key(authority) {
            return Err(DriverError::AuthorityTaken(authority.to_string()));
        }
        nodes.registries.insert(authority.clone(), registry.clone());
        Ok(())
    }

    /// The node is gone, and so is everything it was connected to.
    pub(super) fn leave(&self, authority: &Authority) {
        let mut nodes = self.nodes();
        nodes.registries.remove(authority);
        let gone = nodes.live(|line| line.ends.0 == *authority || line.ends.1 == *authority);
        drop(nodes);
        gone.iter().for_each(|line| line.close());
    }

    pub(super) fn connect(
        &self,
        from: &Authority,
        to: &Authority,
    ) -> Result<Arc<MemoryLine>, NetworkError> {
        let ends = pair(from, to);
        let mut nodes = self.nodes();
        let reachable = match nodes.cuts.contains(&ends) {
            true => None,
            false => nodes.registries.get(to),
        };
        let Some(registry) = reachable else {
            return Err(NetworkError::Connect("no node has that address".into()));
        };
        let line = Arc::new(MemoryLine {
            client: MemoryClient::connect(registry),
            ends,
            channels: Mutex::default(),
        });
        nodes.lines.retain(|line| line.strong_count() > 0);
        nodes.lines.push(Arc::downgrade(&line));
        Ok(line)
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pair(one: &Authority, other: &Authority) -> (Authority, Authority) {
    let (low, high) = if one <= other {
        (one, other)
    } else {
        (other, one)
    };
    (low.clone(), high.clone())
}

/// A connection within the process.
#[derive(Debug)]
pub(super) struct MemoryLine {
    client: MemoryClient,
    ends: (Authority, Authority),
    /// What runs on it, so that a cut ends it. A link opens two.
    channels: Mutex<Vec<UnisonChannel>>,
}

impl MemoryLine {
    pub(super) async fn channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        let channel = self.client.open_channel(name, options).await?;
        self.channels().push(channel.clone());
        Ok(channel)
    }

    pub(super) fn identity(&self) -> ServerIdentity {
        self.client.identity()
    }

    pub(super) fn close(&self) {
        let channels = core::mem::take(&mut *self.channels());
        let lost = NetworkError::connection_lost(true);
        channels
            .iter()
            .for_each(|channel| channel.fail(lost.clone()));
    }

    fn channels(&self) -> MutexGuard<'_, Vec<UnisonChannel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
