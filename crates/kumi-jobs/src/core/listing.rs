//! Listings: tasks of some states, in pages, newest or oldest first.
//!
//! A listing goes through the queue's indexes, state after state in the order of [`TaskState::ALL`], so that it costs what
//! it shows and not what the queue holds:
//!
//! | state | order |
//! |---|---|
//! | Queued | by priority, then type, then the place in line |
//! | Running | by worker, then id |
//! | Scheduled, RetryScheduled | by the time at which they are due |
//! | Blocked | by the time since which they wait for another task of their serial key |
//! | Succeeded, Dead, Cancelled | by the time at which they ended |
//!
//! Priorities, types and workers come in the same order whether the newest or the oldest tasks come first. A filter by type,
//! id or text is applied to each task on the way: [`Page::looked`] says how many there were. A task that stays in its state
//! while pages are read is on at least one of them, unless the queue's clock is set back.

use super::error::Refusal;
use super::id::{ParseIdError, TaskId, Timestamp};
use super::owner::Owner;
use super::record::{TaskRecord, TaskState};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Tasks of one page at most. A larger limit counts as this one.
pub const PAGE_LIMIT: usize = 100;

/// Ids of one page at most, where only ids are listed.
pub const ID_PAGE_LIMIT: usize = 500;

/// Ids that one page looks at, at most. A queue may look at fewer.
pub(crate) const LOOK_LIMIT: usize = 5_000;

/// Bytes of payloads, errors and results after which a page ends.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Bytes of a text to search for.
pub const SEARCH_LIMIT_BYTES: usize = 1 << 10;

/// Which tasks a listing shows. `..Filter::default()` admits all: fields may be added.
///
/// ```
/// use kumi_jobs::{Filter, TaskState};
///
/// let filter = Filter::of(TaskState::Dead).task_type("send_email").text("timeout");
/// assert_eq!(filter.states, [TaskState::Dead]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Tasks in one of these states; all if empty.
    pub states: Vec<TaskState>,
    /// Tasks of this type.
    pub task_type: Option<Arc<str>>,
    /// Tasks whose id begins so.
    pub id_prefix: Option<IdPrefix>,
    /// Tasks whose payload or last error holds this text, byte for byte.
    pub text: Option<String>,
}

impl Filter {
    /// All tasks in a state.
    #[must_use]
    pub fn of(state: TaskState) -> Self {
        Self {
            states: vec![state],
            ..Self::default()
        }
    }

    /// Only tasks of this type.
    #[must_use]
    pub fn task_type(mut self, task_type: impl Into<Arc<str>>) -> Self {
        self.task_type = Some(task_type.into());
        self
    }

    /// Only tasks whose id begins so.
    #[must_use]
    pub fn id_prefix(mut self, prefix: IdPrefix) -> Self {
        self.id_prefix = Some(prefix);
        self
    }

    /// Only tasks whose payload or last error holds this text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Whether tasks of a state and a type can belong to the listing.
    #[must_use]
    pub fn admits(&self, state: TaskState, task_type: &str) -> bool {
        (self.states.is_empty() || self.states.contains(&state))
            && self
                .task_type
                .as_deref()
                .is_none_or(|wanted| wanted == task_type)
    }

    /// Whether tasks are told apart by more than state and type.
    #[must_use]
    pub fn is_search(&self) -> bool {
        self.id_prefix.is_some() || self.text.is_some()
    }

    /// The states, each once, in the order in which they are listed.
    pub(crate) fn listed_states(&self) -> Vec<TaskState> {
        let is_listed = |state: &TaskState| self.states.is_empty() || self.states.contains(state);
        TaskState::ALL.into_iter().filter(is_listed).collect()
    }

    /// The same, of done tasks only; None if there are none among the states.
    pub(crate) fn done(&self) -> Option<Self> {
        let mut filter = self.clone();
        filter.states = self.listed_states();
        filter.states.retain(|state| state.is_terminal());
        (!filter.states.is_empty()).then_some(filter)
    }

    /// # Errors
    /// If the text is too long.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let size = self.text.as_ref().map_or(0, String::len);
        match size > SEARCH_LIMIT_BYTES {
            true => Err(Refusal::TooLarge {
                what: "the text to search for",
                size,
                limit: SEARCH_LIMIT_BYTES,
            }),
            false => Ok(()),
        }
    }
}

/// The first 1 to 32 hex digits of a task's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdPrefix {
    first: TaskId,
    last: TaskId,
}

impl IdPrefix {
    /// The lowest and the highest id that begin so.
    #[must_use]
    pub fn range(self) -> (TaskId, TaskId) {
        (self.first, self.last)
    }

    /// Whether an id begins so.
    #[must_use]
    pub fn admits(self, id: TaskId) -> bool {
        (self.first..=self.last).contains(&id)
    }
}

impl From<TaskId> for IdPrefix {
    fn from(id: TaskId) -> Self {
        Self {
            first: id,
            last: id,
        }
    }
}

impl FromStr for IdPrefix {
    type Err = ParseIdError;

    /// Reads hex digits, with or without a UUID's hyphens, or a whole id in any of its forms.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if let Ok(id) = text.parse::<TaskId>() {
            return Ok(id.into());
        }
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(1..=32).contains(&digits.len()) {
            let expected = "a task id or its beginning (up to 32 hex digits)";
            return Err(ParseIdError::new(text, expected));
        }
        let filled = |with: &str| {
            let whole = format!("{digits}{}", with.repeat(32 - digits.len()));
            whole.parse::<TaskId>()
        };
        Ok(Self {
            first: filled("0")?,
            last: filled("f")?,
        })
    }
}

/// What comes first in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// What ended last, is due last, or joined its line last.
    #[default]
    Newest,
    /// What ended first, is due first, or is at the head of its line.
    Oldest,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "newest" => Ok(Self::Newest),
            "oldest" => Ok(Self::Oldest),
            _ => Err(format!("'{text}' is not an order: newest or oldest")),
        }
    }
}

/// Where a listing goes on. Its text is letters and digits, so that it fits into a URL; it is good for the same queue,
/// filter and order, for as long as the queue exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// A cursor of a queue's own making, for other implementations of [`Queue`](crate::Queue).
    #[must_use]
    pub fn encode(position: &str) -> Self {
        let digits = position.bytes().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }

    /// What [`Cursor::encode`] was given; None if this is none of its texts.
    #[must_use]
    pub fn decode(&self) -> Option<String> {
        if self.0.is_empty()
            || !self.0.len().is_multiple_of(2)
            || !self.0.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return None;
        }
        let pairs = (0..self.0.len()).step_by(2).map(|at| &self.0[at..at + 2]);
        let bytes: Result<Vec<u8>, _> = pairs.map(|pair| u8::from_str_radix(pair, 16)).collect();
        String::from_utf8(bytes.ok()?).ok()
    }

    /// The error of a cursor that belongs to another listing, or to none.
    pub(crate) fn refused(&self) -> Refusal {
        let text: String = self.0.chars().take(80).collect();
        Refusal::Invalid(format!("'{text}' is not a cursor of this listing"))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Any text; the listing that it is given to says whether it is a cursor.
impl From<String> for Cursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Cursor {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Which part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paging {
    /// What comes first.
    pub order: Order,
    /// Where to go on; None for the first page.
    pub after: Option<Cursor>,
    /// How many tasks at most, up to [`PAGE_LIMIT`].
    pub limit: usize,
}

impl Paging {
    /// The first page of the newest tasks.
    #[must_use]
    pub fn newest(limit: usize) -> Self {
        Self {
            order: Order::Newest,
            after: None,
            limit,
        }
    }

    /// The first page of the oldest tasks.
    #[must_use]
    pub fn oldest(limit: usize) -> Self {
        Self {
            order: Order::Oldest,
            ..Self::newest(limit)
        }
    }

    /// The page after a cursor.
    #[must_use]
    pub fn after(mut self, cursor: Option<Cursor>) -> Self {
        self.after = cursor;
        self
    }
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Page {
    /// Some tasks; perhaps none, though later pages have some.
    pub tasks: Vec<TaskRecord>,
    /// How many ids were looked at for this page.
    pub looked: u64,
    /// Continues the listing; None at its end.
    pub cursor: Option<Cursor>,
}

impl Page {
    /// A page, for other implementations of [`Queue`](crate::Queue).
    #[must_use]
    pub fn new(tasks: Vec<TaskRecord>, looked: u64, cursor: Option<Cursor>) -> Self {
        Self {
            tasks,
            looked,
            cursor,
        }
    }
}

/// A part of a listing, as ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IdPage {
    /// Some ids; perhaps none, though later pages have some.
    pub ids: Vec<TaskId>,
    /// How many ids were looked at for this page.
    pub looked: u64,
    /// Continues the listing; None at its end.
    pub cursor: Option<Cursor>,
}

/// What one step of a purge did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Forgotten {
    /// How many tasks are gone.
    pub tasks: usize,
    /// How many ids were looked at.
    pub looked: u64,
    /// Continues the purge; None at its end.
    pub cursor: Option<Cursor>,
}

/// A worker that runs tasks. One that is idle has no entry in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// The worker.
    pub owner: Owner,
    /// How many tasks it runs.
    pub running: usize,
    /// When it last renewed its lease.
    pub renewed_at: Timestamp,
    /// When its lease ends unless it is renewed.
    pub lease_ends_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_admits_the_ids_that_begin_so() {
        let id: TaskId = "019abcde-f012-7000-8000-00000000000f".parse().unwrap();
        let check = |prefix: &str, expected: bool| {
            let prefix: IdPrefix = prefix.parse().unwrap();
            assert_eq!(prefix.admits(id), expected, "{prefix:?}");
        };
        for prefix in ["0", "019ABCDE", "019abcde-f0", &id.to_string()] {
            check(prefix, true);
        }
        check("019abcdf", false);
        check("1", false);
        let short = String::from_utf8(id.short().to_vec()).unwrap();
        check(&short, true);
        for wrong in ["", "x", "-", &"0".repeat(33)] {
            assert!(wrong.parse::<IdPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn cursors_are_letters_and_digits() {
        let cursor = Cursor::encode("q1 0 2 組 id");
        assert!(
            cursor
                .to_string()
                .bytes()
                .all(|b| b.is_ascii_alphanumeric())
        );
        assert_eq!(cursor.decode().as_deref(), Some("q1 0 2 組 id"));
        for wrong in ["", "?", "7", "zz", "ff", "組組"] {
            assert_eq!(Cursor::from(wrong.to_owned()).decode(), None, "{wrong}");
        }
    }
}
