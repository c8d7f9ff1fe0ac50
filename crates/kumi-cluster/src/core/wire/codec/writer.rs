//! Envelopes to bytes. Whatever is written here is read back the same.

use super::{Envelope, JoinRefusal, MAGIC, Message, Seen, WRITTEN_VERSION};
use crate::core::base::identity::NodeIdentity;
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::MembershipDelta;
use alloc::vec::Vec;

pub(super) const HAS_METADATA: u8 = 1 << 3;
pub(super) const HAS_ACCUSERS: u8 = 1 << 4;
pub(super) const STATUS_MASK: u8 = 7;

pub(super) fn encode(envelope: &Envelope) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let (min, max) = envelope.versions;
    out.extend_from_slice(&[MAGIC, min, max, WRITTEN_VERSION, kind(&envelope.message)]);
    text(&mut out, &envelope.cluster);
    identity(&mut out, &envelope.sender);
    body(&mut out, &envelope.message);
    out
}

/// What an envelope begins with, before and after its kind.
#[cfg(feature = "driver")]
pub(crate) fn envelope_head(
    versions: [u8; 3],
    cluster: &str,
    sender: &NodeIdentity,
) -> ([u8; 4], Vec<u8>) {
    let [min, max, written] = versions;
    let mut after_kind = Vec::new();
    text(&mut after_kind, cluster);
    identity(&mut after_kind, sender);
    ([MAGIC, min, max, written], after_kind)
}

pub(super) fn kind(message: &Message) -> u8 {
    match message {
        Message::Heartbeat { .. } => 1,
        Message::HeartbeatAck { .. } => 2,
        Message::Probe { .. } => 3,
        Message::ProbeAck { .. } => 4,
        Message::ProbeRequest { .. } => 5,
        Message::ProbeReply { .. } => 6,
        Message::Push { .. } => 7,
        Message::PullRequest { .. } => 8,
        Message::PullReply { .. } => 9,
        Message::Join { .. } => 10,
        Message::Welcome { .. } => 11,
        Message::JoinRefused { .. } => 12,
        Message::Verdict { .. } => 13,
    }
}

fn body(out: &mut Vec<u8>, message: &Message) {
    match message {
        Message::Heartbeat {
            sequence,
            incarnation,
        } => {
            varint(out, *sequence);
            varint(out, *incarnation);
        }
        Message::HeartbeatAck {
            sequence,
            suspected,
            not_my_monitor,
        } => {
            varint(out, *sequence);
            out.push(u8::from(suspected.is_some()) | u8::from(*not_my_monitor) << 1);
            if let Some(incarnation) = suspected {
                varint(out, *incarnation);
            }
        }
        Message::Probe { nonce } => word(out, *nonce),
        Message::ProbeAck { nonce, incarnation } => {
            word(out, *nonce);
            varint(out, *incarnation);
        }
        Message::ProbeRequest { nonce, target } => {
            word(out, *nonce);
            identity(out, target);
        }
        Message::ProbeReply {
            nonce,
            target,
            incarnation,
        } => {
            word(out, *nonce);
            identity(out, target);
            varint(out, *incarnation);
        }
        Message::Push {
            seen: summary,
            delta: news,
        } => {
            seen(out, *summary);
            delta(out, news);
        }
        Message::PullRequest {
            seen: summary,
            observer,
            bookmark,
            quarantines,
            buckets,
        } => {
            seen(out, *summary);
            out.push(u8::from(*observer));
            varint(out, *bookmark);
            word(out, *quarantines);
            for bucket in buckets.iter() {
                out.extend_from_slice(&bucket.to_le_bytes());
            }
        }
        Message::PullReply {
            seen: summary,
            wanted,
            delta: news,
        } => {
            seen(out, *summary);
            word(out, *wanted);
            delta(out, news);
        }
        Message::Join { record: own } => record(out, own),
        Message::Welcome {
            seen: summary,
            delta: snapshot,
        } => {
            seen(out, *summary);
            delta(out, snapshot);
        }
        Message::JoinRefused { reason } => refusal(out, reason),
        Message::Verdict {
            record: known,
            quarantine,
        } => {
            record(out, known);
            out.push(u8::from(quarantine.is_some()));
            quarantine.iter().for_each(|one| rumor(out, one));
        }
    }
}

fn refusal(out: &mut Vec<u8>, reason: &JoinRefusal) {
    match reason {
        JoinRefusal::Superseded { current } => {
            out.push(0);
            word(out, current.raw());
        }
        JoinRefusal::Quarantined {
            version,
            remaining_ms,
            text: said,
        } => {
            out.push(1);
            word(out, *version);
            varint(out, *remaining_ms);
            text(out, said.as_str());
        }
        JoinRefusal::Full => out.push(2),
        JoinRefusal::NameTaken { holder } => {
            out.push(3);
            identity(out, holder);
        }
    }
}

fn seen(out: &mut Vec<u8>, seen: Seen) {
    varint(out, seen.version);
    word(out, seen.digest);
}

fn delta(out: &mut Vec<u8>, delta: &MembershipDelta) {
    varint(out, delta.from_version);
    varint(out, delta.to_version);
    varint(out, delta.records.len() as u64);
    delta.records.iter().for_each(|one| record(out, one));
    varint(out, delta.quarantines.len() as u64);
    delta.quarantines.iter().for_each(|one| rumor(out, one));
}

fn record(out: &mut Vec<u8>, record: &MemberRecord) {
    let accusers = record.accusations.as_slice();
    let with_metadata = record.metadata_stamp > 0;
    let flags = record.status.code()
        | if with_metadata { HAS_METADATA } else { 0 }
        | if accusers.is_empty() { 0 } else { HAS_ACCUSERS };
    out.push(flags);
    text(out, record.authority.as_str());
    word(out, record.uid.raw());
    varint(out, record.incarnation);
    if with_metadata {
        let bytes = record.metadata.as_bytes();
        varint(out, record.metadata_stamp);
        varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
    if !accusers.is_empty() {
        out.push(accusers.len() as u8);
        for accusation in accusers {
            word(out, accusation.accuser.raw());
            varint(out, u64::from(accusation.round));
        }
    }
}

fn rumor(out: &mut Vec<u8>, rumor: &QuarantineRumor) {
    text(out, rumor.authority.as_str());
    word(out, rumor.version);
    varint(out, rumor.remaining_ms);
    varint(out, rumor.remember_ms);
    text(out, rumor.text.as_str());
}

/// A bound on what a record takes on the wire, for filling datagrams.
pub(crate) fn encoded_len(record: &MemberRecord, with_metadata: bool) -> usize {
    let accusers = record.accusations.as_slice().len();
    let metadata = if with_metadata {
        13 + record.metadata.as_bytes().len()
    } else {
        0
    };
    1 + 1 + record.authority.as_str().len() + 8 + 10 + metadata + 1 + accusers * 11
}

/// The same for a quarantine.
pub(crate) fn encoded_rumor_len(rumor: &QuarantineRumor) -> usize {
    1 + rumor.authority.as_str().len() + 8 + 10 + 10 + 1 + rumor.text.as_str().len()
}

fn identity(out: &mut Vec<u8>, identity: &NodeIdentity) {
    text(out, identity.authority.as_str());
    word(out, identity.uid.raw());
}

/// Everything written this way is limited to 255 bytes where it is made; the cut is for what is not.
fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..255).unwrap_or(bytes);
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

fn word(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
