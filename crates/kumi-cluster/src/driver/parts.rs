//! What the tasks of a node and its admin channel share, and the orders that they give to the core.

use super::carrier::Carrier;
use super::clock::Clock;
use super::counters::Counters;
use super::peers::Peers;
use super::shared::MembershipRuntimeShared;
use super::transport::Transport;
use crate::core::{
    Authority, MemberMetadata, MembershipError, MembershipRuntimeState, NameAndLife, NodeName,
};
use std::string::String;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the node's tasks share.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) shared: MembershipRuntimeShared,
    pub(super) carrier: Arc<Carrier>,
    pub(super) peers: Arc<Peers>,
    pub(super) clock: Clock,
    pub(super) counters: Arc<Counters>,
    pub(super) cluster_name: String,
    pub(super) name: NodeName,
    pub(super) transport: Arc<Transport>,
    pub(super) authority: Authority,
    pub(super) leave_grace: Duration,
    /// The task that runs the core has ended.
    pub(super) ended: CancellationToken,
    /// The task that runs the core has to end.
    pub(super) stop: CancellationToken,
    /// The task that runs the core has panicked.
    pub(super) failed: AtomicBool,
    #[cfg(feature = "simulation")]
    pub(super) panics: AtomicBool,
}

impl Parts {
    pub(super) fn name_and_life(&self) -> NameAndLife {
        self.name.with_life(self.shared.identity().uid)
    }

    pub(super) fn quarantine(
        &self,
        authority: &Authority,
        reason: &str,
        ttl: Duration,
    ) -> Result<(), MembershipError> {
        let now = self.clock.now();
        let done = self
            .shared
            .with(|runtime| runtime.quarantine(authority, reason, ttl, now));
        self.carrier.wake.notify_one();
        done
    }

    pub(super) fn release(&self, authority: &Authority) -> Result<(), MembershipError> {
        let now = self.clock.now();
        let done = self.shared.with(|runtime| runtime.release(authority, now));
        self.carrier.wake.notify_one();
        done
    }

    pub(super) fn set_metadata(&self, metadata: MemberMetadata) -> Result<(), MembershipError> {
        let metadata = metadata.with_name(&self.name)?;
        let now = self.clock.now();
        let done = self
            .shared
            .with(|runtime| runtime.set_metadata(metadata, now));
        self.carrier.wake.notify_one();
        done
    }

    /// Replaces the metadata by what `change` makes of it; no other change comes in between.
    pub(super) fn update_metadata(
        &self,
        change: impl FnOnce(&MemberMetadata) -> Result<MemberMetadata, MembershipError>,
    ) -> Result<(), MembershipError> {
        let now = self.clock.now();
        let done = self.shared.with(|runtime| {
            let metadata = change(runtime.metadata())?.with_name(&self.name)?;
            runtime.set_metadata(metadata, now)
        });
        self.carrier.wake.notify_one();
        done
    }

    pub(super) fn leave(&self) -> Result<(), MembershipError> {
        if self.shared.state() == MembershipRuntimeState::Client {
            // An observer is known to no other node.
            self.stop.cancel();
            return Ok(());
        }
        let now = self.clock.now();
        let done = self.shared.with(|runtime| runtime.leave(now));
        self.carrier.wake.notify_one();
        done
    }
}
