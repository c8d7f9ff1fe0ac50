//! Values one way, and both ways.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use tokio::sync::mpsc;

use crate::error::NetworkError;

/// Sends values. Clones feed the same receiver.
#[derive(Debug)]
pub struct StreamSender<T> {
    tx: mpsc::Sender<T>,
}

impl<T> Clone for StreamSender<T> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

/// Receives values.
#[derive(Debug)]
pub struct StreamReceiver<T> {
    rx: mpsc::Receiver<T>,
}

impl<T> StreamSender<T> {
    /// A sender and its receiver, with room for `capacity` values on the way (at least one).
    pub fn pair(capacity: usize) -> (Self, StreamReceiver<T>) {
        let (tx, rx) = mpsc::channel(capacity.max(1));
        (Self { tx }, StreamReceiver { rx })
    }

    /// Sends a value, waiting for room. Dropping the future means it was not sent.
    ///
    /// # Errors
    /// When the receiver is gone.
    pub async fn send(&self, value: T) -> Result<(), NetworkError> {
        self.tx
            .send(value)
            .await
            .map_err(|_| NetworkError::closed())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.tx.is_closed()
    }
}

impl<T> StreamReceiver<T> {
    /// The next value; `None` when all senders are gone. Dropping the future loses none.
    pub async fn recv(&mut self) -> Option<T> {
        self.rx.recv().await
    }

    /// As [`recv`](Self::recv), for streams.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.rx.poll_recv(cx)
    }
}

impl<T> Stream for StreamReceiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

impl<T> Stream for ReceiveChannel<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().receiver.poll_recv(cx)
    }
}

/// What the other half sends.
impl<Out, In> Stream for BidirectionalChannel<Out, In> {
    type Item = In;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<In>> {
        self.get_mut().receiver.poll_recv(cx)
    }
}

/// The half of a one-way channel that sends.
#[derive(Debug)]
pub struct SendChannel<T> {
    sender: StreamSender<T>,
}

/// The half of a one-way channel that receives.
#[derive(Debug)]
pub struct ReceiveChannel<T> {
    receiver: StreamReceiver<T>,
}

impl<T> SendChannel<T> {
    /// Both halves.
    pub fn pair(capacity: usize) -> (Self, ReceiveChannel<T>) {
        let (sender, receiver) = StreamSender::pair(capacity);
        (Self { sender }, ReceiveChannel { receiver })
    }

    /// Sends a value, waiting for room.
    ///
    /// # Errors
    /// When the other half is gone.
    pub async fn send(&self, value: T) -> Result<(), NetworkError> {
        self.sender.send(value).await
    }

    /// A sender to give away.
    pub fn sender(&self) -> StreamSender<T> {
        self.sender.clone()
    }
}

impl<T> ReceiveChannel<T> {
    /// Both halves, this one first.
    pub fn pair(capacity: usize) -> (Self, SendChannel<T>) {
        let (send, receive) = SendChannel::pair(capacity);
        (receive, send)
    }

    /// The next value; `None` when the other half is gone and everything was received.
    pub async fn recv(&mut self) -> Option<T> {
        self.receiver.recv().await
    }

    /// The receiver alone.
    pub fn into_receiver(self) -> StreamReceiver<T> {
        self.receiver
    }
}

/// A conversation: its holder sends `Out` and receives `In`.
#[derive(Debug)]
pub struct BidirectionalChannel<Out, In> {
    sender: StreamSender<Out>,
    receiver: StreamReceiver<In>,
}

impl<Out, In> BidirectionalChannel<Out, In> {
    /// Both halves.
    pub fn pair(capacity: usize) -> (Self, BidirectionalChannel<In, Out>) {
        let (sender, far_receiver) = StreamSender::pair(capacity);
        let (far_sender, receiver) = StreamSender::pair(capacity);
        let far = BidirectionalChannel {
            sender: far_sender,
            receiver: far_receiver,
        };
        (Self { sender, receiver }, far)
    }

    /// Sends a value, waiting for room.
    ///
    /// # Errors
    /// When the other half is gone.
    pub async fn send(&self, value: Out) -> Result<(), NetworkError> {
        self.sender.send(value).await
    }

    /// The next value; `None` when the other half is gone and everything was received.
    pub async fn recv(&mut self) -> Option<In> {
        self.receiver.recv().await
    }

    /// Sender and receiver apart, for two tasks.
    pub fn split(self) -> (StreamSender<Out>, StreamReceiver<In>) {
        (self.sender, self.receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[tokio::test]
    async fn values_go_one_way_in_order_until_the_sender_is_gone() {
        let (send, mut receive) = SendChannel::pair(2);
        let sender = tokio::spawn(async move {
            for n in 0..10 {
                send.send(n).await.unwrap();
            }
        });
        for n in 0..10 {
            assert_eq!(receive.recv().await, Some(n));
        }
        assert_eq!(receive.recv().await, None);
        sender.await.unwrap();
        let (receive, send) = ReceiveChannel::<u8>::pair(1);
        drop(receive);
        assert_eq!(send.send(1).await, Err(NetworkError::closed()));
    }

    #[tokio::test]
    async fn receivers_are_streams() {
        let (send, receive) = SendChannel::pair(4);
        let (sender, receiver) = StreamSender::pair(4);
        let (near, far) = BidirectionalChannel::<u8, u8>::pair(4);
        for n in 1..=3_u8 {
            send.send(n).await.unwrap();
            sender.send(n).await.unwrap();
            far.send(n).await.unwrap();
        }
        drop((send, sender, far));
        assert_eq!(receive.collect::<Vec<u8>>().await, [1, 2, 3]);
        assert_eq!(receiver.collect::<Vec<u8>>().await, [1, 2, 3]);
        assert_eq!(near.collect::<Vec<u8>>().await, [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_conversation_goes_both_ways() {
        let (mut near, mut far) = BidirectionalChannel::<u8, String>::pair(4);
        near.send(1).await.unwrap();
        assert_eq!(far.recv().await, Some(1));
        far.send("one".to_owned()).await.unwrap();
        assert_eq!(near.recv().await.as_deref(), Some("one"));
        drop(far);
        assert_eq!(near.send(2).await, Err(NetworkError::closed()));
        assert_eq!(near.recv().await, None);
    }
}
