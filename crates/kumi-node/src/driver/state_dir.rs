//! The node's state directory: where its data, its key and what it recorded about itself are.
//!
//! ```text
//! store/               the data of its own store
//! tls/cluster-ca.pem   the authorities that it believes, for programs that connect to the store
//! cluster.key          the cluster's key, unless another file was named
//! node.json            name, process and ports of the node that runs or ran here
//! node.lock            locked while a node runs here, with the number of its process
//! reload.json          what the last reload came to
//! store-pin            which store the cluster uses
//! store-id             the id of its own store, if that keeps no data on disk
//! store.sock           the node's own way to a store that has no listener without TLS on this machine
//! ```
//! Files are replaced as a whole: a crash leaves the old one or the new one.

use crate::core::store_pin::{Pin, PinTextError};
use kumi_common::Chain;
use kumi_jobs::ClusterId;
use kumi_server::DataId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of `node.json`. A reader does not take a later one.
pub const RECORD_FORMAT: u32 = 1;

/// The first line of the file with the id of a store, with the version of the file.
const STORE_ID_HEADING: &str = "kumi store id 1\n";

/// More than any file that is read here holds.
const READ_LIMIT: u64 = 64 << 10;

/// Instances of a user that are looked at.
const MAX_INSTANCES: usize = 1_000;

/// How often the lock is tried, and the pause between: commands that look whether a node runs have it for a moment.
const LOCK_ATTEMPTS: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The length of the ids that earlier versions wrote into `store-id`, without a heading.
const FORMER_ID_DIGITS: usize = 16;

/// Why the state directory cannot be used. The operator's to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// There is no place for the directory.
    #[error(
        "there is no place for the node's files: set HOME or XDG_STATE_HOME, or name a directory with --state-dir DIRECTORY"
    )]
    NoHome,
    /// A file or directory cannot be made, read or written.
    #[error("{} cannot be used: check that it belongs to this user and that the disk is not full", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another node runs in the directory.
    #[error(
        "{} belongs to {node}, which is running: stop that node, or give this one another directory with --state-dir DIRECTORY (a node without a store and a directory has one by its --name NAME)",
        .path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other node, as far as its record says.
        node: String,
    },
    /// The file with the pinned store is damaged or of a later version.
    #[error("{} does not say which store the cluster uses: mend it, or remove it and decide with kumi store use ID", .path.display())]
    Pin {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: PinTextError,
    },
    /// The file with the id of the node's own store is damaged or of a later version.
    #[error("{} does not have the id of the node's store: mend it, or remove it and decide with kumi store use ID", .path.display())]
    StoreId {
        /// The file.
        path: PathBuf,
    },
    /// The record of the node is damaged or of a later version.
    #[error("{} is no record of a node that this version of kumi reads ({reason}): remove it", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a node records about itself, for commands on the same machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeRecord {
    /// [`RECORD_FORMAT`].
    pub version: u32,
    /// The node's name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Where membership listens.
    pub membership: Option<String>,
    /// Where HTTP listens.
    #[serde(default)]
    pub http: Vec<String>,
    /// Where its own store listens.
    #[serde(default)]
    pub store: Vec<String>,
    /// Where other machines reach its own store; none if they do not.
    #[serde(default)]
    pub advertised_store: Option<String>,
    /// The URL by which this machine reaches its own store, without a user.
    #[serde(default)]
    pub local_store: Option<String>,
    /// The store that it uses, if that is not its own: `host:port` of another node's, the URL of one outside of the cluster.
    #[serde(default)]
    pub used_store: Option<String>,
    /// The file with the cluster's key, if it is not the one in the state directory.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whether SIGHUP makes its process read the configuration again. The signal ends a process that does not listen to it.
    #[serde(default)]
    pub reloads_on_hangup: bool,
}

impl NodeRecord {
    /// The record of a node of this process that listens nowhere yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            version: RECORD_FORMAT,
            name: name.to_owned(),
            pid: std::process::id(),
            membership: None,
            http: Vec::new(),
            store: Vec::new(),
            advertised_store: None,
            local_store: None,
            used_store: None,
            key_file: None,
            reloads_on_hangup: false,
        }
    }

    /// Whether the store that it uses is outside of the cluster.
    #[must_use]
    pub fn uses_outside_store(&self) -> bool {
        let used = self.used_store.as_deref();
        used.is_some_and(|address| address.contains("://"))
    }
}

/// What a reload came to, for the command that asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReloadRecord {
    /// [`RECORD_FORMAT`].
    pub version: u32,
    /// Which reload of this state directory it was.
    pub count: u64,
    /// Why nothing was changed.
    #[serde(default)]
    pub failure: Option<String>,
    /// What was applied.
    #[serde(default)]
    pub applied: Vec<String>,
    /// What could not be applied, each with the reason.
    #[serde(default)]
    pub refused: Vec<String>,
    /// What needs a restart.
    #[serde(default)]
    pub restart: Vec<String>,
}

/// For people, a line each.
impl fmt::Display for ReloadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = [
            ("applied", &self.applied),
            ("refused", &self.refused),
            ("needs a restart", &self.restart),
        ];
        for (what, lines) in groups {
            for line in lines {
                writeln!(f, "{what}: {line}")?;
            }
        }
        match groups.iter().all(|(_, lines)| lines.is_empty()) {
            true => writeln!(f, "nothing has changed"),
            false => Ok(()),
        }
    }
}

/// A state directory that exists, for this user alone.
#[derive(Clone, Debug)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Makes a directory, if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn at(path: &Path) -> Result<Self, StateError> {
        make(path)?;
        let path = fs::canonicalize(path).map_err(|source| file_error(path, source))?;
        Ok(Self(path))
    }

    /// A directory that is only read: it is not made.
    pub(crate) fn existing(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The directory of an instance, `$XDG_STATE_HOME/kumi/<instance>`, with `~/.local/state` if the variable is not set.
    ///
    /// # Errors
    /// If there is no place for it, or it cannot be made.
    pub fn of_instance(instance: &str) -> Result<Self, StateError> {
        Self::at(&instances()?.join(instance))
    }

    /// The directories of all instances of this user, sorted by their names. None is made.
    ///
    /// # Errors
    /// If there is no place for them, or they cannot be listed.
    pub fn all() -> Result<Vec<Self>, StateError> {
        let root = instances()?;
        let entries = match fs::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(file_error(&root, error)),
        };
        let entries = entries.take(MAX_INSTANCES).flatten();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        paths.sort();
        Ok(paths.into_iter().map(Self).collect())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes the directory for a node, until the lock is dropped or the process ends.
    ///
    /// # Errors
    /// [`StateError::InUse`] if another node has it, or the file of the lock cannot be made.
    pub(crate) fn lock(&self) -> Result<StateLock, StateError> {
        let path = self.0.join("node.lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path);
        let file = file.map_err(|source| file_error(&path, source))?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StateError::InUse {
                    path: self.0.clone(),
                    node: self.running_node(),
                });
            }
            Err(TryLockError::Error(error)) => {
                // Not every file system has locks.
                tracing::warn!(path = %path.display(), error = %Chain(&error), "the state directory is not locked");
            }
        }
        let named = file.set_len(0);
        let named =
            named.and_then(|()| (&file).write_all(std::process::id().to_string().as_bytes()));
        named.map_err(|source| file_error(&path, source))?;
        Ok(StateLock { _file: file })
    }

    /// Who has the directory now. Takes the lock for a moment if nobody has it.
    pub(crate) fn holder(&self) -> Holder {
        let path = self.0.join("node.lock");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Holder::Nobody,
            Err(_) => return Holder::Unknown,
        };
        match file.try_lock_shared() {
            Ok(()) => Holder::Nobody,
            Err(TryLockError::WouldBlock) => {
                let text = read(&path).ok().flatten();
                let pid = text.and_then(|text| text.parse().ok());
                pid.map_or(Holder::Unknown, Holder::Process)
            }
            Err(TryLockError::Error(_)) => Holder::Unknown,
        }
    }

    /// The node that has the lock, for people.
    fn running_node(&self) -> String {
        match self.record() {
            Ok(Some(record)) => format!("node {} (process {})", record.name, record.pid),
            // It has not come that far.
            _ => "another node".into(),
        }
    }

    /// The directory of the store's data, which is made.
    pub(crate) fn store(&self) -> Result<PathBuf, StateError> {
        let path = self.0.join("store");
        make(&path)?;
        Ok(path)
    }

    /// The file with the cluster's key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.0.join("cluster.key")
    }

    /// The file with the authorities that clients of the store believe.
    #[must_use]
    pub fn authorities_file(&self) -> PathBuf {
        // Not ca.pem: that is the authority of `kumi up --tls`.
        self.0.join("tls").join("cluster-ca.pem")
    }

    /// Writes the authorities that clients of the store believe, and returns the file.
    pub(crate) fn write_authorities(&self, pem: &str) -> Result<PathBuf, StateError> {
        make(&self.0.join("tls"))?;
        let path = self.authorities_file();
        replace(&path, pem.as_bytes())?;
        Ok(path)
    }

    /// Writes the record of the node.
    pub(crate) fn write_record(&self, record: &NodeRecord) -> Result<(), StateError> {
        let path = self.0.join("node.json");
        let text = serde_json::to_vec_pretty(record);
        let text = text.map_err(|error| file_error(&path, io::Error::other(error)))?;
        replace(&path, &text)
    }

    /// Reads the record of the node that runs or ran here; none if there was none.
    ///
    /// # Errors
    /// If it cannot be read, or a later version wrote it.
    pub fn record(&self) -> Result<Option<NodeRecord>, StateError> {
        self.json("node.json", |record: &NodeRecord| record.version)
    }

    /// A record in JSON, if it is of the version that is known.
    fn json<T: DeserializeOwned>(
        &self,
        name: &str,
        version: impl Fn(&T) -> u32,
    ) -> Result<Option<T>, StateError> {
        let path = self.0.join(name);
        let Some(text) = read(&path)? else {
            return Ok(None);
        };
        let wrong = |reason: String| StateError::Record {
            path: path.clone(),
            reason,
        };
        let record: T = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match version(&record) {
            RECORD_FORMAT => Ok(Some(record)),
            other => Err(wrong(format!("its version is {other}"))),
        }
    }

    /// Writes what a reload came to, with the next number.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_reload(&self, mut record: ReloadRecord) -> Result<(), StateError> {
        // A record that cannot be read is replaced.
        let before = self.reload().ok().flatten();
        record.version = RECORD_FORMAT;
        record.count = before.map_or(0, |before| before.count).wrapping_add(1);
        let path = self.0.join("reload.json");
        let text = serde_json::to_vec_pretty(&record);
        let text = text.map_err(|error| file_error(&path, io::Error::other(error)))?;
        replace(&path, &text)
    }

    /// Reads what the last reload came to; none if there was none.
    ///
    /// # Errors
    /// If it cannot be read, or a later version wrote it.
    pub fn reload(&self) -> Result<Option<ReloadRecord>, StateError> {
        self.json("reload.json", |record: &ReloadRecord| record.version)
    }

    /// Reads which store the cluster with these ids uses; none if none was seen yet. The pin of another cluster, whose node
    /// had this directory before, is left alone until this one has a pin.
    pub(crate) fn pin(&self, clusters: &[ClusterId]) -> Result<Option<Pin>, StateError> {
        let path = self.0.join("store-pin");
        let Some(text) = read(&path)? else {
            return Ok(None);
        };
        let pin = Pin::from_file(&text, clusters);
        let pin = pin.map_err(|source| StateError::Pin { path, source })?;
        match &pin {
            // The ids change with the cluster's key.
            Some(pin) if text != pin.to_file(clusters) => self.write_pin(pin, clusters)?,
            Some(_) => {}
            None => tracing::info!("the store pin in the state directory is of another cluster"),
        }
        Ok(pin)
    }

    /// Writes which store the cluster with these ids uses.
    pub(crate) fn write_pin(&self, pin: &Pin, clusters: &[ClusterId]) -> Result<(), StateError> {
        replace(&self.0.join("store-pin"), pin.to_file(clusters).as_bytes())
    }
}

/// The file with the id of a store whose data does not carry it: data that is in memory only, or is not saved yet.
///
/// ```text
/// kumi store id 1
/// 0123456789abcdef0123456789abcdef
/// ```
#[derive(Clone, Debug)]
pub(crate) struct StoreIdFile(PathBuf);

impl StoreIdFile {
    /// In the directory of the data, or in the state directory if there is no such data.
    pub(crate) fn in_directory(path: &Path) -> Self {
        Self(path.join("store-id"))
    }

    /// The id; none if there is no file, or one of an earlier version, whose ids no cluster knows.
    pub(crate) fn read(&self) -> Result<Option<DataId>, StateError> {
        let Some(text) = read(&self.0)? else {
            return Ok(None);
        };
        let digits = text.trim_end();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex && digits.len() == FORMER_ID_DIGITS {
            return Ok(None);
        }
        let id = text.strip_prefix(STORE_ID_HEADING);
        let id = id.and_then(|id| DataId::parse(id.trim_end().as_bytes()));
        let path = self.0.clone();
        id.map(Some).ok_or(StateError::StoreId { path })
    }

    /// Writes the id.
    pub(crate) fn write(&self, id: DataId) -> Result<(), StateError> {
        replace(&self.0, format!("{STORE_ID_HEADING}{id}\n").as_bytes())
    }
}

/// A state directory that no other node can use. Closing the file releases it.
#[derive(Debug)]
#[must_use = "the directory is released when this is dropped"]
pub(crate) struct StateLock {
    _file: File,
}

/// Who has a state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Nobody,
    /// A node of this process.
    Process(u32),
    /// The file system has no locks, or the file does not say it.
    Unknown,
}

fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            tried => return tried,
        }
    }
    file.try_lock()
}

/// Where the directories of this user's instances are.
fn instances() -> Result<PathBuf, StateError> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        // The XDG Base Directory Specification ignores relative paths.
        path.filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Ok(state.ok_or(StateError::NoHome)?.join("kumi"))
}

fn make(path: &Path) -> Result<(), StateError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| file_error(path, source))
}

/// The text of a file; none if there is no such file.
fn read(path: &Path) -> Result<Option<String>, StateError> {
    let unreadable = |source| file_error(path, source);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    let read = file.take(READ_LIMIT).read_to_string(&mut text);
    read.map_err(unreadable)?;
    Ok(Some(text))
}

/// Writes a file beside the old one and renames it over that.
fn replace(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written().map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> StateError {
    StateError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_written_is_read_and_only_by_its_owner() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(&root.path().join("a/b")).expect("made");
        assert_eq!(state.record().expect("readable"), None);
        let mut record = NodeRecord::new("a");
        record.http = vec!["127.0.0.1:7480".into()];
        state.write_record(&record).expect("written");
        assert_eq!(state.record().expect("readable"), Some(record));
        let by = "a~0000000000000001".parse().expect("a life");
        let id = "8c3d".parse().expect("an id");
        let pin = Pin { count: 1, by, id };
        let [old, new, other] = [1, 2, 3].map(ClusterId::from_raw);
        state.write_pin(&pin, &[old]).expect("written");
        let read = |clusters: &[ClusterId]| state.pin(clusters).expect("readable");
        assert_eq!(read(&[other]), None);
        // The key is replaced, in two steps.
        assert_eq!(read(&[old, new]), Some(pin.clone()));
        assert_eq!(read(&[new]), Some(pin));
        assert_eq!(read(&[old]), None);
        let mode = |name: &str| {
            let metadata = fs::metadata(state.path().join(name)).expect("a file");
            metadata.permissions().mode() & 0o777
        };
        assert_eq!(
            (mode("."), mode("node.json"), mode("store-pin")),
            (0o700, 0o600, 0o600)
        );
    }

    #[test]
    fn a_directory_is_of_one_node_at_a_time() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        let lock = state.lock().expect("free");
        let error = state.lock().expect_err("taken").to_string();
        assert!(error.contains("belongs to another node"), "{error}");
        let record = NodeRecord::new("b");
        state.write_record(&record).expect("written");
        let error = state.lock().expect_err("taken").to_string();
        let node = format!("node b (process {})", record.pid);
        assert!(error.contains(&node), "{error}");
        assert!(error.contains("--state-dir"), "{error}");
        drop(lock);
        drop(state.lock().expect("free again"));
    }

    #[test]
    fn the_holder_of_a_directory_is_seen_by_its_lock() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        assert_eq!(state.holder(), Holder::Nobody);
        let lock = state.lock().expect("free");
        assert_eq!(state.holder(), Holder::Process(std::process::id()));
        drop(lock);
        assert_eq!(state.holder(), Holder::Nobody);
        // Somebody looks while a node starts.
        let looking = File::open(root.path().join("node.lock")).expect("a file");
        looking.lock_shared().expect("locked");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(LOCK_PAUSE);
                drop(looking);
            });
            drop(state.lock().expect("free in a moment"));
        });
    }

    #[test]
    fn the_id_of_a_store_is_read_as_it_is_written_and_a_later_version_is_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let file = StoreIdFile::in_directory(root.path());
        assert_eq!(file.read().expect("readable"), None);
        let id = DataId::parse(b"0123456789abcdef0123456789abcdef").expect("an id");
        file.write(id).expect("written");
        assert_eq!(file.read().expect("readable"), Some(id));
        for wrong in ["", "kumi store id 1\n0123\n", "kumi store id 2\nx\n"] {
            fs::write(root.path().join("store-id"), wrong).expect("written");
            let error = file.read().expect_err(wrong).to_string();
            assert!(error.contains("store-id"), "{error}");
        }
        for former in ["0123456789abcdef", "0123456789abcdef\n"] {
            fs::write(root.path().join("store-id"), former).expect("written");
            assert_eq!(file.read().expect("readable"), None, "{former:?}");
        }
        file.write(id).expect("written over it");
        assert_eq!(file.read().expect("readable"), Some(id));
    }

    #[test]
    fn reloads_are_counted_and_shown_in_words() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        assert_eq!(state.reload().expect("readable"), None);
        let mut record = ReloadRecord::default();
        assert_eq!(record.to_string(), "nothing has changed\n");
        record.applied = vec!["work resize: changed".into()];
        record.restart = vec!["node bind: changed".into()];
        let words = "applied: work resize: changed\nneeds a restart: node bind: changed\n";
        assert_eq!(record.to_string(), words);
        for count in 1..=2 {
            state.write_reload(record.clone()).expect("written");
            let found = state.reload().expect("readable").expect("there");
            assert_eq!(
                (found.count, found.applied),
                (count, record.applied.clone())
            );
        }
    }

    #[test]
    fn what_a_later_version_wrote_is_refused_by_its_file() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        let text = r#"{"version":2,"name":"a","pid":1,"membership":null}"#;
        fs::write(state.path().join("node.json"), text).expect("written");
        let error = state.record().expect_err("later").to_string();
        assert!(
            error.contains("node.json") && error.contains("its version is 2"),
            "{error}"
        );
        fs::write(state.path().join("store-pin"), "kumi store pin 9\n").expect("written");
        let error = state.pin(&[]).expect_err("later").to_string();
        assert!(error.contains("store-pin"), "{error}");
    }
}
