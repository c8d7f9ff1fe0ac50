//! What handles ask for: calls, services, watches, values; and what they take back when they are dropped.

use super::ask::{After, Ask, CallAsk, GatherAsk, ServeAsk, WatchAsk, Withdrawal};
use super::engine::{Asked, Engine, Generic, Served, Watcher, to_json, unix_ms};
use super::pipelines::Recipient;
use super::{FLAGS, WATCH_FLAGS};
use crate::Error;
use crate::core::{CallSpec, GatherSpec, RequestId, ServiceId, Time, WatchId, ulid};
use crate::tap::TAP_GLOB;
use tokio::sync::oneshot;

impl Engine {
    /// A handle wants something.
    pub(super) fn asked(&mut self, ask: Ask) {
        let now = self.now();
        match ask {
            Ask::Call(ask) => self.call(ask, now),
            Ask::Gather(ask) => self.gather(ask, now),
            Ask::Serve(ask) => {
                self.subscribe(vec![request_glob(&ask)], After::Serve(ask));
            }
            Ask::Drain { service, done } => {
                if let Some(served) = self.services.get_mut(&service) {
                    served.draining = true;
                }
                self.core.drain(service);
                self.drains.push((service, done));
                self.tell_services(false);
            }
            Ask::Watch(ask) => self.watch(ask),
            Ask::Own {
                id,
                value,
                ttl_ms,
                reply,
                written,
            } => {
                let owned = self.core.own(&id, value, ttl_ms, now);
                self.writing.push((owned, 1, written));
                if let Err(owned) = reply.send(owned) {
                    self.withdrawn(Withdrawal::Owned(owned));
                }
            }
            Ask::ChangeOwned {
                owned,
                value,
                written,
            } => {
                if let Some(version) = self.core.change_owned(owned, value, now) {
                    self.writing.push((owned, version, written));
                }
            }
            Ask::Run { commands, reply } => self.send_pipeline(Recipient::Handle(reply), commands),
            Ask::Units(reply) => self.list_units(reply),
            Ask::Barrier(reply) => self.barrier(reply),
            Ask::Search { pattern, reply } => self.search_for_handle(pattern, reply),
            Ask::Tap { events, reply } => {
                self.taps.add(events);
                self.subscribe(vec![TAP_GLOB.to_owned()], After::Tap(reply));
            }
            Ask::Stats(reply) => {
                let _ = reply.send(self.current_stats());
            }
            Ask::Close(done) => {
                self.closing = Some(done);
                for (service, served) in &mut self.services {
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

    fn call(&mut self, ask: CallAsk, now: Time) {
        if ask.reply.is_closed() {
            return;
        }
        self.stats.calls += 1;
        let timeout_ms = ask.timeout_ms.unwrap_or(self.settings.timeout_ms).max(1);
        let ttl_ms = ask
            .ttl_ms
            .unwrap_or(self.settings.req_ttl_ms)
            .min(timeout_ms)
            .max(1);
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&ask.target, false, &unique, self.settings.cluster);
        let meta = self.meta(ask.traceparent.as_deref(), timeout_ms);
        let spec = CallSpec {
            id,
            payload: ask.payload,
            ttl_ms,
            timeout_ms,
            meta,
        };
        let call = self.core.call(spec, now);
        self.calls.insert(call, (ask.ticket, ask.reply));
        self.tickets.insert(ask.ticket, Asked::Call(call));
    }

    /// What stands beside a request, where units trace.
    fn meta(&self, traceparent: Option<&str>, timeout_ms: u64) -> Option<bytes::Bytes> {
        let deadline = unix_ms().saturating_add(timeout_ms);
        self.settings.tracing.then(|| {
            to_json(&serde_json::json!({ "traceparent": traceparent, "deadline": deadline }))
        })
    }

    fn gather(&mut self, ask: GatherAsk, now: Time) {
        if ask.answers.is_closed() {
            return;
        }
        let unique = ulid(unix_ms(), &mut self.rng);
        let id = RequestId::new(&ask.target, true, &unique, self.settings.cluster);
        let GatherAsk {
            ticket,
            payload,
            timeout_ms,
            ttl_ms,
            traceparent,
            count,
            quiet_ms,
            answers,
            ..
        } = ask;
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
        self.gathers.insert(gather, (ticket, answers));
        self.tickets.insert(ticket, Asked::Gather(gather));
    }

    fn watch(&mut self, ask: WatchAsk) {
        let glob = ask.pattern.key_glob();
        let watch = self.core.watch(ask.pattern.clone());
        self.watchers.insert(
            watch,
            Watcher {
                events: ask.events,
                overflowed: false,
            },
        );
        self.keep_patterns.insert(watch, ask.pattern);
        if self.generic != Generic::Polled {
            self.flags = WATCH_FLAGS;
        }
        self.subscribe(vec![glob], After::Watch(watch, ask.reply));
    }

    /// What was to be served or watched cannot be searched for, and would be missed whenever a push is.
    pub(super) fn refused(&mut self, after: After, text: String) {
        let error = Error::Refused(text);
        match after {
            After::Serve(ask) => {
                let glob = request_glob(&ask);
                let mut others = self.services.values();
                if !others.any(|served| served.pattern == ask.pattern) {
                    self.unsubscribe(&glob);
                }
                let _ = ask.reply.send(Err(error));
            }
            After::Watch(watch, reply) => {
                self.withdrawn(Withdrawal::Watch(watch));
                let _ = reply.send(Err(error));
            }
            After::Directory => {
                if let Error::Refused(text) = error {
                    self.directory_subscribed(Some(text));
                }
            }
            After::Tap(_) | After::Nothing => {}
        }
    }

    /// Forgets a service, and unsubscribes from what only that one served.
    pub(super) fn remove_service(&mut self, service: ServiceId) {
        self.core.remove_service(service);
        let Some(removed) = self.services.remove(&service) else {
            return;
        };
        let mut others = self.services.values();
        if others.any(|served| served.pattern == removed.pattern) {
            return;
        }
        for glob in [removed.request_glob(), removed.answer_glob()] {
            if self.patterns.contains(&glob) {
                self.unsubscribe(&glob);
            }
        }
    }

    /// A watch's pattern is subscribed to. If deletions send no events, it is refused, or polled.
    pub(super) fn watch_subscribed(
        &mut self,
        watch: WatchId,
        told: bool,
        reply: oneshot::Sender<Result<WatchId, Error>>,
    ) {
        match (told, self.poll) {
            (true, _) if self.generic == Generic::Unproven => self.generic = Generic::Proven,
            (true, _) => {}
            (false, Some(poll)) => {
                tracing::info!("the server sends no events of deletions; polling kept values");
                self.generic = Generic::Polled;
                self.flags = FLAGS;
                self.upkeep.poll(poll);
            }
            (false, None) => {
                self.withdrawn(Withdrawal::Watch(watch));
                if self.keep_patterns.is_empty() {
                    self.flags = FLAGS;
                }
                let need = WATCH_FLAGS.to_owned();
                let _ = reply.send(Err(Error::Notifications { need }));
                return;
            }
        }
        match reply.send(Ok(watch)) {
            Ok(()) => self.core.watch_ready(watch),
            // Its receiver was dropped.
            Err(_) => self.withdrawn(Withdrawal::Watch(watch)),
        }
    }

    pub(super) fn serve(&mut self, ask: ServeAsk) {
        let now = self.now();
        let ServeAsk {
            pattern,
            places,
            answer_ttl_ms,
            handler_timeout,
            handler,
            reply,
        } = ask;
        let service = self.core.serve(pattern.clone(), places, now);
        if let Some(ttl_ms) = answer_ttl_ms {
            self.core.set_answer_ttl(service, ttl_ms);
        }
        self.services.insert(
            service,
            Served {
                pattern,
                handler,
                handler_timeout,
                draining: false,
            },
        );
        if self.watches_answers {
            self.watch_answers();
        }
        if reply.send(Ok(service)).is_err() {
            // Its receiver was dropped.
            self.remove_service(service);
        }
        self.tell_services(true);
    }

    /// A handle was dropped.
    pub(super) fn withdrawn(&mut self, withdrawal: Withdrawal) {
        match withdrawal {
            Withdrawal::Ticket(ticket) => match self.tickets.remove(&ticket) {
                Some(Asked::Call(call)) => {
                    self.calls.remove(&call);
                    self.core.cancel_call(call);
                }
                Some(Asked::Gather(gather)) => {
                    self.gathers.remove(&gather);
                    self.core.cancel_gather(gather);
                }
                None => {}
            },
            Withdrawal::Watch(watch) => {
                self.watchers.remove(&watch);
                self.core.cancel_watch(watch);
                if let Some(pattern) = self.keep_patterns.remove(&watch) {
                    let glob = pattern.key_glob();
                    if !self
                        .keep_patterns
                        .values()
                        .any(|other| other.key_glob() == glob)
                    {
                        self.unsubscribe(&glob);
                    }
                }
            }
            Withdrawal::Owned(owned) => {
                self.core.release_owned(owned);
                self.writing.retain(|(other, ..)| *other != owned);
            }
        }
    }
}

/// The keys of requests that a service would take.
fn request_glob(ask: &ServeAsk) -> String {
    format!("MUF/*/REQ/{}", ask.pattern.id_glob())
}
