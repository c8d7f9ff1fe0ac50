//! Times for people: in their own time zone, and how long ago or ahead they are.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, Zoned};
use kumi_jobs::Timestamp;
use std::time::{Duration, SystemTime};

/// A clock reading and a time zone, taken once for all lines of an output.
pub(super) struct Clock {
    now: Timestamp,
    zone: TimeZone,
}

impl Clock {
    /// This machine's clock and time zone (TZ, or the system's).
    pub(super) fn of_this_machine() -> Self {
        let now = crate::command_line::terminal::unix_ms();
        Self::new(Timestamp::from_ms(now), TimeZone::system())
    }

    fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { now, zone }
    }

    /// `2026-11-18 09:30:05`, in the time zone.
    pub(super) fn local(&self, at: Timestamp) -> String {
        self.format(at, "%Y-%m-%d %H:%M:%S")
    }

    /// `09:30:05.123`, in the time zone.
    pub(super) fn time_of_day(&self, at: Timestamp) -> String {
        self.format(at, "%H:%M:%S%.3f")
    }

    fn format(&self, at: Timestamp, form: &str) -> String {
        let ms = i64::try_from(at.as_ms()).ok();
        let instant = ms.and_then(|ms| Instant::from_millisecond(ms).ok());
        match instant {
            Some(instant) => {
                let zoned = instant.to_zoned(self.zone.clone());
                zoned.strftime(form).to_string()
            }
            // Beyond the years that calendars have.
            None => format!("{} ms", at.as_ms()),
        }
    }

    /// `3m`: how long ago.
    pub(super) fn age(&self, at: Timestamp) -> String {
        length(self.now.since(at))
    }

    /// `3m ago` or `in 3m`.
    pub(super) fn relative(&self, at: Timestamp) -> String {
        match at > self.now {
            true => format!("in {}", length(at.since(self.now))),
            false => format!("{} ago", self.age(at)),
        }
    }

    /// `2026-11-18 09:30:05 (3m ago)`.
    pub(super) fn both(&self, at: Timestamp) -> String {
        format!("{} ({})", self.local(at), self.relative(at))
    }
}

/// Two units at most: `450ms`, `12s`, `3m`, `5h10m`, `2d3h`.
fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |large: u64, unit: char, small: u64, rest: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{rest}"),
    };
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..60 => format!("{seconds}s"),
        60..600 => two(seconds / 60, 'm', seconds % 60, 's'),
        600..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => two(seconds / 3_600, 'h', seconds % 3_600 / 60, 'm'),
        _ => two(seconds / 86_400, 'd', seconds % 86_400 / 3_600, 'h'),
    }
}

/// Reads a point in time: `2026-11-18T09:00:00+09:00`, with a `Z`, or without an offset in the time zone of this machine;
/// seconds may be left out, and a space may stand for the `T`.
pub(super) fn point(text: &str) -> Result<SystemTime, String> {
    point_in(text, &TimeZone::system())
}

fn point_in(text: &str, zone: &TimeZone) -> Result<SystemTime, String> {
    if let Ok(instant) = text.parse::<Instant>() {
        return Ok(instant.into());
    }
    let local: Option<Zoned> = text
        .parse::<DateTime>()
        .ok()
        .and_then(|time| time.to_zoned(zone.clone()).ok());
    match local {
        Some(zoned) => Ok(zoned.timestamp().into()),
        None => Err("expected a time such as 2026-11-18T09:00 or 2026-11-18T09:00:00Z".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units_at_most() {
        let check = |ms: u64, expected: &str| {
            assert_eq!(length(Duration::from_millis(ms)), expected);
        };
        check(450, "450ms");
        check(12_900, "12s");
        check(180_000, "3m");
        check(185_000, "3m5s");
        check(3_599_000, "59m");
        check(18_600_000, "5h10m");
        check(86_400_000 * 2 + 3 * 3_600_000, "2d3h");
    }

    #[test]
    fn times_are_local_and_relative() {
        let zone = TimeZone::get("Asia/Tokyo").unwrap();
        let clock = Clock::new(Timestamp::from_ms(1_700_000_000_000), zone);
        let at = |ms: u64| Timestamp::from_ms(1_700_000_000_000 + ms - 60_000);
        assert_eq!(clock.both(at(0)), "2023-11-15 07:12:20 (1m ago)");
        assert_eq!(clock.relative(at(90_000)), "in 30s");
        assert_eq!(clock.time_of_day(at(1)), "07:12:20.001");
        assert_eq!(
            clock.local(Timestamp::from_ms(u64::MAX)),
            format!("{} ms", u64::MAX)
        );
    }

    #[test]
    fn points_in_time_are_local_unless_they_say_otherwise() {
        let zone = TimeZone::get("Asia/Tokyo").unwrap();
        let ms = |text: &str| {
            let time = point_in(text, &zone).ok()?;
            Some(
                time.duration_since(SystemTime::UNIX_EPOCH)
                    .ok()?
                    .as_millis(),
            )
        };
        let expected = Some(1_700_000_000_000);
        assert_eq!(ms("2023-11-15T07:13:20"), expected);
        assert_eq!(ms("2023-11-15 07:13:20"), expected);
        assert_eq!(ms("2023-11-14T22:13:20Z"), expected);
        assert_eq!(ms("2023-11-15T00:13:20+02:00"), expected);
        assert_eq!(ms("2023-11-15T07:13"), Some(1_699_999_980_000));
        assert_eq!(ms("tomorrow"), None);
    }
}
