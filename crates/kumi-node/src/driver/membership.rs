//! The node's place in the cluster: its name, address and port by the rules of `core/place.rs`, and its membership.

use super::keys::Keys;
use super::releaser::RELEASER_ROLE;
use crate::config::{NodeConfig, Preset};
use crate::core::place::{self, Place, PlaceError, Seed, Service, TakenPort, Wish};
use crate::core::store_pin::{Pin, StoreId};
use futures_util::future::join_all;
use kumi_cluster::{
    Authority, ClusterNode, DriverError, MemberMetadata, MembershipError, MembershipRuntimeConfig,
    NodeChannels, NodeOptions, Transport,
};
use kumi_common::Name;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::time::timeout;

/// In a member's metadata: where its store listens.
pub(crate) const STORE_SERVICE: &str = "store";
/// The id of the store's data set.
pub(crate) const STORE_ID_SERVICE: &str = "store-id";
/// Which store it uses, see [`Pin::to_announcement`].
pub(crate) const PIN_SERVICE: &str = "pin";
/// Where its HTTP server listens.
const HTTP_SERVICE: &str = "http";
/// The channel on which it is asked for its status.
const STATUS_SERVICE: &str = "status";
const STATUS_CHANNEL: &str = "kumi.node";

/// Nodes that the timeouts of the presets are made for.
const EXPECTED_NODES: usize = 16;

/// How long the name of a seed may take to resolve.
const RESOLVE_WITHIN: Duration = Duration::from_secs(3);

/// How long a start waits to be let in. After that the node goes on asking, and is not ready.
const JOIN_WAIT: Duration = Duration::from_secs(5);

/// How often a free port is chosen anew, because another process took it meanwhile.
const PORT_ATTEMPTS: usize = 5;

/// Why a node has no place in its cluster. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No place can be chosen.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The port is taken.
    #[error("{0}")]
    PortTaken(String),
    /// A live node has this name.
    #[error("{0}")]
    NameInUse(String),
    /// What the node announces does not fit, because its host name is too long.
    #[error(
        "what the node announces is too long: choose a shorter host name with --advertise HOST"
    )]
    Metadata(#[source] MembershipError),
    /// There is no free port.
    #[error("the system gives no free port")]
    NoFreePort(#[source] io::Error),
    /// Membership cannot start.
    #[error("membership cannot start")]
    Driver(#[source] DriverError),
}

/// Chooses the node's place, by what the configuration says and what the machine has.
pub(crate) async fn choose_place(config: &NodeConfig) -> Result<Place, JoinError> {
    let node = &config.node;
    // Others reach the node by an address that is not loopback, if it has one.
    let outward = node.bind.iter().find(|address| !address.is_loopback());
    let seed = reached_seed(&node.join).await;
    let wish = Wish {
        name: node.name.clone(),
        host_name: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        bind: outward.or(node.bind.first()).copied(),
        advertise: node.advertise.clone(),
        seed,
        addresses: own_addresses(),
    };
    Ok(Place::choose(&wish)?)
}

/// The first seed to which this machine has a route; without a route to any, the first. Names that do not resolve take their
/// time at once, not one after the other.
async fn reached_seed(seeds: &[Authority]) -> Option<Seed> {
    let seeds = seeds.iter().map(|seed| async move {
        let text = seed.as_str().to_owned();
        let local = local_address_to(seed).await;
        Seed { text, local }
    });
    let seeds = join_all(seeds).await;
    let routed = seeds.iter().find(|seed| seed.local.is_some());
    routed.or(seeds.first()).cloned()
}

/// The address of this machine from which packets to a seed go.
async fn local_address_to(seed: &Authority) -> Option<IpAddr> {
    let looked_up = timeout(RESOLVE_WITHIN, tokio::net::lookup_host(seed.as_str())).await;
    let mut addresses = looked_up.ok()?.ok()?;
    addresses.find_map(route_to)
}

/// Asks the system for the route to an address. Nothing is sent.
fn route_to(address: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(address).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The addresses from which this machine reaches others, by the routes to addresses that are kept for documents.
fn own_addresses() -> Vec<IpAddr> {
    let far: [IpAddr; 2] = [
        Ipv4Addr::new(192, 0, 2, 1).into(),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    ];
    let routes = far.into_iter().filter_map(|ip| route_to((ip, 9).into()));
    routes.collect()
}

/// The addresses on which the node's services listen.
pub(crate) fn bound(config: &NodeConfig, place: &Place) -> Vec<IpAddr> {
    match config.node.bind.is_empty() {
        true => vec![place.bind],
        false => config.node.bind.clone(),
    }
}

/// `host:port` for others: what is advertised, or the address itself for a node that only this machine reaches.
pub(crate) fn advertised(place: &Place, port: u16) -> String {
    match &place.advertise {
        Some(host) => match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, port).to_string(),
            Err(_) => format!("{host}:{port}"),
        },
        None => SocketAddr::new(place.bind, port).to_string(),
    }
}

/// What a node announces about itself when it joins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    pub(crate) roles: Vec<&'static str>,
    /// Its store: the id and the address for others.
    pub(crate) store: Option<(StoreId, String)>,
    /// Where its HTTP server listens.
    pub(crate) http: Option<String>,
    pub(crate) pin: Option<Pin>,
}

impl Announced {
    fn metadata(&self) -> Result<MemberMetadata, MembershipError> {
        let mut roles = vec![RELEASER_ROLE];
        roles.extend(self.roles.iter().copied());
        let pin = self.pin.as_ref().map(Pin::to_announcement);
        let mut services = vec![(STATUS_SERVICE, STATUS_CHANNEL)];
        if let Some((id, address)) = &self.store {
            services.extend([
                (STORE_SERVICE, address.as_str()),
                (STORE_ID_SERVICE, id.as_str()),
            ]);
        }
        let http = self.http.as_deref();
        services.extend(http.map(|http| (HTTP_SERVICE, http)));
        services.extend(pin.as_deref().map(|pin| (PIN_SERVICE, pin)));
        MemberMetadata::build(kumi_store::KUMI_VERSION, &roles, &services)
    }
}

/// A node that has begun to join, and what a person should be told about its port.
pub(crate) struct Joining {
    pub(crate) node: ClusterNode,
    pub(crate) note: Option<String>,
}

/// Starts membership. `port` is the one that was named, if one was: only the usual port is replaced when it is taken.
pub(crate) async fn start(
    config: &NodeConfig,
    place: &Place,
    port: Option<u16>,
    keys: &Keys,
    announced: &Announced,
    channels: NodeChannels,
) -> Result<Joining, JoinError> {
    let wanted = port.unwrap_or(Service::Membership.default_port());
    let metadata = announced.metadata().map_err(JoinError::Metadata)?;
    let mut used = match wanted {
        0 => free_port(place.bind)?,
        port => port,
    };
    for _ in 0..PORT_ATTEMPTS {
        let name = match &config.node.name {
            Some(name) => name.clone(),
            None => place::name_with_port(&place.name, used),
        };
        let options = options(config, place, &name, used)
            .metadata(metadata.clone())
            .channels(channels.clone());
        let transport = Transport::quic(keys.now().security.clone());
        match ClusterNode::start(options, transport).await {
            Ok(node) => {
                let is_replaced = used != wanted && wanted != 0;
                let note =
                    is_replaced.then(|| place::replaced_port(Service::Membership, wanted, used));
                return Ok(Joining { node, note });
            }
            Err(error) if error.is_address_in_use() => {
                let is_named = port.is_some_and(|port| port != 0);
                match place::taken_port(Service::Membership, place.bind, used, is_named) {
                    TakenPort::AnyFree => used = free_port(place.bind)?,
                    TakenPort::Refuse(words) => return Err(JoinError::PortTaken(words)),
                }
            }
            Err(error) => return Err(JoinError::Driver(error)),
        }
    }
    Err(JoinError::NoFreePort(io::ErrorKind::AddrInUse.into()))
}

fn options(config: &NodeConfig, place: &Place, name: &Name, port: u16) -> NodeOptions {
    let timeouts = match config.node.preset.unwrap_or_default() {
        Preset::Lan => MembershipRuntimeConfig::lan(EXPECTED_NODES),
        Preset::Wan => MembershipRuntimeConfig::wan(EXPECTED_NODES),
        Preset::Local => MembershipRuntimeConfig::local(),
    };
    let options = NodeOptions::new(timeouts)
        .name(name.clone())
        .bind(SocketAddr::new(place.bind, port))
        .seeds(config.node.join.iter().cloned());
    match Authority::new(&advertised(place, port)) {
        Ok(authority) if place.advertise.is_some() => options.advertise(authority),
        _ => options,
    }
}

fn free_port(bind: IpAddr) -> Result<u16, JoinError> {
    let socket = UdpSocket::bind((bind, 0)).map_err(JoinError::NoFreePort)?;
    let address = socket.local_addr().map_err(JoinError::NoFreePort)?;
    Ok(address.port())
}

/// Waits until the node is in, but not for ever: seeds may be down. A second live node of the same name is an error.
///
/// # Errors
/// [`JoinError::NameInUse`]; the caller shuts the node down.
pub(crate) async fn until_up(node: &ClusterNode) -> Result<bool, JoinError> {
    match timeout(JOIN_WAIT, node.until_up()).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(MembershipError::NameTaken { name, holder })) => {
            let words = place::name_in_use(&name, holder.authority.as_str());
            Err(JoinError::NameInUse(words))
        }
        Ok(Err(error)) => Err(JoinError::Driver(error.into())),
        Err(_) => Ok(false),
    }
}

/// Why the node is not in yet, in words; empty if nothing is known.
pub(crate) fn troubles(node: &ClusterNode) -> Vec<String> {
    let unreachable = node.unreachable();
    let words = unreachable
        .iter()
        .map(|(peer, error)| format!("{peer}: {error}"));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_seed_that_cannot_be_resolved_does_not_hide_another_one() {
        let seeds = ["nowhere.invalid:7400", "127.0.0.1:7400"];
        let seeds = seeds.map(|seed| Authority::new(seed).expect("a seed"));
        let seed = reached_seed(&seeds).await.expect("a seed");
        assert_eq!(seed.text, "127.0.0.1:7400");
        assert_eq!(seed.local, Some(place::LOOPBACK));
        let lost = reached_seed(&seeds[..1]).await.expect("a seed");
        assert_eq!((&*lost.text, lost.local), ("nowhere.invalid:7400", None));
        assert_eq!(reached_seed(&[]).await, None);
    }
}
