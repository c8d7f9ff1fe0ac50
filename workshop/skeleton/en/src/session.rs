//! ClientSession: what the server remembers about one connection. Not needed before step 6.

use std::collections::BTreeSet;
use std::io;

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::MAX_QUEUED;

/// The state of one connection.
pub struct ClientSession {
    /// The number of the connection.
    pub client_id: u64,
    /// Channels it listens to.
    pub channels: BTreeSet<Vec<u8>>,
    /// Patterns it listens to.
    pub patterns: BTreeSet<Vec<u8>>,
    /// Bytes to be written to the client go in here.
    pub message_queue: Sender<Vec<u8>>,
}

impl ClientSession {
    /// Given. A session and the end of its queue from which the bytes come out.
    pub fn new(client_id: u64) -> (ClientSession, Receiver<Vec<u8>>) {
        let (message_queue, receiver) = mpsc::channel(MAX_QUEUED);
        let session = ClientSession { client_id, channels: BTreeSet::new(), patterns: BTreeSet::new(), message_queue };
        (session, receiver)
    }

    /// Step 6. The number of subscriptions: channels and patterns together.
    pub fn count(&self) -> usize {
        todo!("step 6: session.rs")
    }

    /// Step 6. True in Pub/Sub mode: at least one subscription.
    pub fn is_subscribed(&self) -> bool {
        todo!("step 6: session.rs")
    }

    /// Given. Puts a reply into the queue; waits while the queue is full.
    pub async fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        let sent = self.message_queue.send(bytes).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
