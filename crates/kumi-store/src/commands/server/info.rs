//! INFO: the server's state, in sections of `field:value` lines.
//!
//! Field names and their order are Redis's, so that dashboards find them. A field for something
//! that does not exist here (replicas, forks, eviction, Lua) is shown with the value Redis has
//! while it is unused.

mod sections;

use crate::base::error::CommandResult;
use crate::engine::command::{Command, category, flag};
use crate::engine::host::Host;
use crate::engine::store::Store;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "info",
    arity: -1,
    flags: flag::LOADING | flag::STALE,
    categories: category::DANGEROUS,
    summary: "Describes the server and its statistics.",
    usage: "[section [section ...]]",
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    run: info,
    ..Command::BASE
}];

/// Sections of the reply, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Server,
    Clients,
    Memory,
    Persistence,
    Stats,
    Replication,
    Cpu,
    Modules,
    CommandStats,
    ErrorStats,
    LatencyStats,
    Cluster,
    Keyspace,
    Debug,
}

impl Section {
    const ALL: [Self; 14] = [
        Self::Server,
        Self::Clients,
        Self::Memory,
        Self::Persistence,
        Self::Stats,
        Self::Replication,
        Self::Cpu,
        Self::Modules,
        Self::CommandStats,
        Self::ErrorStats,
        Self::LatencyStats,
        Self::Cluster,
        Self::Keyspace,
        Self::Debug,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Clients => "Clients",
            Self::Memory => "Memory",
            Self::Persistence => "Persistence",
            Self::Stats => "Stats",
            Self::Replication => "Replication",
            Self::Cpu => "CPU",
            Self::Modules => "Modules",
            Self::CommandStats => "Commandstats",
            Self::ErrorStats => "Errorstats",
            Self::LatencyStats => "Latencystats",
            Self::Cluster => "Cluster",
            Self::Keyspace => "Keyspace",
            Self::Debug => "Debug",
        }
    }

    /// Part of the default reply.
    fn is_default(self) -> bool {
        !matches!(self, Self::CommandStats | Self::LatencyStats | Self::Debug)
    }

    fn is_asked_for(self, word: &[u8]) -> bool {
        match word.to_ascii_lowercase().as_slice() {
            // The debug section is shown only by its name.
            b"all" | b"everything" => self != Self::Debug,
            b"default" => self.is_default(),
            name => self.title().as_bytes().eq_ignore_ascii_case(name),
        }
    }
}

fn info(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let wanted = Section::ALL.into_iter().filter(|section| {
        if args.len() == 1 {
            section.is_default()
        } else {
            args.iter().skip(1).any(|word| section.is_asked_for(word))
        }
    });
    let facts = ctx.host.facts();
    let mut page = sections::Page::new(ctx.report(), facts);
    for section in wanted {
        page.add(section);
    }
    let text = page.into_text();
    ctx.reply.verbatim_text(&text);
    Ok(())
}

impl Store {
    /// The sections that INFO answers without arguments, for a report.
    pub fn info(&self, host: &mut dyn Host) -> String {
        let facts = host.facts();
        let mut page = sections::Page::new(self.report(self.now), facts);
        for section in Section::ALL.into_iter().filter(|it| it.is_default()) {
            page.add(section);
        }
        String::from_utf8_lossy(&page.into_text()).replace('\r', "")
    }
}

#[cfg(test)]
mod tests;
