//! A thread that drops what takes long to drop.
//!
//! Nothing is ever dropped on the thread that hands it over, however much waits: memory that waits
//! counts as used, so `maxmemory` bounds it.
//!
//! mimalloc keeps what this thread frees with the thread that allocated it, in lists that the
//! owner walks when it collects. So a database is dropped in slices, and the engine's thread
//! collects after each: that is a millisecond at a time instead of a third of a second for three
//! million keys.

use crate::base::allocator;
use crate::base::clock::Clock;
use kumi_resp::SharedBytes;
use kumi_store::{Garbage, GarbageBytes, Store};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

/// Bytes dropped after which free memory goes back to the system.
const PURGE_BYTES: u64 = 16 * 1024 * 1024;
/// How long a slice waits to be collected.
const COLLECT_TIMEOUT: Duration = Duration::from_millis(100);

/// The thread and the way to it. When this is dropped, the thread ends as soon as everything is
/// dropped that was handed over; the server does not wait for it.
#[derive(Debug)]
pub(crate) struct Discarder {
    queue: Sender<Waste>,
    thread: Thread,
    waiting: Arc<Waiting>,
    /// The allocator does not collect before this reading of the steady clock.
    next_collection_ns: u64,
}

/// What was handed over and is not dropped yet.
#[derive(Debug, Default)]
struct Waiting {
    pieces: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that were handed over since the start.
    handed_over: AtomicU64,
    /// Slices dropped, each of which the allocator of the engine's thread has to collect ...
    slices: AtomicU64,
    /// ... and those it has collected.
    collected: AtomicU64,
    /// The next collection gives free memory back to the system.
    purge: AtomicBool,
}

impl Waiting {
    /// Has the engine's thread collect what was dropped, and waits for it. A command that runs
    /// long must not hold this up for ever.
    fn end_slice(&self) {
        let slices = self.slices.fetch_add(1, Ordering::Release) + 1;
        let start = Instant::now();
        while self.collected.load(Ordering::Acquire) < slices && start.elapsed() < COLLECT_TIMEOUT {
            std::thread::park_timeout(COLLECT_TIMEOUT);
        }
    }
}

enum Waste {
    /// Of the keyspace, with its size.
    Garbage(u64, Garbage),
    /// The last reference to an argument or a value.
    Bytes(SharedBytes),
    /// Everything an embedded server held.
    Store(#[expect(dead_code, reason = "only its drop matters")] Box<Store>),
}

impl Waste {
    /// Drops it, with the memory of each slice collected before the next one is dropped.
    fn drop_in_slices(self, waiting: &Waiting) {
        if let Self::Garbage(_, mut garbage) = self {
            while garbage.drop_slice() {
                waiting.end_slice();
            }
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Garbage(bytes, _) => *bytes,
            Self::Bytes(bytes) => bytes.heap_bytes() as u64,
            Self::Store(_) => 0,
        }
    }
}

impl Discarder {
    pub(crate) fn start() -> io::Result<Self> {
        let (queue, waste) = channel::<Waste>();
        let waiting = Arc::new(Waiting::default());
        let counter = Arc::clone(&waiting);
        let thread = Builder::new().name("kumi-discard".into()).spawn(move || {
            let mut unpurged = 0;
            for piece in waste {
                let bytes = piece.bytes();
                piece.drop_in_slices(&counter);
                unpurged += bytes;
                counter.bytes.fetch_sub(bytes, Ordering::Relaxed);
                if counter.pieces.load(Ordering::Relaxed) == 1 && unpurged >= PURGE_BYTES {
                    unpurged = 0;
                    counter.end_slice();
                    // Most goes back to the system here, the rest by the engine's thread.
                    allocator::collect(true);
                    counter.purge.store(true, Ordering::Relaxed);
                    counter.end_slice();
                }
                counter.pieces.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self {
            queue,
            thread: thread.thread().clone(),
            waiting,
            next_collection_ns: 0,
        })
    }

    /// Has the allocator of the engine's thread take what the discard thread freed, for half of the time at most: a
    /// flushed database of three million keys is back with the system after about two seconds.
    pub(crate) fn collect_freed(&mut self, clock: &mut Clock) {
        let slices = self.waiting.slices.load(Ordering::Acquire);
        let start_ns = clock.last().mono_ns;
        if slices == self.waiting.collected.load(Ordering::Relaxed)
            || start_ns < self.next_collection_ns
        {
            return;
        }
        allocator::collect(self.waiting.purge.swap(false, Ordering::Relaxed));
        // The next slice may be dropped.
        self.waiting.collected.store(slices, Ordering::Release);
        self.thread.unpark();
        let end_ns = clock.read().mono_ns;
        self.next_collection_ns = end_ns + (end_ns - start_ns);
    }

    /// Pieces that wait.
    pub(crate) fn pending(&self) -> u64 {
        self.waiting.pieces.load(Ordering::Relaxed)
    }

    /// Bytes that were handed over, and those that wait.
    pub(crate) fn garbage_bytes(&self) -> GarbageBytes {
        GarbageBytes {
            waiting: self.waiting.bytes.load(Ordering::Relaxed),
            handed_over: self.waiting.handed_over.load(Ordering::Relaxed),
        }
    }

    /// Drops everything a server held.
    pub(crate) fn discard_store(&self, store: Store) {
        self.send(Waste::Store(Box::new(store)));
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
        let bytes = waste.bytes();
        // Counted first: the thread may be done with it before `send` returns.
        self.waiting.pieces.fetch_add(1, Ordering::Relaxed);
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.handed_over.fetch_add(bytes, Ordering::Relaxed);
        if self.queue.send(waste).is_err() {
            // The thread is gone, which only a panic in a drop can have done; it was dropped here.
            self.waiting.pieces.fetch_sub(1, Ordering::Relaxed);
            self.waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}
