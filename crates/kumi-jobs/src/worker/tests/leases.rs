//! A worker that lost its lease.

use super::super::logged::Log;
use super::{App, Sample, sample};
use crate::{Jobs, LEASE, Owner, Queue as _, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The queue has given all tasks of the worker to others, while the worker believed that it had its lease.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_logged_once_for_each_task() {
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let settings = crate::Settings::default();
    let queue = crate::InMemoryQueue::with_virtual_clock(settings, clock.clone());
    let jobs = Jobs::with_queue(Arc::new(queue.clone()));
    let app = Arc::<App>::default();
    jobs.enqueue(Sample("obey".into())).await.unwrap();
    let stop = async {
        app.started.notified().await;
        for _ in 0..6 {
            clock.fetch_add(3_000, Ordering::SeqCst);
            let other = Owner::random();
            queue.heartbeat(&other, LEASE).await.unwrap();
        }
        assert_eq!(queue.reap().await.unwrap(), 1);
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(app.ended.load(Ordering::SeqCst), 1);
    };
    let worker = Worker::new(&jobs, app.clone()).handle(sample);
    let said = Log::of(worker.run_until(stop)).await;
    let lost = "the lease was lost: the handler is cancelled and its report will be refused";
    let lost = format!("{lost} attempt owner queue");
    assert_eq!(
        said.iter().filter(|line| **line == lost).count(),
        1,
        "{said:#?}"
    );
}
