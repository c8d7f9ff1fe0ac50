//! Values that are written as text: times, back-offs, addresses. The command line reads the same.

use super::{MEMBERSHIP_PORT, ServeCommand};
use kumi_cluster::Authority;
use kumi_jobs::{Backoff, Priority, Schedule, TaskEnvelope, Timestamp};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long running tasks may go on when the node stops.
pub(super) const STOP_WITHIN: Duration = Duration::from_secs(30);
/// How long after SIGTERM the command of a task is killed.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(5);
/// How long after SIGTERM a program of `run` is killed.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(10);
/// Requests of a `serve` entry that are worked on at a time.
pub(super) const SERVE_CONCURRENCY: usize = 16;
/// How long a request may be worked on.
pub(super) const HANDLER_TIMEOUT: Duration = Duration::from_secs(300);
/// The time zone of a schedule.
pub(super) const ZONE: &str = "UTC";
/// The payload of a schedule's tasks.
pub(super) const PAYLOAD: &str = "null";

/// How much a delay grows per attempt where the text does not say.
const FACTOR: u32 = 2;
/// The longest name of a host, as DNS has it.
const MAX_HOST_BYTES: usize = 253;

/// Reads `2s`, `500ms`, `15m`, `24h`; a bare number is seconds.
///
/// # Errors
/// If the text is no such time, or nothing.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "expected a time such as 500ms, 2s, 15m or 24h";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(WRONG),
    };
    let number: u64 = digits.parse().map_err(|_| WRONG)?;
    match number.checked_mul(unit_ms) {
        Some(0) => Err("has to be longer than nothing"),
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Err(WRONG),
    }
}

/// The text that [`duration`] reads as this time, which is in whole milliseconds.
pub(super) fn duration_text(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    match units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}

/// Reads a back-off: `5s`, `1s..10m`, `1s..10m*4`.
///
/// # Errors
/// If the text is no such back-off.
pub fn backoff(text: &str) -> Result<Backoff, &'static str> {
    const WRONG: &str =
        "expected a time such as 5s, or two and perhaps a factor: 1s..10m or 1s..10m*4";
    let time = |text| duration(text).map_err(|_| WRONG);
    let Some((first, rest)) = text.split_once("..") else {
        let first = time(text)?;
        return Ok(Backoff {
            first,
            cap: first,
            factor: 1,
        });
    };
    let (cap, factor) = match rest.split_once('*') {
        None => (rest, FACTOR),
        Some((cap, factor)) => (cap, factor.parse().map_err(|_| WRONG)?),
    };
    let backoff = Backoff {
        first: time(first)?,
        cap: time(cap)?,
        factor,
    };
    match backoff.factor > 0 && backoff.first <= backoff.cap {
        true => Ok(backoff),
        false => Err(WRONG),
    }
}

/// The text that [`backoff`] reads as this back-off.
pub(super) fn backoff_text(backoff: &Backoff) -> String {
    let (first, cap) = (duration_text(backoff.first), duration_text(backoff.cap));
    match backoff.factor {
        1 if backoff.first == backoff.cap => first,
        factor => format!("{first}..{cap}*{factor}"),
    }
}

/// An address of this machine: names are not looked up.
pub(super) fn address(text: &str) -> Result<IpAddr, &'static str> {
    text.parse()
        .map_err(|_| "expected an IP address without a port, such as 10.0.0.1 or ::1")
}

/// Reads a node to join: a host, with or without a port.
///
/// # Errors
/// If the text is none.
pub fn seed(text: &str) -> Result<Authority, &'static str> {
    const WRONG: &str = "expected a host with or without a port, such as 10.0.0.1, [::1]:7400 or node-a.example:7400";
    let address = match text.parse::<SocketAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => match text.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, MEMBERSHIP_PORT).to_string(),
            Err(_) => {
                let (name, port) = text.split_once(':').unwrap_or((text, "7400"));
                let port: u16 = port.parse().map_err(|_| WRONG)?;
                format!("{}:{port}", host_name(name).map_err(|_| WRONG)?)
            }
        },
    };
    match address.ends_with(":0") {
        true => Err("port 0 cannot be joined"),
        false => Authority::new(&address).map_err(|_| WRONG),
    }
}

/// Reads what a node advertises: an address that others can reach, or a name.
///
/// # Errors
/// If the text is neither, or an address that no other machine reaches.
pub fn advertised(text: &str) -> Result<String, &'static str> {
    let ip = text.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_own = match ip {
        Ok(ip) => ip.is_unspecified() || ip.is_loopback(),
        Err(_) => text.eq_ignore_ascii_case("localhost"),
    };
    match (is_own, ip) {
        (true, _) => Err("no other machine can reach this node there"),
        (false, Ok(ip)) => Ok(ip.to_string()),
        (false, Err(_)) => host_name(text),
    }
}

/// The name of a host, without a port.
pub(super) fn host_name(text: &str) -> Result<String, &'static str> {
    let may_hold = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = (1..=MAX_HOST_BYTES).contains(&text.len())
        && text.bytes().all(may_hold)
        && !text.starts_with(['.', '-']);
    match is_name {
        true => Ok(text.to_owned()),
        false => Err("expected the name of a host or an IP address, without a port"),
    }
}

/// Says what is wrong with a schedule: its zone, or one of its fields.
pub(super) fn schedule_fault(expression: &str, zone: &str) -> Option<String> {
    const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];
    let is_valid = |expression: &str, zone: &str| {
        let schedule = Schedule {
            name: String::new(),
            expression: expression.into(),
            zone: zone.into(),
            envelope: TaskEnvelope::json("", ""),
            max_attempts: 1,
            priority: Priority::Normal,
            last_slot: Timestamp::default(),
        };
        schedule.next_slot(Timestamp::default()).is_some()
    };
    if !is_valid("* * * * *", zone) {
        return Some(format!(
            "{zone:?} is not a time zone; zones are named as in Asia/Tokyo"
        ));
    }
    let fields: Vec<&str> = expression.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let count = fields.len();
        return Some(format!(
            "a schedule has five fields (minute, hour, day of month, month, day of week), not {count}"
        ));
    }
    for (at, name) in FIELDS.iter().enumerate() {
        let mut alone = ["*"; FIELDS.len()];
        alone[at] = fields[at];
        if !is_valid(&alone.join(" "), ZONE) {
            return Some(format!("{:?} is no {name}", fields[at]));
        }
    }
    match is_valid(expression, zone) {
        true => None,
        false => Some("this schedule names no day of any year".into()),
    }
}

impl ServeCommand {
    /// The name of its property, and the command.
    pub(super) fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Exec(command) => ("exec", command),
            Self::Pipe(command) => ("pipe", command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let check = |text, ms: Option<u64>| {
            assert_eq!(duration(text).ok(), ms.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("2s", Some(2_000));
        check("2", Some(2_000));
        check("15m", Some(900_000));
        check("24h", Some(86_400_000));
        for nonsense in [
            "",
            "s",
            "0s",
            "-1s",
            "2 s",
            "2x",
            "1.5s",
            "é",
            "99999999999999999h",
        ] {
            check(nonsense, None);
        }
    }

    #[test]
    fn back_offs_are_read() {
        let check = |text: &str, first_ms: u64, cap_ms: u64, factor: u32| {
            let expected = Backoff {
                first: Duration::from_millis(first_ms),
                cap: Duration::from_millis(cap_ms),
                factor,
            };
            assert_eq!(backoff(text), Ok(expected), "{text}");
        };
        check("5s", 5_000, 5_000, 1);
        check("500ms..2m", 500, 120_000, 2);
        check("1s..1h*4", 1_000, 3_600_000, 4);
        for wrong in [
            "", "soon", "5s..", "..5s", "5s..1s", "1s..2s*0", "1s..2s*x", "0s",
        ] {
            assert!(backoff(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_back_offs_are_written_as_they_are_read() {
        for text in ["500ms", "1500ms", "2s", "90s", "15m", "24h"] {
            assert_eq!(duration_text(duration(text).unwrap()), text);
        }
        for text in ["5s", "1s..10m*2", "1s..1h*4", "5s..5s*2"] {
            assert_eq!(backoff_text(&backoff(text).unwrap()), text);
        }
    }

    #[test]
    fn a_node_to_join_has_a_port() {
        let check = |text: &str, expected: Option<&str>| {
            let found = seed(text);
            let found = found.as_ref().ok().map(Authority::as_str);
            assert_eq!(found, expected, "{text}");
        };
        check("10.0.0.1", Some("10.0.0.1:7400"));
        check("10.0.0.1:7401", Some("10.0.0.1:7401"));
        check("::1", Some("[::1]:7400"));
        check("[::1]", Some("[::1]:7400"));
        check("[::1]:7401", Some("[::1]:7401"));
        check("node-a.example", Some("node-a.example:7400"));
        check("node-a.example:7401", Some("node-a.example:7401"));
        for wrong in ["", ":7400", "a b", "a:b", "a:70000", "a/b", "a:0", "a@b"] {
            check(wrong, None);
        }
    }

    #[test]
    fn only_what_others_can_reach_is_advertised() {
        for wrong in [
            "0.0.0.0",
            "::",
            "127.0.0.1",
            "::1",
            "[::1]",
            "localhost",
            "a:1",
            "",
        ] {
            assert!(advertised(wrong).is_err(), "{wrong}");
        }
        assert_eq!(advertised("[fd00::1]"), Ok("fd00::1".into()));
        assert_eq!(advertised("node-a.example"), Ok("node-a.example".into()));
    }

    #[test]
    fn the_fault_of_a_schedule_is_named() {
        assert_eq!(schedule_fault("0 9 * * MON-FRI", "Asia/Tokyo"), None);
        let fault = |expression, zone| schedule_fault(expression, zone).unwrap();
        assert!(fault("0 9 * *", "UTC").contains("five fields"));
        assert_eq!(fault("0 25 * * *", "UTC"), "\"25\" is no hour");
        assert_eq!(fault("0 9 * * MOO", "UTC"), "\"MOO\" is no day of week");
        assert!(fault("0 9 * * *", "Asia/Tokio").contains("not a time zone"));
        assert!(fault("0 9 31 2 *", "UTC").contains("no day"));
    }
}
