//! Where nodes keep their files and find their configuration, and which node of this machine a command means.

use crate::command_line::exit::Failure;
use anyhow::Context;
use kumi_node::driver::client::local::LocalNode;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory of an instance: `$XDG_STATE_HOME/kumi/<instance>`, with `~/.local/state` if the variable is not set, as the
/// XDG Base Directory Specification says. `otherwise` names options that do without it.
pub(crate) fn instance_directory(instance: &str, otherwise: &str) -> Result<PathBuf, Failure> {
    let state = base_directory("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
        Failure::usage(format!(
            "there is no place for the node's files: set HOME or XDG_STATE_HOME, or give {otherwise}"
        ))
    })?;
    Ok(state.join("kumi").join(instance))
}

/// The directory of the user's configuration: `$XDG_CONFIG_HOME/kumi`, or `~/.config/kumi`.
pub(crate) fn config_directory() -> Option<PathBuf> {
    Some(base_directory("XDG_CONFIG_HOME", ".config")?.join("kumi"))
}

/// The directory that a variable names, or else one below the user's own; none without HOME.
fn base_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    absolute_in(variable).or_else(|| Some(absolute_in("HOME")?.join(below_home)))
}

/// The path in a variable. A relative one is to be ignored, says the specification.
fn absolute_in(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}

/// Makes the directory, for this user alone, if it does not exist.
pub(crate) fn make(directory: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory);
    made.with_context(|| format!("the directory {} cannot be made", directory.display()))
        .map_err(Failure::other)
}

/// The state directory of a node that is about to start.
#[derive(Debug)]
pub(crate) struct StateHome {
    path: PathBuf,
    is_temporary: bool,
}

impl StateHome {
    /// A directory that stays.
    pub(crate) fn kept(path: PathBuf) -> Self {
        Self {
            path,
            is_temporary: false,
        }
    }

    /// A new directory that is removed with this value, in the memory of the machine if the session has a place there.
    pub(crate) fn temporary() -> Result<Self, Failure> {
        let session = absolute_in("XDG_RUNTIME_DIR").filter(|path| path.is_dir());
        let parent = session.unwrap_or_else(std::env::temp_dir);
        let mut number = 0_u32;
        loop {
            let path = parent.join(format!("kumi-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    return Ok(Self {
                        path,
                        is_temporary: true,
                    });
                }
                // One that a killed process of this number has left.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 100 => {
                    number += 1;
                }
                Err(error) => {
                    let text = format!("the directory {} cannot be made", path.display());
                    return Err(Failure::other(anyhow::Error::new(error).context(text)));
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is removed with this value.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// Removes a directory that does not stay. Called by the drop, and before an exit that drops nothing.
    pub(crate) fn remove(&self) {
        if self.is_temporary {
            // What is left is in a place for such things.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl Drop for StateHome {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The node whose state directory is named, or else the one that runs on this machine as this user.
pub(crate) fn local_node(named: Option<&Path>) -> Result<LocalNode, Failure> {
    if let Some(directory) = named {
        let node = LocalNode::at(directory).map_err(Failure::other)?;
        return node.ok_or_else(|| {
            Failure::usage(format!(
                "{} is not the state directory of a node that was started",
                directory.display()
            ))
        });
    }
    let mut running = LocalNode::running().map_err(Failure::other)?;
    match running.len() {
        0 => Err(Failure::usage(
            "no node runs on this machine: 'kumi up' starts one; name one that has a directory of its own with --state-dir DIR",
        )),
        1 => Ok(running.remove(0)),
        _ => {
            let shown = running
                .iter()
                .map(|node| format!("--state-dir {}", node.state().path().display()));
            let shown: Vec<String> = shown.collect();
            Err(Failure::usage(format!(
                "several nodes run on this machine: choose one with {}",
                shown.join(" or ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_home_is_gone_with_its_node() {
        let home = StateHome::temporary().unwrap();
        let other = StateHome::temporary().unwrap();
        assert_ne!(home.path(), other.path());
        fs::write(home.path().join("cluster.key"), "secret").unwrap();
        let path = home.path().to_owned();
        drop(home);
        assert!(!path.exists());
        let kept = other.path().join("kept");
        make(&kept).unwrap();
        drop(StateHome::kept(kept.clone()));
        assert!(kept.exists());
    }

    #[test]
    fn a_directory_without_a_record_is_no_node() {
        let directory = tempfile::tempdir().unwrap();
        let failure = local_node(Some(directory.path())).unwrap_err();
        assert!(failure.to_string().contains("state directory"), "{failure}");
    }
}
