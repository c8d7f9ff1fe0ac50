//! `rbs` and `rbp` of CLIENT LIST: how large Redis would keep a client's first output buffer.
//!
//! Redis gives every client a buffer of its own, halves it while the client needs less than half of
//! it, and doubles it when it was full. kumi's chunks come from a pool, and an idle client holds
//! none; operators and tests still read these two figures, so they follow Redis's rule. What fits into this buffer does not
//! count for `client-output-buffer-limit`, as in Redis.

/// The largest buffer, which a new client has.
const LARGEST: usize = 16 * 1024;
const SMALLEST: usize = 1024;
/// The smallest block of the list behind the buffer.
const BLOCK: u64 = 16 * 1024;
/// How long a peak counts.
const PEAK_MS: u64 = 5000;

/// What DEBUG REPLYBUFFER sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResizePolicy {
    pub(crate) enabled: bool,
    /// A peak counts for this long; none means for ever.
    pub(crate) peak_ms: Option<u64>,
}

impl Default for ResizePolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            peak_ms: Some(PEAK_MS),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyBuffer {
    size: usize,
    peak: usize,
    peak_since_ms: u64,
}

impl ReplyBuffer {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            size: LARGEST,
            peak: LARGEST,
            peak_since_ms: now_ms,
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// How many bytes may wait for the client under a limit of `client-output-buffer-limit`.
    #[inline]
    pub(crate) fn allowed_output(&self, limit_bytes: u64) -> usize {
        allowed_output(self.size, limit_bytes)
    }

    /// The same for a client with the smallest buffer.
    pub(crate) fn least_allowed_output(limit_bytes: u64) -> usize {
        allowed_output(SMALLEST, limit_bytes)
    }

    /// This much output waits now.
    #[inline]
    pub(crate) fn note(&mut self, pending: usize) {
        self.peak = self.peak.max(pending.min(self.size));
    }

    /// One look of the cron at a client with `pending` bytes waiting.
    pub(crate) fn resize(&mut self, policy: ResizePolicy, pending: usize, now_ms: u64) {
        if !policy.enabled {
            return;
        }
        let mut size = self.size;
        if size / 2 >= SMALLEST && self.peak < size / 2 {
            size = SMALLEST.max(self.peak + 1);
        } else if size < LARGEST && self.peak == size {
            size = LARGEST.min(size * 2);
        }
        let age_ms = now_ms.saturating_sub(self.peak_since_ms);
        if policy.peak_ms.is_some_and(|limit_ms| age_ms > limit_ms) {
            self.peak = pending.min(self.size);
            self.peak_since_ms = now_ms;
        }
        self.size = size;
    }
}

/// A limit bounds the list of blocks behind the first buffer. Each block counts with its whole size, so that a limit of one
/// block or less allows none.
fn allowed_output(buffer_bytes: usize, limit_bytes: u64) -> usize {
    if limit_bytes <= BLOCK {
        return buffer_bytes;
    }
    let list_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
    list_bytes.saturating_add(buffer_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_what_does_not_fit_into_the_buffer() {
        let mut buffer = ReplyBuffer::new(0);
        assert_eq!(buffer.allowed_output(1), LARGEST);
        assert_eq!(buffer.allowed_output(BLOCK), LARGEST);
        assert_eq!(buffer.allowed_output(33_000), 33_000 + LARGEST);
        assert_eq!(buffer.allowed_output(u64::MAX), usize::MAX);
        let policy = ResizePolicy {
            enabled: true,
            peak_ms: Some(0),
        };
        buffer.resize(policy, 0, 1);
        buffer.resize(policy, 0, 2);
        for limit_bytes in [1, 33_000] {
            let least = ReplyBuffer::least_allowed_output(limit_bytes);
            assert_eq!(buffer.allowed_output(limit_bytes), least);
        }
    }

    #[test]
    fn an_idle_client_shrinks_and_a_busy_one_grows_back() {
        let policy = ResizePolicy {
            enabled: true,
            peak_ms: Some(100),
        };
        let mut buffer = ReplyBuffer::new(0);
        buffer.resize(policy, 0, 50);
        assert_eq!((buffer.size(), buffer.peak()), (LARGEST, LARGEST));
        buffer.resize(policy, 0, 150);
        assert_eq!((buffer.size(), buffer.peak()), (LARGEST, 0));
        buffer.resize(policy, 0, 200);
        assert_eq!(buffer.size(), SMALLEST);
        let forever = ResizePolicy {
            peak_ms: None,
            ..policy
        };
        for size in [2048, 4096, 8192, LARGEST, LARGEST] {
            buffer.note(32 * 1024);
            buffer.resize(forever, 0, 300);
            assert_eq!(buffer.size(), size);
        }
    }

    #[test]
    fn nothing_moves_while_resizing_is_off() {
        let policy = ResizePolicy {
            enabled: false,
            peak_ms: Some(0),
        };
        let mut buffer = ReplyBuffer::new(0);
        buffer.resize(policy, 0, 10_000);
        buffer.resize(policy, 0, 20_000);
        assert_eq!((buffer.size(), buffer.peak()), (LARGEST, LARGEST));
    }
}
