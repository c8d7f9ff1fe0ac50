//! What a watcher gets when events and reads overtake each other: they use two connections.

use super::*;
use crate::core::command::Lost;
use crate::core::settings::INLINE_LIMIT_BYTES;
use crate::core::{Core, SearchStep, Settings, Token, UnitName};

const KEY: &str = "MUF/unit/KEEP/status";

/// A core with one watch whose snapshot is done, and what it reads and reports.
struct Watching {
    core: Core,
    watch: WatchId,
    reads: VecDeque<Token>,
    /// Keys that a search finds.
    keys: Vec<String>,
    /// For each search, whether it was paced.
    searches: Vec<bool>,
    /// How searches end.
    step: SearchStep,
    told: Vec<String>,
    now: Time,
}

impl Watching {
    fn new() -> Self {
        let unit = UnitName::new("web").expect("a name");
        let settings = Settings::default();
        let mut watching = Self {
            core: Core::new(unit, "1", settings, fastrand::Rng::with_seed(1)),
            watch: WatchId(0),
            reads: VecDeque::new(),
            keys: Vec::new(),
            searches: Vec::new(),
            step: SearchStep::Done,
            told: Vec::new(),
            now: Time(1_000),
        };
        watching.core.handle_subscribed(watching.now);
        watching.watch = watching.core.watch("unit/*".parse().expect("a pattern"));
        watching.core.watch_ready(watching.watch);
        watching.settle();
        assert_eq!(watching.reported(), ["live"]);
        assert_eq!(std::mem::take(&mut watching.searches), [false]);
        watching
    }

    fn push(&mut self, event: &str) {
        self.core.handle_push(KEY, event, self.now);
        self.settle();
    }

    /// Answers the oldest read.
    fn read(&mut self, value: Option<&'static str>, ttl_ms: i64) {
        let token = self.reads.pop_front().expect("a read on its way");
        let value = Bytes::from(value.unwrap_or_default());
        let replies = vec![Reply::Value(value), Reply::Number(ttl_ms)];
        self.core.handle_reply(token, Ok(replies), self.now);
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                // No other unit searches.
                Output::Run(op) if op.token.0 == Purpose::SearchLock => {
                    let replies = vec![Reply::Ok, Reply::Value("web~1".into())];
                    self.core.handle_reply(op.token, Ok(replies), self.now);
                }
                Output::Run(op) if op.token.0 == Purpose::Note => {}
                Output::Run(op) => self.reads.push_back(op.token),
                Output::Search { token, paced, .. } => {
                    self.searches.push(paced);
                    self.core
                        .handle_found(token, &self.keys, self.step, self.now);
                }
                Output::Watched { event, .. } => self.told.push(match event {
                    KeepEvent::Value { value, .. } => String::from_utf8_lossy(&value).into_owned(),
                    KeepEvent::TooLarge { .. } => "too large".into(),
                    KeepEvent::Deleted { .. } => "deleted".into(),
                    KeepEvent::Expired { .. } => "expired".into(),
                    KeepEvent::Live => "live".into(),
                    KeepEvent::Gap => "gap".into(),
                }),
                _ => {}
            }
        }
    }

    /// The watcher has this much room. Answers the reads that follow, and returns how many there were.
    fn room(&mut self, room: usize) -> usize {
        self.core.watch_room(self.watch, room, self.now);
        self.settle();
        let mut count = 0;
        while !self.reads.is_empty() {
            self.read(Some("up"), -1);
            count += 1;
        }
        count
    }

    /// Lets time pass until something is due.
    fn wake(&mut self) {
        let at = self.core.poll_timeout().expect("something is due");
        self.now = self.now.max(at);
        self.core.handle_timeout(self.now);
        self.settle();
    }

    fn reported(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }
}

#[test]
fn a_change_that_a_refresh_already_showed_is_told_once() {
    let mut watching = Watching::new();
    watching.push("set");
    watching.read(Some("up"), 2_000);
    assert_eq!(watching.reported(), ["up"]);
    // The refresh's event arrives, but by the time its read reaches the server the value has changed.
    watching.push("expire");
    watching.push("set");
    watching.read(Some("busy"), 2_000);
    watching.read(Some("busy"), 2_000);
    assert_eq!(watching.reported(), ["busy"]);
}

#[test]
fn two_changes_of_which_only_the_last_was_read_are_told_once() {
    let mut watching = Watching::new();
    watching.push("set");
    watching.push("set");
    watching.read(Some("two"), -1);
    watching.read(Some("two"), -1);
    assert_eq!(watching.reported(), ["two"]);
    watching.push("set");
    watching.read(Some("three"), -1);
    assert_eq!(watching.reported(), ["three"]);
}

#[test]
fn a_value_that_comes_back_is_told_again() {
    let mut watching = Watching::new();
    watching.push("set");
    watching.read(Some("up"), -1);
    watching.push("del");
    watching.push("set");
    watching.read(Some("up"), -1);
    assert_eq!(watching.reported(), ["up", "deleted", "up"]);
}

#[test]
fn a_read_that_was_under_way_when_the_key_went_shows_nothing() {
    let mut watching = Watching::new();
    watching.push("set");
    // The push of the end overtakes the reply of a read that still saw the value.
    watching.push("del");
    watching.read(Some("up"), -1);
    assert_eq!(watching.reported(), Vec::<String>::new());
    watching.push("set");
    watching.read(Some("up"), -1);
    assert_eq!(watching.reported(), ["up"]);
}

#[test]
fn an_expiry_is_told_when_a_read_confirms_it() {
    let mut watching = Watching::new();
    watching.push("set");
    watching.read(Some("up"), 500);
    watching.now = watching.core.poll_timeout().expect("a time to look");
    watching.core.handle_timeout(watching.now);
    watching.settle();
    watching.read(None, -2);
    assert_eq!(watching.reported(), ["up", "expired"]);
}

#[test]
fn the_search_after_an_interruption_is_paced_and_follows_a_random_pause() {
    let mut pauses = HashSet::new();
    let mut watching = Watching::new();
    let limit_ms = Settings::default().lease_ms() / 8;
    for _ in 0..20 {
        let before = watching.now;
        watching.core.handle_subscribed(before);
        watching.settle();
        assert_eq!(watching.reported(), ["gap"]);
        assert!(watching.searches.is_empty());
        // A second interruption does not put it off.
        let at = watching.core.poll_timeout().expect("a search is due");
        watching.core.handle_subscribed(before);
        assert_eq!(watching.core.poll_timeout(), Some(at));
        assert!(at.since(before) <= limit_ms, "{at:?}");
        pauses.insert(at.since(before));
        watching.now = at;
        watching.core.handle_timeout(at);
        watching.settle();
        assert_eq!(std::mem::take(&mut watching.searches), [true]);
        assert_eq!(watching.reported(), ["live"]);
    }
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[test]
fn a_caller_that_waits_does_not_wait_for_the_pause() {
    let mut watching = Watching::new();
    watching.core.watch_hurry(watching.watch);
    watching.settle();
    assert!(watching.searches.is_empty(), "it is live");
    watching.core.handle_subscribed(watching.now);
    watching.core.watch_hurry(watching.watch);
    watching.core.watch_hurry(watching.watch);
    watching.settle();
    assert_eq!(watching.searches, [false]);
    assert_eq!(watching.reported(), ["gap", "live"]);
    assert_eq!(watching.core.poll_timeout(), None);
}

#[test]
fn a_search_that_breaks_off_is_made_again_and_completes_nothing() {
    for paced in [true, false] {
        let mut watching = Watching::new();
        watching.keys = vec![KEY.to_owned()];
        watching.step = SearchStep::Failed;
        watching.core.handle_subscribed(watching.now);
        match paced {
            true => watching.wake(),
            // A caller waits.
            false => watching.core.watch_hurry(watching.watch),
        }
        watching.settle();
        watching.read(Some("up"), -1);
        assert_eq!(watching.reported(), ["gap", "up"], "it is not live");
        let broke_off = watching.now;
        watching.step = SearchStep::Done;
        watching.wake();
        assert_eq!(watching.searches, [paced, paced]);
        assert!(watching.now.since(broke_off) >= Settings::default().lease_ms());
        watching.read(Some("up"), -1);
        assert_eq!(watching.reported(), ["live"]);
        assert_eq!(watching.core.poll_timeout(), None);
    }
}

#[test]
fn a_new_subscription_does_not_wait_for_the_repetition_of_a_search() {
    let mut watching = Watching::new();
    watching.step = SearchStep::Failed;
    watching.core.poll_watches();
    watching.settle();
    let before = watching.now;
    watching.core.handle_subscribed(before);
    watching.step = SearchStep::Done;
    watching.wake();
    assert!(watching.now.since(before) <= Settings::default().lease_ms() / 8);
    assert_eq!(watching.searches, [false, true]);
    assert_eq!(watching.reported(), ["gap", "live"]);
}

#[test]
fn a_snapshot_reads_as_much_as_there_is_room_for() {
    let mut watching = Watching::new();
    watching.core.watch_room(watching.watch, 5, watching.now);
    watching.keys = (0..10).map(|n| format!("MUF/unit/KEEP/{n}")).collect();
    watching.core.poll_watches();
    watching.settle();
    assert!(watching.reads.is_empty(), "the room is not known yet");
    assert_eq!(watching.room(4), 4);
    assert_eq!(watching.room(0), 0);
    assert_eq!(watching.room(100), 6);
    assert_eq!(watching.reported(), ["up"; 10]);
    assert_eq!(watching.core.unread_watches().next(), None);
}

#[test]
fn a_watcher_that_was_too_slow_is_shown_all_in_portions_without_a_search() {
    let mut watching = Watching::new();
    watching.core.watch_room(watching.watch, 5, watching.now);
    for n in 0..10 {
        let key = format!("MUF/unit/KEEP/{n}");
        watching.core.handle_push(&key, "set", watching.now);
    }
    watching.settle();
    watching.room(5);
    assert_eq!(watching.reported(), ["up"; 10]);
    // The second time, it is too slow again while it is shown the values.
    for first in [10, 4] {
        watching.core.watch_gap(watching.watch, watching.now);
        watching.settle();
        assert!(watching.reads.is_empty(), "the room is not known yet");
        assert_eq!(watching.room(first), first);
        let mut expected = vec!["gap"];
        expected.extend(vec!["up"; first]);
        expected.extend((first == 10).then_some("live"));
        assert_eq!(watching.reported(), expected);
    }
    watching.core.watch_gap(watching.watch, watching.now);
    watching.settle();
    assert_eq!(watching.room(3), 3);
    assert_eq!(watching.reported(), ["gap", "up", "up", "up"]);
    watching.push("set");
    // The seven that were left, the pushed one, and that one again: no search has found it.
    assert_eq!(watching.room(100), 9);
    let mut expected = vec!["up"; 8];
    expected.push("live");
    assert_eq!(watching.reported(), expected);
    assert!(watching.searches.is_empty());
}

#[test]
fn the_limit_of_payloads_does_not_bound_what_units_say_of_themselves() {
    let unit = UnitName::new("web").expect("a name");
    let settings = Settings {
        payload_limit_bytes: 4,
        ..Settings::default()
    };
    let mut core = Core::new(unit, "1", settings, fastrand::Rng::with_seed(1));
    core.handle_subscribed(Time(0));
    let infos = core.watch(KeepPattern::of_infos());
    core.watch_ready(infos);
    let mut shown = Vec::new();
    while let Some(output) = core.poll_output() {
        match output {
            Output::Search { token, .. } => {
                let keys = ["MUF/back/KEEP/_info".to_owned()];
                core.handle_found(token, &keys, SearchStep::Done, Time(0));
            }
            Output::Run(op) => {
                let value = Reply::Value("longer than a payload".into());
                core.handle_reply(op.token, Ok(vec![value, Reply::Number(15_000)]), Time(0));
            }
            Output::Watched { event, .. } => shown.push(event),
            _ => {}
        }
    }
    assert!(
        matches!(&shown[..], [KeepEvent::Value { unit, .. }, KeepEvent::Live] if unit == "back"),
        "{shown:?}"
    );
}

/// A watch that knows this many values.
fn knowing(count: usize) -> Watching {
    let mut watching = Watching::new();
    watching.keys = (0..count).map(|n| format!("MUF/unit/KEEP/{n}")).collect();
    watching.core.poll_watches();
    watching.settle();
    watching.searches.clear();
    while !watching.reads.is_empty() {
        assert!(
            watching.reads.len() <= READ_LIMIT,
            "{}",
            watching.reads.len()
        );
        watching.read(Some("up"), -1);
    }
    assert_eq!(watching.reported().len(), count);
    watching
}

#[test]
fn a_recheck_of_the_values_reads_a_bounded_number_at_a_time() {
    let mut watching = knowing(100);
    watching.core.recheck_watches(true, watching.now);
    // One that begins while the first is under way adds nothing to it.
    watching.core.recheck_watches(true, watching.now);
    watching.settle();
    let mut count = 0;
    while !watching.reads.is_empty() {
        assert!(
            watching.reads.len() <= READ_LIMIT,
            "{}",
            watching.reads.len()
        );
        watching.read(Some(if count == 0 { "new" } else { "up" }), -1);
        count += 1;
    }
    assert_eq!(count, 100);
    assert_eq!(watching.reported(), ["new"]);
    assert_eq!(watching.core.unread_watches().next(), None);
}

#[test]
fn values_of_which_one_is_gone_are_read_a_bounded_number_at_a_time() {
    let mut watching = knowing(100);
    watching.core.recheck_watches(false, watching.now);
    watching.settle();
    let token = watching.reads.pop_front().expect("an EXISTS");
    let replies = Ok(vec![Reply::Number(99)]);
    watching.core.handle_reply(token, replies, watching.now);
    watching.settle();
    let mut count = 0;
    while !watching.reads.is_empty() {
        assert!(
            watching.reads.len() <= READ_LIMIT,
            "{}",
            watching.reads.len()
        );
        match count {
            0 => watching.read(None, ABSENT),
            _ => watching.read(Some("up"), -1),
        }
        count += 1;
    }
    assert_eq!(count, 100);
    assert_eq!(watching.reported(), ["deleted"]);
}

#[test]
fn a_recheck_waits_for_the_room_of_its_watcher() {
    let mut watching = knowing(10);
    watching.core.watch_room(watching.watch, 3, watching.now);
    watching.core.recheck_watches(true, watching.now);
    watching.settle();
    assert_eq!(watching.reads.len(), 3);
    assert!(watching.core.unread_watches().next().is_some());
}

#[test]
fn a_large_value_is_read_on_its_own_connection_and_again_if_that_breaks() {
    let mut watching = Watching::new();
    let large: &'static str = "x".repeat(INLINE_LIMIT_BYTES + 1).leak();
    let is_bulk = |watching: &Watching| {
        let reads: Vec<bool> = watching
            .reads
            .iter()
            .map(|token| matches!(&token.0, Purpose::WatchRead(read) if read.bulk))
            .collect();
        assert_eq!(reads.len(), 1);
        reads[0]
    };
    watching.push("set");
    assert!(!is_bulk(&watching));
    watching.read(Some(large), -1);
    assert!(is_bulk(&watching));
    assert!(watching.reported().is_empty());

    let token = watching.reads.pop_front().expect("a read on its way");
    watching.core.handle_reply(token, Err(Lost), watching.now);
    watching.settle();
    watching.wake();
    assert!(!is_bulk(&watching));
    watching.read(Some(large), -1);
    assert!(is_bulk(&watching));
    watching.read(Some(large), -1);
    assert_eq!(watching.reported(), [large]);
    assert!(watching.reads.is_empty());
}
