//! The core's commands as the `redis` crate's, and its values as the core's replies. Nothing is sent here.

use bytes::Bytes;
use redis::{Pipeline, ServerError, Value, cmd};

use crate::core::{Command, Reply};

/// Why a pipeline has no replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It may have run or not, or will run if tried again.
    Lost,
    /// Another node has the slot now.
    Moved(String),
    /// Another node has the key, for this once.
    Ask(String),
}

/// Packs commands. `asking` is what a node that imports a slot wants to hear before each.
pub(super) fn pipeline(commands: &[Command], asking: bool) -> Pipeline {
    let mut pipeline = redis::pipe();
    for command in commands {
        if asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(encode(command));
    }
    pipeline
}

fn encode(command: &Command) -> redis::Cmd {
    match command {
        Command::Set {
            key,
            value,
            ttl_ms,
            only_new,
        } => {
            let mut set = cmd("SET");
            set.arg(key).arg(value.as_ref());
            if let Some(ttl_ms) = ttl_ms {
                // Whole seconds as the protocol's document writes them, which people see in MONITOR.
                match ttl_ms % 1_000 {
                    0 => set.arg("EX").arg(ttl_ms / 1_000),
                    _ => set.arg("PX").arg(*ttl_ms),
                };
            }
            if *only_new {
                set.arg("NX");
            }
            set
        }
        Command::Values(keys) => listed("MGET", keys),
        Command::Exists(keys) => listed("EXISTS", keys),
        Command::Expire { key, ttl_ms } => {
            let mut expire = cmd("PEXPIRE");
            expire.arg(key).arg(*ttl_ms);
            expire
        }
        Command::TimeToLive(key) => listed("PTTL", std::slice::from_ref(key)),
        Command::Increment(key) => listed("INCR", std::slice::from_ref(key)),
    }
}

fn listed(name: &str, keys: &[String]) -> redis::Cmd {
    let mut command = cmd(name);
    for key in keys {
        command.arg(key);
    }
    command
}

/// The keys of a command.
pub(super) fn keys(command: &Command) -> &[String] {
    match command {
        Command::Set { key, .. }
        | Command::Expire { key, .. }
        | Command::TimeToLive(key)
        | Command::Increment(key) => std::slice::from_ref(key),
        Command::Values(keys) | Command::Exists(keys) => keys,
    }
}

/// Reads the values of a pipeline. One command that has to be tried elsewhere, or again, takes all with it.
pub(super) fn replies(values: Vec<Value>, asking: bool) -> Result<Vec<Reply>, Trouble> {
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
        Value::Array(values) => Reply::Values(values.into_iter().map(bulk).collect()),
        Value::ServerError(error) => return refusal(&error),
        other => Reply::Refused(format!("an unexpected reply: {other:?}")),
    })
}

fn bulk(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(bytes.into()),
        Value::SimpleString(text) => Some(text.into()),
        _ => None,
    }
}

/// Tells what passes by itself from what does not.
fn refusal(error: &ServerError) -> Result<Reply, Trouble> {
    let details = error.details().unwrap_or_default();
    let address = || details.split(' ').nth(1).unwrap_or_default().to_owned();
    match error.code() {
        "MOVED" => Err(Trouble::Moved(address())),
        "ASK" => Err(Trouble::Ask(address())),
        "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" | "READONLY" | "BUSY"
        | "UNKILLABLE" | "NOREPLICAS" => Err(Trouble::Lost),
        code => Ok(Reply::Refused(format!("{code} {details}"))),
    }
}

/// CRC16 as Redis Cluster uses it, over the hash tag if there is one.
pub(super) fn slot(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    });
    crc % 16_384
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot("MUF/a/REQ/x.y~{foo}"), 12_182);
        assert_eq!(slot("MUF/a/KEEP/x.y~{foo}.claim"), 12_182);
        assert_eq!(slot("{}foo"), slot("{}foo"));
    }

    #[test]
    fn whole_seconds_are_written_as_seconds() {
        let set = |ttl_ms| {
            let command = Command::Set {
                key: "k".into(),
                value: "v".into(),
                ttl_ms,
                only_new: true,
            };
            String::from_utf8(encode(&command).get_packed_command()).expect("text")
        };
        assert!(set(Some(10_000)).contains("EX\r\n$2\r\n10\r\n$2\r\nNX"));
        assert!(set(Some(2_500)).contains("PX\r\n$4\r\n2500"));
        assert!(!set(None).contains("PX"));
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
