//! `kumi status`, `kumi nodes`, and what an operator tells nodes: `drain`, `undrain`, `stop` and `store use`.
//!
//! Only how things look is decided here. `kumi_node::driver::client` asks the nodes.

mod entry;
mod failure;
mod options;
mod orders;
mod status;

use crate::command_line::terminal;
use failure::Failure;
pub(crate) use options::OperateTask;
use options::StoreTask;
use std::process::ExitCode;

/// Does what was asked, and tells how it went as an exit code. A failure is one message on standard error.
pub(crate) fn run(task: OperateTask) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(perform(task));
            // A name that is still being looked up must not hold up the end.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failure::Other(error.into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::note(&failure);
            failure.exit_code()
        }
    }
}

async fn perform(task: OperateTask) -> Result<(), Failure> {
    match task {
        OperateTask::Status(options) => status::status(&options).await,
        OperateTask::Nodes(options) => status::nodes(&options).await,
        OperateTask::Drain(options) => orders::drain(&options).await,
        OperateTask::Undrain(options) => orders::undrain(&options).await,
        OperateTask::Stop(options) => orders::stop(&options).await,
        OperateTask::Store(options) => match &options.task {
            StoreTask::Use(options) => orders::use_store(options).await,
        },
    }
}
