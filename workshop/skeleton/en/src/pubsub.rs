//! PubSubManager: the subscribers of each channel, and the delivery of messages. Not needed before step 6.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::Sender;

use crate::commands::Reply;
use crate::glob;
use crate::log;
use crate::resp::encode_reply;
use crate::session::ClientSession;

/// The subscribers of a channel or pattern: the connection's number and its message queue.
type Subscribers = HashMap<u64, Sender<Vec<u8>>>;

/// All subscriptions of all connections.
#[derive(Default)]
pub struct PubSubManager {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    channels: HashMap<Vec<u8>, Subscribers>,
    patterns: HashMap<Vec<u8>, Subscribers>,
    notifications: String,
}

impl PubSubManager {
    /// Step 6. Adds the channel to the session and the session's queue to the channel; the number of subscriptions.
    /// `tables.channels.entry(...).or_default()` makes the table of a new channel.
    pub fn subscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// Step 6. The same for a pattern.
    pub fn psubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// Step 6. Takes a channel away again; `leave` (below) does it in the table.
    pub fn unsubscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// Step 6. The same for a pattern.
    pub fn punsubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// Step 6. Sends a message to all subscribers of the channel, and of every pattern that matches it; how many.
    /// 1. subscribers of the channel get `["message", channel, message]`;
    /// 2. subscribers of a pattern with `glob::matches(pattern, channel)` get `["pmessage", pattern, channel, message]`;
    /// 3. `deliver` (below) sends to one table of subscribers and counts.
    pub fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// Given, for step 7. `CONFIG SET notify-keyspace-events FLAGS`.
    pub fn set_notifications(&self, flags: &str) {
        self.tables().notifications = flags.to_string();
    }

    /// Step 7. Publishes `event` on the channel `__keyspace@0__:KEY`, if the flags contain `K` and `class`.
    /// (`A` stands for every class.) Let go of the lock before you call `publish`, which takes it again.
    pub fn notify(&self, class: char, event: &str, key: &[u8]) {
        todo!("step 7: pubsub.rs")
    }

    /// Given. Locks the tables.
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given. Sends an array of bulk strings to every subscriber, and counts them. A full queue loses the message.
fn deliver(subscribers: &Subscribers, parts: &[&[u8]]) -> usize {
    let items = parts.iter().map(|part| Reply::Bulk(Some(part.to_vec())));
    let bytes = encode_reply(&Reply::Array(items.collect()));
    for queue in subscribers.values() {
        if queue.try_send(bytes.clone()).is_err() {
            log::warning("a subscriber is too slow: message lost");
        }
    }
    subscribers.len()
}

/// Given. Takes a subscriber away; a channel without subscribers is removed.
fn leave(table: &mut HashMap<Vec<u8>, Subscribers>, name: &[u8], client_id: u64) {
    if let Some(subscribers) = table.get_mut(name) {
        subscribers.remove(&client_id);
        if subscribers.is_empty() {
            table.remove(name);
        }
    }
}
