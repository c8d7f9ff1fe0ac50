//! Resident bytes per key.
//!
//! A fresh server each time: its resident memory before, a million keys of 16 bytes with values of 16 bytes that are no
//! integers, its resident memory after. Growth per key, everything included: tables, allocator slack, deadline index.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server, Stage};
use crate::wire;

/// Memory counts as settled when it has not changed for this long.
const SETTLED_AFTER: Duration = Duration::from_millis(600);
/// Memory that never settles is taken as it is.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
/// TTLs far beyond any run.
const NEAREST_TTL_MS: u64 = 1_000_000;
const FARTHEST_TTL_MS: u64 = 2_000_000;
const SEED: u64 = 0x6b75_6d69;

/// How the keys get their deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ttl {
    None,
    /// The same TTL for all, so deadlines come in order: the kindest case for an index.
    Same,
    /// Random TTLs, so deadlines come in no order: the ordinary case.
    Random,
}

impl Ttl {
    fn row(self) -> Row {
        match self {
            Ttl::None => Row::new("store.memory.plain", "without a TTL", "B/key")
                .goal(Some(Goal::AtMost(75.0))),
            Ttl::Same => Row::new("store.memory.ttl", "same TTL for all", "B/key")
                .goal(Some(Goal::AtMost(95.0))),
            Ttl::Random => Row::new("store.memory.random_ttl", "random TTLs", "B/key")
                .goal(Some(Goal::AtMost(95.0))),
        }
    }
}

/// Measures every variant on every contender.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let variants = [Ttl::None, Ttl::Same, Ttl::Random];
    let mut task = progress.task(
        "memory",
        variants.len() * contenders.len() * plan.memory_runs,
    );
    let mut rows = Vec::new();
    for ttl in variants {
        let mut row = ttl.row();
        for contender in contenders {
            let mut values = Vec::new();
            for _ in 0..plan.memory_runs {
                task.begin(&format!(
                    "{} keys in {}, TTL: {ttl:?}",
                    plan.keys,
                    contender.name()
                ));
                let value = bytes_per_key(stage, contender, plan.keys, ttl).with_context(|| {
                    format!("cannot measure the memory of {}", contender.name())
                })?;
                values.push(value);
                task.end();
            }
            row.add(
                contender.name(),
                Sample::new(values).context("no run was made")?,
            );
        }
        rows.push(report.shown(row));
    }
    let title = format!(
        "Memory: growth of resident memory per key, {} keys, 16-byte keys and values",
        plan.keys
    );
    report.section(title, rows);
    Ok(())
}

fn bytes_per_key(stage: &Stage, contender: &Contender, keys: usize, ttl: Ttl) -> Result<f64> {
    let server = contender.start(stage, &[])?;
    let before = settled_bytes(&server)?;
    let mut random = fastrand::Rng::with_seed(SEED);
    wire::load(server.address(), keys, |index, out| {
        let key = format!("key:{index:012}");
        let value = format!("value:{index:010}");
        let ttl_ms = match ttl {
            Ttl::None => None,
            Ttl::Same => Some(NEAREST_TTL_MS),
            Ttl::Random => Some(random.u64(NEAREST_TTL_MS..FARTHEST_TTL_MS)),
        };
        match ttl_ms.map(|ms| ms.to_string()) {
            None => wire::push_command(out, &[b"SET", key.as_bytes(), value.as_bytes()]),
            Some(ms) => wire::push_command(
                out,
                &[
                    b"SET",
                    key.as_bytes(),
                    value.as_bytes(),
                    b"PX",
                    ms.as_bytes(),
                ],
            ),
        }
    })?;
    wire::check_count(server.address(), keys)?;
    if ttl != Ttl::None {
        wire::check_ttl(server.address(), "key:000000000000")?;
    }
    let after = settled_bytes(&server)?;
    Ok(after.saturating_sub(before) as f64 / keys as f64)
}

/// Resident memory once it stays the same: a server may still rehash, or give back a buffer, after the last reply.
pub(crate) fn settled_bytes(server: &Server) -> Result<u64> {
    let start = Instant::now();
    let mut bytes = server.resident_bytes()?;
    let mut since = Instant::now();
    while since.elapsed() < SETTLED_AFTER && start.elapsed() < SETTLE_LIMIT {
        thread::sleep(Duration::from_millis(50));
        let now = server.resident_bytes()?;
        if now != bytes {
            bytes = now;
            since = Instant::now();
        }
    }
    Ok(bytes)
}
