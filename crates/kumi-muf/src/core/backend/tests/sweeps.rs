//! Sweeps while what is served changes: which lock they hold, what they look for, and when they give up. And how sweeps
//! and watches of one unit take turns.

use super::*;

/// The lock of a backend that serves `a.b` only.
const LOCK: &str = "MUF/_/KEEP/_sweep.a.b";

/// The lock of all searches.
const SEARCH_LOCK: &str = "MUF/_/KEEP/_search";

impl Serving {
    /// A core that serves `a.b`.
    fn of_a_b() -> Self {
        Self::with(Settings::default(), "a.b")
    }

    fn serve(&mut self, pattern: &str) -> ServiceId {
        let pattern = pattern.parse().expect("a pattern");
        self.core.serve(pattern, 4, self.now)
    }

    fn drain(&mut self, service: ServiceId) {
        self.core.drain(service);
        self.settle();
    }

    /// The search under way has found these keys, and has ended.
    fn end_search(&mut self, keys: &[&str]) {
        let token = self.searches.pop().expect("a search");
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        self.core
            .handle_found(token, &keys, SearchStep::Done, self.now);
        self.settle();
    }

    /// All commands that were sent since the last time.
    fn take_sent(&mut self) -> Vec<Command> {
        let sent = self.sent.drain(..);
        sent.flat_map(|(_, commands)| commands).collect()
    }
}

fn expire(key: &str, ttl_ms: u64) -> Command {
    Command::Expire {
        key: key.into(),
        ttl_ms,
    }
}

/// The keys that were marked as swept.
fn done(commands: &[Command]) -> Vec<String> {
    let marks = |command: &&Command| matches!(command, Command::Set { value, .. } if value.starts_with(b"done "));
    commands.iter().filter(marks).filter_map(set_key).collect()
}

#[test]
fn a_service_drained_while_the_lock_is_requested_is_not_swept_for() {
    let mut serving = Serving::of_a_b();
    while serving.locks.is_empty() {
        serving.wake();
    }
    serving.drain(ServiceId(1));
    serving.lock("back~1", 6_000);
    assert!(serving.searches.is_empty(), "{:?}", serving.globs);
    assert_eq!(serving.take_sent(), [expire(LOCK, 1)], "it is released");
    assert!(serving.is_idle());
}

#[test]
fn a_sweep_of_which_nothing_is_served_any_more_is_cancelled_and_its_locks_released() {
    let mut serving = Serving::of_a_b();
    serving.lock("back~1", 6_000);
    assert_eq!(serving.globs, ["MUF/*/REQ/a.b~*"]);
    serving.drain(ServiceId(1));
    assert_eq!(serving.cancelled, serving.searches);
    assert_eq!(
        serving.take_sent(),
        [expire(LOCK, 1), expire(SEARCH_LOCK, 1)]
    );
    assert!(serving.is_idle());
    // What it had found before it was cancelled leads to nothing.
    serving.end_search(&["MUF/me/REQ/a.b~1"]);
    assert_eq!(serving.take_sent(), []);
    assert!(serving.is_idle());
}

#[test]
fn a_sweep_keeps_its_lock_when_another_service_begins() {
    let mut serving = Serving::of_a_b();
    serving.lock("back~1", 6_000);
    serving.serve("c.d");
    let ttl_ms = Settings::default().sweep_lock_ms();
    for _ in 0..3 {
        serving.wake();
        let sent = serving.take_sent();
        assert!(sent.contains(&expire(LOCK, ttl_ms)), "{sent:?}");
        assert!(sent.contains(&expire(SEARCH_LOCK, ttl_ms)), "{sent:?}");
        assert_eq!(sent.len(), 2, "{sent:?}");
    }
    serving.end_search(&[]);
    assert_eq!(done(&serving.take_sent()), [LOCK]);
    // What the other service missed is swept for under the lock of both.
    serving.lock("back~1", 6_000);
    assert_eq!(serving.globs, ["MUF/*/REQ/a.b~*", "MUF/*/REQ/*"]);
    assert_eq!(serving.lock_keys[0], LOCK);
    assert_ne!(serving.lock_keys[1], LOCK);
}

#[test]
fn a_sweep_that_had_not_begun_when_a_service_began_is_of_both() {
    let mut serving = Serving::of_a_b();
    while serving.locks.is_empty() {
        serving.wake();
    }
    serving.serve("c.d");
    serving.lock("back~1", 6_000);
    assert!(serving.searches.is_empty());
    assert_eq!(serving.take_sent(), [expire(LOCK, 1)], "it is released");
    serving.lock("back~1", 6_000);
    assert_eq!(serving.globs, ["MUF/*/REQ/*"]);
}

#[test]
fn a_sweep_that_ignored_a_drained_service_does_not_count_for_others() {
    let mut serving = Serving::of_a_b();
    let other = serving.serve("c.d");
    serving.lock("back~1", 6_000);
    serving.drain(other);
    assert!(serving.cancelled.is_empty());
    serving.end_search(&["MUF/me/REQ/c.d~1"]);
    let sent = serving.take_sent();
    assert_eq!(done(&sent), Vec::<String>::new());
    let lock = &serving.lock_keys[0];
    assert!(sent.contains(&expire(lock, 1)), "{sent:?}");
}

#[test]
fn sweeps_and_watches_of_a_unit_search_one_after_the_other() {
    let mut serving = Serving::of_a_b();
    for pattern in ["x/*", "y/*"] {
        let watch = serving.core.watch(pattern.parse().expect("a pattern"));
        serving.core.watch_ready(watch);
        serving.settle();
        // A caller waits for the first search of a watch.
        serving.end_search(&[]);
    }
    serving.lock("back~1", 6_000);
    serving.end_search(&[]);
    serving.globs.clear();
    serving.take_sent();
    serving.core.handle_subscribed(serving.now);
    for number in 1..=3 {
        // The sweep waits for its own lock, so that it may come last.
        while serving.searches.is_empty() {
            serving.wake();
            if !serving.locks.is_empty() {
                serving.lock("back~1", 6_000);
            }
        }
        assert_eq!(serving.searches.len(), 1, "{:?}", serving.globs);
        assert_eq!(serving.globs.len(), number, "{:?}", serving.globs);
        serving.end_search(&[]);
    }
    serving.globs.sort_unstable();
    let all = ["MUF/*/REQ/a.b~*", "MUF/x/KEEP/*", "MUF/y/KEEP/*"];
    assert_eq!(serving.globs, all);
    assert!(serving.take_sent().contains(&expire(SEARCH_LOCK, 1)));
}

#[test]
fn a_watch_that_ends_or_begins_anew_cancels_its_search() {
    let mut serving = Serving::of_a_b();
    let watch = serving.core.watch("x/*".parse().expect("a pattern"));
    serving.core.watch_ready(watch);
    serving.settle();
    assert_eq!(serving.searches.len(), 1);
    serving.core.handle_subscribed(serving.now);
    serving.settle();
    assert_eq!(serving.cancelled, serving.searches);
    while serving.searches.len() < 2 {
        serving.wake();
    }
    serving.take_sent();
    serving.core.cancel_watch(watch);
    serving.settle();
    assert_eq!(serving.cancelled, serving.searches);
    assert_eq!(serving.take_sent(), [expire(SEARCH_LOCK, 1)]);
}
