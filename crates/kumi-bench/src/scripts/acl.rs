//! What ACL rules cost: GET and SET on two kumi-servers, one without rules, and one with ten users whose default user
//! has rules by category and by pattern, so that every command is checked.

use anyhow::Result;

use super::{KEY, KEYS, Plan, cpu, load, take_turns, title};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::store::driver::Driver;
use crate::store::servers::{Contender, Server, Stage};
use crate::store::workloads::preload;
use crate::wire::Connection;

/// The column of the server without rules.
const WITHOUT: &str = "no-rules";
/// By which factor rules may raise the CPU time of a command.
const ALLOWED: f64 = 1.05;
const TRIAL: usize = 20_000;

const WORKLOADS: [(&str, &[&str]); 2] = [
    ("get", &["GET", KEY]),
    ("set", &["SET", KEY, "xxxxxxxxxxxxxxxx"]),
];

pub(super) fn measure(
    stage: &Stage,
    plan: &Plan,
    kumi: &Contender,
    driver: &Driver<'_>,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let steps = WORKLOADS.len() * plan.pipelines.len() * 2 * (plan.runs + 1);
    let mut task = progress.task("ACL", steps);
    let servers = [kumi.start(stage, &[])?, kumi.start(stage, &[])?];
    for server in &servers {
        preload(server, KEYS)?;
    }
    limit_users(&servers[1])?;
    let mut rows = Vec::new();
    for (name, command) in WORKLOADS {
        for &pipeline in &plan.pipelines {
            let label = format!("{} with rules P={pipeline}", name.to_uppercase());
            let load = load(plan, command, pipeline, TRIAL * pipeline.min(4));
            let runs = take_turns(driver, plan, load, &servers, &label, &mut task)?;
            let row = Row::new(format!("acl.{name}.p{pipeline}.cpu_us"), label, "us/op");
            let mut row = row.goal(Some(Goal::RatioAtMostOf(WITHOUT, ALLOWED)));
            row.add(kumi.name(), cpu(&runs[1])?);
            row.add(WITHOUT, cpu(&runs[0])?);
            rows.push(row);
        }
    }
    report.section(
        title("Server CPU with ten users and pattern rules", plan),
        rows,
    );
    Ok(())
}

/// Nine users, and rules by category and pattern for the default user.
fn limit_users(server: &Server) -> Result<()> {
    let mut connection = Connection::open(server.address())?;
    let mut set = |name: &str, rules: &str| -> Result<()> {
        let words = ["ACL", "SETUSER", name].into_iter().chain(rules.split(' '));
        let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
        connection.command(&words)?;
        Ok(())
    };
    for number in 0..9 {
        let rules = format!("on >secret ~app{number}:* %R~shared:* +@read +@write -@dangerous");
        set(&format!("user{number}"), &rules)?;
    }
    set(
        "default",
        "resetkeys ~limit:* %R~shared:* ~key:* -@all +@read +@write +@connection -@dangerous +config|get",
    )
}
