//! What a handler is given beside its task: the shared state, steps, progress, and the sign to stop.

use crate::check;
use crate::core::{Progress, TaskId};
use crate::error::QueueError;
use crate::queue::{Claim, Queue};
use crate::stopping::{Stoppable, Stopping};
use crate::task::TaskError;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// A run of a task, as its handler sees it. Clones are cheap.
pub struct Context<S> {
    inner: Arc<Inner<S>>,
}

struct Inner<S> {
    claim: Claim,
    state: Arc<S>,
    queue: Arc<dyn Queue>,
    stop: Stopping,
    /// Read when the first step is asked for.
    steps: OnceCell<Mutex<BTreeMap<String, Bytes>>>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<S> Context<S> {
    pub(crate) fn new(claim: Claim, state: Arc<S>, queue: Arc<dyn Queue>) -> Self {
        Self {
            inner: Arc::new(Inner {
                claim,
                state,
                queue,
                stop: Stopping::default(),
                steps: OnceCell::new(),
            }),
        }
    }

    pub(crate) fn stopping(&self) -> &Stopping {
        &self.inner.stop
    }

    /// The state that the worker was built with.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.inner.state
    }

    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.inner.claim.id
    }

    /// The number of this attempt, 1 for the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.claim.attempt
    }

    /// The claim: the task as data, and its token.
    #[must_use]
    pub fn claim(&self) -> &Claim {
        &self.inner.claim
    }

    /// The producer's trace context, in the form of a W3C `traceparent` header.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.inner.claim.trace.as_deref()
    }

    /// Fires when the run should stop: the task was cancelled, the worker lost its lease, or it shuts down. A handler
    /// that ignores it is dropped after a grace.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        self.inner.stop.token()
    }

    /// Stores how far the run is; `get_status` shows it.
    ///
    /// # Errors
    /// If the queue cannot be reached, or the task is no longer this worker's.
    pub async fn progress(&self, percent: u8, note: impl Into<String>) -> Result<(), TaskError> {
        let progress = Progress {
            percent: percent.min(100),
            note: check::cut(note.into(), NOTE_LIMIT_BYTES),
        };
        self.fenced(self.inner.queue.progress(&self.inner.claim, progress).await)
    }

    /// Runs a part of the work once per task: the first run that completes it stores its value, and later runs get that
    /// value without polling the future.
    ///
    /// # Errors
    /// The future's own error; if the value is too large or cannot be encoded; if the queue cannot be reached; or if the
    /// task is no longer this worker's.
    pub async fn step<T, E>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, TaskError>
    where
        T: Serialize + DeserializeOwned,
        TaskError: From<E>,
    {
        let stored = self.stored_step(name).await?;
        if let Some(stored) = stored {
            return serde_json::from_slice(&stored)
                .map_err(|error| TaskError::abort(format!("the stored step '{name}': {error}")));
        }
        let value = work.await?;
        let bytes = Bytes::from(serde_json::to_vec(&value)?);
        let saved = self
            .inner
            .queue
            .save_step(&self.inner.claim, name, bytes.clone())
            .await;
        self.fenced(saved)?;
        if let Some(steps) = self.inner.steps.get() {
            let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.insert(name.to_owned(), bytes);
        }
        Ok(value)
    }

    async fn stored_step(&self, name: &str) -> Result<Option<Bytes>, TaskError> {
        let load = async {
            // A first run has stored nothing.
            let steps = match self.inner.claim.runs {
                0 | 1 => BTreeMap::new(),
                _ => self.inner.queue.steps(self.inner.claim.id).await?,
            };
            Ok::<_, QueueError>(Mutex::new(steps))
        };
        let steps = self.inner.steps.get_or_try_init(|| load).await?;
        let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(steps.get(name).cloned())
    }

    fn fenced(&self, done: Result<bool, QueueError>) -> Result<(), TaskError> {
        match done? {
            true => Ok(()),
            false => Err(TaskError::retry(
                "this run's claim is over: the task was given to another worker",
            )),
        }
    }
}

impl<S: Send + Sync + 'static> Context<S> {
    /// The means to stop the run, for its worker.
    pub(crate) fn stoppable(&self) -> Arc<dyn Stoppable> {
        self.inner.clone()
    }
}

impl<S: Send + Sync> Stoppable for Inner<S> {
    fn stopping(&self) -> &Stopping {
        &self.stop
    }
}

/// Longest note of a progress report.
const NOTE_LIMIT_BYTES: usize = 1_024;
