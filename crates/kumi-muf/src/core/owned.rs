//! Kept values that a live unit owns: written, then kept from expiring, until they are released or the unit dies.
//!
//! A refresh is a PEXPIRE every third of the value's life, so watchers see no change. If the key is gone (a server lost
//! it), it is written again. A released value is not deleted: its TTL ends it.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::command::{Command, Purpose, Replies, Reply, Time};
use super::output::{Output, OwnedId};
use super::timers::Timers;

#[derive(Debug)]
struct Owned {
    key: String,
    value: Bytes,
    ttl_ms: u64,
    timer: Time,
}

/// All owned values of a unit.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    values: HashMap<u64, Owned>,
    timers: Timers,
    next: u64,
}

impl Owner {
    pub(crate) fn own(
        &mut self,
        key: String,
        value: Bytes,
        ttl_ms: u64,
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
                timer: now,
            },
        );
        self.write(self.next, now, out);
        OwnedId(self.next)
    }

    pub(crate) fn change(
        &mut self,
        owned: OwnedId,
        value: Bytes,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if let Some(entry) = self.values.get_mut(&owned.0) {
            entry.value = value;
            self.write(owned.0, now, out);
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

    fn write(&mut self, owned: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.values.get_mut(&owned) else {
            return;
        };
        let (key, value) = (entry.key.clone(), entry.value.clone());
        let commands = vec![Command::Set {
            key,
            value,
            ttl_ms: Some(entry.ttl_ms),
            only_new: false,
        }];
        out.push_back(Output::run(Purpose::OwnedWrite { owned }, commands));
        self.schedule(owned, now);
    }

    fn refresh(&mut self, owned: u64, now: Time, out: &mut VecDeque<Output>) {
        let Some(entry) = self.values.get(&owned) else {
            return;
        };
        let commands = vec![Command::Expire {
            key: entry.key.clone(),
            ttl_ms: entry.ttl_ms,
        }];
        out.push_back(Output::run(Purpose::OwnedRefresh { owned }, commands));
        self.schedule(owned, now);
    }

    fn schedule(&mut self, owned: u64, now: Time) {
        if let Some(entry) = self.values.get_mut(&owned) {
            entry.timer = now.plus((entry.ttl_ms / 3).max(1));
            self.timers.set(entry.timer, owned);
        }
    }

    /// A failed refresh is made up for by the next one, two thirds of the life before it is too late.
    pub(crate) fn refreshed(
        &mut self,
        owned: u64,
        replies: Replies,
        now: Time,
        out: &mut VecDeque<Output>,
    ) {
        if let Ok([Reply::Number(0)]) = replies.as_deref() {
            self.write(owned, now, out);
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
