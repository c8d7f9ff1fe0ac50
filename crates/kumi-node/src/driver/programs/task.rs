//! A shell command per task: a handler of kumi-jobs.
//!
//! The payload is its standard input, what it prints is the result, and its exit code says how it went.

use super::Program;
use super::child::{Excess, OUTPUT_LIMIT, finish};
use crate::config::Work;
use kumi_jobs::{Backoff, Context, Execution, Options, TaskError, TaskHandler, TaskId};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The exit code for input that no retry makes valid, as in sysexits.h.
const DATA_ERROR: i32 = 65;

/// The exit code for a temporary failure, as in sysexits.h: the attempt is given back.
const NOT_YET: i32 = 75;

/// How long a task that is not ready yet waits.
const SNOOZE: Duration = Duration::from_secs(30);

/// How much later than the end of its grace a program's handler is dropped.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Is told how the command of a task ended, with the error it would have; not if the command was stopped.
pub type OnEnd = Arc<dyn Fn(TaskId, ExitStatus, &str) + Send + Sync>;

/// A shell command as the handler of a task type.
#[derive(Clone)]
#[non_exhaustive]
pub struct TaskProgram {
    /// The task type.
    pub task_type: String,
    /// The command.
    pub program: Program,
    /// A run that takes longer is stopped and counts as failed.
    pub time_limit: Option<Duration>,
    /// When failed tasks are tried again, unless their producer said it.
    pub backoff: Option<Backoff>,
    /// How long after SIGTERM it is killed.
    pub kill_after: Duration,
    /// Bytes of standard error that a failed task keeps.
    pub error_limit: usize,
    /// Is told how commands ended.
    pub on_end: Option<OnEnd>,
}

impl TaskProgram {
    /// A handler without a time limit, whose commands are killed 5 s after SIGTERM.
    #[must_use]
    pub fn new(task_type: &str, program: Program) -> Self {
        Self {
            task_type: task_type.to_owned(),
            program,
            time_limit: None,
            backoff: None,
            kill_after: Duration::from_secs(5),
            error_limit: kumi_jobs::Settings::default().error_limit_bytes,
            on_end: None,
        }
    }

    /// The handler of an entry of `kumi.kdl`.
    #[must_use]
    pub fn of(work: &Work, program: Program) -> Self {
        Self {
            time_limit: work.time_limit,
            backoff: work.backoff,
            kill_after: work.kill_after,
            ..Self::new(&work.task_type, program)
        }
    }
}

impl<S: Send + Sync + 'static> TaskHandler<S> for TaskProgram {
    fn task_type(&self) -> &str {
        &self.task_type
    }

    fn options(&self) -> Options {
        // The time limit is the handler's own: the program gets a signal first.
        let options = Options::new().cancel_grace(self.kill_after.saturating_add(AFTER_KILL));
        match self.backoff {
            Some(backoff) => options.retry(backoff),
            None => options,
        }
    }

    fn execute(&self, payload: bytes::Bytes, context: Context<S>) -> Execution {
        let task = self.clone();
        Box::pin(async move { task.run(payload, context).await })
    }
}

impl TaskProgram {
    async fn run<S>(
        &self,
        payload: bytes::Bytes,
        context: Context<S>,
    ) -> Result<bytes::Bytes, TaskError> {
        let claim = context.claim();
        let mut command = self.program.prepared()?;
        let child = command
            .env("KUMI_TASK_ID", claim.id.to_string())
            .env("KUMI_TASK_TYPE", &*claim.envelope.task_type)
            .env("KUMI_ATTEMPT", claim.attempt.to_string())
            .env("KUMI_MAX_ATTEMPTS", claim.max_attempts.to_string())
            .env("TRACEPARENT", claim.trace.as_deref().unwrap_or_default())
            .stderr(Stdio::piped())
            .spawn()?;
        let _watched = self.program.launcher.watch(&child);
        let (is_late, is_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let stop = async {
            let limit = async {
                match self.time_limit {
                    Some(limit) => sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = limit => is_late.store(true, Ordering::Relaxed),
                () = context.cancelled().cancelled() => is_stopped.store(true, Ordering::Relaxed),
            }
        };
        let finished = finish(child, &payload, Excess::IsDropped, stop, self.kill_after).await?;
        let (status, output, complaint) = finished;
        if let (true, Some(limit)) = (is_late.load(Ordering::Relaxed), self.time_limit) {
            return Err(TaskError::Retry(format!(
                "the time limit of {limit:?} ended"
            )));
        }
        if status.success() && !complaint.is_empty() {
            // What a program that succeeded wrote to standard error is for the operator.
            self.program.output.text(&self.program.name, &complaint);
        }
        let error = error_of(status, &complaint, self.error_limit);
        if is_stopped.load(Ordering::Relaxed) && !status.success() {
            // It was told to end: its exit code means nothing.
            return Err(TaskError::Retry(error));
        }
        if let Some(on_end) = &self.on_end {
            on_end(claim.id, status, &error);
        }
        outcome(status, output, error)
    }
}

/// What a program that failed said, or how it ended. The end of what it said tells what went wrong.
fn error_of(status: ExitStatus, complaint: &[u8], error_limit: usize) -> String {
    let complaint = complaint.trim_ascii_end();
    let end = &complaint[complaint.len().saturating_sub(error_limit)..];
    match end.is_empty() {
        true => format!("the command ended with {status}"),
        false => String::from_utf8_lossy(end).into_owned(),
    }
}

fn outcome(status: ExitStatus, output: Vec<u8>, error: String) -> Result<bytes::Bytes, TaskError> {
    if status.success() {
        return match output.len() > OUTPUT_LIMIT {
            // A part of the output, which is above the limit of results as well: the task succeeds, the queue keeps none.
            true => Ok(output.into()),
            false => as_json(output),
        };
    }
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
    use super::super::heard::program;
    use super::*;
    use crate::config::{NodeConfig, backoff};
    use kumi_jobs::{Jobs, Task, Worker};
    use std::os::unix::process::ExitStatusExt;

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn the_exit_code_decides() {
        let check = |code: i32, expected: Result<&str, TaskError>| {
            let error = error_of(exited(code), b"first\nwhy\n", 3);
            let done = outcome(exited(code), b"two words\n".to_vec(), error);
            assert_eq!(done, expected.map(|text| text.to_owned().into()), "{code}");
        };
        check(0, Ok("\"two words\""));
        check(1, Err(TaskError::Retry("why".into())));
        check(DATA_ERROR, Err(TaskError::Abort("why".into())));
        check(NOT_YET, Err(TaskError::Snooze(SNOOZE)));
        check(127, Err(TaskError::Retry("why".into())));
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Measure(String);

    impl Task for Measure {
        const TYPE: &'static str = "measure";
        type Output = String;
    }

    #[tokio::test]
    async fn an_entry_of_the_configuration_runs_its_tasks() {
        let entry = r##"work "measure" exec=#"echo "$UNIT $KUMI_NODE $KUMI_TASK_TYPE $(cat)"; echo careful >&2"# \
            time-limit="1m" backoff="1s" kill-after="7s" { env UNIT="m" }"##;
        let config = NodeConfig::parse("kumi.kdl", entry).unwrap();
        let work = &config.work[0];
        let (program, mut heard) = program(&work.exec);
        let program = program.of_node(&work.surroundings, "a~000000000000002a", "redis://h");
        let handler = TaskProgram::of(work, program);
        assert_eq!(handler.time_limit, Some(Duration::from_secs(60)));
        assert_eq!(handler.kill_after, Duration::from_secs(7));
        assert_eq!(handler.backoff, backoff("1s").ok());
        let jobs = Jobs::memory();
        let handle = jobs.enqueue(Measure("7".into())).await.unwrap();
        let done = async {
            let expected = "m a~000000000000002a measure \"7\"";
            assert_eq!(handle.result().await.ok().as_deref(), Some(expected));
        };
        let worker = Worker::new(&jobs, ()).handler(handler);
        worker.run_until(done).await.unwrap();
        assert_eq!(heard.next().await, "api: careful\n");
    }
}
