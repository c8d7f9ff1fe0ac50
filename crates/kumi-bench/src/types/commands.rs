//! Server CPU per command, on many small values and on a large one.
//!
//! All servers run side by side with the same values and take turns, run by run. What a run adds or takes away is undone
//! before the next one, unmeasured, so that every run meets values of the same size.

use anyhow::{Context, Result};

use crate::progress::Task;
use crate::report::{Goal, Report, Row};
use crate::store::client::{CONNECTIONS, Client, Usage};
use crate::store::servers::Server;
use crate::types::Setting;
use crate::types::options::Family;
use crate::types::plan::Plan;
use crate::types::requests::{Op, Requests, SMALL_ELEMENTS, Size, reader_key};
use crate::types::sample;
use crate::types::values::{self, LARGE, Shape, key};
use crate::wire::{self, Connection};

/// Small streams are made entry by entry; this many times fewer of them make do.
const FEWER_STREAMS: usize = 4;
/// Above this share of time spent waiting for a core, a run was disturbed.
const DISTURBED_PERCENT: f64 = 5.0;

/// A measured command: its name in figures, its label, its type, how many times less CPU than Redis is wanted on a
/// large value at pipeline 16 (`None`: it is measured on small values only).
struct Command {
    op: Op,
    name: &'static str,
    label: &'static str,
    family: Family,
    large: Option<f64>,
}

const fn command(
    op: Op,
    name: &'static str,
    label: &'static str,
    family: Family,
    large: Option<f64>,
) -> Command {
    Command {
        op,
        name,
        label,
        family,
        large,
    }
}

const COMMANDS: [Command; 14] = [
    command(Op::Lpush, "lpush", "LPUSH", Family::List, Some(1.5)),
    command(Op::Rpop, "rpop", "RPOP", Family::List, Some(1.5)),
    command(Op::Lrange, "lrange", "LRANGE 100", Family::List, Some(1.5)),
    command(Op::Hset, "hset", "HSET", Family::Hash, Some(1.5)),
    command(Op::Hget, "hget", "HGET", Family::Hash, Some(1.5)),
    command(Op::Hgetall, "hgetall", "HGETALL", Family::Hash, None),
    command(Op::Sadd, "sadd", "SADD", Family::Set, Some(1.5)),
    command(
        Op::Sismember,
        "sismember",
        "SISMEMBER",
        Family::Set,
        Some(1.5),
    ),
    command(Op::Zadd, "zadd", "ZADD", Family::Zset, Some(2.0)),
    command(Op::Zrank, "zrank", "ZRANK", Family::Zset, Some(2.0)),
    command(
        Op::Zrange,
        "zrange",
        "ZRANGE of 10",
        Family::Zset,
        Some(1.5),
    ),
    command(Op::Zpopmin, "zpopmin", "ZPOPMIN", Family::Zset, Some(1.5)),
    command(Op::Xadd, "xadd", "XADD", Family::Stream, Some(1.5)),
    command(
        Op::Xread,
        "xreadgroup",
        "XREADGROUP + XACK",
        Family::Stream,
        Some(1.5),
    ),
];
/// The same for small values.
const SMALL_FACTOR: f64 = 1.8;

/// A row of the report.
struct Workload<'a> {
    command: &'a Command,
    size: Size,
    pipeline: usize,
}

impl Workload<'_> {
    fn name(&self) -> String {
        let size = match self.size {
            Size::Small => "small",
            Size::Large => "large",
        };
        format!("types.{}.{size}.p{}", self.command.name, self.pipeline)
    }

    fn row(&self) -> Row {
        let size = match self.size {
            Size::Small => "small",
            Size::Large => "large",
        };
        let label = format!("{}, {size}, P={}", self.command.label, self.pipeline);
        Row::new(self.name(), label, "us/op").goal(self.goal())
    }

    fn goal(&self) -> Option<Goal> {
        match (self.pipeline, self.size) {
            (1, _) => Some(Goal::RatioAtMost(1.0)),
            (16, Size::Small) => Some(Goal::RatioAtMost(1.0 / SMALL_FACTOR)),
            (16, Size::Large) => self.command.large.map(|f| Goal::RatioAtMost(1.0 / f)),
            _ => None,
        }
    }
}

/// Measures the commands that were asked for, type by type. A type that fails leaves the others their figures.
pub(super) fn measure(setting: &Setting<'_>, report: &mut Report) -> Result<()> {
    let plan = &setting.plan;
    let mut rows = Vec::new();
    let mut waited: f64 = 0.0;
    let mut failed = Ok(());
    for family in [
        Family::List,
        Family::Hash,
        Family::Set,
        Family::Zset,
        Family::Stream,
    ] {
        let outcome = measure_family(setting, family, |row, most| {
            waited = waited.max(most);
            rows.push(report.shown(row));
        });
        if let Err(error) = outcome {
            setting.progress.line(&format!("{family}: {error:#}"));
            failed = Err(error.context(format!("some commands of type {family}")));
        }
    }
    if waited > DISTURBED_PERCENT {
        report.note(format!(
            "disturbed: a server waited for its core for up to {waited:.0}% of the time it ran"
        ));
    }
    let title = format!(
        "Commands: server CPU, {CONNECTIONS} connections, {} small values, {} elements in large ones, median of {}",
        plan.keys, plan.elements, plan.runs
    );
    report.section(title, rows);
    failed
}

/// Measures the commands of one type. `done` gets each row, and the most that a server waited for its core.
fn measure_family(
    setting: &Setting<'_>,
    family: Family,
    mut done: impl FnMut(Row, f64),
) -> Result<()> {
    let (plan, contenders) = (&setting.plan, setting.contenders);
    let workloads = workloads(setting, family);
    if workloads.is_empty() {
        return Ok(());
    }
    let steps = contenders.len() * (1 + workloads.len() * plan.runs);
    let mut task = setting.progress.task("commands", steps);
    let keys = match family {
        Family::Stream => plan.keys.div_ceil(FEWER_STREAMS),
        _ => plan.keys,
    };
    let elements = plan.elements;
    let mut parties = Vec::new();
    for contender in contenders {
        task.begin(&format!(
            "loading values of type {family} into {}",
            contender.name()
        ));
        let server = contender.start(setting.stage, &[])?;
        load(&server, family, keys, elements)
            .with_context(|| format!("cannot load values into {}", server.name()))?;
        let client = Client::open(&server)?;
        let requests = Requests::new(keys, elements);
        parties.push(Party {
            server,
            client,
            requests,
        });
        task.end();
    }
    for workload in workloads {
        let (row, most) = turns(&workload, plan, &mut parties, &mut task)?;
        done(row, most);
    }
    Ok(())
}

fn workloads(setting: &Setting<'_>, family: Family) -> Vec<Workload<'static>> {
    let mut workloads = Vec::new();
    for command in COMMANDS.iter().filter(|command| command.family == family) {
        for size in [Size::Small, Size::Large] {
            if size == Size::Large && command.large.is_none() {
                continue;
            }
            for &pipeline in &setting.plan.pipelines {
                let workload = Workload {
                    command,
                    size,
                    pipeline: pipeline.max(1),
                };
                if setting.args.wants_row(family, &workload.name()) {
                    workloads.push(workload);
                }
            }
        }
    }
    workloads
}

/// A server, the connections to it and the state of its requests.
struct Party {
    server: Server,
    client: Client,
    requests: Requests,
}

impl Party {
    fn run(&mut self, workload: &Workload<'_>, requests: usize) -> Result<Usage> {
        let Workload { command, size, .. } = *workload;
        let generator = &mut self.requests;
        let usage = self.client.measure(
            &self.server,
            requests,
            workload.pipeline,
            |connection, out| generator.push(command.op, size, connection, out),
        )?;
        if let Some(undo) = command.op.undo(size) {
            self.client
                .send(requests, 16, |connection, out| {
                    generator.push(undo, size, connection, out);
                })
                .with_context(|| format!("{undo:?} failed"))?;
        }
        Ok(usage)
    }
}

/// The runs of one row, server after server. Also the most that a server waited for its core.
fn turns(
    workload: &Workload<'_>,
    plan: &Plan,
    parties: &mut [Party],
    task: &mut Task,
) -> Result<(Row, f64)> {
    let requests = plan.requests_at(workload.pipeline);
    let mut usages: Vec<Vec<Usage>> = vec![Vec::new(); parties.len()];
    let count = parties.len();
    for round in 0..plan.runs {
        for turn in 0..count {
            let which = (round + turn) % count;
            let party = &mut parties[which];
            task.begin(&format!(
                "{} {}: run {} of {}",
                workload.name(),
                party.server.name(),
                round + 1,
                plan.runs
            ));
            let usage = party
                .run(workload, requests)
                .with_context(|| workload.name())?;
            usages[which].push(usage);
            task.end();
        }
    }
    let mut row = workload.row();
    let mut waited: f64 = 0.0;
    for (party, usages) in parties.iter().zip(usages) {
        waited = usages
            .iter()
            .map(|usage| usage.waited_percent)
            .fold(waited, f64::max);
        let cpu = usages.iter().map(|usage| usage.cpu_us_per_request);
        row.add(party.server.name(), sample(cpu.collect())?);
    }
    Ok((row, waited))
}

/// Makes the small values of a type and the large one.
fn load(server: &Server, family: Family, keys: usize, elements: usize) -> Result<()> {
    let address = server.address();
    if family == Family::Stream {
        return load_streams(server, keys, elements);
    }
    let shape = Shape::short(family, SMALL_ELEMENTS);
    wire::load(address, keys, |index, out| {
        shape.push(out, &key(family, index));
    })?;
    Shape::short(family, elements).load_large(address)?;
    wire::check_count(address, keys + 1)
}

/// Streams are made entry by entry, each with a group. Large ones are read by one connection each; one more is written.
fn load_streams(server: &Server, keys: usize, elements: usize) -> Result<()> {
    let address = server.address();
    let per_stream = SMALL_ELEMENTS + 1;
    wire::load(address, keys * per_stream, |index, out| {
        let key = key(Family::Stream, index / per_stream);
        match index % per_stream {
            SMALL_ELEMENTS => values::push_group(out, &key),
            entry => values::push_entry(out, &key, entry + 1),
        }
    })?;
    let per_reader = elements.div_ceil(CONNECTIONS);
    wire::load(address, per_reader * CONNECTIONS, |index, out| {
        let key = reader_key(index % CONNECTIONS);
        values::push_entry(out, &key, index / CONNECTIONS + 1);
    })?;
    let mut connection = Connection::open(address)?;
    let mut groups = Vec::new();
    for reader in 0..CONNECTIONS {
        values::push_group(&mut groups, &reader_key(reader));
    }
    connection.send(&groups)?;
    connection.replies(CONNECTIONS)?;
    wire::load(address, elements, |index, out| {
        values::push_entry(out, LARGE, index + 1);
    })?;
    wire::check_count(address, keys + CONNECTIONS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_goal_at_pipelines_1_and_16() {
        for command in &COMMANDS {
            for pipeline in [1, 16] {
                let workload = Workload {
                    command,
                    size: Size::Small,
                    pipeline,
                };
                assert!(workload.goal().is_some(), "{}", workload.name());
            }
        }
    }
}
