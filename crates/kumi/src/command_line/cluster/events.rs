//! One event of a cluster, as a line for people or as JSON.

use super::failure::Failure;
use super::words;
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_cluster::AdminEvent;
use serde::Serialize;
use serde_json::Value;

/// An event that happened now.
pub(super) fn line(event: &AdminEvent, terminal: &Terminal) -> Result<String, Failure> {
    match terminal.is_json {
        true => json_line(event),
        false => {
            let time = terminal.paint(Colour::Dim, &terminal::clock(terminal::unix_ms()));
            Ok(format!("{time} {}", text(event, terminal)))
        }
    }
}

/// Anything as JSON, with the time.
pub(super) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let failed = |error: serde_json::Error| Failure::Other(error.into());
    let mut value = serde_json::to_value(value).map_err(failed)?;
    if let Value::Object(object) = &mut value {
        object.insert("time_ms".into(), terminal::unix_ms().into());
    }
    Ok(value.to_string())
}

fn text(event: &AdminEvent, terminal: &Terminal) -> String {
    let quoted = words::shown;
    match event {
        AdminEvent::Status {
            authority,
            from,
            to,
            ..
        } => {
            let from = from.as_deref().unwrap_or("unknown");
            let to = words::status(terminal, to, &quoted(to));
            format!("{} {} -> {to}", quoted(authority), quoted(from))
        }
        AdminEvent::Topology {
            hash,
            members,
            joined,
            left,
            dead,
            blocked,
        } => {
            let count = words::members(members.len());
            let mut parts = vec![format!("{count}, hash {}", quoted(hash))];
            let lists = [
                ("joined", joined),
                ("left", left),
                ("dead", dead),
                ("blocked", blocked),
            ];
            for (word, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
                let names: Vec<String> = list.iter().map(|name| quoted(name)).collect();
                parts.push(format!("{word} {}", names.join(" ")));
            }
            let head = terminal.paint(Colour::Bold, "topology");
            format!("{head} {}", parts.join("; "))
        }
        AdminEvent::Quarantined {
            authority, reason, ..
        } => {
            let line = format!("{} is quarantined: {}", quoted(authority), quoted(reason));
            terminal.paint(Colour::Yellow, &line)
        }
        AdminEvent::Released { authority } => {
            format!("the quarantine of {} has ended", quoted(authority))
        }
        AdminEvent::Metadata {
            authority,
            version,
            roles,
            services,
            ..
        } => {
            let version = Some(version).filter(|version| !version.is_empty());
            let version = version.map(|version| format!("v{version}"));
            let services = services
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            let words: Vec<String> = version
                .into_iter()
                .chain(roles.iter().cloned())
                .chain(services)
                .collect();
            let metadata = match words.is_empty() {
                true => "none".into(),
                false => quoted(&words.join(" ")),
            };
            format!("metadata of {}: {metadata}", quoted(authority))
        }
        AdminEvent::SelfDowned { was, now, reason } => {
            let next = match now {
                Some(now) => format!("is now {}", quoted(now)),
                None => "stops".into(),
            };
            let line = format!(
                "{} was given up ({}) and {next}",
                quoted(was),
                quoted(reason)
            );
            terminal.paint(Colour::Red, &line)
        }
        AdminEvent::Conflict {
            authority,
            current,
            other,
        } => {
            let lives = format!("{} and {}", quoted(current), quoted(other));
            let line = format!("two nodes advertise {}: {lives}", quoted(authority));
            terminal.paint(Colour::Red, &line)
        }
        AdminEvent::PeerRefused { authority, reason } => {
            let line = format!("{} was refused: {}", quoted(authority), quoted(reason));
            terminal.paint(Colour::Yellow, &line)
        }
        AdminEvent::TopologyApplyFailed { reason } => {
            let line = format!("a topology could not be applied: {}", quoted(reason));
            terminal.paint(Colour::Red, &line)
        }
        AdminEvent::Missed { events } => {
            terminal.paint(Colour::Yellow, &format!("{events} events were missed"))
        }
        _ => terminal.paint(Colour::Dim, "an event of an unknown kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_one_readable_line() {
        let check = |json: &str, expected: &str| {
            let event: AdminEvent = serde_json::from_str(json).unwrap();
            assert_eq!(text(&event, &Terminal::plain()), expected);
        };
        check(
            r#"{"kind":"status","authority":"a:1","uid":"7","from":null,"to":"joining"}"#,
            "a:1 unknown -> joining",
        );
        check(
            r#"{"kind":"topology","hash":"ff","members":["a:1","b:1"],"joined":["b:1#7"],"left":[],"dead":[],"blocked":["c:1"]}"#,
            "topology 2 members, hash ff; joined b:1#7; blocked c:1",
        );
        check(
            r#"{"kind":"quarantined","authority":"a:1","uid":null,"reason":"by an operator (x)"}"#,
            "a:1 is quarantined: by an operator (x)",
        );
        check(
            r#"{"kind":"self_downed","was":"a:1#7","now":null,"reason":"superseded"}"#,
            "a:1#7 was given up (superseded) and stops",
        );
        check(r#"{"kind":"missed","events":3}"#, "3 events were missed");
        check(
            r#"{"kind":"released","authority":"a:1"}"#,
            "the quarantine of a:1 has ended",
        );
        check(
            r#"{"kind":"metadata","authority":"a:1","uid":"7","version":"1.0","roles":["web"],"services":[["http","b:80"]]}"#,
            "metadata of a:1: v1.0 web http=b:80",
        );
        check(
            r#"{"kind":"metadata","authority":"a:1","uid":"7","version":"","roles":[],"services":[]}"#,
            "metadata of a:1: none",
        );
        check(
            r#"{"kind":"conflict","authority":"a:1","current":"8","other":"7"}"#,
            "two nodes advertise a:1: 8 and 7",
        );
        check(r#"{"kind":"later"}"#, "an event of an unknown kind");
    }
}
