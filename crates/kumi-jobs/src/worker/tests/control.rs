//! Workers that are drained, or move to another life, while they run.

use super::{App, Fixture, Sample};
use crate::{
    Context, Gone, Handle, Jobs, Owner, QueueError, Released, Task, TaskError, TaskState, Worker,
    WorkerError,
};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Tasks that take a second each.
async fn slow(fixture: &Fixture, count: usize) -> Vec<Handle<String>> {
    let mut handles = Vec::new();
    for _ in 0..count {
        let handle = fixture.jobs.enqueue(Sample("slow".into())).await;
        handles.push(handle.unwrap());
    }
    handles
}

async fn owners(fixture: &Fixture) -> Vec<(Owner, usize)> {
    let owners = fixture.jobs.queue().owners().await.unwrap();
    owners
        .into_iter()
        .map(|it| (it.owner, it.running))
        .collect()
}

fn worker(fixture: &Fixture, owner: &Owner) -> Worker<Arc<App>> {
    fixture.worker().concurrency(2).owner(owner.clone())
}

#[tokio::test(start_paused = true)]
async fn a_worker_in_another_life_reports_what_it_runs_and_shares_its_slots() {
    let fixture = Fixture::new();
    let first = Owner::new("w").unwrap();
    let second: Owner = "w~ffffffffffffffff".parse().unwrap();
    let mut worker = worker(&fixture, &first);
    let control = worker.control();
    let hanging = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let stop = async {
        fixture.app.started.notified().await;
        seconds(1).await;
        control.renew_life(second.clone());
        let handles = slow(&fixture, 3).await;
        // Twice as long as a lease: both lives are renewed.
        for _ in 0..60 {
            let half = Duration::from_millis(500);
            tokio::time::sleep(half).await;
            fixture.jobs.queue().reap().await.unwrap();
            let held: usize = owners(&fixture).await.iter().map(|(_, held)| held).sum();
            assert!(held <= 2, "more than the slots");
        }
        for handle in &handles {
            let record = handle.status().await.unwrap().unwrap();
            assert_eq!(record.state, TaskState::Succeeded);
        }
        assert_eq!(fixture.app.most.load(Ordering::SeqCst), 1);
        assert_eq!(owners(&fixture).await, [(first.clone(), 1)]);
        // The run of the first life is reported under it, and that ends.
        fixture.jobs.queue().cancel(hanging.id()).await.unwrap();
        seconds(10).await;
        let record = hanging.status().await.unwrap().unwrap();
        assert_eq!((record.state, record.attempts), (TaskState::Cancelled, 1));
        // All slots are the second life's now.
        let handles = slow(&fixture, 2).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(owners(&fixture).await, [(second.clone(), 2)]);
        for handle in &handles {
            handle.result().await.unwrap();
        }
    };
    worker.run_until(stop).await.unwrap();
    assert_eq!(owners(&fixture).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_goes_on_with_what_runs_and_claims_again_when_it_is_undrained() {
    let fixture = Fixture::new();
    let owner = Owner::new("w").unwrap();
    let mut worker = worker(&fixture, &owner);
    let control = worker.control();
    let stop = async {
        // Drained from its start.
        control.drain();
        let handles = slow(&fixture, 4).await;
        seconds(20).await;
        assert_eq!(fixture.app.runs.load(Ordering::SeqCst), 0);
        control.undrain();
        fixture.app.started.notified().await;
        control.drain();
        seconds(20).await;
        assert_eq!(fixture.app.runs.load(Ordering::SeqCst), 2);
        assert_eq!(owners(&fixture).await, []);
        let hanging = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
        control.undrain();
        for handle in &handles {
            handle.result().await.unwrap();
        }
        control.drain();
        // Its lease is renewed while it is drained.
        for _ in 0..20 {
            seconds(1).await;
            fixture.jobs.queue().reap().await.unwrap();
        }
        assert_eq!(owners(&fixture).await, [(owner.clone(), 1)]);
        fixture.jobs.queue().cancel(hanging.id()).await.unwrap();
        seconds(10).await;
        let record = hanging.status().await.unwrap().unwrap();
        assert_eq!((record.state, record.runs), (TaskState::Cancelled, 1));
    };
    worker.run_until(stop).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_life_was_released_works_again_in_another() {
    let fixture = Fixture::new();
    let first = Owner::new("w").unwrap();
    let second: Owner = "w~ffffffffffffffff".parse().unwrap();
    let mut worker = worker(&fixture, &first);
    let control = worker.control();
    let handle = fixture.jobs.enqueue(Sample("obey".into())).await.unwrap();
    let stop = async {
        fixture.app.started.notified().await;
        let gone = Gone::Life(first.clone());
        let released = fixture.jobs.queue().release_owner(&gone, Duration::ZERO);
        assert_eq!(released.await.unwrap(), Released::Tasks(1));
        seconds(20).await;
        let record = handle.status().await.unwrap().unwrap();
        assert_eq!((record.state, record.runs), (TaskState::Queued, 1));
        control.renew_life(second.clone());
        fixture.app.started.notified().await;
        assert_eq!(owners(&fixture).await, [(second.clone(), 1)]);
    };
    worker.run_until(stop).await.unwrap();
    let record = handle.status().await.unwrap().unwrap();
    // The first run was aborted: it neither saw a cancel nor reported.
    assert_eq!((record.state, record.runs), (TaskState::Queued, 2));
}

#[tokio::test(start_paused = true)]
async fn a_control_is_told_that_the_newest_life_was_released() {
    let fixture = Fixture::new();
    let first = Owner::new("w").unwrap();
    let second: Owner = "w~ffffffffffffffff".parse().unwrap();
    let mut worker = worker(&fixture, &first);
    let control = worker.control();
    fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let release = async |owner: &Owner| {
        fixture.app.started.notified().await;
        let released = tokio::time::timeout(Duration::from_secs(20), control.released());
        assert!(released.await.is_err(), "nothing was released");
        let gone = Gone::Life(owner.clone());
        let released = fixture.jobs.queue().release_owner(&gone, Duration::ZERO);
        assert_eq!(released.await.unwrap(), Released::Tasks(1));
        let released = tokio::time::timeout(Duration::from_secs(20), control.released());
        assert_eq!(released.await.expect("in time"), Some(owner.clone()));
    };
    let stop = async {
        release(&first).await;
        control.renew_life(second.clone());
        release(&second).await;
    };
    worker.run_until(stop).await.unwrap();
    assert_eq!(control.released().await, None, "the worker has ended");
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_life_ends_once_its_control_is_gone() {
    let fixture = Fixture::new();
    let owner = Owner::new("w").unwrap();
    let mut worker = worker(&fixture, &owner);
    let control = worker.control();
    fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let drop_control = async {
        fixture.app.started.notified().await;
        let gone = Gone::Life(owner.clone());
        let released = fixture.jobs.queue().release_owner(&gone, Duration::ZERO);
        assert_eq!(released.await.unwrap(), Released::Tasks(1));
        seconds(20).await;
        drop(control);
    };
    let never = std::future::pending::<()>();
    let ended = async { tokio::join!(worker.run_until(never), drop_control).0 };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    let ended = ended.expect("it ends");
    assert!(
        matches!(&ended, Err(WorkerError::Queue(QueueError::OwnerReleased(of))) if *of == owner),
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_life_that_was_released_does_not_keep_another_from_giving_back() {
    for released in 0..2 {
        let fixture = Fixture::new();
        let owners: [Owner; 2] = [
            Owner::new("w").unwrap(),
            "w~ffffffffffffffff".parse().unwrap(),
        ];
        let mut worker = worker(&fixture, &owners[0]);
        let control = worker.control();
        let run = async {
            let mut handles = Vec::new();
            for owner in &owners {
                control.renew_life(owner.clone());
                let handle = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
                fixture.app.started.notified().await;
                handles.push(handle);
            }
            let gone = Gone::Life(owners[released].clone());
            let released = fixture.jobs.queue().release_owner(&gone, Duration::ZERO);
            assert_eq!(released.await.unwrap(), Released::Tasks(1));
            handles
        };
        // The worker is dropped before it knows.
        let handles = tokio::select! {
            biased;
            handles = run => handles,
            _ = worker.run_until(std::future::pending::<()>()) => panic!("it ended"),
        };
        seconds(1).await;
        for handle in &handles {
            let record = handle.status().await.unwrap().unwrap();
            assert_eq!(record.state, TaskState::Queued, "life {released} is gone");
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Block;

impl Task for Block {
    const TYPE: &'static str = "block";
    type Output = ();
}

#[tokio::test]
async fn a_released_run_that_blocks_a_thread_has_its_slot_until_it_returns() {
    let jobs = Jobs::memory();
    let (first, second) = (Owner::new("w").unwrap(), Owner::new("w").unwrap());
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let (told, runs) = (Mutex::new(told), Arc::new(AtomicUsize::new(0)));
    let mut worker = Worker::new(&jobs, runs.clone())
        .blocking(move |_: Block, context: Context<Arc<AtomicUsize>>| {
            context.state().fetch_add(1, Ordering::SeqCst);
            // Each run ends with an order of the test.
            let told = told.lock().unwrap();
            told.recv_timeout(Duration::from_secs(20))
                .map_err(TaskError::abort)
        })
        .concurrency(1)
        .owner(first.clone());
    let control = worker.control();
    let task = jobs.enqueue(Block).await.unwrap();
    let stop = async {
        while runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let gone = Gone::Life(first.clone());
        let released = jobs.queue().release_owner(&gone, Duration::ZERO).await;
        assert_eq!(released.unwrap(), Released::Tasks(1));
        assert_eq!(control.released().await, Some(first.clone()));
        control.renew_life(second.clone());
        // Far longer than a claim takes.
        seconds(1).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1, "its slot is not free");
        tell.send(()).unwrap();
        tell.send(()).unwrap();
        task.result().await.unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    };
    worker.run_until(stop).await.unwrap();
}
