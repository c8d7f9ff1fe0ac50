//! How tasks, counts and moves look: lines for people, JSON for programs, text for Prometheus.

use crate::command_line::terminal::{Colour, Terminal, quoted, shown};
use kumi_jobs::{Counts, Schedule, TaskEvent, TaskRecord, TaskState};
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

pub(super) fn status(terminal: &Terminal, record: &TaskRecord) -> String {
    let value = record_json(record);
    if terminal.is_json {
        return format!("{value}\n");
    }
    let mut text = String::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let value = match value {
            Value::Null => continue,
            Value::String(value) => quoted(value),
            // Strings in it may hold anything but ASCII control characters.
            other => quoted(&other.to_string()),
        };
        let _ = writeln!(text, "{name:<14}{value}");
    }
    text
}

pub(super) fn line(terminal: &Terminal, record: &TaskRecord) -> String {
    if terminal.is_json {
        return record_json(record).to_string();
    }
    let state = painted(terminal, record.state);
    let error = record.last_error.as_deref().unwrap_or_default();
    let attempts = format!("{}/{}", record.attempts, record.max_attempts);
    let task_type = shown(&record.envelope.task_type);
    format!(
        "{} {state} {attempts:>5} {task_type} {}",
        record.id,
        shown(error)
    )
}

pub(super) fn event(terminal: &Terminal, event: &TaskEvent) -> String {
    if terminal.is_json {
        let value = json!({
            "id": event.id, "type": &*event.task_type, "from": event.from, "to": event.to,
            "attempts": event.attempts, "at": event.at,
        });
        return value.to_string();
    }
    let state = painted(terminal, event.to);
    let task_type = shown(&event.task_type);
    format!("{} {state} {:>3} {task_type}", event.id, event.attempts)
}

pub(super) fn schedule(terminal: &Terminal, schedule: &Schedule) -> String {
    if terminal.is_json {
        let value = json!({
            "name": schedule.name, "expression": schedule.expression, "zone": schedule.zone,
            "type": &*schedule.envelope.task_type, "last_slot": schedule.last_slot,
            "priority": schedule.priority, "payload": as_json(&schedule.envelope.payload),
        });
        return value.to_string();
    }
    let Schedule {
        name,
        expression,
        zone,
        envelope,
        ..
    } = schedule;
    let parts = [&**name, &**expression, &**zone, &*envelope.task_type].map(shown);
    parts.join("  ")
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
        let shown = status(&Terminal::plain(), &record);
        assert!(shown.contains(r#"{"a":"b\u{202e}c"}"#), "{shown}");
    }
}
