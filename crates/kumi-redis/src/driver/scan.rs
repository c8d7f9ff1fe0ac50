//! SCAN on one node. Never KEYS.

use redis::{RedisError, RedisResult, cmd};

use super::exchange::Exchange;
use super::remote::Remote;
use crate::core::Trouble;

/// Keys that one SCAN looks at.
const SCAN_COUNT: usize = 1_000;

/// A pattern that no key matches: it only finds out whether SCAN is permitted.
const NO_KEY: &str = "kumi:none";

/// Why a step of a search failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The server does not permit it; this is its error.
    #[error("{0}")]
    Refused(String),
    /// The server cannot serve now, or is away.
    #[error("the server is away")]
    Away,
}

/// The server's error; none if it cannot serve now, or is away.
pub(super) fn refusal(error: &RedisError) -> Option<String> {
    let (code, detail) = (error.code()?, error.detail().unwrap_or_default());
    match Trouble::of(code, detail) {
        Some(Trouble::Later) => None,
        _ => Some(format!("{code} {detail}")),
    }
}

impl Remote {
    /// One step of a search: the next cursor, 0 at the end, and keys. Keys that are not UTF-8 are left out.
    pub async fn scan(
        &mut self,
        cursor: u64,
        pattern: &str,
    ) -> Result<(u64, Vec<String>), ScanError> {
        let mut step = cmd("SCAN");
        step.arg(cursor)
            .arg("MATCH")
            .arg(pattern)
            .arg("COUNT")
            .arg(SCAN_COUNT);
        let found: RedisResult<(u64, Vec<Vec<u8>>)> = self.query(&step).await;
        let (next, keys) = found.map_err(|error| match refusal(&error) {
            Some(reason) => ScanError::Refused(reason),
            None => ScanError::Away,
        })?;
        let keys = keys.into_iter();
        Ok((
            next,
            keys.filter_map(|key| String::from_utf8(key).ok()).collect(),
        ))
    }

    /// The node's error if it does not permit a search. A node that does not reply is about to be reconnected.
    pub(super) async fn search_refused(&mut self) -> Option<String> {
        match self.scan(0, NO_KEY).await {
            Err(ScanError::Refused(reason)) => Some(reason),
            Ok(_) | Err(ScanError::Away) => None,
        }
    }
}
