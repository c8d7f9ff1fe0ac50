//! Listings of the machine's tasks, through its indexes: what `redis/lua/browse.lua` does, with the same cursors.

use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp};
use super::super::listing::{
    Cursor, Filter, Holding, LOOK_LIMIT, Order, PAGE_BYTES, PAGE_LIMIT, Page, Paging,
};
use super::super::record::{Priority, TaskState};
use super::{Machine, Record};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

impl Machine {
    /// A part of a listing.
    pub(crate) fn list(&self, filter: &Filter, paging: &Paging) -> Result<Page, Refusal> {
        filter.check()?;
        let after = match &paging.after {
            Some(cursor) => Some(cursor.decode().ok_or_else(|| cursor.refused())?),
            None => None,
        };
        let mut walk = Walk {
            machine: self,
            filter,
            order: paging.order,
            limit: paging.limit.clamp(1, PAGE_LIMIT),
            found: Vec::new(),
            looked: 0,
            bytes: 0,
        };
        let at = match (walk.go(after.as_deref()), &paging.after) {
            (Ok(at), _) => at,
            (Err(NoCursor), Some(cursor)) => return Err(cursor.refused()),
            // A listing from its start reads no cursor.
            (Err(NoCursor), None) => None,
        };
        let tasks = walk.found.iter().filter_map(|id| self.status(*id));
        Ok(Page::new(
            tasks.collect(),
            walk.looked as u64,
            at.as_deref().map(Cursor::encode),
        ))
    }

    /// Owners that run tasks, by name.
    pub(crate) fn holdings(&self) -> Vec<Holding> {
        let owners = self.owners.iter();
        let holding = owners.map(|(owner, holder)| Holding {
            owner: owner.clone(),
            running: holder.running.len(),
            renewed_at: holder.renewed_at,
            lease_ends_at: holder.lease_end,
        });
        holding.collect()
    }
}

/// The cursor belongs to another listing, or to none.
struct NoCursor;

/// Whether a walk over a state is over, with the position of the id that was last looked at.
type Walked = Result<Option<String>, NoCursor>;

struct Walk<'a> {
    machine: &'a Machine,
    filter: &'a Filter,
    order: Order,
    limit: usize,
    found: Vec<TaskId>,
    looked: usize,
    bytes: usize,
}

impl Walk<'_> {
    /// Walks over the states from a position on. The position to go on from; None at the end.
    fn go(&mut self, after: Option<&str>) -> Walked {
        let mut rest = after.map(split_state);
        if rest == Some(None) {
            return Err(NoCursor);
        }
        for state in self.filter.listed_states() {
            let from = match rest {
                Some(Some((at, from))) if at == state => {
                    rest = None;
                    from
                }
                Some(_) => continue,
                None => "",
            };
            if let Some(at) = self.walk(state, from)? {
                return Ok(Some(format!("{}{at}", state.letter())));
            }
        }
        match rest {
            Some(_) => Err(NoCursor),
            None => Ok(None),
        }
    }

    fn walk(&mut self, state: TaskState, from: &str) -> Walked {
        let machine = self.machine;
        match state {
            TaskState::Scheduled => self.walk_set(state, &machine.scheduled, from),
            TaskState::RetryScheduled => self.walk_set(state, &machine.retry, from),
            TaskState::Dead => self.walk_set(state, &machine.dead, from),
            TaskState::Succeeded => self.walk_done(state, &machine.succeeded, from),
            TaskState::Cancelled => self.walk_done(state, &machine.cancelled, from),
            TaskState::Queued => self.walk_lines(from),
            TaskState::Running => self.walk_running(from),
            TaskState::Blocked => self.walk_set(state, &machine.blocked, from),
        }
    }

    /// Looks at an id; true if the step is over.
    fn visit(&mut self, state: TaskState, id: TaskId) -> bool {
        self.looked += 1;
        if self.admits(state, id) {
            self.found.push(id);
        }
        self.found.len() >= self.limit || self.looked >= LOOK_LIMIT || self.bytes >= PAGE_BYTES
    }

    fn admits(&mut self, state: TaskState, id: TaskId) -> bool {
        let Some(record) = self.machine.records.get(&id) else {
            return false;
        };
        let prefix = self.filter.id_prefix;
        if record.state != state
            || !self.filter.admits(state, &record.envelope.task_type)
            || !prefix.is_none_or(|prefix| prefix.admits(id))
        {
            return false;
        }
        let size = size_of(record);
        let admits = match &self.filter.text {
            Some(text) => {
                self.bytes += size;
                holds(record, text.as_bytes())
            }
            None => true,
        };
        if admits {
            self.bytes += size;
        }
        admits
    }

    fn walk_set(
        &mut self,
        state: TaskState,
        set: &BTreeSet<(Timestamp, TaskId)>,
        from: &str,
    ) -> Walked {
        let last = match from {
            "" => None,
            from => {
                let (at, id) = from.split_once(' ').ok_or(NoCursor)?;
                Some((Timestamp::from_ms(number(at)?), parsed(id)?))
            }
        };
        let mut entries: Box<dyn Iterator<Item = &(Timestamp, TaskId)>> = match (self.order, last) {
            (Order::Oldest, None) => Box::new(set.iter()),
            (Order::Newest, None) => Box::new(set.iter().rev()),
            (Order::Oldest, Some(last)) => Box::new(set.range((Excluded(last), Unbounded))),
            (Order::Newest, Some(last)) => Box::new(set.range((Unbounded, Excluded(last))).rev()),
        };
        let over = entries.find(|(_, id)| self.visit(state, *id));
        Ok(over.map(|(at, id)| format!("{} {id}", at.as_ms())))
    }

    /// Where a list goes on after an id that was at these distances from its ends.
    fn places(&self, list: &VecDeque<TaskId>, last: Option<&Last>) -> Option<(usize, usize)> {
        let all = (0, list.len());
        let Some(last) = last else {
            return Some(all);
        };
        let tail = list.len().checked_sub(last.tail.saturating_add(1));
        let hints = [Some(last.head), tail].into_iter().flatten();
        let is_there = |place: &usize| list.get(*place) == Some(&last.id);
        let place = hints
            .into_iter()
            .find(is_there)
            .or_else(|| list.iter().position(|id| *id == last.id))?;
        Some(match self.order {
            Order::Oldest => (place + 1, list.len()),
            Order::Newest => (0, place),
        })
    }

    /// Looks at a part of a list; the place and the id at which the step was over.
    fn visit_part(
        &mut self,
        state: TaskState,
        list: &VecDeque<TaskId>,
        (low, high): (usize, usize),
    ) -> Option<(usize, TaskId)> {
        let mut part: Box<dyn Iterator<Item = usize>> = match self.order {
            Order::Oldest => Box::new(low..high),
            Order::Newest => Box::new((low..high).rev()),
        };
        let place = part.find(|place| self.visit(state, list[*place]))?;
        Some((place, list[place]))
    }

    fn walk_done(&mut self, state: TaskState, list: &VecDeque<TaskId>, from: &str) -> Walked {
        let last = match from {
            "" => None,
            from => Some(Last::read(from)?),
        };
        let ended = |id: &TaskId| {
            let record = self.machine.records.get(id);
            record.map_or(0, |record| record.updated_at.as_ms())
        };
        let part = match (self.places(list, last.as_ref()), &last) {
            (Some(part), _) => part,
            (None, None) => (0, list.len()),
            // It is gone: the time of its end says where it was.
            (None, Some(last)) => {
                let at = number(&last.word)?;
                match self.order {
                    Order::Oldest => (list.partition_point(|id| ended(id) < at), list.len()),
                    Order::Newest => (0, list.partition_point(|id| ended(id) <= at)),
                }
            }
        };
        let over = self.visit_part(state, list, part);
        Ok(over.map(|(place, id)| {
            let tail = list.len() - 1 - place;
            let record = self.machine.records.get(&id);
            let ended = record.map_or(0, |record| record.updated_at.as_ms());
            format!("{place} {tail} {ended} {id}")
        }))
    }

    fn walk_lines(&mut self, from: &str) -> Walked {
        let machine = self.machine;
        let last = match from {
            "" => None,
            from => {
                let (level, rest) = from.split_once(' ').ok_or(NoCursor)?;
                let level: usize = level.parse().map_err(|_| NoCursor)?;
                Some((level, Last::of_line(rest)?))
            }
        };
        let mut kinds: Vec<_> = machine.kinds.iter().collect();
        kinds.sort_by(|a, b| a.task_type.cmp(&b.task_type));
        let wanted = self.filter.task_type.as_deref();
        kinds.retain(|kind| wanted.is_none_or(|wanted| wanted == &*kind.task_type));
        for level in 0..Priority::ALL.len() {
            for kind in &kinds {
                let lane = (level, &*kind.task_type);
                let list = &kind.lanes[level];
                let part = match &last {
                    Some((at, last)) if lane < (*at, &*last.word) => continue,
                    // A line loses ids only at its head: where the task was claimed since, or its id is gone, all
                    // before it are gone too.
                    Some((at, last)) if lane == (*at, &*last.word) => {
                        let gone = match self.order {
                            Order::Oldest => (0, list.len()),
                            Order::Newest => (0, 0),
                        };
                        let is_same = self.runs(last.id) == last.runs;
                        let there = is_same.then(|| self.places(list, Some(last))).flatten();
                        there.unwrap_or(gone)
                    }
                    _ => (0, list.len()),
                };
                if let Some((place, id)) = self.visit_part(TaskState::Queued, list, part) {
                    let tail = list.len() - 1 - place;
                    let task_type = &kind.task_type;
                    let runs = self.runs(id);
                    return Ok(Some(format!(
                        "{level} {place} {tail} {task_type} {runs} {id}"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// How many times a task was claimed.
    fn runs(&self, id: TaskId) -> u64 {
        let record = self.machine.records.get(&id);
        record.map_or(0, |record| record.runs.into())
    }

    fn walk_running(&mut self, from: &str) -> Walked {
        let machine = self.machine;
        let last = match from {
            "" => None,
            from => {
                let (owner, id) = from.split_once(' ').ok_or(NoCursor)?;
                Some((owner, parsed::<TaskId>(id)?))
            }
        };
        for (owner, holder) in &machine.owners {
            let mut ids = holder.ids();
            match last {
                Some((at, _)) if owner.as_str() < at => continue,
                Some((at, last)) if owner.as_str() == at => ids.retain(|id| match self.order {
                    Order::Oldest => *id > last,
                    Order::Newest => *id < last,
                }),
                _ => {}
            }
            if self.order == Order::Newest {
                ids.reverse();
            }
            let over = ids.iter().find(|id| self.visit(TaskState::Running, **id));
            if let Some(id) = over {
                return Ok(Some(format!("{owner} {id}")));
            }
        }
        Ok(None)
    }
}

/// An id of a list, its distances from both ends, and a word: its type, or the time of its end.
struct Last {
    head: usize,
    tail: usize,
    word: String,
    /// In a line, how many times the task was claimed.
    runs: u64,
    id: TaskId,
}

impl Last {
    fn read(text: &str) -> Result<Self, NoCursor> {
        let words: Vec<&str> = text.split(' ').collect();
        let [head, tail, word, id] = words[..] else {
            return Err(NoCursor);
        };
        Self::of_words([head, tail, word, "0", id])
    }

    fn of_line(text: &str) -> Result<Self, NoCursor> {
        let words: Vec<&str> = text.split(' ').collect();
        Self::of_words(words.try_into().map_err(|_| NoCursor)?)
    }

    fn of_words([head, tail, word, runs, id]: [&str; 5]) -> Result<Self, NoCursor> {
        Ok(Self {
            head: number(head)? as usize,
            tail: number(tail)? as usize,
            word: word.to_owned(),
            runs: number(runs)?,
            id: parsed(id)?,
        })
    }
}

/// The letter of a state, and what follows.
fn split_state(position: &str) -> Option<(TaskState, &str)> {
    let letter = position.chars().next()?;
    Some((
        TaskState::from_letter(letter)?,
        &position[letter.len_utf8()..],
    ))
}

fn number(text: &str) -> Result<u64, NoCursor> {
    parsed(text)
}

fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, NoCursor> {
    text.parse().map_err(|_| NoCursor)
}

fn error_of(record: &Record) -> &[u8] {
    let rare = record.rare.as_deref();
    let error = rare.and_then(|rare| rare.last_error.as_deref());
    error.unwrap_or_default().as_bytes()
}

fn size_of(record: &Record) -> usize {
    record.envelope.payload.len() + error_of(record).len()
}

/// Whether the payload or the error holds a text.
fn holds(record: &Record, text: &[u8]) -> bool {
    let holds =
        |bytes: &[u8]| text.is_empty() || bytes.windows(text.len()).any(|part| part == text);
    holds(&record.envelope.payload) || holds(error_of(record))
}
