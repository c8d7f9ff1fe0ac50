//! The longest time a connection waits for the reply to a PING while another one is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::wire::Connection;

/// Between two PINGs, so that they do not take the core the measured client needs.
const INTERVAL: Duration = Duration::from_micros(500);

/// A thread that sends PING until it is stopped.
pub(super) struct Pings {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Duration>>>,
}

impl Pings {
    pub(super) fn start(address: SocketAddr) -> Result<Pings> {
        let mut connection = Connection::open(address)?;
        connection.command(&[b"PING"])?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut waits = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let sent = Instant::now();
                connection.command(&[b"PING"])?;
                waits.push(sent.elapsed());
                thread::sleep(INTERVAL);
            }
            Ok(waits)
        });
        Ok(Pings { stop, thread })
    }

    /// The longest wait so far, in milliseconds.
    pub(super) fn longest_ms(self) -> Result<f64> {
        let waits = self.stop()?;
        let longest = waits.into_iter().max().unwrap_or_default();
        Ok(longest.as_secs_f64() * 1000.0)
    }

    fn stop(self) -> Result<Vec<Duration>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that sends PING panicked"))?
    }
}
