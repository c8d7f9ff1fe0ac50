//! What goes into the worker's core and what comes out: rules, moments, calls and replies, actions, notes.

use super::super::claim::{Ask, Claim, Finish, Finished, Lease, Signal, Turn};
use super::super::id::{TaskId, Timestamp, Token};
use super::super::owner::Owner;
use std::collections::HashMap;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

/// A point in time: how long after the worker's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn after_start(time: Duration) -> Self {
        Self(time)
    }

    pub(crate) fn since_start(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

/// The settings of a worker, which do not change while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) owner: Owner,
    /// Handlers that run at once, at most.
    pub(crate) concurrency: usize,
    /// The same of single types.
    pub(crate) limits: HashMap<Arc<str>, usize>,
    /// The types that it has handlers for; at least one.
    pub(crate) types: Vec<Arc<str>>,
    pub(crate) lease: Duration,
    /// How long handlers may go on after the stop.
    pub(crate) shutdown: Duration,
    /// How long handlers that are told to stop are waited for after that.
    pub(crate) grace: Duration,
}

/// Why a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The task was cancelled.
    Cancelled,
    /// The worker shuts down.
    Shutdown,
    /// The lease ran out.
    LeaseLost,
}

/// A call to the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// `Queue::turn`.
    Turn(Vec<Finish>, Ask),
    /// `Queue::heartbeat`.
    Heartbeat,
    /// `Queue::recover`.
    Recover,
    /// `Queue::wait` without a type, which ends at once.
    Look,
}

/// The reply to the call in flight, which is of the same kind.
#[derive(Debug)]
pub(crate) enum Reply {
    Turn(Result<Turn, CallError>),
    Heartbeat(Result<Lease, CallError>),
    Recover(Result<Vec<Claim>, CallError>),
    Look(Result<Vec<Signal>, CallError>),
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The worker was declared gone.
    Released,
    /// The queue has another format than this program.
    Format,
    /// Anything else: the call may have been carried out.
    Other,
}

/// What a reply means for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoOn,
    /// The call failed; the next one comes after a pause.
    Failed,
    /// The queue has another format: the worker ends, and reports what runs until then.
    Ending,
    /// The worker is over at once. It holds nothing any more: its runs are to be aborted.
    Over,
}

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Action {
    /// Starts the handler of a claim, and calls `ended_at_once`, `goes_on` or `cannot_start` before it polls again.
    Start(Claim),
    /// Tells the handler of this run to stop.
    Stop(TaskId, Token, Stop),
    /// Sends a call. Its reply goes to `handle_reply`.
    Send(Call),
    /// Waits for signals, beside the call in flight, for at most this long. What comes goes to `handle_wait`.
    Wait(Vec<Arc<str>>, Duration),
    /// Ends the wait, by `Queue::poke`.
    Poke,
    /// Nothing is to be done before this moment, or before an event. At the moment, calls `handle_timeout`.
    Sleep(Option<Moment>),
    /// The worker has ended. What `give_back_all` returns is to be reported.
    End,
}

/// Something for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// What became of a report on this attempt, at this time of the queue.
    Reported(Finish, u32, Finished, Timestamp),
    /// The lease ended before it was renewed; what runs is stopped.
    LeaseEnded,
    /// The queue gave this run's task to others; it is stopped.
    LeaseLost(TaskId, u32),
    /// The queue gave so many tasks to others; they are stopped.
    GivenAway(usize),
}
