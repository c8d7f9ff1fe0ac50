//! The records by which reading and claiming reach an AOF or a replica: what became of pending entries as XCLAIM, how far
//! a group has read as XGROUP SETID, and a consumer without pending entries as XGROUP CREATECONSUMER.

use crate::base::number::{format_i64, format_u64};
use crate::engine::store::ctx::Ctx;
use crate::types::stream::StreamId;

/// The state of a pending entry.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) consumer: Vec<u8>,
    /// The id as it is written in the record.
    pub(super) id: Vec<u8>,
    pub(super) delivery_time: i64,
    pub(super) delivery_count: u64,
    /// The last id that the group has read.
    pub(super) last_id: StreamId,
}

/// Records a pending entry. An entry that the stream has no more is not pending after it.
pub(super) fn claimed(ctx: &mut Ctx<'_>, key: &[u8], group: &[u8], claimed: &Claimed) {
    let words: [&[u8]; 14] = [
        b"XCLAIM",
        key,
        group,
        &claimed.consumer,
        b"0",
        &claimed.id,
        b"TIME",
        &format_i64(claimed.delivery_time),
        b"RETRYCOUNT",
        &format_i64(claimed.delivery_count as i64),
        b"FORCE",
        b"JUSTID",
        b"LASTID",
        &claimed.last_id.text(),
    ];
    ctx.propagate_as(words);
}

/// Records how far a group has read.
pub(super) fn group_position(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    group: &[u8],
    last_id: StreamId,
    entries_read: Option<u64>,
) {
    let read = match entries_read {
        Some(read) => format_u64(read),
        None => format_i64(-1),
    };
    let id = last_id.text();
    let words: [&[u8]; 7] = [b"XGROUP", b"SETID", key, group, &id, b"ENTRIESREAD", &read];
    ctx.propagate_as(words);
}

/// Records that a consumer was created.
pub(super) fn consumer(ctx: &mut Ctx<'_>, key: &[u8], group: &[u8], consumer: &[u8]) {
    let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key, group, consumer];
    ctx.propagate_as(words);
}
