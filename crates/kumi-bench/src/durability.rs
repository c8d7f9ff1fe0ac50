//! `kumi-bench durability`: saving while clients write, loading, and the append-only file, beside redis-server.
//!
//! - saving: BGSAVE while connections write without a pause; what a probe waits for a reply, what memory the server
//!   takes besides its data (PSS, summed over the server and its children), what throughput the writers keep
//! - loading: how long both servers take to load the RDB file and the append-only file that redis-server wrote
//! - log: SET with an append-only file, and how many fsyncs a SET causes (counted by Linux's perf)
//! - slow-disk: the longest wait of a write during BGSAVE and BGREWRITEAOF on a disk whose syncs take long
//! - tls: GET over TLS
//!
//! Clients and the probe run in this process. A server that refuses a setting is left out with a note.

mod loading;
mod log;
mod saving;
mod slow_disk;
mod tls;
mod writers;

use anyhow::Result;

use crate::args::{DurabilityArgs, DurabilityPart};
use crate::progress::Progress;
use crate::report::Report;
use crate::store::servers::{self, Contender, Kind, Stage};

/// What one measurement needs.
struct Bench<'a> {
    args: &'a DurabilityArgs,
    stage: Stage,
    contenders: Vec<Contender>,
    progress: Progress,
}

pub(crate) fn run(args: &DurabilityArgs) -> Result<()> {
    let progress = Progress::new();
    let hint = "install Debian's redis-server package, or name one with --redis-server";
    let redis = servers::find_program(&args.redis_server, hint)?;
    let bench = Bench {
        contenders: vec![
            servers::kumi(args.kumi_server.as_deref(), &progress)?,
            Contender::new("redis", Kind::Redis, redis),
        ],
        stage: Stage::new(args.no_pin)?,
        args,
        progress,
    };
    let mut report = Report::default();
    crate::store::describe(&bench.stage, &bench.contenders, &mut report);
    if args.wants(DurabilityPart::Saving) {
        saving::measure(&bench, &mut report)?;
    }
    if args.wants(DurabilityPart::Loading) {
        loading::measure(&bench, &mut report)?;
    }
    if args.wants(DurabilityPart::Log) {
        log::measure(&bench, &mut report)?;
    }
    if args.wants(DurabilityPart::SlowDisk) {
        slow_disk::measure(&bench, &mut report)?;
    }
    if args.wants(DurabilityPart::Tls) {
        tls::measure(&bench, &mut report)?;
    }
    report.end();
    Ok(())
}

/// The key of an index, 16 bytes long.
fn key(index: usize) -> String {
    format!("key:{index:012}")
}

/// A value of 16 bytes.
const VALUE: &[u8] = b"sixteen bytes ok";
