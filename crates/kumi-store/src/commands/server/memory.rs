//! MEMORY: where the bytes are.
//!
//! Figures are what the engine accounts for (data, indexes, client buffers) and what the host
//! knows of the process. There is no look into the allocator.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::{help, parse};
use crate::data::keyspace::{Entry, Look};
use crate::engine::command::{Command, flag};
use crate::engine::host::HostFacts;
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use crate::engine::store::report::Report;
use kumi_resp::Args;
use std::fmt::Write;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "memory",
    arity: -2,
    since: "4.0.0",
    complexity: "Depends on subcommand.",
    summary: "Diagnoses the use of memory.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: 2,
    since: "4.0.0",
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "usage",
        arity: -3,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, key::RO)],
        complexity: "O(N) where N is the number of samples.",
        summary: "Returns how many bytes a key takes, its value and place in the table included.",
        usage: "key [SAMPLES count]",
        tips: &[],
        run: usage,
        ..SUB
    },
    Command {
        name: "stats",
        summary: "Returns where memory went, figure by figure.",
        run: stats,
        ..SUB
    },
    Command {
        name: "doctor",
        summary: "Says in words whether memory looks well.",
        run: doctor,
        ..SUB
    },
    Command {
        name: "purge",
        complexity: "Depends on how much memory is allocated, could be slow",
        summary: "Asks for unused memory to be given back; the allocator does that by itself.",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        run: purge,
        ..SUB
    },
    Command {
        name: "malloc-stats",
        complexity: "Depends on how much memory is allocated, could be slow",
        summary: "Returns the name of the allocator, which has no statistics.",
        run: malloc_stats,
        ..SUB
    },
    Command {
        name: "help",
        flags: flag::LOADING | flag::STALE,
        summary: "Describes the subcommands.",
        tips: &[],
        run: help::from_rows,
        ..SUB
    },
];

fn usage(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    // Every value keeps the sum of its bytes, so nothing is sampled: the count is checked and then means nothing.
    // It may be given more than once; the first invalid value is reported.
    let mut options = OptionReader::new(args, 3);
    while let Some(word) = options.word() {
        let count = options.value()?;
        if *word != *b"samples" || parse::integer(count)? < 0 {
            return Err(CommandError::SYNTAX);
        }
    }
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.look(&args[2], Look::Quiet) {
        None => reply.null(),
        Some(entry) => reply.count(entry_bytes(entry)),
    }
    Ok(())
}

/// An entry, its slot in the table, and its record in the deadline index.
fn entry_bytes(entry: &Entry) -> usize {
    const SLOT_BYTES: usize = 9;
    const DEADLINE_BYTES: usize = 16;
    let indexed = if entry.deadline().is_some() {
        DEADLINE_BYTES
    } else {
        0
    };
    entry.heap_bytes() + SLOT_BYTES + indexed
}

fn stats(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let memory = Overview::take(ctx);
    let lua_caches = ctx.scripts().cache_bytes();
    let (_, function_caches) = ctx.scripts().library_bytes();
    let reply = &mut ctx.reply;
    let figures_before = [
        ("peak.allocated", memory.peak),
        ("total.allocated", memory.used),
        ("startup.allocated", memory.startup),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", memory.clients),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("lua.caches", lua_caches),
        ("functions.caches", function_caches),
    ];
    let figures_after = [
        ("overhead.total", memory.overhead()),
        ("keys.count", memory.keys),
        ("keys.bytes-per-key", memory.bytes_per_key()),
        ("dataset.bytes", memory.dataset()),
    ];
    let rest = 13;
    reply.map(figures_before.len() + memory.databases.len() + figures_after.len() + rest);
    for (name, bytes) in figures_before {
        reply.bulk(name);
        reply.count(bytes);
    }
    for &(db, table, deadlines) in &memory.databases {
        reply.bulk(format!("db.{db}"));
        reply.map(3);
        reply.bulk("overhead.hashtable.main");
        reply.count(table);
        reply.bulk("overhead.hashtable.expires");
        reply.count(deadlines);
        reply.bulk("overhead.hashtable.slot-to-keys");
        reply.count(0);
    }
    for (name, figure) in figures_after {
        reply.bulk(name);
        reply.count(figure);
    }
    let mut share = |name: &str, value: f64| {
        reply.bulk(name);
        reply.double(value);
    };
    share("dataset.percentage", memory.dataset_percentage());
    share("peak.percentage", memory.peak_percentage());
    for (name, bytes) in [
        ("allocator.allocated", memory.used),
        ("allocator.active", memory.allocator_resident()),
        ("allocator.resident", memory.allocator_resident()),
    ] {
        reply.bulk(name);
        reply.count(bytes);
    }
    // Nothing is known between the engine's own count and the process's size, so all of the
    // difference shows as fragmentation and none of it as overhead of the allocator.
    for (name, ratio, bytes) in [
        (
            "allocator-fragmentation",
            memory.fragmentation(),
            memory.fragmentation_bytes(),
        ),
        ("allocator-rss", 1.0, 0),
        (
            "rss-overhead",
            memory.overhead_rss_ratio(),
            memory.overhead_rss() as i64,
        ),
        ("", memory.fragmentation(), memory.fragmentation_bytes()),
    ] {
        let (ratio_name, bytes_name) = if name.is_empty() {
            ("fragmentation".into(), "fragmentation.bytes".into())
        } else {
            (format!("{name}.ratio"), format!("{name}.bytes"))
        };
        reply.bulk(ratio_name);
        reply.double(ratio);
        reply.bulk(bytes_name);
        reply.integer(bytes);
    }
    Ok(())
}

fn doctor(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let memory = Overview::take(ctx);
    let text = memory.diagnosis(ctx.settings().maxmemory_bytes);
    ctx.reply.verbatim_text(text.as_bytes());
    Ok(())
}

fn purge(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.host.purge_memory();
    ctx.reply.ok();
    Ok(())
}

fn malloc_stats(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let allocator = ctx.host.facts().allocator;
    let text = format!("Stats not supported for the current allocator ({allocator})");
    ctx.reply.verbatim_text(text.as_bytes());
    Ok(())
}

/// The figures INFO and MEMORY show, taken together so that they add up.
#[derive(Debug, Default)]
pub(super) struct Overview {
    pub(super) used: usize,
    pub(super) peak: usize,
    pub(super) startup: usize,
    pub(super) clients: usize,
    pub(super) keys: usize,
    pub(super) rss: usize,
    /// Of it, what was resident when the server started.
    pub(super) startup_rss: usize,
    /// Index, bytes of the hash table and of the deadline index; databases in use only.
    databases: Vec<(usize, usize, usize)>,
}

impl Overview {
    pub(super) fn take(ctx: &mut Ctx<'_>) -> Self {
        let facts = ctx.host.facts();
        Self::of(ctx.report(), &facts)
    }

    pub(super) fn of(report: Report<'_>, facts: &HostFacts) -> Self {
        let data = report.data;
        let in_use = (0..data.databases()).filter(|&db| data.keys(db) > 0);
        let databases = in_use
            .map(|db| {
                let (table, deadlines) = data.overhead_bytes(db);
                (db, table, deadlines)
            })
            .collect();
        let stats = &report.telemetry.stats;
        Self {
            used: report.used_bytes,
            peak: stats.peak_memory_bytes,
            startup: stats.startup_memory_bytes,
            clients: report.client_bytes,
            keys: data.total_keys(),
            rss: usize::try_from(facts.rss_bytes).unwrap_or(usize::MAX),
            startup_rss: usize::try_from(facts.startup_rss_bytes).unwrap_or(usize::MAX),
            databases,
        }
    }

    /// Everything that is not keys and values.
    pub(super) fn overhead(&self) -> usize {
        let indexes = self
            .databases
            .iter()
            .map(|&(_, table, deadlines)| table + deadlines);
        self.startup + self.clients + indexes.sum::<usize>()
    }

    pub(super) fn dataset(&self) -> usize {
        self.used.saturating_sub(self.overhead())
    }

    pub(super) fn dataset_percentage(&self) -> f64 {
        percentage(self.dataset(), self.used.saturating_sub(self.startup))
    }

    pub(super) fn peak_percentage(&self) -> f64 {
        percentage(self.used, self.peak)
    }

    fn bytes_per_key(&self) -> usize {
        let net = self.used.saturating_sub(self.startup);
        net.checked_div(self.keys).unwrap_or(0)
    }

    /// The process's size, or where the host does not know it, what is accounted for.
    pub(super) fn resident(&self) -> usize {
        if self.rss == 0 { self.used } else { self.rss }
    }

    /// Resident memory without what the program itself took before it held any data: code, stacks and the
    /// allocator's first pages. `used_memory` does not count those, and beside a few keys they are most of the process,
    /// so a ratio of the two would say nothing about fragmentation.
    pub(super) fn allocator_resident(&self) -> usize {
        let grown = self.resident().saturating_sub(self.startup_rss);
        let unaccounted = if self.startup_rss == 0 {
            0
        } else {
            self.startup
        };
        (grown + unaccounted).clamp(self.used.min(self.resident()), self.resident())
    }

    /// Resident memory outside of the allocator.
    pub(super) fn overhead_rss(&self) -> usize {
        self.resident() - self.allocator_resident()
    }

    pub(super) fn overhead_rss_ratio(&self) -> f64 {
        self.resident() as f64 / self.allocator_resident().max(1) as f64
    }

    pub(super) fn fragmentation(&self) -> f64 {
        if self.used == 0 {
            return 1.0;
        }
        self.allocator_resident() as f64 / self.used as f64
    }

    pub(super) fn fragmentation_bytes(&self) -> i64 {
        self.allocator_resident() as i64 - self.used as i64
    }

    fn diagnosis(&self, maxmemory: u64) -> String {
        const SMALL_BYTES: usize = 5 << 20;
        if self.used < SMALL_BYTES {
            return "There is too little data to say anything about its memory.\n".into();
        }
        let mut text = String::new();
        if self.used < self.peak / 3 * 2 {
            let _ = writeln!(
                text,
                "- Memory was much fuller once ({} bytes): the process may keep what it no longer needs.",
                self.peak
            );
        }
        if self.fragmentation() > 2.0 {
            let _ = writeln!(
                text,
                "- The process takes {:.1} times what its data needs.",
                self.fragmentation()
            );
        }
        if maxmemory != 0 && self.used as u64 > maxmemory / 10 * 9 {
            let _ = writeln!(
                text,
                "- More than nine tenths of maxmemory are in use: writes will soon be refused."
            );
        }
        if self.clients > self.used / 2 {
            let _ = writeln!(
                text,
                "- More than half of the memory belongs to clients: look at CLIENT LIST for those that do not read."
            );
        }
        if text.is_empty() {
            return "Memory looks well.\n".into();
        }
        format!("These deserve a look:\n\n{text}")
    }
}

fn percentage(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 * 100.0 / whole as f64
}

#[cfg(test)]
mod tests;
