//! The log, in Redis's format:
//!
//! ```text
//! 1234:M 15 Nov 2026 02:11:08.123 * Ready to accept connections tcp
//! ```
//!
//! The marks are `.` debug, `-` verbose, `*` notice and `#` warning, for tracing's levels trace,
//! debug, info, and warn or error. Times are UTC: local time would need a time zone database, and
//! UTC makes logs of several machines comparable.
//!
//! What programs write that a node runs is in the log at every level but `nothing`: its target is [`PROGRAM_OUTPUT`].
//!
//! As in Redis, the log file is opened for every line, so it can be rotated by renaming it.

use kumi_store::config::LogLevel;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The target of events with the text of programs that a node runs. They are events of the level info.
pub const PROGRAM_OUTPUT: &str = "kumi::program";

/// Changes the log level while the server runs.
#[derive(Clone, Debug)]
pub struct LogControl(reload::Handle<Targets, Registry>);

impl LogControl {
    /// Sets the level.
    pub fn set(&self, level: LogLevel) {
        // Fails only if the subscriber no longer exists, and then there is no log.
        let _ = self.0.reload(filter(level));
    }
}

/// The destination of log lines.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Stdout,
    File(PathBuf),
}

/// Installs the log as the process's tracing subscriber. `None` if there already is one, which is kept.
pub(crate) fn install(target: Target, level: LogLevel) -> Option<LogControl> {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = tracing_subscriber::fmt::layer()
        .event_format(RedisFormat {
            process_id: std::process::id(),
        })
        .with_ansi(false)
        .with_writer(target)
        .with_filter(filter);
    let installed = tracing_subscriber::registry().with(lines).try_init();
    installed.ok().map(|()| LogControl(handle))
}

fn filter(level: LogLevel) -> Targets {
    let (level, of_programs) = match level {
        LogLevel::Debug => (LevelFilter::TRACE, LevelFilter::INFO),
        LogLevel::Verbose => (LevelFilter::DEBUG, LevelFilter::INFO),
        LogLevel::Notice => (LevelFilter::INFO, LevelFilter::INFO),
        LogLevel::Warning => (LevelFilter::WARN, LevelFilter::INFO),
        LogLevel::Nothing => (LevelFilter::OFF, LevelFilter::OFF),
    };
    let all = Targets::new().with_default(level);
    all.with_target(PROGRAM_OUTPUT, of_programs)
}

impl<'a> MakeWriter<'a> for Target {
    type Writer = Box<dyn Write>;

    fn make_writer(&'a self) -> Self::Writer {
        match self {
            Target::Stdout => Box::new(io::stdout()),
            Target::File(path) => match File::options().append(true).create(true).open(path) {
                Ok(file) => Box::new(file),
                // The file could be opened when the server started. Standard error is the only place left.
                Err(_) => Box::new(io::stderr()),
            },
        }
    }
}

struct RedisFormat {
    process_id: u32,
}

impl<S, N> FormatEvent<S, N> for RedisFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |time| time.as_millis() as u64);
        let mark = mark(event.metadata().level());
        write!(writer, "{}:M {} {mark} ", self.process_id, Time(now_ms))?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

fn mark(level: &Level) -> char {
    match *level {
        Level::TRACE => '.',
        Level::DEBUG => '-',
        Level::INFO => '*',
        Level::WARN | Level::ERROR => '#',
    }
}

/// A time in Unix milliseconds, formatted as `15 Nov 2026 02:11:08.123`.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let (ms, seconds) = (self.0 % 1000, self.0 / 1000);
        let (second, minute, hour) = (seconds % 60, seconds / 60 % 60, seconds / 3600 % 24);
        let (year, month, day) = date(seconds / 86400);
        let month = MONTHS[month];
        write!(
            f,
            "{day:02} {month} {year} {hour:02}:{minute:02}:{second:02}.{ms:03}"
        )
    }
}

/// Year, month from 0 and day from 1 of a day since 1970.
///
/// Years are counted from March, so that the leap day is the last day of its year; the first day of a
/// month is then a linear function of the month's number, rounded down.
fn date(days_since_1970: u64) -> (u64, usize, u64) {
    /// Days from 1 March of year 0 to 1 January 1970.
    const EPOCH: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days_since_1970 + EPOCH;
    let (era, day_of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month = (months_since_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unix_ms: u64, expected: &str) {
        assert_eq!(Time(unix_ms).to_string(), expected);
    }

    #[test]
    fn times_are_shown_as_redis_shows_them() {
        check(0, "01 Jan 1970 00:00:00.000");
        check(951_782_399_999, "28 Feb 2000 23:59:59.999");
        check(951_782_400_000, "29 Feb 2000 00:00:00.000");
        check(951_868_800_000, "01 Mar 2000 00:00:00.000");
        check(1_794_708_668_123, "15 Nov 2026 02:11:08.123");
        check(4_107_542_400_000, "01 Mar 2100 00:00:00.000");
        check(1_735_689_599_000, "31 Dec 2024 23:59:59.000");
    }

    #[test]
    fn every_day_of_a_thousand_years_follows_the_one_before() {
        let mut last = date(0);
        for day in 1..365_243 {
            let next = date(day);
            let same_month = next.0 == last.0 && next.1 == last.1 && next.2 == last.2 + 1;
            let next_month = next.2 == 1 && last.2 >= 28 && next.1 == (last.1 + 1) % 12;
            assert!(same_month || next_month, "{last:?} then {next:?}");
            last = next;
        }
        assert_eq!(last.0, 2969);
    }
}
