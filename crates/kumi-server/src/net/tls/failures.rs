//! The log of handshakes that failed: a stranger must not be able to fill the disk with it.

/// Lines in one second. Further failures are counted, and the count is in the next second's first line.
const LINES_PER_SECOND: u32 = 5;
const SECOND_NS: u64 = 1_000_000_000;

/// What was logged lately.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    second: u64,
    lines: u32,
    unlogged: u64,
}

impl Failures {
    /// Whether a failure at this reading of the steady clock is to be logged, and how many before it were not.
    fn admit(&mut self, now_ns: u64) -> Option<u64> {
        let second = now_ns / SECOND_NS;
        if second != self.second {
            (self.second, self.lines) = (second, 0);
        }
        if self.lines == LINES_PER_SECOND {
            self.unlogged += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Logs why a client's handshake failed. The reason may quote what the client sent, so it is escaped.
    pub(crate) fn log(&mut self, now_ns: u64, client: &str, reason: &str) {
        if let Some(unlogged) = self.admit(now_ns) {
            let reason = reason.escape_debug();
            tracing::warn!(client, %reason, unlogged, "Error accepting a client connection");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gets_a_few_lines_and_a_count() {
        let mut failures = Failures::default();
        let flood = (0..1000).filter_map(|_| failures.admit(7 * SECOND_NS));
        assert_eq!(
            flood.collect::<Vec<_>>(),
            vec![0; LINES_PER_SECOND as usize]
        );
        assert_eq!(
            failures.admit(8 * SECOND_NS),
            Some(1000 - u64::from(LINES_PER_SECOND))
        );
        assert_eq!(failures.admit(8 * SECOND_NS), Some(0));
    }
}
