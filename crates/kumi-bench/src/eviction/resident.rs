//! Resident memory beside `used_memory` of a store at `maxmemory`: in the steady state, and after the values change
//! their size.
//!
//! Each phase sets new keys until about twice as much was written as fits, so that nearly every value of the phase
//! before is evicted and its memory is either used again or returned to the system. A phase is measured once resident
//! memory does not fall any more.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::info;
use crate::procfs;
use crate::report::{Goal, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Stage};
use crate::wire::{self, Connection};

/// The most resident bytes for a byte of `used_memory`, in the steady state and after a change of sizes.
const STEADY: f64 = 1.15;
const SHIFTED: f64 = 1.3;
/// Bytes a key takes besides its value, roughly: it only decides how many keys a phase sets.
const BYTES_PER_KEY: usize = 60;
/// Memory that has not fallen for this long has settled.
const SETTLED: Duration = Duration::from_secs(2);
/// How often a phase writes what fits.
const TURNOVER: usize = 2;

/// Name, label, bytes of a value, and goal of each phase.
const PHASES: [(&str, &str, usize, f64); 4] = [
    ("steady", "values of 100 bytes", 100, STEADY),
    ("grown", "then values of 520 bytes", 520, SHIFTED),
    ("shrunk", "then values of 30 bytes", 30, SHIFTED),
    ("back", "then values of 100 bytes again", 100, SHIFTED),
];

/// The rows of all phases. `limit` is `maxmemory` in bytes.
pub(super) fn measure(
    stage: &Stage,
    contenders: &[Contender],
    limit: usize,
    runs: usize,
) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = PHASES
        .iter()
        .map(|(name, label, _, goal)| {
            Row::new(format!("eviction.resident.{name}"), *label, "rss/used")
                .goal(Some(Goal::AtMost(*goal)))
        })
        .collect();
    for contender in contenders {
        let mut ratios = vec![Vec::new(); PHASES.len()];
        for _ in 0..runs {
            for (phase, ratio) in ratios.iter_mut().zip(run(stage, contender, limit)?) {
                phase.push(ratio);
            }
        }
        for (row, ratios) in rows.iter_mut().zip(ratios) {
            row.add(
                contender.name(),
                Sample::new(ratios).context("no run was made")?,
            );
        }
    }
    Ok(rows)
}

/// The ratio of resident to used memory after each phase.
fn run(stage: &Stage, contender: &Contender, limit: usize) -> Result<Vec<f64>> {
    let maxmemory = limit.to_string();
    let directives = [
        ("maxmemory", maxmemory.as_str()),
        ("maxmemory-policy", "allkeys-lru"),
    ];
    let server = contender.start(stage, &directives)?;
    let mut first = 0;
    let mut ratios = Vec::new();
    for (_, _, bytes, _) in PHASES {
        let value = vec![b'v'; bytes];
        let keys = TURNOVER * limit / (bytes + BYTES_PER_KEY);
        wire::load(server.address(), keys, |index, out| {
            let key = super::key((first + index) as u32);
            wire::push_command(out, &[b"SET", key.as_bytes(), &value]);
        })?;
        first += keys;
        let mut connection = Connection::open(server.address())?;
        let used = info(&mut connection, "memory", "used_memory:")?;
        let resident = settled(server.pid())?;
        ratios.push(resident as f64 / used as f64);
    }
    Ok(ratios)
}

/// Resident memory once it does not fall any more: servers return free memory with a delay.
fn settled(pid: u32) -> Result<u64> {
    let mut least = procfs::resident_bytes(pid)?;
    let mut since = Instant::now();
    while since.elapsed() < SETTLED {
        thread::sleep(SETTLED / 10);
        let resident = procfs::resident_bytes(pid)?;
        if resident < least - least / 100 {
            least = resident;
            since = Instant::now();
        }
    }
    procfs::resident_bytes(pid)
}
