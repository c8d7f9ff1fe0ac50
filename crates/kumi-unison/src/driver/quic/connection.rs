//! One client at the server: its control stream, its streams and its datagrams.
//!
//! One task owns all tasks of the connection's streams. When the connection ends, their streams fail, and they have
//! `HANDLER_GRACE` to end by themselves; then they are aborted. Running requests are not aborted: their cancellation tokens
//! have fired, and their handlers return when they choose. Until the last has returned, the connection counts against
//! `max_connections`, so that a client cannot run more requests by reconnecting. A server that stops waits for them no longer
//! than `HANDLER_GRACE`.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use super::listener::Listener;
use super::transport::{QuicRecv, QuicSend, Turns, peer_certificates};
use super::{CloseCode, control};
use crate::ConnectionContext;
use crate::core::Share;
use crate::driver::ConnectionLimits;
use crate::driver::channel::context::Usage;

/// How long handlers may run after their connection has ended.
const HANDLER_GRACE: Duration = Duration::from_secs(5);
/// How long a draining server waits for a client to close, once none of its requests runs.
const LINGER: Duration = Duration::from_secs(2);

/// Serves a connection until it ends.
pub(super) async fn serve(listener: Arc<Listener>, connection: quinn::Connection) {
    let limits = &listener.limits;
    let _windows = listener.windows.join(&connection);
    let connection_limits = ConnectionLimits::default()
        .max_in_flight(limits.max_in_flight)
        .max_partial_bytes(limits.tuning.max_buffered_bytes)
        .max_held_bytes(limits.tuning.max_buffered_bytes)
        .first_message_timeout(limits.first_message_timeout);
    let share = Share::new(&listener.budget, limits.min_connection_bytes);
    let usage = Usage::new(&connection_limits, share);
    let context = ConnectionContext::with_usage(connection_limits, listener.codec.clone(), usage);
    listener.registry.add_connection(&context);
    let peer = connection.remote_address();
    context.set_peer(peer);
    let certificates = peer_certificates(&connection);
    let leaf = certificates.first();
    context.set_guest(leaf.is_some_and(|leaf| listener.guests().has(leaf)));
    context.set_peer_certificates(certificates);
    let span = tracing::info_span!("connection", conn_id = %context.connection_id, %peer);
    async {
        tracing::info!("connected");
        let mut streams = JoinSet::new();
        let code = tokio::select! {
            () = accept_streams(&listener, &connection, &context, &mut streams) => CloseCode::Done,
            code = control::serve(&listener, &connection) => code,
            () = leave(&listener, &connection, &context) => CloseCode::Draining,
            () = context.close_requested() => CloseCode::Done,
            () = listener.stop.cancelled() => CloseCode::Done,
        };
        connection.close(code.into(), b"");
        let until = Instant::now() + HANDLER_GRACE;
        let ended = async { while streams.join_next().await.is_some() {} };
        if tokio::time::timeout_at(until, ended).await.is_err() {
            streams.shutdown().await;
        }
        let stopped = async {
            listener.stop.cancelled().await;
            tokio::time::sleep_until(until).await;
        };
        tokio::select! {
            () = context.requests_done() => {}
            () = stopped => {}
        }
        tracing::info!(?code, "disconnected");
    }
    .instrument(span)
    .await;
}

/// Accepts streams and datagrams until the connection is lost.
async fn accept_streams(
    listener: &Arc<Listener>,
    connection: &quinn::Connection,
    context: &Arc<ConnectionContext>,
    streams: &mut JoinSet<()>,
) {
    let turns = Turns::default();
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => {
                let Ok((send, receive)) = accepted else {
                    return;
                };
                let stream_id = u64::from(send.id());
                let send = QuicSend::new(send, connection, &turns);
                let receive = QuicRecv::new(receive);
                let registry = listener.registry.clone();
                let context = context.clone();
                streams.spawn(
                    async move { registry.serve_stream(context, send, receive, stream_id).await }
                        .in_current_span(),
                );
            }
            Some(_) = streams.join_next() => {}
            datagram = connection.read_datagram() => match datagram {
                Ok(packet) => context.deliver_datagram(packet),
                Err(_) => return,
            },
        }
    }
}

/// Resolves while draining, when no request of this client runs and it closed or had [`LINGER`] to do so.
async fn leave(listener: &Listener, connection: &quinn::Connection, context: &ConnectionContext) {
    listener.drain.cancelled().await;
    context.refuse_requests();
    context.idle().await;
    // The last responses may still be in flight, so the client closes.
    let _ = tokio::time::timeout(LINGER, connection.closed()).await;
}
