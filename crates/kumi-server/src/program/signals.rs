//! Signals: SIGTERM and SIGINT stop the server, a SIGINT behind one ends the process at once; SIGHUP is ignored,
//! and SIGALRM, which has Redis write its stack to the log, only leaves a line there.

use crate::base::shutdown::Shutdown;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::io;
use std::thread::{Builder, JoinHandle};

/// Handles signals until it is dropped.
#[derive(Debug)]
pub(crate) struct SignalWatch {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SignalWatch {
    pub(crate) fn start(shutdown: Shutdown) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGALRM])?;
        let handle = signals.handle();
        let thread = Builder::new()
            .name("kumi-signals".into())
            .spawn(move || watch(&mut signals, &shutdown))?;
        Ok(Self {
            handle,
            thread: Some(thread),
        })
    }
}

fn watch(signals: &mut Signals, shutdown: &Shutdown) {
    for signal in signals.forever() {
        let name = match signal {
            SIGTERM => "SIGTERM",
            SIGINT => "SIGINT",
            SIGALRM => {
                tracing::warn!("Received SIGALRM");
                continue;
            }
            _ => continue,
        };
        if shutdown.is_requested() {
            if signal != SIGINT {
                // A supervisor may repeat it while the data is saved.
                tracing::warn!("Received {name} again, the server is stopping");
                continue;
            }
            tracing::warn!("You insist... exiting now.");
            shutdown.remove_unfinished_file();
            std::process::exit(1);
        }
        tracing::warn!("Received {name} scheduling shutdown...");
        shutdown.request_by_signal(signal);
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that waits for signals panicked");
        }
    }
}
