//! The control stream: opened by the server, one per connection, open as long as the connection.
//!
//! ```text
//! server                                   client
//!   __identity  event, ServerIdentity  ->            first, and again when updates were missed
//!   __update    event, ChannelUpdate   ->            a channel was registered, removed or changed
//!   __ping      request                <->           the response has the same payload
//!   __goaway    event                  ->            no new requests; close after the last response
//! ```
//!
//! Other messages are ignored, so that later versions may add some.

use bytes::Bytes;
use kumi_common::Chain;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::CloseCode;
use super::closed::lost_to;
use super::listener::Listener;
use super::transport::{QuicRecv, QuicSend, Turns};
use crate::document::UnisonStream;
use crate::driver::Lagged;
use crate::wire::{ContentType, MessageType, PacketFlags, PacketType};
use crate::{ChannelUpdate, NetworkError, Payload, ProtocolMessage, ServerIdentity};

/// Method names of the control stream.
const IDENTITY: &str = "__identity";
const UPDATE: &str = "__update";
const PING: &str = "__ping";
const GOAWAY: &str = "__goaway";

/// Serves the control stream at the server until the connection is lost or the client violates the protocol. Returns the
/// code with which to close the connection.
pub(super) async fn serve(listener: &Listener, connection: &quinn::Connection) -> CloseCode {
    match run(listener, connection).await {
        Ok(()) => CloseCode::Done,
        Err(error) => {
            tracing::debug!(error = %Chain(&error), "the control stream failed");
            match error {
                NetworkError::Transport(_) | NetworkError::ConnectionLost { .. } => CloseCode::Done,
                _ => CloseCode::Protocol,
            }
        }
    }
}

async fn run(listener: &Listener, connection: &quinn::Connection) -> Result<(), NetworkError> {
    let (send, receive) = connection.open_bi().await.map_err(lost_to(connection))?;
    let stream_id = u64::from(send.id());
    let (send, receive) = (
        QuicSend::new(send, connection, &Turns::default()),
        QuicRecv::new(receive),
    );
    let mut stream = UnisonStream::new(send, receive, stream_id, IDENTITY);
    let (identity, mut updates) = listener.registry.subscribe();
    send_event(&mut stream, PacketType::Handshake, IDENTITY, &identity).await?;
    let (mut told_to_go, mut listening) = (false, true);
    loop {
        tokio::select! {
            update = updates.recv() => match update {
                Some(Ok(update)) => {
                    send_event(&mut stream, PacketType::Control, UPDATE, &update).await?;
                }
                Some(Err(Lagged(_))) => {
                    // Updates were missed: the whole identity is sent again.
                    let (identity, fresh) = listener.registry.subscribe();
                    updates = fresh;
                    send_event(&mut stream, PacketType::Handshake, IDENTITY, &identity).await?;
                }
                None => return Ok(()),
            },
            () = listener.drain.cancelled(), if !told_to_go => {
                told_to_go = true;
                send_event(&mut stream, PacketType::Control, GOAWAY, &()).await?;
            }
            message = stream.recv_message(), if listening => match message? {
                Some((_, message)) => answer_ping(&mut stream, message).await?,
                // The client finished its half; it still receives.
                None => listening = false,
            },
        }
    }
}

/// A message that a client received on its control stream.
pub(super) enum Received {
    Identity(ServerIdentity),
    Update(ChannelUpdate),
    /// The response to the ping with this number.
    Pong(u64),
    /// Any other message, for [`ClientControl::answer`].
    Other(ProtocolMessage),
    GoAway,
}

/// The control stream's client side.
pub(super) struct ClientControl {
    stream: UnisonStream,
    next_ping: u64,
}

impl ClientControl {
    /// Accepts the control stream, which is the first that the server opens, and waits for the identity.
    pub(super) async fn accept(
        connection: &quinn::Connection,
    ) -> Result<(ClientControl, ServerIdentity), NetworkError> {
        let (send, receive) = connection.accept_bi().await.map_err(lost_to(connection))?;
        let stream_id = u64::from(send.id());
        let (send, receive) = (
            QuicSend::new(send, connection, &Turns::default()),
            QuicRecv::new(receive),
        );
        let mut control = ClientControl {
            stream: UnisonStream::new(send, receive, stream_id, IDENTITY),
            next_ping: 1,
        };
        loop {
            // A later version may send other messages before the identity.
            match control.next().await? {
                Received::Identity(identity) => return Ok((control, identity)),
                Received::Other(message) => control.answer(message).await?,
                _ => {}
            }
        }
    }

    /// The next message. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Result<Received, NetworkError> {
        let Some((_, message)) = self.stream.recv_message().await? else {
            return Err(NetworkError::closed());
        };
        Ok(match (message.method.as_str(), message.msg_type) {
            (IDENTITY, MessageType::Event) => Received::Identity(parse(message)?),
            (UPDATE, MessageType::Event) => Received::Update(parse(message)?),
            (GOAWAY, MessageType::Event) => Received::GoAway,
            (_, MessageType::Response) => Received::Pong(message.id),
            _ => Received::Other(message),
        })
    }

    /// Responds to a ping and ignores other messages. If the future is dropped before its end, the stream cannot be used any
    /// more.
    pub(super) async fn answer(&mut self, message: ProtocolMessage) -> Result<(), NetworkError> {
        answer_ping(&mut self.stream, message).await
    }

    /// Sends a ping and returns its number, with which [`Received::Pong`] comes.
    pub(super) async fn ping(&mut self) -> Result<u64, NetworkError> {
        let number = self.next_ping;
        self.next_ping += 1;
        let ping = ProtocolMessage::request(number, PING, ContentType::Bytes, Bytes::new());
        self.stream
            .send_message(PacketType::Heartbeat, PacketFlags::REQUIRES_ACK, &ping)
            .await?;
        Ok(number)
    }
}

/// Responds to a ping and ignores other messages.
async fn answer_ping(
    stream: &mut UnisonStream,
    message: ProtocolMessage,
) -> Result<(), NetworkError> {
    if message.method != PING || message.msg_type != MessageType::Request {
        tracing::debug!(method = message.method, "ignored on the control stream");
        return Ok(());
    }
    let pong = ProtocolMessage::response(message.id, message.content_type, message.payload);
    stream
        .send_message(PacketType::Heartbeat, PacketFlags::IS_ACK, &pong)
        .await
}

async fn send_event<T: Serialize>(
    stream: &mut UnisonStream,
    packet_type: PacketType,
    method: &str,
    content: &T,
) -> Result<(), NetworkError> {
    let Payload {
        content_type,
        bytes,
    } = Payload::json(content)?;
    let event = ProtocolMessage::event(method.to_owned(), content_type, bytes);
    stream
        .send_message(packet_type, PacketFlags::NONE, &event)
        .await
}

fn parse<T: DeserializeOwned>(message: ProtocolMessage) -> Result<T, NetworkError> {
    let payload = Payload {
        content_type: message.content_type,
        bytes: message.payload,
    };
    payload.to_json()
}
