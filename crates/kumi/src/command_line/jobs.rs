//! `kumi jobs`: tasks from the shell, and workers made of any program.
//!
//! Only the output and the exit codes are decided here; `kumi-jobs` has the queue.

mod backoff;
mod failure;
mod keep;
mod log;
mod look;
mod options;
mod progress;
mod show;
mod time;
mod wait;
mod work;

use crate::command_line::terminal::{self, Terminal};
use crate::command_line::tls_options::TlsOptions;
pub(crate) use failure::EXIT_CODES;
use failure::Failure;
use kumi_jobs::{
    Cancel, FORMAT, Filter, Gone, Jobs, NewTask, RedisOptions, Released, Requeued, Schedule,
    Serial, TaskEnvelope, TaskState, Timestamp, Unique,
};
pub(crate) use options::JobsOptions;
use options::{CronTask, EnqueueOptions, JobsTask, PurgeOptions, Switch};
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;
use time::Clock;
use wait::Wait;

const DEFAULT_URL: &str = "redis://127.0.0.1:6379";

/// Does what was asked. A failure is one message on standard error and an exit code.
pub(crate) fn run(options: JobsOptions) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(perform(options));
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failure::Other(error.into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::note(failure.text());
            failure.exit_code()
        }
    }
}

/// The URL with the queue's name in it.
fn queue_url(url: Option<String>, queue: Option<&str>) -> String {
    let url = url
        .or_else(|| std::env::var("KUMI_URL").ok().filter(|url| !url.is_empty()))
        .unwrap_or_else(|| DEFAULT_URL.into());
    match queue {
        None => url,
        Some(queue) if url.contains('?') => format!("{url}&queue={queue}"),
        Some(queue) => format!("{}/?queue={queue}", url.trim_end_matches('/')),
    }
}

async fn perform(options: JobsOptions) -> Result<(), Failure> {
    let terminal = Terminal::new(options.output);
    if let JobsTask::Upgrade { name, force } = &options.task {
        let url = queue_url(options.url, Some(name));
        return upgrade(connection(&url, &options.tls)?, name, *force).await;
    }
    let url = queue_url(options.url, options.queue.as_deref());
    match &options.task {
        JobsTask::Work(options) => work::check(options)?,
        JobsTask::Queues => return look::queues(&url, &options.tls, &terminal).await,
        _ => {}
    }
    let connected = connection(&url, &options.tls)?.connect().await?;
    let jobs = Jobs::with_queue(Arc::new(connected));
    let queue = jobs.queue().clone();
    match options.task {
        JobsTask::Enqueue(options) => enqueue(&jobs, options).await,
        JobsTask::Status { id } => {
            let id = look::whole_id(&jobs, id).await?;
            let record = queue.get_status(id).await?;
            let record = record.ok_or_else(|| missing(&format!("task {id}")))?;
            let text = show::status(&terminal, &record, &Clock::of_this_machine());
            Ok(terminal::write(text.as_bytes())?)
        }
        JobsTask::List(options) => look::list(&jobs, &terminal, options).await,
        JobsTask::Workers => look::workers(&jobs, &terminal).await,
        // Handled before the queue was connected to.
        JobsTask::Queues => Ok(()),
        JobsTask::Counts { prometheus } => {
            let counts = queue.counts_by_state().await?;
            let text = match prometheus {
                true => show::prometheus(&counts),
                false => show::counts(&terminal, &counts),
            };
            Ok(terminal::write(text.as_bytes())?)
        }
        JobsTask::Retry {
            ids,
            task_type,
            search,
            ..
        } if ids.is_empty() => {
            let filter = Filter {
                states: vec![TaskState::Dead],
                task_type: task_type.map(Into::into),
                text: search,
                ..Filter::default()
            };
            let bar = progress::Bar::over(&queue.counts_by_state().await?, &filter);
            let count = jobs
                .requeue_dead_with(filter, |count| bar.at(count))
                .await?;
            drop(bar);
            Ok(terminal::say(&format!("{count} requeued"))?)
        }
        JobsTask::Retry { ids, .. } => {
            let ids = look::whole_ids(&jobs, ids).await?;
            let replies = queue.requeue(ids.clone()).await?;
            let mut refused = None;
            for (id, reply) in ids.iter().zip(replies) {
                let failure = match reply {
                    Requeued::Applied(state) => {
                        terminal::say(&format!("{id} {state}"))?;
                        continue;
                    }
                    Requeued::NotDead(state) => {
                        Failure::Refused(format!("{id} is {state}, not dead"))
                    }
                    Requeued::Taken(holder) => {
                        let text = format!("{id} stays dead: {holder} has its unique key");
                        Failure::Refused(text)
                    }
                    _ => missing(&format!("task {id}")),
                };
                // The last one ends the command, and is shown there.
                if let Some(earlier) = refused.replace(failure) {
                    terminal::note(earlier.text());
                }
            }
            refused.map_or(Ok(()), Err)
        }
        JobsTask::Cancel {
            ids,
            state,
            task_type,
            search,
        } if ids.is_empty() => {
            let filter = Filter {
                states: state,
                task_type: task_type.map(Into::into),
                text: search,
                ..Filter::default()
            };
            let bar = progress::Bar::over(&queue.counts_by_state().await?, &filter);
            let count = jobs.cancel_with(filter, |count| bar.at(count)).await?;
            drop(bar);
            Ok(terminal::say(&format!("{count} cancelled"))?)
        }
        JobsTask::Cancel { ids, .. } => {
            let ids = look::whole_ids(&jobs, ids).await?;
            let mut refused = None;
            for (id, reply) in ids.iter().zip(queue.cancel_all(ids.clone()).await?) {
                match reply {
                    Cancel::Cancelled => terminal::say(&format!("{id} cancelled"))?,
                    Cancel::Requested => {
                        terminal::say(&format!("{id} runs; its worker was asked"))?
                    }
                    Cancel::AlreadyDone(state) => terminal::say(&format!("{id} is {state}"))?,
                    _ => refused = Some(missing(&format!("task {id}"))),
                }
            }
            refused.map_or(Ok(()), Err)
        }
        JobsTask::Purge(options) => purge(&jobs, options).await,
        JobsTask::Pause => Ok(queue.pause(true).await?),
        JobsTask::Resume => Ok(queue.pause(false).await?),
        JobsTask::Limit { task_type, limit } => Ok(queue.limit(&task_type, limit).await?),
        JobsTask::Release {
            owner,
            before,
            silent_for,
        } => {
            let gone = match before {
                true => Gone::Before(owner.clone()),
                false => Gone::Life(owner.clone()),
            };
            match queue.release_owner(&gone, silent_for).await? {
                Released::Tasks(count) => Ok(terminal::say(&format!("{count} given back"))?),
                _ => Err(Failure::Refused(format!(
                    "{owner} renewed its lease within the last {silent_for:?}, or could not because the server was away; nothing changed \
                     (--silent-for 0s if it is known to be gone)"
                ))),
            }
        }
        JobsTask::Keep(options) => keep::run(&jobs, &terminal, options).await,
        JobsTask::Releases { switch } => {
            if let Some(switch) = switch {
                queue.set_releases(matches!(switch, Switch::On)).await?;
            }
            let on = queue.releases().await?;
            let text = match (terminal.is_json, on) {
                (true, _) => serde_json::json!({ "releases": on }).to_string(),
                (false, true) => "on".to_owned(),
                (false, false) => "off".to_owned(),
            };
            Ok(terminal::say(&text)?)
        }
        // It has no connection to the queue, and came first.
        JobsTask::Upgrade { .. } => Ok(()),
        JobsTask::Tail => look::tail(&jobs, &terminal).await,
        JobsTask::Work(options) => work::run(&jobs, options).await,
        JobsTask::Cron { task } => cron(&jobs, &terminal, task).await,
    }
}

fn connection(url: &str, tls: &TlsOptions) -> Result<RedisOptions, Failure> {
    let certificates = tls.read().map_err(Failure::Usage)?;
    let mut options = RedisOptions::from_url(url)?;
    if let Some(roots) = certificates.roots {
        options = options.root_certificates(roots);
    }
    if let Some((chain, key)) = certificates.identity {
        options = options.client_certificate(chain, key);
    }
    Ok(options)
}

async fn upgrade(options: RedisOptions, name: &str, force: bool) -> Result<(), Failure> {
    let from = options.upgrade(force).await?;
    Ok(terminal::say(&match from == FORMAT {
        true => format!("{name} has format {FORMAT} already"),
        false => format!("{name} is moved from format {from} to format {FORMAT}"),
    })?)
}

fn missing(what: &str) -> Failure {
    Failure::Missing(format!("there is no {what}"))
}

/// Says what will be forgotten, and forgets it.
async fn purge(jobs: &Jobs, options: PurgeOptions) -> Result<(), Failure> {
    let mut filter = options.filter.filter();
    if let Some(state) = filter.states.iter().find(|state| !state.is_terminal()) {
        let text = format!(
            "only done tasks are forgotten (succeeded, cancelled, dead), and none is {state}"
        );
        return Err(Failure::Usage(text));
    }
    let asks_for_all = filter.states.is_empty();
    if asks_for_all {
        filter.states = vec![TaskState::Succeeded, TaskState::Cancelled];
    }
    let counts = jobs.queue().counts_by_state().await?;
    terminal::note(show::purge(&counts, &filter, asks_for_all));
    if options.dry_run {
        return Ok(());
    }
    let bar = progress::Bar::over(&counts, &filter);
    let count = jobs.purge_with(filter, |count| bar.at(count)).await?;
    drop(bar);
    Ok(terminal::say(&format!("{count} purged"))?)
}

fn payload(text: Option<String>) -> Result<Vec<u8>, Failure> {
    match text.as_deref() {
        None => Ok(b"null".to_vec()),
        Some("-") => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::Other(error.into()))?;
            Ok(bytes)
        }
        Some(text) => Ok(text.as_bytes().to_vec()),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
}

/// The trace context of the process that started this one; one that is malformed is ignored.
fn traceparent() -> Option<Arc<str>> {
    let text = std::env::var("TRACEPARENT").ok()?;
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    // Later versions may append to the 55 characters of version 00.
    let is_valid = (55..=128).contains(&text.len()) && text.chars().all(is_part);
    is_valid.then(|| text.into())
}

async fn enqueue(jobs: &Jobs, options: EnqueueOptions) -> Result<(), Failure> {
    let payload = payload(options.payload)?;
    if options.content_type == kumi_jobs::JSON && !is_json(&payload) {
        let text = "the payload is not JSON (--content-type names another media type)";
        return Err(Failure::Usage(text.into()));
    }
    let mut task = NewTask::new(TaskEnvelope {
        task_type: options.task_type.into(),
        payload: payload.into(),
        content_type: options.content_type.into(),
    });
    task.id = options.id.unwrap_or(task.id);
    task.delay = match options.at {
        Some(at) => at.duration_since(SystemTime::now()).unwrap_or_default(),
        None => options.delay.unwrap_or_default(),
    };
    task.max_attempts = options.max_attempts;
    task.priority = options.priority;
    task.backoff = options.backoff;
    task.trace = traceparent();
    task.unique = options.unique.map(|key| Unique {
        key: key.into(),
        window: options.unique_for,
    });
    task.serial = options.serial.map(|key| Serial {
        key: key.into(),
        hold_on_dead: options.serial_strict,
    });
    // Before the task is there: a queue that keeps no succeeded tasks has forgotten it when it ends.
    let wait = match options.wait {
        true => Some(Wait::new(jobs).await?),
        false => None,
    };
    let id = jobs.enqueue_raw(task).await?.id();
    match wait {
        Some(wait) => wait.print(jobs, id).await,
        None => Ok(terminal::say(&id.to_string())?),
    }
}

async fn cron(jobs: &Jobs, terminal: &Terminal, task: CronTask) -> Result<(), Failure> {
    match task {
        CronTask::Set {
            name,
            expression,
            task_type,
            payload,
            zone,
            priority,
        } => {
            let payload = self::payload(payload)?;
            if !is_json(&payload) {
                return Err(Failure::Usage("the payload is not JSON".into()));
            }
            let schedule = Schedule {
                name,
                expression,
                zone,
                envelope: TaskEnvelope::json(task_type, payload),
                max_attempts: kumi_jobs::DEFAULT_MAX_ATTEMPTS,
                priority,
                last_slot: Timestamp::default(),
            };
            Ok(jobs.put_schedule(schedule).await?)
        }
        CronTask::List => {
            let (now, schedules) = jobs.queue().schedules().await?;
            let text = show::schedules(terminal, &schedules, now, &Clock::of_this_machine());
            Ok(terminal::write(text.as_bytes())?)
        }
        CronTask::Remove { name } => match jobs.queue().remove_schedule(&name).await? {
            true => Ok(()),
            false => Err(missing(&format!("schedule '{name}'"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_joins_the_url() {
        let check = |url: &str, queue, expected: &str| {
            assert_eq!(queue_url(Some(url.into()), queue), expected);
        };
        check("redis://h:1", Some("q"), "redis://h:1/?queue=q");
        check("redis://h:1/2?a=b", Some("q"), "redis://h:1/2?a=b&queue=q");
        check("redis://h:1/2", None, "redis://h:1/2");
    }
}
