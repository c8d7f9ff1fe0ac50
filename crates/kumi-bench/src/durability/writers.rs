//! Connections that write without a pause, and a probe beside them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::{VALUE, key};
use crate::wire::{self, Connection};

/// Threads that drive the connections.
const THREADS: usize = 2;
/// Between two requests of the probe.
const PROBE_INTERVAL: Duration = Duration::from_micros(500);

/// Threads that write until they are stopped.
pub(super) struct Writers {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Writers {
    /// `connections` connections that each send `pipeline` SETs of random keys, read the replies, and go on.
    pub(super) fn start(
        address: SocketAddr,
        connections: usize,
        pipeline: usize,
        keys: usize,
    ) -> Result<Writers> {
        Self::start_paced(address, connections, pipeline, keys, None)
    }

    /// The same with at most `per_second` SETs a second, spread evenly.
    pub(super) fn start_paced(
        address: SocketAddr,
        connections: usize,
        pipeline: usize,
        keys: usize,
        per_second: Option<f64>,
    ) -> Result<Writers> {
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let share = connections / THREADS + usize::from(number < connections % THREADS);
            let mut open = (0..share)
                .map(|_| Connection::open(address))
                .collect::<Result<Vec<_>>>()?;
            let (stop, written) = (Arc::clone(&stop), Arc::clone(&written));
            let mut random = fastrand::Rng::with_seed(number as u64);
            let round = (share * pipeline) as f64;
            let round_time = per_second
                .map(|rate| Duration::from_secs_f64(round * THREADS as f64 / rate.max(1.0)));
            threads.push(thread::spawn(move || {
                let mut bytes = Vec::new();
                let mut due = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    if let Some(round_time) = round_time {
                        // A round that came late is not made up for.
                        due = (due + round_time).max(Instant::now());
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                    }
                    for connection in &mut open {
                        bytes.clear();
                        for _ in 0..pipeline {
                            let key = key(random.usize(..keys));
                            wire::push_command(&mut bytes, &[b"SET", key.as_bytes(), VALUE]);
                        }
                        connection.send(&bytes)?;
                    }
                    for connection in &mut open {
                        for _ in 0..pipeline {
                            connection.reply()?;
                        }
                        written.fetch_add(pipeline as u64, Ordering::Relaxed);
                    }
                }
                Ok(())
            }));
        }
        Ok(Writers {
            stop,
            written,
            threads,
        })
    }

    /// SETs that were replied to so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// SETs per second over a period.
    pub(super) fn rate(&self, period: Duration) -> f64 {
        let (from, start) = (self.written(), Instant::now());
        thread::sleep(period);
        (self.written() - from) as f64 / start.elapsed().as_secs_f64()
    }

    pub(super) fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("a writer panicked"))??;
        }
        Ok(())
    }
}

/// A connection that reads one key now and then, and notes how long each reply takes.
pub(super) struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<f64>>>,
}

impl Probe {
    pub(super) fn start(address: SocketAddr) -> Result<Probe> {
        Self::of(address, &[b"STRLEN", b"key:000000000000"])
    }

    /// One that writes the key instead.
    pub(super) fn of_writes(address: SocketAddr) -> Result<Probe> {
        Self::of(address, &[b"SET", b"key:000000000000", VALUE])
    }

    fn of(address: SocketAddr, command: &'static [&'static [u8]]) -> Result<Probe> {
        let mut connection = Connection::open(address)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut waits_ms = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let sent = Instant::now();
                connection.command(command)?;
                waits_ms.push(sent.elapsed().as_secs_f64() * 1000.0);
                thread::sleep(PROBE_INTERVAL);
            }
            Ok(waits_ms)
        });
        Ok(Probe { stop, thread })
    }

    /// How long each reply took, in milliseconds.
    pub(super) fn stop(self) -> Result<Vec<f64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the probe panicked"))?
    }
}

/// A field of INFO persistence.
pub(super) fn persistence(connection: &mut Connection, field: &str) -> Result<String> {
    let head = connection.command(&[b"INFO", b"persistence"])?;
    let length: usize = std::str::from_utf8(&head)?
        .trim_start_matches('$')
        .parse()?;
    let (mut read, mut found) = (0, None);
    while read < length + 2 {
        let line = connection.reply()?;
        read += line.len() + 2;
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some((name, value)) = line.split_once(':')
            && name == field
        {
            found = Some(value.to_owned());
        }
    }
    found.ok_or_else(|| anyhow!("INFO has no {field}"))
}
