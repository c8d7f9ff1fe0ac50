//! The same changes on a running redis-server: afterwards its DUMP holds the same nodes, counters and groups.

use super::*;
use crate::reference::{Reference, payload};
use crate::support::frame::Frame;
use std::fmt::Write;

fn theirs(redis: &mut Reference) -> Stream {
    payload::stream(&redis.text(&["DUMP", "k"]))
}

/// Everything but times and slot numbers.
fn summary(stream: &Stream) -> String {
    let mut out = format!(
        "length {} last {} first {} deleted {} added {}\n",
        stream.len(),
        stream.last_id(),
        stream.first_id(),
        stream.max_deleted_id(),
        stream.entries_added()
    );
    for (id, node) in stream.redis_nodes() {
        let texts: Vec<String> = node
            .view()
            .iter()
            .map(|elem| elem.text().escape_ascii().to_string())
            .collect();
        writeln!(out, "node {id}: {}", texts.join(" ")).unwrap();
    }
    for (name, group) in stream.groups() {
        let name = name.escape_ascii();
        let (last, read) = (group.last_id(), group.entries_read());
        writeln!(out, "group {name} last {last} read {read:?}").unwrap();
        for (id, nack) in group.pending(StreamId::MIN..=StreamId::MAX) {
            let owner = group.consumer(nack.consumer).unwrap().name().escape_ascii();
            writeln!(out, "  {id} {owner} {}", nack.delivery_count).unwrap();
        }
        for consumer in group.consumers() {
            let pending: Vec<String> = consumer
                .pending(StreamId::MIN..=StreamId::MAX)
                .map(|id| id.to_string())
                .collect();
            let name = consumer.name().escape_ascii();
            writeln!(out, "  consumer {name}: {}", pending.join(" ")).unwrap();
        }
    }
    out
}

/// One stream here and one there.
struct Pair {
    ours: Stream,
    redis: Reference,
    rng: fastrand::Rng,
    limits: NodeLimits,
    last: StreamId,
}

const GROUPS: [&str; 2] = ["g", "h"];
const CONSUMERS: [&str; 3] = ["alice", "bob", "carol"];

impl Pair {
    fn some_id(&mut self) -> StreamId {
        let last = self.last.ms;
        id(
            self.rng.u64(last.saturating_sub(30)..last + 2),
            self.rng.u64(0..3),
        )
    }

    fn number(&mut self, command: &[&str]) -> u64 {
        self.redis.number(command) as u64
    }

    fn step(&mut self) {
        let group = GROUPS[self.rng.usize(0..2)];
        let consumer = CONSUMERS[self.rng.usize(0..3)];
        match self.rng.u8(0..30) {
            0..12 => self.add(),
            12..15 => {
                let ids = [self.some_id(), self.some_id()];
                let texts = ids.map(|id| id.to_string());
                let theirs = self.number(&["XDEL", "k", &texts[0], &texts[1]]);
                assert_eq!(self.ours.delete(&ids), theirs);
            }
            15 => self.trim(),
            16 => self.set_id(),
            17 => {
                let start = self.some_id();
                let read = self.rng.bool().then(|| self.rng.u64(0..40));
                let text = start.to_string();
                let mut command = vec!["XGROUP", "CREATE", "k", group, &text];
                let read_text = read.unwrap_or_default().to_string();
                if read.is_some() {
                    command.extend(["ENTRIESREAD", &read_text]);
                }
                let created = self.ours.create_group(group.as_bytes(), start, read);
                assert_eq!(self.redis.call(&command).error().is_none(), created);
            }
            18 => {
                let start = self.some_id();
                let text = start.to_string();
                self.redis.call(&["XGROUP", "SETID", "k", group, &text]);
                if let Some(mut group) = self.ours.group_mut(group.as_bytes()) {
                    group.set_last_id(start, None);
                }
            }
            19 if self.rng.u8(0..6) == 0 => {
                let gone = self.ours.remove_group(group.as_bytes()).is_some();
                let theirs = self.number(&["XGROUP", "DESTROY", "k", group]);
                assert_eq!(u64::from(gone), theirs);
            }
            _ if self.ours.group(group.as_bytes()).is_none() => {}
            19..25 => self.read(group, consumer),
            25 => {
                let acked = self.some_id();
                let ours = self
                    .ours
                    .group_mut(group.as_bytes())
                    .unwrap()
                    .acknowledge(acked);
                let theirs = self.number(&["XACK", "k", group, &acked.to_string()]);
                assert_eq!(u64::from(ours), theirs);
            }
            26 if self.rng.u8(0..4) == 0 => {
                let group_name = group.as_bytes();
                let ours = self
                    .ours
                    .group_mut(group_name)
                    .unwrap()
                    .remove_consumer(consumer.as_bytes());
                let theirs = self.number(&["XGROUP", "DELCONSUMER", "k", group, consumer]);
                assert_eq!(ours.unwrap_or(0) as u64, theirs);
            }
            _ => self.claim(group, consumer),
        }
    }

    fn add(&mut self) {
        self.last = match self.rng.bool() {
            true => id(self.last.ms + 1, self.rng.u64(0..3)),
            false => self.last.next().unwrap(),
        };
        let mut fields: Vec<Vec<u8>> = Vec::new();
        for at in 0..self.rng.usize(1..4) {
            let other = usize::from(self.rng.u8(0..5) == 0);
            fields.push(format!("f{}", at + other).into_bytes());
            fields.push(match self.rng.bool() {
                true => self.rng.i64(-9..90_000).to_string().into_bytes(),
                false => vec![b'v'; self.rng.usize(0..70)],
            });
        }
        let borrowed: Vec<&[u8]> = fields.iter().map(|field| &field[..]).collect();
        self.ours.append(self.last, &borrowed, self.limits).unwrap();
        let mut command = vec![
            b"XADD".to_vec(),
            b"k".to_vec(),
            self.last.to_string().into_bytes(),
        ];
        command.extend(fields);
        self.redis.text(&command);
    }

    fn trim(&mut self) {
        let (to, words) = match self.rng.bool() {
            true => {
                let max = self.rng.u64(0..60);
                (TrimTo::MaxLen(max), ["MAXLEN".to_owned(), max.to_string()])
            }
            false => {
                let min = self.some_id();
                (TrimTo::MinId(min), ["MINID".to_owned(), min.to_string()])
            }
        };
        let approximate = self.rng.bool();
        let limit = match approximate && self.rng.bool() {
            true => self.rng.u64(1..30),
            false => 0,
        };
        let limit_text = limit.to_string();
        let sign = if approximate { "~" } else { "=" };
        let mut command = vec!["XTRIM", "k", &words[0], sign, &words[1]];
        if approximate {
            // The default limit depends on the configuration; 0 is none.
            command.extend(["LIMIT", &limit_text]);
        }
        let theirs = self.number(&command);
        let trim = Trim {
            to,
            approximate,
            limit,
        };
        assert_eq!(self.ours.trim(trim), theirs, "{trim:?}");
    }

    fn set_id(&mut self) {
        let last = self.last.next().unwrap();
        let added = self.ours.len() + self.rng.u64(0..50);
        let deleted = self.some_id().min(last);
        self.last = last;
        self.ours.set_id(last, Some(added), Some(deleted));
        let reply = self.redis.call(&[
            "XSETID",
            "k",
            &last.to_string(),
            "ENTRIESADDED",
            &added.to_string(),
            "MAXDELETEDID",
            &deleted.to_string(),
        ]);
        assert_eq!(reply, Frame::Simple(b"OK".to_vec()));
    }

    fn read(&mut self, group: &str, consumer: &str) {
        let count = self.rng.usize(1..6);
        let acked = self.rng.u8(0..4) == 0;
        let count_text = count.to_string();
        let mut command = vec!["XREADGROUP", "GROUP", group, consumer, "COUNT", &count_text];
        if acked {
            command.push("NOACK");
        }
        command.extend(["STREAMS", "k", ">"]);
        // Redis 7.0 does not create the consumer when there is nothing to read.
        self.redis
            .call(&["XGROUP", "CREATECONSUMER", "k", group, consumer]);
        let reply = self.redis.call(&command);
        let read = match &reply {
            Frame::Array(streams) => streams[0].items().unwrap()[1].items().unwrap().len(),
            _ => 0,
        };
        let delivery = Delivery {
            consumer: self.consumer(group.as_bytes(), consumer),
            now_ms: 1,
            count,
            no_ack: acked,
        };
        let delivered = self.ours.deliver_new(group.as_bytes(), delivery, |_| {});
        assert_eq!(delivered, read);
    }

    fn consumer(&mut self, group: &[u8], name: &str) -> ConsumerKey {
        let mut group = self.ours.group_mut(group).unwrap();
        match group.find_consumer(name.as_bytes()) {
            Some(key) => key,
            None => group.create_consumer(name.as_bytes(), 1).unwrap(),
        }
    }

    fn claim(&mut self, group: &str, consumer: &str) {
        let id = self.some_id();
        let text = id.to_string();
        self.redis
            .call(&["XGROUP", "CREATECONSUMER", "k", group, consumer]);
        let key = self.consumer(group.as_bytes(), consumer);
        let idle = [0, 1_000_000_000][self.rng.usize(0..2)];
        let force = self.rng.bool();
        let just_id = self.rng.bool();
        let count = self.rng.bool().then(|| self.rng.u64(0..9));
        let (idle_text, count_text) = (idle.to_string(), count.unwrap_or_default().to_string());
        let mut command = vec!["XCLAIM", "k", group, consumer, &idle_text, &text];
        if force {
            command.push("FORCE");
        }
        if just_id {
            command.push("JUSTID");
        }
        if count.is_some() {
            command.extend(["RETRYCOUNT", &count_text]);
        }
        let reply = self.redis.call(&command);
        let claim = Claim {
            consumer: key,
            min_idle_ms: idle,
            now_ms: 1,
            delivery_time: 1,
            delivery_count: count,
            force,
            just_id,
        };
        let claimed = self.ours.claim(group.as_bytes(), id, claim);
        let items = reply.items().expect("XCLAIM answers an array").len();
        assert_eq!(claimed == Some(Claimed::Yes), items == 1, "{command:?}");
    }

    fn compare(&mut self, context: &str) {
        let group_bytes = self
            .ours
            .groups()
            .map(|(name, group)| name.len() + group.heap_bytes());
        assert_eq!(
            self.ours.group_bytes,
            group_bytes.sum::<usize>(),
            "{context}"
        );
        let theirs = theirs(&mut self.redis);
        assert_eq!(summary(&self.ours), summary(&theirs), "{context}");
        let groups = self.redis.call(&["XINFO", "GROUPS", "k"]);
        for ((_, group), shown) in self.ours.groups().zip(groups.items().unwrap()) {
            let pairs = shown.pairs().unwrap();
            let lag = pairs.iter().find(|(name, _)| name.text() == Some(b"lag"));
            let expected = match self.ours.lag(group) {
                Some(lag) => Frame::Integer(lag as i64),
                None => Frame::NullBulk,
            };
            assert_eq!(lag.unwrap().1, &expected, "{context}");
        }
    }
}

#[test]
fn a_stream_changes_as_in_redis() {
    for seed in 0..6 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = NodeLimits {
            max_bytes: [0, 150, 4096][rng.usize(0..3)],
            max_entries: [0, 4, 100][rng.usize(0..3)],
        };
        let redis = Reference::start_with(&[
            "--stream-node-max-bytes",
            &limits.max_bytes.to_string(),
            "--stream-node-max-entries",
            &limits.max_entries.to_string(),
        ]);
        let mut pair = Pair {
            ours: Stream::new(),
            redis,
            rng,
            limits,
            last: StreamId::MIN,
        };
        pair.add();
        for step in 0..500 {
            pair.step();
            pair.compare(&format!("seed {seed} step {step}"));
        }
    }
}
