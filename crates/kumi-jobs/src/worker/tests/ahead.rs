//! Claims beyond the free slots, on a memory queue that records its turns, in virtual time.

use crate::core::TURN_LIMIT;
use crate::core::worker::{BATCH, Pace, SLOT_TIMEOUT};
use crate::queue::{Ask, Notice, Room};
use crate::worker::probe::{Event, Probe};
use crate::{
    Cancel, Context, Handle, Jobs, Owner, ResultError, Task, TaskError, TaskState, Worker,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

const CONCURRENCY: usize = 10;

/// Ends at once, or after a second.
#[derive(Serialize, Deserialize)]
struct Work {
    number: usize,
    is_slow: bool,
}

impl Task for Work {
    const TYPE: &'static str = "work";
    type Output = ();
}

/// Ends at once; the tests bound how many of these run.
#[derive(Serialize, Deserialize)]
struct Bounded(usize);

impl Task for Bounded {
    const TYPE: &'static str = "bounded";
    type Output = ();
}

struct App {
    probe: Arc<Probe>,
    /// How often each number ran.
    runs: Mutex<HashMap<usize, usize>>,
    /// Handlers that run, now and at most.
    now: AtomicUsize,
    most: AtomicUsize,
    slow_began: Notify,
}

async fn work(task: Work, cx: Context<Arc<App>>) -> Result<(), TaskError> {
    let app = cx.state().clone();
    app.ran(task.number);
    let now = app.now.fetch_add(1, Ordering::SeqCst) + 1;
    app.most.fetch_max(now, Ordering::SeqCst);
    if task.is_slow {
        app.slow_began.notify_one();
        sleep(Duration::from_secs(1)).await;
    }
    app.now.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

async fn bounded(task: Bounded, cx: Context<Arc<App>>) -> Result<(), TaskError> {
    cx.state().ran(task.0);
    Ok(())
}

impl App {
    fn ran(&self, number: usize) {
        *self.runs.lock().unwrap().entry(number).or_default() += 1;
        self.probe.note(Event::Ran);
    }

    /// Asserts that each of these tasks ran once.
    fn check_runs(&self, count: usize) {
        let runs = self.runs.lock().unwrap();
        assert_eq!(runs.len(), count);
        assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    }
}

struct Fixture {
    jobs: Jobs,
    app: Arc<App>,
}

impl Fixture {
    fn new(probe: Probe) -> Self {
        let probe = Arc::new(probe);
        Self {
            jobs: Jobs::with_queue(probe.clone()),
            app: Arc::new(App {
                probe,
                runs: Mutex::default(),
                now: AtomicUsize::new(0),
                most: AtomicUsize::new(0),
                slow_began: Notify::new(),
            }),
        }
    }

    fn worker(&self) -> Worker<Arc<App>> {
        Worker::new(&self.jobs, self.app.clone())
            .handle(work)
            .concurrency(CONCURRENCY)
    }

    /// Enqueues quick tasks, and slow ones behind them.
    async fn enqueue(&self, quick: usize, slow: usize) -> Vec<Handle<()>> {
        let tasks = (0..quick + slow).map(|number| Work {
            number,
            is_slow: number >= quick,
        });
        self.jobs.enqueue_all(tasks).await.unwrap()
    }

    async fn count(&self, state: TaskState) -> u64 {
        let counts = self.jobs.queue().counts_by_state().await.unwrap();
        counts.of(state)
    }
}

async fn all_succeed(handles: &[Handle<()>]) {
    for handle in handles {
        handle.result().await.unwrap();
    }
}

#[test]
fn a_pace_grows_with_quick_turns_and_ends_with_a_slow_one() {
    let mut pace = Pace::default();
    let mut turn = |free: usize, claims: usize, quick: bool| {
        let asked = pace.ask(free);
        pace.replied(claims.min(asked), false);
        let is_ahead = pace.is_ahead();
        pace.ran(quick);
        (asked, is_ahead)
    };
    let turns: Vec<(usize, bool)> = (0..7).map(|_| turn(10, 1_000, true)).collect();
    let expected = [10, 10, 20, 40, BATCH, BATCH, BATCH].map(|asked| (asked, asked > 10));
    assert_eq!(turns, expected);
    // A handler that waits, and a queue that runs empty, end it.
    assert_eq!(turn(10, 1_000, false), (BATCH, true));
    assert_eq!(turn(10, 1_000, true), (10, false));
    assert_eq!(turn(10, 1_000, true), (10, false));
    assert_eq!(turn(10, 19, true), (20, false));
    assert_eq!(turn(10, 1_000, true), (10, false));
    // More free slots than a turn may ask for.
    let turns = [1, 2, 3].map(|_| turn(500, 1_000, true));
    let limit = TURN_LIMIT;
    assert_eq!(turns, [(limit, false), (limit, true), (limit, true)]);
}

#[tokio::test(start_paused = true)]
async fn quick_tasks_are_claimed_ahead_and_run_beside_the_next_turn() {
    let fixture = Fixture::new(Probe::new().each_takes(Duration::from_millis(1)));
    let handles = fixture.enqueue(2_000, 0).await;
    let done = all_succeed(&handles);
    fixture.worker().run_until(done).await.unwrap();
    fixture.app.check_runs(2_000);
    let probe = &fixture.app.probe;
    assert_eq!(probe.largest_ask(), BATCH);
    assert!(probe.most_held() <= 2 * BATCH, "{}", probe.most_held());
    // Ten at a time would be 200 turns.
    let (turns, least) = (probe.turns(), 2_000 / BATCH);
    assert!(turns <= least + 8, "{turns} turns");
    let beside = probe.ran_in_flight();
    assert!(beside > 1_500, "{beside} ran while a turn was in flight");
}

#[test]
fn a_reply_is_full_if_it_holds_all_that_was_asked_for() {
    let mut pace = Pace::default();
    assert_eq!(pace.ask(2 * TURN_LIMIT), TURN_LIMIT);
    assert!(pace.replied(TURN_LIMIT, false));
    assert!(!pace.replied(TURN_LIMIT - 1, false));
    assert!(!pace.replied(0, true));
    pace.report_only();
    assert!(!pace.replied(0, true));
}

#[tokio::test(start_paused = true)]
async fn more_slots_than_one_turn_fills_are_filled_without_a_wait() {
    let fixture = Fixture::new(Probe::new());
    let slots = 2 * TURN_LIMIT;
    let handles = fixture.enqueue(0, slots).await;
    let done = all_succeed(&handles);
    let worker = fixture.worker().concurrency(slots);
    worker.run_until(done).await.unwrap();
    fixture.app.check_runs(slots);
    assert_eq!(fixture.app.most.load(Ordering::SeqCst), slots);
    assert!(!fixture.app.probe.waited_before(1));
}

#[tokio::test(start_paused = true)]
async fn slow_tasks_are_not_claimed_ahead() {
    let fixture = Fixture::new(Probe::new());
    let handles = fixture.enqueue(0, 60).await;
    let done = all_succeed(&handles);
    fixture.worker().run_until(done).await.unwrap();
    fixture.app.check_runs(60);
    let probe = &fixture.app.probe;
    assert_eq!(probe.largest_ask(), CONCURRENCY);
    assert_eq!(probe.most_held(), CONCURRENCY);
    assert_eq!(fixture.app.most.load(Ordering::SeqCst), CONCURRENCY);
}

#[tokio::test(start_paused = true)]
async fn claims_without_a_slot_are_given_back_with_their_attempts() {
    let fixture = Fixture::new(Probe::new());
    let handles = fixture.enqueue(500, 100).await;
    let done = async {
        fixture.app.slow_began.notified().await;
        sleep(SLOT_TIMEOUT / 2).await;
        let held = fixture.count(TaskState::Running).await;
        assert!(held > CONCURRENCY as u64, "{held} held");
        sleep(SLOT_TIMEOUT).await;
        let held = fixture.count(TaskState::Running).await;
        assert_eq!(held, CONCURRENCY as u64);
        all_succeed(&handles).await;
    };
    fixture.worker().run_until(done).await.unwrap();
    fixture.app.check_runs(600);
    assert_eq!(fixture.app.most.load(Ordering::SeqCst), CONCURRENCY);
    let mut given_back = 0;
    for handle in &handles {
        let record = handle.status().await.unwrap().unwrap();
        assert_eq!((record.attempts, record.runs), (1, 1 + record.given_back));
        given_back += usize::from(record.given_back > 0);
    }
    assert!(given_back > CONCURRENCY, "{given_back} given back");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_back_what_waits() {
    let fixture = Fixture::new(Probe::new().each_takes(Duration::from_millis(1)));
    let handles = fixture.enqueue(500, 100).await;
    let stop = fixture.app.slow_began.notified();
    fixture.worker().run_until(stop).await.unwrap();
    let slow = fixture.app.runs.lock().unwrap().len() - 500;
    assert!((1..=CONCURRENCY).contains(&slow), "{slow} slow tasks ran");
    let mut claimed_only = 0;
    for (number, handle) in handles.iter().enumerate() {
        let record = handle.status().await.unwrap().unwrap();
        let expected = match number < 500 + slow {
            true => (TaskState::Succeeded, 1),
            false => (TaskState::Queued, 0),
        };
        assert_eq!((record.state, record.attempts), expected, "{number}");
        claimed_only += usize::from(number >= 500 + slow && record.runs > 0);
    }
    assert!(claimed_only > 0, "none was claimed ahead");
    // Each stands again where it stood, whichever turn had brought it.
    let types = vec![Room {
        task_type: Work::TYPE.into(),
        room: TURN_LIMIT,
    }];
    let ask = Ask {
        owner: Owner::random(),
        nonce: 1,
        lease: Duration::from_secs(15),
        types,
        max: TURN_LIMIT,
    };
    let mut order = Vec::new();
    loop {
        let claims = fixture.jobs.queue().dequeue_ready(ask.clone());
        let claims = claims.await.unwrap();
        if claims.is_empty() {
            break;
        }
        order.extend(claims.iter().map(|claim| claim.id));
    }
    let expected: Vec<_> = handles[500 + slow..].iter().map(Handle::id).collect();
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_worker_gives_back_what_waits_and_what_is_in_flight() {
    for millis in [0, 1] {
        let fixture = Fixture::new(Probe::new().each_takes(Duration::from_millis(1)));
        fixture.enqueue(500, 100).await;
        let mut events = fixture.jobs.queue().subscribe().await.unwrap();
        {
            let run = fixture.worker().run_until(std::future::pending::<()>());
            let stop = async {
                fixture.app.slow_began.notified().await;
                sleep(Duration::from_millis(millis)).await;
            };
            tokio::select! {
                _ = run => panic!("it ended"),
                () = stop => {}
            }
        }
        assert!(fixture.count(TaskState::Running).await > CONCURRENCY as u64);
        let given_back = async {
            while fixture.count(TaskState::Running).await > 0 {
                events.recv().await.unwrap();
            }
        };
        // Less than the lease, which would give them back too.
        let given_back = tokio::time::timeout(Duration::from_secs(5), given_back).await;
        assert!(given_back.is_ok(), "some are still running");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_replies_start_each_claim_once() {
    let probe = Probe::new().each_takes(Duration::from_millis(1));
    let fixture = Fixture::new(probe.loses(|turn| turn % 4 == 3));
    let handles = fixture.enqueue(1_500, 50).await;
    let done = all_succeed(&handles);
    fixture.worker().run_until(done).await.unwrap();
    fixture.app.check_runs(1_550);
    assert_eq!(fixture.app.most.load(Ordering::SeqCst), CONCURRENCY);
    let held = fixture.app.probe.most_held();
    assert!(held > CONCURRENCY, "{held} held at most");
    for handle in &handles {
        let record = handle.status().await.unwrap().unwrap();
        assert_eq!((record.state, record.attempts), (TaskState::Succeeded, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_with_a_limit_is_not_claimed_ahead() {
    let fixture = Fixture::new(Probe::new().each_takes(Duration::from_millis(1)));
    let mut handles = fixture.enqueue(1_000, 0).await;
    let tasks = (1_000..1_100).map(Bounded);
    handles.extend(fixture.jobs.enqueue_all(tasks).await.unwrap());
    let done = all_succeed(&handles);
    let worker = fixture.worker().handle(bounded).limit::<Bounded>(3);
    worker.run_until(done).await.unwrap();
    fixture.app.check_runs(1_100);
    let probe = &fixture.app.probe;
    assert_eq!(probe.most_held_of("bounded"), 3);
    assert!(probe.most_held_of("work") > CONCURRENCY);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_can_be_cancelled() {
    let fixture = Fixture::new(Probe::new());
    let handles = fixture.enqueue(500, 100).await;
    let last_slow = &handles[500 + CONCURRENCY..];
    let cancel = async {
        fixture.app.slow_began.notified().await;
        sleep(SLOT_TIMEOUT / 2).await;
        for (index, handle) in last_slow.iter().enumerate() {
            let record = handle.status().await.unwrap().unwrap();
            if record.state == TaskState::Running {
                let answer = fixture.jobs.queue().cancel(handle.id()).await;
                assert_eq!(answer.unwrap(), Cancel::Requested);
                let result = handle.result().await;
                assert!(matches!(result, Err(ResultError::Cancelled(_))));
                return 500 + CONCURRENCY + index;
            }
        }
        panic!("none was claimed ahead");
    };
    let mut cancelled = 0;
    let stop = async { cancelled = cancel.await };
    fixture.worker().run_until(stop).await.unwrap();
    assert!(!fixture.app.runs.lock().unwrap().contains_key(&cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_slow_queue_gets_reports_and_renewals_between_looks_for_signals() {
    #[derive(Serialize, Deserialize)]
    struct Long;
    impl Task for Long {
        const TYPE: &'static str = "long";
        type Output = ();
    }
    async fn long(_: Long, _: Context<Arc<App>>) -> Result<(), TaskError> {
        sleep(Duration::from_secs(40)).await;
        Ok(())
    }
    // Longer than a busy worker goes without looking.
    let fixture = Fixture::new(Probe::new().each_takes(Duration::from_millis(1_500)));
    let handle = fixture.jobs.enqueue(Long).await.unwrap();
    let done = async { handle.result().await.unwrap() };
    let work = fixture.worker().handle(long).run_until(done);
    let ended = tokio::time::timeout(Duration::from_secs(300), work).await;
    ended.expect("it is reported").unwrap();
    let record = handle.status().await.unwrap().unwrap();
    assert_eq!((record.state, record.runs), (TaskState::Succeeded, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_before_its_claim_is_kept() {
    let fixture = Fixture::new(Probe::new().each_takes(Duration::from_secs(1)));
    let handles = fixture.enqueue(0, CONCURRENCY + 1).await;
    let last = &handles[CONCURRENCY];
    let queue = fixture.jobs.queue().clone();
    let mut events = queue.subscribe().await.unwrap();
    let done = async {
        // The turn that claims it is in flight for a second more; the worker waits for signals meanwhile.
        loop {
            let notice = events.recv().await.unwrap();
            if let Notice::Moved(event) = notice
                && event.id == last.id()
                && event.to == TaskState::Running
            {
                break;
            }
        }
        let cancelled = queue.cancel(last.id()).await.unwrap();
        assert_eq!(cancelled, Cancel::Requested);
        let result = last.result().await;
        assert!(matches!(result, Err(ResultError::Cancelled(_))));
    };
    fixture.worker().run_until(done).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_in_time_cancels_what_runs() {
    #[derive(Serialize, Deserialize)]
    struct Obedient;
    impl Task for Obedient {
        const TYPE: &'static str = "obedient";
        type Output = ();
    }
    let second = Duration::from_secs(1);
    let two_turns = || Probe::new().renews(2);
    let lost = two_turns().loses(|number| number == 1);
    let rounds = [
        (two_turns(), second, Duration::ZERO),
        // The process stands still for longer than the lease.
        (two_turns(), second, 20 * second),
        // What the lost reply of the second turn brought is found when the lease of the first one is over.
        (lost.running_takes(12 * second), 4 * second, Duration::ZERO),
    ];
    for (probe, idle, pause) in rounds {
        let fixture = Fixture::new(probe);
        let signs = Arc::new((Notify::new(), Notify::new()));
        let handler_signs = signs.clone();
        let obedient = move |_: Obedient, cx: Context<Arc<App>>| {
            let signs = handler_signs.clone();
            async move {
                signs.0.notify_one();
                cx.cancelled().cancelled().await;
                signs.1.notify_one();
                Err::<(), _>(TaskError::retry("stopped"))
            }
        };
        let stop = async {
            sleep(idle).await;
            fixture.jobs.enqueue(Obedient).await.unwrap();
            signs.0.notified().await;
            tokio::time::advance(pause).await;
            let cancelled = tokio::time::timeout(Duration::from_secs(60), signs.1.notified());
            cancelled.await.expect("the handler is cancelled");
        };
        let worker = fixture.worker().handle(obedient);
        let worker = worker.shutdown_within(Duration::ZERO);
        worker.run_until(stop).await.unwrap();
    }
}
