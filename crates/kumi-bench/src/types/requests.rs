//! The requests of each measured command, and those that undo what it changed.

use crate::store::client::CONNECTIONS;
use crate::types::options::Family;
use crate::types::values::{self, LARGE, element, field, key};
use crate::wire;

/// Elements of a small value at first.
pub(super) const SMALL_ELEMENTS: usize = 8;
/// Random elements of small values are among this many, so that a value keeps between five and ten elements.
const SMALL_RANGE: usize = 10;
/// Elements of LRANGE.
const RANGE: usize = 100;

/// A command that is measured, or undoes one that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Lpush,
    Rpop,
    Lrange,
    Hset,
    Hget,
    Hgetall,
    Sadd,
    Sismember,
    Zadd,
    Zrank,
    Zrange,
    Zpopmin,
    /// Adds members that ZPOPMIN took away.
    Zrefill,
    Xadd,
    /// Cuts small streams to the length they had.
    Xtrim,
    /// XREADGROUP of one entry and XACK of the same, in turns.
    Xread,
    /// Lets the groups read from the start again.
    Xrewind,
}

impl Op {
    /// The command that makes a value about what it was before.
    pub(super) fn undo(self, size: Size) -> Option<Op> {
        match (self, size) {
            (Op::Lpush, _) => Some(Op::Rpop),
            (Op::Rpop, _) => Some(Op::Lpush),
            (Op::Zpopmin, _) => Some(Op::Zrefill),
            (Op::Xadd, Size::Small) => Some(Op::Xtrim),
            (Op::Xread, _) => Some(Op::Xrewind),
            _ => None,
        }
    }
}

/// Whether a command works on one of many small values or on one large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    Large,
}

/// Generates requests. The same seed gives every server the same ones.
pub(super) struct Requests {
    random: fastrand::Rng,
    keys: usize,
    elements: usize,
    /// Makes members that were never there before.
    sequence: usize,
    /// Entries read from each stream so far: of small streams by key, of large ones by connection.
    read: Vec<usize>,
    /// What each connection has read and not acknowledged yet.
    unacknowledged: Vec<Option<(String, usize)>>,
    /// Streams to rewind.
    rewound: usize,
}

impl Requests {
    pub(super) fn new(keys: usize, elements: usize) -> Requests {
        Requests {
            random: fastrand::Rng::with_seed(0x7479_7065),
            keys,
            elements,
            sequence: elements,
            read: vec![0; keys.max(CONNECTIONS)],
            unacknowledged: vec![None; CONNECTIONS],
            rewound: 0,
        }
    }

    /// Appends one request of `op` for a connection.
    pub(super) fn push(&mut self, op: Op, size: Size, connection: usize, out: &mut Vec<u8>) {
        let (key_name, range) = match size {
            Size::Small => (self.small_key(op), SMALL_RANGE),
            Size::Large => (LARGE.to_owned(), self.elements),
        };
        let key = key_name.as_str();
        let at = self.random.usize(..range);
        let text = element(at);
        match op {
            Op::Lpush => words(out, &["LPUSH", key, &text]),
            Op::Rpop => words(out, &["RPOP", key]),
            Op::Lrange => {
                let start = match size {
                    Size::Small => 0,
                    Size::Large => self
                        .random
                        .usize(..self.elements.saturating_sub(RANGE).max(1)),
                };
                let stop = start + RANGE - 1;
                words(out, &["LRANGE", key, &start.to_string(), &stop.to_string()]);
            }
            Op::Hset => words(out, &["HSET", key, &field(at), &text]),
            Op::Hget => words(out, &["HGET", key, &field(at)]),
            Op::Hgetall => words(out, &["HGETALL", key]),
            Op::Sadd => words(out, &["SADD", key, &text]),
            Op::Sismember => words(out, &["SISMEMBER", key, &text]),
            Op::Zadd => {
                let score = self.random.usize(..self.elements);
                words(out, &["ZADD", key, &score.to_string(), &text]);
            }
            Op::Zrank => words(out, &["ZRANK", key, &text]),
            Op::Zrange => {
                let start = match size {
                    Size::Small => 0,
                    Size::Large => at,
                };
                let stop = start + 9;
                words(out, &["ZRANGE", key, &start.to_string(), &stop.to_string()]);
            }
            Op::Zpopmin => words(out, &["ZPOPMIN", key]),
            Op::Zrefill => {
                let score = self.random.usize(..self.elements);
                self.sequence += 1;
                let member = element(self.sequence);
                words(out, &["ZADD", key, &score.to_string(), &member]);
            }
            Op::Xadd => words(out, &["XADD", key, "*", "sensor", &text, "value", "21"]),
            Op::Xtrim => {
                let length = SMALL_ELEMENTS.to_string();
                words(out, &["XTRIM", key, "MAXLEN", &length]);
            }
            Op::Xread => self.push_read(size, connection, out),
            Op::Xrewind => self.push_rewind(size, out),
        }
    }

    fn small_key(&mut self, op: Op) -> String {
        let family = match op {
            Op::Lpush | Op::Rpop | Op::Lrange => Family::List,
            Op::Hset | Op::Hget | Op::Hgetall => Family::Hash,
            Op::Sadd | Op::Sismember => Family::Set,
            Op::Zadd | Op::Zrank | Op::Zrange | Op::Zpopmin | Op::Zrefill => Family::Zset,
            Op::Xadd | Op::Xtrim | Op::Xread | Op::Xrewind => Family::Stream,
        };
        key(family, self.random.usize(..self.keys))
    }

    /// Reads an entry from a stream that has one left, or acknowledges the entry this connection read last.
    fn push_read(&mut self, size: Size, connection: usize, out: &mut Vec<u8>) {
        if let Some((key, number)) = self.unacknowledged[connection].take() {
            let id = format!("{number}-1");
            words(out, &["XACK", &key, values::GROUP, &id]);
            return;
        }
        let (key, index) = match size {
            Size::Small => {
                let index = self.random.usize(..self.keys);
                (key(Family::Stream, index), index)
            }
            Size::Large => (reader_key(connection), connection),
        };
        values::push_read(out, &key, "1");
        self.read[index] += 1;
        self.unacknowledged[connection] = Some((key, self.read[index]));
    }

    fn push_rewind(&mut self, size: Size, out: &mut Vec<u8>) {
        let streams = match size {
            Size::Small => self.keys,
            Size::Large => CONNECTIONS,
        };
        let index = self.rewound % streams;
        let key = match size {
            Size::Small => key(Family::Stream, index),
            Size::Large => reader_key(index),
        };
        self.rewound = index + 1;
        self.read[index] = 0;
        words(out, &["XGROUP", "SETID", &key, values::GROUP, "0"]);
    }
}

/// The stream that a connection reads from where streams are large.
pub(super) fn reader_key(connection: usize) -> String {
    key(Family::Stream, 900_000_000 + connection)
}

fn words(out: &mut Vec<u8>, words: &[&str]) {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    wire::push_command(out, &words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(requests: &mut Requests, op: Op, size: Size) -> String {
        let mut out = Vec::new();
        requests.push(op, size, 0, &mut out);
        let text = String::from_utf8(out).unwrap();
        let words: Vec<&str> = text.split("\r\n").skip(2).step_by(2).collect();
        words.join(" ")
    }

    #[test]
    fn an_entry_is_acknowledged_after_it_was_read() {
        let mut requests = Requests::new(1, 1000);
        let read = "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream:000000000 >";
        for number in 1..3 {
            assert_eq!(text(&mut requests, Op::Xread, Size::Small), read);
            assert_eq!(
                text(&mut requests, Op::Xread, Size::Small),
                format!("XACK stream:000000000 group {number}-1")
            );
        }
        let rewind = text(&mut requests, Op::Xrewind, Size::Small);
        assert_eq!(rewind, "XGROUP SETID stream:000000000 group 0");
        text(&mut requests, Op::Xread, Size::Small);
        assert_eq!(
            text(&mut requests, Op::Xread, Size::Small),
            "XACK stream:000000000 group 1-1"
        );
    }

    #[test]
    fn large_streams_are_rewound_after_small_ones() {
        let mut requests = Requests::new(1000, 1000);
        for _ in 0..CONNECTIONS + 3 {
            text(&mut requests, Op::Xrewind, Size::Small);
        }
        let key = reader_key((CONNECTIONS + 3) % CONNECTIONS);
        assert_eq!(
            text(&mut requests, Op::Xrewind, Size::Large),
            format!("XGROUP SETID {key} group 0")
        );
    }

    #[test]
    fn what_takes_elements_away_is_undone() {
        for op in [Op::Lpush, Op::Rpop, Op::Zpopmin, Op::Xread] {
            assert!(op.undo(Size::Large).is_some(), "{op:?}");
        }
        assert_eq!(Op::Hget.undo(Size::Small), None);
    }
}
