//! One run of one task: the handler, its time limit, its panic, its cancellation.

use crate::context::Context;
use crate::core::{Owner, TaskId, Token};
use crate::jobs::TRACE;
use crate::queue::{Claim, Finish, Outcome, Queue};
use crate::registry::{Registered, TaskHandler};
use crate::task::{Options, TaskError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Why a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The task was cancelled.
    Cancelled,
    /// The worker shuts down.
    Shutdown,
    /// The lease ran out.
    LeaseLost,
}

/// A run in progress, as its worker holds it.
pub(super) struct Running {
    pub(super) token: Token,
    pub(super) attempt: u32,
    pub(super) task_type: Arc<str>,
    stop: Arc<Stopping>,
    abort: AbortHandle,
}

/// Cancels a run. Most runs never ask for it, so the token is made when it is first needed.
#[derive(Default)]
pub(crate) struct Stopping {
    token: OnceLock<CancellationToken>,
    /// The first reason counts.
    reason: OnceLock<Stop>,
}

impl Stopping {
    pub(crate) fn token(&self) -> &CancellationToken {
        self.token.get_or_init(CancellationToken::new)
    }
}

/// A run that is about to begin.
pub(super) struct Beginning {
    token: Token,
    attempt: u32,
    task_type: Arc<str>,
    stop: Arc<Stopping>,
    run: BoxFuture<'static, Finish>,
}

impl Beginning {
    pub(super) fn new<S: Send + Sync + 'static>(
        claim: Claim,
        registered: &Registered<S>,
        state: &Arc<S>,
        queue: &Arc<dyn Queue>,
    ) -> Self {
        let stop = Arc::new(Stopping::default());
        let (token, attempt) = (claim.token, claim.attempt);
        let task_type = claim.envelope.task_type.clone();
        let options = registered.options.clone();
        let context = Context::new(claim, state.clone(), queue.clone(), stop.clone());
        let run = execute(context, registered.handler.clone(), options, stop.clone());
        Self {
            token,
            attempt,
            task_type,
            stop,
            run: Box::pin(run),
        }
    }

    /// Polls the run once. A run that is not done has to be started, which polls it again.
    pub(super) fn poll_once(&mut self) -> Option<Finish> {
        let mut context = std::task::Context::from_waker(Waker::noop());
        match self.run.as_mut().poll(&mut context) {
            Poll::Ready(report) => Some(report),
            Poll::Pending => None,
        }
    }

    /// Goes on in a task of its own. The report arrives in `reports`, unless the run is aborted.
    pub(super) fn start(self, reports: &mpsc::UnboundedSender<Finish>) -> Running {
        let (run, reports) = (self.run, reports.clone());
        let task = tokio::spawn(async move {
            // The worker that reads it may be gone; then it has given the task back.
            let _ = reports.send(run.await);
        });
        Running {
            token: self.token,
            attempt: self.attempt,
            task_type: self.task_type,
            stop: self.stop,
            abort: task.abort_handle(),
        }
    }
}

impl Running {
    /// Tells the handler to stop.
    pub(super) fn stop(&self, reason: Stop) {
        // A second reason changes nothing.
        let _ = self.stop.reason.set(reason);
        self.stop.token().cancel();
    }

    /// The report on a run that was aborted.
    pub(super) fn given_back(&self, id: TaskId, owner: &Owner) -> Finish {
        Finish {
            id,
            token: self.token,
            owner: owner.clone(),
            outcome: Outcome::GivenBack,
        }
    }

    /// Drops the handler's future. No report arrives.
    pub(super) fn abort(&self) {
        self.stop(Stop::Shutdown);
        self.abort.abort();
    }
}

/// The longest grace of a handler that is not asked for its options.
pub(super) fn longest_grace<'a>(options: impl Iterator<Item = &'a Options>) -> Duration {
    options
        .map(|options| options.cancel_grace)
        .max()
        .unwrap_or_default()
}

async fn execute<S: Send + Sync + 'static>(
    context: Context<S>,
    handler: Arc<dyn TaskHandler<S>>,
    options: Arc<Options>,
    stop: Arc<Stopping>,
) -> Finish {
    let claim = context.claim();
    let (id, attempt) = (claim.id, claim.attempt);
    let trace = claim.trace.clone();
    let span = tracing::info_span!("task", task_id = %id, task_type = &*claim.envelope.task_type, attempt, trace = trace.as_deref());
    tracing::info!(parent: &span, task_id = %id, attempt, "Started");
    let mut report = Finish::new(claim, Outcome::GivenBack);
    let payload = claim.envelope.payload.clone();
    let work = async move { handler.execute(payload, context).await };
    let work = AssertUnwindSafe(work).catch_unwind().instrument(span);
    let ended = TRACE.scope(trace, bounded(work, &options, &stop)).await;
    report.outcome = outcome(ended, &options, attempt, stop.reason.get());
    report
}

/// How a handler's future ended.
enum Ended<T> {
    Returned(T),
    Panicked(String),
    TimeLimit(Duration),
    Stopped,
}

async fn bounded<T>(
    work: impl Future<Output = Result<T, Box<dyn Any + Send>>>,
    options: &Options,
    stop: &Stopping,
) -> Ended<T> {
    let limit = async {
        match options.time_limit {
            Some(limit) => {
                tokio::time::sleep(limit).await;
                limit
            }
            None => std::future::pending().await,
        }
    };
    let stopped = async {
        stop.token().cancelled().await;
        tokio::time::sleep(options.cancel_grace).await;
    };
    tokio::select! {
        biased;
        ended = work => match ended {
            Ok(returned) => Ended::Returned(returned),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        },
        limit = limit => {
            // What the handler left running elsewhere sees it too.
            stop.token().cancel();
            Ended::TimeLimit(limit)
        }
        () = stopped => Ended::Stopped,
    }
}

fn outcome(
    ended: Ended<Result<bytes::Bytes, TaskError>>,
    options: &Options,
    attempt: u32,
    reason: Option<&Stop>,
) -> Outcome {
    let retry = |error: String| {
        let retry_after = options.retry.delay(attempt, &error);
        Outcome::Failed { error, retry_after }
    };
    // A handler that stops on its cancellation token has not failed.
    let stopped = |otherwise: Outcome| match reason {
        Some(Stop::Shutdown | Stop::LeaseLost) => Outcome::GivenBack,
        Some(Stop::Cancelled) => Outcome::Cancelled,
        None => otherwise,
    };
    match ended {
        Ended::Returned(Ok(result)) => Outcome::Succeeded(Some(result)),
        Ended::Returned(Err(TaskError::Retry(error))) => stopped(retry(error)),
        Ended::Returned(Err(TaskError::RetryAfter(delay, error))) => stopped(Outcome::Failed {
            error,
            retry_after: Some(delay),
        }),
        Ended::Returned(Err(TaskError::Abort(error))) => Outcome::Failed {
            error,
            retry_after: None,
        },
        Ended::Returned(Err(TaskError::Snooze(delay))) => stopped(Outcome::Snoozed(delay)),
        Ended::Panicked(text) => retry(format!("the handler panicked: {text}")),
        Ended::TimeLimit(limit) => retry(format!("the time limit of {limit:?} ended")),
        Ended::Stopped => stopped(Outcome::GivenBack),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "without a message".to_owned(),
    }
}

/// Logs what became of a report.
pub(super) fn tell(id: TaskId, outcome: &Outcome, attempt: u32, finished: crate::queue::Finished) {
    use crate::core::TaskState;
    use crate::queue::Finished;
    let err = match outcome {
        Outcome::Failed { error, .. } => Some(error.as_str()),
        _ => None,
    };
    if let (Some(err), Finished::Applied(_)) = (err, finished) {
        tracing::info!(task_id = %id, attempt, err, "Failed");
    }
    match finished {
        Finished::Applied(TaskState::Succeeded) => {
            tracing::info!(task_id = %id, attempt, "Succeeded");
        }
        Finished::Applied(TaskState::RetryScheduled) => {
            let backoff = match outcome {
                Outcome::Failed { retry_after, .. } => *retry_after,
                _ => None,
            };
            tracing::info!(task_id = %id, backoff = ?backoff.unwrap_or_default(), "RetryScheduled");
        }
        Finished::Applied(TaskState::Dead) => {
            tracing::warn!(task_id = %id, last_error = err, attempts = attempt, "Dead");
        }
        Finished::Applied(state) => tracing::info!(task_id = %id, attempt, %state, "Moved"),
        Finished::Refused => {
            tracing::warn!(task_id = %id, attempt, "the report was refused: the claim is over");
        }
        Finished::AlreadyApplied | Finished::Unknown => {}
    }
}
