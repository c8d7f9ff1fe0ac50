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
    /// Whether its membership has ended: it does not become a member again.
    pub(crate) has_ended: bool,
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
                    OwnLife::Ended => {
                        standing.is_member = false;
                        standing.has_ended = true;
                    }
                    _ => standing.is_member = false,
                }
                // A node that leaves drains before.
                if before.is_member && !standing.is_member && !standing.is_draining {
                    tracing::warn!("this node is no member any more; it takes no new tasks");
                }
                *standing != before
            });
            now = life.changed().await;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_cluster::{
        Authority, ClusterNode, MembershipRuntimeConfig, MemoryNetwork, NodeOptions, Transport,
    };
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn the_end_of_membership_is_not_the_same_as_not_having_joined() {
        let network = MemoryNetwork::new();
        let options = NodeOptions::new(MembershipRuntimeConfig::local())
            .advertise(Authority::new("10.0.0.1:7400").expect("an authority"));
        let node = ClusterNode::start(options, Transport::memory(&network)).await;
        let node = node.expect("a node");
        let lives = Lives::new();
        let mut standing = lives.standing();
        assert!(!standing.borrow().has_ended);
        let following = tokio::spawn(lives.clone().follow(node.own_life()));
        let joined = standing.wait_for(|standing| standing.is_member).await;
        assert!(!joined.expect("followed").has_ended);
        node.shutdown().await;
        let ended = standing.wait_for(|standing| standing.has_ended);
        let ended = timeout(Duration::from_secs(60), ended).await;
        assert!(!ended.expect("told").expect("followed").is_member);
        following.abort();
    }
}
