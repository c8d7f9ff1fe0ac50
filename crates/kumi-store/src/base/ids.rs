//! Ids of sessions, users and commands, for what refers to them without knowing what they are.

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

/// Position of a row in the index; statistics are kept under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommandId(pub(crate) u16);

/// A user's place in the list of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UserId(pub(crate) u32);

impl UserId {
    /// The user every connection begins with.
    pub(crate) const DEFAULT: Self = Self(0);
    /// No user's: of a session whose user was deleted. It may do nothing.
    pub(crate) const DELETED: Self = Self(u32::MAX);
}
