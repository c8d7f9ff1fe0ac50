//! The certificate that a node shows to clients of its store and of HTTP, renewed while the node runs.
//!
//! With the cluster's key the node signs its own, for its addresses and for the id of its store. With certificates of the
//! operator's own it shows the one in their file, which is read again at each renewal.

use super::keys::Keys;
use crate::http::TlsSource;
use crate::trust::{LeafNames, StoreId, TrustError};
use kumi_server::{ServerHandle, TlsIdentity, TlsIdentityError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::MissedTickBehavior;

/// How often it is looked whether a new certificate is due. The clock may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Files of the operator are read again this often.
const READ_AGAIN: Duration = Duration::from_secs(3_600);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It cannot be signed, or its names cannot be in one.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// What was made or read cannot be shown.
    #[error(transparent)]
    Identity(#[from] TlsIdentityError),
    /// TLS cannot be set up with it.
    #[error("the node's certificate and its key cannot be used together")]
    Tls(#[from] rustls::Error),
    /// A file of the operator cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A certificate in the forms in which it is used, and when the next one is due.
struct Shown {
    identity: TlsIdentity,
    http: Arc<rustls::ServerConfig>,
    made: SystemTime,
    renew_at: SystemTime,
}

/// The node's certificate. Clones are the same one.
#[derive(Clone)]
pub(crate) struct NodeCertificate {
    keys: Keys,
    names: LeafNames,
    shown: Arc<Mutex<Shown>>,
}

impl NodeCertificate {
    /// Makes or reads it: for a node of this name, which others reach by these hosts.
    pub(crate) fn new(
        keys: &Keys,
        node: &str,
        hosts: Vec<String>,
    ) -> Result<Self, CertificateError> {
        let names = LeafNames::new(node, hosts);
        let shown = Arc::new(Mutex::new(make(keys, &names)?));
        Ok(Self {
            keys: keys.clone(),
            names,
            shown,
        })
    }

    /// The same for a node that has the store with this id.
    pub(crate) fn with_store(mut self, store: StoreId) -> Result<Self, CertificateError> {
        self.names = self.names.with_store(store);
        self.renew()?;
        Ok(self)
    }

    /// For the store's listeners.
    pub(crate) fn identity(&self) -> TlsIdentity {
        self.shown().identity.clone()
    }

    /// For the listeners of HTTP.
    pub(crate) fn http(&self) -> TlsSource {
        let certificate = self.clone();
        Arc::new(move || certificate.shown().http.clone())
    }

    /// Renews it when that is due, for as long as the future is polled. What fails is tried again: the old certificate is
    /// valid for days.
    pub(crate) async fn keep(self, store: Option<ServerHandle>) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_taken = true;
        loop {
            looks.tick().await;
            let hand = |identity| hand_to(store.clone(), identity);
            is_taken = self.look(SystemTime::now(), is_taken, hand).await;
        }
    }

    /// Renews the certificate if that is due, and hands it to the store unless that has taken the newest one. Returns whether
    /// it has now.
    async fn look<F, Handing>(&self, now: SystemTime, is_taken: bool, hand: F) -> bool
    where
        F: FnOnce(TlsIdentity) -> Handing,
        Handing: Future<Output = Result<(), String>>,
    {
        let is_renewed = self.is_due(now) && self.try_renew();
        if is_taken && !is_renewed {
            return true;
        }
        match hand(self.identity()).await {
            Ok(()) => {
                tracing::info!("the node's certificate was renewed");
                true
            }
            Err(error) => {
                tracing::error!(%error, "the store keeps its old certificate for now");
                false
            }
        }
    }

    fn try_renew(&self) -> bool {
        let renewed = self.renew();
        if let Err(error) = &renewed {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "the node's certificate cannot be renewed");
        }
        renewed.is_ok()
    }

    fn is_due(&self, now: SystemTime) -> bool {
        let shown = self.shown();
        // A clock that was set back makes a certificate that is not valid yet.
        now >= shown.renew_at || now < shown.made
    }

    /// Makes or reads another one, which listeners of HTTP show from now on.
    pub(crate) fn renew(&self) -> Result<(), CertificateError> {
        let made = make(&self.keys, &self.names)?;
        *self.shown() = made;
        Ok(())
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands a certificate to the store, and waits for its loop. A node without a store has nothing to hand it to.
async fn hand_to(store: Option<ServerHandle>, identity: TlsIdentity) -> Result<(), String> {
    let Some(store) = store else {
        return Ok(());
    };
    let replaced = tokio::task::spawn_blocking(move || store.replace_identity(identity)).await;
    match replaced {
        Ok(replaced) => replaced.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn make(keys: &Keys, names: &LeafNames) -> Result<Shown, CertificateError> {
    let keys = keys.now();
    let now = SystemTime::now();
    if let Some(trust) = &keys.trust {
        let leaf = trust.authority().sign(names, now)?;
        let (chain, key) = (leaf.certificate_pem(), leaf.key_pem().expose());
        return Ok(Shown {
            identity: TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes())?,
            http: leaf.server_config()?,
            made: now,
            renew_at: leaf.renew_at(),
        });
    }
    let read = |path: Option<&PathBuf>| {
        let path = path.cloned().unwrap_or_default();
        std::fs::read(&path).map_err(|source| CertificateError::File { path, source })
    };
    let files = keys.files.as_ref();
    let chain = read(files.map(|files| &files.certificate))?;
    let key = read(files.map(|files| &files.key))?;
    Ok(Shown {
        identity: TlsIdentity::from_pem(&chain, &key)?,
        http: server_config(&chain, &key)?,
        made: now,
        renew_at: now + READ_AGAIN,
    })
}

/// How HTTP shows a certificate of the operator's own.
fn server_config(chain: &[u8], key: &[u8]) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
    let unreadable =
        |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(unreadable)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;
    use crate::driver::state_dir::StateDir;
    use kumi_unison::ClusterKey;
    use std::cell::Cell;

    #[tokio::test]
    async fn a_certificate_is_handed_to_the_store_until_it_was_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(directory.path()).expect("made");
        let key = ClusterKey::from_secret(&[7; 32]).expect("long enough");
        let keys = Keys::read(&NodeConfig::default(), Some(&key), &state).expect("keys");
        let certificate = NodeCertificate::new(&keys, "a", vec!["10.0.0.1".into()]);
        let certificate = certificate.expect("a certificate");
        let handed = Cell::new(0);
        let look = async |now: SystemTime, is_taken: bool, takes: bool| {
            let hand = |_: TlsIdentity| {
                handed.set(handed.get() + 1);
                std::future::ready(takes.then_some(()).ok_or_else(|| "busy".to_owned()))
            };
            certificate.look(now, is_taken, hand).await
        };
        let now = SystemTime::now();
        assert!(look(now, true, false).await, "nothing is due");
        assert_eq!(handed.get(), 0);
        let due = now + Duration::from_secs(30 * 24 * 3_600);
        assert!(!look(due, true, false).await);
        // It is not due any more, and the store has it not.
        let now = SystemTime::now();
        assert!(!look(now, false, false).await);
        assert!(look(now, false, true).await);
        assert!(look(now, true, true).await);
        assert_eq!(handed.get(), 3);
    }
}
