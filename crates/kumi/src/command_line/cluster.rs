//! `kumi cluster`: nodes that find each other, and what an operator asks them.
//!
//! Only how things look is decided here: which lines go to which stream, and which exit code a script gets. Who is a
//! member and who is dead is kumi-cluster's business.

mod events;
mod failure;
mod key;
mod members;
mod options;
mod orders;
mod printer;
mod up;
mod watch;
mod words;

use crate::command_line::terminal;
pub(crate) use failure::EXIT_CODES;
use failure::Failure;
use options::ClusterTask;
pub(crate) use options::{ClusterOptions, FIRST_STEPS};
use std::process::ExitCode;

/// Does what was asked, and tells how it went as an exit code. A failure is one message on standard error.
pub(crate) fn run(options: ClusterOptions) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(perform(options.task));
            // A name that is still being looked up must not hold up the end.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failure::io("starting", error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::note(&failure);
            failure.exit_code()
        }
    }
}

async fn perform(task: ClusterTask) -> Result<(), Failure> {
    match task {
        ClusterTask::Up(options) => up::run(options).await,
        ClusterTask::Members(options) => members::run(&options).await,
        ClusterTask::Watch(options) => watch::run(&options).await,
        ClusterTask::Leave(options) => orders::leave(&options).await,
        ClusterTask::Quarantine(options) => orders::quarantine(&options).await,
        ClusterTask::Metadata(options) => orders::metadata(&options).await,
        ClusterTask::Keygen(options) => key::generate(&options.file),
    }
}
