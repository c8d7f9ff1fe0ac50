//! What the engine may ask of the front.

use crate::front::Front;
use kumi_store::{ApplyError, Config, Host, HostFacts, Now, Store};
use std::time::Duration;

impl Host for Front {
    fn now(&mut self) -> Now {
        self.clock.read()
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("The server is running without a config file".into())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Serves every connection but the running one. A command that runs inside of it gets no turn
    /// of its own: one level is enough to answer BUSY.
    fn serve_others(&mut self, store: &mut Store) {
        if std::mem::replace(&mut self.inner, true) {
            return;
        }
        if let Err(error) = self.turn(store, Duration::ZERO) {
            tracing::warn!(%error, "serving others failed");
        }
        self.inner = false;
    }
}
