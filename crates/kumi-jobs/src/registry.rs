//! Handlers by task type.

use crate::context::Context;
use crate::core::NULL;
use crate::jobs::TRACE;
use crate::task::{Options, Task, TaskError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

/// The future of one run: the encoded result, or how it ended without one.
pub type Execution = BoxFuture<'static, Result<Bytes, TaskError>>;

/// Behaviour for one task type, on encoded payloads. `Worker::handle` and `Worker::blocking` make one from a function;
/// implement it for types that are known only at run time.
pub trait TaskHandler<S>: Send + Sync + 'static {
    /// The type that it handles.
    fn task_type(&self) -> &str;

    /// How its tasks are run. Asked once, when the handler is registered.
    fn options(&self) -> Options {
        Options::new()
    }

    /// Runs a task.
    fn execute(&self, payload: Bytes, context: Context<S>) -> Execution;
}

/// Two handlers for one type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are two handlers for the task type '{0}'")]
pub struct DuplicateType(pub String);

/// All handlers of a worker.
pub struct Registry<S> {
    handlers: BTreeMap<Arc<str>, Registered<S>>,
}

/// A handler, and the options it gave when it was registered.
pub(crate) struct Registered<S> {
    pub(crate) handler: Arc<dyn TaskHandler<S>>,
    pub(crate) options: Arc<Options>,
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        Self {
            handlers: BTreeMap::new(),
        }
    }
}

impl<S: Send + Sync + 'static> Registry<S> {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler.
    ///
    /// # Errors
    /// If its type has one already.
    pub fn register(&mut self, handler: impl TaskHandler<S>) -> Result<(), DuplicateType> {
        let task_type: Arc<str> = handler.task_type().into();
        if self.handlers.contains_key(&task_type) {
            return Err(DuplicateType(task_type.to_string()));
        }
        let registered = Registered {
            options: Arc::new(handler.options()),
            handler: Arc::new(handler),
        };
        self.handlers.insert(task_type, registered);
        Ok(())
    }

    /// The handler of a type.
    #[must_use]
    pub fn resolve(&self, task_type: &str) -> Option<&Arc<dyn TaskHandler<S>>> {
        Some(&self.registered(task_type)?.handler)
    }

    pub(crate) fn registered(&self, task_type: &str) -> Option<&Registered<S>> {
        self.handlers.get(task_type)
    }

    /// All types, sorted.
    pub fn types(&self) -> impl Iterator<Item = &Arc<str>> {
        self.handlers.keys()
    }
}

/// An async function as a handler.
pub(crate) struct Async<T, F> {
    pub(crate) run: F,
    pub(crate) task: PhantomData<fn() -> T>,
}

impl<S, T, F, Fut> TaskHandler<S> for Async<T, F>
where
    S: Send + Sync + 'static,
    T: Task,
    F: Fn(T, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T::Output, TaskError>> + Send + 'static,
{
    fn task_type(&self) -> &str {
        T::TYPE
    }

    fn options(&self) -> Options {
        T::options()
    }

    fn execute(&self, payload: Bytes, context: Context<S>) -> Execution {
        match decode::<T>(&payload) {
            Ok(task) => {
                let run = (self.run)(task, context);
                Box::pin(async move { encode::<T>(&run.await?) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A function that blocks its thread, as a handler: it runs on tokio's threads for blocking work.
pub(crate) struct Blocking<T, F> {
    pub(crate) run: Arc<F>,
    pub(crate) task: PhantomData<fn() -> T>,
}

impl<S, T, F> TaskHandler<S> for Blocking<T, F>
where
    S: Send + Sync + 'static,
    T: Task,
    F: Fn(T, Context<S>) -> Result<T::Output, TaskError> + Send + Sync + 'static,
{
    fn task_type(&self) -> &str {
        T::TYPE
    }

    fn options(&self) -> Options {
        T::options()
    }

    fn execute(&self, payload: Bytes, context: Context<S>) -> Execution {
        let (run, trace) = (self.run.clone(), context.claim().trace.clone());
        let blocked = context.stopping().block_thread();
        // Task-locals do not follow to the other thread.
        let work = move || {
            let _blocked = blocked;
            TRACE.sync_scope(trace, || {
                encode::<T>(&run(decode::<T>(&payload)?, context)?)
            })
        };
        Box::pin(async move {
            match tokio::task::spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(error) => Err(TaskError::retry(error)),
                },
            }
        })
    }
}

fn decode<T: Task>(payload: &[u8]) -> Result<T, TaskError> {
    serde_json::from_slice(payload)
        .map_err(|error| TaskError::Abort(format!("the payload is no {}: {error}", T::TYPE)))
}

fn encode<T: Task>(output: &T::Output) -> Result<Bytes, TaskError> {
    if TypeId::of::<T::Output>() == TypeId::of::<()>() {
        // The JSON of a task without output, without an allocation.
        return Ok(Bytes::from_static(NULL));
    }
    match serde_json::to_vec(output) {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(TaskError::Abort(format!(
            "the result cannot be encoded: {error}"
        ))),
    }
}
