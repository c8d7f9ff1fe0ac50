//! The services of a unit, and their handlers that run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout};

use crate::core::{IdMap, Incoming, JobId, Outcome, Pattern, Replies, Reply, Served, ServiceId};
use crate::handler::{AnyHandler, Request};

/// A service as the driver knows it.
pub(super) struct ServiceEntry {
    pub(super) pattern: Pattern,
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) handler_timeout: Duration,
    pub(super) draining: bool,
}

impl ServiceEntry {
    /// The keys of requests that it takes.
    pub(super) fn request_glob(&self) -> String {
        request_glob(&self.pattern)
    }

    /// The keys of their answers.
    pub(super) fn answer_glob(&self) -> String {
        format!("MUF/*/[RE][ER][SR]/{}", self.pattern.id_glob())
    }
}

/// The keys of requests that a service of this pattern takes.
pub(super) fn request_glob(pattern: &Pattern) -> String {
    format!("MUF/*/REQ/{}", pattern.id_glob())
}

/// A handler that ended.
pub(super) type Ended = Result<(Id, Outcome), JoinError>;

/// All services.
#[derive(Default)]
pub(super) struct Services {
    pub(super) all: IdMap<ServiceId, ServiceEntry>,
    /// Answers of other backends are subscribed to.
    pub(super) watches_answers: bool,
    /// Handles that wait until a service is drained.
    pub(super) drains: Vec<(ServiceId, oneshot::Sender<()>)>,
    pub(super) handlers: JoinSet<Outcome>,
    running: HashMap<Id, (JobId, Instant)>,
    /// What was served since it was last written.
    pub(super) served: Served,
    /// That the server refused to write it has been logged.
    refusal_logged: bool,
}

impl Services {
    /// Whether a service takes requests of exactly this pattern.
    pub(super) fn has_pattern(&self, pattern: &Pattern) -> bool {
        self.all.values().any(|served| served.pattern == *pattern)
    }

    /// The patterns of the services that take requests, sorted.
    pub(super) fn active(&self) -> Vec<String> {
        let active = self.all.values().filter(|served| !served.draining);
        let mut patterns: Vec<String> = active.map(|served| served.pattern.to_string()).collect();
        patterns.sort_unstable();
        patterns
    }

    pub(super) fn answer_globs(&self) -> Vec<String> {
        self.all.values().map(ServiceEntry::answer_glob).collect()
    }

    /// Starts a service's handler.
    pub(super) fn start(&mut self, service: ServiceId, job: JobId, request: Incoming) {
        let Some(served) = self.all.get(&service) else {
            return;
        };
        let handling = served.handler.handle(Request::new(request));
        let limit = served.handler_timeout;
        let task = self.handlers.spawn(async move {
            let handled = timeout(limit, handling).await;
            handled.unwrap_or_else(|_| {
                Outcome::Bad(format!("the handler did not end within {limit:?}").into())
            })
        });
        self.running.insert(task.id(), (job, Instant::now()));
    }

    /// Why the server refused to write what was served, the first time that it did.
    pub(super) fn first_refusal(&mut self, replies: Replies) -> Option<String> {
        let refused = replies.ok()?.into_iter().find_map(|reply| match reply {
            Reply::Refused(reason) => Some(reason),
            _ => None,
        })?;
        let is_first = !std::mem::replace(&mut self.refusal_logged, true);
        is_first.then_some(refused)
    }

    /// The job of a handler that ended, and its outcome, which may have `limit_bytes`.
    pub(super) fn ended(&mut self, ended: Ended, limit_bytes: usize) -> Option<(JobId, Outcome)> {
        let (id, outcome) = ended.unwrap_or_else(|error| {
            let text = Bytes::from_static(b"the handler panicked");
            (error.id(), Outcome::Bad(text))
        });
        let (job, started) = self.running.remove(&id)?;
        let outcome = match outcome {
            Outcome::Good(payload) | Outcome::Bad(payload) if payload.len() > limit_bytes => {
                let text = format!(
                    "an answer of {} bytes is over the limit of {limit_bytes}",
                    payload.len()
                );
                Outcome::Bad(text.into())
            }
            outcome => outcome,
        };
        let is_error = matches!(outcome, Outcome::Bad(_));
        self.served.count(started.elapsed(), is_error);
        Some((job, outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_to_write_what_was_served_is_shown_once() {
        let mut services = Services::default();
        let refused = || Reply::Refused("NOPERM no permission".to_owned());
        assert_eq!(services.first_refusal(Ok(vec![Reply::Number(1)])), None);
        let first = services.first_refusal(Ok(vec![Reply::Number(1), refused()]));
        assert_eq!(first.as_deref(), Some("NOPERM no permission"));
        assert_eq!(services.first_refusal(Ok(vec![refused()])), None);
    }
}
