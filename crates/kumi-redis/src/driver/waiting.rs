//! Pipelines that were sent and have no replies yet.

use std::collections::VecDeque;

use redis::Value;
use tokio::sync::oneshot;

use crate::core::Time;
use crate::core::strings::{Command, Reply};

/// The recipient of the replies of a pipeline. `T` is the tag that the sender of a pipeline gave with it.
pub(super) enum Recipient<T> {
    /// The sender.
    Sender(T),
    /// The rest of a pipeline whose keys are on several nodes.
    Part(Box<Scatter<T>>),
    /// A task, which reads the values itself.
    Remote(oneshot::Sender<Vec<Value>>),
}

/// A pipeline that was sent.
pub(super) struct Waiting<T> {
    pub(super) recipient: Recipient<T>,
    /// Kept to be sent on; those of a remote call are not known.
    pub(super) commands: Vec<Command>,
    pub(super) asking: bool,
    pub(super) redirects: u8,
    /// A large value goes or comes with it.
    pub(super) bulk: bool,
    /// When it was sent, and how many bytes it has.
    pub(super) sent: Time,
    pub(super) size_bytes: usize,
    /// How many replies it gets, and those that are here.
    pub(super) count: usize,
    pub(super) values: Vec<Value>,
}

impl<T> Waiting<T> {
    pub(super) fn new(recipient: Recipient<T>, commands: Vec<Command>, sent: Time) -> Self {
        Self {
            recipient,
            count: commands.len(),
            commands,
            asking: false,
            redirects: 0,
            bulk: false,
            sent,
            size_bytes: 0,
            values: Vec::new(),
        }
    }

    /// The tag whose sender has to be informed that no replies will come. A task finds out by its closed channel.
    pub(super) fn into_lost(self) -> Option<T> {
        let mut recipient = self.recipient;
        loop {
            match recipient {
                Recipient::Sender(tag) => return Some(tag),
                // A part that is lost takes the whole with it.
                Recipient::Part(scatter) => recipient = scatter.recipient,
                Recipient::Remote(_) => return None,
            }
        }
    }
}

/// A pipeline that is run one key at a time.
pub(super) struct Scatter<T> {
    pub(super) recipient: Recipient<T>,
    /// What is still to be run, each with the index of its command in the pipeline.
    pub(super) parts: VecDeque<(usize, Command)>,
    /// The index of the command whose part was sent last.
    pub(super) index: usize,
    pub(super) bulk: bool,
    pub(super) joined: Vec<Option<Reply>>,
}
