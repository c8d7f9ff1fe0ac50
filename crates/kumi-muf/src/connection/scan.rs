//! SCAN on one node. Never KEYS.

use redis::{RedisError, RedisResult, cmd};

use super::remote::Remote;
use crate::error::Error;

/// Keys that one SCAN looks at.
const SCAN_COUNT: usize = 1_000;

/// A pattern that no key matches: the question is only whether SCAN is permitted.
const NO_KEY: &str = "kumi:none";

/// The node's error if it does not permit a search. A node that does not reply is about to be reconnected.
pub(super) async fn search_refused(remote: &mut Remote) -> Option<String> {
    let searched = scan(remote, 0, NO_KEY).await;
    searched.err().as_ref().and_then(refusal)
}

/// The server's error; none if it cannot serve now, or is away.
pub(super) fn refusal(error: &RedisError) -> Option<String> {
    match error.code()? {
        "LOADING" | "BUSY" | "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN" => None,
        code => Some(format!("{code} {}", error.detail().unwrap_or_default())),
    }
}

/// What a command of a handle failed with.
pub(crate) fn trouble(server: &str, error: &RedisError) -> Error {
    match refusal(error) {
        Some(reason) => Error::refused(server, reason),
        None => Error::disconnected(server, None),
    }
}

/// One step: the next cursor, and keys. Keys that are not UTF-8 are left out.
pub(crate) async fn scan(
    remote: &mut Remote,
    cursor: u64,
    pattern: &str,
) -> RedisResult<(u64, Vec<String>)> {
    let mut step = cmd("SCAN");
    step.arg(cursor)
        .arg("MATCH")
        .arg(pattern)
        .arg("COUNT")
        .arg(SCAN_COUNT);
    let (next, keys): (u64, Vec<Vec<u8>>) = step.query_async(remote).await?;
    Ok((
        next,
        keys.into_iter()
            .filter_map(|key| String::from_utf8(key).ok())
            .collect(),
    ))
}
