//! Messages over a stream without a channel, as on the control stream.

use std::collections::VecDeque;
use std::future::Future;

use serde_json::Value;
use tokio::time::Instant;

use super::options::DEFAULT_FRAME_TIMEOUT;
use super::transport::{DynRecv, DynSend, RESET_CODE, TransportRecv, TransportSend};
use crate::error::NetworkError;
use crate::payload::Payload;
use crate::wire::{
    Codec, FrameReader, Outgoing, Output, PacketFlags, PacketHeader, PacketType, ProtocolMessage,
    WireError,
};

/// Names a stream in logs and lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamHandle {
    /// The transport's number for it.
    pub stream_id: u64,
    /// What it was opened for.
    pub method: String,
}

/// A stream of JSON values in both directions.
pub trait SystemStream: Send {
    /// Sends a value.
    fn send(&mut self, data: Value) -> impl Future<Output = Result<(), NetworkError>> + Send;

    /// Receives a value. Dropping the future loses none.
    fn receive(&mut self) -> impl Future<Output = Result<Value, NetworkError>> + Send;

    /// Whether it can still be used.
    fn is_active(&self) -> bool;

    /// Ends it in order.
    fn close(&mut self) -> impl Future<Output = Result<(), NetworkError>> + Send;

    /// Its name.
    fn get_handle(&self) -> StreamHandle;
}

/// Messages, framed and numbered, over any transport.
pub struct UnisonStream {
    handle: StreamHandle,
    send: Box<dyn DynSend>,
    recv: Box<dyn DynRecv>,
    output: Output,
    reader: FrameReader,
    /// Messages that were read and not asked for yet.
    ready: VecDeque<(PacketHeader, ProtocolMessage)>,
    expected_sequence: u64,
    /// When a frame that has begun must be complete.
    partial_until: Option<Instant>,
    codec: Codec,
    active: bool,
}

impl std::fmt::Debug for UnisonStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnisonStream")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl UnisonStream {
    /// A stream over these halves. `method` is what its values are called.
    pub fn new(
        send: impl TransportSend,
        recv: impl TransportRecv,
        stream_id: u64,
        method: &str,
    ) -> Self {
        Self {
            handle: StreamHandle {
                stream_id,
                method: method.to_owned(),
            },
            send: Box::new(send),
            recv: Box::new(recv),
            output: Output::new(stream_id),
            reader: FrameReader::new(),
            ready: VecDeque::new(),
            expected_sequence: 0,
            partial_until: None,
            codec: Codec::new(),
            active: true,
        }
    }

    /// Sends a message. If the future is dropped before its end, the stream cannot be used any more.
    ///
    /// # Errors
    /// When the message is too long or the stream broke.
    pub async fn send_message(
        &mut self,
        packet_type: PacketType,
        flags: PacketFlags,
        message: &ProtocolMessage,
    ) -> Result<(), NetworkError> {
        if !self.active {
            return Err(NetworkError::closed());
        }
        let outgoing = Outgoing {
            flags,
            ..Outgoing::message(packet_type, message)
        };
        self.output.push(&outgoing, 0, &self.codec)?;
        let mut chunks = Vec::new();
        self.output.take(&mut chunks);
        self.active = false;
        self.send.write(&mut chunks).await?;
        self.active = true;
        Ok(())
    }

    /// The next message; `None` at the stream's end. Dropping the future loses none.
    ///
    /// # Errors
    /// When what came cannot be read, or the stream broke.
    pub async fn recv_message(
        &mut self,
    ) -> Result<Option<(PacketHeader, ProtocolMessage)>, NetworkError> {
        let mut chunks = Vec::new();
        loop {
            self.take_frames()?;
            if let Some(message) = self.ready.pop_front() {
                self.partial_until = None;
                return Ok(Some(message));
            }
            let more = if self.reader.is_partial() {
                let until = self
                    .partial_until
                    .get_or_insert_with(|| Instant::now() + DEFAULT_FRAME_TIMEOUT);
                tokio::time::timeout_at(*until, self.recv.read(&mut chunks))
                    .await
                    .map_err(|_| NetworkError::FrameTimeout)??
            } else {
                self.recv.read(&mut chunks).await?
            };
            for chunk in chunks.drain(..) {
                self.reader.push(chunk);
            }
            if !more {
                self.reader.end()?;
                return Ok(None);
            }
        }
    }

    /// Whether a frame has begun and is not complete.
    pub fn is_partial(&self) -> bool {
        self.reader.is_partial()
    }

    fn take_frames(&mut self) -> Result<(), NetworkError> {
        while self.ready.is_empty()
            && let Some(packet) = self.reader.next()?
        {
            if packet.header.sequence != self.expected_sequence {
                let (expected, got) = (self.expected_sequence, packet.header.sequence);
                return Err(WireError::Sequence { expected, got }.into());
            }
            self.expected_sequence += 1;
            let (message, _) = ProtocolMessage::decode(&packet.header, &packet.body)?;
            self.ready.push_back((packet.header, message));
        }
        Ok(())
    }
}

impl SystemStream for UnisonStream {
    async fn send(&mut self, data: Value) -> Result<(), NetworkError> {
        let Payload {
            content_type,
            bytes,
        } = Payload::json(&data)?;
        let message = ProtocolMessage::event(self.handle.method.clone(), content_type, bytes);
        self.send_message(PacketType::Data, PacketFlags::NONE, &message)
            .await
    }

    async fn receive(&mut self) -> Result<Value, NetworkError> {
        let Some((_, message)) = self.recv_message().await? else {
            self.active = false;
            return Err(NetworkError::closed());
        };
        let ProtocolMessage {
            content_type,
            payload: bytes,
            ..
        } = message;
        Payload {
            content_type,
            bytes,
        }
        .to_value()
    }

    fn is_active(&self) -> bool {
        self.active
    }

    async fn close(&mut self) -> Result<(), NetworkError> {
        if self.active {
            self.active = false;
            self.send.finish();
            self.send.finished().await;
        }
        Ok(())
    }

    fn get_handle(&self) -> StreamHandle {
        self.handle.clone()
    }
}

impl Drop for UnisonStream {
    fn drop(&mut self) {
        if self.active {
            self.send.reset(RESET_CODE);
        }
        self.recv.stop(RESET_CODE);
    }
}
