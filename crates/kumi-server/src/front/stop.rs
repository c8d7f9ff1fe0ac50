//! How a server is asked to stop, and what has to be saved before it does.

use super::{EngineIo, Front};
use crate::base::shutdown::Shutdown;
use kumi_store::ShutdownRequest;
use kumi_store::config::ShutdownOptions;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;

/// The server's stop: who asked for it, and how far it is.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The handle that stops the server, which signals use as well.
    pub(crate) handle: Shutdown,
    /// What the command SHUTDOWN asked for, or what a stop through the handle comes to.
    pub(crate) request: Option<ShutdownRequest>,
    /// Why the data could not be saved at a stop through the handle.
    pub(crate) unsaved: Option<io::Error>,
    /// The server stops: nothing more is read, what waits is still written.
    pub(crate) draining: bool,
}

impl Stop {
    pub(super) fn new(handle: Shutdown) -> Self {
        Self {
            handle,
            request: None,
            unsaved: None,
            draining: false,
        }
    }

    fn is_requested(&self) -> bool {
        self.request.is_some() || self.handle.is_requested()
    }

    /// Whether a signal has asked for it, and no command.
    fn is_by_signal(&self) -> bool {
        self.request.is_none() && self.handle.signal().is_some()
    }

    /// Takes back a stop that a signal has asked for. False if there is none.
    pub(super) fn abort(&self) -> bool {
        // The signal is noted before the request: both have to be there to be taken back.
        let aborts = self.is_by_signal() && self.handle.is_requested();
        if aborts {
            self.handle.withdraw();
        }
        aborts
    }
}

impl Front {
    /// Whether the server was asked to stop, or has to.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_requested() || self.aof.fatal.is_some()
    }

    /// Whether a stop by a signal waits: the periodic work, which does it in Redis, is paused.
    pub(crate) fn postpones_stop(&self, engine: &EngineIo<'_>) -> bool {
        self.stop.is_by_signal() && self.aof.fatal.is_none() && engine.store.is_cron_paused()
    }

    /// Whether a stop through the handle waits for the first base of the append-only file.
    pub(crate) fn waits_for_first_base(&self) -> bool {
        let by_handle = self.stop.request.is_none() && self.stop.handle.signal().is_none();
        by_handle && self.aof.fatal.is_none() && self.first_base_is_missing()
    }

    /// Saves what a stop by signal or through the handle has to save. False if that failed: the server goes on, unless it
    /// is the handle's owner who waits for its end, and not because of a signal.
    pub(crate) fn prepare_stop(&mut self, engine: &mut EngineIo<'_>) -> bool {
        tracing::info!("User requested shutdown...");
        let settings = engine.store.config().settings();
        let signal = self.stop.handle.signal_of_directive();
        let options = match signal {
            Some(SIGTERM) => settings.shutdown_on_sigterm,
            Some(SIGINT) => settings.shutdown_on_sigint,
            _ => ShutdownOptions::default(),
        };
        let saved = engine.store.save_at_end(options.save, options.force, self);
        let saved = match saved {
            Err(error) if signal.is_none() => {
                self.stop.unsaved = Some(error);
                false
            }
            Err(_) if !options.force => {
                tracing::warn!(
                    "Errors trying to shut down the server. Check the logs for more information."
                );
                self.stop.handle.withdraw();
                return false;
            }
            saved => saved.unwrap_or(false),
        };
        let mut request = ShutdownRequest::default();
        request.now = options.now;
        request.force = options.force;
        request.saved = saved;
        self.stop.request = Some(request);
        true
    }
}
