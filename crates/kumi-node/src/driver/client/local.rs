//! The nodes of this machine, by the records in their state directories.

use crate::core::place;
use crate::driver::state_dir::{NodeRecord, StateDir, StateError};
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
    /// The nodes of this user whose processes run, sorted by instance. A record that cannot be read is an error only if there
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

    /// Whether a process of its number runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
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
    fn a_node_runs_while_its_process_does() {
        assert!(node(None, std::process::id()).is_running());
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = child.id();
        child.wait().expect("ended");
        assert!(!node(None, pid).is_running());
        assert!(!node(None, 0).is_running());
        assert!(!node(None, u32::MAX).is_running());
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
