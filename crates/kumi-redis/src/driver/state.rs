//! The state of all connections to a server or cluster.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;

/// The state of all connections to a server or cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// Connected to the server, or to all primaries of a cluster.
    Connected,
    /// The server, or a primary of a cluster, is away and is being connected again. What waits for it goes on when it
    /// is back.
    #[non_exhaustive]
    Away {
        /// When the first of them was lost.
        since: Instant,
        /// Why the last attempt to connect failed; none before an attempt has failed. A server that refuses a subscription,
        /// because permissions were taken away, is tried again like one that is not there.
        reason: Option<Arc<str>>,
    },
    /// Its owner has closed it.
    Closed,
}

impl Connection {
    /// Whether the server is connected.
    pub fn is_connected(&self) -> bool {
        *self == Connection::Connected
    }

    /// Why the server is away, if an attempt to connect has failed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Connection::Away { reason, .. } => reason.as_deref(),
            Connection::Connected | Connection::Closed => None,
        }
    }
}

/// The states of all connections: the one now, then each that follows, until they are closed. A reader that is
/// slow misses states that did not last; the last one it always gets.
pub struct ConnectionChanges {
    states: Pin<Box<dyn Stream<Item = Connection> + Send>>,
}

impl ConnectionChanges {
    /// The changes of a state.
    pub fn new(state: watch::Receiver<Connection>) -> Self {
        let states = unfold((state, true), |(mut state, is_first)| async move {
            if !is_first {
                state.changed().await.ok()?;
            }
            let now = state.borrow_and_update().clone();
            Some((now, (state, false)))
        });
        Self {
            states: Box::pin(states),
        }
    }

    /// The next state; none after [`Connection::Closed`]. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Connection> {
        std::future::poll_fn(|cx| self.states.as_mut().poll_next(cx)).await
    }

    /// The next state that `is_wanted`; none if the connections were closed before there was one.
    pub async fn wait_for(
        &mut self,
        is_wanted: impl Fn(&Connection) -> bool,
    ) -> Option<Connection> {
        loop {
            let state = self.next().await?;
            if is_wanted(&state) {
                return Some(state);
            }
        }
    }
}

impl Stream for ConnectionChanges {
    type Item = Connection;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Connection>> {
        self.states.as_mut().poll_next(cx)
    }
}

impl std::fmt::Debug for ConnectionChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionChanges").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_begin_with_the_state_now_and_end_after_closed() {
        let (sender, receiver) = watch::channel(Connection::Connected);
        let mut changes = ConnectionChanges::new(receiver);
        assert_eq!(changes.next().await, Some(Connection::Connected));
        let away = Connection::Away {
            since: Instant::now(),
            reason: None,
        };
        sender.send_replace(away.clone());
        assert_eq!(changes.next().await, Some(away));
        sender.send_replace(Connection::Connected);
        sender.send_replace(Connection::Closed);
        drop(sender);
        // As a stream, too; the one that did not last is not shown.
        let rest: Vec<Connection> = futures_util::StreamExt::collect(changes).await;
        assert_eq!(rest, [Connection::Closed]);
    }

    #[tokio::test]
    async fn a_wait_that_is_dropped_loses_no_change() {
        let (sender, receiver) = watch::channel(Connection::Connected);
        let mut changes = ConnectionChanges::new(receiver);
        assert_eq!(
            changes.wait_for(Connection::is_connected).await,
            Some(Connection::Connected)
        );
        let waiting = poll_once(&mut changes);
        assert!(waiting.is_pending());
        sender.send_replace(Connection::Closed);
        assert_eq!(
            changes.wait_for(|now| !now.is_connected()).await,
            Some(Connection::Closed)
        );
        drop(sender);
        assert_eq!(changes.wait_for(Connection::is_connected).await, None);
    }

    fn poll_once(changes: &mut ConnectionChanges) -> Poll<Option<Connection>> {
        let mut next = Box::pin(changes.next());
        let waker = std::task::Waker::noop();
        next.as_mut().poll(&mut Context::from_waker(waker))
    }
}
