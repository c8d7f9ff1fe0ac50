//! What a configuration with many databases costs when nearly all of them are empty.

use std::time::Instant;

use anyhow::Result;

use crate::report::{Goal, Row};
use crate::stats::Sample;
use crate::store::driver::Load;
use crate::store::large::{Setting, Subject};
use crate::store::servers::Contender;
use crate::store::workloads::requests_lasting;
use crate::wire::Connection;

const FEW: &str = "16";
const MANY: &str = "10000";
const MILLION: &str = "1000000";
const KEYS: usize = 100_000;
/// Round trips of the PING measurement; the first tenth is not counted.
const PINGS: usize = 5_000;

/// SET with `maxmemory` at 16 and at 10,000 databases.
pub(super) const SET_WITH_DATABASES: Subject = Subject {
    name: "SET with maxmemory and many databases",
    rows: || {
        let row = |name: &str, label: &str, unit| {
            let label = format!("SET P=16 with maxmemory, {label}");
            Row::new(format!("store.large.databases.{name}"), label, unit)
        };
        vec![
            row("set_16", "16 databases: server CPU", "us/op"),
            row("set_10000", "10,000 databases: server CPU", "us/op"),
            row("set_factor", "10,000 as a multiple of 16", "x").goal(Some(Goal::AtMost(1.1))),
        ]
    },
    measure: |setting, contender| {
        let few = start(setting, contender, FEW)?;
        let many = start(setting, contender, MANY)?;
        let mut load = Load {
            command: &["SET", "key:__rand_int__", "xxxxxxxxxxxxxxxx"],
            pipeline: 16,
            connections: setting.plan.connections,
            keys: KEYS,
            requests: 20_000,
            seconds: setting.plan.run_seconds,
        };
        // Each at its own speed: with one number of requests for both, the slow one would take minutes.
        let mut samples = [Vec::new(), Vec::new()];
        let mut requests = [0; 2];
        for (requests, server) in requests.iter_mut().zip([&few, &many]) {
            let trial = setting.driver.run(load, server)?;
            *requests = requests_lasting(trial.operations_per_second, load.seconds);
        }
        for _ in 0..setting.plan.runs {
            for (index, server) in [&few, &many].into_iter().enumerate() {
                load.requests = requests[index];
                let run = setting.driver.run(load, server)?;
                samples[index].push(run.cpu_us_per_operation);
            }
        }
        let medians = samples.map(|values| Sample::new(values).map_or(f64::NAN, |s| s.median()));
        Ok(vec![medians[0], medians[1], medians[1] / medians[0]])
    },
};

/// PING with a million databases.
pub(super) const PING_WITH_DATABASES: Subject = Subject {
    name: "PING with a million databases",
    rows: || {
        vec![
            Row::new(
                "store.large.databases.ping",
                "PING with 1,000,000 databases: p50",
                "us",
            )
            .goal(Some(Goal::RatioAtMost(1.1))),
        ]
    },
    measure: |setting, contender| {
        let server = contender.start(setting.stage, &[("databases", MILLION)])?;
        let mut connection = Connection::open(server.address())?;
        let mut waits_us = Vec::new();
        let pings = setting.size(PINGS);
        for number in 0..pings {
            let sent = Instant::now();
            connection.command(&[b"PING"])?;
            if number >= pings / 10 {
                waits_us.push(sent.elapsed().as_secs_f64() * 1e6);
            }
        }
        let median = Sample::new(waits_us).map_or(f64::NAN, |waits| waits.median());
        Ok(vec![median])
    },
};

fn start(
    setting: &Setting<'_>,
    contender: &Contender,
    databases: &str,
) -> Result<crate::store::servers::Server> {
    let directives = [("databases", databases), ("maxmemory", "4gb")];
    contender.start(setting.stage, &directives)
}
