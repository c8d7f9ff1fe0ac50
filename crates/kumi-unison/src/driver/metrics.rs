//! Counters of what happened on a connection's channels.
//!
//! They only count up, without order between them: a snapshot taken while calls run may have counted a request and not
//! yet its frame. Rates are the difference of two snapshots.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one connection.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Metrics {
            /// Every counter, read one after the other.
            pub fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Packets read.
    packets_in,
    /// Bytes read, frames and all.
    bytes_in,
    /// Bytes handed to the transport.
    bytes_out,
    /// Writes to the transport; many messages leave in one.
    writes,
    /// Channels opened or accepted.
    channels_opened,
    /// Openings refused by us.
    channels_refused,
    /// Requests we sent.
    requests_sent,
    /// Requests of ours that ended with an answer, good or bad.
    requests_answered,
    /// Requests of ours that ended without one: deadline, loss, closing.
    requests_failed,
    /// Requests of ours whose callers gave up.
    requests_cancelled,
    /// Answers that came after their request had been given up.
    late_answers,
    /// Requests we ran a handler for.
    requests_run,
    /// Requests we refused without running them: busy, draining, typed binary.
    requests_refused,
    /// CANCELs that reached a request still running.
    cancels_received,
    /// Handlers that panicked.
    handler_panics,
    /// Events we sent.
    events_sent,
    /// Events we dropped. Events that were not sent for want of credit, on channels that drop, count here. Received events
    /// that no receiver asked for count here, if they were more than may be kept. Datagrams beyond a window count here.
    events_dropped,
    /// Events that had to wait for credit.
    events_waited,
    /// Events that came.
    events_received,
    /// Events that came and were thrown away because nothing receives them.
    events_discarded,
    /// Datagrams that could not be read, or were for no channel.
    datagrams_dropped,
    /// Streams closed because of what the peer sent.
    protocol_errors,
    /// Channels reopened after a lost connection.
    channels_resumed,
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }
}
