//! What a tap shows: the events of keys of requests, claims and answers.

use std::time::Instant;

use bytes::Bytes;

use crate::core::{Key, Status};

/// The one subscription of a tap. No other part of a unit subscribes to this, so its pushes can be recognised.
pub(crate) const TAP_GLOB: &str = "MUF/*";

/// What a tap shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traffic {
    /// Something happened to a key of a request.
    Key(KeyEvent),
    /// A key below `MUF/` was set that is outside the grammar. No unit takes part in it.
    #[non_exhaustive]
    Ignored {
        /// The key, or what is text in it.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something may have been missed before what follows.
    Gap,
}

/// Something that happened to the key of a request, a claim or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyEvent {
    /// The requester.
    pub unit: String,
    /// REQ, RES or ERR; KEEP for a claim.
    pub status: Status,
    /// The fourth level of the key. A claim's ends in `.claim`.
    pub id: String,
    /// What the server calls it: `set`, `expired`, `del`.
    pub event: String,
    /// What the key held shortly after it was set. None for other events, and if it was gone by then.
    pub value: Option<Bytes>,
    /// The key held more than the unit's limit of payloads, and `value` is only the beginning.
    pub is_cut: bool,
    /// When the server's push arrived.
    pub at: Instant,
}

impl KeyEvent {
    /// Reads a push. Keys that no request has are not traffic.
    pub(crate) fn of(text: &str, event: &str, at: Instant) -> Option<Self> {
        let key = Key::parse(text)?;
        if key.status == Status::Keep && !key.id.ends_with(".claim") {
            return None;
        }
        Some(Self {
            unit: key.unit.to_owned(),
            status: key.status,
            id: key.id.to_owned(),
            event: event.to_owned(),
            value: None,
            is_cut: false,
            at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_answers_and_claims_are_traffic() {
        let check = |key: &str, status: Option<Status>| {
            let event = KeyEvent::of(key, "set", Instant::now());
            assert_eq!(event.map(|event| event.status), status, "{key}");
        };
        check("MUF/web/REQ/a.b~01J", Some(Status::Req));
        check("MUF/web/RES/a.b~01J", Some(Status::Res));
        check("MUF/web/ERR/hello", Some(Status::Err));
        check("MUF/web/KEEP/a.b~01J.claim", Some(Status::Keep));
        check("MUF/web/KEEP/a.b~01J.tries", None);
        check("MUF/web/KEEP/_info", None);
        check("MUF/web/KEEP/temperature", None);
        check("MUF/web/REQ/a/b", None);
    }
}
