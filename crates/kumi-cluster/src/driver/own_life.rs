//! The life of this node itself, for parts of a program that act in its name.

use crate::core::{NameAndLife, NodeName, NodeUid};
use tokio::sync::watch;

/// The state of this node's own life.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnLife {
    /// It is not a member: it has not joined yet, or its last life ended and it joins again.
    Joining,
    /// It is a member in this life.
    Up(NameAndLife),
    /// It is leaving, or has stopped.
    Ended,
}

/// The same as the core has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeState {
    Joining,
    Up(NodeUid),
    Ended,
}

/// Follows the life of this node. It has the present state, not every state in between: a change from `Up(a)` to `Up(b)` is a
/// node that was declared dead, replaced or isolated in the eyes of the others, and came back.
#[derive(Clone, Debug)]
pub struct OwnLifeWatch {
    name: NodeName,
    state: watch::Receiver<LifeState>,
    /// `Ended` is the last state, so nothing is waited for once it was seen.
    has_seen_end: bool,
}

impl OwnLifeWatch {
    /// The state at this moment counts as seen.
    pub(super) fn new(name: NodeName, mut state: watch::Receiver<LifeState>) -> Self {
        let has_seen_end = *state.borrow_and_update() == LifeState::Ended;
        Self {
            name,
            state,
            has_seen_end,
        }
    }

    /// The present state. What this returns counts as seen.
    pub fn current(&mut self) -> OwnLife {
        let state = *self.state.borrow_and_update();
        self.has_seen_end = state == LifeState::Ended;
        self.named(state)
    }

    /// Waits for a state that was not seen; `None` once the node has ended and its end was seen. Dropping the future loses
    /// nothing.
    pub async fn changed(&mut self) -> Option<OwnLife> {
        if self.has_seen_end {
            return None;
        }
        self.state.changed().await.ok()?;
        Some(self.current())
    }

    fn named(&self, state: LifeState) -> OwnLife {
        match state {
            LifeState::Joining => OwnLife::Joining,
            LifeState::Up(uid) => OwnLife::Up(self.name.with_life(uid)),
            LifeState::Ended => OwnLife::Ended,
        }
    }
}
