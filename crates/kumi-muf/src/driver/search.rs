//! Searching the keyspace with SCAN, on every primary. Never KEYS, and paced unless a caller waits.

use std::time::Duration;

use redis::{RedisError, RedisResult, cmd};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::ask::{Found, Report};
use super::engine::Engine;
use super::remote::Remote;
use crate::Error;
use crate::core::{SearchStep, SearchToken};

/// Keys that one SCAN looks at.
const SCAN_COUNT: usize = 1_000;

/// After each step, a search without a waiting caller pauses for this many times the step's duration.
const PACE: u32 = 20;
const PACE_FLOOR: Duration = Duration::from_millis(2);

impl Engine {
    /// Searches for the core. The keys go to it in batches.
    pub(super) fn search(&mut self, token: SearchToken, pattern: String, paced: bool) {
        let (remotes, found) = (self.fleet.remotes(), self.found.0.clone());
        let mut end = match self.fleet.all_up() {
            true => SearchStep::Done,
            false => SearchStep::Failed,
        };
        self.tasks.spawn(async move {
            for mut remote in remotes {
                let mut cursor = 0u64;
                loop {
                    let began = Instant::now();
                    let Ok((next, keys)) = scan(&mut remote, cursor, &pattern).await else {
                        end = SearchStep::Failed;
                        break;
                    };
                    if !keys.is_empty()
                        && found
                            .send(Found {
                                token,
                                keys,
                                step: SearchStep::More,
                            })
                            .await
                            .is_err()
                    {
                        return Report::Nothing;
                    }
                    cursor = next;
                    if cursor == 0 {
                        break;
                    }
                    if paced {
                        sleep((began.elapsed() * PACE).max(PACE_FLOOR)).await;
                    }
                }
            }
            let _ = found
                .send(Found {
                    token,
                    keys: Vec::new(),
                    step: end,
                })
                .await;
            Report::Nothing
        });
    }

    /// Searches for a handle, which gets all keys at once.
    pub(super) fn search_for_handle(
        &mut self,
        pattern: String,
        reply: oneshot::Sender<Result<Vec<String>, Error>>,
    ) {
        if !self.fleet.all_up() {
            let _ = reply.send(Err(Error::Disconnected));
            return;
        }
        let remotes = self.fleet.remotes();
        self.tasks.spawn(async move {
            let mut all = Vec::new();
            for mut remote in remotes {
                let mut cursor = 0u64;
                loop {
                    match scan(&mut remote, cursor, &pattern).await {
                        Ok((next, keys)) => {
                            all.extend(keys);
                            cursor = next;
                        }
                        Err(error) => {
                            let _ = reply.send(Err(trouble(&error)));
                            return Report::Nothing;
                        }
                    }
                    if cursor == 0 || reply.is_closed() {
                        break;
                    }
                }
            }
            all.sort_unstable();
            all.dedup();
            let _ = reply.send(Ok(all));
            Report::Nothing
        });
    }
}

/// The node's error if it does not permit a search. A node that does not reply is about to be reconnected.
pub(super) async fn search_refused(remote: &mut Remote) -> Option<String> {
    match scan(remote, 0, "MUF")
        .await
        .map_err(|error| trouble(&error))
    {
        Err(Error::Refused(text)) => Some(text),
        _ => None,
    }
}

/// What the server said, or that it did not say anything that counts.
fn trouble(error: &RedisError) -> Error {
    match error.code() {
        Some("LOADING" | "BUSY" | "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN") | None => {
            Error::Disconnected
        }
        Some(code) => Error::Refused(format!("{code} {}", error.detail().unwrap_or_default())),
    }
}

/// One step. Keys that are not text are not ours.
async fn scan(remote: &mut Remote, cursor: u64, pattern: &str) -> RedisResult<(u64, Vec<String>)> {
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
