//! Values that Redis 6.2 and a server of the 7.2 line dumped, with what they hold.

use super::json::{self, Value};
use super::*;
use crate::types::stream::StreamId;

const REDIS_6_2: &str = include_str!("../../../../../../tests/fixtures/redis-6.2/dumps.jsonl");
const REDIS_7_2: &str = include_str!("../../../../../../tests/fixtures/redis-7.2/dumps.jsonl");

/// The values of a recording: key, DUMP payload and content.
fn values(recording: &str) -> Vec<(String, Vec<u8>, Value, Value)> {
    recording
        .lines()
        .map(json::parse)
        .filter(|line| line.get("key").is_some())
        .map(|line| {
            let text = |name: &str| line[name].as_str().expect("it is a string").to_owned();
            let payload = unhex(&text("dump"));
            (
                text("key"),
                payload,
                line["type"].clone(),
                line["value"].clone(),
            )
        })
        .collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).expect("it is hexadecimal"))
        .collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(text) => text.clone().into_bytes(),
        other => unhex(other["hex"].as_str().expect("bytes are a string or hex")),
    }
}

fn all(value: &Value) -> Vec<Vec<u8>> {
    match value.as_array() {
        Some(items) => items.iter().map(bytes).collect(),
        None => vec![bytes(value)],
    }
}

fn expected(kind: &str, value: &Value) -> Collected {
    let items = all(value);
    let pairs = || {
        items
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
    };
    match kind {
        "string" => Collected::String(items[0].clone()),
        "list" => Collected::List(items),
        "set" => Collected::Set(items.into_iter().collect()),
        "hash" => Collected::Hash(pairs().collect()),
        "zset" => Collected::SortedSet(
            pairs()
                .map(|(member, score)| {
                    let score = String::from_utf8(score).expect("a score is text");
                    (member, score.parse().expect("a score is a number"))
                })
                .collect(),
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn every_recorded_value_is_read() {
    let mut kinds = BTreeSet::new();
    for recording in [REDIS_6_2, REDIS_7_2] {
        for (key, payload, kind, value) in values(recording) {
            kinds.insert(payload[0]);
            let read = restore(&payload).unwrap_or_else(|error| panic!("{key}: {error}"));
            if kind != Value::from("stream") {
                assert_eq!(read, expected(kind.as_str().unwrap(), &value), "{key}");
            }
            // What is written of it reads the same.
            for compression in [Compression::Lzf, Compression::None] {
                let written = restore(&read.dump(compression));
                match (written, &read) {
                    (Ok(Collected::Stream(written)), Collected::Stream(read)) => {
                        assert_eq!(without_active_times(&written), without_active_times(read));
                    }
                    (written, read) => assert_eq!(written.as_ref(), Ok(read), "{key}"),
                }
            }
        }
    }
    let covered = [0, 2, 4, 5, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21];
    assert_eq!(kinds, BTreeSet::from(covered));
}

/// RESTORE makes of each value what the server that dumped it had: the type, the encoding and the digest.
#[test]
fn every_value_of_7_2_is_restored_with_its_encoding_and_digest() {
    let mut lab = crate::testing::Lab::new();
    lab.allow_debug();
    for line in REDIS_7_2.lines().map(json::parse) {
        let Some(key) = line.get("key").and_then(Value::as_str) else {
            continue;
        };
        let text = |name: &str| line[name].as_str().expect("it is a string").to_owned();
        let payload = unhex(&text("dump"));
        let ttl = match line["pexpiretime"] {
            Value::Number(deadline) if deadline > 0 => deadline.to_string(),
            _ => "0".to_owned(),
        };
        let words = [
            b"RESTORE".as_slice(),
            key.as_bytes(),
            ttl.as_bytes(),
            &payload,
            b"ABSTTL",
        ];
        assert_eq!(lab.send(lab.client, &words), "+OK\r\n", "{key}");
        lab.check(&[(
            &format!("DEBUG DIGEST-VALUE {key}"),
            &format!("*1\r\n+{}\r\n", text("digest")),
        )]);
        let kind = text("type");
        assert_eq!(lab.run(&format!("TYPE {key}")), format!("+{kind}\r\n"));
        let encoding = text("encoding");
        let shown = lab.run(&format!("OBJECT ENCODING {key}"));
        let shown = shown.split("\r\n").nth(1).unwrap_or_default();
        // A short string that was changed in place is raw until it is dumped.
        let short = kind == "string" && encoding == "raw" && shown == "embstr";
        assert!(shown == encoding || short, "{key}: {shown}, not {encoding}");
    }
}

/// Version 10 has no active times; a reader takes the seen time for it.
fn without_active_times(stream: &Stream) -> Stream {
    let mut stream = stream.clone();
    let names: Vec<Vec<u8>> = stream.groups().map(|(name, _)| name.to_vec()).collect();
    for name in names {
        let mut group = stream.group_mut(&name).unwrap();
        let consumers: Vec<_> = group
            .consumers()
            .map(|consumer| consumer.name().to_vec())
            .collect();
        for consumer in consumers {
            let key = group.find_consumer(&consumer).unwrap();
            let consumer = group.consumer_mut(key).unwrap();
            consumer.active_time = consumer.seen_time;
        }
    }
    stream
}

fn recorded_stream(recording: &str, key: &str) -> (Stream, Value) {
    let (_, payload, _, value) = values(recording)
        .into_iter()
        .find(|(name, ..)| name == key)
        .expect("it was recorded");
    match restore(&payload) {
        Ok(Collected::Stream(stream)) => (*stream, value),
        other => panic!("{other:?}"),
    }
}

/// XINFO STREAM FULL, as far as a stream knows it.
#[test]
fn recorded_streams_hold_what_xinfo_says() {
    for key in ["stream:empty", "stream:groups", "stream:many"] {
        let (stream, info) = recorded_stream(REDIS_7_2, key);
        let field = |object: &Value, name: &str| {
            let items = object.as_array().expect("it is a flat map").clone();
            let at = items.iter().position(|item| item.as_str() == Some(name));
            items[at.expect("the field is there") + 1].clone()
        };
        let id = |id: StreamId| Value::Text(id.to_string());
        let count = |count: usize| Value::Number(count as i64);
        let number = |number: Option<u64>| number.map_or(Value::Null, |n| Value::Number(n as i64));
        assert_eq!(field(&info, "length"), number(Some(stream.len())));
        assert_eq!(field(&info, "radix-tree-keys"), count(stream.node_count()));
        assert_eq!(field(&info, "last-generated-id"), id(stream.last_id()));
        assert_eq!(
            field(&info, "max-deleted-entry-id"),
            id(stream.max_deleted_id())
        );
        assert_eq!(
            field(&info, "entries-added"),
            number(Some(stream.entries_added()))
        );
        assert_eq!(
            field(&info, "recorded-first-entry-id"),
            id(stream.first_id())
        );
        let entries: Vec<Value> = stream
            .range(StreamId::MIN, StreamId::MAX)
            .map(|entry| {
                let texts = entry.fields().flat_map(|(field, value)| [field, value]);
                let texts: Vec<Value> = texts
                    .map(|text| Value::Text(String::from_utf8_lossy(&text.text()).into_owned()))
                    .collect();
                Value::Array(vec![id(entry.id()), Value::Array(texts)])
            })
            .collect();
        let shown = field(&info, "entries");
        assert_eq!(
            shown.as_array().unwrap()[..],
            entries[..shown.as_array().unwrap().len()]
        );
        let groups = field(&info, "groups");
        assert_eq!(groups.as_array().unwrap().len(), stream.group_count());
        for ((name, group), shown) in stream.groups().zip(groups.as_array().unwrap()) {
            assert_eq!(field(shown, "name").as_str().unwrap().as_bytes(), name);
            assert_eq!(field(shown, "last-delivered-id"), id(group.last_id()));
            assert_eq!(field(shown, "entries-read"), number(group.entries_read()));
            assert_eq!(field(shown, "lag"), number(stream.lag(group)), "{key}");
            let pending: Vec<Value> = group
                .pending(StreamId::MIN..=StreamId::MAX)
                .map(|(entry, nack)| {
                    let owner = group.consumer(nack.consumer).unwrap().name();
                    Value::Array(vec![
                        id(entry),
                        Value::Text(String::from_utf8_lossy(owner).into_owned()),
                        Value::Number(nack.delivery_time),
                        number(Some(nack.delivery_count)),
                    ])
                })
                .collect();
            assert_eq!(field(shown, "pending"), Value::Array(pending));
            let consumers = field(shown, "consumers");
            assert_eq!(consumers.as_array().unwrap().len(), group.consumer_count());
            for (consumer, shown) in group.consumers().zip(consumers.as_array().unwrap()) {
                let name = field(shown, "name");
                assert_eq!(name.as_str().unwrap().as_bytes(), consumer.name());
                assert_eq!(field(shown, "seen-time"), Value::Number(consumer.seen_time));
                assert_eq!(
                    field(shown, "active-time"),
                    Value::Number(consumer.active_time)
                );
                assert_eq!(field(shown, "pel-count"), count(consumer.pending_count()));
            }
        }
    }
}

#[test]
fn a_stream_of_6_2_gets_the_counters_it_lacks() {
    let (stream, value) = recorded_stream(REDIS_6_2, "stream:groups");
    assert_eq!(stream.len(), value.as_array().unwrap().len() as u64);
    assert_eq!(stream.entries_added(), stream.len());
    assert_eq!(stream.first_id(), StreamId::new(1001, 1));
    assert_eq!(stream.last_id(), StreamId::new(2000, 0));
    let group = stream.group(b"g1").unwrap();
    assert_eq!(group.entries_read(), None);
    assert_eq!(group.pending_count(), 5);
    let group = stream.group(b"g2").unwrap();
    assert_eq!(group.entries_read(), Some(stream.len()));
    assert_eq!(stream.lag(group), Some(0));
}
