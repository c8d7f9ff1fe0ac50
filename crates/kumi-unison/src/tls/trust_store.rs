//! The trust store: the fingerprint that each server had when it was first connected to (trust on first use).
//!
//! The file has a line per peer, `host:port fingerprint`, and is readable and writable by its owner alone. It is read again
//! before each change and replaced atomically. If two programs change it at the same time, the later write wins, and the
//! other program's peer is recorded again at its next connection.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Fingerprint, TlsError};

/// How many peers a store holds.
const MAX_PEERS: usize = 65_536;

/// The fingerprints of peers at their first connection. Clones share their contents.
///
/// ```
/// use kumi_unison::TrustStore;
/// let store = TrustStore::in_memory();
/// assert_eq!(store.known("example.com:443"), None);
/// ```
#[derive(Clone, Debug)]
pub struct TrustStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `None` keeps nothing beyond this process.
    path: Option<PathBuf>,
    peers: Mutex<BTreeMap<String, Fingerprint>>,
}

impl TrustStore {
    /// A store in memory, until the last clone is dropped.
    pub fn in_memory() -> TrustStore {
        TrustStore::with(None, BTreeMap::new())
    }

    /// A store in a file, which is created with mode 600 when the first peer is recorded.
    ///
    /// Fails when other users may write the file, or when a line cannot be parsed.
    pub fn file(path: impl Into<PathBuf>) -> Result<TrustStore, TlsError> {
        let path = path.into();
        let peers = read(&path)?;
        Ok(TrustStore::with(Some(path), peers))
    }

    fn with(path: Option<PathBuf>, peers: BTreeMap<String, Fingerprint>) -> TrustStore {
        TrustStore {
            inner: Arc::new(Inner {
                path,
                peers: Mutex::new(peers),
            }),
        }
    }

    /// The recorded fingerprint of this peer, written `host:port`.
    pub fn known(&self, peer: &str) -> Option<Fingerprint> {
        self.peers().get(peer).copied()
    }

    /// Records a peer's fingerprint, unless another one is recorded. Writes the file, so it blocks briefly.
    pub fn remember(&self, peer: &str, presented: Fingerprint) -> Result<(), TlsError> {
        let mut peers = self.peers();
        if let Some(path) = &self.inner.path {
            peers.extend(read(path)?);
        }
        match peers.get(peer) {
            Some(&known) if known == presented => return Ok(()),
            Some(&known) => {
                return Err(TlsError::Changed {
                    peer: peer.to_owned(),
                    presented,
                    known,
                });
            }
            None if peers.len() >= MAX_PEERS => {
                return Err(TlsError::StoreFull { limit: MAX_PEERS });
            }
            None => {}
        }
        peers.insert(peer.to_owned(), presented);
        if let Some(path) = &self.inner.path
            && let Err(source) = write(path, &peers)
        {
            peers.remove(peer);
            return Err(TlsError::StoreIo {
                path: path.clone(),
                source,
            });
        }
        Ok(())
    }

    /// The map is whole after every statement, so a panic elsewhere leaves it usable.
    fn peers(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Fingerprint>> {
        self.inner
            .peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Fingerprint>, TlsError> {
    let failed = |source| TlsError::StoreIo {
        path: path.to_owned(),
        source,
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed(error)),
    };
    let mode = mode_of(&fs::metadata(path).map_err(failed)?);
    if mode & 0o022 != 0 {
        return Err(TlsError::StorePermissions {
            path: path.to_owned(),
            mode,
        });
    }
    let mut peers = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let entry = line
            .split_once(' ')
            .and_then(|(peer, text)| Some((peer.to_owned(), text.trim().parse().ok()?)));
        let Some((peer, fingerprint)) = entry else {
            return Err(TlsError::StoreSyntax {
                path: path.to_owned(),
                line: index + 1,
            });
        };
        peers.insert(peer, fingerprint);
        if peers.len() > MAX_PEERS {
            return Err(TlsError::StoreFull { limit: MAX_PEERS });
        }
    }
    Ok(peers)
}

/// Writes beside the file and renames, so that a reader sees the old file or the new one.
fn write(path: &Path, peers: &BTreeMap<String, Fingerprint>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // Others of this process may be writing too.
    name.push(format!(
        ".{}-{:016x}.new",
        std::process::id(),
        getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?
    ));
    let beside = path.with_file_name(name);
    // A leftover of a crash would keep its own mode; the new file has to be made by this call.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    owner_only(&mut options);
    let mut text = String::new();
    for (peer, fingerprint) in peers {
        text.push_str(&format!("{peer} {fingerprint}\n"));
    }
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(unix)]
fn owner_only(options: &mut fs::OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(unix)]
fn mode_of(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
}

/// Elsewhere the directory's own access list has to do.
#[cfg(not(unix))]
fn owner_only(_: &mut fs::OpenOptions) {}

#[cfg(not(unix))]
fn mode_of(_: &fs::Metadata) -> u32 {
    0o600
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 32] = [1; 32];
    const OTHER: [u8; 32] = [2; 32];

    #[test]
    fn a_changed_certificate_is_refused_and_the_first_stays() {
        let store = TrustStore::in_memory();
        store.remember("host:1", ONE.into()).unwrap();
        store.remember("host:1", ONE.into()).unwrap();
        let error = store.remember("host:1", OTHER.into()).unwrap_err();
        assert!(matches!(error, TlsError::Changed { .. }), "{error:?}");
        assert_eq!(store.known("host:1"), Some(ONE.into()));
    }

    #[test]
    fn the_file_is_for_its_owner_and_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        let store = TrustStore::file(&path).unwrap();
        assert!(!path.exists(), "nothing was met yet");
        store.remember("[::1]:7", ONE.into()).unwrap();
        assert_eq!(mode_of(&fs::metadata(&path).unwrap()), 0o600);

        let again = TrustStore::file(&path).unwrap();
        assert_eq!(again.known("[::1]:7"), Some(ONE.into()));
        again.remember("b:2", OTHER.into()).unwrap();
        // The first store did not know `b:2` when it was opened, and must not write it away.
        store.remember("c:3", OTHER.into()).unwrap();
        assert_eq!(
            TrustStore::file(&path).unwrap().known("b:2"),
            Some(OTHER.into())
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
        let error = TrustStore::file(&path).unwrap_err();
        assert!(
            matches!(error, TlsError::StorePermissions { mode: 0o660, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        fs::write(&path, format!("a:1 {}\nb:2 zz\n", Fingerprint::from(ONE))).unwrap();
        let error = TrustStore::file(&path).unwrap_err();
        assert!(
            matches!(error, TlsError::StoreSyntax { line: 2, .. }),
            "{error:?}"
        );
    }
}
