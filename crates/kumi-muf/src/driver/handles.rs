//! Messages of handles: calls, services, watches, values; and what they take back when they are dropped.

use super::calls::Pending;
use super::directory::Reply;
use super::messages::{
    After, Message, Recipient, Report, StartCall, StartGather, StartWatch, Withdrawal, Written,
};
use super::notifications::{Generic, WATCH_FLAGS};
use super::services::request_glob;
use super::state::{Driver, to_json, unix_ms};
use crate::core::{CallSpec, Command, GatherSpec, KeepPattern, OwnedId, RequestId, Time, ulid};
use crate::error::Error;
use crate::traffic::TAP_GLOB;
use kumi_redis::ScanError;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

impl Driver {
    /// A handle wants something.
    pub(super) fn handle_message(&mut self, message: Message) {
        let now = self.now();
        match message {
            Message::Call(start) => self.call(start, now),
            Message::Gather(start) => self.gather(start, now),
            Message::Serve(start) => {
                let glob = request_glob(&start.pattern);
                self.subscribe(vec![glob], After::Serve(start));
            }
            Message::Drain { service, done } => {
                if let Some(served) = self.services.all.get_mut(&service) {
                    served.draining = true;
                }
                self.core.drain(service);
                self.services.drains.push((service, done));
                self.show_services(false);
            }
            Message::Watch(start) => self.watch(start),
            Message::Own {
                id,
                value,
                ttl_ms,
                reply,
                written,
            } => {
                let owned = self.core.own(&id, value, ttl_ms, now);
                self.wait_for_write(owned, 1, written);
                if let Err(owned) = reply.send(owned) {
                    self.withdrawn(Withdrawal::Owned(owned));
                }
            }
            Message::ChangeOwned {
                owned,
                value,
                written,
            } => {
                if let Some(version) = self.core.change_owned(owned, value, now) {
                    self.wait_for_write(owned, version, written);
                }
            }
            Message::Run { commands, reply } => {
                let limit = self.settings.inline_limit_bytes;
                let is_large = |command: &Command| match command {
                    Command::Set { value, .. } => value.len() > limit,
                    Command::Read { limit_bytes, .. } => *limit_bytes > limit,
                    _ => false,
                };
                let bulk = commands.iter().any(is_large);
                self.connections
                    .send(Recipient::Handle(reply), commands, bulk);
            }
            Message::Units(reply) => self.list_units(reply),
            Message::UnitsProgress(reply) => {
                let _ = reply.send(self.directory.progress().load(Ordering::Relaxed));
            }
            Message::Barrier(reply) => self.barrier(reply),
            Message::Search { pattern, reply } => self.search_for_handle(pattern, reply),
            Message::Tap { events, reply } => {
                let tap = self.taps.add(events);
                self.subscribe(vec![TAP_GLOB.to_owned()], After::Tap(tap, reply));
            }
            Message::Stats(reply) => {
                let _ = reply.send(self.current_stats());
            }
            Message::Close(done) => {
                self.closing = Some(done);
                for (service, served) in &mut self.services.all {
                    served.draining = true;
                    self.core.drain(*service);
                }
                // A unit that takes no more requests should not be listed.
                if let Some((_, info, stats)) = self.info.take() {
                    self.core.retire_owned(info, now);
                    self.core.retire_owned(stats, now);
                }
            }
        }
    }

    /// Remembers a handle that waits until the server has a version of an owned value, and forgets those that have given up:
    /// while the server is away none of them is completed.
    fn wait_for_write(&mut self, owned: OwnedId, version: u64, written: Written) {
        self.writing.retain(|(.., written)| !written.is_closed());
        self.writing.push((owned, version, written));
    }

    fn call(&mut self, start: StartCall, now: Time) {
        if start.reply.is_closed() {
            return;
        }
        self.stats.calls += 1;
        let timeout_ms = start.timeout_ms.unwrap_or(self.settings.timeout_ms).max(1);
        let ttl_ms = start
            .ttl_ms
            .unwrap_or(self.settings.req_ttl_ms)
            .min(timeout_ms)
            .max(1);
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&start.target, false, &unique, self.settings.cluster);
        let meta = self.meta(start.traceparent.as_deref(), timeout_ms);
        let spec = CallSpec {
            id,
            payload: start.payload,
            ttl_ms,
            timeout_ms,
            meta,
        };
        let call = self.core.call(spec, now);
        self.calls.add_call(call, start.ticket, start.reply);
    }

    /// What stands beside a request, where units trace.
    fn meta(&self, traceparent: Option<&str>, timeout_ms: u64) -> Option<bytes::Bytes> {
        let deadline = unix_ms().saturating_add(timeout_ms);
        self.settings.tracing.then(|| {
            to_json(&serde_json::json!({ "traceparent": traceparent, "deadline": deadline }))
        })
    }

    fn gather(&mut self, start: StartGather, now: Time) {
        if start.answers.is_closed() {
            return;
        }
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&start.target, true, &unique, self.settings.cluster);
        let StartGather {
            ticket,
            payload,
            timeout_ms,
            ttl_ms,
            traceparent,
            count,
            quiet_ms,
            answers,
            ..
        } = start;
        let meta = self.meta(traceparent.as_deref(), timeout_ms);
        let gather = self.core.gather(
            GatherSpec {
                id,
                payload,
                timeout_ms,
                ttl_ms,
                meta,
                count,
                quiet_ms,
            },
            now,
        );
        self.calls.add_gather(gather, ticket, answers);
        if let Some(room) = self.calls.gather_room(gather) {
            self.core.gather_room(gather, room);
        }
    }

    fn watch(&mut self, start: StartWatch) {
        let glob = start.pattern.key_glob();
        let watch = self.core.watch(start.pattern.clone());
        self.watches.add(watch, start.pattern, start.events);
        let now = self.now();
        if let Some(room) = self.watches.room(watch) {
            self.core.watch_room(watch, room, now);
        }
        if self.notifications.generic != Generic::Polled {
            self.connections.need_events(WATCH_FLAGS);
        }
        self.subscribe(vec![glob], After::Watch(watch, start.reply));
    }

    fn list_units(&mut self, reply: Reply) {
        if reply.is_closed() {
            return;
        }
        self.directory.list(reply);
        if let Some(watch) = self.directory.watch {
            return self.core.watch_hurry(watch);
        }
        let pattern = KeepPattern::of_infos();
        let glob = pattern.key_glob();
        self.directory.watch = Some(self.core.watch(pattern));
        self.subscribe(vec![glob], After::Directory);
    }

    /// The error of what cannot be done because the server is away.
    fn disconnected(&self) -> Error {
        let reason = self.connections.away_reason();
        Error::disconnected(&self.connections.server(), reason.as_deref())
    }

    /// Pings every node, first where pushes come and then where replies come: what was sent before is taken in then.
    fn barrier(&mut self, reply: oneshot::Sender<Result<(), Error>>) {
        if !self.connections.all_up() {
            let _ = reply.send(Err(self.disconnected()));
            return;
        }
        let (remotes, server) = (self.connections.remotes(), self.connections.server());
        self.tasks.spawn(async move {
            for mut remote in remotes {
                if !remote.answers().await {
                    let _ = reply.send(Err(Error::disconnected(&server, None)));
                    return Report::Nothing;
                }
            }
            let _ = reply.send(Ok(()));
            Report::Nothing
        });
    }

    /// Searches for a handle, which gets all keys at once.
    fn search_for_handle(
        &mut self,
        pattern: String,
        reply: oneshot::Sender<Result<Vec<String>, Error>>,
    ) {
        if !self.connections.all_up() {
            let _ = reply.send(Err(self.disconnected()));
            return;
        }
        let (remotes, server) = (self.connections.remotes(), self.connections.server());
        self.tasks.spawn(async move {
            let mut all = Vec::new();
            for mut remote in remotes {
                let mut cursor = 0u64;
                loop {
                    match remote.scan(cursor, &pattern).await {
                        Ok((next, keys)) => {
                            all.extend(keys);
                            cursor = next;
                        }
                        Err(error) => {
                            let error = match error {
                                ScanError::Refused(reason) => Error::refused(&server, reason),
                                _ => Error::disconnected(&server, None),
                            };
                            let _ = reply.send(Err(error));
                            return Report::Nothing;
                        }
                    }
                    if cursor == 0 || reply.is_closed() {
                        break;
                    }
                }
            }
            all.sort_unstable();
            all.dedup();
            let _ = reply.send(Ok(all));
            Report::Nothing
        });
    }

    /// A handle was dropped.
    pub(super) fn withdrawn(&mut self, withdrawal: Withdrawal) {
        match withdrawal {
            Withdrawal::Ticket(ticket) => match self.calls.withdraw(ticket) {
                Some(Pending::Call(call)) => self.core.cancel_call(call),
                Some(Pending::Gather(gather)) => self.core.cancel_gather(gather),
                None => {}
            },
            Withdrawal::Watch(watch) => {
                self.core.cancel_watch(watch);
                // The list of units may be kept by the same keys.
                let is_listed = |glob: &String| {
                    self.directory.watch.is_some() && *glob == KeepPattern::of_infos().key_glob()
                };
                if let Some(glob) = self.watches.remove(watch).filter(|glob| !is_listed(glob)) {
                    self.connections.unsubscribe(&glob);
                }
            }
            Withdrawal::Owned(owned) => {
                self.core.release_owned(owned);
                self.writing.retain(|(other, ..)| *other != owned);
            }
            Withdrawal::Units => {
                if self.directory.is_abandoned() {
                    self.give_up_directory();
                }
            }
        }
    }
}
