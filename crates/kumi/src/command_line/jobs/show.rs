//! How tasks, counts and moves look: lines for people, JSON for programs, text for Prometheus.

use super::time::Clock;
use crate::command_line::terminal::{Colour, Terminal, quoted, shown};
use kumi_jobs::{Counts, Filter, Holding, Schedule, TaskEvent, TaskRecord, TaskState, Timestamp};
use serde_json::{Value, json};
use std::fmt::Write;

/// Bytes that are JSON as they are, others as a string.
fn as_json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

fn record_json(record: &TaskRecord) -> Value {
    json!({
        "id": record.id,
        "type": &*record.envelope.task_type,
        "state": record.state,
        "attempts": record.attempts,
        "max_attempts": record.max_attempts,
        "runs": record.runs,
        "priority": record.priority,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "next_run_at": record.next_run_at,
        "owner": record.owner.as_ref().map(ToString::to_string),
        "last_error": record.last_error,
        "progress": record.progress,
        "serial": record.serial.as_ref().map(|serial| &*serial.key),
        "unique": record.unique.as_ref().map(|unique| &*unique.key),
        "content_type": &*record.envelope.content_type,
        "payload": as_json(&record.envelope.payload),
        "result": record.result.as_deref().map(as_json),
    })
}

/// The fields of a record that are points in time.
const TIMES: [&str; 3] = ["created_at", "updated_at", "next_run_at"];

pub(super) fn status(terminal: &Terminal, record: &TaskRecord, clock: &Clock) -> String {
    let value = record_json(record);
    if terminal.is_json {
        return format!("{value}\n");
    }
    let mut text = String::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::Number(ms) if TIMES.contains(&&**name) => {
                clock.both(Timestamp::from_ms(ms.as_u64().unwrap_or_default()))
            }
            Value::String(value) => quoted(value),
            // Strings in it may hold anything but ASCII control characters.
            other => quoted(&other.to_string()),
        };
        let _ = writeln!(text, "{name:<14}{value}");
    }
    text
}

/// Characters of an error in a line.
const REASON: usize = 80;

/// The first line of an error, cut.
fn reason(error: Option<&str>) -> String {
    let error = shown(error.unwrap_or_default());
    match error.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}...", &error[..end]),
        None => error,
    }
}

pub(super) fn list_header(terminal: &Terminal) -> String {
    let header = format!(
        "{:<32} {:<15} {:>5} {:>7} {:<11} TYPE  REASON",
        "ID", "STATE", "TRIES", "AGE", "SINCE, DUE"
    );
    terminal.paint(Colour::Bold, &header)
}

pub(super) fn line(terminal: &Terminal, record: &TaskRecord, clock: &Clock) -> String {
    if terminal.is_json {
        return record_json(record).to_string();
    }
    let state = painted(terminal, record.state);
    let attempts = format!("{}/{}", record.attempts, record.max_attempts);
    let task_type = shown(&record.envelope.task_type);
    let since = clock.relative(record.next_run_at.unwrap_or(record.updated_at));
    let line = format!(
        "{} {state} {attempts:>5} {:>7} {since:<11} {task_type}  {}",
        record.id,
        clock.age(record.created_at),
        reason(record.last_error.as_deref())
    );
    line.trim_end().to_owned()
}

pub(super) fn tail_header(terminal: &Terminal) -> String {
    let header = format!(
        "{:<12} {:<32} {:<15} {:>5} TYPE  REASON",
        "TIME", "ID", "STATE", "TRIES"
    );
    terminal.paint(Colour::Bold, &header)
}

/// A move; the record has the reason, where there is one.
pub(super) fn event(
    terminal: &Terminal,
    event: &TaskEvent,
    record: Option<&TaskRecord>,
    clock: &Clock,
) -> String {
    if terminal.is_json {
        let value = json!({
            "id": event.id, "type": &*event.task_type, "from": event.from, "to": event.to,
            "attempts": event.attempts, "at": event.at,
        });
        return value.to_string();
    }
    let state = painted(terminal, event.to);
    let task_type = shown(&event.task_type);
    let error = record.and_then(|record| record.last_error.as_deref());
    let line = format!(
        "{} {} {state} {:>5} {task_type}  {}",
        clock.time_of_day(event.at),
        event.id,
        event.attempts,
        reason(error)
    );
    line.trim_end().to_owned()
}

/// A table whose columns are as wide as what is in them; the last one is not filled up.
fn table(terminal: &Terminal, header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).max(header[column].len())
    };
    let joined = |row: &[String]| {
        let cells = row.iter().enumerate();
        let cells = cells.map(|(column, cell)| format!("{cell:<0$}", width(column)));
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    let names: Vec<String> = header.iter().map(ToString::to_string).collect();
    let mut text = terminal.paint(Colour::Bold, &joined(&names)) + "\n";
    for row in rows {
        text += &joined(row);
        text.push('\n');
    }
    text
}

/// All schedules, at this time of the queue.
pub(super) fn schedules(
    terminal: &Terminal,
    schedules: &[Schedule],
    now: Timestamp,
    clock: &Clock,
) -> String {
    if terminal.is_json {
        let lines = schedules.iter().map(|schedule| {
            let value = json!({
                "name": schedule.name, "expression": schedule.expression, "zone": schedule.zone,
                "type": &*schedule.envelope.task_type, "last_slot": schedule.last_slot,
                "next_slot": schedule.next_slot(now.max(schedule.last_slot)),
                "priority": schedule.priority, "payload": as_json(&schedule.envelope.payload),
            });
            format!("{value}\n")
        });
        return lines.collect();
    }
    let row = |schedule: &Schedule| {
        let next = schedule.next_slot(now.max(schedule.last_slot));
        let next = next.map_or_else(|| "never".to_owned(), |next| clock.both(next));
        let Schedule {
            name,
            expression,
            zone,
            envelope,
            ..
        } = schedule;
        let [name, expression, zone, task_type] =
            [&**name, &**expression, &**zone, &*envelope.task_type].map(shown);
        vec![name, expression, zone, next, task_type]
    };
    let rows: Vec<Vec<String>> = schedules.iter().map(row).collect();
    let header = ["NAME", "EXPRESSION", "ZONE", "NEXT RUN", "TYPE"];
    table(terminal, &header, &rows)
}

/// Workers that run tasks, and types that workers asked for.
pub(super) fn workers(
    terminal: &Terminal,
    workers: &[Holding],
    counts: &Counts,
    clock: &Clock,
) -> String {
    if terminal.is_json {
        let workers = workers.iter().map(|worker| {
            json!({
                "owner": worker.owner.to_string(), "running": worker.running,
                "renewed_at": worker.renewed_at, "lease_ends_at": worker.lease_ends_at,
            })
        });
        let served: Vec<&str> = counts.served.iter().map(|name| &**name).collect();
        let value = json!({ "workers": workers.collect::<Vec<_>>(), "served": served });
        return format!("{value}\n");
    }
    let row = |worker: &Holding| {
        vec![
            worker.owner.to_string(),
            worker.running.to_string(),
            clock.relative(worker.renewed_at),
            clock.relative(worker.lease_ends_at),
        ]
    };
    let rows: Vec<Vec<String>> = workers.iter().map(row).collect();
    let mut text = match rows.is_empty() {
        true => "no worker runs a task\n".to_owned(),
        false => table(
            terminal,
            &["WORKER", "RUNS", "RENEWED", "LEASE ENDS"],
            &rows,
        ),
    };
    let served: Vec<String> = counts.served.iter().map(|name| shown(name)).collect();
    text += &match served.is_empty() {
        true => "no worker asked for a type within the last minute\n".to_owned(),
        false => format!("asked for within the last minute: {}\n", served.join(", ")),
    };
    for task_type in counts.unserved() {
        let _ = writeln!(text, "no worker asks for {}", shown(&task_type));
    }
    text
}

/// The queues of a server; one that cannot be read has the reason.
pub(super) fn queues(terminal: &Terminal, queues: &[(String, Result<Counts, String>)]) -> String {
    if terminal.is_json {
        let lines = queues.iter().map(|(name, counts)| {
            let value = match counts {
                Ok(counts) => {
                    let mut value = json!({ "queue": name, "paused": counts.paused });
                    for state in TaskState::ALL {
                        value[state.name()] = json!(counts.of(state));
                    }
                    value
                }
                Err(error) => json!({ "queue": name, "error": error }),
            };
            format!("{value}\n")
        });
        return lines.collect();
    }
    if queues.is_empty() {
        return "no queue\n".to_owned();
    }
    let mut header = vec!["QUEUE"];
    header.extend(TaskState::ALL.map(TaskState::name));
    let row = |(name, counts): &(String, Result<Counts, String>)| {
        let mut row = vec![shown(name)];
        match counts {
            Ok(counts) => {
                row.extend(TaskState::ALL.map(|state| counts.of(state).to_string()));
                if counts.paused {
                    row[0] += " (paused)";
                }
            }
            Err(error) => row.push(error.clone()),
        }
        row
    };
    let readable = queues.iter().filter(|(_, counts)| counts.is_ok());
    let rows: Vec<Vec<String>> = readable.map(row).collect();
    let mut text = table(terminal, &header, &rows);
    for (name, counts) in queues {
        if let Err(error) = counts {
            let _ = writeln!(text, "{}: {error}", shown(name));
        }
    }
    text
}

/// What a purge will forget, and that dead tasks stay unless they are asked for.
pub(super) fn purge(counts: &Counts, filter: &Filter, leaves_dead: bool) -> String {
    let of = |state: TaskState| -> u64 {
        let types = counts.by_type.iter();
        let admitted =
            types.filter(|(name, _)| filter.task_type.as_ref().is_none_or(|t| t == *name));
        admitted.filter_map(|(_, states)| states.get(&state)).sum()
    };
    let parts = filter.states.iter();
    let parts = parts.map(|state| format!("{} {state}", of(*state)));
    let mut text = format!("forgets {}", parts.collect::<Vec<_>>().join(", "));
    if filter.is_search() {
        text += ", those that match";
    }
    let dead = of(TaskState::Dead);
    if leaves_dead && dead > 0 {
        let _ = write!(text, "; {dead} dead stay (--state dead forgets them)");
    }
    text
}

pub(super) fn counts(terminal: &Terminal, counts: &Counts) -> String {
    if terminal.is_json {
        let unserved: Vec<String> = counts.unserved().iter().map(ToString::to_string).collect();
        let states = TaskState::ALL.map(|state| (state.name().to_owned(), json!(counts.of(state))));
        let value = json!({
            "states": Value::Object(states.into_iter().collect()),
            "types": counts.by_type.iter().map(|(name, states)| (name.to_string(), json!(states)))
                .collect::<serde_json::Map<_, _>>(),
            "unserved": unserved,
            "paused": counts.paused,
        });
        return format!("{value}\n");
    }
    let mut text = String::new();
    for state in TaskState::ALL {
        let _ = writeln!(
            text,
            "{} {:>10}",
            painted(terminal, state),
            counts.of(state)
        );
    }
    for task_type in counts.unserved() {
        let _ = writeln!(text, "no worker asks for {}", shown(&task_type));
    }
    if counts.paused {
        text += "paused\n";
    }
    text
}

/// Gauges by type and state, in the text format of Prometheus.
pub(super) fn prometheus(counts: &Counts) -> String {
    let mut text = String::from(
        "# HELP kumi_jobs_tasks Tasks by type and state.\n# TYPE kumi_jobs_tasks gauge\n",
    );
    for (task_type, states) in &counts.by_type {
        let task_type = task_type
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        for (state, count) in states {
            let _ = writeln!(
                text,
                "kumi_jobs_tasks{{type=\"{task_type}\",state=\"{state}\"}} {count}"
            );
        }
    }
    let _ = writeln!(
        text,
        "# HELP kumi_jobs_paused Whether claims are stopped.\n# TYPE kumi_jobs_paused gauge\nkumi_jobs_paused {}",
        u8::from(counts.paused)
    );
    text
}

fn painted(terminal: &Terminal, state: TaskState) -> String {
    let colour = match state {
        TaskState::Succeeded => Colour::Green,
        TaskState::Dead => Colour::Red,
        TaskState::RetryScheduled | TaskState::Cancelled => Colour::Yellow,
        TaskState::Running => Colour::Cyan,
        _ => Colour::Dim,
    };
    terminal.paint(colour, &format!("{state:<15}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_gets_a_line_per_type_and_state() {
        let mut counts = Counts::default();
        counts
            .by_type
            .insert("send".into(), [(TaskState::Queued, 3)].into());
        let text = prometheus(&counts);
        assert!(text.contains("\nkumi_jobs_tasks{type=\"send\",state=\"queued\"} 3\n"));
        assert!(text.ends_with("\nkumi_jobs_paused 0\n"));
        let shown = super::counts(&Terminal::plain(), &counts);
        assert!(shown.starts_with("queued                   3\n"), "{shown}");
        assert!(shown.ends_with("no worker asks for send\n"));
    }

    #[test]
    fn text_of_others_is_escaped() {
        let mut counts = Counts::default();
        counts
            .by_type
            .insert("a\u{202e}b".into(), [(TaskState::Queued, 1)].into());
        let shown = super::counts(&Terminal::plain(), &counts);
        assert!(
            shown.ends_with("no worker asks for a\\u{202e}b\n"),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn strings_in_a_payload_are_escaped_too() {
        let jobs = kumi_jobs::Jobs::memory();
        let payload = "{\"a\": \"b\u{202e}c\"}".as_bytes().to_vec();
        let envelope = kumi_jobs::TaskEnvelope::json("t", payload);
        let task = kumi_jobs::NewTask::new(envelope);
        let id = jobs.enqueue_raw(task).await.unwrap().id();
        let record = jobs.get_status(id).await.unwrap().unwrap();
        let shown = status(&Terminal::plain(), &record, &Clock::of_this_machine());
        assert!(shown.contains(r#"{"a":"b\u{202e}c"}"#), "{shown}");
    }
}
