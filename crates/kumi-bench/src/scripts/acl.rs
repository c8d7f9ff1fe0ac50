//! What ACL rules cost: GET and SET by two users of the same server, one without restrictions and one with rules by
//! category and by pattern.
//!
//! Both users have connections to the same process and send the same requests in alternating slices of a few
//! milliseconds. A ratio is that of two neighbouring slices, and the median of many ratios counts: what disturbs the
//! machine for longer than a slice disturbs both users, and the layout of the process's memory is the same for both.

use anyhow::{Context, Result};

use super::{CONNECTIONS, KEYS, Plan};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server, Stage};
use crate::store::workloads::preload;
use crate::wire::{self, Connection};

/// By which factor rules may raise the CPU time of a command.
const ALLOWED: f64 = 1.05;
/// Batches of requests, used in turns.
const BATCHES: usize = 2_000;
/// Pipelines of requests in one slice.
const SLICE: usize = 1_000;
/// Slices of each user for one run of the plan.
const SLICES_PER_RUN: usize = 20;
/// The user without restrictions, and the one with rules.
const USERS: [&str; 2] = ["free", "limited"];
const PASSWORD: &str = "secret";
const SEED: u64 = 16;

pub(super) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let workloads: Vec<(&str, usize)> = ["get", "set"]
        .into_iter()
        .flat_map(|name| plan.pipelines.iter().map(move |&pipeline| (name, pipeline)))
        .collect();
    let mut task = progress.task("ACL", workloads.len() * contenders.len());
    let mut rows: Vec<[Row; 2]> = Vec::new();
    for (name, pipeline) in &workloads {
        let label = format!("{} P={pipeline}", name.to_uppercase());
        let figure = |unit| format!("acl.{name}.p{pipeline}.{unit}");
        let ratio = Row::new(
            figure("ratio"),
            format!("{label}: with rules / without"),
            "",
        );
        rows.push([
            ratio.goal(Some(Goal::AtMost(ALLOWED))),
            Row::new(figure("cpu_us"), format!("{label} with rules"), "us/op"),
        ]);
    }
    for contender in contenders {
        let server = contender.start(stage, &[])?;
        preload(&server, KEYS)?;
        add_users(&server)?;
        for ((name, pipeline), [ratio, cpu]) in workloads.iter().zip(&mut rows) {
            task.begin(&format!("{name} P={pipeline} {}", contender.name()));
            let slices = plan.runs * SLICES_PER_RUN;
            let (ratios, costs) = take_turns(&server, name, *pipeline, slices)?;
            ratio.add(contender.name(), ratios);
            cpu.add(contender.name(), costs);
            task.end();
        }
    }
    report.section(
        format!(
            "Server CPU with ten users and pattern rules: {CONNECTIONS} connections, {KEYS} keys, median of {} slices",
            plan.runs * SLICES_PER_RUN
        ),
        rows.into_iter().flatten().collect(),
    );
    Ok(())
}

/// Ratios of neighbouring slices of the two users, and what a command of the limited one costs in microseconds.
fn take_turns(
    server: &Server,
    name: &str,
    pipeline: usize,
    slices: usize,
) -> Result<(Sample, Sample)> {
    let batches = batches(name, pipeline);
    let mut users = Vec::new();
    for user in USERS {
        users.push(connect(server, user)?);
    }
    let mut next = [0, 0];
    let mut slice = |user: usize| -> Result<f64> {
        let before = server.cpu_time()?;
        let mut sent = 0;
        while sent < SLICE * pipeline {
            let first = next[user];
            for (index, connection) in users[user].iter_mut().enumerate() {
                connection.send(&batches[(first + index) % BATCHES])?;
            }
            for connection in &mut users[user] {
                connection.replies(pipeline)?;
            }
            next[user] += CONNECTIONS;
            sent += CONNECTIONS * pipeline;
        }
        let used = server.cpu_time()?.since(before);
        Ok(used.busy_ns as f64 / 1000.0 / sent as f64)
    };
    let (mut ratios, mut costs) = (Vec::new(), Vec::new());
    // The first pair of slices warms up.
    for round in 0..=slices {
        // Neither user is always the first.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut spent = [0.0; 2];
        for user in order {
            spent[user] = slice(user)?;
        }
        if round > 0 {
            ratios.push(spent[1] / spent[0]);
            costs.push(spent[1]);
        }
    }
    let ratios = Sample::new(ratios).context("no slice was measured")?;
    Ok((ratios, Sample::new(costs).context("no slice was measured")?))
}

/// Pipelines of requests for random keys.
fn batches(name: &str, pipeline: usize) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut batch = || {
        let mut bytes = Vec::new();
        for _ in 0..pipeline {
            let key = format!("key:{:012}", random.usize(..KEYS));
            match name {
                "get" => wire::push_command(&mut bytes, &[b"GET", key.as_bytes()]),
                _ => wire::push_command(&mut bytes, &[b"SET", key.as_bytes(), &[b'x'; 16]]),
            }
        }
        bytes
    };
    (0..BATCHES).map(|_| batch()).collect()
}

fn connect(server: &Server, user: &str) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(server.address())?;
        let words: [&[u8]; 3] = [b"AUTH", user.as_bytes(), PASSWORD.as_bytes()];
        connection.command(&words)?;
        connections.push(connection);
    }
    Ok(connections)
}

/// Ten users besides the default one: nine with rules of their own, eight of which stay idle, and one without
/// restrictions.
fn add_users(server: &Server) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    let mut set = |name: &str, rules: &str| -> Result<()> {
        let password = format!(">{PASSWORD}");
        let words = ["ACL", "SETUSER", name, "on", &password];
        let words = words.into_iter().chain(rules.split(' '));
        let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
        connection.command(&words)?;
        Ok(())
    };
    for number in 0..8 {
        let rules = format!("~app{number}:* %R~shared:* +@read +@write -@dangerous");
        set(&format!("user{number}"), &rules)?;
    }
    set(USERS[0], "~* &* +@all")?;
    set(
        USERS[1],
        "resetkeys ~limit:* %R~shared:* ~key:* -@all +@read +@write +@connection -@dangerous +config|get",
    )
}
