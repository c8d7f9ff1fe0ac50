//! Kept values that a live unit owns: written, then kept from expiring, until they are released or the unit ends.
//!
//! A refresh is a PEXPIRE every third of the value's life, so watchers see no change. If the key is gone (a server lost
//! it), it is written again. A released value is not deleted: its TTL ends it.
//!
//! `_info` and `_stats` are shared: there may be two processes of one name, and the key is one. A shared value contains the
//! mark of the process that wrote it. A process reads such a value before it writes: its own value it refreshes, changes and
//! ends when it closes; the value of another process it leaves alone; where there is none it writes. So the last process that
//! had a new value to write represents all. The others notice at their next read, a third of the value's life apart, and from
//! then on read every fifteenth of it, so that one of them takes over soon after that process stopped.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Time};
use super::output::{CallError, Output, OwnedId};
use super::settings::INFO_LIMIT_BYTES;
use super::timers::Timers;

/// The TTL that ends a value: nothing is deleted.
const FAREWELL_MS: u64 = 1;

#[derive(Debug)]
struct Owned {
    key: String,
    value: Bytes,
    ttl_ms: u64,
    /// Other processes may write it too.
    shared: bool,
    /// The value was changed and is not written yet.
    changed: bool,
    /// Counts the values it was given. A write confirms one of them, and all before it.
    version: u64,
    /// The last write was lost or refused, and is to be made again.
    unwritten: bool,
    /// It is to be ended, if this process wrote it.
    retiring: bool,
    timer: Time,
}

/// All owned values of a unit.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Pause before a write that failed is made again.
    retry_ms: u64,
    /// What shared values of this process contain, and those of no other.
    mark: String,
    values: HashMap<u64, Owned>,
    timers: Timers,
    next: u64,
}

impl Owner {
    pub(crate) fn new(mark: &str, retry_ms: u64) -> Self {
        Self {
            retry_ms,
            mark: mark.to_owned(),
            values: HashMap::new(),
            timers: Timers::default(),
            next: 0,
        }
    }

    pub(crate) fn own(
        &mut self,
        key: String,
        value: Bytes,
        ttl_ms: u64,
        shared: bool,
        now: Time,
        out: &mut VecDeque<Output>,
    ) -> OwnedId {
        self.next += 1;
        self.values.insert(
            self.next,
            Owned {
                key,
                value,
                ttl_ms,
                shared,
                changed: false,
                version: 1,
                unwritten: false,
                retiring: false,
                timer: now,
            },
        );
        self.write(self.next, false, now, out);
        self.look_soon(self.next, now);
        OwnedId(self.next)
    }

    /// Writes another value, whichever process wrote last. Returns its version; none if it is not owned any more.
    pub(crate) fn change(
        &mut self,
        owned: OwnedId,
        value: Bytes,
        now: Time,
        out: &mut VecDeque<Output>,
    ) -> Option<u64> {
        let entry = self.values.get_mut(&owned.0)?;
        entry.value = value;
        entry.version += 1;
        let version = entry.version;
        self.write(owned.0, false, now, out);
        self.look_soon(owned.0, now);
        Some(version)
    }

    /// A value was written, or not. What was not is written again, until it is or another value takes its place.
    pub(crate) fn written(
        &mut self,
        owned: u64,
        version: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(entry) = self.values.get_mut(&owned) else {
            return;
        };
        let result = match replies.as_deref() {
            Ok([Reply::Refused(text)]) => Err(CallError::Refused(text.clone())),
            Ok(_) => Ok(()),
            Err(_) => Err(CallError::Disconnected),
        };
        if result.is_err() && !entry.shared && entry.version == version {
            entry.unwritten = true;
            entry.timer = now.plus(self.retry_ms.min(entry.ttl_ms / 3).max(1));
            self.timers.set(entry.timer, owned);
        }
        // A write that was lost is repeated before it is reported.
        if result != Err(CallError::Disconnected) {
            out.push_back(Output::OwnedWritten {
                owned: OwnedId(owned),
                version,
                result,
            });
        }
    }

    /// Writes another value unless another process represents this unit.
    pub(crate) fn update(
        &mut self,
        owned: OwnedId,
        value: Bytes,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if let Some(entry) = self.values.get_mut(&owned.0) {
            entry.value = value;
            entry.changed = true;
            self.refresh(owned.0, now, out);
        }
    }

    /// Ends a shared value, unless another process wrote it. It is not refreshed any more.
    pub(crate) fn retire(&mut self, owned: OwnedId, now: Time, out: &mut VecDeque<Output>) {
        if let Some(entry) = self.values.get_mut(&owned.0) {
            entry.retiring = true;
            self.refresh(owned.0, now, out);
        }
    }

    pub(crate) fn release(&mut self, owned: OwnedId) {
        self.values.remove(&owned.0);
    }

    pub(crate) fn subscribed(&mut self, now: Time, out: &mut VecDeque<Output>) {
        let mut values: Vec<u64> = self.values.keys().copied().collect();
        values.sort_unstable();
        for owned in values {
            self.refresh(owned, now, out);
        }
    }

    fn write(&mut self, owned: u64, only_new: bool, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.values.get_mut(&owned) else {
            return;
        };
        entry.changed = false;
        entry.unwritten = false;
        let version = entry.version;
        let (key, value) = (entry.key.clone(), entry.value.clone());
        let commands = vec![Command::Set {
            key,
            value,
            ttl_ms: Some(entry.ttl_ms),
            only_new,
        }];
        out.push_back(Output::run(
            Purpose::OwnedWrite { owned, version },
            commands,
        ));
        self.schedule(owned, now);
    }

    fn refresh(&mut self, owned: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.values.get(&owned) else {
            return;
        };
        if entry.unwritten {
            return self.write(owned, false, now, out);
        }
        let step = match entry.shared {
            true => (
                Purpose::OwnedLook { owned },
                Command::Read {
                    key: entry.key.clone(),
                    limit_bytes: INFO_LIMIT_BYTES,
                },
            ),
            false => (Purpose::OwnedRefresh { owned }, entry.extend()),
        };
        out.push_back(Output::run(step.0, vec![step.1]));
        self.schedule(owned, now);
    }

    fn schedule(&mut self, owned: u64, now: Time) {
        if let Some(entry) = self.values.get_mut(&owned) {
            entry.timer = now.plus((entry.ttl_ms / 3).max(1));
            self.timers.set(entry.timer, owned);
        }
    }

    /// If a value is shared, another process may begin or stop to represent the unit.
    fn look_soon(&mut self, owned: u64, now: Time) {
        if let Some(entry) = self.values.get_mut(&owned).filter(|entry| entry.shared) {
            entry.timer = now.plus((entry.ttl_ms / 15).max(1));
            self.timers.set(entry.timer, owned);
        }
    }

    /// Handles the reply to a refresh. One that failed left two thirds of the value's life, so the next one is in time.
    pub(crate) fn refreshed(
        &mut self,
        owned: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if let Ok([Reply::Number(0)]) = replies.as_deref() {
            self.write(owned, true, now, out);
        }
    }

    /// A shared value was read.
    pub(crate) fn looked(
        &mut self,
        owned: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        let Some(entry) = self.values.get_mut(&owned) else {
            return;
        };
        let read = replies.ok().and_then(|mut replies| replies.pop());
        // No process writes an empty description: an empty value counts as missing.
        let value = match read {
            None | Some(Reply::Refused(_)) => None,
            Some(reply) => Some(reply.into_filled()),
        };
        let is_ours = match &value {
            Some(Some(value)) => contains(value, self.mark.as_bytes()),
            _ => false,
        };
        if entry.retiring {
            let farewell = Command::Expire {
                key: entry.key.clone(),
                ttl_ms: FAREWELL_MS,
            };
            self.values.remove(&owned);
            if is_ours {
                out.push_back(Output::run(Purpose::Note, vec![farewell]));
            }
            return;
        }
        match value {
            // The read failed. The next one will tell.
            None => {}
            Some(None) => self.write(owned, true, now, out),
            Some(Some(_)) if is_ours && entry.changed => self.write(owned, false, now, out),
            Some(Some(_)) if is_ours => {
                let extend = entry.extend();
                out.push_back(Output::run(Purpose::Note, vec![extend]));
            }
            // The process that represents the unit may stop at any time.
            Some(Some(_)) => self.look_soon(owned, now),
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    pub(crate) fn timeout(&mut self, now: Time, out: &mut VecDeque<Output>) {
        while let Some((at, owned)) = self.timers.pop_due(now) {
            if self
                .values
                .get(&owned)
                .is_some_and(|entry| entry.timer == at)
            {
                self.refresh(owned, now, out);
            }
        }
    }
}

impl Owned {
    fn extend(&self) -> Command {
        Command::Expire {
            key: self.key.clone(),
            ttl_ms: self.ttl_ms,
        }
    }
}

fn contains(value: &[u8], mark: &[u8]) -> bool {
    !mark.is_empty() && value.windows(mark.len()).any(|part| part == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared value was read by a process marked `me`; `value` is what it found.
    fn check(prepare: impl FnOnce(&mut Owner, OwnedId), value: Option<&'static str>, then: &str) {
        let (mut owner, mut out) = (Owner::new("me", 100), VecDeque::new());
        let id = owner.own("k".into(), "by me".into(), 15_000, true, Time(0), &mut out);
        prepare(&mut owner, id);
        out.clear();
        let replies = Ok(vec![Reply::Value(Bytes::from(value.unwrap_or_default()))]);
        owner.looked(id.0, replies, Time(0), &mut out);
        let does = out.pop_front().map(|output| match output {
            Output::Run(op) => match &op.commands[..] {
                [
                    Command::Set {
                        value, only_new, ..
                    },
                ] => {
                    let text = String::from_utf8_lossy(value).into_owned();
                    format!("set {text}{}", if *only_new { " nx" } else { "" })
                }
                [Command::Expire { ttl_ms, .. }] => format!("expire {ttl_ms}"),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        });
        assert_eq!(does.unwrap_or_default(), then, "{value:?}");
    }

    #[test]
    fn a_process_touches_only_what_it_told_itself() {
        let nothing = |_: &mut Owner, _| {};
        check(nothing, Some("by me"), "expire 15000");
        check(nothing, None, "set by me nx");
        check(nothing, Some("by you"), "");
        let update = |owner: &mut Owner, id| {
            owner.update(id, "by me, new".into(), Time(0), &mut VecDeque::new());
        };
        check(update, Some("by me"), "set by me, new");
        check(update, Some("by you"), "");
        let retire = |owner: &mut Owner, id| owner.retire(id, Time(0), &mut VecDeque::new());
        check(retire, Some("by me"), "expire 1");
        check(retire, Some("by you"), "");
        check(retire, None, "");
    }

    #[test]
    fn a_process_that_is_silent_looks_more_often() {
        let (mut owner, mut out) = (Owner::new("me", 100), VecDeque::new());
        let id = owner.own("k".into(), "by me".into(), 15_000, true, Time(0), &mut out);
        let other = Ok(vec![Reply::Value("by you".into())]);
        let next_look = |owner: &mut Owner| loop {
            let at = owner.next_timeout().expect("a look");
            let mut looks = VecDeque::new();
            owner.timeout(at, &mut looks);
            if !looks.is_empty() {
                return at;
            }
        };
        // The first look is soon, because others that begin now write too.
        assert_eq!(next_look(&mut owner), Time(1_000));
        owner.looked(id.0, other, Time(1_001), &mut out);
        assert_eq!(next_look(&mut owner), Time(2_001));
        let ours = Ok(vec![Reply::Value("by me".into())]);
        owner.looked(id.0, ours, Time(2_002), &mut out);
        assert_eq!(next_look(&mut owner), Time(7_001));
    }

    #[test]
    fn a_value_is_written_until_the_server_has_it() {
        let (mut owner, mut out) = (Owner::new("me", 100), VecDeque::new());
        let id = owner.own("k".into(), "one".into(), 15_000, false, Time(0), &mut out);
        let version = owner.change(id, "two".into(), Time(1), &mut out);
        assert_eq!(version, Some(2));
        out.clear();
        owner.written(id.0, 1, Err(crate::core::Lost), Time(2), &mut out);
        assert!(out.is_empty(), "the second write makes up for the first");
        owner.written(id.0, 2, Err(crate::core::Lost), Time(3), &mut out);
        assert!(out.is_empty());
        owner.timeout(Time(103), &mut out);
        let Some(Output::Run(op)) = out.pop_front() else {
            panic!("it is written again");
        };
        assert!(matches!(&op.commands[..], [Command::Set { value, .. }] if value == "two"));
        owner.written(id.0, 2, Ok(vec![Reply::Ok]), Time(104), &mut out);
        let told = Output::OwnedWritten {
            owned: id,
            version: 2,
            result: Ok(()),
        };
        assert_eq!(out.pop_front(), Some(told));
    }
}
