//! Gathers whose subscription was interrupted: what is searched for, how often, and how they end.

use super::*;
use crate::core::Core;

/// A core with gathers, and what it searches for and delivers.
struct Gathers {
    core: Core,
    searches: Vec<SearchToken>,
    patterns: Vec<String>,
    cancelled: Vec<SearchToken>,
    /// Backends whose answers were delivered.
    heard: Vec<String>,
    ends: Vec<Result<(), CallError>>,
    now: Time,
}

impl Gathers {
    fn new(settings: Settings) -> Self {
        let unit = UnitName::new("web").expect("a name");
        let rng = fastrand::Rng::with_seed(1);
        let mut gathers = Self {
            core: Core::new(unit, "1", settings, rng),
            searches: Vec::new(),
            patterns: Vec::new(),
            cancelled: Vec::new(),
            heard: Vec::new(),
            ends: Vec::new(),
            now: Time(1_000),
        };
        gathers.core.handle_subscribed(gathers.now);
        gathers
    }

    fn begin(&mut self, id: &str, count: Option<usize>) -> GatherId {
        self.begin_with(GatherSpec { count, ..spec(id) })
    }

    fn begin_with(&mut self, spec: GatherSpec) -> GatherId {
        let gather = self.core.gather(spec, self.now);
        self.settle();
        gather
    }

    /// The subscription is interrupted, and stands again.
    fn interrupt(&mut self) {
        self.core.handle_unsubscribed();
        self.core.handle_subscribed(self.now);
        self.settle();
    }

    /// The search under way has found the answers of these backends.
    fn found(&mut self, answers: &[&str], step: SearchStep) {
        let token = *self.searches.last().expect("a search");
        let key = |answer: &&str| format!("MUF/web/RES/{answer}");
        let keys: Vec<String> = answers.iter().map(key).collect();
        self.core.handle_found(token, &keys, step, self.now);
        self.settle();
    }

    /// Lets time pass until something is due.
    fn wake(&mut self) {
        let at = self.core.poll_timeout().expect("something is due");
        self.now = self.now.max(at);
        self.core.handle_timeout(self.now);
        self.settle();
    }

    fn wake_until(&mut self, is_there: impl Fn(&Self) -> bool) {
        while !is_there(self) {
            self.wake();
        }
    }

    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run(op) => {
                    let replies = match op.token.0 {
                        Purpose::GatherAnswer { .. } => {
                            vec![Reply::Value("x".into()), Reply::Number(1)]
                        }
                        _ => op.commands.iter().map(|_| Reply::Ok).collect(),
                    };
                    self.core.handle_reply(op.token, Ok(replies), self.now);
                }
                Output::Search { token, pattern, .. } => {
                    self.searches.push(token);
                    self.patterns.push(pattern);
                }
                Output::CancelSearch { token } => self.cancelled.push(token),
                Output::Gathered { answer, .. } => self.heard.push(answer.backend),
                Output::GatherDone { result, .. } => self.ends.push(result),
                _ => {}
            }
        }
    }
}

fn spec(id: &str) -> GatherSpec {
    GatherSpec {
        id: RequestId::parse(id).expect("an ID"),
        payload: Bytes::new(),
        timeout_ms: 2_000,
        ttl_ms: None,
        meta: None,
        count: None,
        quiet_ms: None,
    }
}

/// The settings of a unit whose server sends no events.
fn polling() -> Settings {
    Settings {
        poll_ms: Some(100),
        ..Settings::default()
    }
}

#[test]
fn one_search_after_a_gap_is_for_all_gathers() {
    let mut gathers = Gathers::new(Settings::default());
    for number in 1..=20 {
        gathers.begin(&format!("a.b~all~{number}"), None);
    }
    let began = gathers.now;
    gathers.interrupt();
    assert!(gathers.searches.is_empty(), "it begins after a pause");
    gathers.wake_until(|it| !it.searches.is_empty());
    let pause_ms = gathers.now.since(began);
    assert!(pause_ms <= Settings::default().lease_ms() / 8);
    gathers.found(&["a.b~all~1.b1", "a.b~all~20.b2"], SearchStep::More);
    gathers.found(&["a.b~all~1.b3"], SearchStep::Done);
    assert_eq!(gathers.heard, ["b1", "b2", "b3"]);
    assert!(gathers.ends.is_empty(), "others may still answer");
    gathers.wake_until(|it| it.ends.len() == 20);
    assert_eq!(gathers.now.since(began), 2_000, "without a grace");
    assert_eq!(gathers.ends, vec![Ok(()); 20]);
    assert_eq!(gathers.patterns, ["MUF/web/[RE][ER][SR]/*~all~*"]);
    assert!(gathers.cancelled.is_empty());
}

#[test]
fn a_gather_that_ends_before_its_search_does_says_so() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    gathers.interrupt();
    gathers.wake_until(|it| !it.searches.is_empty());
    gathers.found(&["a.b~all~1.b1"], SearchStep::More);
    gathers.wake_until(|it| !it.ends.is_empty());
    assert_eq!(gathers.heard, ["b1"]);
    assert_eq!(gathers.ends, [Err(CallError::SearchUnfinished)]);
    assert_eq!(gathers.cancelled, gathers.searches);
    // What it had found before it was cancelled leads to nothing.
    gathers.found(&["a.b~all~1.b2"], SearchStep::Done);
    assert_eq!(gathers.heard, ["b1"]);
    assert_eq!(gathers.searches.len(), 1);
}

#[test]
fn a_search_that_no_gather_needs_any_more_is_cancelled() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", Some(1));
    let second = gathers.begin("a.b~all~2", None);
    gathers.interrupt();
    gathers.wake_until(|it| !it.searches.is_empty());
    let key = "MUF/web/RES/a.b~all~1.b1";
    gathers.core.handle_push(key, "set", gathers.now);
    gathers.settle();
    assert_eq!(gathers.ends, [Ok(())], "it has enough");
    assert!(gathers.cancelled.is_empty(), "the other one needs it");
    gathers.core.cancel_gather(second);
    gathers.settle();
    assert_eq!(gathers.cancelled, gathers.searches);
}

#[test]
fn a_search_that_failed_or_is_older_than_the_gap_is_made_again() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    gathers.interrupt();
    gathers.wake_until(|it| it.searches.len() == 1);
    gathers.found(&[], SearchStep::Failed);
    gathers.wake_until(|it| it.searches.len() == 2);
    gathers.interrupt();
    assert_eq!(gathers.cancelled, gathers.searches[1..]);
    gathers.wake_until(|it| it.searches.len() == 3);
    gathers.found(&["a.b~all~1.b1"], SearchStep::Done);
    gathers.wake_until(|it| !it.ends.is_empty());
    assert_eq!(gathers.heard, ["b1"]);
    assert_eq!(gathers.ends, [Ok(())]);
    assert_eq!(gathers.searches.len(), 3);
}

#[test]
fn a_gather_that_misses_no_push_searches_nothing() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    gathers.wake_until(|it| !it.ends.is_empty());
    assert_eq!(gathers.ends, [Ok(())]);
    assert!(gathers.searches.is_empty());
}

#[test]
fn a_gather_whose_server_is_away_at_its_end_may_miss_answers() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    let key = "MUF/web/RES/a.b~all~1.b1";
    gathers.core.handle_push(key, "set", gathers.now);
    gathers.settle();
    gathers.core.handle_unsubscribed();
    gathers.wake_until(|it| !it.ends.is_empty());
    assert_eq!(gathers.heard, ["b1"]);
    assert_eq!(gathers.ends, [Err(CallError::Disconnected)]);
}

#[test]
fn where_a_server_sends_no_events_a_gather_searches_when_its_time_is_up() {
    let mut gathers = Gathers::new(polling());
    let began = gathers.now;
    gathers.begin("a.b~all~1", None);
    gathers.interrupt();
    gathers.wake_until(|it| !it.searches.is_empty());
    assert_eq!(gathers.now.since(began), 2_000);
    gathers.found(&["a.b~all~1.b1"], SearchStep::Done);
    assert_eq!(gathers.heard, ["b1"]);
    assert_eq!(gathers.ends, [Ok(())]);
}

#[test]
fn a_quiet_gather_waits_for_its_search_until_its_deadline() {
    for is_finished in [true, false] {
        let mut gathers = Gathers::new(Settings::default());
        let (began, deadline) = (gathers.now, gathers.now.plus(30_000));
        gathers.begin_with(GatherSpec {
            timeout_ms: 30_000,
            quiet_ms: Some(200),
            ..spec("a.b~all~1")
        });
        gathers.interrupt();
        let key = "MUF/web/RES/a.b~all~1.b1";
        gathers.core.handle_push(key, "set", gathers.now);
        gathers.settle();
        gathers.wake_until(|it| !it.searches.is_empty());
        while gathers.core.poll_timeout().is_some_and(|at| at < deadline) {
            gathers.wake();
        }
        assert!(gathers.ends.is_empty(), "its time is not up");
        if is_finished {
            gathers.found(&["a.b~all~1.b2"], SearchStep::Done);
            assert_eq!(gathers.heard, ["b1", "b2"]);
            assert_eq!(gathers.ends, [Ok(())], "it has been quiet for long");
        } else {
            gathers.wake_until(|it| !it.ends.is_empty());
            assert_eq!(gathers.now.since(began), 30_000);
            assert_eq!(gathers.ends, [Err(CallError::SearchUnfinished)]);
        }
    }
}

#[test]
fn the_grace_of_a_gather_begins_with_the_search_that_it_waits_for() {
    let mut gathers = Gathers::new(polling());
    let began = gathers.now;
    gathers.begin("a.b~all~1", None);
    gathers.now = began.plus(500);
    gathers.begin("a.b~all~2", None);
    gathers.wake_until(|it| it.searches.len() == 1);
    gathers.wake_until(|it| it.now >= began.plus(2_500));
    gathers.now = began.plus(2_900);
    gathers.found(&[], SearchStep::Done);
    assert_eq!(gathers.ends, [Ok(())]);
    gathers.wake_until(|it| it.searches.len() == 2);
    assert_eq!(gathers.now.since(began), 2_900);
    gathers.wake_until(|it| it.ends.len() == 2);
    assert_eq!(gathers.now.since(began), 3_900);
    assert_eq!(gathers.ends, [Ok(()), Err(CallError::SearchUnfinished)]);
}

#[test]
fn a_gather_ends_even_if_its_subscription_breaks_again_and_again() {
    let mut gathers = Gathers::new(polling());
    let began = gathers.now;
    gathers.begin("a.b~all~1", None);
    gathers.wake_until(|it| it.searches.len() == 1);
    while gathers.ends.is_empty() {
        gathers.now = gathers.now.plus(100);
        gathers.interrupt();
        gathers.core.handle_timeout(gathers.now);
        gathers.settle();
        assert!(gathers.now.since(began) <= 4_000);
    }
    assert_eq!(gathers.ends, [Err(CallError::SearchUnfinished)]);
    assert_eq!(gathers.now.since(began), 3_000);
}

#[test]
fn a_gather_reads_no_more_answers_than_its_reader_has_room_for() {
    let mut gathers = Gathers::new(Settings::default());
    let gather = gathers.begin("a.b~all~1", None);
    gathers.core.gather_room(gather, 2);
    for number in 0..5 {
        let key = format!("MUF/web/RES/a.b~all~1.b{number}");
        gathers.core.handle_push(&key, "set", gathers.now);
        gathers.settle();
    }
    assert_eq!(gathers.heard, ["b0", "b1"]);
    assert_eq!(gathers.core.unread_gathers().count(), 1);
    gathers.core.gather_room(gather, 2);
    gathers.settle();
    assert_eq!(gathers.heard, ["b0", "b1", "b2", "b3"]);
    // Its time is up, and the reader has not taken them.
    gathers.wake_until(|it| !it.ends.is_empty());
    assert_eq!(gathers.ends, [Err(CallError::AnswersLeft)]);
}

#[test]
fn a_gather_with_too_many_answers_ends() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    for number in 0..=ANSWER_LIMIT {
        assert!(gathers.ends.is_empty(), "{number}");
        let key = format!("MUF/web/RES/a.b~all~1.b{number}");
        gathers.core.handle_push(&key, "set", gathers.now);
        gathers.settle();
    }
    assert_eq!(gathers.heard.len(), ANSWER_LIMIT);
    assert_eq!(gathers.ends, [Err(CallError::AnswersLeft)]);
}

#[test]
fn a_few_answers_of_a_gather_are_read_at_a_time() {
    let mut gathers = Gathers::new(Settings::default());
    gathers.begin("a.b~all~1", None);
    for number in 0..100 {
        let key = format!("MUF/web/RES/a.b~all~1.b{number}");
        gathers.core.handle_push(&key, "set", gathers.now);
    }
    let outputs = std::iter::from_fn(|| gathers.core.poll_output());
    let reads = outputs.filter(|it| matches!(it, Output::Run(_))).count();
    assert_eq!(reads, READ_LIMIT);
}
