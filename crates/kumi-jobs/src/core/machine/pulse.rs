//! Gaps: times in which no worker could renew its lease, because the queue was away or its clock jumped. They are not
//! charged to the workers.
//!
//! The pulse is when a program last did something. A worker with tasks renews its lease every second, so a longer silence
//! means that the queue could not be reached, or that no worker holds a task, or that all that did crashed. After such a gap
//! each lease lasts for its whole length from then on. Where scripts are far apart for another reason, such as idle
//! workers that ask every 5 s, leases of crashed workers have to end nevertheless: a lease that was extended and not
//! renewed is moved by the length of a later gap, and only if that is longer than any idle worker's wait and the queue was
//! in use since. The time in which the queue is used counts. `redis/lua/lib.lua` does the same, some
//! hundred leases a script.

use super::super::id::Timestamp;
use super::super::settings::RENEWAL;
use super::Machine;
use std::time::Duration;

/// The longest silence that is no gap: three renewals.
const GAP: Duration = Duration::from_secs(3);

/// The shortest gap that moves a lease which was extended before.
const LONG_GAP: Duration = Duration::from_secs(10);

/// How exact the pulse is.
const PULSE: Duration = Duration::from_millis(500);

impl Machine {
    /// Notices a gap; before leases are looked at. What a program's own work does not need is no sign of life.
    pub(super) fn beat(&mut self, now: Timestamp, is_alive: bool) {
        let pulse = self.pulse;
        let is_back = pulse.is_some_and(|pulse| pulse.since(now) > GAP);
        let since = pulse.map(|pulse| now.since(pulse));
        if is_back || since.is_none_or(|since| since > GAP) {
            let long = since.filter(|since| *since > LONG_GAP);
            let mut is_extended = false;
            for holder in self.owners.values_mut() {
                let begins = match holder.extended_at {
                    // Scripts that ran after a lease was extended show that its worker had the time to renew it.
                    Some(extended) if !is_back => long
                        .filter(|_| pulse.is_some_and(|used_at| used_at >= extended.after(RENEWAL)))
                        .map(|long| extended.after(long)),
                    _ => Some(now),
                };
                if let Some(begins) = begins {
                    let begun = holder.extended_at.unwrap_or(holder.renewed_at);
                    holder.lease_end = begins.after(holder.lease_end.since(begun));
                    holder.renewed_at = holder.renewed_at.min(now);
                    holder.extended_at = Some(begins);
                    is_extended = true;
                }
            }
            if !is_extended && !is_alive {
                return;
            }
        } else if !is_alive || since.is_some_and(|since| since < PULSE) {
            return;
        }
        self.pulse = Some(now);
    }
}
