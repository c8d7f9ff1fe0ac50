//! Watching kept values: a snapshot, then what changes, and a `Gap` whenever something may have been missed.
//!
//! An event of the server only says which key to read, except that it is gone. A value is reported only if it differs
//! from the last one reported: events and reads use two connections, so two events close together (a refresh and a
//! change, say) may both find the later value. A value's end is timed here, from its PTTL, and read once more before it
//! is reported: a server may expire a key later than its TTL says. A large value is read on the connection for those, after its
//! beginning among other commands has shown that it is large. Values that the protocol keeps for itself are not shown.
//!
//! A snapshot reads no more values than the watcher has room for; the others wait in `unread`. A watcher that was too
//! slow is shown the keys that are known here, without a search: the subscription has reported all others. Only after an
//! interrupted subscription is the keyspace searched again, after a random pause and when it is this unit's turn
//! (`turn.rs`), because all units of a server lose their subscriptions at once. A search that breaks off shows what it
//! found, completes nothing, and is made again a lease later.

mod pattern;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Search, SearchStep, SearchToken, Time};
use super::key::{Key, Status};
use super::output::{KeepEvent, Output, WatchId};
use super::settings::{INFO_LIMIT_BYTES, Settings};

pub use pattern::KeepPattern;

/// How long after its PTTL a value is read to see whether it is gone.
const EXPIRY_SLACK_MS: u64 = 2;

/// Reads of one watch that are under way at a time, where no event asks for them: each may be as large as a payload.
const READ_LIMIT: usize = 32;

/// Keys that one EXISTS asks for.
const CHECK_LIMIT: usize = 100;

/// What PTTL says of a key that is not there.
const ABSENT: i64 = -2;

/// By how much the known end of a value may be wrong: a slow round trip to the server.
const EXPIRY_DOUBT_MS: u64 = 20;

#[derive(Debug)]
struct Known {
    hash: u64,
    /// Of the read that showed it. What an earlier read says is older.
    number: u64,
    /// When it should be gone, and is looked at.
    expires: Option<Time>,
}

#[derive(Debug)]
struct Watch {
    pattern: KeepPattern,
    /// How much of a value is read, and how much of it among other commands.
    limit_bytes: usize,
    inline_limit_bytes: usize,
    known: HashMap<String, Known>,
    /// The number of the snapshot under way or done.
    snapshot: u64,
    /// Keys found so far by the snapshot under way; none once it is complete.
    found: Option<HashSet<String>>,
    /// Keys of the snapshot, or of a recheck of the values, whose reads have not been sent.
    unread: VecDeque<String>,
    /// Events that the watcher has room for; none is no bound. Zero until the driver has looked, for each snapshot.
    room: Option<usize>,
    /// When the search of the snapshot is wanted, if it is not yet.
    search_at: Option<Time>,
    /// The search of the snapshot waits for its turn.
    waits: bool,
    /// The search under way.
    search: Option<SearchToken>,
    /// The search under way or due has to wait for its turn, and leaves the server time for others.
    paced: bool,
    /// The search is over, reads are on their way.
    searched: bool,
    reading: usize,
    /// How many reads were sent: their numbers.
    reads: u64,
    /// Keys that went while reads were on their way, with the last read sent before that was known. What such a read
    /// says may be older than the end. Empty whenever nothing is being read.
    ended: HashMap<String, u64>,
    live: bool,
}

impl Watch {
    /// Reads a value and when it ends: of a large one only the beginning.
    fn read(&mut self, watch: u64, key: &str, now: Time) -> Output {
        self.read_as(watch, key, now, false)
    }

    /// The same, or the whole of a large value if `bulk`.
    fn read_as(&mut self, watch: u64, key: &str, now: Time, bulk: bool) -> Output {
        self.reading += 1;
        self.reads += 1;
        let limit_bytes = match bulk {
            true => self.limit_bytes,
            false => self.limit_bytes.min(self.inline_limit_bytes),
        };
        let commands = vec![
            Command::Read {
                key: key.to_owned(),
                limit_bytes,
            },
            Command::TimeToLive(key.to_owned()),
        ];
        let read = Read {
            watch,
            key: key.to_owned(),
            number: self.reads,
            sent: now,
            bulk,
        };
        Output::run_as(Purpose::WatchRead(read), commands, bulk)
    }

    /// Reads what waits to be read, as far as there is room for the values.
    fn read_on(&mut self, watch: u64, now: Time, out: &mut VecDeque<Output>) {
        let limit = self.room.map_or(READ_LIMIT, |room| room.min(READ_LIMIT));
        while self.reading < limit
            && let Some(key) = self.unread.pop_front()
        {
            out.push_back(self.read(watch, &key, now));
        }
    }

    /// Cancels the search under way.
    fn stop_search(&mut self, out: &mut VecDeque<Output>) {
        let token = self.search.take();
        out.extend(token.map(|token| Output::CancelSearch { token }));
    }

    /// Whether something newer is known than what this read says.
    fn is_outdated(&self, key: &str, number: u64) -> bool {
        let known = self.known.get(key);
        known.is_some_and(|known| known.number > number)
            || self.ended.get(key).is_some_and(|last| number <= *last)
    }
}

/// A read of a watched value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    watch: u64,
    key: String,
    /// Reads of one watch are numbered in the order they were sent.
    number: u64,
    sent: Time,
    /// The whole of a large value is read, on the connection for those.
    bulk: bool,
}

/// All watches of a unit.
#[derive(Debug)]
pub(crate) struct Watches {
    /// How much is read of a value that is not the protocol's own, and how much of it among other commands.
    limit_bytes: usize,
    inline_limit_bytes: usize,
    /// Keys of one EXISTS: on a cluster each is somewhere else.
    check_limit: usize,
    watches: HashMap<u64, Watch>,
    expiries: std::collections::BTreeSet<(Time, u64, String)>,
    next: u64,
    /// Longest pause before the search that follows an interrupted subscription.
    pause_ms: u64,
    /// Pause before a search that broke off is made again, without what `pause_ms` adds.
    retry_ms: u64,
    rng: fastrand::Rng,
}

impl Watches {
    /// No watches yet.
    pub(crate) fn new(settings: &Settings, rng: fastrand::Rng) -> Self {
        Self {
            limit_bytes: settings.payload_limit_bytes,
            inline_limit_bytes: settings.inline_limit_bytes,
            check_limit: if settings.cluster { 1 } else { CHECK_LIMIT },
            pause_ms: settings.lease_ms() / 8,
            retry_ms: settings.lease_ms(),
            rng,
            watches: HashMap::new(),
            expiries: std::collections::BTreeSet::new(),
            next: 0,
        }
    }

    pub(crate) fn begin(&mut self, pattern: KeepPattern) -> WatchId {
        self.next += 1;
        let limit_bytes = match pattern.is_reserved() {
            // What units say of themselves is no payload.
            true => INFO_LIMIT_BYTES,
            false => self.limit_bytes,
        };
        let watch = Watch {
            pattern,
            limit_bytes,
            inline_limit_bytes: self.inline_limit_bytes,
            known: HashMap::new(),
            snapshot: 0,
            found: None,
            unread: VecDeque::new(),
            room: None,
            search_at: None,
            waits: false,
            search: None,
            paced: false,
            searched: false,
            reading: 0,
            reads: 0,
            ended: HashMap::new(),
            live: false,
        };
        self.watches.insert(self.next, watch);
        WatchId(self.next)
    }

    /// Subscribed to this watch's pattern for the first time: takes a snapshot at once, because a caller waits for it.
    pub(crate) fn ready(&mut self, watch: WatchId, out: &mut VecDeque<Output>) {
        self.snapshot(watch.0, false, out);
    }

    /// A caller waits for a snapshot: one that is not urgent begins anew, at once.
    pub(crate) fn hurry(&mut self, watch: WatchId, out: &mut VecDeque<Output>) {
        let slow = |watch: &Watch| {
            let searches = watch.paced && watch.search.is_some();
            watch.search_at.is_some() || watch.waits || searches
        };
        if self.watches.get(&watch.0).is_some_and(slow) {
            self.snapshot(watch.0, false, out);
        }
    }

    /// How many events the watcher has room for now.
    pub(crate) fn room(
        &mut self,
        watch: WatchId,
        room: usize,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if let Some(entry) = self.watches.get_mut(&watch.0) {
            entry.room = Some(room);
            entry.read_on(watch.0, now, out);
        }
    }

    /// The watches whose snapshots wait for room.
    pub(crate) fn unread(&self) -> impl Iterator<Item = WatchId> {
        let waiting = self.watches.iter().filter(|(_, it)| !it.unread.is_empty());
        waiting.map(|(id, _)| WatchId(*id))
    }

    pub(crate) fn cancel(&mut self, watch: WatchId, out: &mut VecDeque<Output>) {
        if let Some(mut watch) = self.watches.remove(&watch.0) {
            watch.stop_search(out);
        }
        self.expiries.retain(|(_, owner, _)| *owner != watch.0);
    }

    /// All subscriptions stand again after they were broken. A watch that is not ready yet takes its snapshot then.
    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        let begun = self.watches.iter().filter(|(_, watch)| watch.snapshot > 0);
        let mut begun: Vec<u64> = begun.map(|(id, _)| *id).collect();
        begun.sort_unstable();
        for watch_id in begun {
            if self.watches.get(&watch_id).is_some_and(|watch| watch.live) {
                self.forget(watch_id, out);
            }
            let pause_ms = self.rng.u64(..=self.pause_ms);
            if let Some(watch) = self.watches.get_mut(&watch_id) {
                // What a search under way has found and not handed on is ignored.
                watch.stop_search(out);
                watch.snapshot += 1;
                watch.found = Some(HashSet::new());
                watch.unread.clear();
                watch.searched = false;
                watch.paced = true;
                if !watch.waits {
                    // One that is due later than any pause is a repetition.
                    let latest = now.plus(self.pause_ms);
                    let due = watch.search_at.filter(|due| *due <= latest);
                    watch.search_at = Some(due.unwrap_or(now.plus(pause_ms)));
                }
            }
        }
    }

    /// The watcher was too slow and lost events; shows it what is there now. The subscription was not interrupted, so
    /// the keys are known, or a search for them is under way or due.
    pub(crate) fn gap(&mut self, watch: WatchId, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.watches.get_mut(&watch.0) else {
            return;
        };
        let mut found = entry.found.take().unwrap_or_default();
        found.extend(entry.known.keys().cloned());
        let mut unread: Vec<String> = found.iter().cloned().collect();
        unread.sort_unstable();
        entry.unread = unread.into();
        entry.found = Some(found);
        entry.room = entry.room.map(|_| 0);
        self.forget(watch.0, out);
        if let Some(entry) = self.watches.get_mut(&watch.0) {
            entry.read_on(watch.0, now, out);
        }
        self.complete_if_done(watch.0, now, out);
    }

    /// Tells the watcher to forget what it knows, so that there is nothing to compare with.
    fn forget(&mut self, watch_id: u64, out: &mut VecDeque<Output>) {
        if let Some(watch) = self.watches.get_mut(&watch_id) {
            watch.live = false;
            watch.known.clear();
        }
        self.expiries.retain(|(_, owner, _)| *owner != watch_id);
        out.push_back(Output::Watched {
            watch: WatchId(watch_id),
            event: KeepEvent::Gap,
        });
    }

    /// Takes a new snapshot of each watch that has one: what differs from it is reported as a change.
    pub(crate) fn look_again(&mut self, out: &mut VecDeque<Output>) {
        for watch in self.idle() {
            self.snapshot(watch, false, out);
        }
    }

    /// Checks whether known values still exist, or (`values`) are still the same. FLUSHALL sends no event for each key. Keys
    /// that are not known are not searched for: that would be a search of the whole keyspace. A recheck whose reads are
    /// not done is not begun again.
    pub(crate) fn recheck(&mut self, values: bool, now: Time, out: &mut VecDeque<Output>) {
        for watch_id in self.idle() {
            let Some(watch) = self.watches.get_mut(&watch_id) else {
                continue;
            };
            if !watch.unread.is_empty() {
                continue;
            }
            let mut known: Vec<String> = watch.known.keys().cloned().collect();
            known.sort_unstable();
            if values {
                watch.unread = known.into();
                watch.read_on(watch_id, now, out);
                continue;
            }
            for keys in known.chunks(self.check_limit) {
                let purpose = Purpose::WatchCheck {
                    watch: watch_id,
                    keys: keys.to_vec(),
                };
                let commands = vec![Command::Exists(keys.to_vec())];
                out.push_back(Output::run(purpose, commands));
            }
        }
    }

    /// Handles the reply to EXISTS of known keys. If one of them is missing, all are read.
    pub(crate) fn checked(
        &mut self,
        watch_id: u64,
        keys: &[String],
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(watch) = self.watches.get_mut(&watch_id) else {
            return;
        };
        let Ok([Reply::Number(there)]) = replies.as_deref() else {
            return;
        };
        if usize::try_from(*there) != Ok(keys.len()) {
            watch.unread.extend(keys.iter().cloned());
            watch.read_on(watch_id, now, out);
        }
    }

    /// Watches whose snapshot is complete.
    fn idle(&self) -> Vec<u64> {
        let idle = |watch: &Watch| watch.live && watch.found.is_none();
        let watches = self.watches.iter().filter(|(_, watch)| idle(watch));
        let mut ids: Vec<u64> = watches.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    fn snapshot(&mut self, watch_id: u64, paced: bool, out: &mut VecDeque<Output>) {
        let Some(watch) = self.watches.get_mut(&watch_id) else {
            return;
        };
        watch.snapshot += 1;
        watch.found = Some(HashSet::new());
        watch.unread.clear();
        watch.room = watch.room.map(|_| 0);
        watch.search_at = None;
        watch.waits = false;
        watch.paced = paced;
        watch.searched = false;
        watch.stop_search(out);
        let token = SearchToken(Search::Watch(watch_id, watch.snapshot));
        watch.search = Some(token);
        out.push_back(Output::Search {
            token,
            pattern: watch.pattern.key_glob(),
            paced,
        });
    }

    pub(crate) fn found(
        &mut self,
        watch_id: u64,
        snapshot: u64,
        keys: &[String],
        step: SearchStep,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(watch) = self
            .watches
            .get_mut(&watch_id)
            .filter(|watch| watch.snapshot == snapshot)
        else {
            return;
        };
        for text in keys {
            let shown = Key::parse(text).is_some_and(|key| watch.pattern.matches(key.unit, key.id));
            if shown
                && watch
                    .found
                    .as_mut()
                    .is_some_and(|found| found.insert(text.clone()))
            {
                watch.unread.push_back(text.clone());
            }
        }
        watch.read_on(watch_id, now, out);
        match step {
            SearchStep::More => {}
            SearchStep::Done => {
                watch.searched = true;
                watch.search = None;
                self.complete_if_done(watch_id, now, out);
            }
            SearchStep::Failed => {
                watch.search = None;
                let pause_ms = self.retry_ms + self.rng.u64(..=self.pause_ms);
                watch.search_at = Some(now.plus(pause_ms));
            }
        }
    }

    /// The server sent an event on a KEEP key.
    pub(crate) fn pushed(
        &mut self,
        text: &str,
        event: &str,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(key) = Key::parse(text).filter(|key| key.status == Status::Keep) else {
            return;
        };
        for (&watch_id, watch) in &mut self.watches {
            if !watch.pattern.matches(key.unit, key.id) {
                continue;
            }
            match event {
                "del" | "expired" | "evicted" | "rename_from" | "move_from" => {
                    if let Some(found) = &mut watch.found {
                        found.remove(text);
                    }
                    if watch.reading > 0 {
                        watch.ended.insert(text.to_owned(), watch.reads);
                    }
                    if let Some(known) = watch.known.remove(text) {
                        if let Some(at) = known.expires {
                            self.expiries.remove(&(at, watch_id, text.to_owned()));
                        }
                        let event = gone(&key, event != "expired");
                        out.push_back(Output::Watched {
                            watch: WatchId(watch_id),
                            event,
                        });
                    }
                }
                _ => out.push_back(watch.read(watch_id, text, now)),
            }
        }
    }

    /// A value was read.
    pub(crate) fn read(
        &mut self,
        read: Read,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Read {
            watch: watch_id,
            key: text,
            number,
            sent,
            bulk,
        } = read;
        let text = &*text;
        let Some(watch) = self.watches.get_mut(&watch_id) else {
            return;
        };
        watch.reading = watch.reading.saturating_sub(1);
        if bulk && replies.is_err() {
            // The connection for large values may break alone: then no snapshot follows that would read the value again.
            let again_at = now.plus(self.retry_ms);
            self.expiries.insert((again_at, watch_id, text.to_owned()));
        }
        if let Some((value, ttl)) = replies.ok().and_then(value_and_ttl) {
            if watch.is_outdated(text, number) {
                watch.read_on(watch_id, now, out);
                return self.complete_if_done(watch_id, now, out);
            }
            let size_bytes = value.as_ref().map_or(0, Bytes::len);
            if !bulk
                && watch.limit_bytes > watch.inline_limit_bytes
                && size_bytes > watch.inline_limit_bytes
            {
                out.push_back(watch.read_as(watch_id, text, now, true));
                return;
            }
            let before = watch.known.remove(text);
            if let Some(at) = before.as_ref().and_then(|known| known.expires) {
                self.expiries.remove(&(at, watch_id, text.to_owned()));
            }
            let Some(key) = Key::parse(text) else { return };
            let event = match value {
                Some(value) => {
                    let mut hasher = DefaultHasher::new();
                    value.hash(&mut hasher);
                    let hash = hasher.finish();
                    let ttl_ms = u64::try_from(ttl).ok();
                    let expires = ttl_ms.map(|ttl_ms| sent.plus(ttl_ms + EXPIRY_SLACK_MS));
                    watch.known.insert(
                        text.to_owned(),
                        Known {
                            hash,
                            number,
                            expires,
                        },
                    );
                    self.expiries
                        .extend(expires.map(|at| (at, watch_id, text.to_owned())));
                    let news = before.is_none_or(|known| known.hash != hash);
                    let (unit, id) = (key.unit.to_owned(), key.id.to_owned());
                    let limit_bytes = watch.limit_bytes;
                    news.then_some(match value.len() > limit_bytes {
                        true => KeepEvent::TooLarge {
                            unit,
                            id,
                            limit_bytes,
                        },
                        false => KeepEvent::Value {
                            unit,
                            id,
                            value,
                            ttl_ms,
                        },
                    })
                }
                None => {
                    if watch.reading > 0 {
                        watch.ended.insert(text.to_owned(), number);
                    }
                    // Its end is known to a few milliseconds only; what is gone well before that was deleted.
                    let early = |at: Time| now.plus(EXPIRY_DOUBT_MS) < at;
                    before.map(|known| gone(&key, known.expires.is_none_or(early)))
                }
            };
            if let Some(event) = event {
                watch.room = watch.room.map(|room| room.saturating_sub(1));
                out.push_back(Output::Watched {
                    watch: WatchId(watch_id),
                    event,
                });
            }
        }
        watch.read_on(watch_id, now, out);
        self.complete_if_done(watch_id, now, out);
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let searches = self.watches.values().filter_map(|watch| watch.search_at);
        searches.chain(self.next_expiry()).min()
    }

    fn next_expiry(&self) -> Option<Time> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        let mut urgent = Vec::new();
        for (watch_id, watch) in &mut self.watches {
            if watch.search_at.take_if(|at| *at <= now).is_some() {
                match watch.paced {
                    true => watch.waits = true,
                    false => urgent.push(*watch_id),
                }
            }
        }
        urgent.sort_unstable();
        for watch_id in urgent {
            self.snapshot(watch_id, false, out);
        }
        while self.next_expiry().is_some_and(|at| at <= now) {
            let Some((_, watch_id, text)) = self.expiries.pop_first() else {
                return;
            };
            if let Some(watch) = self.watches.get_mut(&watch_id) {
                out.push_back(watch.read(watch_id, &text, now));
            }
        }
    }

    /// Whether a search waits for its turn.
    pub(crate) fn wants_turn(&self) -> bool {
        self.watches.values().any(|watch| watch.waits)
    }

    /// Whether a search that had to wait for its turn is under way.
    pub(crate) fn is_searching(&self) -> bool {
        let mut watches = self.watches.values();
        watches.any(|watch| watch.paced && watch.search.is_some())
    }

    /// It is this unit's turn to search: the oldest watch that waits does.
    pub(crate) fn take_turn(&mut self, out: &mut VecDeque<Output>) {
        let waiting = self.watches.iter().filter(|(_, watch)| watch.waits);
        if let Some(watch_id) = waiting.map(|(id, _)| *id).min() {
            self.snapshot(watch_id, true, out);
        }
    }

    /// Ends a snapshot whose search and reads are done: what it did not find is gone.
    fn complete_if_done(&mut self, watch_id: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(watch) = self.watches.get_mut(&watch_id) else {
            return;
        };
        if watch.reading > 0 {
            return;
        }
        watch.ended.clear();
        if !watch.searched || !watch.unread.is_empty() {
            return;
        }
        let Some(found) = watch.found.take() else {
            return;
        };
        let mut missing: Vec<String> = watch
            .known
            .keys()
            .filter(|key| !found.contains(*key))
            .cloned()
            .collect();
        missing.sort_unstable();
        // The search may have missed a key that was set while it ran, but its push made it known: these are read again.
        for text in missing {
            out.push_back(watch.read(watch_id, &text, now));
        }
        if !watch.live {
            watch.live = true;
            out.push_back(Output::Watched {
                watch: WatchId(watch_id),
                event: KeepEvent::Live,
            });
        }
    }
}

fn value_and_ttl(mut replies: Vec<Reply>) -> Option<(Option<Bytes>, i64)> {
    let ttl = replies.pop()?.number();
    let value = replies.pop()?;
    if value.refusal().is_some() {
        return None;
    }
    Some((value.into_held(ttl != ABSENT), ttl))
}

fn gone(key: &Key<'_>, deleted: bool) -> KeepEvent {
    let (unit, id) = (key.unit.to_owned(), key.id.to_owned());
    match deleted {
        true => KeepEvent::Deleted { unit, id },
        false => KeepEvent::Expired { unit, id },
    }
}
