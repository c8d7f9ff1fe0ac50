//! When what is due next. What is then done is in `upkeep.rs`.

use std::time::Duration;

use crate::core::Time;

/// How often a watcher that was too slow is looked at.
pub(super) const OVERFLOW_CHECK_MS: u64 = 50;

/// How often the fleet is looked at, at least: silent nodes, the slots of a cluster.
const FLEET_CHECK_MS: u64 = 1_000;

/// After how many heartbeats the server's flags are checked, and whether watched values are those that are known: another
/// client may have changed the flags or flushed the data, which sends no events.
pub(super) const RECHECK_BEATS: u64 = 2;

/// Every how many rechecks the watched values themselves are read again, and not only looked for.
pub(super) const THOROUGH_EVERY: u64 = 6;

/// When what is due next.
pub(super) struct Schedule {
    pub(super) heartbeat_ms: u64,
    pub(super) poll_ms: Option<u64>,
    pub(super) fleet_ms: u64,
    pub(super) beat_at: Time,
    pub(super) poll_at: Time,
    pub(super) watchers_at: Time,
    pub(super) fleet_at: Time,
    pub(super) recheck_at: Time,
    pub(super) rechecks: u64,
}

impl Schedule {
    /// A reply counts as overdue after `response_timeout`, which is noticed a quarter of it later at the latest.
    pub(super) fn new(
        heartbeat: Duration,
        poll_ms: Option<u64>,
        response_timeout: Duration,
    ) -> Self {
        let quarter_ms = response_timeout.as_millis() as u64 / 4;
        Self {
            heartbeat_ms: (heartbeat.as_millis() as u64).max(1),
            poll_ms: poll_ms.map(|poll_ms| poll_ms.max(1)),
            fleet_ms: FLEET_CHECK_MS.min(quarter_ms).max(10),
            beat_at: Time(0),
            poll_at: Time(0),
            watchers_at: Time(0),
            fleet_at: Time(0),
            recheck_at: Time(RECHECK_BEATS.saturating_mul(heartbeat.as_millis() as u64)),
            rechecks: 0,
        }
    }

    /// Watched values have to be looked at this often from now on.
    pub(super) fn poll(&mut self, period: Duration) {
        self.poll_ms = Some((period.as_millis() as u64).max(1));
    }
}
