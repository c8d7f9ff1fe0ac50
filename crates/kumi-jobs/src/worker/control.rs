//! Steering a worker while it runs.

use crate::core::Owner;
use std::sync::Arc;
use tokio::sync::watch;

/// Steers a worker that runs; [`Worker::control`](crate::Worker::control) makes it. Clones steer the same worker. What is wanted
/// before the worker runs holds from its start, and a worker that ended is not steered any more.
///
/// ```
/// # use kumi_jobs::{Jobs, Owner, Worker};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut worker = Worker::new(&Jobs::memory(), ());
/// let control = worker.control();
/// control.drain();
/// assert!(control.is_drained());
/// control.undrain();
/// control.renew_life(Owner::new("web-1")?);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct WorkerControl {
    orders: Arc<watch::Sender<Orders>>,
}

/// What is wanted of a worker now.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    /// The owner of its newest life, unless that is its first.
    pub(super) owner: Option<Owner>,
    pub(super) is_drained: bool,
}

impl WorkerControl {
    pub(super) fn new() -> Self {
        Self {
            orders: Arc::new(watch::Sender::new(Orders::default())),
        }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    /// Moves the worker to another life, that of this owner: its present owner claims no more, but renews and reports until
    /// its handlers have ended; the new one claims, and shares the worker's concurrency with them. Nothing changes if the
    /// worker has this owner.
    pub fn renew_life(&self, owner: Owner) {
        self.orders.send_modify(|orders| orders.owner = Some(owner));
    }

    /// Stops claims. What runs goes on, and is renewed and reported.
    pub fn drain(&self) {
        self.orders.send_modify(|orders| orders.is_drained = true);
    }

    /// Claims again.
    pub fn undrain(&self) {
        self.orders.send_modify(|orders| orders.is_drained = false);
    }

    /// Whether claims are stopped.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.orders.borrow().is_drained
    }
}
