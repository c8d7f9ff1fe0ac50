//! Keeps a client connected: one task per client that reconnects after a loss.
//!
//! ```text
//!          lost, or GOAWAY received and no call pending
//!    Up -----------------------------------------> Down --(given up, or closed)--> Ended
//!     ^                                              |
//!     +---- connected: persistent channels reopen ---+  waits with jitter between attempts
//! ```
//!
//! No request is sent again here: a channel that is reattached sends its idempotent calls again by itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kumi_common::Chain;
use tokio::sync::{mpsc, oneshot};

use super::CloseCode;
use super::client::Shared;
use super::control::{ClientControl, Received};
use super::link::Link;
use crate::driver::channel::Keeper;
use crate::{NetworkError, ServerIdentity};

/// A connection or stream that lasted this long resets the back-off.
const SETTLED: Duration = Duration::from_secs(5);
/// The wait between two streams once the policy's attempts are used up.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// How long calls that are in flight when GOAWAY arrives may take.
const DRAIN_TIME: Duration = Duration::from_secs(60);

/// The state of a client.
pub(super) enum State {
    Up(Arc<Link>),
    /// Between two connections. `identity` is the last one received.
    Down {
        identity: ServerIdentity,
    },
    /// Closed, or reconnecting was given up. Final.
    Ended {
        identity: ServerIdentity,
    },
}

/// Runs a client until it is closed or reconnecting is given up. Afterwards the state is [`State::Ended`] and every
/// persistent channel has ended.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut link: Arc<Link>,
    mut control: ClientControl,
    mut pings: mpsc::Receiver<oneshot::Sender<Duration>>,
) {
    // Consecutive connections that were lost soon: each lengthens the back-off, so that a server that accepts and closes
    // is not dialled in a tight loop.
    let mut soon_lost = 0;
    loop {
        let connected = Instant::now();
        let code = tokio::select! {
            () = shared.stop.cancelled() => None,
            () = link.context.close_requested() => Some(CloseCode::Done),
            code = attend(&shared, &link, control, &mut pings) => Some(code),
        };
        link.connection
            .close(code.unwrap_or(CloseCode::Done).into(), b"");
        let identity = link.identity();
        if code.is_none() {
            shared.state.send_replace(State::Ended { identity });
            break;
        }
        let server = shared.dialer.target();
        tracing::info!(conn_id = %link.context.connection_id, %server, "connection lost");
        shared.state.send_replace(State::Down {
            identity: identity.clone(),
        });
        soon_lost = if connected.elapsed() < SETTLED {
            soon_lost + 1
        } else {
            0
        };
        match reconnect(&shared, soon_lost).await {
            Some((fresh, its_control)) => {
                link = Arc::new(fresh);
                control = its_control;
                tell_changes(&shared, &identity, &link.identity());
                shared.state.send_replace(State::Up(link.clone()));
            }
            None => {
                shared.state.send_replace(State::Ended { identity });
                break;
            }
        }
    }
    // Ends the tasks that reattach persistent channels, which end their channels.
    shared.keepers.close();
    shared.keepers.wait().await;
    shared.dialer.close().await;
}

/// Serves a connection's control stream and datagrams until it is lost, or, after GOAWAY, until no call is pending. Returns
/// the code with which to close it.
async fn attend(
    shared: &Shared,
    link: &Link,
    mut control: ClientControl,
    pings: &mut mpsc::Receiver<oneshot::Sender<Duration>>,
) -> CloseCode {
    let mut asked: HashMap<u64, (Instant, oneshot::Sender<Duration>)> = HashMap::new();
    let mut leaving = std::pin::pin!(leave(link));
    let mut told_to_go = false;
    loop {
        let received = tokio::select! {
            received = control.next() => received,
            () = &mut leaving, if told_to_go => return CloseCode::Draining,
            Some(answer) = pings.recv() => {
                asked.retain(|_, (_, answer)| !answer.is_closed());
                match control.ping().await {
                    Ok(number) => asked.insert(number, (Instant::now(), answer)),
                    Err(_) => return CloseCode::Done,
                };
                continue;
            }
            datagram = link.connection.read_datagram() => match datagram {
                Ok(packet) => {
                    link.context.deliver_datagram(packet);
                    continue;
                }
                Err(_) => return CloseCode::Done,
            },
        };
        match received {
            Ok(Received::Identity(identity)) => {
                tell_changes(shared, &link.identity(), &identity);
                link.context.set_identity(identity);
            }
            Ok(Received::Other(message)) => {
                if control.answer(message).await.is_err() {
                    return CloseCode::Done;
                }
            }
            Ok(Received::Update(update)) => {
                link.context
                    .update_identity(|identity| identity.apply(&update));
                // There may be no subscriber.
                let _ = shared.updates.send(update);
            }
            Ok(Received::Pong(number)) => {
                if let Some((sent, answer)) = asked.remove(&number) {
                    // The caller may have stopped waiting.
                    let _ = answer.send(sent.elapsed());
                }
            }
            Ok(Received::GoAway) => {
                let server = shared.dialer.target();
                tracing::info!(conn_id = %link.context.connection_id, %server, "the server is going away");
                link.context.drain();
                told_to_go = true;
            }
            Err(error) => {
                let server = shared.dialer.target();
                tracing::debug!(%server, error = %Chain(&error), "the control stream ended");
                return match error {
                    NetworkError::Wire(_) | NetworkError::Violation(_) | NetworkError::Codec(_) => {
                        CloseCode::Protocol
                    }
                    _ => CloseCode::Done,
                };
            }
        }
    }
}

/// Sends subscribers the updates that lead from one identity to another.
fn tell_changes(shared: &Shared, before: &ServerIdentity, after: &ServerIdentity) {
    for update in before.changes_to(after) {
        // There may be no subscriber.
        let _ = shared.updates.send(update);
    }
}

/// Resolves when no call is pending, at the latest after [`DRAIN_TIME`].
async fn leave(link: &Link) {
    let _ = tokio::time::timeout(DRAIN_TIME, link.context.idle()).await;
}

/// A seeded generator for back-off, so that clients that lost the same server do not reconnect at the same time.
fn jitter() -> fastrand::Rng {
    // If the system has no randomness, process ids differ at least on one machine.
    fastrand::Rng::with_seed(getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id())))
}

/// Dials until there is a connection; `None` when the client was closed or the policy gives up. The wait grows with each
/// attempt and with `soon_lost`, the number of connections before that were lost soon.
async fn reconnect(shared: &Shared, soon_lost: u32) -> Option<(Link, ClientControl)> {
    let mut random = jitter();
    let mut reported: Option<String> = None;
    for attempt in 0.. {
        let policy = &shared.options.reconnect;
        policy.wait(attempt, &mut random)?;
        let before = soon_lost.saturating_sub(1);
        let wait = policy.pause(attempt.saturating_add(before), &mut random);
        tokio::select! {
            () = shared.stop.cancelled() => return None,
            () = tokio::time::sleep(wait) => {}
        }
        tokio::select! {
            () = shared.stop.cancelled() => return None,
            dialed = shared.dialer.dial() => match dialed {
                Ok(dialed) => return Some(dialed),
                Err(error) => {
                    let error = Chain(&error).to_string();
                    let server = shared.dialer.target();
                    // Each reason is logged once as a warning: most reasons last for many attempts.
                    if reported.as_ref() == Some(&error) {
                        tracing::debug!(attempt, %server, %error, "cannot reconnect");
                    } else {
                        tracing::warn!(attempt, %server, %error, "cannot reconnect");
                        reported = Some(error);
                    }
                }
            },
        }
    }
    None
}

/// Opens a new stream for a persistent channel whenever it lost its stream, until the channel ends.
///
/// The opening carries the schema's hash again, so a server with another schema refuses it, and the channel ends with that
/// error.
pub(super) async fn keep(shared: Arc<Shared>, keeper: Keeper) {
    let mut random = jitter();
    let mut attached = Instant::now();
    let mut soon_lost = 0;
    while keeper.lost().await {
        // A stream that breaks repeatedly on a connection that stays must not be opened in a tight loop.
        soon_lost = if attached.elapsed() < SETTLED {
            soon_lost + 1
        } else {
            0
        };
        if soon_lost > 1 {
            let wait = shared.options.reconnect.wait(soon_lost - 2, &mut random);
            tokio::select! {
                () = shared.stop.cancelled() => {}
                () = tokio::time::sleep(wait.unwrap_or(LAST_WAIT)) => {}
            }
        }
        let Ok(link) = shared.link().await else {
            keeper.fail(NetworkError::lost(false, keeper.peer()));
            return;
        };
        attached = Instant::now();
        // The connection was lost meanwhile: the next one is waited for.
        let Ok((send, receive, stream_id)) = link.open_stream().await else {
            continue;
        };
        if let Err(error) = keeper.reattach(send, receive, stream_id, &link.context) {
            tracing::debug!(channel = keeper.name(), error = %Chain(&error), "cannot reattach");
        }
    }
}
