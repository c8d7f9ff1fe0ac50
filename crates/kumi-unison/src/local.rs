//! Typed channels inside one process: values instead of bytes, the same shapes as over QUIC.
//!
//! Generated `{Protocol}Connection` structs are made of these. They need no runtime beyond tokio's channels, no encoding
//! and no schema check, so they suit tests and parts of one program that may one day talk over a network.
//!
//! Every type is a half; `pair(capacity)` makes both. Each has a bounded queue: a full one makes the sender wait, which
//! is what the `wait` policy does over QUIC. Which half a client holds follows from a channel's `from`, `send` (what
//! `from` sends), `recv` (what comes back) and `lifetime`:
//!
//! | from | send | recv | lifetime | client's half | server's half |
//! |---|---|---|---|---|---|
//! | server | S | - | any | `ReceiveChannel<S>` | `SendChannel<S>` |
//! | client | S | - | any | `SendChannel<S>` | `ReceiveChannel<S>` |
//! | client | S | R | transient | `RequestChannel<S, R>` | `RespondChannel<S, R>` |
//! | server | S | R | transient | `RespondChannel<S, R>` | `RequestChannel<S, R>` |
//! | client | S | R | persistent | `BidirectionalChannel<S, R>` | `BidirectionalChannel<R, S>` |
//! | server | S | R | persistent | `BidirectionalChannel<R, S>` | `BidirectionalChannel<S, R>` |
//! | either | S | - | any | `BidirectionalChannel<S, S>` | `BidirectionalChannel<S, S>` |
//! | either | S | R | transient | `PeerChannel<S, R>` | `PeerChannel<S, R>` |
//! | either | S | R | persistent | `BidirectionalChannel<C, E>`, enums of what client and server send | `BidirectionalChannel<E, C>` |
//! | server | - | R | any | as `from` client with `send` R | |
//! | client | - | R | any | as `from` server with `send` R | |
//! | either | - | R | any | as `from` either with `send` R | |
//! | any | - | - | any | nothing: the schema check refuses such a channel | |
//!
//! A transient channel with an answer is a question each time; a persistent one is a conversation. A channel that has
//! requests and events is a [`ServiceChannel`] of one of each. The two type parameters of [`BidirectionalChannel`] are
//! what its holder sends and what it receives, in that order.

mod request;
mod stream;

pub use request::{IncomingQuestion, PeerChannel, RequestChannel, RespondChannel};
pub use stream::{BidirectionalChannel, ReceiveChannel, SendChannel, StreamReceiver, StreamSender};

/// Requests and events of one channel, side by side.
#[derive(Debug)]
pub struct ServiceChannel<X, E> {
    /// The requests: a [`RequestChannel`], [`RespondChannel`] or [`PeerChannel`].
    pub requests: X,
    /// The events: a [`SendChannel`], [`ReceiveChannel`] or [`BidirectionalChannel`].
    pub events: E,
}

/// One half of a channel, with the type of the other one.
pub trait Half: Sized {
    /// The other half.
    type Other;

    /// Both halves, this one first, with queues of `capacity` messages.
    fn pair(capacity: usize) -> (Self, Self::Other);
}

macro_rules! halves {
    ($($half:ident<$a:ident, $b:ident> => $other:ty;)*) => {$(
        impl<$a, $b> Half for $half<$a, $b> {
            type Other = $other;

            fn pair(capacity: usize) -> (Self, $other) {
                $half::pair(capacity)
            }
        }
    )*};
    ($($half:ident<$a:ident> => $other:ty;)*) => {$(
        impl<$a> Half for $half<$a> {
            type Other = $other;

            fn pair(capacity: usize) -> (Self, $other) {
                $half::pair(capacity)
            }
        }
    )*};
}

halves! {
    RequestChannel<Q, A> => RespondChannel<Q, A>;
    RespondChannel<Q, A> => RequestChannel<Q, A>;
    PeerChannel<Q, A> => PeerChannel<Q, A>;
    BidirectionalChannel<Out, In> => BidirectionalChannel<In, Out>;
}

halves! {
    SendChannel<T> => ReceiveChannel<T>;
    ReceiveChannel<T> => SendChannel<T>;
}

impl<X: Half, E: Half> Half for ServiceChannel<X, E> {
    type Other = ServiceChannel<X::Other, E::Other>;

    fn pair(capacity: usize) -> (Self, Self::Other) {
        let (requests, other_requests) = X::pair(capacity);
        let (events, other_events) = E::pair(capacity);
        let other = ServiceChannel {
            requests: other_requests,
            events: other_events,
        };
        (Self { requests, events }, other)
    }
}
