//! The worker on a memory queue, in virtual time.

mod ahead;
mod control;
mod leases;

use super::logged::Log;
use super::probe::{Late, Probe};
use crate::{
    Cancel, Context, Execution, Jobs, Options, Owner, Priority, Queue as _, ResultError, Signal,
    Task, TaskError, TaskHandler, TaskState, Worker, WorkerError,
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Serialize, Deserialize, Clone)]
struct Sample(String);

impl Task for Sample {
    const TYPE: &'static str = "sample";
    type Output = String;
    fn options() -> Options {
        Options::new().time_limit(Duration::from_secs(60))
    }
}

#[derive(Default)]
struct App {
    runs: AtomicUsize,
    /// How many runs go on at once, now and at most.
    now: AtomicUsize,
    most: AtomicUsize,
    started: Notify,
    /// Runs that saw their cancellation.
    ended: AtomicUsize,
}

async fn sample(task: Sample, cx: Context<Arc<App>>) -> Result<String, TaskError> {
    let run = cx.state().runs.fetch_add(1, Ordering::SeqCst) + 1;
    cx.state().started.notify_one();
    match task.0.as_str() {
        "fail twice" if run < 3 => Err(TaskError::retry("not yet")),
        "fail" => Err(TaskError::retry("never")),
        "abort" => Err(TaskError::abort("bad")),
        "retry after" if run == 1 => {
            let error = "later".into();
            Err(TaskError::RetryAfter(Duration::from_secs(1_000), error))
        }
        "retry never" => Err(TaskError::RetryAfter(Duration::MAX, "no".into())),
        "snooze for ever" => Err(TaskError::Snooze(Duration::MAX)),
        "snooze" if run == 1 => Err(TaskError::Snooze(Duration::from_secs(100))),
        "panic" => panic!("oh"),
        "large" => Ok("x".repeat(100_000)),
        "hang" => std::future::pending().await,
        "obey" => {
            cx.cancelled().cancelled().await;
            cx.state().ended.fetch_add(1, Ordering::SeqCst);
            Err(TaskError::retry("stopped"))
        }
        "steps" => {
            let once = async { Ok::<_, TaskError>(run) };
            let first = cx.step("first", once).await?;
            cx.progress(50, "half").await?;
            match run {
                1 | 2 => Err(TaskError::retry("again")),
                _ => Ok(format!("first ran in run {first}")),
            }
        }
        "slow" => {
            let now = cx.state().now.fetch_add(1, Ordering::SeqCst) + 1;
            cx.state().most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            cx.state().now.fetch_sub(1, Ordering::SeqCst);
            Ok(String::new())
        }
        text => Ok(text.to_uppercase()),
    }
}

struct Fixture {
    jobs: Jobs,
    app: Arc<App>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            jobs: Jobs::memory(),
            app: Arc::default(),
        }
    }

    /// On a queue with faults.
    fn on(probe: Probe) -> (Self, Arc<Probe>) {
        let probe = Arc::new(probe);
        let fixture = Self {
            jobs: Jobs::with_queue(probe.clone()),
            app: Arc::default(),
        };
        (fixture, probe)
    }

    fn worker(&self) -> Worker<Arc<App>> {
        Worker::new(&self.jobs, self.app.clone()).handle(sample)
    }

    /// Runs one task to its end.
    async fn run(&self, text: &str) -> (Result<String, ResultError>, crate::TaskRecord) {
        let handle = self.jobs.enqueue(Sample(text.into())).await.unwrap();
        let mut result = None;
        let work = async { result = Some(handle.result().await) };
        self.worker().run_until(work).await.unwrap();
        let record = handle.status().await.unwrap().unwrap();
        (result.unwrap(), record)
    }
}

#[tokio::test(start_paused = true)]
async fn results_reach_the_producer() {
    let (result, record) = Fixture::new().run("hello").await;
    assert_eq!(result.unwrap(), "HELLO");
    assert_eq!((record.state, record.attempts), (TaskState::Succeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_tried_again_later() {
    let (result, record) = Fixture::new().run("fail twice").await;
    assert_eq!(result.unwrap(), "FAIL TWICE");
    assert_eq!((record.attempts, record.runs), (3, 3));
    assert_eq!(record.last_error.as_deref(), Some("not yet"));
}

#[tokio::test(start_paused = true)]
async fn five_failures_are_the_end() {
    let (result, record) = Fixture::new().run("fail").await;
    assert!(matches!(result, Err(ResultError::Dead { error, .. }) if error == "never"));
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 5));
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_the_end_at_once() {
    let (_, record) = Fixture::new().run("abort").await;
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 1));
}

#[tokio::test(start_paused = true)]
async fn a_snooze_costs_no_attempt() {
    let fixture = Fixture::new();
    let before = tokio::time::Instant::now();
    let (_, record) = fixture.run("snooze").await;
    assert!(before.elapsed() >= Duration::from_secs(100));
    assert_eq!((record.attempts, record.runs, record.given_back), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_is_cut_to_what_a_queue_takes() {
    let fixture = Fixture::new();
    let ids = ["snooze for ever", "retry never"].map(|text| Sample(text.into()));
    let handles = fixture.jobs.enqueue_all(ids).await.unwrap();
    let stop = async {
        for (handle, expected) in handles
            .iter()
            .zip([TaskState::Scheduled, TaskState::RetryScheduled])
        {
            loop {
                let record = handle.status().await.unwrap().unwrap();
                if record.state == expected {
                    let delay = record.next_run_at.unwrap().since(record.updated_at);
                    assert_eq!(delay, crate::check::DURATION_LIMIT);
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    };
    let stop = tokio::time::timeout(Duration::from_secs(60), stop);
    let stop = async { stop.await.expect("the reports are taken") };
    fixture.worker().run_until(stop).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_say_when_it_is_to_be_tried_again() {
    let fixture = Fixture::new();
    let before = tokio::time::Instant::now();
    let (result, record) = fixture.run("retry after").await;
    assert_eq!(result.unwrap(), "RETRY AFTER");
    assert!(before.elapsed() >= Duration::from_secs(1_000));
    assert_eq!((record.attempts, record.runs), (2, 2));
    assert_eq!(record.last_error.as_deref(), Some("later"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_is_an_error_for_the_producer() {
    let (result, record) = Fixture::new().run("large").await;
    assert!(matches!(result, Err(ResultError::TooLarge(_))));
    assert_eq!((record.state, record.attempts), (TaskState::Succeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn a_trace_context_reaches_the_handler_and_what_it_enqueues() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    #[derive(Serialize, Deserialize)]
    struct First;
    impl Task for First {
        const TYPE: &'static str = "first";
        type Output = crate::TaskId;
    }
    let fixture = Fixture::new();
    let jobs = fixture.jobs.clone();
    let first = move |_: First, cx: Context<Arc<App>>| {
        let jobs = jobs.clone();
        async move {
            assert_eq!(cx.trace(), Some(TRACE));
            // Beyond the first poll of a handler, too.
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(jobs.enqueue(Sample("next".into())).await?.id())
        }
    };
    let handle = fixture.jobs.enqueue(First).trace(TRACE).await.unwrap();
    let mut next = None;
    let done = async { next = handle.result().await.ok() };
    fixture
        .worker()
        .handle(first)
        .run_until(done)
        .await
        .unwrap();
    let record = fixture.jobs.get_status(next.unwrap()).await;
    assert_eq!(record.unwrap().unwrap().trace.as_deref(), Some(TRACE));
}

#[tokio::test]
async fn a_trace_context_follows_a_blocking_handler_and_raw_tasks() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    #[derive(Serialize, Deserialize)]
    struct First;
    impl Task for First {
        const TYPE: &'static str = "first";
        type Output = Vec<crate::TaskId>;
    }
    let jobs = Jobs::memory();
    let (inner, runtime) = (jobs.clone(), tokio::runtime::Handle::current());
    let first = move |_: First, _: Context<()>| {
        runtime.block_on(async {
            let typed = inner.enqueue(Sample("next".into())).await?.id();
            let raw = crate::NewTask::new(crate::TaskEnvelope::json("raw", "{}"));
            Ok(vec![typed, inner.enqueue_raw(raw).await?.id()])
        })
    };
    let handle = jobs.enqueue(First).trace(TRACE).await.unwrap();
    let mut made = Vec::new();
    let done = async { made = handle.result().await.unwrap() };
    Worker::new(&jobs, ())
        .blocking(first)
        .run_until(done)
        .await
        .unwrap();
    for id in made {
        let record = jobs.get_status(id).await.unwrap().unwrap();
        assert_eq!(record.trace.as_deref(), Some(TRACE));
    }
}

#[tokio::test]
async fn a_schedule_has_the_options_of_its_type() {
    #[derive(Serialize, Deserialize)]
    struct Urgent;
    impl Task for Urgent {
        const TYPE: &'static str = "urgent";
        type Output = ();
        fn options() -> Options {
            Options::new().max_attempts(2).priority(Priority::High)
        }
    }
    let jobs = Jobs::memory();
    let stored = jobs.cron("now", "* * * * *", "UTC", Urgent).await;
    stored.unwrap();
    let (_, schedules) = jobs.queue().schedules().await.unwrap();
    let task = crate::cron::task_of(&schedules[0], crate::Timestamp::from_ms(1));
    assert_eq!((task.priority, task.max_attempts), (Priority::High, 2));
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_task_is_logged() {
    let (failed, again) = ("Failed attempt err", "RetryScheduled backoff next_run_at");
    let check = async |text: &str, expected: &[&str]| {
        let said = Log::of(Fixture::new().run(text)).await;
        assert_eq!(said, expected);
    };
    let (enqueued, started) = ("Enqueued state task_type", "Started attempt");
    let first = [enqueued, started, failed, again, started, failed, again];
    let fail_twice = [&first[..], &[started, "Succeeded attempt"]].concat();
    check("fail twice", &fail_twice).await;
    let dead = "Dead attempts last_error";
    check("abort", &[enqueued, started, failed, dead]).await;
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_tasks_that_a_worker_lost_is_logged() {
    let jobs = Jobs::memory();
    let queue = jobs.queue();
    let mut task = crate::NewTask::new(crate::TaskEnvelope::json("sample", "{}"));
    task.max_attempts = 3;
    queue.enqueue(vec![task]).await.unwrap();
    let claim = async || {
        let room = crate::Room {
            task_type: "sample".into(),
            room: 1,
        };
        let ask = crate::Ask {
            owner: Owner::random(),
            nonce: 1,
            lease: Duration::from_secs(15),
            types: vec![room],
            max: 1,
        };
        let claims = queue.dequeue_ready(ask).await.unwrap();
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let other = Owner::random();
            queue.heartbeat(&other, crate::LEASE).await.unwrap();
        }
        claims[0].owner.clone()
    };
    claim().await;
    let reap = async { assert_eq!(queue.reap().await.unwrap(), 1) };
    let failed = "Failed attempt err";
    let again = "RetryScheduled backoff next_run_at";
    assert_eq!(Log::of(reap).await, [failed, again]);
    tokio::time::advance(Duration::from_secs(20)).await;
    let release = async |owner: Owner| {
        let gone = crate::Gone::Life(owner);
        queue.release_owner(&gone, Duration::ZERO).await.unwrap();
    };
    let moved = Log::of(release(claim().await)).await;
    assert_eq!(moved, [failed, "Moved attempt state"]);
    let dead = Log::of(release(claim().await)).await;
    assert_eq!(dead, [failed, "Dead attempts last_error"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_attempt() {
    let (_, record) = Fixture::new().run("panic").await;
    let error = "the handler panicked: oh";
    assert_eq!(
        (record.state, record.last_error.as_deref()),
        (TaskState::Dead, Some(error))
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_over_its_time_limit_is_a_failed_attempt() {
    let (_, record) = Fixture::new().run("hang").await;
    let error = "the time limit of 60s ended";
    assert_eq!(
        (record.attempts, record.last_error.as_deref()),
        (5, Some(error))
    );
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_payload_is_dead_with_a_reason() {
    let fixture = Fixture::new();
    let task = crate::NewTask::new(crate::TaskEnvelope::json("sample", "{"));
    let id = fixture.jobs.enqueue_raw(task).await.unwrap().id();
    let done = fixture.jobs.queue().done(id);
    fixture.worker().run_until(done).await.unwrap();
    let record = fixture.jobs.get_status(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 1));
    assert!(
        record
            .last_error
            .unwrap()
            .starts_with("the payload is no sample: ")
    );
}

#[tokio::test(start_paused = true)]
async fn a_stored_step_is_not_done_again() {
    let (result, record) = Fixture::new().run("steps").await;
    assert_eq!(result.unwrap(), "first ran in run 1");
    assert_eq!(record.runs, 3);
}

#[tokio::test(start_paused = true)]
async fn a_worker_stays_within_its_limits() {
    let fixture = Fixture::new();
    let tasks = (0..30).map(|_| Sample("slow".into()));
    let handles = fixture.jobs.enqueue_all(tasks).await.unwrap();
    let done = async {
        for handle in &handles {
            handle.result().await.unwrap();
        }
    };
    let worker = fixture.worker().concurrency(20).limit::<Sample>(7);
    worker.run_until(done).await.unwrap();
    assert_eq!(fixture.app.most.load(Ordering::SeqCst), 7);
}

#[tokio::test(start_paused = true)]
async fn a_running_task_can_be_cancelled() {
    for text in ["hang", "obey"] {
        let fixture = Fixture::new();
        let handle = fixture.jobs.enqueue(Sample(text.into())).await.unwrap();
        let queue = fixture.jobs.queue().clone();
        let cancel = async {
            fixture.app.started.notified().await;
            assert_eq!(queue.cancel(handle.id()).await.unwrap(), Cancel::Requested);
            assert!(matches!(
                handle.result().await,
                Err(ResultError::Cancelled(_))
            ));
        };
        fixture.worker().run_until(cancel).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_and_then_gives_back() {
    let fixture = Fixture::new();
    let slow = fixture.jobs.enqueue(Sample("slow".into())).await.unwrap();
    let hang = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let stop = async {
        fixture.app.started.notified().await;
    };
    let worker = fixture.worker().shutdown_within(Duration::from_secs(10));
    worker.run_until(stop).await.unwrap();
    let state = |record: Option<crate::TaskRecord>| record.map(|r| (r.state, r.attempts, r.runs));
    let slow = state(slow.status().await.unwrap());
    assert_eq!(slow, Some((TaskState::Succeeded, 1, 1)));
    let hang = state(hang.status().await.unwrap());
    assert_eq!(hang, Some((TaskState::Queued, 0, 1)));
}

/// Ends with success so many seconds after it was asked to stop.
#[derive(Serialize, Deserialize)]
struct Stubborn(u64);

impl Task for Stubborn {
    const TYPE: &'static str = "stubborn";
    type Output = ();
    fn options() -> Options {
        Options::new().cancel_grace(Duration::from_secs(30))
    }
}

async fn stubborn(task: Stubborn, cx: Context<()>) -> Result<(), TaskError> {
    cx.cancelled().cancelled().await;
    tokio::time::sleep(Duration::from_secs(task.0)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_renews_and_reports_while_handlers_use_their_grace() {
    let jobs = Jobs::memory();
    let soon = jobs.enqueue(Stubborn(2)).await.unwrap();
    let late = jobs.enqueue(Stubborn(100)).await.unwrap();
    let worker = Worker::new(&jobs, ())
        .handle(stubborn)
        .shutdown_within(Duration::ZERO);
    let work = worker.run_until(tokio::time::sleep(Duration::from_secs(1)));
    let look = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        let soon = soon.status().await.unwrap().unwrap();
        assert_eq!(soon.state, TaskState::Succeeded);
        // Longer than the lease after the shutdown began.
        tokio::time::sleep(Duration::from_secs(15)).await;
        jobs.queue().reap().await.unwrap();
        let late = late.status().await.unwrap().unwrap();
        assert_eq!(late.state, TaskState::Running);
    };
    let (worked, ()) = tokio::join!(work, look);
    worked.unwrap();
    let late = late.status().await.unwrap().unwrap();
    let seen = (late.state, late.attempts, late.runs);
    assert_eq!(seen, (TaskState::Queued, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_claims_of_a_turn_that_is_executed_late_are_run() {
    let (fixture, _) = Fixture::on(Probe::new().executes_late(0, Late::AfterRunning));
    let run = tokio::time::timeout(Duration::from_secs(30), fixture.run("hello"));
    let (result, record) = run.await.expect("the task stays Running");
    assert_eq!(result.unwrap(), "HELLO");
    assert_eq!((record.attempts, record.runs), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_full_worker_gives_back_the_claims_of_a_turn_that_is_executed_late() {
    let (fixture, _) = Fixture::on(Probe::new().executes_late(0, Late::BeforeHeartbeat));
    let hang = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let waits = fixture.jobs.enqueue(Sample("hello".into())).await.unwrap();
    let stop = async {
        fixture.app.started.notified().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let hang = hang.status().await.unwrap().unwrap();
        assert_eq!(hang.state, TaskState::Running);
        let waits = waits.status().await.unwrap().unwrap();
        assert_eq!((waits.state, waits.runs), (TaskState::Queued, 1));
    };
    let worker = fixture.worker().concurrency(1);
    let worker = worker.shutdown_within(Duration::ZERO);
    worker.run_until(stop).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_a_failed_wait_took_is_carried_out() {
    let (fixture, _) = Fixture::on(Probe::new().loses_cancel());
    let handle = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    let cancel = async {
        fixture.app.started.notified().await;
        let cancel = fixture.jobs.queue().cancel(handle.id()).await;
        assert_eq!(cancel.unwrap(), Cancel::Requested);
        // Before the time limit of the task.
        let result = tokio::time::timeout(Duration::from_secs(30), handle.result());
        let result = result.await.expect("the cancel is lost");
        assert!(matches!(result, Err(ResultError::Cancelled(_))));
    };
    fixture.worker().run_until(cancel).await.unwrap();
}

/// A server that lost its last writes counts its claims again from an earlier number.
#[tokio::test(start_paused = true)]
async fn each_ask_has_a_nonce_of_its_own() {
    let (fixture, probe) = Fixture::on(Probe::new());
    for _ in 0..5 {
        fixture.run("fail twice").await.0.unwrap();
    }
    let turns = probe.turn_asks();
    let nonces: HashSet<u64> = turns.iter().map(|ask| ask.nonce).collect();
    assert!(turns.len() >= 10);
    assert_eq!(nonces.len(), turns.len());
}

#[tokio::test(start_paused = true)]
async fn each_ask_begins_with_another_type() {
    #[derive(Serialize, Deserialize)]
    struct Other;
    impl Task for Other {
        const TYPE: &'static str = "other";
        type Output = ();
    }
    let (fixture, probe) = Fixture::on(Probe::new());
    let stop = async {
        for _ in 0..5 {
            let handle = fixture.jobs.enqueue(Sample("hello".into())).await.unwrap();
            handle.result().await.unwrap();
        }
    };
    let other = |_: Other, _: Context<Arc<App>>| std::future::ready(Ok(()));
    let worker = fixture.worker().handle(other);
    worker.run_until(stop).await.unwrap();
    let turns = probe.turn_asks();
    assert!(turns.len() >= 5);
    for pair in turns.windows(2) {
        let (first, second) = (&pair[0], &pair[1]);
        assert_eq!(first.types.len(), 2);
        assert_ne!(first.types[0].task_type, second.types[0].task_type);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_worker_gives_back() {
    let fixture = Fixture::new();
    let hang = fixture.jobs.enqueue(Sample("hang".into())).await.unwrap();
    {
        let run = fixture.worker().run_until(std::future::pending::<()>());
        tokio::select! {
            _ = run => panic!("it ended"),
            () = fixture.app.started.notified() => {}
        }
    }
    let mut events = fixture.jobs.queue().subscribe().await.unwrap();
    if hang.status().await.unwrap().unwrap().state == TaskState::Running {
        events.recv().await.unwrap();
    }
    assert_eq!(
        hang.status().await.unwrap().unwrap().state,
        TaskState::Queued
    );
}

#[tokio::test(start_paused = true)]
async fn two_handlers_for_a_type_are_an_error() {
    let fixture = Fixture::new();
    let worker = fixture.worker().handle(sample);
    let error = worker.run_until(async {}).await.unwrap_err();
    assert!(matches!(error, WorkerError::DuplicateType(_)), "{error}");
    let worker = Worker::new(&fixture.jobs, ());
    let error = worker.run_until(async {}).await.unwrap_err();
    assert!(matches!(error, WorkerError::NoHandlers), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_too_many_handlers_does_not_start() {
    struct Named(String);
    impl TaskHandler<()> for Named {
        fn task_type(&self) -> &str {
            &self.0
        }

        fn execute(&self, _: bytes::Bytes, _: Context<()>) -> Execution {
            Box::pin(async { Ok(bytes::Bytes::new()) })
        }
    }
    let worker = |handlers: usize| {
        let first = Worker::new(&Jobs::memory(), ());
        (0..handlers).fold(first, |worker, n| worker.handler(Named(format!("t{n}"))))
    };
    worker(256).run_until(async {}).await.unwrap();
    let error = worker(257).run_until(async {}).await.unwrap_err();
    assert!(matches!(error, WorkerError::Config(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_pauses_after_failed_turns_grow() {
    let (fixture, probe) = Fixture::on(Probe::new().loses(|_| true));
    let stop = tokio::time::sleep(Duration::from_secs(60));
    fixture.worker().run_until(stop).await.unwrap();
    // They grow from 50 ms to 2 s.
    let turns = probe.turns();
    assert!((20..60).contains(&turns), "{turns} turns");
}

#[tokio::test]
async fn blocking_handlers_run_beside_the_async_ones() {
    #[derive(Serialize, Deserialize)]
    struct Resize(u32);
    impl Task for Resize {
        const TYPE: &'static str = "resize";
        type Output = bool;
    }
    let test_thread = std::thread::current().id();
    let resize = move |task: Resize, _: Context<()>| match task.0 {
        0 => panic!("no size"),
        _ => Ok(std::thread::current().id() != test_thread),
    };
    let jobs = Jobs::memory();
    let good = jobs.enqueue(Resize(1)).await.unwrap();
    let bad = jobs.enqueue(Resize(0)).max_attempts(1).await.unwrap();
    let done = async {
        assert!(good.result().await.unwrap());
        let error = bad.result().await.unwrap_err();
        assert!(error.to_string().ends_with("the handler panicked: no size"));
    };
    Worker::new(&jobs, ())
        .blocking(resize)
        .run_until(done)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_poke_ends_a_wait() {
    let jobs = Jobs::memory();
    let owner = Owner::random();
    jobs.queue().poke(&owner).await.unwrap();
    let signals = jobs
        .queue()
        .wait(&owner, Vec::new(), Duration::from_secs(5));
    assert_eq!(signals.await.unwrap(), [Signal::Poke]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deaf_handler_cannot_hold_up_a_shutdown() {
    #[derive(Serialize, Deserialize)]
    struct Deaf;
    impl Task for Deaf {
        const TYPE: &'static str = "deaf";
        type Output = ();
        fn options() -> Options {
            Options::new().cancel_grace(Duration::ZERO)
        }
    }
    let jobs = Jobs::memory();
    let handle = jobs.enqueue(Deaf).await.unwrap();
    let (started, release) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (began, ended) = (started.clone(), release.clone());
    // It blocks its thread without ever awaiting, until the test lets it go.
    let deaf = move |_: Deaf, _: Context<()>| {
        let (began, ended) = (began.clone(), ended.clone());
        async move {
            began.notify_one();
            while ended.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    };
    let worker = Worker::new(&jobs, ())
        .handle(deaf)
        .shutdown_within(Duration::ZERO);
    worker.run_until(started.notified()).await.unwrap();
    let record = handle.status().await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (TaskState::Queued, 0));
    release.store(1, Ordering::SeqCst);
}

/// In real time: virtual time stands still while a worker is busy.
#[tokio::test]
async fn a_worker_that_is_always_busy_hears_of_a_cancel_and_of_its_stop() {
    #[derive(Serialize, Deserialize)]
    struct Chain;
    impl Task for Chain {
        const TYPE: &'static str = "chain";
        type Output = ();
    }
    let fixture = Fixture::new();
    let jobs = fixture.jobs.clone();
    let chain = move |link: Chain, _: Context<Arc<App>>| {
        let jobs = jobs.clone();
        async move {
            jobs.enqueue(link).await?;
            Ok(())
        }
    };
    let waits = fixture.jobs.enqueue(Sample("obey".into())).await.unwrap();
    fixture.jobs.enqueue_all([Chain, Chain]).await.unwrap();
    let queue = fixture.jobs.queue().clone();
    let stop = async {
        fixture.app.started.notified().await;
        assert_eq!(queue.cancel(waits.id()).await.unwrap(), Cancel::Requested);
        let result = waits.result().await;
        assert!(matches!(result, Err(ResultError::Cancelled(_))));
    };
    let work = fixture.worker().handle(chain).run_until(stop);
    let ended = tokio::time::timeout(Duration::from_secs(60), work).await;
    ended.expect("busy, and deaf").unwrap();
}

/// Other workers get a part of what a worker runs: a reap gives back so many tasks at once, and the worker renews its lease
/// in between.
#[tokio::test(start_paused = true)]
async fn a_worker_notices_that_a_part_of_its_tasks_was_given_to_others() {
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let settings = crate::Settings::default();
    let queue = crate::InMemoryQueue::with_virtual_clock(settings, clock.clone());
    let jobs = Jobs::with_queue(Arc::new(queue.clone()));
    let (app, owner) = (Arc::<App>::default(), Owner::random());
    let count = crate::TURN_LIMIT + 10;
    jobs.enqueue_all((0..count).map(|_| Sample("obey".into())))
        .await
        .unwrap();
    let stop = async {
        while app.runs.load(Ordering::SeqCst) < count {
            app.started.notified().await;
        }
        // The worker is not run between these calls, so it renews nothing.
        for _ in 0..6 {
            clock.fetch_add(3_000, Ordering::SeqCst);
            queue
                .heartbeat(&Owner::random(), crate::LEASE)
                .await
                .unwrap();
        }
        assert_eq!(queue.reap().await.unwrap(), crate::TURN_LIMIT);
        let renewed = queue.heartbeat(&owner, crate::LEASE).await.unwrap();
        assert_eq!(renewed, crate::Lease::Renewed(10));
        // Those handlers end, and no others.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let counts = queue.counts_by_state().await.unwrap();
        assert_eq!(counts.of(TaskState::Running), 10);
        assert_eq!(
            counts.of(TaskState::RetryScheduled),
            crate::TURN_LIMIT as u64
        );
        assert_eq!(app.ended.load(Ordering::SeqCst), crate::TURN_LIMIT);
    };
    let worker = Worker::new(&jobs, app.clone()).handle(sample);
    let worker = worker.owner(owner.clone()).concurrency(100);
    worker.run_until(stop).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_back_off_of_a_task_comes_before_that_of_its_type() {
    let fixture = Fixture::new();
    let backoff = crate::Backoff {
        first: Duration::from_secs(1_000),
        cap: Duration::from_secs(10_000),
        factor: 1,
    };
    let handle = fixture.jobs.enqueue(Sample("fail".into())).backoff(backoff);
    let handle = handle.await.unwrap();
    let begun = tokio::time::Instant::now();
    let work = async { drop(handle.result().await) };
    fixture.worker().run_until(work).await.unwrap();
    // Four delays of 500 to 1,000 s each.
    let took = begun.elapsed().as_secs();
    assert!((2_000..=4_010).contains(&took), "{took}");
}
