//! Where a node is: its name, its instance, the address it binds, the ports, and what it advertises to others.
//!
//! Pure rules: the caller looks up the host name, the addresses of the machine and the route to the seed, tries the ports,
//! and prints what [`Place::notes`] says.

#[cfg(test)]
mod tests;

use kumi_common::Name;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a node that is used from its own machine only.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A service of a node that listens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The store, on TCP.
    Store,
    /// Membership, on UDP.
    Membership,
    /// Health, readiness and metrics, on TCP.
    Http,
}

impl Service {
    /// The port unless another one is named.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Store => 6379,
            Self::Membership => 7400,
            Self::Http => 7480,
        }
    }

    /// The option that names another port.
    const fn option(self) -> &'static str {
        match self {
            Self::Store => "--port",
            Self::Membership => "--cluster-port",
            Self::Http => "--http-port",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "the store",
            Self::Membership => "membership",
            Self::Http => "HTTP",
        })
    }
}

/// What is wished, and what the machine has.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// `--name`.
    pub name: Option<Name>,
    /// The host name of the machine; may be empty.
    pub host_name: String,
    /// `--bind`.
    pub bind: Option<IpAddr>,
    /// `--advertise`: a host name or an address, without a port.
    pub advertise: Option<String>,
    /// The first seed of `--join` to which there is a route; without a route to any, the first.
    pub seed: Option<Seed>,
    /// All addresses of the machine's interfaces.
    pub addresses: Vec<IpAddr>,
}

/// A seed, and how this machine reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// As it was written.
    pub text: String,
    /// The address of this machine from which packets to the seed go; none without a route.
    pub local: Option<IpAddr>,
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: Name,
    /// The address that its services bind.
    pub bind: IpAddr,
    /// What others reach it by; none for a node that only this machine reaches.
    pub advertise: Option<String>,
    /// What a person should be told.
    pub notes: Vec<String>,
}

/// A wish that cannot be met; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// This machine has no route to the seed.
    #[error(
        "no route from this machine to {seed}: check the address, or name the address to bind with --bind ADDRESS"
    )]
    NoRoute {
        /// The seed.
        seed: String,
    },
    /// The seed is on loopback, and this node is not.
    #[error(
        "{seed} is on loopback, where only its own machine reaches it, and this node binds {bind}: start the other node with --bind ADDRESS and join that address, or leave --bind out"
    )]
    LoopbackSeed {
        /// The seed.
        seed: String,
        /// The address of this node.
        bind: IpAddr,
    },
    /// This node is on loopback, and the seed is not.
    #[error(
        "this node binds {bind}, which is loopback, and {seed} is on another machine or another address: leave --bind out, or name an address that the others reach with --bind ADDRESS"
    )]
    LoopbackBind {
        /// The seed.
        seed: String,
        /// The address of this node.
        bind: IpAddr,
    },
    /// What is to be advertised leads nowhere for others.
    #[error(
        "{host} cannot be advertised, because {reason}: name an address or a host name that the other machines reach with --advertise HOST"
    )]
    NotReachable {
        /// What was to be advertised.
        host: String,
        /// Why others cannot reach it.
        reason: &'static str,
    },
    /// It is neither an address nor a host name.
    #[error("{host} is neither an address nor a host name (--advertise HOST, without a port)")]
    InvalidHost {
        /// What was to be advertised.
        host: String,
    },
    /// A node that binds all addresses of a family has none that others reach.
    #[error(
        "{bind} binds all {} addresses, and this machine has none that others reach: name one with --advertise HOST",
        family(.bind)
    )]
    NothingToAdvertise {
        /// The wildcard.
        bind: IpAddr,
    },
}

impl Place {
    /// Chooses the place of a node.
    ///
    /// # Errors
    /// If the wish cannot be met.
    pub fn choose(wish: &Wish) -> Result<Self, PlaceError> {
        let mut notes = Vec::new();
        let bind = choose_bind(wish, &mut notes)?;
        let advertise = choose_advertised(wish, bind, &mut notes)?;
        let name = match &wish.name {
            Some(name) => name.clone(),
            None => Name::fitted(&wish.host_name),
        };
        Ok(Self {
            name,
            bind,
            advertise,
            notes,
        })
    }
}

/// The name of a node whose membership port is not the usual one, and that was given no name: several such nodes may run
/// on one machine.
#[must_use]
pub fn name_with_port(name: &Name, membership_port: u16) -> Name {
    match membership_port == Service::Membership.default_port() {
        true => name.clone(),
        false => Name::fitted(&format!("{name}-{membership_port}")),
    }
}

/// The name of the state directory: the port of the store; without a store the node's name, if it was given one.
#[must_use]
pub fn instance(store_port: Option<u16>, given_name: Option<&Name>) -> String {
    match (store_port, given_name) {
        (Some(port), _) => port.to_string(),
        (None, Some(name)) => name.to_string(),
        (None, None) => Service::Membership.default_port().to_string(),
    }
}

/// What is done about a port that is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenPort {
    /// The caller binds any free port instead, and tells [`replaced_port`].
    AnyFree,
    /// The start ends with this message.
    Refuse(String),
}

/// Decides about a port that is taken. On loopback a usual port of membership or HTTP is replaced; the port of the store,
/// a port that was named, and ports on other addresses are not: others rely on them.
#[must_use]
pub fn taken_port(service: Service, bind: IpAddr, port: u16, is_named: bool) -> TakenPort {
    if bind.is_loopback() && service != Service::Store && !is_named {
        return TakenPort::AnyFree;
    }
    let option = service.option();
    let at = with_port(bind, port);
    let hint = match service {
        Service::Store => "a store may be running there already; stop it",
        Service::Membership | Service::Http => "another node may be running there; stop it",
    };
    TakenPort::Refuse(format!(
        "{at} is in use, where {service} should listen: {hint}, or choose another port with {option} PORT"
    ))
}

/// Tells that a taken port was replaced.
#[must_use]
pub fn replaced_port(service: Service, taken: u16, chosen: u16) -> String {
    format!("port {taken} is taken; {service} uses {chosen} (kumi status on this machine finds it)")
}

/// The message for a node that finds the store of its cluster on loopback of another machine.
#[must_use]
pub fn loopback_store(node: &str) -> String {
    format!(
        "the store of node {node} listens on loopback only, and this node cannot reach it: start node {node} with --bind ADDRESS"
    )
}

/// The message for a node whose name another live node has.
#[must_use]
pub fn name_in_use(name: &Name, other_address: &str) -> String {
    format!(
        "a live node at {other_address} has the name {name} already: choose another one with --name NAME, or stop that node"
    )
}

/// An address with a port, IPv6 in brackets.
fn with_port(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn choose_bind(wish: &Wish, notes: &mut Vec<String>) -> Result<IpAddr, PlaceError> {
    let Some(seed) = &wish.seed else {
        return Ok(wish.bind.unwrap_or(LOOPBACK));
    };
    // Another address of this very machine may also be reached from loopback.
    let is_local = is_loopback_seed(&seed.text);
    match (wish.bind, seed.local) {
        (Some(bind), Some(local)) if local.is_loopback() && !bind.is_loopback() => match is_local {
            Some(true) => Err(PlaceError::LoopbackSeed {
                seed: seed.text.clone(),
                bind,
            }),
            _ => Ok(bind),
        },
        // From loopback no packet leaves the machine, and the others would be told an address that is theirs.
        (Some(bind), local)
            if bind.is_loopback()
                && (is_local == Some(false) || local.is_some_and(|local| !local.is_loopback())) =>
        {
            Err(PlaceError::LoopbackBind {
                seed: seed.text.clone(),
                bind,
            })
        }
        (Some(bind), _) => Ok(bind),
        (None, Some(local)) => {
            if !local.is_loopback() {
                notes.push(format!(
                    "binding {local}, the address that routes to {} (--bind ADDRESS chooses another)",
                    seed.text
                ));
            }
            Ok(local)
        }
        (None, None) => Err(PlaceError::NoRoute {
            seed: seed.text.clone(),
        }),
    }
}

/// Whether a seed is on loopback; none for a name, which only a lookup tells.
fn is_loopback_seed(text: &str) -> Option<bool> {
    let host = host_of(text);
    match host.parse::<IpAddr>() {
        Ok(ip) => Some(ip.is_loopback()),
        Err(_) => (host == "localhost").then_some(true),
    }
}

/// The host of `host`, `host:port`, `[v6]:port` or `v6`.
fn host_of(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => text,
    }
}

fn choose_advertised(
    wish: &Wish,
    bind: IpAddr,
    notes: &mut Vec<String>,
) -> Result<Option<String>, PlaceError> {
    if let Some(host) = &wish.advertise {
        return check_advertised(host).map(Some);
    }
    if bind.is_loopback() {
        return Ok(None);
    }
    if !bind.is_unspecified() {
        return Ok(Some(bind.to_string()));
    }
    let routed = wish.seed.as_ref().and_then(|seed| seed.local);
    let mut reachable: Vec<IpAddr> = routed
        .into_iter()
        .chain(wish.addresses.iter().copied())
        .collect();
    reachable.retain(|address| unreachable(*address).is_none() && fits(bind, *address));
    // The route to the seed stays first.
    let rest = usize::from(routed.is_some_and(|routed| reachable.first() == Some(&routed)));
    reachable[rest..].sort();
    reachable.dedup();
    let Some(first) = reachable.first() else {
        return Err(PlaceError::NothingToAdvertise { bind });
    };
    let others = reachable
        .iter()
        .skip(1)
        .filter(|other| *other != first)
        .count();
    notes.push(match others {
        0 => format!("advertising {first} to the others"),
        _ => format!(
            "advertising {first} to the others, of {} addresses (--advertise HOST chooses another)",
            others + 1
        ),
    });
    Ok(Some(first.to_string()))
}

/// Whether a wildcard listens at an address. Each family has its own: the store at `::` takes no connections over IPv4.
fn fits(wildcard: IpAddr, address: IpAddr) -> bool {
    wildcard.is_ipv6() == address.is_ipv6()
}

fn family(address: &IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// The address by which this machine reaches what listens at a wildcard.
#[must_use]
pub fn loopback_of(wildcard: IpAddr) -> IpAddr {
    match wildcard {
        IpAddr::V4(_) => LOOPBACK,
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

fn check_advertised(host: &str) -> Result<String, PlaceError> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        return match unreachable(address) {
            None => Ok(address.to_string()),
            Some(reason) => Err(PlaceError::NotReachable {
                host: host.into(),
                reason,
            }),
        };
    }
    let is_local = |name: &str| name == "localhost" || name.ends_with(".localhost");
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if is_local(&name) {
        return Err(PlaceError::NotReachable {
            host: host.into(),
            reason: "it means this machine on every machine",
        });
    }
    match is_host_name(&name) {
        true => Ok(name),
        false => Err(PlaceError::InvalidHost { host: host.into() }),
    }
}

/// Labels of letters, digits and inner hyphens, 253 bytes at most; not all digits, which would be a mistyped address.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
    name.len() <= 253 && !is_number && name.split('.').all(is_label)
}

/// Why other machines do not reach an address; none if they may.
fn unreachable(address: IpAddr) -> Option<&'static str> {
    let address = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    match address {
        _ if address.is_unspecified() => Some("it stands for all addresses"),
        _ if address.is_loopback() => Some("it is loopback, which only this machine reaches"),
        _ if address.is_multicast() => Some("it is a multicast address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("it is the broadcast address"),
        IpAddr::V4(v4) if v4.is_link_local() => Some("it is link-local"),
        IpAddr::V6(v6) if is_link_local(v6) => Some("it is link-local"),
        _ => None,
    }
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}
