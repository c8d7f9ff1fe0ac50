//! `kumi reload`: makes a running node of this machine read `kumi.kdl` and its key file again, and prints what came of it.

use crate::command_line::exit::Failure;
use crate::command_line::print;
use crate::command_line::state::local_node;
use clap::Args;
use kumi_node::driver::state_dir::ReloadRecord;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the node may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReloadOptions {
    /// The state directory of the node [default: that of the node of this machine]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Asks the node by SIGHUP, and waits for the record of its answer.
pub(crate) fn run(options: &ReloadOptions) -> Result<(), Failure> {
    let node = local_node(options.state_dir.as_deref())?;
    let pid = i32::try_from(node.record().pid);
    let pid = pid.ok().and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|_| node.is_running()) else {
        return Err(Failure::usage(format!(
            "node {} does not run: 'kumi up' starts it",
            node.name()
        )));
    };
    if !node.record().reloads_on_hangup {
        return Err(Failure::usage(format!(
            "node {} does not listen to SIGHUP, and was not asked: a node that was started with nohup, or by another program than kumi up, cannot be reloaded",
            node.name()
        )));
    }
    let before = node.state().reload().map_err(Failure::other)?;
    let before = before.map_or(0, |record| record.count);
    kill_process(pid, Signal::HUP).map_err(|error| {
        Failure::other(anyhow::Error::new(error).context("the node cannot be asked"))
    })?;
    let asked = Instant::now();
    while asked.elapsed() < ANSWER_WITHIN {
        let record = node.state().reload().map_err(Failure::other)?;
        if let Some(record) = record.filter(|record| record.count != before) {
            return answer(&record);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(Failure::other(anyhow::anyhow!(
        "the node was asked and has not answered within {} seconds: its log says more",
        ANSWER_WITHIN.as_secs()
    )))
}

fn answer(record: &ReloadRecord) -> Result<(), Failure> {
    if let Some(failure) = &record.failure {
        let text = format!("nothing was changed: {failure}");
        return Err(Failure::ConfigFile(anyhow::anyhow!(text)));
    }
    print(record.to_string().as_bytes())
}
