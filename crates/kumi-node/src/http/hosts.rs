//! Which names in `Host` are answered.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError, RwLock};

/// Names that the node is reached by, besides IP addresses and `localhost`. Clones are the same names.
///
/// ```
/// use kumi_node::http::HostNames;
/// let names = HostNames::new(["node.example"]);
/// assert!(names.allow("10.0.0.1:7480") && names.allow("[::1]") && names.allow("Node.Example."));
/// assert!(!names.allow("attacker.example"));
/// names.replace(["other.example"]);
/// assert!(names.allow("other.example") && !names.allow("node.example"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostNames(Arc<RwLock<BTreeSet<String>>>);

impl HostNames {
    /// These names, without ports. Case and a final dot do not matter.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> HostNames {
        let names = names.into_iter().map(normal).collect();
        HostNames(Arc::new(RwLock::new(names)))
    }

    /// Answers to these names from now on, and to no others.
    pub fn replace<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let names = names.into_iter().map(normal).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Whether an authority, `host` or `host:port`, is one that this node answers to.
    pub fn allow(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else {
            return false;
        };
        if let Some(address) = host.strip_prefix('[') {
            let address = address.strip_suffix(']').unwrap_or_default();
            return address.parse::<Ipv6Addr>().is_ok();
        }
        let host = normal(host);
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        host.parse::<Ipv4Addr>().is_ok() || host == "localhost" || names.contains(&host)
    }
}

/// An authority without its port; none if it is no authority.
fn host_of(authority: &str) -> Option<&str> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    (is_port && !host.is_empty()).then_some(host)
}

fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether a listener at this address can be reached from this machine alone.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_configured_names_are_answered() {
        let names = HostNames::new(["Node.Example", "b"]);
        for allowed in [
            "127.0.0.1",
            "127.0.0.1:7480",
            "192.0.2.1:80",
            "[::1]",
            "[::1]:7480",
            "[2001:db8::1]:7480",
            "localhost",
            "LOCALHOST:7480",
            "localhost.",
            "node.example",
            "node.example.:7480",
            "B:1",
        ] {
            assert!(names.allow(allowed), "{allowed}");
        }
    }

    #[test]
    fn every_other_name_is_not() {
        let names = HostNames::new(["node.example"]);
        for refused in [
            "",
            ":7480",
            "example",
            "attacker.example",
            "localhost.attacker.example",
            "attacker.localhost",
            "127.0.0.1.attacker.example",
            "node.example..",
            "node.example:x",
            "node.example:123456",
            "node.example:7480:7480",
            "::1",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
            "[]",
            "2130706433",
            "0x7f.1",
            "127.1",
            "user@localhost",
            "localhost/",
            "local host",
        ] {
            assert!(!names.allow(refused), "{refused:?}");
        }
    }

    #[test]
    fn a_mapped_loopback_address_is_loopback() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }
}
