//! How a store is reached: its URL for this node, and the one for the programs of the team.

use super::keys::Keys;
use crate::core::store_pin::{LiveStore, StoreId};
use crate::trust::{self, AclUser};
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// A store and its URLs. Two that are equal are reached in the same way. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreRoute {
    /// Its data set; none of a store outside of the cluster.
    pub(crate) id: Option<StoreId>,
    /// The name of its node; empty for a store outside of the cluster.
    pub(crate) node: String,
    /// Where it is, without credentials.
    pub(crate) address: String,
    /// Its URL for this node, with user and password.
    pub(crate) url: Arc<str>,
    /// Its URL for programs of the team.
    pub(crate) app_url: Arc<str>,
    /// Why this node must not connect to the address, in words; none if it may.
    pub(crate) problem: Option<String>,
}

impl StoreRoute {
    /// A store outside of the cluster. This node and the programs of the team log in as the URL says.
    pub(crate) fn outside(url: &str) -> Self {
        Self {
            id: None,
            node: String::new(),
            address: kumi_redis::without_password(url),
            url: url.into(),
            app_url: url.into(),
            problem: None,
        }
    }

    /// The store of a node: in plain text if its address is on loopback, with TLS everywhere else. The certificate has to
    /// be for the store's id.
    pub(crate) fn of_cluster(store: &LiveStore, keys: &Keys) -> Self {
        let address = store.address.clone();
        let is_plain = is_loopback(&address);
        let users = keys.trust.as_ref();
        let url = |user: Option<AclUser>, checks_id: bool| -> Arc<str> {
            let scheme = if is_plain { "redis" } else { "rediss" };
            let login = user.map_or_else(String::new, |user| {
                format!("{}:{}@", user.name(), user.password().expose())
            });
            let mut url = format!("{scheme}://{login}{address}");
            if !is_plain {
                // Writing into a text does not fail.
                let _ = write!(url, "/?cacert={}", in_query(&keys.authorities));
                let named = trust::StoreId::new(store.id.as_str());
                if let (true, Ok(id)) = (checks_id, named) {
                    let _ = write!(url, "&name={}", id.certificate_name());
                }
            }
            url.into()
        };
        Self {
            id: Some(store.id.clone()),
            node: store.node.name().to_owned(),
            url: url(users.map(|trust| trust.node_user()), users.is_some()),
            app_url: url(users.map(|trust| trust.app_user()), false),
            address,
            problem: None,
        }
    }
}

impl fmt::Debug for StoreRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRoute")
            .field("id", &self.id)
            .field("node", &self.node)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Whether `host:port` is on loopback, where the store speaks plain text.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A path in the query of a URL.
fn in_query(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_on_loopback_are_plain() {
        for plain in ["127.0.0.1:6379", "127.9.9.9:1", "[::1]:6379"] {
            assert!(is_loopback(plain), "{plain}");
        }
        for other in [
            "10.0.0.1:6379",
            "[fd00::1]:6379",
            "localhost.example:6379",
            "0.0.0.0:1",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn paths_keep_their_slashes_and_escape_the_rest() {
        assert_eq!(in_query(Path::new("/a b/ü&c.pem")), "/a%20b/%C3%BC%26c.pem");
    }
}
