//! A bare ID that is used again: which answers are old, and what becomes of them. `sweeps.rs` has sweeps whose services
//! change, `large.rs` large requests and answers.

mod large;
mod sweeps;

use super::super::command::{Command, Purpose, Reply, SearchStep, SearchToken, Token};
use super::super::output::{JobId, Outcome};
use super::super::unit::Core;
use super::*;

/// A core that serves everything, and what it asks.
struct Serving {
    core: Core,
    sent: VecDeque<(Token, Vec<Command>)>,
    started: Vec<JobId>,
    /// What the handlers were given.
    payloads: Vec<Bytes>,
    /// Locks of sweeps that were requested, searches that were begun, their globs, and those that were cancelled.
    locks: Vec<Token>,
    lock_keys: Vec<String>,
    searches: Vec<SearchToken>,
    globs: Vec<String>,
    cancelled: Vec<SearchToken>,
    /// What REQ holds.
    request: Held,
    now: Time,
}

/// A value of a key.
type Held = Option<&'static str>;

impl Serving {
    fn new() -> Self {
        Self::with(Settings::default(), "*")
    }

    /// A core with these settings that serves a pattern.
    fn with(settings: Settings, pattern: &str) -> Self {
        let unit = UnitName::new("back").expect("a name");
        let rng = fastrand::Rng::with_seed(1);
        let mut core = Core::new(unit, "1", settings, rng);
        core.serve(pattern.parse().expect("a pattern"), 4, Time(0));
        Self {
            core,
            sent: VecDeque::new(),
            started: Vec::new(),
            payloads: Vec::new(),
            locks: Vec::new(),
            lock_keys: Vec::new(),
            searches: Vec::new(),
            globs: Vec::new(),
            cancelled: Vec::new(),
            request: Some("payload"),
            now: Time(0),
        }
    }

    fn push(&mut self, id: &str) {
        let key = format!("MUF/me/REQ/{id}");
        self.core.handle_push(&key, "set", self.now);
        self.settle();
    }

    /// The claim is tried, while RES and ERR hold this. `by` is whose it is.
    fn claim(&mut self, by: &'static str, res: Held, err: Held) {
        let (token, commands) = self.sent.pop_front().expect("a claim");
        let held = match by {
            "back~1" => Reply::Ok,
            _ => Reply::Nil,
        };
        let value = |held: Held| Reply::Value(Bytes::from(held.unwrap_or_default()));
        let is_there = |key: &String| match key.as_str() {
            key if key.contains("/REQ/") => self.request.is_some(),
            key if key.contains("/RES/") => res.is_some(),
            key => key.contains("/ERR/") && err.is_some(),
        };
        let bit = |(index, key): (usize, &String)| i64::from(is_there(key)) << index;
        let answer = |command: &Command| match command {
            Command::Present(keys) => Reply::Number(keys.iter().enumerate().map(bit).sum()),
            Command::Expire { .. } => Reply::Number(i64::from(by == "back~1")),
            Command::Read { key, .. } if key.contains("/REQ/") => value(self.request),
            Command::Read { key, .. } if key.contains("/RES/") => value(res),
            Command::Read { key, .. } if key.contains("/ERR/") => value(err),
            Command::Read { .. } => value(Some(by)),
            Command::TimeToLive(_) => Reply::Number(2_000),
            _ => held.clone(),
        };
        let replies = commands.iter().map(answer).collect();
        self.core.handle_reply(token, Ok(replies), self.now);
        self.settle();
    }

    /// Sleeps for longer than a lease, and wakes to a handler that has returned.
    fn finish_late(&mut self, outcome: Outcome) {
        self.now = self.now.plus(10_000);
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: Outcome) {
        let job = self.started.pop().expect("a handler was started");
        self.core.handle_finished(job, outcome, self.now);
        self.settle();
    }

    /// The commands of the next pipeline.
    fn commands(&mut self) -> Vec<Command> {
        self.sent.pop_front().expect("a pipeline").1
    }

    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run(op) if op.token.0 == Purpose::SweepLock => {
                    self.locks.push(op.token);
                    self.lock_keys.extend(op.commands.iter().find_map(set_key));
                }
                // No other unit searches.
                Output::Run(op) if op.token.0 == Purpose::SearchLock => {
                    let replies = vec![Reply::Ok, Reply::Value("back~1".into())];
                    self.core.handle_reply(op.token, Ok(replies), self.now);
                }
                Output::Run(op) => self.sent.push_back((op.token, op.commands)),
                Output::Search { token, pattern, .. } => {
                    self.searches.push(token);
                    self.globs.push(pattern);
                }
                Output::CancelSearch { token } => self.cancelled.push(token),
                Output::Start { job, request, .. } => {
                    self.started.push(job);
                    self.payloads.push(request.payload);
                }
                _ => {}
            }
        }
    }
}

fn set_key(command: &Command) -> Option<String> {
    match command {
        Command::Set { key, .. } => Some(key.clone()),
        _ => None,
    }
}

fn writes(commands: &[Command], key: &str) -> bool {
    let is_it = |command: &Command| matches!(command, Command::Set { key: k, .. } if k == key);
    commands.iter().any(is_it)
}

#[test]
fn an_old_answer_to_a_bare_id_does_not_silence_a_backend_that_claims_again() {
    let mut serving = Serving::new();
    serving.push("hello");
    serving.claim("back~1", Some("old"), None);
    serving.finish_late(Outcome::Good("new".into()));
    serving.claim("back~1", Some("old"), None);
    assert!(writes(&serving.commands(), "MUF/me/RES/hello"));
}

#[test]
fn an_old_answer_that_ended_meanwhile_is_none() {
    let mut serving = Serving::new();
    serving.push("hello");
    serving.claim("back~1", Some("old"), Some("older"));
    serving.finish_late(Outcome::Good("new".into()));
    serving.claim("back~1", None, Some("older"));
    assert!(writes(&serving.commands(), "MUF/me/RES/hello"));
}

#[test]
fn another_backends_answer_to_a_bare_id_silences_a_backend_that_claims_again() {
    for answers in [(Some("theirs"), None), (Some("old"), Some("theirs"))] {
        let mut serving = Serving::new();
        serving.push("hello");
        serving.claim("back~1", Some("old"), None);
        serving.finish_late(Outcome::Good("ours".into()));
        serving.claim("back~1", answers.0, answers.1);
        assert!(serving.sent.is_empty(), "{:?}", serving.sent);
        assert_eq!(serving.core.backend_counters().silent, 1);
    }
}

#[test]
fn a_bare_id_with_an_old_answer_is_taken_over() {
    let mut serving = Serving::new();
    serving.push("hello");
    serving.claim("dead~1", Some("old"), None);
    assert!(serving.started.is_empty());
    while serving.sent.is_empty() {
        serving.now = serving.core.poll_timeout().expect("a loser comes back");
        serving.core.handle_timeout(serving.now);
        serving.settle();
    }
    serving.claim("back~1", Some("old"), None);
    let counts = |command: &Command| matches!(command, Command::Increment(_));
    assert!(serving.commands().iter().any(counts), "it has won");
}

#[test]
fn the_old_answer_of_the_other_kind_ends_when_a_bare_id_is_answered() {
    let check = |outcome, written: &str, ended: &str| {
        let mut serving = Serving::new();
        serving.push("hello");
        serving.claim("back~1", None, None);
        serving.finish(outcome);
        let commands = serving.commands();
        assert!(writes(&commands, written), "{commands:?}");
        let ends = Command::Expire {
            key: ended.into(),
            ttl_ms: 1,
        };
        assert!(commands.contains(&ends), "{commands:?}");
    };
    let (res, err) = ("MUF/me/RES/hello", "MUF/me/ERR/hello");
    check(Outcome::Good("x".into()), res, err);
    check(Outcome::Bad("x".into()), err, res);
}

#[test]
fn a_bare_id_that_is_set_again_before_its_answer_is_confirmed_runs_again() {
    let mut serving = Serving::new();
    serving.push("hello");
    serving.claim("back~1", None, None);
    serving.finish(Outcome::Good("x".into()));
    serving.push("hello");
    let (token, _) = serving.sent.pop_front().expect("an answer");
    let replies = vec![Reply::Ok, Reply::Number(1), Reply::Number(0)];
    serving.core.handle_reply(token, Ok(replies), serving.now);
    serving.settle();
    serving.claim("back~1", Some("x"), None);
    assert_eq!(serving.started.len(), 1);
}

#[test]
fn an_id_that_is_used_once_is_answered_with_two_commands() {
    let mut serving = Serving::new();
    serving.push("a.b~01J");
    serving.claim("back~1", None, None);
    serving.finish(Outcome::Good("x".into()));
    assert_eq!(serving.commands().len(), 2);
}

#[test]
fn a_request_over_the_limit_is_answered_with_err_and_seen_by_no_handler() {
    let large = "x".repeat(1024 * 1024 + 1).leak();
    for (id, key) in [
        ("a.b~01J", "MUF/me/ERR/a.b~01J"),
        ("hello", "MUF/me/ERR/hello"),
    ] {
        let mut serving = Serving::new();
        serving.request = Some(large);
        serving.push(id);
        let (_, commands) = serving.sent.front().expect("a claim");
        let reads = |command: &Command| match command {
            Command::Read { limit_bytes, .. } => *limit_bytes <= 1024 * 1024,
            _ => true,
        };
        assert!(commands.iter().all(reads), "{commands:?}");
        serving.claim("back~1", None, None);
        assert!(serving.started.is_empty());
        assert!(writes(&serving.commands(), key));
    }
}

#[test]
fn a_claim_is_three_commands() {
    let mut serving = Serving::new();
    serving.push("a.b~01J");
    assert_eq!(serving.commands().len(), 3);
}

#[test]
fn an_empty_request_is_looked_for_before_it_is_run() {
    let mut serving = Serving::new();
    serving.request = Some("");
    serving.push("a.b~01J");
    serving.claim("back~1", None, None);
    assert!(serving.started.is_empty());
    serving.claim("back~1", None, None);
    assert_eq!(serving.started.len(), 1);
}

#[test]
fn a_request_that_is_gone_is_not_run_as_an_empty_one() {
    let mut serving = Serving::new();
    serving.request = None;
    serving.push("a.b~01J");
    serving.claim("back~1", None, None);
    serving.claim("back~1", None, None);
    assert!(serving.started.is_empty());
    assert!(serving.sent.is_empty(), "{:?}", serving.sent);
    assert!(serving.core.is_drained(ServiceId(1)));
}

#[test]
fn a_request_that_appears_after_it_was_read_is_not_run_as_an_empty_one() {
    let mut serving = Serving::new();
    serving.request = None;
    serving.push("a.b~01J");
    serving.claim("back~1", None, None);
    // REQ is set again: the second look reads it.
    serving.request = Some("payload");
    serving.claim("back~1", None, None);
    assert_eq!(serving.payloads, ["payload"]);
}

#[test]
fn an_id_of_no_form_is_ignored() {
    let mut serving = Serving::new();
    for id in ["a~b", "a~all~b", "~b", "a.b~c~d"] {
        serving.push(id);
    }
    assert!(serving.sent.is_empty(), "{:?}", serving.sent);
}

impl Serving {
    /// Lets time pass until something is due.
    fn wake(&mut self) {
        let at = self.core.poll_timeout().expect("something is due");
        self.now = self.now.max(at);
        self.core.handle_timeout(self.now);
        self.settle();
    }

    /// Lets time pass until a lock is requested, and replies with its holder. `left_ms` is how long it has.
    fn lock(&mut self, holder: &'static str, left_ms: i64) {
        while self.locks.is_empty() {
            self.wake();
        }
        let taken = match holder {
            "back~1" => Reply::Ok,
            _ => Reply::Nil,
        };
        let replies = vec![taken, Reply::Value(holder.into()), Reply::Number(left_ms)];
        let token = self.locks.remove(0);
        self.core.handle_reply(token, Ok(replies), self.now);
        self.settle();
    }

    /// Whether nothing more is wanted, however long it waits.
    fn is_idle(&self) -> bool {
        self.core.poll_timeout().is_none() && self.locks.is_empty()
    }
}

#[test]
fn a_backend_sweeps_once_under_a_lock_and_then_never_again() {
    let mut serving = Serving::new();
    serving.lock("back~1", 6_000);
    let token = serving.searches.pop().expect("a search");
    let found = ["MUF/me/REQ/a.b~1".to_owned()];
    serving
        .core
        .handle_found(token, &found, SearchStep::Done, serving.now);
    serving.settle();
    assert!(matches!(serving.commands()[0], Command::Exists(_)));
    let marks = |command: &Command| matches!(command, Command::Set { value, .. } if value == "done back~1.1");
    assert!(marks(&serving.commands()[0]));
    assert!(serving.is_idle());
}

#[test]
fn a_lock_of_sweeps_without_an_end_is_given_one() {
    for holder in ["other~1", "done other~1.7"] {
        let mut serving = Serving::new();
        serving.lock(holder, -1);
        let (_, commands) = serving.sent.pop_front().expect("it is given an end");
        let key = "MUF/_/KEEP/_sweep.*".to_owned();
        let ttl_ms = Settings::default().sweep_lock_ms();
        assert_eq!(commands, [Command::Expire { key, ttl_ms }]);
        // It has ended.
        serving.lock("back~1", -2);
        assert_eq!(serving.searches.len(), 1, "{holder}");
    }
}

#[test]
fn a_sweep_that_was_seen_under_way_and_done_counts_for_all() {
    let mut serving = Serving::new();
    serving.lock("other~1", 6_000);
    serving.lock("other~1", 5_000);
    serving.lock("done other~1.1", 3_000);
    assert!(serving.searches.is_empty() && serving.is_idle());
}

#[test]
fn a_sweep_that_began_after_another_was_seen_done_counts_for_all() {
    let mut serving = Serving::new();
    serving.lock("done other~1.1", 3_000);
    serving.lock("done other~1.1", 1_000);
    assert!(!serving.is_idle(), "the same sweep");
    serving.lock("done third~1.1", 3_000);
    assert!(serving.searches.is_empty() && serving.is_idle());
}

#[test]
fn a_sweep_that_was_done_before_or_broke_off_does_not_count() {
    let mut before = Serving::new();
    before.lock("done other~1.1", 3_000);
    before.lock("back~1", 6_000);
    assert_eq!(before.searches.len(), 1);

    let mut broken = Serving::new();
    broken.lock("other~1", 10);
    broken.lock("back~1", 6_000);
    assert_eq!(broken.searches.len(), 1);
    let token = broken.searches.remove(0);
    broken
        .core
        .handle_found(token, &[], SearchStep::Failed, broken.now);
    broken.settle();
    broken.lock("back~1", 6_000);
    assert_eq!(broken.searches.len(), 1, "it begins again");
}

#[test]
fn what_is_missed_while_another_sweeps_is_swept_for_afterwards() {
    let mut serving = Serving::new();
    serving.lock("other~1", 6_000);
    serving.core.handle_subscribed(serving.now);
    serving.lock("done", 3_000);
    serving.lock("back~1", 6_000);
    assert_eq!(serving.searches.len(), 1);
}

#[test]
fn a_drained_service_is_not_swept_for() {
    let mut serving = Serving::new();
    serving.core.drain(ServiceId(1));
    serving.core.remove_service(ServiceId(1));
    serving.core.handle_subscribed(serving.now);
    serving.now = serving.now.plus(60_000);
    serving.core.handle_timeout(serving.now);
    serving.settle();
    assert!(serving.locks.is_empty() && serving.searches.is_empty());
}

#[test]
fn a_request_that_says_it_was_tried_is_counted() {
    let mut serving = Serving::new();
    serving.push("a.b~1");
    let (token, commands) = serving.sent.pop_front().expect("a claim");
    let replies = commands.iter().map(|command| match command {
        // Neither RES nor ERR, but `.tries`.
        Command::Present(_) => Reply::Number(4),
        Command::Read { .. } => Reply::Value("payload".into()),
        _ => Reply::Ok,
    });
    let replies = replies.collect();
    serving.core.handle_reply(token, Ok(replies), serving.now);
    serving.settle();
    assert!(serving.started.is_empty());
    assert!(matches!(serving.commands()[1], Command::Increment(_)));
}

#[test]
fn a_renewal_extends_the_tracing_side_key_where_units_trace() {
    for tracing in [false, true] {
        let settings = Settings {
            tracing,
            ..Settings::default()
        };
        let req_ms = settings.req_kept_ms();
        let renew_ms = settings.renew_ms();
        let mut serving = Serving::with(settings, "*");
        serving.push("a.b~01J");
        serving.claim("back~1", None, None);
        assert_eq!(serving.started.len(), 1);
        serving.now = serving.now.plus(renew_ms);
        serving.core.handle_timeout(serving.now);
        serving.settle();
        let (token, commands) = serving.sent.pop_front().expect("a renewal");
        let kept = |key: &str| {
            commands.contains(&Command::Expire {
                key: key.into(),
                ttl_ms: req_ms,
            })
        };
        assert!(kept("MUF/me/REQ/a.b~01J"), "{commands:?}");
        assert_eq!(kept("MUF/me/KEEP/a.b~01J.meta"), tracing, "{commands:?}");
        assert_eq!(commands.len(), 3 + usize::from(tracing));
        let reply = |command: &Command| match command {
            Command::Read { .. } => Reply::Value("back~1".into()),
            _ => Reply::Number(1),
        };
        let replies = commands.iter().map(reply).collect();
        serving.core.handle_reply(token, Ok(replies), serving.now);
        assert_eq!(serving.core.backend_counters().lapsed, 0, "it is renewed");
        serving.finish(Outcome::Good("x".into()));
        assert!(writes(&serving.commands(), "MUF/me/RES/a.b~01J"));
    }
}
