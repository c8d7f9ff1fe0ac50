//! The loop that accepts or refuses the connections of an endpoint.
//!
//! A handshake costs the server a signature and some memory, a packet that starts one costs a sender with a forged
//! address nothing. So only so many handshakes run at a time, and under pressure the second half of that room is for
//! clients that have answered a retry, which a sender with a forged address never sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quinn::Incoming;
use tokio::task::JoinSet;

use super::server::Listener;
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
    // Each connection sees it and ends; those that already drained are gone.
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
    let handshakes = listener.handshakes.load(Ordering::Relaxed);
    let established = listener.connections.load(Ordering::Relaxed);
    if listener.drain.is_cancelled() || handshakes + established >= limits.max_connections {
        tracing::debug!(peer = %incoming.remote_address(), established, "refused a connection");
        incoming.refuse();
    } else if handshakes >= limits.max_handshakes {
        // An answer would be one more packet for each of a flood's.
        incoming.ignore();
    } else if handshakes >= limits.max_handshakes / 2
        && !incoming.remote_address_validated()
        && incoming.may_retry()
    {
        // It fails only for who was asked before, which was just excluded.
        let _ = incoming.retry();
    } else {
        let counted = Counted::new(listener.clone(), |listener| &listener.handshakes);
        connections.spawn(establish(listener.clone(), incoming, counted));
    }
}

/// Completes a handshake in time and serves the connection.
async fn establish(listener: Arc<Listener>, incoming: Incoming, handshake: Counted) {
    let peer = incoming.remote_address();
    let connecting = async { incoming.accept()?.await };
    let outcome = tokio::select! {
        () = listener.stop.cancelled() => return,
        outcome = tokio::time::timeout(listener.limits.handshake_timeout, connecting) => outcome,
    };
    drop(handshake);
    match outcome {
        Ok(Ok(connection)) => {
            let _established = Counted::new(listener.clone(), |listener| &listener.connections);
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

/// Counts one for as long as it lives.
struct Counted {
    listener: Arc<Listener>,
    counter: fn(&Listener) -> &AtomicUsize,
}

impl Counted {
    fn new(listener: Arc<Listener>, counter: fn(&Listener) -> &AtomicUsize) -> Counted {
        counter(&listener).fetch_add(1, Ordering::Relaxed);
        Counted { listener, counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.listener).fetch_sub(1, Ordering::Relaxed);
    }
}
