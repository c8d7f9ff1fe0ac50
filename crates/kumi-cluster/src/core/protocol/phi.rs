//! The phi accrual failure detector: how unlikely it is that a member is alive after a given time without a heartbeat.
//!
//! The times between heartbeats are taken as normally distributed. `phi` is minus the decimal logarithm of the
//! probability that the next heartbeat comes later than now; 8 means one false alarm in 10^8 if the assumption held. The
//! tail of the normal distribution is approximated by a logistic function of a cubic,
//!
//! ```text
//!   z(y) = y (1.5976 + 0.070566 y^2)      y = (silence - pause - mean) / deviation
//!   phi  = log10(1 + e^z)
//! ```
//!
//! which rises strictly with the silence and, written as above, is finite for every input. And because it rises, the
//! moment at which phi reaches the threshold is known as soon as a heartbeat arrives: detection is one deadline per
//! subject, and nothing is computed in between.

use crate::core::base::error::MembershipRuntimeError;
use crate::core::base::identity::Authority;
use crate::core::base::time::{TimerInstant, micros};
use crate::core::protocol::config::MAX_TIME;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// How many intervals are remembered per subject.
const WINDOW: usize = 100;

/// The greatest phi that is returned.
const MAX_PHI: f64 = 1e6;

/// The highest threshold. One false alarm in 10^1000 is never.
pub(crate) const MAX_THRESHOLD: f64 = 1000.0;

/// How the detector judges.
///
/// ```
/// use core::time::Duration;
/// use kumi_cluster::core::PhiConfig;
///
/// let config = PhiConfig::new().threshold(10.0).acceptable_pause(Duration::from_secs(5));
/// assert!(config.check().is_ok());
/// assert!(config.threshold(f64::NAN).check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhiConfig {
    threshold: f64,
    first_estimate: Duration,
    min_deviation: Duration,
    acceptable_pause: Duration,
}

/// What the detector noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DetectorEffect {
    /// Phi has reached the threshold.
    Suspect(Authority),
    /// A member that was suspicious was heard again. It does not lift a suspicion: it makes the subject refute it.
    Reachable(Authority),
}

/// One subject's history.
#[derive(Clone, Debug)]
struct Arrivals {
    /// The last sign of life, from which silence is counted.
    last: TimerInstant,
    /// The last heartbeat, from which the next interval is measured.
    last_beat: TimerInstant,
    /// Intervals in microseconds, as a ring.
    intervals: Vec<u32>,
    next: usize,
    sum: u64,
    /// A sum of squares of 100 values below 2^32 fits easily.
    squares: u128,
    deadline: TimerInstant,
    suspicious: bool,
}

/// Failure detection by heartbeats, one history per subject.
///
/// ```
/// use core::time::Duration;
/// use kumi_cluster::core::{Authority, DetectorEffect, PhiConfig, PhiFailureDetector, TimerInstant};
///
/// let mut detector = PhiFailureDetector::new(PhiConfig::default());
/// let (a, start) = (Authority::new("a:1")?, TimerInstant::ZERO);
/// detector.watch(&a, start);
/// assert_eq!(detector.poll(start + Duration::from_secs(1)), []);
/// assert_eq!(detector.poll(start + Duration::from_secs(60)), [DetectorEffect::Suspect(a)]);
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PhiFailureDetector {
    config: PhiConfig,
    /// How many deviations past the mean the threshold lies.
    deviations: f64,
    /// The acceptable pause is multiplied by this: how little a node trusts itself.
    health_multiplier: u32,
    subjects: BTreeMap<Authority, Arrivals>,
}

impl Default for PhiConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl PhiConfig {
    /// The values of a network of one site.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            threshold: 8.0,
            first_estimate: Duration::from_millis(500),
            min_deviation: Duration::from_millis(100),
            acceptable_pause: Duration::from_secs(2),
        }
    }

    /// The phi at which silence becomes suspicious: above 0 and at most 1000. Default: 8.
    #[must_use]
    pub const fn threshold(mut self, phi: f64) -> Self {
        self.threshold = phi;
        self
    }

    /// The interval expected before any was measured. Default: 500 ms.
    #[must_use]
    pub const fn first_estimate(mut self, interval: Duration) -> Self {
        self.first_estimate = interval;
        self
    }

    /// The least deviation, so that a very regular sender is not suspected after a short delay. Default: 100 ms.
    #[must_use]
    pub const fn min_deviation(mut self, deviation: Duration) -> Self {
        self.min_deviation = deviation;
        self
    }

    /// Silence that is forgiven on top of the mean: a pause of the other side's scheduler or network. Default: 2 s.
    #[must_use]
    pub const fn acceptable_pause(mut self, pause: Duration) -> Self {
        self.acceptable_pause = pause;
        self
    }

    /// Whether the numbers make sense. A detector accepts others, and then suspects at once or never.
    pub fn check(&self) -> Result<(), MembershipRuntimeError> {
        let times = [
            self.first_estimate,
            self.min_deviation,
            self.acceptable_pause,
        ];
        let rules = [
            (
                self.threshold > 0.0 && self.threshold <= MAX_THRESHOLD,
                "the threshold of phi must be above 0 and at most 1000",
            ),
            (
                !self.first_estimate.is_zero(),
                "the first estimate of the interval must not be zero",
            ),
            (
                times.iter().all(|time| *time <= MAX_TIME),
                "no time may be longer than 365 days",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, broken)) => Err(MembershipRuntimeError::InvalidConfig(broken)),
            None => Ok(()),
        }
    }
}

impl PhiFailureDetector {
    /// A detector that watches no member yet.
    pub fn new(config: PhiConfig) -> Self {
        Self {
            config,
            deviations: deviations_at(config.threshold),
            health_multiplier: 1,
            subjects: BTreeMap::new(),
        }
    }

    /// Starts watching: the first heartbeat is expected after the first estimate. Watching twice changes nothing.
    pub fn watch(&mut self, authority: &Authority, now: TimerInstant) {
        if self.subjects.contains_key(authority) {
            return;
        }
        let mut arrivals = Arrivals::new(now);
        arrivals.heard(self.deviations, self.pause(), &self.config);
        self.subjects.insert(authority.clone(), arrivals);
    }

    /// Stops watching and forgets the history.
    pub fn forget(&mut self, authority: &Authority) {
        self.subjects.remove(authority);
    }

    /// A heartbeat arrived; `Reachable` when it ends a suspicious silence. Unknown subjects are not taken up.
    pub fn record_heartbeat(
        &mut self,
        authority: &Authority,
        now: TimerInstant,
    ) -> Option<DetectorEffect> {
        let (deviations, pause, config) = (self.deviations, self.pause(), self.config);
        let arrivals = self.subjects.get_mut(authority)?;
        arrivals.record(now);
        let was = arrivals.heard(deviations, pause, &config);
        was.then(|| DetectorEffect::Reachable(authority.clone()))
    }

    /// A sign of life arrived that is no heartbeat: the silence ends, but the interval is not one to learn from.
    pub fn touch(&mut self, authority: &Authority, now: TimerInstant) -> Option<DetectorEffect> {
        let (deviations, pause, config) = (self.deviations, self.pause(), self.config);
        let arrivals = self.subjects.get_mut(authority)?;
        arrivals.last = arrivals.last.max(now);
        let was = arrivals.heard(deviations, pause, &config);
        was.then(|| DetectorEffect::Reachable(authority.clone()))
    }

    /// Those whose silence has just become suspicious.
    pub fn poll(&mut self, now: TimerInstant) -> Vec<DetectorEffect> {
        let mut effects = Vec::new();
        for (authority, arrivals) in &mut self.subjects {
            if !arrivals.suspicious && now >= arrivals.deadline {
                arrivals.suspicious = true;
                effects.push(DetectorEffect::Suspect(authority.clone()));
            }
        }
        effects
    }

    /// When the next silence becomes suspicious.
    pub fn next_deadline(&self) -> Option<TimerInstant> {
        let waiting = self
            .subjects
            .values()
            .filter(|arrivals| !arrivals.suspicious);
        waiting.map(|arrivals| arrivals.deadline).min()
    }

    /// How suspicious the silence of a subject is: never negative, never infinite, never falling while it lasts.
    pub fn phi(&self, authority: &Authority, now: TimerInstant) -> Option<f64> {
        let arrivals = self.subjects.get(authority)?;
        let (mean, deviation) = arrivals.statistics(&self.config);
        let silence = micros(now.saturating_since(arrivals.last)) as f64;
        Some(phi((silence - self.pause() - mean) / deviation))
    }

    /// How many subjects are watched.
    pub fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Whether no member is watched.
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    /// Multiplies the acceptable pause from now on, for a node that has reason to doubt itself.
    pub(crate) fn set_health_multiplier(&mut self, health_multiplier: u32) {
        if self.health_multiplier == health_multiplier {
            return;
        }
        self.health_multiplier = health_multiplier;
        let (deviations, pause, config) = (self.deviations, self.pause(), self.config);
        for arrivals in self.subjects.values_mut() {
            arrivals.deadline = arrivals.deadline(deviations, pause, &config);
        }
    }

    fn pause(&self) -> f64 {
        micros(self.config.acceptable_pause) as f64 * f64::from(self.health_multiplier)
    }
}

impl Arrivals {
    fn new(now: TimerInstant) -> Self {
        Self {
            last: now,
            last_beat: now,
            intervals: Vec::new(),
            next: 0,
            sum: 0,
            squares: 0,
            deadline: now,
            suspicious: false,
        }
    }

    /// Learns the interval since the last heartbeat. One that was longer than the silence which is tolerated counts as
    /// that: a member that loses most of its heartbeats gets more time step by step, and a single long absence does not
    /// blind the detector for the next, even if something else than a heartbeat ended it.
    fn record(&mut self, now: TimerInstant) {
        let tolerated = self.deadline.saturating_since(self.last);
        let interval = micros(now.saturating_since(self.last_beat).min(tolerated));
        self.last = self.last.max(now);
        self.last_beat = self.last_beat.max(now);
        let interval = u32::try_from(interval).unwrap_or(u32::MAX);
        if self.intervals.len() < WINDOW {
            self.intervals.push(interval);
        } else {
            let old = u64::from(core::mem::replace(&mut self.intervals[self.next], interval));
            self.next = (self.next + 1) % WINDOW;
            self.sum -= old;
            self.squares -= u128::from(old) * u128::from(old);
        }
        self.sum += u64::from(interval);
        self.squares += u128::from(interval) * u128::from(interval);
    }

    /// The silence is over: the next deadline counts from here. Whether it had become suspicious.
    fn heard(&mut self, deviations: f64, pause: f64, config: &PhiConfig) -> bool {
        self.deadline = self.deadline(deviations, pause, config);
        core::mem::replace(&mut self.suspicious, false)
    }

    fn deadline(&self, deviations: f64, pause: f64, config: &PhiConfig) -> TimerInstant {
        let (mean, deviation) = self.statistics(config);
        let silence = pause + mean + deviations * deviation;
        // A float beyond the range becomes the end of the range: that is what `as` does.
        self.last + Duration::from_micros(libm::ceil(silence) as u64)
    }

    /// Mean and deviation in microseconds. The estimate weighs as much as a few measurements, so that the first of them
    /// do not jump.
    fn statistics(&self, config: &PhiConfig) -> (f64, f64) {
        const WEIGHT: f64 = 4.0;
        let estimate = micros(config.first_estimate) as f64;
        let spread = estimate / 4.0;
        let count = self.intervals.len() as f64 + WEIGHT;
        let mean = (self.sum as f64 + WEIGHT * estimate) / count;
        let squares = self.squares as f64 + WEIGHT * (estimate * estimate + spread * spread);
        let variance = (squares / count - mean * mean).max(0.0);
        let least = (micros(config.min_deviation) as f64).max(1.0);
        (mean, libm::sqrt(variance).max(least))
    }
}

/// Phi of a silence that is `y` deviations past the mean.
fn phi(y: f64) -> f64 {
    let z = cubic(y);
    // log10(1 + e^z), without computing an e^z that is too large for a float.
    let natural = if z > 40.0 {
        z
    } else {
        libm::log1p(libm::exp(z))
    };
    (natural * core::f64::consts::LOG10_E).clamp(0.0, MAX_PHI)
}

fn cubic(y: f64) -> f64 {
    y * (1.5976 + 0.070566 * y * y)
}

/// The `y` at which phi is the threshold, by halving: `phi` rises.
fn deviations_at(threshold: f64) -> f64 {
    let (mut low, mut high) = (-50.0, 1e3);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if phi(middle) < threshold {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests;
