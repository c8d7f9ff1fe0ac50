//! One event of a cluster, as a line for people or as JSON.

use super::failure::Failure;
use super::words;
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_cluster::AdminEvent;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

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
            name_and_life,
            from,
            to,
            ..
        } => {
            let from = from.as_deref().unwrap_or("unknown");
            let to = words::status(terminal, to, &quoted(to));
            let node = words::node(authority, name_and_life.as_deref());
            format!("{node} {} -> {to}", quoted(from))
        }
        AdminEvent::Topology {
            hash,
            members,
            joined,
            left,
            dead,
            blocked,
            names,
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
                let list = list.iter().map(|life| name_in(names, life));
                parts.push(format!("{word} {}", list.collect::<Vec<_>>().join(" ")));
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
            name_and_life,
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
            let node = words::node(authority, name_and_life.as_deref());
            format!("metadata of {node}: {metadata}")
        }
        AdminEvent::SelfDowned {
            was,
            now,
            reason,
            names,
        } => {
            let next = match now {
                Some(now) => format!("is now {}", name_in(names, now)),
                None => "stops".into(),
            };
            let line = format!(
                "{} was given up ({}) and {next}",
                name_in(names, was),
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
        AdminEvent::NameTaken { name, holder } => {
            let (name, holder) = (quoted(name), quoted(holder));
            let line =
                format!("the node was refused: {holder}, which is alive, has its name {name}");
            terminal.paint(Colour::Red, &line)
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

/// A life as `name~life`, or as authority#uid where it has no name.
fn name_in(names: &BTreeMap<String, String>, life: &str) -> String {
    words::shown(names.get(life).map_or(life, String::as_str))
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
        check(
            r#"{"kind":"status","authority":"a:1","uid":"7","name_and_life":"web-1~7","from":"up","to":"suspect"}"#,
            "a:1 web-1~7 up -> suspect",
        );
        check(
            r#"{"kind":"topology","hash":"ff","members":["a:1"],"joined":["a:1#7"],"left":[],"dead":["b:1#7"],"blocked":[],"names":{"a:1#7":"web-1~7"}}"#,
            "topology 1 member, hash ff; joined web-1~7; dead b:1#7",
        );
        check(
            r#"{"kind":"self_downed","was":"a:1#7","now":"a:1#8","reason":"dead","names":{"a:1#7":"web-1~7","a:1#8":"web-1~8"}}"#,
            "web-1~7 was given up (dead) and is now web-1~8",
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
        check(
            r#"{"kind":"name_taken","name":"web","holder":"a:1#7"}"#,
            "the node was refused: a:1#7, which is alive, has its name web",
        );
        check(r#"{"kind":"later"}"#, "an event of an unknown kind");
    }
}
