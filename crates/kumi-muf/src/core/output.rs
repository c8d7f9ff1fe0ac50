//! What the core hands to its driver: commands to run, results to deliver, handlers to start.

use bytes::Bytes;
use kumi_common::Shown;

use super::command::{Command, Op, Purpose, SearchToken, Token};
use super::ignored::KeyError;
use super::key::RequestId;

/// Characters that errors show of what others wrote.
const SHOWN_LIMIT: usize = 200;

/// A call that waits. Unique within one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub(crate) u64);

/// A request that a backend works on. Unique within one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub(crate) u64);

/// A service of a backend: a pattern and its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub(crate) u64);

/// A gather under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatherId(pub(crate) u64);

/// A watch over kept values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(pub(crate) u64);

/// A kept value that is refreshed as long as its unit lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedId(pub(crate) u64);

/// How a call ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No backend claimed the request while it existed. It was not run by a backend that claims.
    #[error("no backend claimed the request while it lived")]
    NoResponder,
    /// A backend claimed it and did not answer in time. It may still be running.
    #[error("claimed by {}, which did not answer in time", shown(.claimant.as_bytes()))]
    HandlerTimeout {
        /// The unit that claimed it last.
        claimant: String,
    },
    /// The backend answered ERR, with this payload.
    #[error("the backend answered with an error: {}", shown(.0))]
    Remote(Bytes),
    /// No server could be asked when the time was up. The request may have run.
    #[error("the server could not be reached before the deadline")]
    Disconnected,
    /// The search for answers that were missed in a gap was not finished in time: some may be missing. A gather only.
    #[error("the search for answers that were missed was not finished in time")]
    SearchUnfinished,
    /// Answers were left unread: there were more than a gather takes, or their reader was too slow. A gather only.
    #[error("answers were left unread: there are too many, or they were not taken in time")]
    AnswersLeft,
    /// The server refused to take the request, or to show its answer, with this text. In the second case it may run.
    #[error("the server refused: {}", shown(.0.as_bytes()))]
    Refused(String),
    /// The answer is larger than this unit reads. The request has run.
    #[error("the answer is over the limit of {limit_bytes} bytes")]
    TooLarge {
        /// How much this unit reads.
        limit_bytes: usize,
    },
}

/// What came of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Goes to RES.
    Good(Bytes),
    /// Goes to ERR.
    Bad(Bytes),
}

/// A request handed to a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// The unit that calls.
    pub unit: String,
    /// The request's ID.
    pub id: RequestId,
    /// What REQ holds.
    pub payload: Bytes,
    /// 1, and one more for each takeover or sweep.
    pub attempt: u32,
    /// The tracing side key, if there is one and tracing is on.
    pub meta: Option<Bytes>,
}

/// One answer of a gather.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The backend that answered.
    pub backend: String,
    /// RES, or ERR as `Err`.
    pub result: Result<Bytes, Bytes>,
}

/// What a watcher of kept values sees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepEvent {
    /// A value that is there: in the snapshot, or because it was set.
    Value {
        /// The unit that keeps it.
        unit: String,
        /// Its name.
        id: String,
        /// What it holds.
        value: Bytes,
        /// Milliseconds until it expires unless it is refreshed; none is for ever.
        ttl_ms: Option<u64>,
    },
    /// A value that is there, and larger than this unit reads.
    TooLarge {
        /// The unit that keeps it.
        unit: String,
        /// Its name.
        id: String,
        /// How much this unit reads.
        limit_bytes: usize,
    },
    /// It was deleted.
    Deleted {
        /// The unit that keeps it.
        unit: String,
        /// Its name.
        id: String,
    },
    /// Its life ended.
    Expired {
        /// The unit that keeps it.
        unit: String,
        /// Its name.
        id: String,
    },
    /// The snapshot is complete; what follows is live.
    Live,
    /// Changes may have been missed: the watcher discards what it knows. All present values follow, then [`KeepEvent::Live`].
    Gap,
}

/// What a driver has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Run a pipeline; hand its replies to `Core::handle_reply`.
    Run(Op),
    /// Find all keys that match `pattern` (SCAN, on every primary); hand them to `Core::handle_found`.
    Search {
        /// Goes back with the keys to `Core::handle_found`.
        token: SearchToken,
        /// A glob over keys, as SCAN's MATCH takes it.
        pattern: String,
        /// Whether the search pauses between its steps, because nothing waits for it.
        paced: bool,
    },
    /// Nothing waits any more for what a search under way finds: end it. What it has found may still be handed on.
    CancelSearch {
        /// The token of the search.
        token: SearchToken,
    },
    /// A call ended. Comes once per call that is not cancelled.
    Deliver {
        /// The call that ended.
        call: CallId,
        /// The answer, or why there is none.
        result: Result<Bytes, CallError>,
    },
    /// Start a handler; hand what comes of it to `Core::handle_finished`.
    Start {
        /// The service whose handler is started.
        service: ServiceId,
        /// Goes back with the outcome to `Core::handle_finished`.
        job: JobId,
        /// The request that the handler gets.
        request: Incoming,
    },
    /// Subscribe to answers as well: another backend won, and the event of its answer saves a read.
    WatchAnswers,
    /// An answer of a gather.
    Gathered {
        /// The gather that gets it.
        gather: GatherId,
        /// One backend's answer.
        answer: Gathered,
    },
    /// A gather ended; no more answers come. `Err` if its request could not be written, or if answers may be missing.
    GatherDone {
        /// The gather that ended.
        gather: GatherId,
        /// `Ok` when no more answers come, with those delivered so far.
        result: Result<(), CallError>,
    },
    /// The server has a value that this unit owns, or refused it.
    OwnedWritten {
        /// The value that was written or refused.
        owned: OwnedId,
        /// The first value is 1; `Core::change_owned` returns the others. It stands for all earlier versions too.
        version: u64,
        /// Whether the server has the value. One that was refused is tried again.
        result: Result<(), CallError>,
    },
    /// A request was ignored because its key is outside the grammar. Comes once for each unit that wrote such a key.
    Ignored {
        /// The key, or what is text in it.
        key: String,
        /// What is wrong with it.
        reason: KeyError,
    },
    /// Something for a watcher.
    Watched {
        /// The watch that gets it.
        watch: WatchId,
        /// What the watcher sees.
        event: KeepEvent,
    },
}

impl Output {
    /// A pipeline whose replies come back for `purpose`.
    pub(crate) fn run(purpose: Purpose, commands: Vec<Command>) -> Self {
        Self::run_as(purpose, commands, false)
    }

    /// The same, with a large value if `bulk`.
    pub(crate) fn run_as(purpose: Purpose, commands: Vec<Command>, bulk: bool) -> Self {
        Self::Run(Op {
            token: Token(purpose),
            commands,
            bulk,
        })
    }
}

/// What others wrote, as errors show it.
pub(crate) fn shown(bytes: &[u8]) -> Shown<'_> {
    Shown {
        bytes,
        limit_chars: SHOWN_LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_beginning_of_what_a_backend_wrote() {
        let payload = Bytes::from("\u{1b}[2J".to_owned() + &"x".repeat(5_000));
        let expected = format!(
            "the backend answered with an error: \\u{{1b}}[2J{}... (5004 bytes in all)",
            "x".repeat(SHOWN_LIMIT - 4)
        );
        assert_eq!(CallError::Remote(payload).to_string(), expected);
    }
}
