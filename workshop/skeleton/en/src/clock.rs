//! Given. The time in milliseconds: the real one, or one that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Something that knows the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The real time: milliseconds since 1970 (a Unix timestamp).
    pub fn system() -> Clock {
        Clock::new(|| match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis() as u64,
            Err(_) => 0,
        })
    }

    /// A time that only changes when the test says so.
    pub fn manual(time: Arc<AtomicU64>) -> Clock {
        Clock::new(move || time.load(Ordering::SeqCst))
    }

    /// A clock that calls `now`.
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The time now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}
