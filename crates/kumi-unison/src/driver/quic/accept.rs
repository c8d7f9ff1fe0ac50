//! The loop that accepts or refuses the connections of an endpoint. `handshakes.rs` says which handshake may begin.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quinn::Incoming;
use tokio::task::JoinSet;

use super::handshakes::Handshake;
use super::listener::Listener;
use super::{CloseCode, connection};
use crate::text::Shown;

/// Runs until the endpoint stops, or drains and has no connection left.
pub(super) async fn run(listener: Arc<Listener>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = listener.stop.cancelled() => break,
            () = drained(&listener, connections.is_empty()) => break,
            incoming = listener.endpoint.accept() => match incoming {
                Some(incoming) => admit(&listener, incoming, &mut connections),
                None => break,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    // Each connection that is left ends by this token.
    listener.stop.cancel();
    while connections.join_next().await.is_some() {}
    listener.close(CloseCode::Done, b"stopped").await;
    tracing::info!("stopped listening");
}

/// Resolves while draining, once no connection is left.
async fn drained(listener: &Listener, is_empty: bool) {
    listener.drain.cancelled().await;
    if !is_empty {
        std::future::pending().await
    }
}

fn admit(listener: &Arc<Listener>, incoming: Incoming, connections: &mut JoinSet<()>) {
    let limits = &listener.limits;
    let peer = incoming.remote_address();
    let handshakes = listener.handshakes.len();
    let established = listener.connections.load(Ordering::Relaxed);
    if listener.drain.is_cancelled() || handshakes + established >= limits.max_connections {
        tracing::debug!(%peer, established, "refused a connection");
        incoming.refuse();
        return;
    }
    let has_answered = incoming.remote_address_validated() || !incoming.may_retry();
    match listener.handshakes.begin(peer.ip(), has_answered) {
        Some(handshake) => {
            connections.spawn(establish(listener.clone(), incoming, handshake));
        }
        None => {
            // Fails only for a client that has answered a retry, and such a client always gets a place.
            let _ = incoming.retry();
        }
    }
}

/// Completes a handshake within its timeout and serves the connection.
async fn establish(listener: Arc<Listener>, incoming: Incoming, handshake: Handshake) {
    let peer = incoming.remote_address();
    let connecting = async { incoming.accept()?.await };
    let outcome = tokio::select! {
        () = listener.stop.cancelled() => return,
        () = handshake.given_up() => {
            tracing::debug!(%peer, "gave up a handshake for that of another client");
            return;
        }
        outcome = tokio::time::timeout(listener.limits.handshake_timeout, connecting) => outcome,
    };
    drop(handshake);
    match outcome {
        Ok(Ok(connection)) => {
            let _established = Counted::new(listener.clone());
            connection::serve(listener, connection).await;
        }
        Ok(Err(error)) => {
            // The reason in it is the peer's text.
            let error = error.to_string();
            tracing::debug!(%peer, error = %Shown(&error), "a handshake failed");
        }
        Err(_) => tracing::debug!(%peer, "a handshake took too long"),
    }
}

/// Counts a connection for as long as it lives.
struct Counted(Arc<Listener>);

impl Counted {
    fn new(listener: Arc<Listener>) -> Counted {
        listener.connections.fetch_add(1, Ordering::Relaxed);
        Counted(listener)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
