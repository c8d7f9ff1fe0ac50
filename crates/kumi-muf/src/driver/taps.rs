//! Subscribers: every push of their pattern goes to each of them, or is made up for by a gap.

use std::time::Instant;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::core::{KeyError, why_ignored};
use crate::traffic::{KeyEvent, Traffic};

/// Names a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TapId(u64);

/// All taps of a unit.
#[derive(Default)]
pub(super) struct Taps {
    subscribers: Vec<Subscriber>,
    /// How many there were so far.
    count: u64,
}

struct Subscriber {
    id: TapId,
    events: mpsc::Sender<Traffic>,
    /// It owes a gap, because it was not read fast enough or the connection was lost.
    missed: bool,
}

impl Taps {
    pub(super) fn add(&mut self, events: mpsc::Sender<Traffic>) -> TapId {
        self.count += 1;
        let id = TapId(self.count);
        self.subscribers.push(Subscriber {
            id,
            events,
            missed: false,
        });
        id
    }

    /// Forgets a tap. True if none is left.
    pub(super) fn remove(&mut self, id: TapId) -> bool {
        self.subscribers.retain(|subscriber| subscriber.id != id);
        self.subscribers.is_empty()
    }

    /// Whether there was one at some time, so that pushes of their pattern may still come.
    pub(super) fn are_used(&self) -> bool {
        self.count > 0
    }

    /// Shows a push to all. True if it was the last one's last.
    pub(super) fn show(&mut self, key: &str, event: &str) -> bool {
        if self.subscribers.is_empty() {
            return false;
        }
        let traffic = match why_ignored(key) {
            Some(reason) if event == "set" => return self.show_ignored(key, &reason),
            Some(_) => return false,
            None => KeyEvent::of(key, event, Instant::now()).map(Traffic::Key),
        };
        traffic.is_some_and(|traffic| self.tell(&traffic))
    }

    /// Shows a key that no unit takes part in. True if it was the last one's last.
    pub(super) fn show_ignored(&mut self, key: &str, reason: &KeyError) -> bool {
        let (key, reason) = (key.to_owned(), reason.to_string());
        self.tell(&Traffic::Ignored { key, reason })
    }

    fn tell(&mut self, traffic: &Traffic) -> bool {
        if self.subscribers.is_empty() {
            return false;
        }
        self.subscribers
            .retain_mut(|subscriber| subscriber.tell(traffic));
        self.subscribers.is_empty()
    }

    /// Pushes may have been lost.
    pub(super) fn gap(&mut self) {
        for subscriber in &mut self.subscribers {
            subscriber.missed = subscriber.events.try_send(Traffic::Gap).is_err();
        }
    }
}

impl Subscriber {
    /// False if it has gone.
    fn tell(&mut self, traffic: &Traffic) -> bool {
        if self.missed {
            self.missed = self.events.try_send(Traffic::Gap).is_err();
        }
        if !self.missed {
            let sent = self.events.try_send(traffic.clone());
            self.missed = matches!(sent, Err(TrySendError::Full(_)));
        }
        !self.events.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_subscriber_gets_a_gap_for_what_it_missed() {
        let (events, mut seen) = mpsc::channel(2);
        let mut taps = Taps::default();
        taps.add(events);
        for id in ["a", "b", "c", "d"] {
            assert!(!taps.show(&format!("MUF/web/REQ/{id}"), "set"));
        }
        let mut next = || match seen.try_recv() {
            Ok(Traffic::Key(event)) => event.id,
            Ok(Traffic::Gap) => "gap".into(),
            Ok(Traffic::Ignored { key, .. }) => key,
            Err(_) => "nothing".into(),
        };
        assert_eq!([next(), next(), next()], ["a", "b", "nothing"]);
        taps.show("MUF/web/REQ/e", "set");
        assert_eq!([next(), next(), next()], ["gap", "e", "nothing"]);
        taps.show("MUF/web/REQ/f g", "set");
        taps.show("MUF/web/REQ/f g", "expired");
        assert_eq!([next(), next()], ["MUF/web/REQ/f g", "nothing"]);
        drop(seen);
        assert!(taps.show("MUF/web/REQ/f", "set"));
    }
}
