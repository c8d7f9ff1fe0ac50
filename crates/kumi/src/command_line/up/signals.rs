//! The signals that a node hears: SIGINT and SIGTERM stop it, SIGHUP makes it read its configuration again, and SIGALRM, which
//! has Redis write its stack to the log, only leaves a line there.

use crate::command_line::hangup;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
pub(super) enum Heard {
    /// The end, by this signal.
    Stop(SignalKind),
    /// Another look at the configuration.
    Reload,
}

/// Listens from its creation on: no signal is missed between two calls.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    alarm: Signal,
    /// None where SIGHUP was ignored when the process was started, as with nohup.
    hangup: Option<Signal>,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            alarm: signal(SignalKind::alarm())?,
            hangup: hangup::listen()?,
        })
    }

    /// Whether SIGHUP is among them.
    pub(super) fn has_hangup(&self) -> bool {
        self.hangup.is_some()
    }

    /// The next signal. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Heard::Stop(SignalKind::interrupt()),
                _ = self.terminate.recv() => return Heard::Stop(SignalKind::terminate()),
                () = hangup::received(&mut self.hangup) => return Heard::Reload,
                _ = self.alarm.recv() => tracing::warn!("Received SIGALRM"),
            }
        }
    }

    /// Waits for a signal that stops. One that asks for a reload meanwhile is dropped.
    pub(super) async fn stop(&mut self) {
        loop {
            if let Heard::Stop(_) = self.next().await {
                return;
            }
        }
    }
}
