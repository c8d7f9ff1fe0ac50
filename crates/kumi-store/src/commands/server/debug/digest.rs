//! DEBUG DIGEST and DEBUG DIGEST-VALUE: SHA-1 digests of values, bit for bit those of Redis 7.2, so that two servers can be
//! compared without a look at their data.
//!
//! What has an order is mixed: the digest is XORed with the hash of the next piece, and hashed again. What has none is
//! XORed alone, so that the order in which elements are met makes no difference.

use crate::base::error::CommandResult;
use crate::base::number::format_i64;
use crate::data::keyspace::{Entry, Look, StringRef, ValueRef};
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{Stream, StreamId};
use kumi_resp::{Args, encode};
use sha1::{Digest as _, Sha1};

pub(super) fn digest(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let mut all = Digest::default();
    for db in 0..ctx.databases() {
        if ctx.key_count(db) == 0 {
            continue;
        }
        all.mix(&(db as u32).to_be_bytes());
        for entry in ctx.keys().in_db(db).iter() {
            let mut digest = Digest::default();
            digest.mix(entry.key());
            digest.value(entry);
            all.xor(&digest.0);
        }
    }
    ctx.reply.simple(&all.text());
    Ok(())
}

pub(super) fn digest_value(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    reply.array(args.len() - 2);
    for key in args.tail(2).iter() {
        let mut digest = Digest::default();
        if let Some(entry) = keys.look(key, Look::Quiet) {
            digest.value(entry);
        }
        reply.simple(&digest.text());
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default)]
struct Digest([u8; 20]);

impl Digest {
    /// Adds a piece whose place among the others does not matter.
    fn xor(&mut self, piece: &[u8]) {
        let hash = Sha1::digest(piece);
        for (byte, other) in self.0.iter_mut().zip(hash) {
            *byte ^= other;
        }
    }

    /// Adds a piece at its place.
    fn mix(&mut self, piece: &[u8]) {
        self.xor(piece);
        self.0 = Sha1::digest(self.0).into();
    }

    /// Adds what a key holds, and whether it has a deadline.
    fn value(&mut self, entry: &Entry) {
        let value = entry.value();
        self.mix(&(type_number(value)).to_be_bytes());
        match value {
            ValueRef::String(StringRef::Int(number)) => self.mix(&format_i64(number)),
            ValueRef::String(StringRef::Bytes { bytes, .. }) => self.mix(bytes),
            ValueRef::List(list) => list.iter().for_each(|element| self.mix(&element.text())),
            ValueRef::Set(set) => set.iter().for_each(|member| self.xor(&member.text())),
            ValueRef::SortedSet(zset) => {
                let mut score_text = Vec::new();
                for (member, score) in zset.iter() {
                    score_text.clear();
                    encode::shortest(&mut score_text, score);
                    self.pair(&member, &score_text);
                }
            }
            ValueRef::Hash(hash) => {
                for (field, value) in hash.iter() {
                    self.pair(&field.text(), &value.text());
                }
            }
            ValueRef::Stream(stream) => self.stream(stream),
        }
        if entry.deadline().is_some() {
            self.xor(b"!!expire!!");
        }
    }

    fn pair(&mut self, first: &[u8], second: &[u8]) {
        let mut pair = Digest::default();
        pair.mix(first);
        pair.mix(second);
        self.xor(&pair.0);
    }

    fn stream(&mut self, stream: &Stream) {
        for entry in stream.range(StreamId::MIN, StreamId::MAX) {
            let id = entry.id();
            self.mix(format!("{}.{}", id.ms, id.seq).as_bytes());
            for (field, value) in entry.fields() {
                self.mix(&field.text());
                self.mix(&value.text());
            }
        }
    }

    fn text(self) -> String {
        use std::fmt::Write as _;
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The number of a type in Redis.
fn type_number(value: ValueRef<'_>) -> u32 {
    match value {
        ValueRef::String(_) => 0,
        ValueRef::List(_) => 1,
        ValueRef::Set(_) => 2,
        ValueRef::SortedSet(_) => 3,
        ValueRef::Hash(_) => 4,
        ValueRef::Stream(_) => 6,
    }
}
