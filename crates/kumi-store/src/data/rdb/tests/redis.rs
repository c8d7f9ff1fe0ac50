//! Values go from a running redis-server to here and back.

use super::*;
use crate::reference::Reference;
use crate::support::frame::Frame;

fn item(rng: &mut fastrand::Rng) -> Vec<u8> {
    match rng.u8(0..8) {
        0 => (rng.i64(..) >> rng.u32(0..64)).to_string().into_bytes(),
        1 => rng.i32(-300..300).to_string().into_bytes(),
        2 => vec![b'x'; rng.usize(0..300)],
        3 => (0..rng.usize(0..100)).map(|_| rng.u8(..)).collect(),
        _ => format!("item-{}", rng.u32(0..500)).into_bytes(),
    }
}

fn score(rng: &mut fastrand::Rng) -> String {
    match rng.u8(0..6) {
        0 => "inf".into(),
        1 => "-inf".into(),
        2 => (rng.f64() * 1e6).to_string(),
        3 => format!("{:e}", rng.f64() * 1e-300),
        _ => rng.i32(-1000..1000).to_string(),
    }
}

/// Fills the key `k` with something.
fn fill(redis: &mut Reference, rng: &mut fastrand::Rng) {
    redis.call(&["DEL", "k"]);
    let commands: [&[u8]; 6] = [b"SET", b"RPUSH", b"SADD", b"ZADD", b"HSET", b"XADD"];
    let which = rng.usize(0..commands.len());
    let count = [1, 5, 60, 600][rng.usize(0..4)];
    if commands[which] == b"XADD" {
        fill_stream(redis, rng, count);
        return;
    }
    let integers = rng.bool();
    let mut command = vec![commands[which].to_vec(), b"k".to_vec()];
    let items = if which == 0 { 1 } else { rng.usize(1..=count) };
    for _ in 0..items {
        let item = match integers {
            true => rng.i32(-90_000..90_000).to_string().into_bytes(),
            false => item(rng),
        };
        match commands[which] {
            b"ZADD" => command.extend([score(rng).into_bytes(), item]),
            b"HSET" => command.extend([item.clone(), item]),
            _ => command.push(item),
        }
    }
    redis.call(&command);
}

fn fill_stream(redis: &mut Reference, rng: &mut fastrand::Rng, count: usize) {
    for at in 0..count {
        let id = format!("{}-{}", at / 3 + 1, at % 3 + 1);
        let value = item(rng);
        let field: &[u8] = if rng.u8(0..4) == 0 {
            b"other"
        } else {
            b"field"
        };
        redis.call(&[
            b"XADD".as_slice(),
            b"k",
            id.as_bytes(),
            field,
            &value,
            b"n",
            b"1",
        ]);
    }
    for at in 0..count / 4 {
        let id = format!("{}-{}", at + 1, rng.u8(1..4));
        redis.call(&["XDEL", "k", &id]);
    }
    for group in ["g", "h"] {
        redis.call(&["XGROUP", "CREATE", "k", group, "0"]);
        for consumer in ["alice", "bob"] {
            let count = rng.u32(1..20).to_string();
            redis.call(&[
                "XREADGROUP",
                "GROUP",
                group,
                consumer,
                "COUNT",
                &count,
                "STREAMS",
                "k",
                ">",
            ]);
        }
    }
    redis.call(&["XACK", "k", "g", "1-1", "2-2", "1-3"]);
}

/// The value of `k` as the server's own commands show it; `None` for a stream.
fn shown(redis: &mut Reference, kind: &[u8]) -> Option<Collected> {
    let mut all = |command: &[&str]| -> Vec<Vec<u8>> {
        match redis.call(command) {
            Frame::Array(items) => items
                .iter()
                .map(|item| item.text().expect("an element is a string").to_vec())
                .collect(),
            Frame::Bulk(text) => vec![text],
            other => panic!("{other:?}"),
        }
    };
    let pairs = |items: Vec<Vec<u8>>| -> Vec<(Vec<u8>, Vec<u8>)> {
        items
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    };
    let shown = match kind {
        b"string" => Collected::String(all(&["GET", "k"]).remove(0)),
        b"list" => Collected::List(all(&["LRANGE", "k", "0", "-1"])),
        b"set" => Collected::Set(all(&["SMEMBERS", "k"]).into_iter().collect()),
        b"hash" => Collected::Hash(pairs(all(&["HGETALL", "k"])).into_iter().collect()),
        b"zset" => Collected::SortedSet(
            pairs(all(&["ZRANGE", "k", "0", "-1", "WITHSCORES"]))
                .into_iter()
                .map(|(member, score)| {
                    let score = String::from_utf8(score).expect("a score is text");
                    (member, score.parse().expect("a score is a number"))
                })
                .collect(),
        ),
        _ => return None,
    };
    Some(shown)
}

#[test]
fn values_go_to_redis_and_back() {
    let seed = 41;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut redis = Reference::start();
    for round in 0..250 {
        let compress = ["yes", "no"][rng.usize(0..2)];
        redis.call(&["CONFIG", "SET", "rdbcompression", compress]);
        fill(&mut redis, &mut rng);
        let context = format!("seed {seed} round {round}");
        let kind = redis.text(&["TYPE", "k"]);
        let dumped = redis.text(&["DUMP", "k"]);
        let read = restore(&dumped).unwrap_or_else(|error| panic!("{context}: {error}"));
        if let Some(shown) = shown(&mut redis, &kind) {
            assert_eq!(read, shown, "{context}");
        }
        let compression = [Compression::Lzf, Compression::None][rng.usize(0..2)];
        let payload = read.dump(compression);
        let restored = redis.call(&[
            b"RESTORE".as_slice(),
            b"copy",
            b"0",
            &payload[..],
            b"REPLACE",
        ]);
        assert_eq!(restored, Frame::Simple(b"OK".to_vec()), "{context}");
        let digests = redis.call(&["DEBUG", "DIGEST-VALUE", "k", "copy"]);
        let digests = digests.items().expect("two digests");
        assert_eq!(digests[0], digests[1], "{context} {read:?}");
        // A stream's groups are not in its digest.
        if kind == b"stream" {
            let mut full = |key| redis.call(&["XINFO", "STREAM", key, "FULL", "COUNT", "0"]);
            assert_eq!(full("k"), full("copy"), "{context}");
            assert_eq!(
                restore(&redis.text(&["DUMP", "copy"])),
                Ok(read),
                "{context}"
            );
        }
    }
}

#[test]
fn footers_are_judged_as_redis_does() {
    let mut redis = Reference::start();
    let good = Collected::String(b"value".to_vec()).dump(Compression::None);
    let mut flipped = good.clone();
    flipped[2] ^= 1;
    let mut newer = good[..good.len() - 10].to_vec();
    newer.extend_from_slice(&99u16.to_le_bytes());
    let checksum = crate::base::crc64::checksum(&newer);
    newer.extend_from_slice(&checksum.to_le_bytes());
    let mut unknown = vec![99, 0];
    seal(&mut unknown);
    let mut bare = Vec::new();
    seal(&mut bare);
    let mut behind = good[..good.len() - 10].to_vec();
    behind.extend_from_slice(b"ignored");
    seal(&mut behind);
    for payload in [
        &good[..],
        &flipped,
        &newer,
        &unknown,
        &bare,
        &behind,
        b"",
        b"short",
        &good[1..],
    ] {
        let reply = redis.call(&[b"RESTORE".as_slice(), b"k", b"0", payload, b"REPLACE"]);
        let expected = match restore(payload) {
            Ok(_) => Frame::Simple(b"OK".to_vec()),
            Err(error) => Frame::Error(error.to_string().into_bytes()),
        };
        assert_eq!(reply, expected, "{}", payload.escape_ascii());
    }
}
