//! `kumi muf`: calls, backends, kept values and live traffic from the shell.
//!
//! Each command is a unit of `kumi-muf` for as long as it runs. What is decided here is only how things look: which
//! bytes go to which stream, and which exit code a script gets. The protocol is the crate's business.

mod base64;
mod call;
mod exec;
mod failure;
mod keep;
mod options;
mod pipe;
mod serve;
mod terminal;
mod units;
mod watch;

pub(crate) use failure::EXIT_CODES;
use failure::Failure;
use kumi_muf::{Builder, Muf};
pub(crate) use options::MufOptions;
use options::MufTask;
use std::process::ExitCode;
use std::time::Duration;

/// Where a server is looked for when neither `--url` nor `KUMI_URL` says so.
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";

/// How often a command that is soon over looks for changes, on a server that does not tell of them.
const POLL: Duration = Duration::from_millis(100);

/// Does what was asked, and tells how it went as an exit code. A failure is one message on standard error.
pub(crate) fn run(options: MufOptions) -> ExitCode {
    let url = options
        .url
        .or_else(|| std::env::var("KUMI_URL").ok())
        .unwrap_or_else(|| DEFAULT_URL.into());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(perform(&url, options.task));
            // Nobody waits for what a command left behind, such as the rest of a reconnection.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failure::io("starting", error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

async fn perform(url: &str, task: MufTask) -> Result<(), Failure> {
    match task {
        MufTask::Call(options) => call::run(url, options).await,
        MufTask::Serve(options) => serve::run(url, options).await,
        MufTask::Watch(options) => watch::run(url, options).await,
        MufTask::Keep(options) => keep::run(url, options).await,
        MufTask::Units(options) => units::run(url, options).await,
    }
}

/// A unit that comes and goes, and does not tell of itself.
fn visitor(url: &str, unit: &str) -> Builder {
    Muf::builder(url, unit).discovery(false)
}

/// The name of a visitor that nobody needs to know.
fn nameless() -> String {
    format!("kumi-cli-{}", std::process::id())
}
