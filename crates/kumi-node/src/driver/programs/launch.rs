//! `sh` with a command, as a process group of its own, and the end of that group.

use super::shim::Shim;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::process::{Child, Command};

/// Starts programs. Cheap to clone; one is enough for a process.
#[derive(Clone, Default)]
pub struct Launcher(Option<Arc<Helpers>>);

/// What ends programs when this process is killed.
struct Helpers {
    shim: Shim,
    /// The input of the process that runs [`guard`](super::guard). The signal that [`exec`](super::exec) asks for reaches a
    /// child, but not what the child started.
    guard: Mutex<ChildStdin>,
}

impl Launcher {
    /// Programs end with this process however it ends.
    ///
    /// # Errors
    /// If the guard cannot be started.
    pub fn with_shim(shim: Shim) -> io::Result<Self> {
        let mut guard = std::process::Command::new(&shim.program);
        if let Some(arg0) = &shim.arg0 {
            guard.arg0(arg0);
        }
        let mut child = guard
            .arg(&shim.guard)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take();
        let input = input.ok_or_else(|| io::Error::other("a child without an input"))?;
        // It ends when its input does, and is never waited for.
        Ok(Self(Some(Arc::new(Helpers {
            shim,
            guard: Mutex::new(input),
        }))))
    }

    /// Programs outlive this process if it is killed.
    #[must_use]
    pub fn plain() -> Self {
        Self::default()
    }

    /// `sh` with a command, whose input and output are ours. It is a process group of its own: it does not see a ctrl-c of
    /// our terminal, so that it can end its work while we drain, and what it starts can be ended with it.
    pub(super) fn shell(&self, command: &str) -> Command {
        let mut shell = match &self.0 {
            Some(helpers) => {
                let shim = &helpers.shim;
                let mut shell = Command::new(&shim.program);
                if let Some(arg0) = &shim.arg0 {
                    shell.arg0(arg0);
                }
                shell
                    .arg(&shim.exec)
                    .arg(std::process::id().to_string())
                    .arg("sh");
                shell
            }
            None => Command::new("sh"),
        };
        shell
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        shell
    }

    /// Kills the child's group with this process, until the reply is dropped.
    pub(super) fn watch(&self, child: &Child) -> Watched {
        let watched = Watched {
            launcher: self.clone(),
            group: child.id(),
        };
        watched.say('+');
        watched
    }
}

/// A child's group, as long as it is to be killed with us.
pub(super) struct Watched {
    launcher: Launcher,
    group: Option<u32>,
}

impl Watched {
    /// A guard that was killed is missed only if this process is killed too.
    fn say(&self, sign: char) {
        if let (Some(helpers), Some(group)) = (&self.launcher.0, self.group) {
            let mut guard = helpers.guard.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = guard.write_all(format!("{sign}{group}\n").as_bytes());
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.say('-');
    }
}

/// The process group of a child that leads one. Dropping it kills the group, unless the child was seen to end.
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: leader.and_then(Pid::from_raw),
        }
    }

    /// Sends a signal to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // It fails only if the group has no process left.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// The child has ended: its number may soon be another's. What it left in the background is left alone.
    pub(super) fn leave(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
