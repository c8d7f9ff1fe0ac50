//! The numbers that membership runs by, and presets of them.

use crate::core::base::error::MembershipRuntimeError;
use crate::core::base::identity::MAX_CLUSTER_NAME_BYTES;
use crate::core::protocol::phi::{MAX_THRESHOLD, PhiConfig};
use alloc::string::String;
use core::time::Duration;

/// The longest of any of the times: far beyond what makes sense, and far below what would overflow anywhere.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// The most addresses that are remembered of members that are gone.
const MAX_ADDRESS_BOOK: usize = 1 << 20;

/// The configuration of a node. Start from a preset and change what differs.
///
/// ```
/// use kumi_cluster::MembershipRuntimeConfig;
///
/// let mut config = MembershipRuntimeConfig::lan(1000);
/// config.cluster_name = "orders".into();
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MembershipRuntimeConfig {
    /// Nodes of different names refuse each other.
    pub cluster_name: String,
    /// The phi at which a watched member is probed.
    pub phi_threshold: f64,
    /// How long a quorum of accusations has to stand before a suspect is declared dead.
    pub suspect_timeout: Duration,
    /// How long a dead member is shown before it is removed, and how long its tombstone is kept after that.
    pub dead_timeout: Duration,
    /// How long a joining node may send nothing before it is removed.
    pub join_timeout: Duration,
    /// How long a dead uid is quarantined.
    pub quarantine_ttl: Duration,
    /// Off: a static cluster, whose members are named by the caller and which exchanges nothing but heartbeats.
    pub gossip_enabled: bool,
    /// The time between two pushes.
    pub gossip_interval: Duration,
    /// To how many members an update is pushed at a time (the fanout).
    pub fanout: usize,
    /// The time between two push-pull exchanges with a random member.
    pub push_pull_interval: Duration,
    /// The window in which changes become one event.
    pub topology_emit_interval: Duration,
    /// The time between two heartbeats.
    pub heartbeat_interval: Duration,
    /// By how many others each node is watched.
    pub monitors: usize,
    /// Added to the mean heartbeat interval before phi rises.
    pub acceptable_pause: Duration,
    /// The least deviation of intervals.
    pub min_deviation: Duration,
    /// How long a direct probe waits; an indirect one waits twice as long.
    pub probe_timeout: Duration,
    /// How long a joiner waits for a seed before it asks again.
    pub join_retry: Duration,
    /// How long a leaving node gossips that it is leaving.
    pub leave_grace: Duration,
    /// Whether a node that was declared dead joins again under a new uid instead of stopping.
    pub rejoin_when_downed: bool,
    /// The most records, tombstones included.
    pub max_members: usize,
    /// The most addresses remembered of members that are gone.
    pub max_address_book: usize,
}

impl MembershipRuntimeConfig {
    /// A network of one site, for about `nodes` nodes: round trips of a few milliseconds.
    pub fn lan(nodes: usize) -> Self {
        let large = nodes > 100;
        Self {
            cluster_name: "kumi".into(),
            phi_threshold: 8.0,
            suspect_timeout: Duration::from_secs(4),
            dead_timeout: Duration::from_secs(60),
            join_timeout: Duration::from_secs(30),
            quarantine_ttl: Duration::from_secs(60),
            gossip_enabled: true,
            gossip_interval: Duration::from_millis(200),
            fanout: if large { 4 } else { 3 },
            push_pull_interval: Duration::from_secs(if large { 10 } else { 5 }),
            topology_emit_interval: Duration::from_secs(1),
            heartbeat_interval: Duration::from_millis(500),
            monitors: 9,
            acceptable_pause: Duration::from_secs(2),
            min_deviation: Duration::from_millis(100),
            probe_timeout: Duration::from_millis(500),
            join_retry: Duration::from_secs(1),
            leave_grace: Duration::from_secs(2),
            rejoin_when_downed: true,
            max_members: nodes.saturating_mul(4).clamp(1024, 1 << 20),
            max_address_book: 1024,
        }
    }

    /// Several sites: round trips up to some hundred milliseconds, and more loss.
    pub fn wan(nodes: usize) -> Self {
        Self {
            suspect_timeout: Duration::from_secs(10),
            dead_timeout: Duration::from_secs(180),
            quarantine_ttl: Duration::from_secs(180),
            join_timeout: Duration::from_secs(60),
            gossip_interval: Duration::from_millis(500),
            push_pull_interval: Duration::from_secs(30),
            topology_emit_interval: Duration::from_secs(2),
            heartbeat_interval: Duration::from_secs(1),
            acceptable_pause: Duration::from_secs(5),
            min_deviation: Duration::from_millis(300),
            probe_timeout: Duration::from_millis(1500),
            join_retry: Duration::from_secs(3),
            leave_grace: Duration::from_secs(5),
            ..Self::lan(nodes)
        }
    }

    /// A handful of processes on one machine, for development and tests: quick to notice.
    pub fn local() -> Self {
        Self {
            suspect_timeout: Duration::from_secs(2),
            dead_timeout: Duration::from_secs(20),
            quarantine_ttl: Duration::from_secs(20),
            join_timeout: Duration::from_secs(10),
            gossip_interval: Duration::from_millis(100),
            push_pull_interval: Duration::from_secs(2),
            topology_emit_interval: Duration::from_millis(200),
            heartbeat_interval: Duration::from_millis(200),
            acceptable_pause: Duration::from_secs(1),
            min_deviation: Duration::from_millis(50),
            probe_timeout: Duration::from_millis(200),
            join_retry: Duration::from_millis(300),
            leave_grace: Duration::from_millis(500),
            ..Self::lan(10)
        }
    }

    /// Whether the numbers fit together.
    pub fn check(&self) -> Result<(), MembershipRuntimeError> {
        let shown = self
            .cluster_name
            .bytes()
            .all(|byte| byte.is_ascii_graphic());
        let positive = [
            self.suspect_timeout,
            self.dead_timeout,
            self.join_timeout,
            self.gossip_interval,
            self.push_pull_interval,
            self.topology_emit_interval,
            self.heartbeat_interval,
            self.probe_timeout,
            self.join_retry,
        ];
        let any = [
            self.quarantine_ttl,
            self.acceptable_pause,
            self.min_deviation,
            self.leave_grace,
        ];
        let rules = [
            (
                shown && (1..=MAX_CLUSTER_NAME_BYTES).contains(&self.cluster_name.len()),
                "cluster_name must be 1 to 64 visible ASCII characters",
            ),
            (
                self.phi_threshold > 0.0 && self.phi_threshold <= MAX_THRESHOLD,
                "phi_threshold must be above 0 and at most 1000",
            ),
            (
                positive.iter().all(|duration| !duration.is_zero()),
                "timeouts and intervals must not be zero",
            ),
            (
                positive.iter().chain(&any).all(|time| *time <= MAX_TIME),
                "no time may be longer than 365 days",
            ),
            ((1..=64).contains(&self.fanout), "fanout must be 1 to 64"),
            (
                (1..=16).contains(&self.monitors),
                "monitors must be 1 to 16",
            ),
            (
                self.dead_timeout >= self.suspect_timeout,
                "dead_timeout must not be shorter than suspect_timeout",
            ),
            (
                (2..=1 << 20).contains(&self.max_members),
                "max_members must be 2 to 1048576",
            ),
            (
                self.max_address_book <= MAX_ADDRESS_BOOK,
                "max_address_book must be at most 1048576",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, broken)) => Err(MembershipRuntimeError::InvalidConfig(broken)),
            None => Ok(()),
        }
    }

    pub(crate) fn phi(&self) -> PhiConfig {
        PhiConfig::new()
            .threshold(self.phi_threshold)
            .first_estimate(self.heartbeat_interval)
            .min_deviation(self.min_deviation)
            .acceptable_pause(self.acceptable_pause)
    }

    /// How many accusations make a quorum of so many monitors that count: 7 of 9, and two thirds of fewer.
    pub(crate) fn quorum(counted: usize) -> usize {
        match counted {
            0 => usize::MAX,
            9.. => (counted * 7).div_ceil(9),
            fewer => (fewer * 2).div_ceil(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_fit_together() {
        for nodes in [1, 3, 50, 1000, usize::MAX / 8] {
            let config = MembershipRuntimeConfig::lan(nodes);
            assert_eq!(config.check(), Ok(()));
        }
        assert_eq!(MembershipRuntimeConfig::wan(30).check(), Ok(()));
        assert_eq!(MembershipRuntimeConfig::local().check(), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        type Change = fn(&mut MembershipRuntimeConfig);
        let changes: [Change; 12] = [
            |config| config.cluster_name.clear(),
            |config| config.phi_threshold = f64::NAN,
            |config| config.heartbeat_interval = Duration::ZERO,
            |config| config.fanout = 0,
            |config| config.monitors = 17,
            |config| config.dead_timeout = Duration::from_millis(1),
            |config| config.phi_threshold = f64::INFINITY,
            |config| config.suspect_timeout = Duration::MAX,
            |config| config.quarantine_ttl = Duration::MAX,
            |config| config.acceptable_pause = Duration::MAX,
            |config| config.leave_grace = Duration::MAX,
            |config| config.max_address_book = usize::MAX,
        ];
        for change in changes {
            let mut config = MembershipRuntimeConfig::local();
            change(&mut config);
            assert!(config.check().is_err());
        }
    }

    #[test]
    fn the_quorum_is_seven_of_nine_and_two_thirds_of_fewer() {
        let quorums: [usize; 9] =
            core::array::from_fn(|index| MembershipRuntimeConfig::quorum(index + 1));
        assert_eq!(quorums, [1, 2, 2, 3, 4, 4, 5, 6, 7]);
        assert_eq!(MembershipRuntimeConfig::quorum(0), usize::MAX);
    }
}
