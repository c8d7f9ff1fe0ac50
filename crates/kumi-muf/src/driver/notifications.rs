//! What is known about the keyspace events that the server sends.

use std::time::Duration;

/// Events every unit needs: channels per key, strings, expiry.
pub(super) const FLAGS: &str = "K$x";

/// Events that watches over kept values need besides: deletions and changes of a TTL are generic ones.
pub(super) const WATCH_FLAGS: &str = "K$xg";

/// What is known about generic events, which watches over kept values need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generic {
    Unproven,
    Proven,
    /// They do not come: watched values are looked at by the clock.
    Polled,
}

/// Which events come, and whether they are being checked.
pub(super) struct Notifications {
    pub(super) generic: Generic,
    /// How often to poll where events are missing, if that is allowed.
    pub(super) poll: Option<Duration>,
    /// A check of the flags is under way.
    pub(super) is_checking: bool,
    /// The last check found that the server does not send all events.
    pub(super) are_missing: bool,
}

impl Notifications {
    /// `are_sent` is what the first connection found.
    pub(super) fn new(poll: Option<Duration>, are_sent: bool) -> Self {
        Self {
            generic: match are_sent {
                true => Generic::Unproven,
                false => Generic::Polled,
            },
            poll,
            is_checking: false,
            are_missing: false,
        }
    }
}
