//! Single situations of the worker's core. `simulation.rs` has whole histories.

use super::super::claim::{Claim, Finish, Finished, Lease, Outcome, Signal, Turn};
use super::super::id::{TaskId, Timestamp, Token};
use super::super::owner::Owner;
use super::super::record::{TaskEnvelope, TaskState};
use super::lives::LIVES_LIMIT;
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

fn another_owner(life: usize) -> Owner {
    format!("w~{life:016x}").parse().expect("an owner")
}

/// A worker whose first life runs a claim and whose second one has an ask in flight.
fn two_lives() -> (Lives, [LifeId; 2], Claim) {
    let mut lives = Lives::new(rules(), 0);
    let (calls, _) = act_all(&mut lives, at(0));
    let (first, _) = calls[0];
    let held = claim(1, "a");
    lives.handle_reply(first, at(0), turn(vec![held.clone()], Vec::new(), 1));
    act_all(&mut lives, at(0));
    lives.renew_life(another_owner(2));
    let (calls, _) = act_all(&mut lives, at(0));
    let second = calls[1].0;
    lives.handle_reply(first, at(0), turn(Vec::new(), Vec::new(), 1));
    (lives, [first, second], held)
}

#[test]
fn a_claim_that_comes_to_a_life_after_its_end_is_given_back() {
    let (mut lives, [first, second], held) = two_lives();
    lives.handle_stop(at(1));
    act_all(&mut lives, at(1));
    lives.handle_timeout(at(11));
    let (_, ended) = act_all(&mut lives, at(11));
    assert_eq!(ended, [second], "it holds nothing, and the other one does");
    let mut late = claim(2, "a");
    late.owner = another_owner(2);
    let verdict = lives.handle_reply(second, at(12), turn(vec![late.clone()], Vec::new(), 1));
    assert_eq!(verdict, Verdict::GoOn);
    lives.handle_timeout(at(16));
    let (_, ended) = act_all(&mut lives, at(16));
    assert_eq!(ended, [first]);
    // The newest life first, so that what the earlier one held comes to stand before.
    let last = lives.take_last();
    let [of_second, of_first] = &last[..] else {
        panic!("{last:?}");
    };
    assert_eq!((of_second.life, of_first.life), (second, first));
    let given_back = &Outcome::GivenBack;
    assert_eq!(outcomes(&of_second.reports), [(late.id, given_back)]);
    assert_eq!(outcomes(&of_first.reports), [(held.id, given_back)]);
}

#[test]
fn a_life_that_was_released_has_no_last_reports() {
    let (mut lives, [first, second], _) = two_lives();
    lives.handle_stop(at(1));
    act_all(&mut lives, at(1));
    let verdict = lives.handle_reply(second, at(1), Reply::Turn(Err(CallError::Released)));
    assert_eq!(verdict, Verdict::Over);
    let (_, ended) = act_all(&mut lives, at(1));
    assert_eq!(ended, [second]);
    let last = lives.give_back_all(&mut || 1);
    let of: Vec<LifeId> = last.iter().map(|last| last.life).collect();
    assert_eq!(of, [first]);
}

#[test]
fn a_worker_does_not_begin_a_life_that_it_has() {
    let (mut lives, [_, second], _) = two_lives();
    lives.renew_life(owner());
    lives.handle_reply(second, at(1), turn(Vec::new(), Vec::new(), 0));
    let (calls, _) = act_all(&mut lives, at(1));
    let owners: Vec<&Owner> = calls.iter().map(|(life, _)| lives.owner(*life)).collect();
    assert!(!owners.is_empty());
    assert!(calls.iter().all(|(life, _)| *life <= second), "{calls:?}");
    assert_eq!(lives.released(), None);
}

#[test]
fn a_worker_has_so_many_lives_at_most_and_begins_another_when_one_has_ended() {
    let mut lives = Lives::new(rules(), 0);
    let (mut begun, mut newest) = (Vec::new(), owner());
    for life in 2..LIVES_LIMIT + 10 {
        // No life gets a reply, so that none ends.
        let (calls, ended) = act_all(&mut lives, at(0));
        assert_eq!(ended, []);
        begun.extend(calls.into_iter().map(|(life, _)| life));
        newest = another_owner(life);
        lives.renew_life(newest.clone());
    }
    begun.sort_unstable();
    begun.dedup();
    assert_eq!(begun.len(), LIVES_LIMIT);
    assert_eq!(lives.released(), None, "one is to begin");
    let first = begun[0];
    lives.handle_reply(first, at(1), turn(Vec::new(), Vec::new(), 0));
    for now in 1..4 {
        let (calls, ended) = act_all(&mut lives, at(now));
        if ended == [first] {
            let asks = calls.iter().map(|(life, _)| lives.owner(*life));
            assert!(asks.clone().any(|owner| *owner == newest), "{calls:?}");
            return;
        }
        lives.handle_reply(first, at(now), turn(Vec::new(), Vec::new(), 0));
    }
    panic!("the first life does not end");
}

#[test]
fn a_drained_worker_does_not_send_a_turn_after_each_wait() {
    let mut core = worker();
    assert_eq!(act(&mut core, at(0)).calls.len(), 1);
    core.handle_reply(at(0), turn(Vec::new(), Vec::new(), 0));
    assert_eq!(act(&mut core, at(0)).calls, [], "it waits for its types");
    core.set_drained(true);
    assert_eq!(act(&mut core, at(0)).calls.len(), 1, "it passes on");
    core.handle_reply(at(0), turn(Vec::new(), Vec::new(), 0));
    assert_eq!(act(&mut core, at(0)).calls, []);
    // The wait that was for types may have taken a marker.
    core.handle_wait(at(1), Ok(&[Signal::Poke]));
    assert_eq!(act(&mut core, at(1)).calls.len(), 1, "it passes on again");
    core.handle_reply(at(1), turn(Vec::new(), Vec::new(), 0));
    for now in 2..5 {
        assert_eq!(act(&mut core, at(now)).calls, [], "{now}");
        core.handle_wait(at(now), Ok(&[]));
    }
    assert_eq!(act(&mut core, at(5)).calls, []);
}

#[test]
fn a_handler_that_was_abandoned_has_its_slot_until_it_returns() {
    let mut lives = Lives::new(rules(), 0);
    let (calls, _) = act_all(&mut lives, at(0));
    let first = calls[0].0;
    lives.handle_reply(first, at(0), turn(vec![claim(1, "a")], Vec::new(), 1));
    let (calls, _) = act_all(&mut lives, at(1));
    assert_eq!(asked_for(&calls), [(first, None)], "a call is in flight");
    lives.handle_reply(first, at(1), Reply::Heartbeat(Err(CallError::Released)));
    lives.abandon("a".into());
    lives.renew_life(another_owner(2));
    let (calls, ended) = act_all(&mut lives, at(1));
    assert_eq!(ended, [first]);
    let second = calls[0].0;
    assert_eq!(asked_for(&calls), [(second, Some(1))]);
    lives.handle_reply(second, at(1), turn(Vec::new(), Vec::new(), 0));
    lives.handle_returned("a");
    let (calls, _) = act_all(&mut lives, at(1));
    assert_eq!(asked_for(&calls), [(second, Some(2))]);
}
