//! A subscription to a broadcast, as a stream and with a method to wait for the next item.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio_util::sync::ReusableBoxFuture;

/// What a receiver has received, and the receiver for what comes next.
type Received<T> = (Result<T, RecvError>, Receiver<T>);

/// Items from now on, each at most once. Dropping it ends it.
///
/// As a [`Stream`] it ends with the sender; a subscriber that is too slow gets [`Lagged`] in place of the items that it
/// missed.
pub struct Subscription<T> {
    next: ReusableBoxFuture<'static, Received<T>>,
    /// The sender is gone, and everything it sent was taken.
    ended: bool,
}

/// So many items were missed, because this subscriber was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} items were missed")]
pub struct Lagged(pub u64);

impl<T: Clone + Send + 'static> Subscription<T> {
    /// Subscribes to what this receiver gets.
    pub fn new(receiver: Receiver<T>) -> Self {
        Self {
            next: ReusableBoxFuture::new(receive(receiver)),
            ended: false,
        }
    }

    /// A subscription on which nothing will come.
    pub fn ended() -> Self {
        Self::new(broadcast::channel(1).1)
    }

    /// The next item; `None` when the sender is gone. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Result<T, Lagged>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv), for streams.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Lagged>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Poll::Ready((received, receiver)) = self.next.poll(cx) else {
            return Poll::Pending;
        };
        self.next.set(receive(receiver));
        Poll::Ready(match received {
            Ok(item) => Some(Ok(item)),
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged(missed))),
            Err(RecvError::Closed) => {
                self.ended = true;
                None
            }
        })
    }
}

async fn receive<T: Clone>(mut receiver: Receiver<T>) -> Received<T> {
    let received = receiver.recv().await;
    (received, receiver)
}

impl<T: Clone + Send + 'static> Stream for Subscription<T> {
    type Item = Result<T, Lagged>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(cx)
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[tokio::test]
    async fn items_come_in_order_and_missed_ones_are_counted() {
        let (sender, receiver) = broadcast::channel(2);
        let mut items = Subscription::new(receiver);
        sender.send(1).unwrap();
        assert_eq!(items.recv().await, Some(Ok(1)));
        // A future that is dropped takes nothing along.
        for _ in 0..3 {
            tokio::select! {
                biased;
                _ = items.recv() => panic!("nothing was sent"),
                () = std::future::ready(()) => {}
            }
        }
        for number in 2..=5 {
            sender.send(number).unwrap();
        }
        drop(sender);
        let rest: Vec<_> = items.by_ref().collect().await;
        assert_eq!(rest, [Err(Lagged(2)), Ok(4), Ok(5)]);
        assert_eq!(items.recv().await, None);
        assert_eq!(Subscription::<u8>::ended().next().await, None);
    }
}
