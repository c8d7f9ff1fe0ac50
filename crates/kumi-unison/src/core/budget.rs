//! What a connection may hold: whole messages of its peer that wait or whose handlers run, and apart from them answers
//! that are not with the peer.
//!
//! All channels of a connection share its budgets. They only count; whoever is refused decides what that means: a request
//! is answered as busy, an event ends its stream, a long answer becomes a short error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes that may be held, and that are.
#[derive(Debug)]
pub(crate) struct Budget {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    /// Less than half of it is used again.
    eased: Notify,
}

impl Budget {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: AtomicUsize::new(0),
            eased: Notify::new(),
        }
    }

    /// Resolves when less than half of it is used.
    pub(crate) async fn ease(&self) {
        loop {
            let eased = self.eased.notified();
            tokio::pin!(eased);
            eased.as_mut().enable();
            if self.used_bytes() <= self.limit_bytes / 2 {
                return;
            }
            eased.await;
        }
    }

    /// Bytes held now.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// A single message is never too large, or a low limit would refuse it for ever.
    fn take(&self, bytes: usize) -> bool {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before + bytes <= self.limit_bytes;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        let half = self.limit_bytes / 2;
        let before = self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
        if before > half && before - bytes <= half {
            self.eased.notify_waiters();
        }
    }
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    /// Nothing yet.
    pub(crate) fn none(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// This many bytes, if the budget has them.
    pub(crate) fn of(budget: &Arc<Budget>, bytes: usize) -> Option<Self> {
        let mut charge = Self::none(budget);
        charge.grow(bytes).then_some(charge)
    }

    /// Takes more; false, and nothing changed, when there is no more.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Gives a part back.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.give_back(bytes);
    }
}

/// Bytes that are charged for as long as anybody has them.
struct Charged {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Charge {
    /// Ties this to bytes: it is given back when their last copy is gone.
    pub(crate) fn tie_to(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Charged {
            bytes,
            _charge: self,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_given_back() {
        let budget = Arc::new(Budget::new(100));
        let mut first = Charge::of(&budget, 60).unwrap();
        assert!(Charge::of(&budget, 41).is_none());
        let second = Charge::of(&budget, 40).unwrap();
        assert!(!first.grow(1));
        drop(second);
        assert!(first.grow(40));
        first.shrink(1_000);
        assert_eq!(budget.used_bytes(), 0);
        drop(first);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_charge_tied_to_bytes_lasts_as_long_as_they_do() {
        let budget = Arc::new(Budget::new(100));
        let bytes = Charge::of(&budget, 5)
            .unwrap()
            .tie_to(Bytes::from_static(b"bytes"));
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.used_bytes(), 5);
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn who_waits_for_ease_is_woken_by_what_is_given_back() {
        let budget = Arc::new(Budget::new(100));
        let first = Charge::of(&budget, 40).unwrap();
        let second = Charge::of(&budget, 40).unwrap();
        let eased = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.ease().await }
        });
        tokio::task::yield_now().await;
        assert!(!eased.is_finished());
        drop(first);
        eased.await.unwrap();
        drop(second);
    }

    #[test]
    fn one_message_alone_is_never_too_large() {
        let budget = Arc::new(Budget::new(10));
        let large = Charge::of(&budget, 1_000).unwrap();
        assert!(Charge::of(&budget, 1).is_none());
        drop(large);
        assert!(Charge::of(&budget, 1).is_some());
    }
}
