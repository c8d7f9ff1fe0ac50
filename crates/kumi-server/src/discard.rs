//! A thread that drops what takes long to drop.
//!
//! Nothing is ever dropped on the thread that hands it over, however much waits: memory that waits
//! counts as used, so `maxmemory` bounds it.

use kumi_resp::SharedBytes;
use kumi_store::Garbage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

/// The thread and the way to it. Dropping this waits until the queue is empty.
#[derive(Debug)]
pub(crate) struct Discarder {
    queue: Option<Sender<Waste>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<Waiting>,
}

/// What was handed over and is not dropped yet.
#[derive(Debug, Default)]
struct Waiting {
    pieces: AtomicU64,
    bytes: AtomicU64,
}

enum Waste {
    /// Of the keyspace, with its size.
    Garbage(
        u64,
        #[expect(dead_code, reason = "only its drop matters")] Garbage,
    ),
    /// The last reference to an argument or a value.
    Bytes(SharedBytes),
}

impl Waste {
    fn bytes(&self) -> u64 {
        match self {
            Self::Garbage(bytes, _) => *bytes,
            Self::Bytes(bytes) => bytes.heap_bytes() as u64,
        }
    }
}

impl Discarder {
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, waste) = channel::<Waste>();
        let waiting = Arc::new(Waiting::default());
        let counter = Arc::clone(&waiting);
        let thread = Builder::new().name("kumi-discard".into()).spawn(move || {
            for piece in waste {
                let bytes = piece.bytes();
                drop(piece);
                counter.bytes.fetch_sub(bytes, Ordering::Relaxed);
                counter.pieces.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            waiting,
        })
    }

    /// Pieces that wait.
    pub(crate) fn pending(&self) -> u64 {
        self.waiting.pieces.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.waiting.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn discard(&self, garbage: Garbage) {
        let bytes = garbage.heap_bytes() as u64;
        self.send(Waste::Garbage(bytes, garbage));
    }

    /// Drops references; the last ones to their bytes are dropped by the thread.
    pub(crate) fn discard_bytes(&self, references: Vec<SharedBytes>) {
        for reference in references.into_iter().filter(SharedBytes::is_unique) {
            self.send(Waste::Bytes(reference));
        }
    }

    fn send(&self, waste: Waste) {
        let Some(queue) = &self.queue else {
            return;
        };
        let bytes = waste.bytes();
        // Counted first: the thread may be done with it before `send` returns.
        self.waiting.pieces.fetch_add(1, Ordering::Relaxed);
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        if queue.send(waste).is_err() {
            // The thread is gone, which only a panic in a drop can have done; it was dropped here.
            self.waiting.pieces.fetch_sub(1, Ordering::Relaxed);
            self.waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
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
