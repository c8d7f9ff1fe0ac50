//! The nodes of this machine, by the records in their state directories.

use crate::core::place;
use crate::driver::state_dir::{Holder, NodeRecord, StateDir, StateError};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A node of this machine, as it recorded itself.
#[derive(Clone, Debug)]
pub struct LocalNode {
    record: NodeRecord,
    state: StateDir,
}

impl LocalNode {
    /// The nodes of this user that run, sorted by instance. A record that cannot be read is an error only if there
    /// is no other.
    ///
    /// # Errors
    /// If the state directories cannot be found or read.
    pub fn running() -> Result<Vec<Self>, StateError> {
        let mut found = Vec::new();
        let mut unreadable = None;
        for state in StateDir::all()? {
            match Self::of(state) {
                Ok(node) => found.extend(node),
                Err(error) => unreadable = Some(error),
            }
        }
        found.retain(Self::is_running);
        match unreadable {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The node that runs or ran in a state directory; none if none did.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn at(directory: &Path) -> Result<Option<Self>, StateError> {
        Self::of(StateDir::existing(directory))
    }

    fn of(state: StateDir) -> Result<Option<Self>, StateError> {
        let record = state.record()?;
        Ok(record.map(|record| Self { record, state }))
    }

    /// What it recorded.
    #[must_use]
    pub fn record(&self) -> &NodeRecord {
        &self.record
    }

    /// Its state directory.
    #[must_use]
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// Its name among the members.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// The name of its state directory.
    #[must_use]
    pub fn instance(&self) -> String {
        let name = self.state.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where its membership is reached from this machine; none of a node that did not listen.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        let recorded = self.record.membership.as_ref()?;
        Some(match recorded.parse::<SocketAddr>() {
            // A wildcard takes what is sent to loopback too.
            Ok(address) if address.ip().is_unspecified() => {
                let loopback = match address {
                    SocketAddr::V4(_) => place::LOOPBACK,
                    SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
                };
                SocketAddr::new(loopback, address.port()).to_string()
            }
            _ => recorded.clone(),
        })
    }

    /// The file with its cluster's key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        let named = self.record.key_file.as_ref().map(PathBuf::from);
        named.unwrap_or_else(|| self.state.key_file())
    }

    /// Whether the node of the record runs: it has its state directory. Where the file system has no locks, whether a process
    /// of its number exists.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match self.state.holder() {
            Holder::Nobody => false,
            // One that has just started has not replaced the record of the one before.
            Holder::Process(pid) => pid == self.record.pid,
            Holder::Unknown => self.has_process(),
        }
    }

    /// Whether a process of its number exists, which is the node's if that was running a moment ago: a node ends before its
    /// process does.
    #[must_use]
    pub fn has_process(&self) -> bool {
        let pid = i32::try_from(self.record.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(membership: Option<&str>, pid: u32) -> LocalNode {
        let mut record = NodeRecord::new("a");
        record.membership = membership.map(str::to_owned);
        record.pid = pid;
        let state = StateDir::existing(Path::new("/var/lib/kumi/6379"));
        LocalNode { record, state }
    }

    #[test]
    fn a_wildcard_is_reached_by_loopback() {
        let address = |text| node(Some(text), 1).address();
        let cases = [
            ("127.0.0.1:7400", "127.0.0.1:7400"),
            ("10.0.0.1:7401", "10.0.0.1:7401"),
            ("0.0.0.0:7400", "127.0.0.1:7400"),
            ("[::]:7400", "[::1]:7400"),
        ];
        for (recorded, expected) in cases {
            assert_eq!(address(recorded).as_deref(), Some(expected));
        }
        assert_eq!(node(None, 1).address(), None);
    }

    #[test]
    fn the_key_is_the_recorded_one_or_that_of_the_state_directory() {
        let mut local = node(None, 1);
        assert_eq!(
            local.key_file(),
            Path::new("/var/lib/kumi/6379/cluster.key")
        );
        local.record.key_file = Some("/etc/kumi.key".into());
        assert_eq!(local.key_file(), Path::new("/etc/kumi.key"));
        assert_eq!(local.instance(), "6379");
    }

    #[test]
    fn a_node_runs_while_it_has_its_directory_whatever_has_its_number() {
        let root = tempfile::tempdir().expect("a directory");
        let state = StateDir::at(root.path()).expect("made");
        state.write_record(&NodeRecord::new("a")).expect("written");
        let local = || {
            LocalNode::at(root.path())
                .expect("readable")
                .expect("there")
        };
        // This process has the number, and is no node.
        assert!(!local().is_running() && local().has_process());
        let lock = state.lock().expect("free");
        assert!(local().is_running());
        // The record is of the node before.
        let mut former = NodeRecord::new("a");
        former.pid = 1;
        state.write_record(&former).expect("written");
        assert!(!local().is_running());
        drop(lock);
        assert!(!local().is_running());
    }

    #[test]
    fn a_process_exists_until_it_was_waited_for() {
        assert!(node(None, std::process::id()).has_process());
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = child.id();
        child.wait().expect("ended");
        assert!(!node(None, pid).has_process());
        assert!(!node(None, 0).has_process());
        assert!(!node(None, u32::MAX).has_process());
    }

    #[test]
    fn a_directory_is_looked_at_and_not_made() {
        let root = tempfile::tempdir().expect("a directory");
        let absent = root.path().join("none");
        assert!(LocalNode::at(&absent).expect("readable").is_none());
        assert!(!absent.exists());
        let made = StateDir::at(&root.path().join("6379")).expect("made");
        made.write_record(&NodeRecord::new("a")).expect("written");
        let found = LocalNode::at(made.path()).expect("readable");
        assert_eq!(found.expect("recorded").name(), "a");
    }
}
