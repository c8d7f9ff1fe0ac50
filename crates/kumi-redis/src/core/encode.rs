//! Commands as bytes for a server, and a server's values as replies. Nothing is sent here.

use kumi_resp::encode as resp;
use redis::{ServerError, Value};

use super::strings::{Command, Reply};
use super::trouble::Trouble;

/// Packs commands. A node that imports a slot needs ASKING before each.
pub(crate) fn pack(commands: &[Command], asking: bool, out: &mut Vec<u8>) {
    for command in commands {
        if asking {
            words(out, &["ASKING"], &[]);
        }
        encode(command, out);
    }
}

fn encode(command: &Command, out: &mut Vec<u8>) {
    match command {
        Command::Set {
            key,
            value,
            ttl_ms,
            only_new,
        } => {
            let count = 3 + 2 * usize::from(ttl_ms.is_some()) + usize::from(*only_new);
            resp::array(out, count);
            resp::bulk(out, b"SET");
            resp::bulk(out, key.as_bytes());
            resp::bulk(out, value);
            if let Some(ttl_ms) = *ttl_ms {
                // Whole seconds as the protocol's document writes them, which people see in MONITOR.
                let (unit, ttl) = match ttl_ms % 1_000 {
                    0 => ("EX", ttl_ms / 1_000),
                    _ => ("PX", ttl_ms),
                };
                resp::bulk(out, unit.as_bytes());
                number(out, ttl);
            }
            if *only_new {
                resp::bulk(out, b"NX");
            }
        }
        Command::SetAgain { key, value } => {
            resp::array(out, 5);
            resp::bulk(out, b"SET");
            resp::bulk(out, key.as_bytes());
            resp::bulk(out, value);
            resp::bulk(out, b"XX");
            resp::bulk(out, b"KEEPTTL");
        }
        Command::Read { key, limit_bytes } => {
            resp::array(out, 4);
            resp::bulk(out, b"GETRANGE");
            resp::bulk(out, key.as_bytes());
            resp::bulk(out, b"0");
            number(out, *limit_bytes as u64);
        }
        Command::Present(keys) => {
            resp::array(out, 1 << keys.len());
            resp::bulk(out, b"EXISTS");
            for (index, key) in keys.iter().enumerate() {
                for _ in 0..1 << index {
                    resp::bulk(out, key.as_bytes());
                }
            }
        }
        Command::Exists(keys) => words(out, &["EXISTS"], keys),
        Command::Expire { key, ttl_ms } => {
            resp::array(out, 3);
            resp::bulk(out, b"PEXPIRE");
            resp::bulk(out, key.as_bytes());
            number(out, *ttl_ms);
        }
        Command::TimeToLive(key) => words(out, &["PTTL", key], &[]),
        Command::Increment(key) => words(out, &["INCR", key], &[]),
        Command::IncrementBy { key, by } => {
            resp::array(out, 3);
            resp::bulk(out, b"INCRBY");
            resp::bulk(out, key.as_bytes());
            number(out, *by);
        }
    }
}

fn number(out: &mut Vec<u8>, number: u64) {
    resp::bulk_integer(out, i64::try_from(number).unwrap_or(i64::MAX));
}

fn words(out: &mut Vec<u8>, first: &[&str], rest: &[String]) {
    resp::array(out, first.len() + rest.len());
    for word in first.iter().copied().chain(rest.iter().map(String::as_str)) {
        resp::bulk(out, word.as_bytes());
    }
}

/// The keys of a command.
pub(crate) fn keys(command: &Command) -> &[String] {
    match command {
        Command::Set { key, .. }
        | Command::SetAgain { key, .. }
        | Command::Read { key, .. }
        | Command::Expire { key, .. }
        | Command::IncrementBy { key, .. }
        | Command::TimeToLive(key)
        | Command::Increment(key) => std::slice::from_ref(key),
        Command::Present(keys) | Command::Exists(keys) => keys,
    }
}

/// Reads the values of a pipeline. One command that has to be tried elsewhere, or again, takes all with it.
pub(crate) fn replies(values: Vec<Value>, asking: bool) -> Result<Vec<Reply>, Trouble> {
    let step = if asking { 2 } else { 1 };
    values
        .into_iter()
        .skip(step - 1)
        .step_by(step)
        .map(reply)
        .collect()
}

fn reply(value: Value) -> Result<Reply, Trouble> {
    Ok(match value {
        Value::Okay => Reply::Ok,
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Number(number),
        Value::BulkString(bytes) => Reply::Value(bytes.into()),
        Value::ServerError(error) => return refusal(&error),
        _ => Reply::Refused("a reply of an unexpected kind".into()),
    })
}

/// Distinguishes what passes by itself, or is to be tried elsewhere, from what does not.
fn refusal(error: &ServerError) -> Result<Reply, Trouble> {
    let details = error.details().unwrap_or_default();
    if let Some(trouble) = Trouble::of(error.code(), details) {
        return Err(trouble);
    }
    match error.code() {
        "UNKILLABLE" | "NOREPLICAS" => Err(Trouble::Later),
        "WRONGTYPE" => Ok(Reply::WrongType),
        code => Ok(Reply::Refused(format!("{code} {details}"))),
    }
}

/// A command over several keys as commands over one each.
pub(crate) fn single(command: Command) -> Vec<Command> {
    match command {
        // Their sum is what the server would have said to all of them.
        Command::Present(keys) => keys
            .into_iter()
            .enumerate()
            .map(|(index, key)| Command::Exists(vec![key; 1 << index]))
            .collect(),
        Command::Exists(keys) => keys
            .into_iter()
            .map(|key| Command::Exists(vec![key]))
            .collect(),
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_written_as_seconds() {
        let set = |ttl_ms| {
            let command = Command::Set {
                key: "k".into(),
                value: "v".into(),
                ttl_ms,
                only_new: true,
            };
            let mut out = Vec::new();
            encode(&command, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert!(set(Some(10_000)).contains("EX\r\n$2\r\n10\r\n$2\r\nNX"));
        assert!(set(Some(2_500)).contains("PX\r\n$4\r\n2500"));
        assert!(!set(None).contains("PX"));
    }

    #[test]
    fn commands_say_how_many_words_they_have() {
        let key = String::from("k");
        let set = |ttl_ms, only_new| Command::Set {
            key: "k".into(),
            value: "v".into(),
            ttl_ms,
            only_new,
        };
        let commands = [
            set(None, false),
            set(Some(1), false),
            set(Some(1_000), true),
            Command::SetAgain {
                key: "k".into(),
                value: "v".into(),
            },
            Command::Read {
                key: "k".into(),
                limit_bytes: 100,
            },
            Command::Present(vec![key.clone(), key.clone(), key.clone()]),
            Command::Exists(vec![key.clone()]),
            Command::Expire {
                key: key.clone(),
                ttl_ms: 5,
            },
            Command::TimeToLive(key.clone()),
            Command::Increment(key.clone()),
            Command::IncrementBy { key, by: 3 },
        ];
        for command in commands {
            for asking in [false, true] {
                let mut out = Vec::new();
                pack(std::slice::from_ref(&command), asking, &mut out);
                // A packed command reads back like an array of its words: nothing missing, nothing left over.
                let mut rest = &out[..];
                for _ in 0..1 + usize::from(asking) {
                    let (value, length) = super::super::wire::reply(rest)
                        .expect("RESP")
                        .expect("whole");
                    assert!(matches!(value, Value::Array(_)), "{command:?}");
                    rest = &rest[length..];
                }
                assert!(rest.is_empty(), "{command:?}");
            }
        }
    }

    #[test]
    fn replies_of_an_asked_node_skip_the_asking() {
        let values = vec![Value::Okay, Value::Int(3), Value::Okay, Value::Nil];
        assert_eq!(
            replies(values, true),
            Ok(vec![Reply::Number(3), Reply::Nil])
        );
    }
}
