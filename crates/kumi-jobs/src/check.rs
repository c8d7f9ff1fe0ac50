//! Sizes and names, checked before a queue sees them: the same limits and the same errors on every queue.

pub(crate) use crate::core::cut;
use crate::core::{ENQUEUE_LIMIT, NewTask, Retention, Settings, TURN_LIMIT};
use crate::error::QueueError;
use crate::queue::{Ask, Finish, Outcome, Room, Schedule};
use std::sync::Arc;
use std::time::Duration;

/// Longest task type.
pub(crate) const TYPE_LIMIT_BYTES: usize = 128;

/// Longest unique key, serial key and step name.
pub(crate) const KEY_LIMIT_BYTES: usize = 512;

/// Longest delay, window of a unique key, and lease: 100 years. Milliseconds since 1970 plus this many are exact in a
/// script's numbers.
pub(crate) const DURATION_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// Schedules of one set.
pub const SCHEDULES_LIMIT: usize = 500;

/// The most done tasks that a queue keeps of a state.
const KEPT_LIMIT: usize = 1_000_000_000_000;

pub(crate) fn retention(retention: &Retention) -> Result<(), QueueError> {
    at_most("succeeded tasks to keep", retention.succeeded, KEPT_LIMIT)?;
    at_most("dead tasks to keep", retention.dead, KEPT_LIMIT)?;
    duration("the time to keep succeeded tasks", retention.succeeded_for)?;
    duration("the time to keep dead tasks", retention.dead_for)
}

pub(crate) fn schedules(set: &str, schedules: &[Schedule]) -> Result<(), QueueError> {
    key("the name of a set of schedules", set)?;
    at_most("schedules in one set", schedules.len(), SCHEDULES_LIMIT)
}

pub(crate) fn tasks(tasks: &[NewTask], settings: &Settings) -> Result<(), QueueError> {
    at_most("tasks in one enqueue", tasks.len(), ENQUEUE_LIMIT)?;
    let mut checked: Option<&Arc<str>> = None;
    for task in tasks {
        let name = &task.envelope.task_type;
        // Tasks of one call mostly share the name of their type.
        if !checked.is_some_and(|checked| Arc::ptr_eq(checked, name)) {
            task_type(name)?;
            checked = Some(name);
        }
        one_task(task, settings)?;
    }
    Ok(())
}

/// Checks all but the task's type.
fn one_task(task: &NewTask, settings: &Settings) -> Result<(), QueueError> {
    let payload = task.envelope.payload.len();
    within("the payload", payload, settings.payload_limit_bytes)?;
    within(
        "the content type",
        task.envelope.content_type.len(),
        TYPE_LIMIT_BYTES,
    )?;
    if task.max_attempts == 0 {
        return Err(QueueError::Invalid("max_attempts is at least 1".into()));
    }
    duration("the delay", task.delay)?;
    if let Some(backoff) = &task.backoff {
        duration("the back-off", backoff.first.max(backoff.cap))?;
        if backoff.factor == 0 {
            return Err(QueueError::Invalid(
                "a back-off's factor is at least 1".into(),
            ));
        }
    }
    if let Some(unique) = &task.unique {
        key("the unique key", &unique.key)?;
        duration("the unique key's window", unique.window.unwrap_or_default())?;
    }
    if let Some(serial) = &task.serial {
        key("the serial key", &serial.key)?;
    }
    if let Some(trace) = &task.trace {
        within("the trace context", trace.len(), TYPE_LIMIT_BYTES)?;
    }
    Ok(())
}

/// A type becomes part of key names, so it holds no white space or control characters.
pub(crate) fn task_type(name: &str) -> Result<(), QueueError> {
    within("the task type", name.len(), TYPE_LIMIT_BYTES)?;
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(QueueError::Invalid(format!(
            "{name:?} is not a task type: it is empty or holds white space"
        ))),
    }
}

pub(crate) fn turn(reports: &[Finish], ask: &Ask) -> Result<(), QueueError> {
    at_most("reports in one turn", reports.len(), TURN_LIMIT)?;
    at_most("types in one ask", ask.types.len(), TYPES_LIMIT)?;
    different(&ask.types)?;
    for report in reports {
        match &report.outcome {
            Outcome::Failed { retry_after, .. } => {
                duration("the delay before a retry", retry_after.unwrap_or_default())?;
            }
            Outcome::Snoozed(delay) => duration("the delay of a snooze", *delay)?,
            _ => {}
        }
    }
    lease(ask.lease)
}

/// A type that is named twice would have its line counted twice.
fn different(types: &[Room]) -> Result<(), QueueError> {
    for (at, room) in types.iter().enumerate() {
        let name = &room.task_type;
        if types[..at].iter().any(|other| other.task_type == *name) {
            return Err(QueueError::Invalid(format!("'{name}' is asked for twice")));
        }
    }
    Ok(())
}

pub(crate) fn lease(lease: Duration) -> Result<(), QueueError> {
    duration("the lease", lease)
}

fn duration(what: &str, duration: Duration) -> Result<(), QueueError> {
    match duration <= DURATION_LIMIT {
        true => Ok(()),
        false => Err(QueueError::Invalid(format!(
            "{what} is longer than 100 years"
        ))),
    }
}

/// Types that one worker asks for.
pub(crate) const TYPES_LIMIT: usize = 256;

pub(crate) fn step(name: &str, value: &[u8], settings: &Settings) -> Result<(), QueueError> {
    key("the step's name", name)?;
    within("the step", value.len(), settings.step_limit_bytes)
}

pub(crate) fn key(what: &'static str, key: &str) -> Result<(), QueueError> {
    match key.is_empty() {
        true => Err(QueueError::Invalid(format!("{what} is empty"))),
        false => within(what, key.len(), KEY_LIMIT_BYTES),
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), QueueError> {
    match size <= limit {
        true => Ok(()),
        false => Err(QueueError::TooLarge { what, size, limit }),
    }
}

fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), QueueError> {
    match count <= limit {
        true => Ok(()),
        false => Err(QueueError::TooMany { what, limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("añb".into(), 2), "a");
        assert_eq!(cut("añb".into(), 3), "añ");
        assert_eq!(cut("añb".into(), 9), "añb");
    }

    #[test]
    fn types_hold_no_white_space() {
        assert!(task_type("send_email").is_ok());
        for bad in ["", "a b", "a\n", &"x".repeat(TYPE_LIMIT_BYTES + 1)] {
            assert!(task_type(bad).is_err(), "{bad}");
        }
    }
}
