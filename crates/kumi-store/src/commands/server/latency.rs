//! LATENCY: spikes above `latency-monitor-threshold`, and how long commands take.

mod report;

use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::CommandId;
use crate::commands::help;
use crate::engine::command::{Command, flag};
use crate::engine::stats::CommandStats;
use crate::engine::store::ctx::{Ctx, Parts};
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "latency",
    arity: -2,
    since: "2.8.13",
    complexity: "Depends on subcommand.",
    summary: "Diagnoses latency.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: 2,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE,
    since: "2.8.13",
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "latest",
        summary: "Returns the last spike of each event: when, how long, and the longest so far.",
        run: latest,
        ..SUB
    },
    Command {
        name: "history",
        arity: 3,
        summary: "Returns the spikes of an event: when, and how long.",
        usage: "event",
        run: history,
        ..SUB
    },
    Command {
        name: "reset",
        arity: -2,
        summary: "Forgets the spikes of the given events, or of all.",
        usage: "[event [event ...]]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: reset,
        ..SUB
    },
    Command {
        name: "histogram",
        arity: -2,
        since: "7.0.0",
        complexity: "O(N) where N is the number of commands with latency information being retrieved.",
        summary: "Returns how many calls of each command took no longer than each of some durations.",
        usage: "[command [command ...]]",
        run: histogram,
        ..SUB
    },
    Command {
        name: "doctor",
        summary: "Says in words what the spikes look like.",
        run: doctor,
        ..SUB
    },
    Command {
        name: "graph",
        arity: 3,
        summary: "Draws the spikes of an event.",
        usage: "event",
        run: graph,
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

fn latest(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let Parts {
        telemetry, reply, ..
    } = ctx.parts();
    let events = &telemetry.latency.events;
    reply.array(events.len());
    for (name, history) in events {
        let (unix_s, ms) = history.samples.back().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(name);
        reply.integer(unix_s.cast_signed());
        reply.integer(ms.cast_signed());
        reply.integer(history.max_ms.cast_signed());
    }
    Ok(())
}

fn history(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Parts {
        telemetry, reply, ..
    } = ctx.parts();
    let Some(history) = telemetry.latency.event(&args[2]) else {
        reply.array(0);
        return Ok(());
    };
    reply.array(history.samples.len());
    for &(unix_s, ms) in &history.samples {
        reply.array(2);
        reply.integer(unix_s.cast_signed());
        reply.integer(ms.cast_signed());
    }
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let events = &mut ctx.telemetry().latency.events;
    let before = events.len();
    if args.len() == 2 {
        events.clear();
    } else {
        events.retain(|name, _| args.iter().skip(2).all(|event| name.as_bytes() != event));
    }
    let removed = before - events.len();
    ctx.reply.count(removed);
    Ok(())
}

fn histogram(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Parts {
        index,
        telemetry,
        reply,
        ..
    } = ctx.parts();
    let ids: Vec<CommandId> = if args.len() == 2 {
        index.iter().map(|(id, _)| id).collect()
    } else {
        let named = args.iter().skip(2).filter_map(|name| index.find_full(name));
        named
            .flat_map(|id| std::iter::once(id).chain(index.get(id).subcommands.iter().copied()))
            .collect()
    };
    let called: Vec<(&str, &CommandStats)> = ids
        .into_iter()
        .map(|id| {
            let stats = &telemetry.stats.commands[usize::from(id.0)];
            (&*index.get(id).full_name, stats)
        })
        .filter(|(_, stats)| stats.histogram.total() > 0)
        .collect();
    reply.map(called.len());
    for (name, stats) in called {
        reply.bulk(name);
        reply.map(2);
        reply.bulk("calls");
        reply.integer(stats.histogram.total().cast_signed());
        reply.bulk("histogram_usec");
        let bounds = stats.histogram.doublings();
        reply.map(bounds.len());
        for (bound_us, calls) in bounds {
            reply.integer(bound_us.cast_signed());
            reply.integer(calls.cast_signed());
        }
    }
    Ok(())
}

fn doctor(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let text = report::doctor(&ctx.telemetry().latency);
    ctx.reply.verbatim_text(text.as_bytes());
    Ok(())
}

fn graph(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_s = ctx.now.unix_us / 1_000_000;
    let Some(history) = ctx.telemetry().latency.event(&args[2]) else {
        return Err(CommandError::new(
            [b"ERR No samples available for event '", &args[2], b"'"].concat(),
        ));
    };
    let mut text = args[2].to_vec();
    text.extend_from_slice(report::graph(history, now_s).as_bytes());
    ctx.reply.verbatim_text(&text);
    Ok(())
}

#[cfg(test)]
mod tests;
