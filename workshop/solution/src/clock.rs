//! en: Given. The time in milliseconds: the real one, or one that a test moves by hand.
//! ja: 実装済み。ミリ秒単位の時刻です。実際の時計か、テストが手で進める時計を使います。

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// en: Something that knows the time.
/// ja: 現在時刻を返すものです。
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// en: The real time: milliseconds since 1970 (a Unix timestamp).
    /// ja: 実際の時刻。1970 年からのミリ秒（Unix timestamp）です。
    pub fn system() -> Clock {
        Clock::new(|| match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis() as u64,
            Err(_) => 0,
        })
    }

    /// en: A time that only changes when the test says so.
    /// ja: テストが指示したときだけ進む時刻です。
    pub fn manual(time: Arc<AtomicU64>) -> Clock {
        Clock::new(move || time.load(Ordering::SeqCst))
    }

    /// en: A clock that calls `now`.
    /// ja: `now` を呼び出す時計です。
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// en: The time now, in milliseconds.
    /// ja: 現在時刻（ミリ秒）。
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}
