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
    released: watch::Receiver<Option<ReleasedLife>>,
}

/// What is wanted of a worker now.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    /// The owner of its newest life, unless that is its first.
    pub(super) owner: Option<Owner>,
    /// How often another life was wanted.
    pub(super) renewals: u64,
    pub(super) is_drained: bool,
}

/// The newest life of a worker was released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReleasedLife {
    pub(super) owner: Owner,
    /// The renewals that the worker had carried out.
    pub(super) renewals: u64,
}

/// The worker's side of a control.
pub(super) struct Controlled {
    pub(super) orders: watch::Receiver<Orders>,
    pub(super) released: watch::Sender<Option<ReleasedLife>>,
}

impl WorkerControl {
    pub(super) fn new() -> (Self, Controlled) {
        let (orders_sender, orders) = watch::channel(Orders::default());
        let (released, released_receiver) = watch::channel(None);
        let control = Self {
            orders: Arc::new(orders_sender),
            released: released_receiver,
        };
        (control, Controlled { orders, released })
    }

    /// Waits until the newest life of the worker is declared gone, and answers its owner: the worker claims nothing until it
    /// is given another life. None if the worker ends before.
    pub async fn released(&self) -> Option<Owner> {
        let mut released = self.released.clone();
        // A life that was released before the last renewal is not the newest one.
        let is_newest = |released: &Option<ReleasedLife>| {
            let renewals = self.orders.borrow().renewals;
            let mut released = released.iter();
            released.any(|released| released.renewals == renewals)
        };
        let released = released.wait_for(is_newest).await.ok()?;
        released.as_ref().map(|released| released.owner.clone())
    }

    /// Moves the worker to another life, that of this owner: its present owner claims no more, but renews and reports until
    /// its handlers have ended; the new one claims, and shares the worker's concurrency with them. Nothing changes if the
    /// worker has this owner, in its newest life or one that has not ended.
    pub fn renew_life(&self, owner: Owner) {
        self.orders.send_modify(|orders| {
            orders.owner = Some(owner);
            orders.renewals += 1;
        });
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
