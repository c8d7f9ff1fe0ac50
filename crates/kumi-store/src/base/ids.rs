//! Ids of sessions, which data and configuration refer to without knowing what a session is.

/// A handle on a session. It goes stale when the session ends: later use finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Index that is dense and reused: a front can keep its sockets under it.
    pub slot: u32,
    serial: u32,
}

impl SessionKey {
    /// The key of the session with this id, which is never reused.
    pub(crate) fn new(slot: u32, id: u64) -> Self {
        let serial = id as u32;
        Self { slot, serial }
    }
}

/// The classes of `client-output-buffer-limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Normal,
    Pubsub,
}
