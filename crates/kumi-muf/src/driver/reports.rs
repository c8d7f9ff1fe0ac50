//! What follows when one of the driver's tasks has ended: subscriptions, and checks of the server's flags.

use kumi_redis::{EventsChecked, Subscribed};
use tokio::sync::oneshot;

use super::directory::Directory;
use super::messages::{After, Report, StartService, Withdrawal};
use super::notifications::{FLAGS, Generic, WATCH_FLAGS};
use super::schedule::THOROUGH_EVERY;
use super::services::{ServiceEntry, request_glob};
use super::state::Driver;
use crate::core::{KeepPattern, WatchId};
use crate::error::Error;
use crate::traffic::TAP_GLOB;

impl Driver {
    pub(super) fn reported(&mut self, report: Report) {
        match report {
            Report::Subscribed {
                globs,
                after,
                subscribed,
            } => self.subscription_ended(&globs, after, subscribed),
            Report::Rechecked(checked) => self.rechecked(&checked),
            Report::Nothing => {}
        }
    }

    fn subscription_ended(&mut self, globs: &[String], after: After, subscribed: Subscribed) {
        for glob in globs {
            if let Some(at) = self.subscribing.iter().position(|other| other == glob) {
                self.subscribing.swap_remove(at);
            }
        }
        let Subscribed {
            sends_events,
            search_refused,
            refused,
        } = subscribed;
        if matches!(after, After::Answers) {
            return self.answers_subscribed(globs, refused);
        }
        let first = refused.into_iter().map(|(_, reason)| reason).next();
        match search_refused.or(first) {
            Some(reason) => self.refused(after, reason),
            None => self.subscribed(after, sends_events),
        }
    }

    /// All connected nodes are subscribed to. `sends_events` says that they send the events that are needed.
    fn subscribed(&mut self, after: After, sends_events: bool) {
        match after {
            After::Directory => match self.directory.watch {
                Some(watch) => self.core.watch_ready(watch),
                // It was given up meanwhile.
                None => self.unsubscribe_directory(),
            },
            After::Serve(start) => self.serve(start),
            After::Watch(watch, reply) => self.watch_subscribed(watch, sends_events, reply),
            After::Tap(_, reply) => {
                let _ = reply.send(Ok(()));
            }
            After::Answers => {}
        }
    }

    /// What was to be served or watched cannot be subscribed to, or cannot be searched for and would be missed whenever a
    /// push is. Its patterns are given up: with them a node could not be connected again.
    fn refused(&mut self, after: After, reason: String) {
        let server = self.connections.server();
        let refused = || Error::refused(&server, reason.clone());
        match after {
            After::Serve(start) => {
                if !self.services.has_pattern(&start.pattern) {
                    self.give_up(&request_glob(&start.pattern));
                }
                let _ = start.reply.send(Err(refused()));
            }
            After::Watch(watch, reply) => {
                self.withdrawn(Withdrawal::Watch(watch));
                let _ = reply.send(Err(refused()));
            }
            After::Directory => {
                if let Some(watch) = self.directory.watch {
                    self.core.cancel_watch(watch);
                    self.directory.refuse(&server, &reason);
                }
                self.unsubscribe_directory();
            }
            After::Tap(tap, reply) => {
                if self.taps.remove(tap) {
                    self.give_up(TAP_GLOB);
                }
                let _ = reply.send(Err(refused()));
            }
            After::Answers => {}
        }
    }

    /// Forgets the list of units; the next request for it begins anew.
    pub(super) fn give_up_directory(&mut self) {
        if let Some(watch) = self.directory.watch {
            self.core.cancel_watch(watch);
        }
        self.directory = Directory::default();
        self.unsubscribe_directory();
    }

    /// Unsubscribes from what units say of themselves, unless a watch is over the same keys.
    fn unsubscribe_directory(&mut self) {
        let glob = KeepPattern::of_infos().key_glob();
        if !self.watches.need(&glob) {
            self.give_up(&glob);
        }
    }

    /// Answers of other backends are subscribed to. The patterns that were refused are given up, and those of services that
    /// are gone by now; the others stay.
    fn answers_subscribed(&mut self, globs: &[String], refused: Vec<(String, String)>) {
        let server = self.connections.server();
        let needed = self.services.answer_globs();
        for glob in globs.iter().filter(|glob| !needed.contains(glob)) {
            self.give_up(glob);
        }
        for (glob, reason) in refused {
            let error = Error::refused(&server, reason);
            tracing::warn!(%error, glob, "answers of other backends are not seen");
            self.give_up(&glob);
        }
    }

    /// Unsubscribes from a pattern, unless something else is subscribing to it: its own result decides then.
    pub(super) fn give_up(&mut self, glob: &str) {
        if !self.subscribing.iter().any(|other| other == glob) {
            self.connections.unsubscribe(glob);
        }
    }

    fn serve(&mut self, start: StartService) {
        let now = self.now();
        let StartService {
            pattern,
            places,
            answer_ttl_ms,
            handler_timeout,
            handler,
            reply,
        } = start;
        let service = self.core.serve(pattern.clone(), places, now);
        if let Some(ttl_ms) = answer_ttl_ms {
            self.core.set_answer_ttl(service, ttl_ms);
        }
        self.services.all.insert(
            service,
            ServiceEntry {
                pattern,
                handler,
                handler_timeout,
                draining: false,
            },
        );
        if self.services.watches_answers
            && let Some(served) = self.services.all.get(&service)
        {
            self.subscribe(vec![served.answer_glob()], After::Answers);
        }
        if reply.send(Ok(service)).is_err() {
            // Its receiver was dropped.
            self.remove_service(service);
        }
        self.show_services(true);
    }

    /// A watch's pattern is subscribed to. If deletions send no events, it is refused, or polled.
    fn watch_subscribed(
        &mut self,
        watch: WatchId,
        sends_events: bool,
        reply: oneshot::Sender<Result<WatchId, Error>>,
    ) {
        let notifications = &mut self.notifications;
        match (sends_events, notifications.poll) {
            (true, _) if notifications.generic == Generic::Unproven => {
                notifications.generic = Generic::Proven;
            }
            (true, _) => {}
            (false, Some(poll)) => {
                tracing::info!("the server sends no events of deletions; polling kept values");
                notifications.generic = Generic::Polled;
                self.connections.need_events(FLAGS);
                self.schedule.poll(poll);
            }
            (false, None) => {
                self.withdrawn(Withdrawal::Watch(watch));
                if self.watches.is_empty() {
                    self.connections.need_events(FLAGS);
                }
                let _ = reply.send(Err(Error::notifications(
                    &self.connections.server(),
                    WATCH_FLAGS,
                )));
                return;
            }
        }
        match reply.send(Ok(watch)) {
            Ok(()) => self.core.watch_ready(watch),
            // Its receiver was dropped.
            Err(_) => self.withdrawn(Withdrawal::Watch(watch)),
        }
    }

    /// The flags were checked. If events were missed, all that follows from that is done; if not, changes that send no
    /// event are looked for.
    fn rechecked(&mut self, checked: &EventsChecked) {
        let EventsChecked {
            mended,
            sends_events,
        } = *checked;
        self.notifications.is_checking = false;
        let news = mended || sends_events == self.notifications.are_missing;
        self.notifications.are_missing = !sends_events;
        if news {
            tracing::warn!(told = sends_events, "the server did not send all events");
            self.missed();
            return;
        }
        self.schedule.rechecks += 1;
        let thorough = !sends_events || self.schedule.rechecks.is_multiple_of(THOROUGH_EVERY);
        let now = self.now();
        self.core.recheck_watches(thorough, now);
    }
}
