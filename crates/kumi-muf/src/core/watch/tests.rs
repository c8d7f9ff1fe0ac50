//! What a watcher gets when events and reads overtake each other: they use two connections.

use super::*;
use crate::core::{Core, SearchStep, Settings, Token, UnitName};

const KEY: &str = "MUF/unit/KEEP/status";

/// A core with one watch whose snapshot is done, and what it reads and reports.
struct Watching {
    core: Core,
    reads: VecDeque<Token>,
    told: Vec<String>,
    now: Time,
}

impl Watching {
    fn new() -> Self {
        let unit = UnitName::new("web").expect("a name");
        let settings = Settings::default();
        let mut watching = Self {
            core: Core::new(unit, "1", settings, fastrand::Rng::with_seed(1)),
            reads: VecDeque::new(),
            told: Vec::new(),
            now: Time(1_000),
        };
        watching.core.handle_subscribed(watching.now);
        let watch = watching.core.watch("unit/*".parse().expect("a pattern"));
        watching.core.watch_ready(watch);
        watching.settle();
        assert_eq!(watching.reported(), ["live"]);
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
                Output::Run(op) => self.reads.push_back(op.token),
                Output::Search { token, .. } => {
                    self.core
                        .handle_found(token, &[], SearchStep::Done, self.now);
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
