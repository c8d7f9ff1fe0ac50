//! Single situations of the worker's core. `simulation.rs` has whole histories.

use super::super::claim::{Claim, Finish, Finished, Lease, Outcome, Turn};
use super::super::id::{TaskId, Timestamp, Token};
use super::super::owner::Owner;
use super::super::record::{TaskEnvelope, TaskState};
use super::{
    Action, Call, CallError, LifeId, Lives, Moment, Reply, Rules, Step, Stop, Verdict, WorkerCore,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Moment {
    Moment::after_start(Duration::from_secs(seconds))
}

fn owner() -> Owner {
    "w~0000000000000001".parse().expect("an owner")
}

/// A worker with two slots, of which tasks of type `b` take one at most. It shuts down within 10 s, and its handlers have a
/// grace of 5 s.
fn worker() -> WorkerCore {
    WorkerCore::new(rules(), 0)
}

fn rules() -> Rules {
    Rules {
        owner: owner(),
        concurrency: 2,
        limits: HashMap::from([(Arc::from("b"), 1)]),
        types: vec!["a".into(), "b".into()],
        lease: 15 * SECOND,
        shutdown: 10 * SECOND,
        grace: 5 * SECOND,
    }
}

fn claim(number: u64, task_type: &str) -> Claim {
    Claim {
        id: TaskId::from_parts(Timestamp::from_ms(number), 0),
        token: Token {
            count: number,
            nonce: 7,
        },
        owner: owner(),
        envelope: TaskEnvelope::json(task_type, "1"),
        attempt: 1,
        runs: 1,
        max_attempts: 5,
        created_at: Timestamp::from_ms(number),
        trace: None,
        backoff: None,
        cancel_requested: false,
    }
}

/// What the core does until it sleeps or ends: the calls it sends, the claims it starts (whose handlers go on), and the
/// handlers it stops.
#[derive(Debug, Default, PartialEq, Eq)]
struct Acts {
    calls: Vec<Call>,
    started: Vec<TaskId>,
    stopped: Vec<Stop>,
    has_ended: bool,
}

fn act(core: &mut WorkerCore, now: Moment) -> Acts {
    let mut acts = Acts::default();
    for _ in 0..100 {
        match core.poll(now, &mut || 1) {
            Action::Start(claim) => {
                core.goes_on(claim.envelope.task_type.clone());
                acts.started.push(claim.id);
            }
            Action::Stop(_, _, reason) => acts.stopped.push(reason),
            Action::Send(call) => acts.calls.push(call),
            Action::Wait(..) | Action::Poke => {}
            Action::Sleep(_) => return acts,
            Action::End => {
                acts.has_ended = true;
                return acts;
            }
        }
    }
    panic!("the core is never done");
}

fn turn(claims: Vec<Claim>, finished: Vec<Finished>, held: usize) -> Reply {
    Reply::Turn(Ok(Turn {
        now: Timestamp::from_ms(1),
        next_due: None,
        more: false,
        paused: false,
        finished,
        claims,
        held,
    }))
}

/// A worker that runs these claims at second 0.
fn running(claims: &[Claim]) -> WorkerCore {
    let mut core = worker();
    assert_eq!(act(&mut core, at(0)).calls.len(), 1, "it asks for tasks");
    core.handle_reply(at(0), turn(claims.to_vec(), Vec::new(), claims.len()));
    assert_eq!(act(&mut core, at(0)).started.len(), claims.len());
    core
}

fn outcomes(reports: &[Finish]) -> Vec<(TaskId, &Outcome)> {
    let mut outcomes: Vec<_> = reports.iter().map(|it| (it.id, &it.outcome)).collect();
    outcomes.sort_by_key(|(id, _)| *id);
    outcomes
}

#[test]
fn a_worker_whose_grace_is_over_ends_with_a_call_in_flight_and_gives_back_what_runs() {
    let claims = [claim(1, "a"), claim(2, "a")];
    let mut core = running(&claims);
    core.handle_stop(at(1));
    core.handle_timeout(at(11));
    let stopped = act(&mut core, at(11));
    assert_eq!(stopped.stopped, [Stop::Shutdown, Stop::Shutdown]);
    assert_eq!(stopped.calls, [Call::Heartbeat], "it renews on");
    core.handle_reply(at(11), Reply::Heartbeat(Ok(Lease::Renewed(2))));
    core.handle_ended(Finish::new(&claims[0], Outcome::Succeeded(None)));
    let sent = act(&mut core, at(12)).calls;
    assert!(
        matches!(&sent[..], [Call::Turn(reports, ask)] if reports.len() == 1 && ask.max == 0),
        "{sent:?}"
    );
    core.handle_timeout(at(16));
    let end = act(&mut core, at(16));
    assert!(end.has_ended && end.calls.is_empty(), "{end:?}");
    // The report in flight is not confirmed, so it is among the last ones; what still runs is given back.
    let last = core.give_back_all();
    let expected = [
        (claims[0].id, &Outcome::Succeeded(None)),
        (claims[1].id, &Outcome::GivenBack),
    ];
    assert_eq!(outcomes(&last), expected);
    assert_eq!(core.last_ask(1).max, 0);
    assert!(core.give_back_all().is_empty(), "it holds nothing more");
    assert!(act(&mut core, at(17)).has_ended);
}

#[test]
fn a_worker_that_was_released_reports_nothing_more() {
    let claims = [claim(1, "a"), claim(2, "a")];
    let mut core = running(&claims);
    core.handle_ended(Finish::new(&claims[0], Outcome::Succeeded(None)));
    assert_eq!(act(&mut core, at(1)).calls.len(), 1);
    let verdict = core.handle_reply(at(1), Reply::Turn(Err(CallError::Released)));
    assert_eq!(verdict, Verdict::Over);
    // A handler that ends now belongs to another worker's run.
    core.handle_ended(Finish::new(&claims[1], Outcome::Succeeded(None)));
    let end = act(&mut core, at(1));
    assert!(end.has_ended && end.calls.is_empty() && end.stopped.is_empty());
}

#[test]
fn a_worker_of_a_queue_of_another_format_reports_and_ends_at_the_second_refusal() {
    let mut core = running(&[claim(1, "a")]);
    act(&mut core, at(2));
    let ending = core.handle_reply(at(2), Reply::Heartbeat(Err(CallError::Format)));
    assert_eq!(ending, Verdict::Ending);
    assert!(core.is_ending());
    core.handle_ended(Finish::new(&claim(1, "a"), Outcome::Succeeded(None)));
    let sent = act(&mut core, at(2)).calls;
    assert!(
        matches!(&sent[..], [Call::Turn(reports, ask)] if reports.len() == 1 && ask.max == 0),
        "{sent:?}"
    );
    let over = core.handle_reply(at(2), Reply::Turn(Err(CallError::Format)));
    assert_eq!(over, Verdict::Over);
    assert!(core.give_back_all().is_empty());
}

#[test]
fn a_worker_that_drained_ends_before_its_time_is_up() {
    let claims = [claim(1, "a")];
    let mut core = running(&claims);
    core.handle_stop(at(1));
    let draining = act(&mut core, at(1));
    assert!(!draining.has_ended, "a handler runs");
    assert_eq!(draining.calls, [Call::Heartbeat], "it renews on");
    core.handle_reply(at(1), Reply::Heartbeat(Ok(Lease::Renewed(1))));
    core.handle_ended(Finish::new(&claims[0], Outcome::Succeeded(None)));
    assert_eq!(act(&mut core, at(2)).calls.len(), 1, "its report");
    let finished = vec![Finished::Applied(TaskState::Succeeded)];
    core.handle_reply(at(2), turn(Vec::new(), finished, 0));
    assert!(act(&mut core, at(2)).has_ended);
    assert!(core.give_back_all().is_empty());
}

#[test]
fn a_claim_whose_reply_was_lost_does_not_exceed_the_limit_of_its_type() {
    // The first turn is executed, and its reply is lost; a later one brings another task of the type.
    let mut core = worker();
    act(&mut core, at(0));
    core.handle_reply(at(0), Reply::Turn(Err(CallError::Other)));
    let recover = act(&mut core, at(1)).calls;
    assert!(matches!(&recover[..], [Call::Recover]), "{recover:?}");
    let (first, second) = (claim(1, "b"), claim(2, "b"));
    core.handle_reply(
        at(1),
        Reply::Recover(Ok(vec![first.clone(), second.clone()])),
    );
    assert_eq!(act(&mut core, at(1)).started, [first.id]);
    // The other one is given back once it has waited for long enough.
    let later = Moment::after_start(SECOND + super::SLOT_TIMEOUT);
    core.handle_reply(at(1), turn(Vec::new(), Vec::new(), 2));
    core.handle_timeout(later);
    let sent = act(&mut core, later).calls;
    let [Call::Turn(reports, _)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(outcomes(reports), [(second.id, &Outcome::GivenBack)]);
}

/// What all lives do until they sleep: the calls, and the lives that end. Handlers go on.
fn act_all(lives: &mut Lives, now: Moment) -> (Vec<(LifeId, Call)>, Vec<LifeId>) {
    let (mut calls, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let Step { life, action } = lives.poll(now, &mut || 1);
        let Some(life) = life else {
            return (calls, ended);
        };
        match action {
            Action::Start(claim) => lives.goes_on(claim.envelope.task_type),
            Action::Send(call) => calls.push((life, call)),
            Action::Wait(..) => {
                // It ends at once, with nothing.
                lives.handle_wait(life, now, Ok(&[]));
                return (calls, ended);
            }
            Action::End => ended.push(life),
            _ => {}
        }
    }
    panic!("the core is never done");
}

fn asked_for(calls: &[(LifeId, Call)]) -> Vec<(LifeId, Option<usize>)> {
    let max = |call: &Call| match call {
        Call::Turn(_, ask) => Some(ask.max),
        _ => None,
    };
    calls
        .iter()
        .map(|(life, call)| (*life, max(call)))
        .collect()
}

#[test]
fn a_new_life_has_the_slots_that_the_old_one_leaves() {
    let mut lives = Lives::new(rules(), 0);
    let (calls, _) = act_all(&mut lives, at(0));
    let (first, _) = calls[0];
    let held = claim(1, "b");
    lives.handle_reply(first, at(0), turn(vec![held.clone()], Vec::new(), 1));
    act_all(&mut lives, at(0));
    let second: Owner = "w~0000000000000002".parse().expect("an owner");
    lives.renew_life(second.clone());
    // The old life passes on what wakes others, and asks for nothing; the new one asks for the slot that is free, and for
    // no task of the type that is at its limit.
    let (calls, _) = act_all(&mut lives, at(0));
    let newest = calls[1].0;
    assert_eq!(asked_for(&calls), [(first, Some(0)), (newest, Some(1))]);
    let Call::Turn(_, ask) = &calls[1].1 else {
        panic!("{calls:?}");
    };
    assert_eq!(ask.owner, second);
    let room = |name: &str| ask.types.iter().find(|it| &*it.task_type == name);
    assert_eq!(room("b").map(|it| it.room), Some(0));
    assert_eq!(room("a").map(|it| it.room), Some(1));
    lives.handle_reply(first, at(0), turn(Vec::new(), Vec::new(), 1));
    lives.handle_reply(newest, at(0), turn(Vec::new(), Vec::new(), 0));
    act_all(&mut lives, at(0));
    // The handler of the old life ends, is reported under its owner, and that life is over.
    lives.handle_ended(Finish::new(&held, Outcome::Succeeded(None)));
    let (calls, _) = act_all(&mut lives, at(1));
    assert_eq!(asked_for(&calls), [(first, Some(0)), (newest, Some(2))]);
    let Call::Turn(reports, ask) = &calls[0].1 else {
        panic!("{calls:?}");
    };
    assert_eq!((reports.len(), &ask.owner), (1, &owner()));
    let finished = vec![Finished::Applied(TaskState::Succeeded)];
    lives.handle_reply(first, at(1), turn(Vec::new(), finished, 0));
    let (_, ended) = act_all(&mut lives, at(1));
    assert_eq!(ended, [first]);
    assert!(!lives.is_ending(), "the worker goes on");
}
