//! Arguments for the scripts, and what their replies mean.

use crate::core::{
    Backoff, Cursor, Holding, JSON, Lost, NewTask, Owner, Priority, Progress, Retention, Serial,
    Settings, TaskEnvelope, TaskId, TaskRecord, TaskState, Timestamp, Totals, Unique,
};
use crate::error::QueueError;
use crate::queue::{
    Ask, Cancel, Claim, Counts, Enqueued, Finish, Finished, Load, Outcome, Requeued, Room, Turn,
};
use ::redis::Value;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub(super) type Args = Vec<Vec<u8>>;

pub(super) fn text(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// An id as keys and scripts have it.
pub(super) fn id_text(id: TaskId) -> Vec<u8> {
    id.short().to_vec()
}

fn ms(duration: Duration) -> Vec<u8> {
    text(duration.as_millis())
}

pub(super) fn task_args(task: &NewTask, args: &mut Args) {
    let none = Vec::new;
    let media = match &*task.envelope.content_type {
        JSON => none(),
        media => media.into(),
    };
    let (unique, window) = match &task.unique {
        Some(unique) => (
            unique.key.as_bytes().to_vec(),
            unique.window.map(ms).unwrap_or_default(),
        ),
        None => (none(), none()),
    };
    let (serial, hold) = match &task.serial {
        Some(serial) => (
            serial.key.as_bytes().to_vec(),
            if serial.hold_on_dead {
                b"1".to_vec()
            } else {
                none()
            },
        ),
        None => (none(), none()),
    };
    args.extend([
        id_text(task.id),
        task.envelope.task_type.as_bytes().to_vec(),
        task.envelope.payload.to_vec(),
        media,
        text(task.max_attempts),
        text(task.priority.level()),
        ms(task.delay),
        unique,
        window,
        serial,
        hold,
        task.trace
            .as_ref()
            .map(|trace| trace.as_bytes().to_vec())
            .unwrap_or_default(),
        task.backoff
            .map(|backoff| backoff.stored().into_bytes())
            .unwrap_or_default(),
    ]);
}

pub(super) fn retention_args(retention: &Retention) -> [Vec<u8>; 4] {
    [
        text(retention.succeeded),
        ms(retention.succeeded_for),
        text(retention.dead),
        ms(retention.dead_for),
    ]
}

pub(super) fn retention(value: Value) -> Result<Retention, QueueError> {
    let parts: [Value; 4] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("a retention without four parts".into()))?;
    let number = |value: &Value| Ok::<_, QueueError>(timestamp(value)?.as_ms());
    let [succeeded, succeeded_for, dead, dead_for] = &parts;
    Ok(Retention {
        succeeded: number(succeeded)? as usize,
        succeeded_for: Duration::from_millis(number(succeeded_for)?),
        dead: number(dead)? as usize,
        dead_for: Duration::from_millis(number(dead_for)?),
    })
}

/// The arguments of a turn before its reports.
fn turn_head(reports: usize, ask: &Ask) -> Args {
    let mut args: Args = vec![
        text(&ask.owner),
        text(format_args!("{:016x}", ask.nonce)),
        ms(ask.lease),
    ];
    args.extend([text(ask.max), text(ask.types.len()), text(reports)]);
    for room in &ask.types {
        args.push(room.task_type.as_bytes().to_vec());
        args.push(text(room.room));
    }
    args
}

pub(super) fn turn_args(reports: &[Finish], ask: &Ask, settings: &Settings) -> Args {
    let mut args = turn_head(reports.len(), ask);
    for report in reports {
        args.push(id_text(report.id));
        args.push(text(report.token));
        args.extend(outcome_args(&report.outcome, settings));
    }
    args
}

fn outcome_args(outcome: &Outcome, settings: &Settings) -> [Vec<u8>; 3] {
    let none = Vec::new;
    match outcome {
        Outcome::Succeeded(Some(result)) if result.len() > settings.result_limit_bytes => {
            [text('S'), text('x'), none()]
        }
        Outcome::Succeeded(Some(result)) => [text('S'), text('1'), result.to_vec()],
        Outcome::Succeeded(None) => [text('S'), none(), none()],
        Outcome::Failed { error, retry_after } => [
            text('F'),
            retry_after.map(ms).unwrap_or_default(),
            crate::check::cut(error.clone(), settings.error_limit_bytes).into_bytes(),
        ],
        Outcome::Snoozed(delay) => [text('Z'), ms(*delay), none()],
        Outcome::GivenBack => [text('G'), none(), none()],
        Outcome::Cancelled => [text('C'), none(), none()],
    }
}

/// A reply that is not what the script sends.
pub(super) fn unexpected(value: &Value) -> QueueError {
    let shown: String = format!("{value:?}").chars().take(200).collect();
    QueueError::Protocol(shown)
}

pub(super) fn array(value: Value) -> Result<Vec<Value>, QueueError> {
    match value {
        Value::Array(values) | Value::Set(values) => Ok(values),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn integer(value: &Value) -> Result<i64, QueueError> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => {
            let number = std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.parse().ok());
            number.ok_or_else(|| unexpected(value))
        }
        other => Err(unexpected(other)),
    }
}

pub(super) fn bytes(value: Value) -> Result<Bytes, QueueError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes.into()),
        Value::SimpleString(text) => Ok(text.into()),
        Value::Int(number) => Ok(number.to_string().into()),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn string(value: Value) -> Result<String, QueueError> {
    let bytes = match value {
        Value::BulkString(bytes) => bytes,
        other => bytes(other)?.into(),
    };
    String::from_utf8(bytes).map_err(|error| QueueError::Protocol(format!("no UTF-8: {error}")))
}

pub(super) fn parsed<T: FromStr>(value: Value) -> Result<T, QueueError> {
    read("value", &string(value)?)
}

fn optional(value: Value) -> Result<Option<Bytes>, QueueError> {
    match value {
        Value::Nil => Ok(None),
        value => bytes(value).map(Some),
    }
}

fn state(letter: Option<char>) -> Result<TaskState, QueueError> {
    let found = letter.and_then(TaskState::from_letter);
    found.ok_or_else(|| QueueError::Protocol(format!("the state {letter:?}")))
}

/// Splits a reply such as `Aq` into its letter and the rest.
fn coded(value: Value) -> Result<(char, String), QueueError> {
    let text = string(value)?;
    let mut chars = text.chars();
    match chars.next() {
        Some(code) => Ok((code, chars.collect())),
        None => Err(QueueError::Protocol("an empty code".into())),
    }
}

fn id(text: &str) -> Result<TaskId, QueueError> {
    text.parse()
        .map_err(|error| QueueError::Protocol(format!("{error}")))
}

fn unknown_code(code: char) -> QueueError {
    QueueError::Protocol(format!("the code '{code}'"))
}

pub(super) fn enqueued(value: Value, task: TaskId) -> Result<Enqueued, QueueError> {
    let (code, rest) = coded(value)?;
    match code {
        'N' => Ok(Enqueued::New(task, state(rest.chars().next())?)),
        'E' => Ok(Enqueued::Exists(task)),
        'D' => Ok(Enqueued::Duplicate(id(&rest)?)),
        code => Err(unknown_code(code)),
    }
}

/// What became of one report: a letter, and for `A` the letter of the new state.
fn finished(text: &str) -> Result<Finished, QueueError> {
    let mut letters = text.chars();
    match letters.next() {
        Some('A') => Ok(Finished::Applied(state(letters.next())?)),
        Some('D') => Ok(Finished::AlreadyApplied),
        Some('R') => Ok(Finished::Refused),
        Some('U') => Ok(Finished::Unknown),
        code => Err(unknown_code(code.unwrap_or(' '))),
    }
}

pub(super) fn cancel(value: Value) -> Result<Cancel, QueueError> {
    let (code, rest) = coded(value)?;
    match code {
        'C' => Ok(Cancel::Cancelled),
        'R' => Ok(Cancel::Requested),
        'D' => Ok(Cancel::AlreadyDone(state(rest.chars().next())?)),
        'U' => Ok(Cancel::Unknown),
        code => Err(unknown_code(code)),
    }
}

pub(super) fn requeued(value: Value) -> Result<Requeued, QueueError> {
    let (code, rest) = coded(value)?;
    match code {
        'A' => Ok(Requeued::Applied(state(rest.chars().next())?)),
        'N' => Ok(Requeued::NotDead(state(rest.chars().next())?)),
        'T' => Ok(Requeued::Taken(id(&rest)?)),
        'U' => Ok(Requeued::Unknown),
        code => Err(unknown_code(code)),
    }
}

pub(super) fn timestamp(value: &Value) -> Result<Timestamp, QueueError> {
    let ms = u64::try_from(integer(value)?).map_err(|_| unexpected(value))?;
    Ok(Timestamp::from_ms(ms))
}

/// What a turn did, and claims that cannot be read. Logs what other owners lost.
pub(super) fn turn(value: Value, ask: &Ask) -> Result<(Turn, Vec<Unreadable>), QueueError> {
    let parts: [Value; 8] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("a turn without eight parts".into()))?;
    let [now, due, more, paused, reports, claims, held, lost] = parts;
    tell_lost(lost)?;
    let (claims, unreadable) = self::claims(claims, &ask.owner, &ask.types)?;
    let turn = Turn {
        finished: string(reports)?
            .split_ascii_whitespace()
            .map(finished)
            .collect::<Result<_, _>>()?,
        claims,
        now: timestamp(&now)?,
        next_due: match integer(&due)? {
            -1 => None,
            _ => Some(timestamp(&due)?),
        },
        more: integer(&more)? == 1,
        paused: integer(&paused)? == 1,
        held: usize::try_from(integer(&held)?).unwrap_or(0),
    };
    Ok((turn, unreadable))
}

/// Logs tasks that owners lost, as `lose` in lib.lua lists them.
pub(super) fn tell_lost(value: Value) -> Result<(), QueueError> {
    for text in array(value)? {
        // A task with an id that is none here is left out.
        let lost = string(text).ok().and_then(|text| lost(&text));
        if let Some(lost) = lost {
            lost.tell();
        }
    }
    Ok(())
}

fn lost(text: &str) -> Option<Lost> {
    let mut words = text.splitn(5, ' ');
    let mut word = || words.next();
    Some(Lost {
        id: word()?.parse().ok()?,
        state: TaskState::from_letter(word()?.chars().next()?)?,
        attempts: word()?.parse().ok()?,
        next_run_at: Timestamp::from_ms(word()?.parse().ok()?),
        error: word()?.to_owned(),
    })
}

/// A claim on a task whose record another program wrote, and whose fields this one cannot read.
pub(super) struct Unreadable {
    pub(super) id: Vec<u8>,
    token: Vec<u8>,
    pub(super) error: String,
}

/// The arguments of a turn that only reports these claims as failed for good.
pub(super) fn abort_args(claims: &[Unreadable], ask: &Ask, settings: &Settings) -> Args {
    let mut args = turn_head(claims.len(), ask);
    for claim in claims {
        let failed = Outcome::Failed {
            error: claim.error.clone(),
            retry_after: None,
        };
        args.extend([claim.id.clone(), claim.token.clone()]);
        args.extend(outcome_args(&failed, settings));
    }
    args
}

/// Claims of an owner, and those that cannot be read; a type that was asked for is named by the ask's own text.
pub(super) fn claims(
    value: Value,
    owner: &Owner,
    asked: &[Room],
) -> Result<(Vec<Claim>, Vec<Unreadable>), QueueError> {
    let values = array(value)?;
    let (mut claims, mut unreadable) = (Vec::with_capacity(values.len()), Vec::new());
    for value in values {
        match claim(value, owner, asked)? {
            Ok(claim) => claims.push(claim),
            Err(claim) => unreadable.push(claim),
        }
    }
    Ok((claims, unreadable))
}

/// The parts of a claim are listed at `claim_of` in lib.lua and at `claims` in admin.lua.
fn claim(
    value: Value,
    owner: &Owner,
    asked: &[Room],
) -> Result<Result<Claim, Unreadable>, QueueError> {
    let mut parts = array(value)?.into_iter();
    let mut part = || parts.next().unwrap_or(Value::BulkString(Vec::new()));
    let (head, payload) = (bytes(part())?, bytes(part())?);
    let claim = read_claim(&head, payload, [part(), part(), part()], owner, asked);
    Ok(claim.map_err(|error| {
        let mut words = head.split(|byte| *byte == b' ');
        let mut word = || words.next().unwrap_or_default().to_vec();
        let error = match error {
            QueueError::Protocol(what) => what,
            other => other.to_string(),
        };
        Unreadable {
            id: word(),
            token: word(),
            error: format!("the task's record cannot be read: {error}"),
        }
    }))
}

fn read_claim(
    head: &[u8],
    payload: Bytes,
    [media, trace, backoff]: [Value; 3],
    owner: &Owner,
    asked: &[Room],
) -> Result<Claim, QueueError> {
    let named = |name: &str, value: Value| {
        let bad = |_| QueueError::Protocol(format!("the {name} is not UTF-8"));
        string(value).map_err(bad)
    };
    let (media, trace) = (named("media type", media)?, named("trace context", trace)?);
    let backoff = named("back-off", backoff)?;
    let head = std::str::from_utf8(head)
        .map_err(|_| QueueError::Protocol("its type or a number is not UTF-8".into()))?;
    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (id, token, task_type) = (word(), word(), word());
    let known = asked.iter().find(|room| *room.task_type == *task_type);
    Ok(Claim {
        id: read("id", id)?,
        envelope: TaskEnvelope {
            task_type: known.map_or_else(|| task_type.into(), |room| room.task_type.clone()),
            payload,
            content_type: media_type(media),
        },
        token: read("token", token)?,
        owner: owner.clone(),
        attempt: read("number of attempts", word())?,
        runs: read("number of runs", word())?,
        max_attempts: read("maximum of attempts", word())?,
        created_at: Timestamp::from_ms(read("time of creation", word())?),
        trace: (!trace.is_empty()).then(|| trace.into()),
        // One that cannot be read leaves the delay to the worker.
        backoff: Backoff::read(&backoff),
        cancel_requested: word() == "x",
    })
}

/// A named part of a text.
fn read<T: FromStr>(name: &str, text: &str) -> Result<T, QueueError> {
    text.parse()
        .map_err(|_| QueueError::Protocol(format!("the {name} is '{text}'")))
}

pub(super) fn media_type(text: String) -> Cow<'static, str> {
    match text.is_empty() {
        true => Cow::Borrowed(JSON),
        false => Cow::Owned(text),
    }
}

/// A flat array of pairs.
pub(super) fn pairs(value: Value) -> Result<Vec<(Value, Value)>, QueueError> {
    if let Value::Map(pairs) = value {
        return Ok(pairs);
    }
    let mut values = array(value)?.into_iter();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (values.next(), values.next()) {
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// A page of a scan: the next cursor, unless it is the last page, and the entries.
pub(super) fn page(value: Value) -> Result<(Option<String>, Vec<Value>), QueueError> {
    let [next, found]: [Value; 2] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("a page without two parts".into()))?;
    let next = string(next)?;
    Ok(((next != "0").then_some(next), array(found)?))
}

/// What a step of `browse.lua` replies: the next cursor, how many ids were looked at, and what was found or done.
pub(super) fn browsed(value: Value) -> Result<(Option<Cursor>, u64, Value), QueueError> {
    let [next, looked, found]: [Value; 3] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("a page without three parts".into()))?;
    let next = string(next)?;
    let cursor = (!next.is_empty()).then(|| Cursor::encode(&next));
    Ok((cursor, u64::try_from(integer(&looked)?).unwrap_or(0), found))
}

/// Owners that run tasks, with their names; another program may have named one as no owner is named here.
pub(super) fn holdings(value: Value) -> Result<Vec<(String, Option<Holding>)>, QueueError> {
    let mut holdings = Vec::new();
    for entry in array(value)? {
        let [name, ends, renewed, running]: [Value; 4] = array(entry)?
            .try_into()
            .map_err(|_| QueueError::Protocol("an owner without four parts".into()))?;
        let name = string(name)?;
        let holding = match name.parse() {
            Ok(owner) => Some(Holding {
                owner,
                running: usize::try_from(integer(&running)?).unwrap_or(0),
                renewed_at: timestamp(&renewed)?,
                lease_ends_at: timestamp(&ends)?,
            }),
            Err(_) => None,
        };
        holdings.push((name, holding));
    }
    Ok(holdings)
}

/// A record. A field that cannot be read has its default: another program may have written it, and the rest of the
/// record and its last error are to be seen.
pub(super) fn record(value: Value) -> Result<Option<TaskRecord>, QueueError> {
    if value == Value::Nil {
        return Ok(None);
    }
    let mut parts = array(value)?.into_iter();
    // A nil at the end of a script's array ends the array, so what is missing is nil.
    let mut part = || parts.next().unwrap_or(Value::Nil);
    let task_id: TaskId = parsed(part())?;
    let mut fields = HashMap::new();
    for (name, value) in pairs(part())? {
        let value = bytes(value)?;
        if !value.is_empty() {
            let value = String::from_utf8_lossy(&value).into_owned();
            fields.insert(string(name)?, value);
        }
    }
    let (payload, error, result, progress) = (part(), part(), part(), part());
    let letter = fields
        .get("s")
        .map_or(Some('q'), |state| state.chars().next());
    let state = state(letter)?;
    let number = |name: &str, default: u64| {
        let text = fields.get(name);
        text.and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(default)
    };
    let small = |name: &str, default: u64| number(name, default) as u32;
    let named = |name: &str| fields.get(name).map(|text| Arc::<str>::from(text.as_str()));
    let created_at = number("c", 0);
    let is_timed = matches!(state, TaskState::Scheduled | TaskState::RetryScheduled);
    let window = fields.contains_key("w");
    let window = window.then(|| Duration::from_millis(number("w", 0)));
    let too_large = fields.get("z").map(String::as_str);
    Ok(Some(TaskRecord {
        id: task_id,
        envelope: TaskEnvelope {
            task_type: named("y").unwrap_or_default(),
            payload: bytes(payload)?,
            content_type: media_type(fields.get("C").cloned().unwrap_or_default()),
        },
        state,
        attempts: small("a", 0),
        max_attempts: small("m", 5),
        runs: small("r", number("a", 0)),
        given_back: small("g", 0),
        priority: Priority::from_level(number("p", 1) as usize).unwrap_or_default(),
        last_error: optional(error)?.map(|error| String::from_utf8_lossy(&error).into_owned()),
        next_run_at: is_timed.then(|| Timestamp::from_ms(number("n", created_at))),
        created_at: Timestamp::from_ms(created_at),
        updated_at: Timestamp::from_ms(number("u", created_at)),
        owner: match (state, fields.get("o")) {
            (TaskState::Running, Some(owner)) => owner.parse().ok(),
            _ => None,
        },
        token: fields.get("k").and_then(|token| token.parse().ok()),
        cancel_requested: fields.contains_key("x"),
        progress: optional(progress)?.and_then(|text| read_progress(&text)),
        result: match optional(result)? {
            None if too_large == Some("0") => Some(Bytes::from_static(b"null")),
            result => result,
        },
        result_dropped: too_large == Some("1"),
        serial: named("q").map(|key| Serial {
            key,
            hold_on_dead: fields.contains_key("h"),
        }),
        unique: named("i").map(|key| Unique { key, window }),
        trace: named("T"),
        backoff: fields.get("b").and_then(|text| Backoff::read(text)),
    }))
}

/// `50 half done`.
pub(super) fn progress_text(progress: &Progress) -> Vec<u8> {
    text(format_args!("{} {}", progress.percent, progress.note))
}

fn read_progress(bytes: &[u8]) -> Option<Progress> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (percent, note) = text.split_once(' ')?;
    Some(Progress {
        percent: percent.parse().ok()?,
        note: note.to_owned(),
    })
}

pub(super) fn counts(value: Value) -> Result<Counts, QueueError> {
    let parts: [Value; 3] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("counts without three parts".into()))?;
    let [counts, served, paused] = parts;
    let mut by_type: BTreeMap<Arc<str>, BTreeMap<TaskState, u64>> = BTreeMap::new();
    for (field, number) in pairs(counts)? {
        let field = string(field)?;
        let (letter, task_type) = field
            .split_once(':')
            .ok_or_else(|| QueueError::Protocol(format!("the count '{field}'")))?;
        let number = u64::try_from(integer(&number)?).unwrap_or(0);
        if number > 0 {
            let states = by_type.entry(task_type.into()).or_default();
            states.insert(state(letter.chars().next())?, number);
        }
    }
    let served = array(served)?
        .into_iter()
        .map(|name| Ok(string(name)?.into()));
    let mut served: Vec<Arc<str>> = served.collect::<Result<_, QueueError>>()?;
    served.sort_unstable();
    Ok(Counts {
        by_type,
        served,
        paused: integer(&paused)? == 1,
    })
}

/// What `admin load` replies: the clock, totals by letter, since when a task waits or -1.
pub(super) fn load(value: Value) -> Result<Load, QueueError> {
    let parts: [Value; 3] = array(value)?
        .try_into()
        .map_err(|_| QueueError::Protocol("a load without three parts".into()))?;
    let [now, totals, since] = parts;
    let (stored, mut totals) = (totals, Totals::default());
    for (field, number) in pairs(stored)? {
        let number = u64::try_from(integer(&number)?).unwrap_or(0);
        match &*string(field)? {
            "enqueued" => totals.enqueued = number,
            "succeeded" => totals.succeeded = number,
            "failed" => totals.failed = number,
            "lost" => totals.lost = number,
            "dead" => totals.dead = number,
            "cancelled" => totals.cancelled = number,
            // A later version may count more.
            _ => {}
        }
    }
    let ready_since = match integer(&since)? {
        -1 => None,
        _ => Some(timestamp(&since)?),
    };
    Ok(Load {
        now: timestamp(&now)?,
        totals,
        ready_since,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_lost_is_read() {
        let id = TaskId::random();
        let read = lost(&format!("{id} e 2 1700 the lease of worker w~1 ended"));
        let expected = Lost {
            id,
            state: TaskState::RetryScheduled,
            attempts: 2,
            next_run_at: Timestamp::from_ms(1_700),
            error: "the lease of worker w~1 ended".into(),
        };
        assert_eq!(read, Some(expected));
        assert_eq!(lost("mine e 2 1700 no"), None);
    }
}
