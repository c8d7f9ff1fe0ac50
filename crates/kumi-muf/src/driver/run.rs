//! The task of a unit.
//!
//! A turn takes in everything that has happened (messages of handles, pushes and replies arrived, handlers returned, a timer
//! fired), hands it to the core, and carries out what the core wants; then one write per connection sends it all. So the
//! more is going on, the less each call costs. The task ends when all handles are gone or one of them closes the unit.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use kumi_redis::Event;
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};

use super::messages::{Message, Recipient, Report, Withdrawal};
use super::services::Ended;
use super::state::Driver;
use crate::core::{KeyError, Time};
use crate::traffic::TAP_GLOB;

/// Things of one kind handled in one turn, before the others get theirs.
const TURN_LIMIT: usize = 256;

/// How long a unit whose last handle was dropped tries to write what it has served.
const LAST_WRITE: Duration = Duration::from_secs(1);

impl Driver {
    /// Runs until the unit is closed or its last handle is dropped.
    pub(super) async fn run(
        mut self,
        mut messages: mpsc::Receiver<Message>,
        mut back: mpsc::UnboundedReceiver<Withdrawal>,
    ) {
        let mut alarm = Box::pin(sleep_until(self.clock.instant(Time(0))));
        let mut alarm_at = Time(0);
        loop {
            self.settle();
            // What was served last is written before the unit is gone.
            if self.is_closed() && !self.write_served() {
                break;
            }
            let at = self.next_alarm();
            if at != alarm_at {
                alarm_at = at;
                alarm.as_mut().reset(self.clock.instant(at));
            }
            // What was just decided goes out before anything else is looked at.
            poll_fn(|cx| {
                self.connections.flush(cx);
                Poll::Ready(())
            })
            .await;
            if self.connections.has_more() {
                // Handlers and callers that the last step woke get their turn, and their part of the next write.
                tokio::task::yield_now().await;
                self.take_in();
                self.drain_ready(&mut messages, &mut back);
                continue;
            }
            tokio::select! {
                has_arrived = self.connections.wait() => match has_arrived {
                    true => self.take_in(),
                    // A handle that sees a change of the connection finds it in the statistics too.
                    false => self.settle(),
                },
                message = messages.recv() => match message {
                    Some(message) => self.handle_message(message),
                    None => break,
                },
                Some(withdrawal) = back.recv() => self.withdrawn(withdrawal),
                Some(ended) = self.services.handlers.join_next_with_id(), if !self.services.handlers.is_empty() => {
                    self.handled(ended);
                }
                Some(report) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.reported(report.unwrap_or(Report::Nothing));
                }
                Some(found) = self.found.1.recv() => self.found(found),
                () = alarm.as_mut() => {
                    self.alarmed();
                    alarm_at = Time(0);
                }
            }
            self.drain_ready(&mut messages, &mut back);
        }
        // Of a unit whose last handle was dropped; one that is closed has nothing left.
        if self.write_served() {
            // Without a reply in time the numbers are lost, as with a lost connection.
            let _ = timeout(LAST_WRITE, self.replied()).await;
        }
        self.connections.close();
        if let Some(done) = self.closing.take() {
            let _ = done.send(());
        }
    }

    /// Waits until the server has replied to everything.
    async fn replied(&mut self) {
        while !self.connections.is_quiet() {
            poll_fn(|cx| {
                self.connections.flush(cx);
                Poll::Ready(())
            })
            .await;
            if self.connections.has_more() || self.connections.wait().await {
                self.take_in();
            }
            self.settle();
        }
    }

    /// Takes what else is ready, so that its commands share a write.
    fn drain_ready(
        &mut self,
        messages: &mut mpsc::Receiver<Message>,
        back: &mut mpsc::UnboundedReceiver<Withdrawal>,
    ) {
        while let Ok(withdrawal) = back.try_recv() {
            self.withdrawn(withdrawal);
        }
        for _ in 0..TURN_LIMIT {
            match messages.try_recv() {
                Ok(message) => self.handle_message(message),
                Err(_) => break,
            }
        }
        for _ in 0..TURN_LIMIT {
            match self.services.handlers.try_join_next_with_id() {
                Some(ended) => self.handled(ended),
                None => break,
            }
        }
        self.connections.run_remote_calls();
    }

    /// Takes in a step of what has arrived: pushes here, replies as events.
    fn take_in(&mut self) {
        let now = self.now();
        let (core, taps) = (&mut self.core, &mut self.taps);
        let mut last_tap_left = false;
        self.connections.take_in(|push| {
            // A push for the taps is one too many for the core, which has patterns of its own.
            let is_tapped = taps.are_used() && is_for_taps(push.pattern);
            match (std::str::from_utf8(push.key), is_tapped) {
                (Ok(key), true) => last_tap_left |= taps.show(key, push.event),
                (Ok(key), false) => core.handle_push(key, push.event, now),
                (Err(_), _) if push.event != "set" => {}
                (Err(_), is_tapped) => {
                    let key = String::from_utf8_lossy(push.key);
                    match is_tapped {
                        true => last_tap_left |= taps.show_ignored(&key, &KeyError::NotText),
                        false => core.handle_ignored(&key, KeyError::NotText),
                    }
                }
            }
        });
        while let Some(event) = self.connections.poll_event() {
            self.happened(event);
        }
        if last_tap_left {
            self.connections.unsubscribe(TAP_GLOB);
        }
    }

    fn happened(&mut self, event: Event<Recipient>) {
        match event {
            Event::Replied(Recipient::Core(token), replies) => {
                let now = self.now();
                self.core.handle_reply(token, replies, now);
            }
            Event::Replied(Recipient::Handle(reply), replies) => {
                let _ = reply.send(replies);
            }
            Event::Replied(Recipient::Served, replies) => {
                if let Some(reason) = self.services.first_refusal(replies) {
                    tracing::warn!(
                        reason,
                        "the server does not store what this unit has served"
                    );
                }
            }
            Event::Subscribed { again } => {
                self.stats.reconnects += u64::from(again);
                self.missed();
            }
            Event::Away => self.core.handle_unsubscribed(),
        }
    }

    fn handled(&mut self, ended: Ended) {
        let limit_bytes = self.settings.payload_limit_bytes;
        if let Some((job, outcome)) = self.services.ended(ended, limit_bytes) {
            let now = self.now();
            self.core.handle_finished(job, outcome, now);
        }
    }

    /// Carries out all that the core wants, and reports to it what failed at once.
    fn settle(&mut self) {
        loop {
            while let Some(output) = self.core.poll_output() {
                self.carry_out(output);
            }
            match self.connections.poll_event() {
                Some(event) => self.happened(event),
                None => {
                    self.make_room();
                    match self.core.poll_output() {
                        Some(output) => self.carry_out(output),
                        None => break,
                    }
                }
            }
        }
        let core = &self.core;
        let drains = &mut self.services.drains;
        let drained: Vec<_> = drains
            .extract_if(.., |(service, _)| core.is_drained(*service))
            .collect();
        for (service, done) in drained {
            self.remove_service(service);
            let _ = done.send(());
        }
    }

    /// Closing is done when all handlers have returned and all that was to be written is written.
    fn is_closed(&self) -> bool {
        let is_idle = || {
            let mut services = self.services.all.keys();
            services.all(|service| self.core.is_drained(*service))
        };
        self.closing.is_some() && self.connections.is_quiet() && is_idle()
    }
}

/// Whether the pattern that brought a push is that of the taps.
fn is_for_taps(pattern: &[u8]) -> bool {
    let prefix = pattern.strip_suffix(TAP_GLOB.as_bytes());
    prefix.is_some_and(|prefix| prefix.ends_with(b"__:"))
}
