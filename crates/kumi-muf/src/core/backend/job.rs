//! A request as one backend knows it. Plain data, and the conditions on it that the steps test.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::core::command::Time;
use crate::core::key::{Audience, RequestId, RequestKeys};
use crate::core::output::Outcome;

/// How this backend came to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Its event arrived, and it tries for the first time.
    Push,
    /// It lost, and the claim may have lapsed since.
    Takeover,
    /// It found an orphan.
    Sweep,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// All handlers of the service are busy.
    Waiting,
    /// A claim (or, for a request to all, a look) is to be made or on its way.
    Claiming,
    /// Claimed; the request is large, and the whole of it is read.
    Reading,
    /// Claimed; `.tries` is being counted.
    Counting,
    /// The handler works.
    Running,
    /// The handler works, but its answer is not wanted any more.
    Abandoned,
    /// The handler is done; its answer is to be written or on its way.
    Answering,
    /// Another backend has it; the timer says when its claim may have lapsed.
    Lost,
}

/// One request.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) unit: String,
    pub(super) id: RequestId,
    pub(super) service: u64,
    pub(super) origin: Origin,
    pub(super) state: State,
    /// What REQ held, kept between the claim and the start of the handler.
    pub(super) payload: Bytes,
    pub(super) meta: Option<Bytes>,
    /// What the handler left, until its answer is confirmed.
    pub(super) outcome: Option<Outcome>,
    /// Until when the claim is ours for certain: counted from when the confirmed command was sent, so it ends here no
    /// later than on the server.
    pub(super) lease_until: Time,
    /// For a request to all: how long its REQ lives, which its answer must outlive.
    pub(super) req_left_ms: u64,
    /// Failures in a row of the present step.
    pub(super) failures: u32,
    /// Hashes of RES and ERR as they were when this backend got the event of a bare ID: those are to an older request. None
    /// until then, and for IDs that are used once.
    pub(super) old_answers: Option<[Option<u64>; 2]>,
    /// A bare ID was set again while its answer was on its way, by a requester that may have seen that answer.
    pub(super) asked_again: bool,
    /// An answer was pushed while the claim was on its way.
    pub(super) answer_seen: bool,
    /// A claim was sent: it may have been got even if its reply was lost.
    pub(super) tried: bool,
    /// A read of REQ returned nothing: the next claim also asks whether REQ is there.
    pub(super) empty_seen: bool,
    /// There was `.tries` when it was claimed.
    pub(super) is_counted: bool,
    /// The whole of a large request is being read, or waits for its place.
    pub(super) is_fetching: bool,
    /// It was read, and is in `payload`.
    pub(super) is_fetched: bool,
    /// A large answer waits for its place.
    pub(super) is_queued: bool,
    /// A large answer is being written.
    pub(super) is_sending: bool,
    /// It keeps its service's place until its answer is written, because that is large.
    pub(super) keeps_place: bool,
    /// A command for this job is on its way.
    pub(super) busy: bool,
    /// The one timer that counts.
    pub(super) timer: Option<Time>,
}

impl Job {
    pub(super) fn new(unit: String, id: RequestId, service: u64, origin: Origin) -> Self {
        Self {
            unit,
            id,
            service,
            origin,
            state: State::Waiting,
            payload: Bytes::new(),
            meta: None,
            outcome: None,
            lease_until: Time(0),
            req_left_ms: 0,
            failures: 0,
            old_answers: None,
            asked_again: false,
            answer_seen: false,
            tried: false,
            empty_seen: false,
            is_counted: false,
            is_fetching: false,
            is_fetched: false,
            is_queued: false,
            is_sending: false,
            keeps_place: false,
            busy: false,
            timer: None,
        }
    }

    pub(super) fn keys(&self) -> RequestKeys<'_> {
        RequestKeys {
            unit: &self.unit,
            id: &self.id,
        }
    }

    pub(super) fn is_to_all(&self) -> bool {
        self.id.audience() == Audience::All
    }

    pub(super) fn is_bare(&self) -> bool {
        self.id.audience() == Audience::Bare
    }

    /// Whether RES and ERR, as just read, hold an answer to this request. An ID that a person typed may be used again:
    /// what is there when this backend gets the event is an answer to an older request, however often it is read after that.
    /// A backend that got no event cannot know, and takes any answer for one to this request.
    pub(super) fn is_answered_by(&mut self, answers: &[Option<Bytes>; 2]) -> bool {
        let hashes = answers.each_ref().map(|answer| answer.as_ref().map(hash));
        if self.is_bare() && self.origin == Origin::Push && self.old_answers.is_none() {
            self.old_answers = Some(hashes);
        }
        let old = self.old_answers.unwrap_or_default();
        let mut pairs = hashes.iter().zip(old);
        pairs.any(|(answer, old)| answer.is_some() && *answer != old)
    }

    /// Holds one of its service's places. A handler holds its place until it returns, or, if its answer is large, until
    /// that is written, which bounds the answers that wait in memory.
    pub(super) fn holds_place(&self) -> bool {
        let has_begun = matches!(
            self.state,
            State::Claiming | State::Reading | State::Counting | State::Running | State::Abandoned
        );
        (has_begun && self.outcome.is_none()) || self.keeps_place
    }

    /// The handler works, wanted or not.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running | State::Abandoned)
    }
}

fn hash(answer: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    answer.hash(&mut hasher);
    hasher.finish()
}
