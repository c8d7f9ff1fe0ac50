//! The thread that syncs the append-only file, so that the engine's thread does not wait for the disk.

use super::files::AofFile;
use super::place::Place;
use super::switch::{Next, Prepare};
use mio::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How soon to look again whether a job has ended.
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// What the thread does.
#[derive(Debug)]
pub(crate) enum Work {
    /// Syncs a file.
    Sync(Arc<dyn AofFile>),
    /// Makes ready what a rewrite begins with, and syncs the present file.
    Prepare(Box<Prepare>),
    /// Syncs the names of the files.
    SyncDirectory(Place),
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) work: Work,
    /// The length of the file when the job was given.
    pub(crate) position: u64,
    /// Position in the stream of all writes at the same time.
    pub(crate) stream: u64,
    /// The number of the appender: a result for an older one says nothing about the present one.
    pub(crate) generation: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Synced {
    pub(crate) position: u64,
    pub(crate) stream: u64,
    pub(crate) generation: u64,
    /// Whether it is on disk.
    pub(crate) outcome: io::Result<()>,
    /// What a rewrite begins with, if that was asked for.
    pub(crate) next: Option<io::Result<Box<Next>>>,
}

#[derive(Debug, Default)]
struct Shared {
    running: AtomicBool,
    result: Mutex<Option<Synced>>,
}

/// The thread. One job runs at a time.
#[derive(Debug)]
pub(crate) struct Syncer {
    shared: Arc<Shared>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread. `waker` wakes the event loop when a job is done.
    pub(crate) fn start(waker: Option<Arc<Waker>>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (jobs, queue) = sync_channel(1);
        let thread = Builder::new().name("kumi-fsync".into()).spawn({
            let shared = shared.clone();
            move || run(&queue, &shared, waker.as_deref())
        })?;
        Ok(Self {
            shared,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Whether a job runs. Its result may not have been taken yet when it no longer does.
    pub(crate) fn is_running(&self) -> bool {
        self.shared.running.load(Ordering::Acquire)
    }

    /// Whether no job runs, and the result of the last one has been taken.
    pub(crate) fn is_free(&self) -> bool {
        !self.is_running() && lock(&self.shared.result).is_none()
    }

    /// Gives the thread a job; it has to be free, or the result of the last job would be lost.
    pub(crate) fn submit(&self, job: Job) {
        debug_assert!(self.is_free(), "one job at a time");
        self.shared.running.store(true, Ordering::Release);
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        if !matches!(sent, Some(Ok(()))) {
            self.shared.running.store(false, Ordering::Release);
        }
    }

    /// The result of a job that has ended since this was last asked.
    pub(crate) fn take(&self) -> Option<Synced> {
        if self.is_running() {
            return None;
        }
        lock(&self.shared.result).take()
    }

    /// Waits for the running job, if there is one.
    pub(crate) fn settle(&self) {
        // Many jobs take microseconds.
        for _ in 0..100 {
            if !self.is_running() {
                return;
            }
            std::thread::yield_now();
        }
        while self.is_running() {
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// The same, for a limited time.
    pub(crate) fn settle_for(&self, limit: Duration) {
        let start = Instant::now();
        while self.is_running() && start.elapsed() < limit {
            std::thread::park_timeout(LOOK_AGAIN);
        }
    }

    /// Leaves a job that is given up to the thread, which ends after it: the thread, if one runs. Nothing else may be submitted.
    pub(crate) fn leave(&mut self) -> Option<JoinHandle<()>> {
        if !self.is_running() {
            return None;
        }
        self.jobs = None;
        self.thread.take()
    }

    /// Waits for the running job, and takes its result.
    pub(crate) fn wait(&self) -> Option<Synced> {
        self.settle();
        self.take()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that syncs the append-only file panicked");
        }
    }
}

fn lock(result: &Mutex<Option<Synced>>) -> std::sync::MutexGuard<'_, Option<Synced>> {
    result.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(queue: &Receiver<Job>, shared: &Shared, waker: Option<&Waker>) {
    while let Ok(job) = queue.recv() {
        let (outcome, next) = match job.work {
            Work::Sync(file) => (file.sync(), None),
            Work::Prepare(prepare) => {
                let (outcome, next) = prepare.run();
                (outcome, Some(next))
            }
            Work::SyncDirectory(place) => (place.files.sync_directory(&place.directory), None),
        };
        *lock(&shared.result) = Some(Synced {
            position: job.position,
            stream: job.stream,
            generation: job.generation,
            outcome,
            next,
        });
        shared.running.store(false, Ordering::Release);
        if let Some(waker) = waker
            && let Err(error) = waker.wake()
        {
            // The loop looks at the result at its next turn anyway.
            tracing::debug!(%error, "waking the server failed");
        }
    }
}
