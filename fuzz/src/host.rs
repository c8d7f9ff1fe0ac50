//! A host whose clock runs by being read.

use kumi_store::{ApplyError, Config, Host, HostFacts, Now, Outputs, Store};
use std::time::Duration;

/// A reading moves the clock by this much, so that slices of work end.
const TICK_US: u64 = 20;

/// The longest single step of the clock: about three thousand years. Longer waits would only test whether a `u64` of
/// microseconds overflows, which no clock does.
const LONGEST_STEP_US: u64 = 100_000_000_000_000_000;

#[derive(Debug)]
pub(crate) struct FuzzHost {
    pub(crate) now: Now,
    /// The clock moves when it is read.
    pub(crate) runs: bool,
}

impl FuzzHost {
    pub(crate) fn new() -> Self {
        Self {
            now: Now {
                unix_us: 1_700_000_000_000_000,
                mono_ns: 1_000,
            },
            runs: true,
        }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let us = us.min(LONGEST_STEP_US);
        self.now.unix_us = self.now.unix_us.saturating_add(us);
        self.now.mono_ns = self.now.mono_ns.saturating_add(us.saturating_mul(1000));
    }
}

impl Host for FuzzHost {
    fn now(&mut self) -> Now {
        if self.runs {
            self.wait(Duration::from_micros(TICK_US));
        }
        self.now
    }

    /// Everything goes but what bounds the memory of one value.
    fn apply_config(&mut self, _: &Config, changed: &[&'static str]) -> Result<(), ApplyError> {
        match changed.iter().find(|&&name| name == "proto-max-bulk-len") {
            Some(&name) => Err(ApplyError {
                directive: name.to_owned(),
                message: "fixed while fuzzing".to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Ok(())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, time: Duration) {
        self.wait(time);
    }

    fn serve_others(&mut self, _: &mut Store, _: &mut Outputs) -> bool {
        false
    }
}
