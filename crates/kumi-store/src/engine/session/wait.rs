//! What a session waits for.

use crate::base::ids::CommandId;
use crate::data::keyspace::{Ticket, Wake};
use kumi_resp::OwnedArgs;

/// A command that waits for one of its keys.
#[derive(Debug)]
pub(crate) struct KeyWait {
    pub(crate) id: CommandId,
    pub(crate) args: OwnedArgs,
    pub(crate) db: usize,
    /// The keys, and what it waits for under each.
    pub(crate) keys: Vec<(Box<[u8]>, Wake)>,
    /// Its place among those that wait for the same keys.
    pub(crate) ticket: Ticket,
}

/// How far the append-only file is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AofProgress {
    /// There is an append-only file, and it is complete.
    pub on: bool,
    /// Position in the stream of all writes up to which it is synced.
    pub synced: u64,
}

/// What a session waits for with WAITAOF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AofWait {
    /// Position in the stream of all writes behind the session's last one.
    pub(crate) written: u64,
    /// Whether the local file has to be synced.
    pub(crate) local: bool,
    /// How many replicas have to have synced; there are none.
    pub(crate) replicas: i64,
}

impl AofWait {
    /// Whether the wait is over. An AOF whose first base is missing is not on yet, and is waited for.
    pub(crate) fn is_over(&self, progress: AofProgress) -> bool {
        self.replicas <= 0 && (!self.local || self.is_synced(progress))
    }

    /// Whether the local file has what the session has written.
    pub(crate) fn is_synced(&self, progress: AofProgress) -> bool {
        progress.on && progress.synced >= self.written
    }

    /// The reply: whether the local file is synced, and the number of replicas.
    pub(crate) fn reply(&self, progress: AofProgress) -> [u8; 12] {
        let local = if self.is_synced(progress) { b'1' } else { b'0' };
        let mut reply = *b"*2\r\n:0\r\n:0\r\n";
        reply[5] = local;
        reply
    }
}
