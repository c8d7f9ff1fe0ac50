//! Schedules: which minutes an expression names, and who enqueues their tasks.
//!
//! An expression has five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday), each `*`, numbers,
//! names, ranges, lists and steps. If both day fields are restricted, a day that matches either counts, as in Vixie cron.
//!
//! Daylight saving: a schedule with a fixed hour runs once per local time. A local time that a change of the clock skips
//! runs later by the length of the gap, and one that happens twice runs the first time. A schedule of every hour (`*`)
//! follows real time instead: it runs neither less nor more often on such days.
//!
//! The last decided slot is stored with the schedule, and `Queue::fire` moves it from what the scheduler saw to the new
//! one. So any number of schedulers enqueue each slot once. After downtime the latest slot is enqueued if it is no older
//! than [`CATCH_UP`]; all older ones are skipped. A last slot that lies in the future was decided by a clock that was wrong:
//! slots count from now then, or the schedule would be silent until that time comes.

use crate::core::{NewTask, TaskId, Timestamp};
use crate::error::QueueError;
use crate::queue::{Queue, Schedule};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp as Instant, ToSpan};
use std::time::Duration;

/// How old the one slot that is made up for after downtime may be.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(3_600);

/// How far in the future the last slot may lie. A clock that is set back by less repeats no slot.
const AHEAD: Duration = Duration::from_secs(60);

/// How often schedules that other programs stored are looked for.
const LOOK: Duration = Duration::from_secs(20);

/// How far ahead a slot is searched.
const YEARS: i16 = 5;

impl Schedule {
    /// The first slot after a moment; None if the expression or the zone is not valid, or names no such slot.
    #[must_use]
    pub fn next_slot(&self, after: Timestamp) -> Option<Timestamp> {
        let cron = Cron::parse(&self.expression, &self.zone);
        cron.ok()?.after(after)
    }
}

/// A parsed expression in its zone.
#[derive(Debug, Clone)]
pub(crate) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the hour is `*`.
    every_hour: bool,
    /// Whether both day fields are restricted.
    either_day: bool,
    zone: TimeZone,
}

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Cron {
    pub(crate) fn parse(expression: &str, zone: &str) -> Result<Self, QueueError> {
        let bad = |why: String| QueueError::Invalid(format!("the schedule '{expression}': {why}"));
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(bad(format!("five fields, not {}", fields.len())));
        };
        let zone = TimeZone::get(zone)
            .map_err(|_| QueueError::Invalid(format!("'{zone}' is not a time zone")))?;
        let weekdays = field(weekday, 0, 7, 0, &WEEKDAYS).map_err(bad)?;
        let cron = Self {
            minutes: field(minute, 0, 59, 0, &[]).map_err(bad)?,
            hours: field(hour, 0, 23, 0, &[]).map_err(bad)?,
            days: field(day, 1, 31, 1, &[]).map_err(bad)?,
            months: field(month, 1, 12, 1, &MONTHS).map_err(bad)?,
            // 7 is Sunday too.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            every_hour: hour == "*",
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
            zone,
        };
        let start = Timestamp::from_ms(0);
        match cron.after(start) {
            Some(_) => Ok(cron),
            None => Err(bad("it names no day of any year".into())),
        }
    }

    /// The first slot after a moment; None if there is none within years.
    pub(crate) fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let moment = Instant::from_millisecond(i64::try_from(moment.as_ms()).ok()?).ok()?;
        let slot = match self.every_hour {
            true => self.after_in_real_time(moment),
            false => self.after_in_local_time(moment),
        };
        let ms = u64::try_from(slot?.as_millisecond()).ok()?;
        Some(Timestamp::from_ms(ms))
    }

    fn after_in_real_time(&self, moment: Instant) -> Option<Instant> {
        let minute = moment.as_second().div_euclid(60) + 1;
        let mut at = Instant::from_second(minute * 60).ok()?;
        let end = i64::from(YEARS) * 366 * 24 * 60;
        let mut left = end;
        while left > 0 {
            let local = self.zone.to_datetime(at);
            let step = match self.has_day(local.date()) {
                // Days without slots are passed hour by hour.
                false => 60 - i64::from(local.minute()),
                true if has(self.minutes, local.minute()) => return Some(at),
                true => 1,
            };
            left -= step;
            at = at.checked_add(step.minutes()).ok()?;
        }
        None
    }

    fn after_in_local_time(&self, moment: Instant) -> Option<Instant> {
        let start = self.zone.to_datetime(moment);
        // A slot of the day before may have been shifted past midnight.
        let mut date = start.date().yesterday().ok()?;
        let end = Date::new(start.year().checked_add(YEARS)?, 12, 31).ok()?;
        while date <= end {
            if self.has_day(date) {
                let mut slots: Vec<Instant> =
                    self.times().filter_map(|t| self.instant(date, t)).collect();
                slots.sort_unstable();
                if let Some(slot) = slots.into_iter().find(|slot| *slot > moment) {
                    return Some(slot);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        let hours = (0..24).filter(|hour| has(self.hours, *hour));
        hours.flat_map(|hour| {
            let minutes = (0..60).filter(|minute| has(self.minutes, *minute));
            minutes.filter_map(move |minute| Time::new(hour, minute, 0, 0).ok())
        })
    }

    fn instant(&self, date: Date, time: Time) -> Option<Instant> {
        let ambiguous = self
            .zone
            .to_ambiguous_zoned(DateTime::from_parts(date, time));
        debug_assert!(
            !matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) || ambiguous.is_ambiguous()
        );
        // Compatible: a skipped time is shifted by the gap, a repeated one is the first.
        Some(ambiguous.compatible().ok()?.timestamp())
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = match self.either_day {
            true => day || weekday,
            false => day && weekday,
        };
        is_day && has(self.months, date.month())
    }
}

fn has(set: u64, value: i8) -> bool {
    set >> value & 1 == 1
}

/// A field as a set of bits.
fn field(
    text: &str,
    least: u64,
    most: u64,
    first_name: u64,
    names: &[&str],
) -> Result<u64, String> {
    let value = |text: &str| -> Result<u64, String> {
        let named = names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        let value = match named {
            Some(index) => index as u64 + first_name,
            None => text
                .parse()
                .map_err(|_| format!("'{text}' is not a value"))?,
        };
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(format!("{value} is not within {least} to {most}")),
        }
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => match step.parse::<usize>() {
                Ok(step @ 1..) => (range, Some(step)),
                _ => return Err(format!("'{step}' is not a step")),
            },
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (least, if most == 7 { 6 } else { most }),
            Some((first, last)) => (value(first)?, value(last)?),
            None if step.is_some() => (value(range)?, most),
            None => (value(range)?, value(range)?),
        };
        if first > last {
            return Err(format!("'{range}' ends before it begins"));
        }
        for value in (first..=last).step_by(step.unwrap_or(1)) {
            set |= 1 << value;
        }
    }
    Ok(set)
}

/// Enqueues what is due, for ever. Errors are logged and tried again.
pub(crate) async fn run(queue: std::sync::Arc<dyn Queue>) {
    loop {
        let pause = match tick(&*queue).await {
            Ok(next) => next.min(LOOK),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "schedules cannot be read"
                );
                LOOK
            }
        };
        tokio::time::sleep(pause.max(Duration::from_millis(5))).await;
    }
}

/// Decides all due slots; answers how long until the next one. A schedule whose task the queue does not take is logged
/// and skipped, so that the others fire.
pub(crate) async fn tick(queue: &dyn Queue) -> Result<Duration, QueueError> {
    let (now, schedules) = queue.schedules().await?;
    let mut next = LOOK;
    for schedule in schedules {
        let cron = match Cron::parse(&schedule.expression, &schedule.zone) {
            Ok(cron) => cron,
            Err(error) => {
                // A newer version, or another program, may have stored what is not known here.
                tracing::warn!(
                    schedule = schedule.name,
                    error = &error as &dyn std::error::Error,
                    "skipped"
                );
                continue;
            }
        };
        let is_ahead = schedule.last_slot.since(now) > AHEAD;
        if is_ahead
            || cron
                .after(schedule.last_slot)
                .is_some_and(|slot| slot <= now)
        {
            let decided = match is_ahead {
                true => start_anew(queue, &schedule, now).await,
                false => decide(queue, &schedule, &cron, now).await,
            };
            match decided {
                // The other schedules cannot reach the server either.
                Err(error @ QueueError::Io(_)) => return Err(error),
                Err(error) => tracing::warn!(
                    schedule = schedule.name,
                    error = &error as &dyn std::error::Error,
                    "its task cannot be enqueued"
                ),
                Ok(()) => {}
            }
        }
        if let Some(slot) = cron.after(now) {
            next = next.min(slot.since(now));
        }
    }
    Ok(next)
}

/// The task that a schedule enqueues in a slot.
pub(crate) fn task_of(schedule: &Schedule, slot: Timestamp) -> NewTask {
    let mut task = NewTask::new(schedule.envelope.clone());
    task.id = TaskId::from_parts(slot, crate::random::u128());
    task.max_attempts = schedule.max_attempts;
    task.priority = schedule.priority;
    task
}

/// Lets the slots of a schedule count from now: its last slot is in the future, so the clock was set back since.
async fn start_anew(
    queue: &dyn Queue,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<(), QueueError> {
    let last = schedule.last_slot;
    if queue.fire(&schedule.name, last, now, None).await? {
        tracing::warn!(
            schedule = schedule.name,
            last_slot_ms = last.as_ms(),
            now_ms = now.as_ms(),
            "the queue's clock was set back: slots count from now"
        );
    }
    Ok(())
}

async fn decide(
    queue: &dyn Queue,
    schedule: &Schedule,
    cron: &Cron,
    now: Timestamp,
) -> Result<(), QueueError> {
    let oldest = Timestamp::from_ms(now.as_ms().saturating_sub(CATCH_UP.as_millis() as u64));
    let mut latest = None;
    // A slot at the very start of the hour counts.
    let mut at = schedule
        .last_slot
        .max(Timestamp::from_ms(oldest.as_ms().saturating_sub(1)));
    while let Some(slot) = cron.after(at).filter(|slot| *slot <= now) {
        latest = Some(slot);
        at = slot;
    }
    let task = latest.map(|slot| task_of(schedule, slot));
    let enqueued = task.as_ref().map(|task| task.id);
    let slot = latest.unwrap_or(oldest);
    let is_ours = queue
        .fire(&schedule.name, schedule.last_slot, slot, task)
        .await?;
    if is_ours {
        tracing::info!(
            schedule = schedule.name,
            slot_ms = slot.as_ms(),
            enqueued = latest.is_some(),
            "Slot"
        );
        if let Some(id) = enqueued {
            let state = crate::core::TaskState::Queued;
            let task_type = &*schedule.envelope.task_type;
            tracing::info!(task_id = %id, task_type, %state, "Enqueued");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::logged::Log;
    use crate::{InMemoryQueue, Priority, Settings, TaskEnvelope, TaskState};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn at(text: &str) -> Timestamp {
        let instant: Instant = text.parse().unwrap();
        Timestamp::from_ms(instant.as_millisecond() as u64)
    }

    fn check(expression: &str, zone: &str, after: &str, expected: &[&str]) {
        let cron = Cron::parse(expression, zone).unwrap();
        let mut moment = at(after);
        for expected in expected {
            moment = cron.after(moment).unwrap();
            assert_eq!(
                moment,
                at(expected),
                "{expression} after {after}: {expected}"
            );
        }
    }

    #[test]
    fn slots_follow_the_fields() {
        check(
            "*/15 * * * *",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"],
        );
        check(
            "0 9 * * MON-FRI",
            "Asia/Tokyo",
            "2026-01-02T00:00:00Z",
            &["2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"],
        );
        check(
            "30 1,13 1 jan,jul *",
            "UTC",
            "2026-01-01T01:30:00Z",
            &["2026-01-01T13:30:00Z", "2026-07-01T01:30:00Z"],
        );
        check(
            "0 0 29 2 *",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2028-02-29T00:00:00Z"],
        );
        // Either day counts when both are restricted.
        check(
            "0 0 13 * FRI",
            "UTC",
            "2026-01-08T00:00:00Z",
            &["2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"],
        );
        check(
            "0 0 * * 7",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-04T00:00:00Z"],
        );
        check(
            "5 * 1 3 *",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-03-01T00:05:00Z", "2026-03-01T01:05:00Z"],
        );
    }

    #[test]
    fn a_skipped_local_time_runs_later_and_a_repeated_one_once() {
        // Berlin skips 02:00 to 03:00 on 29 March 2026, and repeats 02:00 to 03:00 on 25 October.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
        );
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
    }

    #[test]
    fn every_hour_follows_real_time() {
        check(
            "0 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:30:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"],
        );
        check(
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &[
                "2026-10-25T00:00:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T02:00:00Z",
            ],
        );
    }

    #[tokio::test]
    async fn what_a_schedule_enqueues_is_logged() {
        let clock = Arc::new(AtomicU64::new(at("2026-01-01T08:59:30Z").as_ms()));
        let queue = InMemoryQueue::with_virtual_clock(Settings::default(), clock.clone());
        let schedule = Schedule {
            name: "digest".into(),
            expression: "0 9 * * *".into(),
            zone: "UTC".into(),
            envelope: TaskEnvelope::json("digest", "{}"),
            max_attempts: 5,
            priority: Priority::Normal,
            last_slot: Timestamp::default(),
        };
        queue.put_schedule(schedule).await.unwrap();
        clock.fetch_add(60_000, Ordering::SeqCst);
        let said = Log::of(async { tick(&queue).await.unwrap() }).await;
        assert_eq!(said, ["Enqueued state task_type"]);
    }

    #[test]
    fn what_is_no_schedule_is_an_error() {
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "* * * X *",
            "0 0 31 2 *",
        ] {
            assert!(Cron::parse(bad, "UTC").is_err(), "{bad}");
        }
        assert!(Cron::parse("* * * * *", "Mars/Olympus").is_err());
    }

    #[tokio::test]
    async fn a_slot_is_enqueued_once_and_downtime_is_made_up_for_once() {
        let clock = Arc::new(AtomicU64::new(at("2026-01-01T08:30:00Z").as_ms()));
        let queue = InMemoryQueue::with_virtual_clock(Settings::default(), clock.clone());
        let schedule = Schedule {
            name: "hourly".into(),
            expression: "0 * * * *".into(),
            zone: "UTC".into(),
            envelope: TaskEnvelope::json("digest", "{}"),
            max_attempts: 5,
            priority: Priority::default(),
            last_slot: Timestamp::default(),
        };
        queue.put_schedule(schedule).await.unwrap();
        let enqueued = async || queue.counts_by_state().await.unwrap().of(TaskState::Queued);
        assert_eq!(tick(&queue).await.unwrap(), LOOK);
        assert_eq!(enqueued().await, 0);
        clock.store(at("2026-01-01T08:59:58Z").as_ms(), Ordering::SeqCst);
        assert_eq!(tick(&queue).await.unwrap(), Duration::from_secs(2));
        clock.store(at("2026-01-01T09:00:00Z").as_ms(), Ordering::SeqCst);
        let (first, second) = tokio::join!(tick(&queue), tick(&queue));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(enqueued().await, 1);
        // Five slots were missed: the last one is made up for.
        clock.store(at("2026-01-01T14:20:00Z").as_ms(), Ordering::SeqCst);
        tick(&queue).await.unwrap();
        assert_eq!(enqueued().await, 2);
        assert_eq!(
            queue.schedules().await.unwrap().1[0].last_slot,
            at("2026-01-01T14:00:00Z")
        );
    }

    #[tokio::test]
    async fn a_slot_that_is_too_old_is_skipped() {
        let clock = Arc::new(AtomicU64::new(at("2026-01-01T08:30:00Z").as_ms()));
        let queue = InMemoryQueue::with_virtual_clock(Settings::default(), clock.clone());
        let schedule = Schedule {
            name: "daily".into(),
            expression: "0 9 * * *".into(),
            zone: "UTC".into(),
            envelope: TaskEnvelope::json("digest", "{}"),
            max_attempts: 5,
            priority: Priority::default(),
            last_slot: Timestamp::default(),
        };
        queue.put_schedule(schedule).await.unwrap();
        clock.store(at("2026-01-01T11:00:00Z").as_ms(), Ordering::SeqCst);
        tick(&queue).await.unwrap();
        assert_eq!(queue.counts_by_state().await.unwrap().total(), 0);
        clock.store(at("2026-01-02T10:00:00Z").as_ms(), Ordering::SeqCst);
        tick(&queue).await.unwrap();
        assert_eq!(queue.counts_by_state().await.unwrap().total(), 1);
    }

    #[tokio::test]
    async fn a_clock_that_jumps_forward_and_back_silences_no_schedule() {
        let clock = Arc::new(AtomicU64::new(at("2026-01-01T08:30:00Z").as_ms()));
        let queue = InMemoryQueue::with_virtual_clock(Settings::default(), clock.clone());
        let schedule = Schedule {
            name: "hourly".into(),
            expression: "0 * * * *".into(),
            zone: "UTC".into(),
            envelope: TaskEnvelope::json("digest", "{}"),
            max_attempts: 5,
            priority: Priority::default(),
            last_slot: Timestamp::default(),
        };
        queue.put_schedule(schedule).await.unwrap();
        let at_time = async |time: &str| {
            clock.store(at(time).as_ms(), Ordering::SeqCst);
            tick(&queue).await.unwrap();
            let counts = queue.counts_by_state().await.unwrap();
            counts.of(TaskState::Queued)
        };
        // A year ahead, for one slot.
        assert_eq!(at_time("2027-01-01T00:00:10Z").await, 1);
        assert_eq!(at_time("2026-01-01T08:31:00Z").await, 1);
        assert_eq!(at_time("2026-01-01T09:00:01Z").await, 2);
        // Set back by less than a minute, a slot is not decided twice.
        assert_eq!(at_time("2026-01-01T08:59:50Z").await, 2);
        assert_eq!(at_time("2026-01-01T09:00:02Z").await, 2);
        assert_eq!(at_time("2026-01-01T10:00:00Z").await, 3);
    }
}
