//! The queue towards the core: bounded by messages, and by their bytes, for a snapshot may be a few MiB.

use crate::core::Authority;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Messages waiting for the core. Datagrams beyond it are dropped, reliable channels wait.
const INBOUND_QUEUE: usize = 4096;

/// Bytes of messages waiting for the core: several of the largest, or a full queue of datagrams.
const INBOUND_BYTES: usize = 32 * 1024 * 1024;

/// A message that has arrived. It makes room when it is dropped.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) from: Authority,
    pub(super) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

/// The end of the queue where messages come in.
#[derive(Clone, Debug)]
pub(super) struct InboundQueue {
    messages: mpsc::Sender<Inbound>,
    room: Arc<Semaphore>,
}

impl InboundQueue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Inbound>) {
        let (messages, arrived) = mpsc::channel(INBOUND_QUEUE);
        let room = Arc::new(Semaphore::new(INBOUND_BYTES));
        (Self { messages, room }, arrived)
    }

    /// Waits for room. False once the node has stopped.
    pub(super) async fn push(&self, from: &Authority, bytes: Bytes) -> bool {
        let Ok(room) = self.room.clone().acquire_many_owned(size(&bytes)).await else {
            return false;
        };
        let inbound = Inbound {
            from: from.clone(),
            bytes,
            _room: room,
        };
        self.messages.send(inbound).await.is_ok()
    }

    /// Whether there was room.
    pub(super) fn try_push(&self, from: &Authority, bytes: Bytes) -> bool {
        let Ok(room) = self.room.clone().try_acquire_many_owned(size(&bytes)) else {
            return false;
        };
        let inbound = Inbound {
            from: from.clone(),
            bytes,
            _room: room,
        };
        self.messages.try_send(inbound).is_ok()
    }
}

/// What a message takes of the room. One that is larger than all of it waits for an empty queue.
fn size(bytes: &Bytes) -> u32 {
    u32::try_from(bytes.len().min(INBOUND_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[tokio::test]
    async fn a_few_large_messages_fill_the_queue_and_room_comes_back() {
        let from = Authority::new("a:1").expect("a name");
        let (queue, mut arrived) = InboundQueue::new();
        let large = Bytes::from(vec![0; INBOUND_BYTES / 4]);
        for _ in 0..4 {
            assert!(queue.try_push(&from, large.clone()));
        }
        assert!(!queue.try_push(&from, Bytes::from_static(b"x")));
        let waiting = queue.push(&from, large.clone());
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("there is no room"),
            () = core::future::ready(()) => {}
        }
        assert!(arrived.recv().await.is_some());
        assert!(waiting.await, "the first one made room");
        drop(arrived);
        assert!(!queue.push(&from, Bytes::new()).await);
    }

    #[tokio::test]
    async fn small_messages_are_bounded_by_their_number() {
        let from = Authority::new("a:1").expect("a name");
        let (queue, _arrived) = InboundQueue::new();
        let pushed = (0..2 * INBOUND_QUEUE).filter(|_| queue.try_push(&from, Bytes::new()));
        assert_eq!(pushed.count(), INBOUND_QUEUE);
    }
}
