//! Calls and events by type, over a [`UnisonChannel`].

use super::{Message, decode, encode};
use crate::driver::channel::{CallOptions, EventReceiver, UnisonChannel};
use crate::error::NetworkError;
use crate::payload::Payload;
use crate::wire::{ContentType, ProtocolMessage};
use futures_util::Stream;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A channel, the format of its messages, and the options of its calls. `H` is the handle that generated code puts around
/// it, which has a method for each request and event of a schema.
pub struct TypedChannel<H = ()> {
    channel: UnisonChannel,
    content_type: ContentType,
    options: CallOptions,
    handle: PhantomData<fn() -> H>,
}

impl<H> Clone for TypedChannel<H> {
    fn clone(&self) -> Self {
        Self {
            channel: self.channel.clone(),
            ..*self
        }
    }
}

impl<H> fmt::Debug for TypedChannel<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedChannel")
            .field("channel", &self.channel)
            .field("content_type", &self.content_type)
            .field("options", &self.options)
            .finish()
    }
}

/// A channel whose messages are JSON.
impl<H> From<UnisonChannel> for TypedChannel<H> {
    fn from(channel: UnisonChannel) -> Self {
        Self {
            channel,
            content_type: ContentType::Json,
            options: CallOptions::default(),
            handle: PhantomData,
        }
    }
}

impl TypedChannel {
    /// A channel whose messages are JSON, without a handle.
    pub fn new(channel: UnisonChannel) -> Self {
        channel.into()
    }
}

impl<H: From<TypedChannel<H>>> TypedChannel<H> {
    /// Another handle on the same channel, in the binary format, which is not translated from and to JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(&self) -> H {
        self.clone().binary().into()
    }

    /// Another handle on the same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(&self, options: CallOptions) -> H {
        self.clone().options(options).into()
    }
}

impl<H> TypedChannel<H> {
    /// The channel that carries the messages.
    pub fn raw_channel(&self) -> &UnisonChannel {
        &self.channel
    }

    /// The same channel in the binary format. What is sent is refused unless both sides have the same schema.
    #[must_use]
    pub fn binary(mut self) -> Self {
        self.content_type = ContentType::Typed;
        self
    }

    /// The same channel with other options for its calls.
    #[must_use]
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Sends a request and waits for the response. Dropping the future cancels the request at the other side. It is
    /// idempotent if `idempotent` or the options say so.
    ///
    /// # Errors
    /// [`NetworkError::Invalid`] before anything is sent, or when the answer breaks the schema; otherwise as
    /// [`UnisonChannel::call`].
    pub async fn call<Q: Message, A: Message>(
        &self,
        method: &str,
        request: &Q,
        idempotent: bool,
    ) -> Result<A, NetworkError> {
        request.validate().map_err(NetworkError::Invalid)?;
        let payload = encode(request, self.content_type)?;
        let options = self.options;
        let options = options.idempotent(idempotent || options.idempotent);
        decode(&self.channel.call(method, payload, options).await?)
    }

    /// Sends an event. What happens without credit is the channel's policy.
    ///
    /// # Errors
    /// [`NetworkError::Invalid`] before anything is sent; otherwise as [`UnisonChannel::send_payload`].
    pub async fn emit<E: Message>(&self, method: &str, event: &E) -> Result<(), NetworkError> {
        event.validate().map_err(NetworkError::Invalid)?;
        let payload = encode(event, self.content_type)?;
        self.channel.send_payload(method, payload).await
    }

    /// The events of one name, in whatever format they come.
    pub fn events<E: Message>(&self, method: &str) -> EventStream<E> {
        EventStream {
            receiver: self.channel.events(method),
            ended: false,
            event: PhantomData,
        }
    }
}

/// What an [`EventStream`] yields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamItem<E> {
    /// An event.
    Event(E),
    /// The channel was opened again after its connection broke. Events in between are missing.
    Resumed,
}

/// The events of one name, by type. Also a [`Stream`] of `Result<E, NetworkError>`, which leaves out
/// [`StreamItem::Resumed`].
#[derive(Debug)]
pub struct EventStream<E> {
    receiver: EventReceiver,
    /// How the channel ended has been reported.
    ended: bool,
    event: PhantomData<fn() -> E>,
}

impl<E: Message> EventStream<E> {
    /// The next event; nothing when the channel was closed. Dropping the future loses none.
    ///
    /// An event that cannot be read or breaks the schema is an error, and the stream goes on after it. When the channel
    /// ended otherwise than by being closed, the error says how, once, and then there is nothing.
    pub async fn next(&mut self) -> Option<Result<E, NetworkError>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// As [`next`](Self::next), and tells when the channel resumed.
    ///
    /// # Errors
    /// As [`next`](Self::next), and [`NetworkError::Closed`] at the end.
    pub async fn recv(&mut self) -> Result<StreamItem<E>, NetworkError> {
        let message = self.receiver.recv().await?;
        if message.is_resumed() {
            return Ok(StreamItem::Resumed);
        }
        read(&message).map(StreamItem::Event)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<E, NetworkError>>> {
        loop {
            match self.receiver.poll_recv(cx) {
                Poll::Ready(Ok(message)) if message.is_resumed() => {}
                Poll::Ready(Ok(message)) => return Poll::Ready(Some(read(&message))),
                Poll::Ready(Err(NetworkError::Closed { .. })) => return Poll::Ready(None),
                Poll::Ready(Err(_)) if self.ended => return Poll::Ready(None),
                Poll::Ready(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl<E: Message> Stream for EventStream<E> {
    type Item = Result<E, NetworkError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}

/// An event's content.
pub(super) fn read<E: Message>(message: &ProtocolMessage) -> Result<E, NetworkError> {
    decode(&Payload {
        content_type: message.content_type,
        bytes: message.payload.clone(),
    })
}
