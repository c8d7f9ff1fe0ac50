//! The address of a server: a host and a port, and the socket addresses they resolve to.
//!
//! A host may be a DNS name or an IP address; an IPv6 address is written in brackets. The certificate is verified for the
//! host as it was written, not for a resolved address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::NetworkError;

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// A host and a port, as in `example.com:4433`, `127.0.0.1:4433` or `[::1]:4433`, with or without `unison://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Without brackets and without a zone.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Set when the host is an address already; keeps an IPv6 zone.
    literal: Option<SocketAddr>,
}

impl Target {
    /// One address of a host. The certificate is verified for `host`.
    pub(crate) fn at(host: &str, address: SocketAddr) -> Target {
        Target {
            host: host.to_owned(),
            port: address.port(),
            literal: Some(address),
        }
    }

    /// The addresses to try, in order; at least one.
    pub(crate) async fn resolve(&self) -> Result<Vec<SocketAddr>, NetworkError> {
        if let Some(address) = self.literal {
            return Ok(vec![address]);
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port))
            .await
            .map_err(|error| NetworkError::Connect(format!("cannot resolve {self}: {error}")))?;
        let addresses: Vec<SocketAddr> = found.take(MAX_ADDRESSES).collect();
        if addresses.is_empty() {
            return Err(NetworkError::Connect(format!("{self} has no address")));
        }
        Ok(addresses)
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Target {
        Target {
            host: address.ip().to_string(),
            port: address.port(),
            literal: Some(address),
        }
    }
}

impl FromStr for Target {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Target, NetworkError> {
        let wrong =
            || NetworkError::Connect(format!("{text:?} is not `host:port` or `[address]:port`"));
        let rest = text.strip_prefix("unison://").unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // Takes `[fe80::1%2]:4433` too, where the zone is part of the address but not of the name.
        if let Ok(address) = rest.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || host.contains(['[', ']', '/', '@', ':']) {
            return Err(wrong());
        }
        Ok(Target {
            host: host.to_owned(),
            port,
            literal: None,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Any port of any local address of the same family.
pub(crate) fn any_local(remote: SocketAddr) -> SocketAddr {
    let ip = match remote {
        SocketAddr::V4(_) => IpAddr::from([0, 0, 0, 0]),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, u16)>) {
        let target = text.parse::<Target>().ok();
        let parts = target
            .as_ref()
            .map(|target| (target.host.as_str(), target.port));
        assert_eq!(parts, expected, "{text:?}");
    }

    #[test]
    fn hosts_are_names_or_addresses_with_a_port() {
        check("example.com:4433", Some(("example.com", 4433)));
        check("unison://example.com:1", Some(("example.com", 1)));
        check("unison://example.com:1/", Some(("example.com", 1)));
        check("127.0.0.1:80", Some(("127.0.0.1", 80)));
        check("[::1]:80", Some(("::1", 80)));
        check("[fe80::1%2]:80", Some(("fe80::1", 80)));
        check("::1:80", None);
        check("[::1]", None);
        check("example.com", None);
        check(":80", None);
        check("example.com:65536", None);
        check("user@example.com:80", None);
        check("", None);
    }

    #[tokio::test]
    async fn an_address_resolves_to_itself() {
        let target: Target = "[::1]:80".parse().unwrap();
        assert_eq!(target.to_string(), "[::1]:80");
        let addresses = target.resolve().await.unwrap();
        let expected: SocketAddr = "[::1]:80".parse().unwrap();
        assert_eq!(addresses, [expected]);
    }

    #[tokio::test]
    async fn an_address_of_a_name_is_tried_alone_and_judged_by_the_name() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let target = Target::at("no-such-host.invalid", address);
        assert_eq!(target.resolve().await.unwrap(), [address]);
        assert_eq!(target.to_string(), "no-such-host.invalid:80");
    }
}
