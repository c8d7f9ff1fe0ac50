//! Messages: what the handles of a unit want of its driver, and what the driver's own tasks report.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kumi_redis::{EventsChecked, Subscribed};
use tokio::sync::{mpsc, oneshot};

use super::taps::TapId;
use crate::core::{
    BackendCounters, CallError, Command, Gathered, KeepEvent, KeepPattern, OwnedId, Pattern,
    Replies, SearchStep, SearchToken, ServiceId, Target, Token, WatchId,
};
use crate::discovery::Info;
use crate::error::Error;
use crate::handler::AnyHandler;
use crate::traffic::Traffic;

/// A number that a handle gives its call, so that it can take it back before the driver has seen it.
pub(crate) type Ticket = u64;

/// A call to be made.
pub(crate) struct StartCall {
    pub(crate) ticket: Ticket,
    pub(crate) target: Target,
    pub(crate) payload: Bytes,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) traceparent: Option<String>,
    pub(crate) reply: oneshot::Sender<Result<Bytes, CallError>>,
}

/// A gather to be made.
pub(crate) struct StartGather {
    pub(crate) ticket: Ticket,
    pub(crate) target: Target,
    pub(crate) payload: Bytes,
    pub(crate) timeout_ms: u64,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) traceparent: Option<String>,
    pub(crate) count: Option<usize>,
    pub(crate) quiet_ms: Option<u64>,
    /// Ends when the gather does.
    pub(crate) answers: mpsc::Sender<Result<Gathered, CallError>>,
}

/// A service to be started.
pub(crate) struct StartService {
    pub(crate) pattern: Pattern,
    pub(crate) places: usize,
    pub(crate) answer_ttl_ms: Option<u64>,
    pub(crate) handler_timeout: Duration,
    pub(crate) handler: Arc<dyn AnyHandler>,
    pub(crate) reply: oneshot::Sender<Result<ServiceId, Error>>,
}

/// A watch to be started.
pub(crate) struct StartWatch {
    pub(crate) pattern: KeepPattern,
    pub(crate) events: mpsc::Sender<KeepEvent>,
    pub(crate) reply: oneshot::Sender<Result<WatchId, Error>>,
}

/// What a unit did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that were begun.
    pub calls: u64,
    /// Calls that ended with an answer, ERR included.
    pub answers: u64,
    /// Calls that wait.
    pub pending: u64,
    /// Handlers that were started.
    pub started: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests taken over from other backends.
    pub takeovers: u64,
    /// Requests found by sweeps.
    pub swept: u64,
    /// Times that a node was subscribed to again after its connection was lost, or a new one joined a cluster.
    pub reconnects: u64,
}

impl Stats {
    pub(super) fn with(mut self, backend: BackendCounters, pending: usize) -> Self {
        self.pending = pending as u64;
        self.started = backend.started;
        self.answered = backend.answered;
        self.takeovers = backend.takeovers;
        self.swept = backend.swept;
        self
    }

    /// As it stands at `_stats`, with the process that it is about.
    pub(super) fn to_json(self, instance: &str) -> Bytes {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        json["instance"] = instance.into();
        json.to_string().into()
    }
}

/// Completed when the server has an owned value, or has refused it.
pub(crate) type Written = oneshot::Sender<Result<(), CallError>>;

/// What a handle wants of the driver.
pub(crate) enum Message {
    Call(StartCall),
    Gather(StartGather),
    Serve(StartService),
    Drain {
        service: ServiceId,
        done: oneshot::Sender<()>,
    },
    Watch(StartWatch),
    Own {
        id: String,
        value: Bytes,
        ttl_ms: u64,
        reply: oneshot::Sender<OwnedId>,
        written: Written,
    },
    ChangeOwned {
        owned: OwnedId,
        value: Bytes,
        written: Written,
    },
    Run {
        commands: Vec<Command>,
        reply: oneshot::Sender<Replies>,
    },
    Search {
        pattern: String,
        reply: oneshot::Sender<Result<Vec<String>, Error>>,
    },
    /// The units that run. The first time, the keyspace is searched.
    Units(oneshot::Sender<Result<Vec<Info>, Error>>),
    /// How far the list of units has come: a number that grows while it does.
    UnitsProgress(oneshot::Sender<u64>),
    /// Completed once everything that the server has sent by now was taken in, and what followed from it too.
    Barrier(oneshot::Sender<Result<(), Error>>),
    Tap {
        events: mpsc::Sender<Traffic>,
        /// Completed once all nodes are subscribed to.
        reply: oneshot::Sender<Result<(), Error>>,
    },
    Stats(oneshot::Sender<Stats>),
    Close(oneshot::Sender<()>),
}

/// What a handle that was dropped takes back. These never wait for room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Withdrawal {
    Ticket(Ticket),
    Watch(WatchId),
    Owned(OwnedId),
    /// A list of units is not waited for any more.
    Units,
}

/// The recipient of the replies of a pipeline.
pub(super) enum Recipient {
    /// The core, under its token.
    Core(Token),
    /// A handle, for a command of its own.
    Handle(oneshot::Sender<Replies>),
    /// None, for what was served: only a refusal is of interest.
    Served,
}

/// What one of the driver's tasks found out.
pub(super) enum Report {
    /// All connected nodes were subscribed to these patterns, or refused some.
    Subscribed {
        globs: Vec<String>,
        after: After,
        subscribed: Subscribed,
    },
    /// The flags of all connected nodes were looked at again.
    Rechecked(EventsChecked),
    /// A task ended that has no result.
    Nothing,
}

/// What a subscription was for.
pub(super) enum After {
    Serve(StartService),
    Watch(WatchId, oneshot::Sender<Result<WatchId, Error>>),
    Directory,
    Tap(TapId, oneshot::Sender<Result<(), Error>>),
    /// Seeing the answers of other backends.
    Answers,
}

/// Keys that a search found.
pub(super) struct Found {
    pub(super) token: SearchToken,
    pub(super) keys: Vec<String>,
    pub(super) step: SearchStep,
}
