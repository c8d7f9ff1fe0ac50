//! The node's own life, and whether it may take work: what workers are steered by.
//!
//! A node that the others declared dead, or whose place another took, joins again in a new life without ending. A node that
//! is kept out, or has not joined yet, takes no work.

use kumi_cluster::{OwnLife, OwnLifeWatch};
use kumi_common::NameAndLife;
use tokio::sync::watch;

/// Whether and as whom this node works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The last life in which it was a member; none before the first.
    pub(crate) life: Option<NameAndLife>,
    /// Whether it is a member now.
    pub(crate) is_member: bool,
    /// Whether the operator, or its end, wants it to take no more work.
    pub(crate) is_draining: bool,
}

impl Standing {
    /// Whether its workers claim tasks.
    pub(crate) fn takes_work(&self) -> bool {
        self.is_member && !self.is_draining
    }
}

/// Sets the standing. Clones set the same one.
#[derive(Clone, Debug)]
pub(crate) struct Lives(watch::Sender<Standing>);

impl Lives {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Standing::default()))
    }

    /// The standing, and its changes.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.0.subscribe()
    }

    /// Stops or resumes claims.
    pub(crate) fn drain(&self, is_draining: bool) {
        self.0.send_if_modified(|standing| {
            let is_other = standing.is_draining != is_draining;
            standing.is_draining = is_draining;
            is_other
        });
    }

    /// Follows membership until it ends. After that the node is no member, for ever.
    pub(crate) async fn follow(self, mut life: OwnLifeWatch) {
        let mut now = Some(life.current());
        while let Some(state) = now {
            self.0.send_if_modified(|standing| {
                let before = standing.clone();
                match &state {
                    OwnLife::Up(up) => {
                        standing.life = Some(up.clone());
                        standing.is_member = true;
                    }
                    _ => standing.is_member = false,
                }
                if before.is_member && !standing.is_member {
                    tracing::warn!("this node is no member any more; it takes no new tasks");
                }
                *standing != before
            });
            now = life.changed().await;
        }
        std::future::pending::<()>().await;
    }
}
