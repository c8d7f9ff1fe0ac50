//! Getting rid of many keys: FLUSHALL, and the end of the process.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::report::{Goal, Row};
use crate::store::large::stall::Pings;
use crate::store::large::{Subject, megabytes};
use crate::store::memory::settled_bytes;
use crate::store::servers::Server;
use crate::store::workloads::preload;
use crate::wire::{self, Connection};

const KEYS: usize = 3_000_000;
/// The goal for memory is stated for this long after FLUSHALL.
const AFTER_FLUSH: Duration = Duration::from_secs(5);
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(60);

/// Resident memory some seconds after FLUSHALL.
pub(super) const FLUSHALL: Subject = Subject {
    name: "FLUSHALL",
    rows: || {
        let row = |name: &str, label: &str, unit| {
            let label = format!("FLUSHALL of 3,000,000 keys: {label}");
            Row::new(format!("store.large.flushall.{name}"), label, unit)
        };
        vec![
            row("empty", "memory before any key", "MB"),
            row("full", "memory with all keys", "MB"),
            row("after", "memory 5 s after", "MB"),
            row("left", "after, above 1.15 times before", "MB").goal(Some(Goal::AtMost(10.0))),
            row("stall", "stall of others", "ms"),
        ]
    },
    measure: |setting, contender| {
        let server = contender.start(setting.stage, &[])?;
        let empty = megabytes(settled_bytes(&server)?);
        preload(&server, setting.size(KEYS))?;
        let full = megabytes(settled_bytes(&server)?);
        let pings = Pings::start(server.address())?;
        Connection::open(server.address())?.command(&[b"FLUSHALL"])?;
        thread::sleep(AFTER_FLUSH);
        let stall_ms = pings.longest_ms()?;
        let after = megabytes(server.resident_bytes()?);
        wire::check_count(server.address(), 0)?;
        Ok(vec![empty, full, after, after - 1.15 * empty, stall_ms])
    },
};

/// The time from SHUTDOWN to the end of the process.
pub(super) const SHUTDOWN: Subject = Subject {
    name: "SHUTDOWN",
    rows: || {
        vec![
            Row::new(
                "store.large.shutdown.seconds",
                "SHUTDOWN NOSAVE at 3,000,000 keys: until the process is gone",
                "s",
            )
            .goal(Some(Goal::RatioAtMost(1.0))),
        ]
    },
    measure: |setting, contender| {
        let server = contender.start(setting.stage, &[])?;
        preload(&server, setting.size(KEYS))?;
        let seconds = shutdown_seconds(&server)?;
        Ok(vec![seconds])
    },
};

fn shutdown_seconds(server: &Server) -> Result<f64> {
    let mut connection = Connection::open(server.address())?;
    let mut request = Vec::new();
    wire::push_command(&mut request, &[b"SHUTDOWN", b"NOSAVE"]);
    let start = Instant::now();
    connection.send(&request)?;
    match server.wait(SHUTDOWN_LIMIT)? {
        Some(status) if status.success() => Ok(start.elapsed().as_secs_f64()),
        Some(status) => bail!("it ended with {status}"),
        None => bail!("it still ran {} s after SHUTDOWN", SHUTDOWN_LIMIT.as_secs()),
    }
}
