//! A model of a Redis server: keys with deadlines, and a memory that a restart can take away.
//!
//! It answers exactly the commands the core knows. It also watches for the one thing that must never happen.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use kumi_muf::core::{Command, Key, Reply, Status};

#[derive(Debug, Clone)]
struct Entry {
    value: Bytes,
    expires: Option<u64>,
}

/// What the server holds, and what it saw.
#[derive(Debug, Default)]
pub(crate) struct Server {
    keys: BTreeMap<String, Entry>,
    snapshot: BTreeMap<String, Entry>,
    pub(crate) up: bool,
    /// When writes were last lost.
    pub(crate) lost_writes_at: Option<u64>,
    /// When each request (`unit/id`) was written, and when it was written again because it was gone.
    requested: HashMap<String, u64>,
    pub(crate) rewritten: HashMap<String, Vec<u64>>,
    /// When each request (`unit/id`) was first answered.
    pub(crate) answered_at: HashMap<String, u64>,
    /// When each request was claimed, and by whom.
    pub(crate) claims: HashMap<String, Vec<(u64, String)>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            up: true,
            ..Self::default()
        }
    }

    /// Runs a command; the key whose `set` event goes to subscribers, if any.
    pub(crate) fn execute(&mut self, command: &Command, now: u64) -> (Reply, Option<String>) {
        match command {
            Command::Set {
                key,
                value,
                ttl_ms,
                only_new,
            } => {
                if *only_new && self.value(key, now).is_some() {
                    return (Reply::Nil, None);
                }
                let expires = ttl_ms.map(|ttl_ms| now + ttl_ms);
                self.keys.insert(
                    key.clone(),
                    Entry {
                        value: value.clone(),
                        expires,
                    },
                );
                self.observe(key, value, now);
                (Reply::Ok, Some(key.clone()))
            }
            Command::SetAgain { key, value } => match self.value(key, now).is_some() {
                true => {
                    self.keys.get_mut(key).expect("it is there").value = value.clone();
                    (Reply::Ok, Some(key.clone()))
                }
                false => (Reply::Nil, None),
            },
            Command::Read { key, limit_bytes } => {
                let value = self.value(key, now).cloned().unwrap_or_default();
                let read = value.slice(..value.len().min(limit_bytes + 1));
                (Reply::Value(read), None)
            }
            Command::Present(keys) => {
                let there = |(index, key): (usize, &String)| {
                    i64::from(self.value(key, now).is_some()) << index
                };
                (
                    Reply::Number(keys.iter().enumerate().map(there).sum()),
                    None,
                )
            }
            Command::Exists(keys) => {
                let there = keys
                    .iter()
                    .filter(|key| self.value(key, now).is_some())
                    .count();
                (Reply::Number(there as i64), None)
            }
            Command::Expire { key, ttl_ms } => match self.value(key, now).is_some() {
                true => {
                    self.keys.get_mut(key).expect("it is there").expires = Some(now + ttl_ms);
                    (Reply::Number(1), None)
                }
                false => (Reply::Number(0), None),
            },
            Command::TimeToLive(key) => {
                self.value(key, now);
                let left = match self.keys.get(key) {
                    None => -2,
                    Some(Entry { expires: None, .. }) => -1,
                    Some(Entry {
                        expires: Some(at), ..
                    }) => (at - now) as i64,
                };
                (Reply::Number(left), None)
            }
            Command::Increment(key) => {
                let old = self
                    .value(key, now)
                    .and_then(|value| std::str::from_utf8(value).ok()?.parse::<i64>().ok());
                let new = old.unwrap_or(0) + 1;
                let expires = self.keys.get(key).and_then(|entry| entry.expires);
                self.keys.insert(
                    key.clone(),
                    Entry {
                        value: new.to_string().into(),
                        expires,
                    },
                );
                (Reply::Number(new), None)
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    /// Keys that match one of the two globs the core searches with.
    pub(crate) fn search(&mut self, pattern: &str, now: u64) -> Vec<String> {
        let mut levels = pattern.split('/').skip(2);
        let (status, id) = (
            levels.next().expect("a status"),
            levels.next().expect("an id"),
        );
        // `*~all~*`, or a prefix and `*`.
        let (prefix, part) = match id.strip_prefix('*') {
            Some(part) => ("", part.trim_end_matches('*')),
            None => (id.trim_end_matches('*'), ""),
        };
        let matches = |text: &String| {
            Key::parse(text).is_some_and(|key| {
                let wanted = match status {
                    "REQ" => key.status == Status::Req,
                    _ => matches!(key.status, Status::Res | Status::Err),
                };
                wanted && key.id.starts_with(prefix) && key.id.contains(part)
            })
        };
        let alive = |entry: &Entry| entry.expires.is_none_or(|at| at > now);
        self.keys
            .iter()
            .filter(|(key, entry)| matches(key) && alive(entry))
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Makes what is there now survive a crash.
    pub(crate) fn save(&mut self) {
        self.snapshot = self.keys.clone();
    }

    /// Comes back with what was saved last, or with everything.
    pub(crate) fn restart(&mut self, loses: bool, now: u64) {
        self.up = true;
        if loses {
            self.keys = self.snapshot.clone();
            self.lost_writes_at = Some(now);
        }
    }

    pub(crate) fn value(&mut self, key: &str, now: u64) -> Option<&Bytes> {
        if self.keys.get(key)?.expires.is_some_and(|at| at <= now) {
            self.keys.remove(key);
            return None;
        }
        self.keys.get(key).map(|entry| &entry.value)
    }

    fn observe(&mut self, text: &str, value: &Bytes, now: u64) {
        let Some(key) = Key::parse(text) else { return };
        match key.status {
            Status::Res | Status::Err => {
                self.answered_at
                    .entry(format!("{}/{}", key.unit, key.id))
                    .or_insert(now);
            }
            Status::Req => {
                let name = format!("{}/{}", key.unit, key.id);
                if self.requested.insert(name.clone(), now).is_some() {
                    self.rewritten.entry(name).or_default().push(now);
                }
            }
            Status::Keep => {
                if let Some(id) = key.id.strip_suffix(".claim") {
                    let claimant = String::from_utf8_lossy(value).into_owned();
                    self.claims
                        .entry(format!("{}/{id}", key.unit))
                        .or_default()
                        .push((now, claimant));
                }
            }
            _ => {}
        }
    }
}
