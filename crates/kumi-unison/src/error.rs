//! How a call, an event or a connection can fail.
//!
//! Each variant says which side caused it and whether the request may have been executed, because a caller must know that
//! before it sends the request again.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::Shown;
#[cfg(feature = "quic")]
use crate::tls::TlsError;
use crate::validation::ValidationError;
use crate::wire::WireError;

/// The codes that the runtime itself puts into Error messages, as they travel.
pub(crate) mod codes {
    pub(crate) const CHANNEL_NOT_FOUND: &str = "channel-not-found";
    pub(crate) const CHANNEL_REQUIRED: &str = "channel-required";
    pub(crate) const BUSY: &str = "busy";
    pub(crate) const UNAVAILABLE: &str = "unavailable";
    pub(crate) const DRAINING: &str = "draining";
    pub(crate) const DEADLINE: &str = "deadline";
    pub(crate) const CANCELLED: &str = "cancelled";
    pub(crate) const SCHEMA_MISMATCH: &str = "schema-mismatch";
    pub(crate) const TYPED_REFUSED: &str = "typed-refused";
    pub(crate) const UNRELIABLE: &str = "unreliable";
    pub(crate) const METHOD_NOT_FOUND: &str = "method-not-found";
    pub(crate) const INVALID: &str = "invalid";
    pub(crate) const INTERNAL: &str = "internal";
    pub(crate) const DELIVERY_MISMATCH: &str = "delivery-mismatch";
    pub(crate) const MALFORMED: &str = "malformed";
    pub(crate) const VIOLATION: &str = "violation";
    pub(crate) const MEMORY_LIMIT: &str = "memory-limit";
    pub(crate) const EVENT_OVERFLOW: &str = "event-overflow";
    pub(crate) const ANSWER_TOO_LARGE: &str = "answer-too-large";
    pub(crate) const ANSWERS_WAITING: &str = "answers-waiting";
}

/// A failure of Unison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A message of ours is above the limit. It was not sent, so nothing was executed.
    #[error("frame of {len} bytes exceeds the limit of {max}")]
    FrameTooLarge {
        /// The length needed.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The peer's bytes cannot be read. The stream they came on is closed.
    #[error("the peer's bytes cannot be read")]
    Wire(#[source] WireError),
    /// The peer broke a rule of the channel, such as sending an event without credit. The stream is closed.
    #[error("the peer broke the protocol: {}", Shown(.0))]
    Violation(String),
    /// A frame was begun and not completed in time. The stream is closed.
    #[error("a frame was not completed in time")]
    FrameTimeout,
    /// The server has no channel of this name. Nothing was executed.
    #[error("no channel named \"{}\" (there is {})", Shown(name), list(available))]
    ChannelNotFound {
        /// The name asked for.
        name: String,
        /// The names that exist.
        available: Vec<String>,
    },
    /// The first message on a stream named no channel, and there is no handler for such messages. Nothing was executed.
    #[error("messages must be sent on a channel")]
    ChannelRequired,
    /// As many requests run as may. This one was not executed.
    #[error("busy, the request was not executed")]
    Busy,
    /// The channel exists and is switched off. Nothing was executed.
    #[error("channel \"{}\" is unavailable", Shown(name))]
    Unavailable {
        /// The channel.
        name: String,
    },
    /// The peer is shutting down and takes no new requests. This one was not executed.
    #[error("{} is draining, the request was not executed", peer.map_or("the peer".to_owned(), |peer| peer.to_string()))]
    #[non_exhaustive]
    Draining {
        /// The peer's address, where the transport has addresses.
        peer: Option<SocketAddr>,
    },
    /// The deadline passed. The request may have been executed.
    #[error("the deadline passed{}", peer.map_or(String::new(), |peer| format!(" without an answer from {peer}")))]
    #[non_exhaustive]
    Deadline {
        /// The peer's address, where the transport has addresses.
        peer: Option<SocketAddr>,
    },
    /// The call was cancelled. The request may have been executed in part.
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection or the stream broke before the answer came.
    #[error(
        "the connection{} was lost{}",
        to(*peer),
        if *maybe_executed { ", the request may have been executed" } else { "" }
    )]
    #[non_exhaustive]
    ConnectionLost {
        /// False when the request certainly never reached the peer.
        maybe_executed: bool,
        /// The peer's address, where the transport has addresses.
        peer: Option<SocketAddr>,
    },
    /// The two sides' schemas differ in their major version. Nothing was executed.
    #[error("schema version {} does not fit ours, {}", Shown(theirs), Shown(ours))]
    SchemaMismatch {
        /// Our version.
        ours: String,
        /// The peer's version.
        theirs: String,
    },
    /// Typed binary was sent although the two schemas are not the same; JSON works. Nothing was executed.
    #[error("the schemas differ, so typed binary is refused; use JSON")]
    TypedRefused,
    /// The two sides do not say the same of whether the channel's events may be lost. Nothing was executed.
    #[error("the channel is {} there and {} here", Shown(theirs), Shown(ours))]
    DeliveryMismatch {
        /// What we say.
        ours: String,
        /// What the peer says.
        theirs: String,
    },
    /// The peer closed the channel for what came on it, or by its policy, and says why. What was under way may have been
    /// executed.
    #[error("the peer closed the channel: {0}")]
    ClosedByPeer(RemoteError),
    /// The peer's handler answered with an error.
    #[error(transparent)]
    Remote(RemoteError),
    /// An event found no credit on a channel whose policy is to close, or for as long as the policy waits. The event was
    /// not sent.
    #[error("an event found no credit, because the peer does not read")]
    EventOverflow,
    /// More was buffered for this connection than its limit allows. The stream is closed.
    #[error("the connection holds more than its memory limit")]
    MemoryLimit,
    /// This side or the other closed the channel.
    #[error("the channel{} is closed", to(*peer))]
    #[non_exhaustive]
    Closed {
        /// The peer's address, where the transport has addresses.
        peer: Option<SocketAddr>,
    },
    /// A payload could not be encoded or decoded. Nothing was sent, or the answer could not be read.
    #[error("payload: {}", Shown(.0))]
    Codec(String),
    /// A message breaks a constraint of its schema. It was not sent, or, as an answer or event, not accepted.
    #[error("invalid message: {0}")]
    Invalid(#[from] ValidationError),
    /// A request was made on a channel whose messages may be lost. Nothing was executed.
    #[error("an unreliable channel carries no requests")]
    Unreliable,
    /// The transport under the channel failed.
    #[error("transport: {0}")]
    Transport(#[from] TransportError),
    /// A connection could not be made.
    #[error("cannot connect: {}", Shown(.0))]
    Connect(String),
    /// Options do not fit together. The caller's fault; nothing was opened.
    #[error("{0}")]
    Options(String),
    /// An address could not be listened on; most often it is taken. Nothing was opened.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// Certificates or trust are not as they must be.
    #[cfg(feature = "quic")]
    #[error("the TLS handshake cannot be done")]
    Tls(#[source] std::sync::Arc<TlsError>),
}

fn to(peer: Option<SocketAddr>) -> String {
    peer.map_or(String::new(), |peer| format!(" to {peer}"))
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        Shown(&names.join(", ")).to_string()
    }
}

#[cfg(feature = "quic")]
impl From<TlsError> for NetworkError {
    fn from(error: TlsError) -> Self {
        Self::Tls(std::sync::Arc::new(error))
    }
}

impl From<WireError> for NetworkError {
    fn from(error: WireError) -> Self {
        match error {
            // Ours; a frame of the peer's that is too large says nothing about what the peer executed.
            WireError::TooLarge { len, max } => Self::FrameTooLarge { len, max },
            error => Self::Wire(error),
        }
    }
}

impl NetworkError {
    /// A lost connection to a peer without an address, as in memory.
    ///
    /// ```
    /// use kumi_unison::NetworkError;
    /// let lost = NetworkError::connection_lost(false);
    /// assert!(lost.is_not_executed());
    /// assert_eq!(lost.to_string(), "the connection was lost");
    /// ```
    pub const fn connection_lost(maybe_executed: bool) -> Self {
        Self::lost(maybe_executed, None)
    }

    /// A deadline that passed, of a peer without an address.
    pub const fn deadline() -> Self {
        Self::Deadline { peer: None }
    }

    /// A peer without an address that is draining.
    pub const fn draining() -> Self {
        Self::Draining { peer: None }
    }

    /// A closed channel to a peer without an address.
    pub const fn closed() -> Self {
        Self::Closed { peer: None }
    }

    /// The same error with the peer's address, if it has a place for one and none yet.
    pub(crate) fn at(mut self, address: Option<SocketAddr>) -> Self {
        if let Self::Draining { peer }
        | Self::Deadline { peer }
        | Self::Closed { peer }
        | Self::ConnectionLost { peer, .. } = &mut self
        {
            *peer = peer.or(address);
        }
        self
    }

    pub(crate) const fn lost(maybe_executed: bool, peer: Option<SocketAddr>) -> Self {
        Self::ConnectionLost {
            maybe_executed,
            peer,
        }
    }

    /// Whether asking again can do no harm because this request certainly was not executed.
    pub fn is_not_executed(&self) -> bool {
        matches!(
            self,
            Self::FrameTooLarge { .. }
                | Self::ChannelNotFound { .. }
                | Self::ChannelRequired
                | Self::Busy
                | Self::Unavailable { .. }
                | Self::Draining { .. }
                | Self::ConnectionLost {
                    maybe_executed: false,
                    ..
                }
                | Self::SchemaMismatch { .. }
                | Self::DeliveryMismatch { .. }
                | Self::TypedRefused
                | Self::Unreliable
        )
    }

    /// Whether a channel that ends so is not opened again, for what the peer sent or by its policy, and the peer is to get
    /// it.
    pub(crate) fn is_for_good(&self) -> bool {
        matches!(
            self,
            Self::EventOverflow
                | Self::Violation(_)
                | Self::Wire(_)
                | Self::FrameTooLarge { .. }
                | Self::Codec(_)
                | Self::MemoryLimit
        )
    }

    /// Why a channel is closed, as it is sent to its peer.
    pub(crate) fn to_close_reason(&self) -> RemoteError {
        match self {
            Self::Codec(text) => RemoteError::new(codes::MALFORMED, text),
            Self::Wire(error) => RemoteError::new(codes::MALFORMED, error.to_string()),
            error => error.to_remote(),
        }
    }

    /// How this travels in an Error message of the runtime.
    pub(crate) fn to_remote(&self) -> RemoteError {
        let (code, payload) = match self {
            Self::ChannelNotFound { name, available } => (
                codes::CHANNEL_NOT_FOUND,
                Some(serde_json::json!({ "name": name, "available": available })),
            ),
            Self::ChannelRequired => (codes::CHANNEL_REQUIRED, None),
            Self::Busy => (codes::BUSY, None),
            Self::Unavailable { name } => (
                codes::UNAVAILABLE,
                Some(serde_json::json!({ "name": name })),
            ),
            Self::Draining { .. } => (codes::DRAINING, None),
            Self::Deadline { .. } => (codes::DEADLINE, None),
            Self::Cancelled => (codes::CANCELLED, None),
            Self::SchemaMismatch { ours, theirs } => (
                codes::SCHEMA_MISMATCH,
                Some(serde_json::json!({ "ours": ours, "theirs": theirs })),
            ),
            Self::DeliveryMismatch { ours, theirs } => (
                codes::DELIVERY_MISMATCH,
                Some(serde_json::json!({ "ours": ours, "theirs": theirs })),
            ),
            Self::TypedRefused => (codes::TYPED_REFUSED, None),
            Self::Unreliable => (codes::UNRELIABLE, None),
            Self::Wire(_) | Self::FrameTooLarge { .. } => (codes::MALFORMED, None),
            Self::Violation(_) => (codes::VIOLATION, None),
            Self::MemoryLimit => (codes::MEMORY_LIMIT, None),
            Self::EventOverflow => (codes::EVENT_OVERFLOW, None),
            Self::Remote(remote) => return remote.clone(),
            _ => (codes::INTERNAL, None),
        };
        RemoteError {
            code: code.to_owned(),
            message: self.to_string(),
            payload,
        }
    }

    /// What an Error message of the runtime means to the one who asked.
    pub(crate) fn from_runtime(remote: RemoteError) -> Self {
        let text = |key: &str| {
            let value = remote.payload.as_ref().and_then(|payload| payload.get(key));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match remote.code.as_str() {
            codes::CHANNEL_NOT_FOUND => {
                let available = remote
                    .payload
                    .as_ref()
                    .and_then(|payload| payload.get("available"));
                let names = available
                    .and_then(Value::as_array)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let available = names
                    .iter()
                    .filter_map(|name| name.as_str().map(str::to_owned));
                Self::ChannelNotFound {
                    name: text("name"),
                    available: available.collect(),
                }
            }
            codes::CHANNEL_REQUIRED => Self::ChannelRequired,
            codes::BUSY => Self::Busy,
            codes::UNAVAILABLE => Self::Unavailable { name: text("name") },
            codes::DRAINING => Self::draining(),
            codes::DEADLINE => Self::deadline(),
            codes::CANCELLED => Self::Cancelled,
            // Said by the peer, so ours and theirs change places.
            codes::SCHEMA_MISMATCH => Self::SchemaMismatch {
                ours: text("theirs"),
                theirs: text("ours"),
            },
            codes::DELIVERY_MISMATCH => Self::DeliveryMismatch {
                ours: text("theirs"),
                theirs: text("ours"),
            },
            codes::TYPED_REFUSED => Self::TypedRefused,
            codes::UNRELIABLE => Self::Unreliable,
            _ => Self::Remote(remote),
        }
    }
}

/// What a handler answers when it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {}", Shown(code), Shown(message))]
pub struct RemoteError {
    /// A short name for programs, such as `room-full`.
    pub code: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// Details, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

impl RemoteError {
    /// An error without details.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            payload: None,
        }
    }

    /// The same error with details.
    pub fn with_payload(mut self, payload: Value) -> Self {
        self.payload = Some(payload);
        self
    }

    /// The handler knows no such method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            codes::METHOD_NOT_FOUND,
            format!("no method named {method:?}"),
        )
    }

    /// The payload is not what the method takes.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(codes::INVALID, message)
    }

    /// The handler broke. Its reason is for the log, not for the peer.
    pub fn internal() -> Self {
        Self::new(codes::INTERNAL, "the handler failed")
    }
}

impl RemoteError {
    /// The answer does not fit a packet.
    pub(crate) fn answer_too_large(error: impl std::fmt::Display) -> Self {
        Self::new(codes::ANSWER_TOO_LARGE, error.to_string())
    }

    /// There are so many answers that the peer has not taken that this one was dropped.
    pub(crate) fn answers_waiting() -> Self {
        let message = "too many bytes of answers wait to be read; this one was dropped";
        Self::new(codes::ANSWERS_WAITING, message)
    }
}

impl From<NetworkError> for RemoteError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::Codec(message) => Self::invalid(message),
            other => other.to_remote(),
        }
    }
}

/// A failure below the channels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The peer reset the stream or stopped reading it, with this code.
    #[error("stream reset with code {0}")]
    Reset(u64),
    /// The connection under the stream is gone, for this reason.
    #[error("connection lost: {}", Shown(.0))]
    ConnectionLost(String),
    /// Something else, as the transport says it.
    #[error("{}", Shown(.0))]
    Io(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_of_an_error_is_shown_escaped_and_cut() {
        let text = format!("\x1b[2J\u{202e}{}", "x".repeat(5_000));
        let payload = serde_json::json!({
            "name": text, "available": [text, text], "ours": text, "theirs": text,
        });
        let codes = [
            codes::CHANNEL_NOT_FOUND,
            codes::CHANNEL_REQUIRED,
            codes::BUSY,
            codes::UNAVAILABLE,
            codes::DRAINING,
            codes::DEADLINE,
            codes::CANCELLED,
            codes::SCHEMA_MISMATCH,
            codes::DELIVERY_MISMATCH,
            codes::TYPED_REFUSED,
            codes::UNRELIABLE,
            text.as_str(),
        ];
        for code in codes {
            let remote = RemoteError::new(code, &text).with_payload(payload.clone());
            let closed = NetworkError::ClosedByPeer(remote.clone());
            for error in [NetworkError::from_runtime(remote), closed] {
                let shown = error.to_string();
                assert!(shown.chars().count() < 1_200, "{shown}");
                assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown}");
            }
        }
    }
}
