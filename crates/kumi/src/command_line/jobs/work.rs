//! `kumi jobs work --exec`: a worker whose handler is a program.

use super::backoff;
use super::failure::Failure;
use super::log::Log;
use super::options::WorkOptions;
use crate::command_line::process::{self, Excess, OUTPUT_LIMIT};
use kumi_jobs::{
    Backoff, Context, Execution, Jobs, Options, Owner, TaskError, TaskHandler, Worker,
};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code for input that no retry makes valid, as in sysexits.h.
const DATA_ERROR: i32 = 65;

/// The exit code for a temporary failure, as in sysexits.h: the attempt is given back.
const NOT_YET: i32 = 75;

/// How long a task that is not ready yet waits.
const SNOOZE: Duration = Duration::from_secs(30);

pub(super) async fn run(jobs: &Jobs, options: WorkOptions) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| Failure::Other(e.into()))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| Failure::Other(e.into()))?;
    let mut worker = Worker::new(jobs, ()).concurrency(options.concurrency);
    if let Some(name) = &options.name {
        let owner = Owner::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
        worker = worker.owner(owner);
    }
    let log = Log::start().map_err(|e| Failure::Other(e.into()))?;
    let command: Arc<str> = options.exec.as_str().into();
    for task_type in &options.types {
        worker = worker.handler(Program {
            task_type: task_type.clone(),
            command: command.clone(),
            time_limit: options.time_limit,
            backoff: backoff::of_type(&options.backoff, task_type),
            error_limit: jobs.queue().settings().error_limit_bytes,
            log: log.clone(),
        });
    }
    log.note(format_args!("working on {}", options.types.join(", ")));
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_writer(move || writer.clone())
        .with_ansi(false);
    // It fails only where the process has a subscriber already, which is kept.
    let _ = subscriber.try_init();
    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        log.note("finishing what runs");
    };
    let ended = worker.run_until(stop).await;
    log.finish();
    Ok(ended?)
}

/// A shell command as the handler of a type.
struct Program {
    task_type: String,
    command: Arc<str>,
    time_limit: Option<Duration>,
    backoff: Option<Backoff>,
    /// Bytes of standard error that a failed task keeps.
    error_limit: usize,
    log: Log,
}

impl TaskHandler<()> for Program {
    fn task_type(&self) -> &str {
        &self.task_type
    }

    fn options(&self) -> Options {
        // A program cannot look at the sign to stop: it is killed when it comes.
        let mut options = Options::new().cancel_grace(Duration::ZERO);
        if let Some(backoff) = self.backoff {
            options = options.retry(backoff);
        }
        match self.time_limit {
            Some(limit) => options.time_limit(limit),
            None => options,
        }
    }

    fn execute(&self, payload: bytes::Bytes, context: Context<()>) -> Execution {
        let (command, error_limit) = (self.command.clone(), self.error_limit);
        let log = self.log.clone();
        Box::pin(async move {
            let claim = context.claim();
            let child = process::shell(&command)
                .env("KUMI_TASK_ID", claim.id.to_string())
                .env("KUMI_TASK_TYPE", &*claim.envelope.task_type)
                .env("KUMI_ATTEMPT", claim.attempt.to_string())
                .env("KUMI_MAX_ATTEMPTS", claim.max_attempts.to_string())
                .env("TRACEPARENT", claim.trace.as_deref().unwrap_or_default())
                .stderr(Stdio::piped())
                .spawn()?;
            let finished = process::finish(child, &payload, Excess::IsDropped);
            let (status, output, complaint) = finished.await?;
            if status.success() && !complaint.is_empty() {
                // What a program that succeeded wrote to standard error is for the operator.
                log.push(&complaint);
            }
            outcome(status, output, &complaint, error_limit)
        })
    }
}

fn outcome(
    status: ExitStatus,
    output: Vec<u8>,
    complaint: &[u8],
    error_limit: usize,
) -> Result<bytes::Bytes, TaskError> {
    if status.success() {
        return match output.len() > OUTPUT_LIMIT {
            // A part of the output, which is above the limit of results as well: the task succeeds, the queue keeps none.
            true => Ok(output.into()),
            false => as_json(output),
        };
    }
    // The end says what went wrong.
    let complaint = complaint.trim_ascii_end();
    let end = &complaint[complaint.len().saturating_sub(error_limit)..];
    let complaint = String::from_utf8_lossy(end).into_owned();
    let error = match complaint.is_empty() {
        true => format!("the command ended with {status}"),
        false => complaint,
    };
    match status.code() {
        Some(DATA_ERROR) => Err(TaskError::Abort(error)),
        Some(NOT_YET) => Err(TaskError::Snooze(SNOOZE)),
        _ => Err(TaskError::Retry(error)),
    }
}

/// A result is JSON: output that is not becomes a string.
fn as_json(output: Vec<u8>) -> Result<bytes::Bytes, TaskError> {
    if serde_json::from_slice::<serde_json::Value>(&output).is_ok() {
        return Ok(output.into());
    }
    let text = String::from_utf8_lossy(&output);
    Ok(serde_json::to_vec(text.trim_end_matches('\n'))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn the_exit_code_decides() {
        let check = |code: i32, expected: Result<&str, TaskError>| {
            let status = ExitStatus::from_raw(code << 8);
            let done = outcome(status, b"two words\n".to_vec(), b"first\nwhy\n", 3);
            assert_eq!(done, expected.map(|text| text.to_owned().into()), "{code}");
        };
        check(0, Ok("\"two words\""));
        check(1, Err(TaskError::Retry("why".into())));
        check(DATA_ERROR, Err(TaskError::Abort("why".into())));
        check(NOT_YET, Err(TaskError::Snooze(SNOOZE)));
    }
}
