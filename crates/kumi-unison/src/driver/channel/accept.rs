//! The first message of an incoming stream: an opening, a legacy message, or an error.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::driver::ChannelDriver;
use super::options::ChannelOptions;
use super::transport::{
    CLOSE_REASON_TIMEOUT, CLOSED_CODE, RESET_CODE, TransportRecv, TransportSend,
};
use super::{UnisonChannel, tasks};
use crate::core::{Opening, closed_message, methods};
use crate::driver::channel::context::ConnectionContext;
use crate::error::NetworkError;
use crate::payload::Payload;
use crate::wire::{
    Codec, ContentType, FrameReader, MessageType, Outgoing, Output, PacketFlags, PacketType,
    ProtocolMessage, WireError, encode_frame, encode_unframed,
};

/// The first message of an incoming stream.
pub(crate) enum First {
    /// The opening of a channel; frames follow.
    Channel {
        name: String,
        accepted: Box<Accepted>,
    },
    /// A message of another kind, framed.
    Other(ProtocolMessage),
    /// A message in the legacy form, with the stream's end.
    Legacy(ProtocolMessage),
    /// The stream ended before any message.
    Nothing,
}

/// An opening that was neither acknowledged nor refused yet.
pub(crate) struct Accepted {
    pub(crate) opening: Opening,
    id: u64,
    reader: FrameReader,
}

impl Accepted {
    /// Acknowledges it; as part of another channel, if there is one. Where there is a future, it moves the channel's bytes
    /// and is to be run beside the handler; else tasks do.
    pub(crate) fn open<S: TransportSend, R: TransportRecv>(
        self,
        send: S,
        recv: R,
        stream_id: u64,
        name: &str,
        (options, whole): (ChannelOptions, Option<Arc<ChannelDriver>>),
        context: &Arc<ConnectionContext>,
    ) -> Result<(UnisonChannel, Option<BoxFuture<'static, ()>>), NetworkError> {
        let Self {
            opening,
            id,
            reader,
        } = self;
        let driver =
            ChannelDriver::acceptor(name, (&opening, id), stream_id, options, context, whole)?;
        let channel = driver.channel();
        if driver.is_own_stream() {
            // Boxed, so that the task of every other stream is not as large.
            let moving = Box::pin(tasks::run_own_stream_answer(driver, send, recv, reader));
            return Ok((channel, Some(moving)));
        }
        tasks::start(&driver, send, recv, reader);
        Ok((channel, None))
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

/// The error of a first message that cannot be decoded.
pub(crate) struct Spoiled {
    pub(crate) error: NetworkError,
    /// It came in the legacy form.
    pub(crate) is_legacy: bool,
}

/// Reads the first message, which must be in within `timeout`.
pub(crate) async fn first_message<R: TransportRecv>(
    recv: &mut R,
    timeout: Duration,
    context: &ConnectionContext,
) -> Result<First, Spoiled> {
    let mut reader = FrameReader::detecting_legacy();
    let mut held = 0;
    let read =
        tokio::time::timeout(timeout, read_first(recv, &mut reader, &mut held, context)).await;
    context.exchange_partial(held, 0);
    let is_legacy = reader.is_legacy();
    let read = read.unwrap_or(Err(NetworkError::FrameTimeout));
    read.and_then(|packet| understand(packet, reader))
        .map_err(|error| Spoiled { error, is_legacy })
}

/// The first packet of a stream, decoded; `reader` has the bytes after it.
fn understand(
    packet: Option<(crate::wire::Packet, bool)>,
    reader: FrameReader,
) -> Result<First, NetworkError> {
    let Some((packet, legacy)) = packet else {
        return Ok(First::Nothing);
    };
    let (message, _) = ProtocolMessage::decode(&packet.header, &packet.body)?;
    if legacy {
        return Ok(First::Legacy(message));
    }
    if packet.header.sequence != 0 {
        return Err(WireError::Sequence {
            expected: 0,
            got: packet.header.sequence,
        }
        .into());
    }
    let is_opening = packet.header.packet_type == PacketType::Handshake
        && message.msg_type == MessageType::Request;
    match message.method.strip_prefix(methods::CHANNEL) {
        Some(name) if is_opening => {
            let payload = Payload {
                content_type: message.content_type,
                bytes: message.payload,
            };
            // The payload of a hand-written opening may be empty.
            let opening = if payload.bytes.is_empty() {
                Opening::default()
            } else {
                payload.to_json()?
            };
            let name = name.to_owned();
            let accepted = Accepted {
                opening,
                id: message.id,
                reader,
            };
            Ok(First::Channel {
                name,
                accepted: Box::new(accepted),
            })
        }
        _ => Ok(First::Other(message)),
    }
}

async fn read_first<R: TransportRecv>(
    recv: &mut R,
    reader: &mut FrameReader,
    held: &mut usize,
    context: &ConnectionContext,
) -> Result<Option<(crate::wire::Packet, bool)>, NetworkError> {
    let mut chunks = Vec::new();
    loop {
        let more = recv.read(&mut chunks).await?;
        for chunk in chunks.drain(..) {
            context.metrics().bytes_in.add(chunk.len() as u64);
            reader.push(chunk);
        }
        let packet = match reader.next()? {
            None if !more => reader.end()?,
            packet => packet,
        };
        if let Some(packet) = packet {
            context.metrics().packets_in.increment();
            return Ok(Some((packet, reader.is_legacy())));
        }
        if !more {
            return Ok(None);
        }
        let before = std::mem::replace(held, reader.buffered_bytes());
        if !context.exchange_partial(before, *held) {
            *held = 0;
            return Err(NetworkError::MemoryLimit);
        }
    }
}

/// Sends the reason why a stream is closed for what came on it, and closes it.
pub(crate) async fn say_why<S: TransportSend>(
    send: &mut S,
    error: &NetworkError,
    context: &ConnectionContext,
) {
    let Ok(payload) = Payload::json(&error.to_close_reason()) else {
        return send.reset(CLOSED_CODE);
    };
    let message = closed_message(&payload.bytes);
    let mut output = Output::new(0);
    let mut chunks = Vec::new();
    if output.push(&message, 0, context.codec()).is_err() {
        return send.reset(CLOSED_CODE);
    }
    output.take(&mut chunks);
    match tokio::time::timeout(CLOSE_REASON_TIMEOUT, send.write(&mut chunks)).await {
        Ok(Ok(())) => send.finish(),
        _ => send.reset(CLOSED_CODE),
    }
}

/// Answers an opening with the reason it is refused, and ends the stream.
pub(crate) async fn refuse<S: TransportSend>(
    send: &mut S,
    packet_type: PacketType,
    id: u64,
    error: &NetworkError,
    context: &ConnectionContext,
) {
    context.metrics().channels_refused.increment();
    let Ok(payload) = Payload::json(&error.to_remote()) else {
        return send.reset(RESET_CODE);
    };
    let message = Outgoing {
        packet_type,
        flags: PacketFlags::NONE,
        msg_type: MessageType::Error,
        content_type: ContentType::Json,
        id,
        method: methods::ERROR,
        payload: &payload.bytes,
        metadata: None,
    };
    let mut output = Output::new(0);
    if output.push(&message, 0, context.codec()).is_err() {
        return send.reset(RESET_CODE);
    }
    let mut chunks = Vec::new();
    output.take(&mut chunks);
    if send.write(&mut chunks).await.is_ok() {
        send.finish();
        send.finished().await;
    }
}

/// Answers a message that named no channel, and ends the stream.
pub(crate) async fn answer_framed<S: TransportSend>(
    send: &mut S,
    answer: &ProtocolMessage,
    codec: &Codec,
) {
    let Ok(frame) = encode_frame(PacketType::Data, answer, codec) else {
        return send.reset(RESET_CODE);
    };
    if send.write(&mut [frame.into()]).await.is_ok() {
        send.finish();
        send.finished().await;
    }
}

/// Answers a legacy message in its own form, and ends the stream.
pub(crate) async fn answer_unframed<S: TransportSend>(
    send: &mut S,
    answer: &ProtocolMessage,
    codec: &Codec,
) {
    let Ok(packet) = encode_unframed(answer, codec) else {
        return send.reset(RESET_CODE);
    };
    if send.write(&mut [packet.into()]).await.is_ok() {
        send.finish();
        send.finished().await;
    }
}
