//! Commands that only look: listings, queues, workers, moves as they happen; and ids by their beginnings.

use super::failure::Failure;
use super::options::ListOptions;
use super::time::Clock;
use super::{missing, show};
use crate::command_line::terminal::{self, Terminal};
use crate::command_line::tls_options::TlsOptions;
use kumi_jobs::{
    Cursor, Filter, IdPrefix, Jobs, Notice, PAGE_LIMIT, Paging, RedisOptions, TaskId, TaskState,
};
use std::sync::Arc;

/// Tasks of a listing for people, unless told otherwise.
const SHOWN: usize = 50;

/// Ids that are named when a beginning is not enough.
const NAMED: usize = 5;

pub(super) async fn list(
    jobs: &Jobs,
    terminal: &Terminal,
    options: ListOptions,
) -> Result<(), Failure> {
    let filter = options.filter.filter();
    let limit = options.limit.unwrap_or(match terminal.is_json {
        true => usize::MAX,
        false => SHOWN,
    });
    let mut paging = Paging {
        order: options.order,
        after: options.cursor.map(Cursor::from),
        limit: 0,
    };
    let clock = Clock::of_this_machine();
    let (mut shown, mut looked) = (0, 0);
    let is_search = filter.is_search();
    while shown < limit && (!is_search || looked < options.look) {
        paging.limit = (limit - shown).min(PAGE_LIMIT);
        let page = jobs.queue().list(&filter, &paging).await?;
        if !terminal.is_json && shown == 0 && !page.tasks.is_empty() {
            terminal::say(&show::list_header(terminal))?;
        }
        for record in &page.tasks {
            terminal::say(&show::line(terminal, record, &clock))?;
        }
        shown += page.tasks.len();
        looked += page.looked;
        paging.after = page.cursor;
        if paging.after.is_none() {
            break;
        }
    }
    if is_search {
        terminal::note(format_args!("looked at {looked} tasks, found {shown}"));
    }
    if let Some(cursor) = paging.after {
        terminal::note(format_args!(
            "there may be more: --limit or --look for more, --cursor {cursor} to go on"
        ));
    } else if shown == 0 && !terminal.is_json && !is_search {
        terminal::note("no task");
    }
    Ok(())
}

/// The one task whose id begins so.
pub(super) async fn whole_id(jobs: &Jobs, prefix: IdPrefix) -> Result<TaskId, Failure> {
    let (first, last) = prefix.range();
    if first == last {
        return Ok(first);
    }
    let filter = Filter::default().id_prefix(prefix);
    let mut paging = Paging::newest(NAMED + 1);
    let mut found: Vec<TaskId> = Vec::new();
    loop {
        let page = jobs.queue().list_ids(&filter, &paging).await?;
        for id in page.ids {
            // A task that moves meanwhile is seen in both of its states.
            if !found.contains(&id) {
                found.push(id);
            }
        }
        paging.after = page.cursor;
        if paging.after.is_none() || found.len() > NAMED {
            break;
        }
    }
    let text = prefix_text(prefix);
    match found[..] {
        [] => Err(missing(&format!("task whose id begins with {text}"))),
        [id] => Ok(id),
        _ => {
            let more = if found.len() > NAMED {
                ", and more"
            } else {
                ""
            };
            let named: Vec<String> = found.iter().take(NAMED).map(ToString::to_string).collect();
            let text = format!(
                "several tasks begin with {text}: {}{more}",
                named.join(", ")
            );
            Err(Failure::Missing(text))
        }
    }
}

/// The digits that all ids of the prefix share.
fn prefix_text(prefix: IdPrefix) -> String {
    let (first, last) = prefix.range();
    let (first, last) = (first.to_string(), last.to_string());
    let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
    same.map(|(digit, _)| digit).collect()
}

pub(super) async fn whole_ids(
    jobs: &Jobs,
    prefixes: Vec<IdPrefix>,
) -> Result<Vec<TaskId>, Failure> {
    let mut ids = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        ids.push(whole_id(jobs, prefix).await?);
    }
    Ok(ids)
}

pub(super) async fn tail(jobs: &Jobs, terminal: &Terminal) -> Result<(), Failure> {
    terminal::end_with_reader();
    let mut events = jobs.queue().subscribe().await?;
    terminal::note("watching");
    if !terminal.is_json {
        terminal::say(&show::tail_header(terminal))?;
    }
    while let Some(notice) = events.recv().await {
        match notice {
            Notice::Moved(event) => {
                let has_failed = matches!(event.to, TaskState::Dead | TaskState::RetryScheduled);
                let record = match has_failed && !terminal.is_json {
                    true => jobs.get_status(event.id).await?,
                    false => None,
                };
                let clock = Clock::of_this_machine();
                terminal::say(&show::event(terminal, &event, record.as_ref(), &clock))?;
            }
            _ => terminal::note("moves may have been missed here"),
        }
    }
    Ok(())
}

pub(super) async fn workers(jobs: &Jobs, terminal: &Terminal) -> Result<(), Failure> {
    let workers = jobs.queue().owners().await?;
    let counts = jobs.queue().counts_by_state().await?;
    let text = show::workers(terminal, &workers, &counts, &Clock::of_this_machine());
    Ok(terminal::write(text.as_bytes())?)
}

/// All queues of a server. One that cannot be read is shown with the reason.
pub(super) async fn queues(
    url: &str,
    tls: &TlsOptions,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let options = super::connection(url, tls)?;
    let mut queues = Vec::new();
    for name in options.clone().queue_names().await? {
        let options: RedisOptions = options.clone().queue(&name)?;
        let counts = match options.connect().await {
            Ok(queue) => Jobs::with_queue(Arc::new(queue)).counts_by_state().await,
            Err(error) => Err(error),
        };
        queues.push((name, counts.map_err(|error| super::failure::text(&error))));
    }
    Ok(terminal::write(show::queues(terminal, &queues).as_bytes())?)
}
