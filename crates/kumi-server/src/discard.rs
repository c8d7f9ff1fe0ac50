//! A thread that drops what takes long to drop.
//!
//! The queue is bounded. When it is full, whoever hands something over drops it on the spot: that
//! costs time, but a backlog of garbage cannot grow without limit.

use kumi_store::Garbage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Pieces of garbage that may wait.
const QUEUE_LIMIT: usize = 4096;

/// The thread and the way to it. Dropping this waits until the queue is empty.
#[derive(Debug)]
pub(crate) struct Discarder {
    queue: Option<SyncSender<Garbage>>,
    thread: Option<JoinHandle<()>>,
    /// Handed over and not dropped yet.
    pending: Arc<AtomicU64>,
}

impl Discarder {
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, garbage) = sync_channel(QUEUE_LIMIT);
        let pending = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&pending);
        let thread = Builder::new().name("kumi-discard".into()).spawn(move || {
            for garbage in garbage {
                drop(garbage);
                counter.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            pending,
        })
    }

    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    pub(crate) fn discard(&self, garbage: Garbage) {
        let Some(queue) = &self.queue else {
            return;
        };
        // Counted first: the thread may be done with it before `try_send` returns.
        self.pending.fetch_add(1, Ordering::Relaxed);
        if let Err(TrySendError::Full(garbage) | TrySendError::Disconnected(garbage)) =
            queue.try_send(garbage)
        {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            drop(garbage);
        }
    }
}

impl Drop for Discarder {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that drops large values panicked");
        }
    }
}
