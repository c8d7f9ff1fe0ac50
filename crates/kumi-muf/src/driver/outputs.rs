//! Carrying out what the core wants: pipelines, searches, handlers, results for handles.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::messages::{Found, Recipient, Report, Written};
use super::state::Driver;
use crate::core::{CallError, KeepEvent, Output, OwnedId, SearchStep, SearchToken, WatchId, shown};

/// The target of log lines about requests that are ignored, so that a program can show these and no others.
const IGNORED: &str = "kumi_muf::ignored";

/// After each step, a search without a waiting caller pauses for this many times the step's duration.
const PACE: u32 = 20;
const PACE_FLOOR: Duration = Duration::from_millis(2);

impl Driver {
    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Run(op) => {
                self.connections
                    .send(Recipient::Core(op.token), op.commands, op.bulk)
            }
            Output::Search {
                token,
                pattern,
                paced,
            } => self.search(token, pattern, paced),
            Output::CancelSearch { token } => {
                if let Some(search) = self.searches.remove(&token) {
                    search.abort();
                }
            }
            Output::Deliver { call, result } => {
                let is_answer = matches!(result, Ok(_) | Err(CallError::Remote(_)));
                if self.calls.end_call(call, result) {
                    self.stats.answers += u64::from(is_answer);
                }
            }
            Output::Start {
                service,
                job,
                request,
            } => self.services.start(service, job, request),
            Output::WatchAnswers => {
                self.services.watches_answers = true;
                self.watch_answers();
            }
            Output::Gathered { gather, answer } => self.calls.gathered(gather, answer),
            Output::GatherDone { gather, result } => self.calls.end_gather(gather, result),
            Output::OwnedWritten {
                owned,
                version,
                result,
            } => {
                let done = |(other, waits_for, _): &mut (OwnedId, u64, Written)| {
                    *other == owned && *waits_for <= version
                };
                for (_, _, written) in self.writing.extract_if(.., done) {
                    let _ = written.send(result.clone());
                }
            }
            Output::Ignored { key, reason } => tracing::warn!(
                target: IGNORED,
                key = %shown(key.as_bytes()),
                "ignored a request ({reason}); this is reported once for each unit"
            ),
            Output::Watched { watch, event } => self.watched(watch, event),
        }
    }

    fn watched(&mut self, watch: WatchId, event: KeepEvent) {
        match self.directory.is(watch) {
            true => self.directory.apply(event),
            false => self.watches.show(watch, event),
        }
    }

    /// Searches for the core. The keys go to it in batches.
    fn search(&mut self, token: SearchToken, pattern: String, paced: bool) {
        let (remotes, found) = (self.connections.remotes(), self.found.0.clone());
        let mut end = match self.connections.all_up() {
            true => SearchStep::Done,
            false => SearchStep::Failed,
        };
        // While a node is away the list cannot be completed, so a search is no progress.
        let lists_units =
            end == SearchStep::Done && self.directory.watch.is_some_and(|it| token.is_for(it));
        let progress = lists_units.then(|| self.directory.progress());
        let search = self.tasks.spawn(async move {
            for mut remote in remotes {
                let mut cursor = 0u64;
                loop {
                    let began = Instant::now();
                    let Ok((next, keys)) = remote.scan(cursor, &pattern).await else {
                        end = SearchStep::Failed;
                        break;
                    };
                    if let Some(progress) = &progress {
                        progress.fetch_add(1, Ordering::Relaxed);
                    }
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
        self.searches.insert(token, search);
    }

    /// A search has found keys, or has ended.
    pub(super) fn found(&mut self, found: Found) {
        let now = self.now();
        if found.step != SearchStep::More {
            self.searches.remove(&found.token);
        }
        self.core
            .handle_found(found.token, &found.keys, found.step, now);
    }
}
