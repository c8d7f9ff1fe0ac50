//! Events for subscribers: a bounded log, and a position in it for each reader.
//!
//! Publishing never waits for a reader. A reader that falls behind by more than the log holds loses the oldest events
//! and gets their number; it then reads the snapshot, which every topology event carries.

use crate::core::protocol::event::ClusterEvent;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// How many events are kept.
const CAPACITY: usize = 4096;

/// The latest events.
///
/// ```
/// use kumi_cluster::core::{Authority, ClusterEvent, EventStream, TimerInstant};
///
/// let mut stream = EventStream::default();
/// let mut subscription = stream.subscribe();
/// let authority = Authority::new("a:1")?;
/// stream.publish(ClusterEvent::QuarantineReleased { authority, observed_at: TimerInstant::ZERO });
/// assert_eq!(stream.drain(&mut subscription).count(), 1);
/// assert_eq!(stream.drain(&mut subscription).count(), 0);
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Debug, Default)]
pub struct EventStream {
    events: VecDeque<Arc<ClusterEvent>>,
    /// The number of the first event that is kept.
    first: u64,
}

/// A reader's place in the stream. Dropping it is all it takes to stop.
#[derive(Clone, Debug)]
pub struct Subscription {
    next: u64,
    lost: u64,
}

impl Subscription {
    /// How many events went by unread because the reader was too slow.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl EventStream {
    /// A place at the end of the stream: only what comes from now on is read.
    pub fn subscribe(&self) -> Subscription {
        Subscription {
            next: self.first + self.events.len() as u64,
            lost: 0,
        }
    }

    /// Adds an event.
    pub fn publish(&mut self, event: ClusterEvent) {
        if self.events.len() == CAPACITY {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(Arc::new(event));
    }

    /// Adds several.
    pub fn publish_all(&mut self, events: impl IntoIterator<Item = ClusterEvent>) {
        events.into_iter().for_each(|event| self.publish(event));
    }

    /// What this reader has not read yet.
    pub fn drain<'a>(
        &'a self,
        subscription: &mut Subscription,
    ) -> impl Iterator<Item = &'a Arc<ClusterEvent>> + use<'a> {
        let missed = self.first.saturating_sub(subscription.next);
        subscription.lost += missed;
        let place = subscription.next + missed - self.first;
        subscription.next = self.first + self.events.len() as u64;
        let skip = usize::try_from(place).unwrap_or(usize::MAX);
        self.events.iter().skip(skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::base::identity::Authority;
    use crate::core::base::time::TimerInstant;

    fn event(us: u64) -> ClusterEvent {
        ClusterEvent::QuarantineReleased {
            authority: Authority::new("a:1").expect("valid"),
            observed_at: TimerInstant::from_micros(us),
        }
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_and_is_told_how_many() {
        let mut stream = EventStream::default();
        let mut slow = stream.subscribe();
        stream.publish_all((0..CAPACITY as u64 + 10).map(event));
        let first = stream
            .drain(&mut slow)
            .next()
            .map(|event| (**event).clone());
        assert_eq!(first, Some(event(10)));
        assert_eq!(slow.lost(), 10);
        assert_eq!(stream.drain(&mut slow).count(), 0);
    }

    #[test]
    fn readers_have_places_of_their_own() {
        let mut stream = EventStream::default();
        let mut early = stream.subscribe();
        stream.publish(event(1));
        let mut late = stream.subscribe();
        stream.publish(event(2));
        assert_eq!(stream.drain(&mut early).count(), 2);
        assert_eq!(stream.drain(&mut late).count(), 1);
    }
}
