//! 実装済み。ミリ秒単位の時刻です。実際の時計か、テストが手で進める時計を使います。

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// 現在時刻を返すものです。
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// 実際の時刻。1970 年からのミリ秒（Unix timestamp）です。
    pub fn system() -> Clock {
        Clock::new(|| match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => since.as_millis() as u64,
            Err(_) => 0,
        })
    }

    /// テストが指示したときだけ進む時刻です。
    pub fn manual(time: Arc<AtomicU64>) -> Clock {
        Clock::new(move || time.load(Ordering::SeqCst))
    }

    /// `now` を呼び出す時計です。
    pub fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// 現在時刻（ミリ秒）。
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}
