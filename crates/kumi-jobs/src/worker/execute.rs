//! One run of one task: the handler, its time limit, its panic, its cancellation.

use crate::check::DURATION_LIMIT;
use crate::context::Context;
use crate::core::worker::Stop;
use crate::core::{Owner, RetryPolicy, TaskId};
use crate::jobs::TRACE;
use crate::queue::{Claim, Finish, Outcome, Queue};
use crate::registry::{Execution, Registered, TaskHandler};
use crate::stopping::{Stoppable, Stopping};
use crate::task::{Options, TaskError};
use futures_util::FutureExt;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tracing::{Instrument, Span};

/// A run in progress, as its worker holds it.
pub(super) struct Running {
    pub(super) owner: Owner,
    pub(super) task_type: Arc<str>,
    stop: Arc<dyn Stoppable>,
    abort: AbortHandle,
}

/// A run that is about to begin.
pub(super) struct Beginning<S> {
    context: Context<S>,
    handler: Arc<dyn TaskHandler<S>>,
    options: Arc<Options>,
    span: Span,
    /// The handler's future, once it was polled.
    work: Option<Execution>,
}

impl<S: Send + Sync + 'static> Beginning<S> {
    pub(super) fn new(
        claim: Claim,
        registered: &Registered<S>,
        state: &Arc<S>,
        queue: &Arc<dyn Queue>,
    ) -> Self {
        let (id, attempt) = (claim.id, claim.attempt);
        let span = tracing::info_span!("task", task_id = %id, task_type = &*claim.envelope.task_type, attempt, trace = claim.trace.as_deref());
        tracing::info!(parent: &span, task_id = %id, attempt, "Started");
        Self {
            context: Context::new(claim, state.clone(), queue.clone()),
            handler: registered.handler.clone(),
            options: registered.options.clone(),
            span,
            work: None,
        }
    }

    /// Polls the handler once. A run that is not done has to be started, which polls it again.
    pub(super) fn poll_once(&mut self) -> Option<Finish> {
        let Self {
            context, handler, ..
        } = self;
        let claim = context.claim();
        let poll = || {
            let payload = claim.envelope.payload.clone();
            let mut work = handler.execute(payload, context.clone());
            let mut waker = std::task::Context::from_waker(Waker::noop());
            match work.as_mut().poll(&mut waker) {
                Poll::Ready(returned) => Ok(returned),
                Poll::Pending => Err(work),
            }
        };
        let traced = || {
            self.span
                .in_scope(|| TRACE.sync_scope(claim.trace.clone(), poll))
        };
        let ended = match catch_unwind(AssertUnwindSafe(traced)) {
            Ok(Ok(returned)) => Ended::Returned(returned),
            Ok(Err(work)) => {
                self.work = Some(work);
                return None;
            }
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        };
        Some(self.report(ended))
    }

    /// Goes on in a task of its own. The report arrives in `reports`, unless the run is aborted.
    pub(super) fn start(self, reports: &mpsc::UnboundedSender<Finish>) -> Running {
        let claim = self.context.claim();
        let owner = claim.owner.clone();
        let task_type = claim.envelope.task_type.clone();
        let (stop, reports) = (self.context.stoppable(), reports.clone());
        let task = tokio::spawn(async move {
            // The worker that reads it may be gone; then it has given the task back.
            let _ = reports.send(self.run().await);
        });
        Running {
            owner,
            task_type,
            stop,
            abort: task.abort_handle(),
        }
    }

    async fn run(mut self) -> Finish {
        let (context, handler, work) =
            (self.context.clone(), self.handler.clone(), self.work.take());
        let trace = context.claim().trace.clone();
        let work = async move {
            match work {
                Some(work) => work.await,
                None => {
                    let payload = context.claim().envelope.payload.clone();
                    handler.execute(payload, context).await
                }
            }
        };
        let work = AssertUnwindSafe(work)
            .catch_unwind()
            .instrument(self.span.clone());
        let stop = self.context.stopping();
        let ended = TRACE.scope(trace, bounded(work, &self.options, stop)).await;
        self.report(ended)
    }

    fn report(&self, ended: Ended<Result<bytes::Bytes, TaskError>>) -> Finish {
        let claim = self.context.claim();
        let reason = self.context.stopping().reason();
        let outcome = outcome(ended, &self.options, claim, reason);
        Finish::new(claim, outcome)
    }
}

impl Running {
    /// Tells the handler to stop.
    pub(super) fn stop(&self, reason: Stop) {
        self.stop.stopping().stop(reason);
    }

    /// Drops the handler's future. No report arrives. Answers what ends when the thread that the handler blocks is done with
    /// it; none if it blocks none.
    pub(super) fn abort(&self) -> Option<oneshot::Receiver<()>> {
        self.stop(Stop::Shutdown);
        self.abort.abort();
        self.stop.stopping().take_thread()
    }
}

/// The longest grace of a handler that is not asked for its options.
pub(super) fn longest_grace<'a>(options: impl Iterator<Item = &'a Options>) -> Duration {
    options
        .map(|options| options.cancel_grace)
        .max()
        .unwrap_or_default()
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
    claim: &Claim,
    reason: Option<&Stop>,
) -> Outcome {
    // A queue refuses longer delays.
    let bounded = |delay: Duration| delay.min(DURATION_LIMIT);
    let retry = |error: String| {
        let delay = match &claim.backoff {
            Some(backoff) => backoff.delay(claim.attempt, &error),
            None => options.retry.delay(claim.attempt, &error),
        };
        let retry_after = delay.map(bounded);
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
            retry_after: Some(bounded(delay)),
        }),
        Ended::Returned(Err(TaskError::Abort(error))) => Outcome::Failed {
            error,
            retry_after: None,
        },
        Ended::Returned(Err(TaskError::Snooze(delay))) => stopped(Outcome::Snoozed(bounded(delay))),
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

/// Logs what became of a report, at this time of the queue.
pub(super) fn tell(
    id: TaskId,
    outcome: &Outcome,
    attempt: u32,
    finished: crate::queue::Finished,
    now: crate::core::Timestamp,
) {
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
            let backoff = backoff.unwrap_or_default();
            let next_run_at = now.after(backoff).as_ms();
            tracing::info!(task_id = %id, next_run_at, ?backoff, "RetryScheduled");
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
