//! Server CPU of EVALSHA and FCALL, driven by redis-benchmark. All servers run side by side and take turns.

use anyhow::{Context, Result, ensure};

use super::{KEY, KEYS, Plan, bulk_reply, cpu, load, take_turns, title};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::store::driver::Driver;
use crate::store::servers::{Contender, Server, Stage};
use crate::store::workloads::preload;
use crate::wire::Connection;

/// The pipeline at which the goals are judged.
const JUDGED: usize = 16;

/// A script, and by which factor its server CPU should be below redis-server's.
struct Script {
    name: &'static str,
    label: &'static str,
    kind: Kind,
    source: &'static str,
    /// Keys and arguments behind the number of keys, which is 1.
    arguments: &'static [&'static str],
    goal: Option<f64>,
    /// Requests of the run that finds out how fast a server is.
    trial: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Loaded by SCRIPT LOAD, called by EVALSHA.
    Script,
    /// Loaded by FUNCTION LOAD, called by FCALL under this name.
    Function(&'static str),
}

const SCRIPTS: [Script; 4] = [
    Script {
        name: "get",
        label: "EVALSHA of a GET",
        kind: Kind::Script,
        source: "return redis.call('GET', KEYS[1])",
        arguments: &[KEY],
        goal: Some(1.2),
        trial: 20_000,
    },
    Script {
        name: "fcall",
        label: "FCALL of a GET",
        kind: Kind::Function("bench_get"),
        source: "#!lua name=bench\n\
            redis.register_function('bench_get', function(keys) return redis.call('GET', keys[1]) end)",
        arguments: &[KEY],
        goal: None,
        trial: 20_000,
    },
    Script {
        name: "limiter",
        label: "rate limiter of 20 lines",
        kind: Kind::Script,
        source: LIMITER,
        arguments: &["limit:__rand_int__", "100", "60", "1700000000"],
        goal: Some(1.2),
        trial: 10_000,
    },
    Script {
        name: "loop",
        label: "200 calls in a loop",
        kind: Kind::Script,
        source: "local sum = 0 for i = 1, 200 do local v = redis.call('GET', KEYS[1]) \
            if v then sum = sum + #v end end return sum",
        arguments: &[KEY],
        goal: Some(1.3),
        trial: 500,
    },
];

/// A sliding window over two fixed ones.
const LIMITER: &str = "
local key, limit = KEYS[1], tonumber(ARGV[1])
local window, now = tonumber(ARGV[2]), tonumber(ARGV[3])
local current = math.floor(now / window)
local fields = redis.call('HMGET', key, current, current - 1)
local used = tonumber(fields[1] or '0')
local before = tonumber(fields[2] or '0')
local share = 1 - (now % window) / window
local weight = used + before * share
if weight >= limit then
  local left = window - now % window
  return {0, 0, left}
end
used = redis.call('HINCRBY', key, current, 1)
if used == 1 then
  redis.call('HDEL', key, current - 2)
  redis.call('EXPIRE', key, window * 2)
end
local remaining = math.floor(limit - weight - 1)
return {1, remaining, 0}
";

pub(super) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    driver: &Driver<'_>,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let steps = SCRIPTS.len() * plan.pipelines.len() * contenders.len() * (plan.runs + 1);
    let mut task = progress.task("scripts", steps);
    let mut servers = Vec::new();
    for contender in contenders {
        let server = contender.start(stage, &[])?;
        preload(&server, KEYS)?;
        servers.push(server);
    }
    let mut rows = Vec::new();
    for script in &SCRIPTS {
        let mut handle = String::new();
        for server in &servers {
            handle = script
                .load(server)
                .with_context(|| format!("{} does not take {}", server.name(), script.name))?;
        }
        let mut command = vec![script.command(), &handle, "1"];
        command.extend(script.arguments);
        for &pipeline in &plan.pipelines {
            let goal = script.goal.filter(|_| pipeline == JUDGED);
            let name = format!("scripts.{}.p{pipeline}.cpu_us", script.name);
            let label = format!("{} P={pipeline}", script.label);
            let mut row = Row::new(name, label.clone(), "us/op")
                .goal(goal.map(|factor| Goal::RatioAtMost(1.0 / factor)));
            let load = load(plan, &command, pipeline, script.trial);
            let runs = take_turns(driver, plan, load, &servers, &label, &mut task)?;
            for (server, runs) in servers.iter().zip(&runs) {
                row.add(server.name(), cpu(runs)?);
            }
            rows.push(report.shown(row));
        }
    }
    report.section(title("Server CPU of scripts", plan), rows);
    Ok(())
}

impl Script {
    fn command(&self) -> &'static str {
        match self.kind {
            Kind::Script => "EVALSHA",
            Kind::Function(_) => "FCALL",
        }
    }

    /// Loads the script and returns the word it is called by: its digest, or the function's name.
    fn load(&self, server: &Server) -> Result<String> {
        let mut connection = Connection::open(server.address())?;
        let source = self.source.as_bytes();
        match self.kind {
            Kind::Script => {
                let digest = bulk_reply(&mut connection, &[b"SCRIPT", b"LOAD", source])?;
                ensure!(digest.len() == 40, "SCRIPT LOAD replied {digest:?}");
                Ok(digest)
            }
            Kind::Function(name) => {
                bulk_reply(&mut connection, &[b"FUNCTION", b"LOAD", source])?;
                Ok(name.to_owned())
            }
        }
    }
}
