//! How a store is reached: its URL for this node, and the one for the programs of the team.

use super::keys::Keys;
use super::state_dir::{NodeRecord, StateDir};
use crate::core::store_pin::{LiveStore, StoreId};
use crate::trust::{self, AclUser, Trust};
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
        let keys = keys.now();
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

    /// The store of this node itself, by its URL for clients on this machine: `redis://address` or `redis+unix://path`.
    pub(crate) fn own(store: &LiveStore, keys: &Keys, local_url: &str) -> Self {
        let keys = keys.now();
        let users = keys.trust.as_ref();
        Self {
            id: Some(store.id.clone()),
            node: store.node.name().to_owned(),
            address: kumi_redis::without_password(local_url)
                .trim_start_matches("redis://")
                .to_owned(),
            url: with_login(local_url, users.map(|trust| trust.node_user())),
            app_url: with_login(local_url, users.map(|trust| trust.app_user())),
            problem: None,
        }
    }
}

/// The URL of the store that a node of this machine uses, for programs of the team; none if it knows no store yet, or uses one
/// outside of the cluster, which has users of its own. The programs of other machines can use it too if they reach the store,
/// and have the file with the authorities at the same path.
#[must_use]
pub fn app_url(record: &NodeRecord, state: &StateDir, trust: &Trust) -> Option<String> {
    if record.uses_outside_store() {
        return None;
    }
    let address = record
        .used_store
        .as_ref()
        .or(record.advertised_store.as_ref());
    match (address, &record.local_store) {
        (Some(address), _) => app_url_at(address, trust, Some(&state.authorities_file())),
        (None, Some(local)) => Some(with_login(local, Some(trust.app_user())).to_string()),
        (None, None) => None,
    }
}

/// The URL of the store at an address, for programs of the team. Clients of an address that is not on loopback need a file
/// with the authorities of the cluster; none without it.
#[must_use]
pub fn app_url_at(address: &str, trust: &Trust, authorities: Option<&Path>) -> Option<String> {
    let plain = with_login(&format!("redis://{address}"), Some(trust.app_user()));
    match (is_loopback(address), authorities) {
        (true, _) => Some(plain.to_string()),
        (false, Some(file)) => {
            let secure = plain.replacen("redis://", "rediss://", 1);
            Some(format!("{secure}/?cacert={}", in_query(file)))
        }
        (false, None) => None,
    }
}

/// A URL that has no user, with this one.
fn with_login(url: &str, user: Option<AclUser>) -> Arc<str> {
    let Some(user) = user else {
        return url.into();
    };
    let (name, password) = (user.name(), user.password().expose());
    match url.split_once("://") {
        Some((scheme, path)) if scheme.contains("unix") => {
            let path = in_query(Path::new(path));
            format!("{scheme}://{path}?user={name}&pass={password}").into()
        }
        Some((scheme, address)) => format!("{scheme}://{name}:{password}@{address}").into(),
        None => url.into(),
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
    fn a_socket_has_its_user_in_the_query_and_an_address_in_front() {
        let key = kumi_unison::ClusterKey::from_secret(&[7; 32]).expect("long enough");
        let trust = Trust::from_key(&key).expect("derived");
        let password = trust.app_user().password().expose().to_owned();
        let check = |url: &str, expected: String| {
            assert_eq!(*with_login(url, Some(trust.app_user())), *expected);
            assert_eq!(*with_login(url, None), *url);
        };
        check(
            "redis://127.0.0.1:6379",
            format!("redis://kumi-app:{password}@127.0.0.1:6379"),
        );
        check(
            "redis+unix:///a b/s",
            format!("redis+unix:///a%20b/s?user=kumi-app&pass={password}"),
        );
    }

    #[test]
    fn programs_elsewhere_get_the_address_that_is_advertised_and_those_here_any() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        let key = kumi_unison::ClusterKey::from_secret(&[7; 32]).expect("long enough");
        let trust = Trust::from_key(&key).expect("derived");
        let mut record = NodeRecord::new("a");
        let mut check = |change: &dyn Fn(&mut NodeRecord), begins: Option<&str>, ends: &str| {
            change(&mut record);
            let url = app_url(&record, &state, &trust);
            assert_eq!(url.is_some(), begins.is_some(), "{url:?}");
            let url = url.unwrap_or_default();
            assert!(url.starts_with(begins.unwrap_or_default()), "{url}");
            assert!(url.ends_with(ends), "{url}");
        };
        check(&|_| {}, None, "");
        let local = "redis://127.0.0.1:6379".to_owned();
        let set = |record: &mut NodeRecord| record.local_store = Some(local.clone());
        check(&set, Some("redis://kumi-app:"), "@127.0.0.1:6379");
        let set = |record: &mut NodeRecord| record.advertised_store = Some("10.0.0.1:6379".into());
        check(&set, Some("rediss://kumi-app:"), "/tls/cluster-ca.pem");
        // Another node's is used instead of its own.
        let set = |record: &mut NodeRecord| record.used_store = Some("127.0.0.1:7000".into());
        check(&set, Some("redis://kumi-app:"), "@127.0.0.1:7000");
        let outside = "redis://:***@10.0.0.9:6379";
        let set = |record: &mut NodeRecord| record.used_store = Some(outside.into());
        check(&set, None, "");
        assert_eq!(app_url_at("10.0.0.1:6379", &trust, None), None);
    }

    #[test]
    fn paths_keep_their_slashes_and_escape_the_rest() {
        assert_eq!(in_query(Path::new("/a b/ü&c.pem")), "/a%20b/%C3%BC%26c.pem");
    }
}
