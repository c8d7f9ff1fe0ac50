//! What a node proves itself with, and believes others by: the cluster's key with all that is derived from it, or the
//! certificates of an operator who has an authority of their own.

use super::state_dir::{StateDir, StateError};
use crate::config::{CertificateFiles, NodeConfig};
use crate::trust::{Trust, TrustError};
use kumi_cluster::Security;
use kumi_jobs::ClusterId;
use kumi_unison::{ClusterKey, TlsError};
use ring::digest;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Why a node has nothing to prove itself with. The operator's to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A node that joins others needs their key.
    #[error(
        "joining needs the key of the cluster: copy the key file of a node that is in it, and name it with --key-file FILE"
    )]
    Missing,
    /// The key or the certificates cannot be used.
    #[error("the key of the cluster, or the node's certificates, cannot be used")]
    Tls(#[from] TlsError),
    /// Nothing can be derived from the key.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A file with certificates cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

/// The keys of a running node, which a reload replaces. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Keys(watch::Sender<Arc<KeySet>>);

impl Keys {
    fn new(set: KeySet) -> Self {
        Self(watch::Sender::new(Arc::new(set)))
    }

    /// Reads them as [`KeySet::read`] does.
    pub(crate) fn read(
        config: &NodeConfig,
        given: Option<&ClusterKey>,
        state: &StateDir,
    ) -> Result<Self, KeyError> {
        Ok(Self::new(KeySet::read(config, given, state)?))
    }

    /// Keys of clusters with these ids, for tests that need no more of them.
    #[cfg(test)]
    pub(crate) fn of_clusters(clusters: &[ClusterId]) -> Self {
        let key = ClusterKey::from_secret(&[7; 32]).expect("long enough");
        Self::new(KeySet {
            security: Security::key(&key).expect("a key"),
            trust: None,
            clusters: clusters.to_vec(),
            files: None,
            authorities: PathBuf::new(),
            has_two: false,
        })
    }

    /// Those of now.
    pub(crate) fn now(&self) -> Arc<KeySet> {
        self.0.borrow().clone()
    }

    /// Their changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<KeySet>> {
        self.0.subscribe()
    }

    /// Uses others from now on.
    pub(crate) fn replace(&self, set: KeySet) {
        self.0.send_replace(Arc::new(set));
    }
}

/// What a node proves itself with at one time.
pub(crate) struct KeySet {
    /// For membership and its channels.
    pub(crate) security: Security,
    /// What the cluster's key gives; none with certificates of the operator's own.
    pub(crate) trust: Option<Arc<Trust>>,
    /// The clusters whose work is this node's: the first is written into owners.
    pub(crate) clusters: Vec<ClusterId>,
    /// The operator's own certificates.
    pub(crate) files: Option<CertificateFiles>,
    /// The authorities that clients of the store believe, in a file.
    pub(crate) authorities: PathBuf,
    /// Whether the key file has two keys.
    pub(crate) has_two: bool,
}

impl KeySet {
    /// Reads the key file or the certificates that the configuration names. A node that joins nobody and names none has a
    /// key in its state directory, which is made at its first start.
    pub(crate) fn read(
        config: &NodeConfig,
        given: Option<&ClusterKey>,
        state: &StateDir,
    ) -> Result<Self, KeyError> {
        if let Some(files) = &config.node.certificates {
            return Self::of_files(files);
        }
        let own = state.key_file();
        let key = match (given, &config.node.key_file) {
            (Some(key), _) => key.clone(),
            (None, Some(file)) => ClusterKey::from_file(file)?,
            (None, None) if own.exists() => ClusterKey::from_file(own)?,
            (None, None) if config.node.join.is_empty() => ClusterKey::create_file(own)?,
            (None, None) => return Err(KeyError::Missing),
        };
        Self::of_key(&key, state)
    }

    fn of_key(key: &ClusterKey, state: &StateDir) -> Result<Self, KeyError> {
        let trust = Trust::from_key(key)?;
        let ids = trust.cluster_ids();
        let ids = ids.iter().filter_map(|id| id.as_str().parse().ok());
        Ok(Self {
            security: Security::key_with_guests(key, &trust.guest_key()?)?,
            clusters: ids.collect(),
            authorities: state.write_authorities(&trust.authorities_pem())?,
            trust: Some(Arc::new(trust)),
            files: None,
            has_two: key.second().is_some(),
        })
    }

    /// Nothing is derived: the cluster is named by its authorities.
    fn of_files(files: &CertificateFiles) -> Result<Self, KeyError> {
        kumi_unison::tls::check_private_file(&files.key)?;
        let authorities = std::fs::read(&files.authority);
        let authorities = authorities.map_err(|source| KeyError::File {
            path: files.authority.clone(),
            source,
        })?;
        let hash = digest::digest(&digest::SHA256, &authorities);
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_ref()[..8]);
        Ok(Self {
            security: Security::mutual(&files.certificate, &files.key, &files.authority)?,
            trust: None,
            clusters: vec![ClusterId::from_raw(u64::from_be_bytes(first))],
            authorities: files.authority.clone(),
            files: Some(files.clone()),
            has_two: false,
        })
    }

    /// The id that this node's work carries.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.clusters
            .first()
            .copied()
            .unwrap_or(ClusterId::from_raw(0))
    }
}
