//! A child and everything it started, ended together.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

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

    /// The child has ended: its number may soon be another's. What it left in the background is left alone.
    pub(super) fn leave(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It fails only if nobody is left in the group.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
