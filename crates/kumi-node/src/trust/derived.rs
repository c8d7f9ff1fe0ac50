//! [`Trust`]: everything that one or two keys give.

use std::fmt;
use std::sync::Arc;

use kumi_unison::ClusterKey;

use super::acl::{APP_RULES, AclUser, NODE_RULES};
use super::authority::Authority;
use super::secret::{Secret, hex};
use super::verify;
use super::{StoreId, TrustError};

const NODE_LABEL: &[u8] = b"kumi node/1 acl kumi-node";
const APP_LABEL: &[u8] = b"kumi node/1 acl kumi-app";
const OPERATOR_LABEL: &[u8] = b"kumi node/1 operator";
const METRICS_LABEL: &[u8] = b"kumi node/1 metrics token";
const ID_LABEL: &[u8] = b"kumi node/1 cluster id";

/// Names a cluster where its work meets that of others, such as in the owners of tasks: 16 hexadecimal digits. It is
/// derived from the key and says nothing about it. Another key gives another id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(String);

impl ClusterId {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the cluster's key gives, or its two keys while one replaces the other.
///
/// ```
/// use kumi_node::trust::Trust;
/// use kumi_unison::ClusterKey;
/// let trust = Trust::from_key(&ClusterKey::from_secret(&[7; 32])?)?;
/// assert_eq!(trust.node_user().name(), "kumi-node");
/// assert_eq!(trust.cluster_id().as_str().len(), 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trust {
    first: Derived,
    second: Option<Derived>,
}

/// What one key gives.
#[derive(Clone, Debug)]
struct Derived {
    node_password: Secret,
    app_password: Secret,
    operator_key: Secret,
    metrics_token: Secret,
    cluster_id: ClusterId,
    authority: Arc<Authority>,
}

impl Trust {
    /// Derives from a key, and from its second key if it has one.
    pub fn from_key(key: &ClusterKey) -> Result<Trust, TrustError> {
        let second = key
            .second()
            .map(|key| Derived::from_key(&key))
            .transpose()?;
        Ok(Trust {
            first: Derived::from_key(key)?,
            second,
        })
    }

    /// The store's user for nodes: what messaging, jobs and status need.
    pub fn node_user(&self) -> AclUser {
        let passwords = self.each(|derived| &derived.node_password);
        AclUser::new("kumi-node", passwords, NODE_RULES)
    }

    /// The store's user for programs of the team: everything but `@admin` and `@dangerous`.
    pub fn app_user(&self) -> AclUser {
        let passwords = self.each(|derived| &derived.app_password);
        AclUser::new("kumi-app", passwords, APP_RULES)
    }

    /// The key by which a person asks nodes to act. Whoever holds the cluster's key can derive it.
    pub fn operator_key(&self) -> &Secret {
        &self.first.operator_key
    }

    /// The key by which holders of the operator's key connect to nodes, as guests of the membership port.
    pub(crate) fn guest_key(&self) -> Result<ClusterKey, TrustError> {
        let first = self.first.operator_key.guest_key()?;
        match &self.second {
            Some(second) => Ok(first.accepting(&second.operator_key.guest_key()?)),
            None => Ok(first),
        }
    }

    /// Whether this is the operator's key, of either key.
    pub fn is_operator_key(&self, presented: &[u8]) -> bool {
        self.accepts(presented, |derived| &derived.operator_key)
    }

    /// The bearer token that opens `/metrics` on addresses other than loopback.
    pub fn metrics_token(&self) -> &Secret {
        &self.first.metrics_token
    }

    /// Whether this is the token of `/metrics`, of either key.
    pub fn is_metrics_token(&self, presented: &[u8]) -> bool {
        self.accepts(presented, |derived| &derived.metrics_token)
    }

    /// The id that this node's work carries.
    pub fn cluster_id(&self) -> &ClusterId {
        &self.first.cluster_id
    }

    /// The ids of this cluster's work: also that of the second key.
    pub fn cluster_ids(&self) -> Vec<ClusterId> {
        self.each(|derived| &derived.cluster_id)
    }

    /// Signs this node's certificates.
    pub fn authority(&self) -> &Authority {
        &self.first.authority
    }

    /// The certificates of all authorities that are believed, in PEM, the first key's first. They differ between calls
    /// and nodes in their signature alone.
    pub fn authorities_pem(&self) -> String {
        let authorities = self.each(|derived| &derived.authority);
        authorities
            .iter()
            .map(|authority| authority.pem())
            .collect()
    }

    /// How a client meets the store with this id: the server has to show a certificate for the id that an authority of
    /// either key signed, whatever address or name was dialled. The client shows none.
    pub fn store_client_config(
        &self,
        store: &StoreId,
    ) -> Result<Arc<rustls::ClientConfig>, TrustError> {
        let authorities = self.each(|derived| &derived.authority);
        let certificates = authorities.iter().map(|authority| authority.der().clone());
        verify::client_config(certificates, store)
    }

    fn accepts(&self, presented: &[u8], field: impl Fn(&Derived) -> &Secret) -> bool {
        let secrets = self.each(field);
        // All are compared, so that the time does not say which it was.
        secrets
            .iter()
            .fold(false, |found, secret| found | secret.is(presented))
    }

    fn each<T: Clone>(&self, field: impl Fn(&Derived) -> &T) -> Vec<T> {
        let all = [Some(&self.first), self.second.as_ref()];
        all.into_iter()
            .flatten()
            .map(|derived| field(derived).clone())
            .collect()
    }
}

impl Derived {
    fn from_key(key: &ClusterKey) -> Result<Derived, TrustError> {
        let secret = |label| Ok::<_, TrustError>(Secret::of_bytes(&key.derive(label)?));
        let cluster_id = ClusterId(hex(&key.derive::<8>(ID_LABEL)?));
        Ok(Derived {
            node_password: secret(NODE_LABEL)?,
            app_password: secret(APP_LABEL)?,
            operator_key: secret(OPERATOR_LABEL)?,
            metrics_token: secret(METRICS_LABEL)?,
            authority: Arc::new(Authority::from_key(key, &cluster_id)?),
            cluster_id,
        })
    }
}
