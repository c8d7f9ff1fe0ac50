//! Bytes to envelopes, trusting nothing.

use super::writer::{HAS_ACCUSERS, HAS_METADATA, STATUS_MASK};
use super::{
    Envelope, JoinRefusal, MAGIC, MAX_DELTA_QUARANTINES, MAX_DELTA_RECORDS, MAX_ENVELOPE_BYTES,
    MAX_VERSION, MIN_VERSION, Message, Seen, WRITTEN_VERSION,
};
use crate::core::base::error::EnvelopeError;
use crate::core::base::identity::MAX_CLUSTER_NAME_BYTES;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::{MAX_METADATA_BYTES, MemberMetadata};
use crate::core::base::reason::ReasonText;
use crate::core::base::status::NodeStatus;
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::state::record::{Accusation, Accusations, MAX_ACCUSERS, MemberRecord};
use crate::core::state::snapshot::MembershipDelta;
use crate::core::state::table::BUCKETS;
use alloc::boxed::Box;
use alloc::vec::Vec;

type Result<T> = core::result::Result<T, EnvelopeError>;

pub(super) fn decode(bytes: &[u8]) -> Result<Envelope> {
    if bytes.len() > MAX_ENVELOPE_BYTES {
        return Err(EnvelopeError::TooLarge("the envelope"));
    }
    let mut reader = Reader { rest: bytes };
    if reader.byte()? != MAGIC {
        return Err(EnvelopeError::BadMagic);
    }
    let (min, max) = (reader.byte()?, reader.byte()?);
    if min > max {
        return Err(EnvelopeError::BadField("the version range"));
    }
    if min > MAX_VERSION || max < MIN_VERSION {
        return Err(EnvelopeError::Version { min, max });
    }
    let written = reader.byte()?;
    if !(min..=max).contains(&written) {
        return Err(EnvelopeError::BadField("the version of the message"));
    }
    if written != WRITTEN_VERSION {
        return Err(EnvelopeError::Version { min, max });
    }
    let kind = reader.byte()?;
    let cluster = reader.text()?;
    let shown = cluster.bytes().all(|byte| byte.is_ascii_graphic());
    if !shown || !(1..=MAX_CLUSTER_NAME_BYTES).contains(&cluster.len()) {
        return Err(EnvelopeError::BadField("the cluster's name"));
    }
    let cluster = cluster.into();
    let sender = reader.identity()?;
    let message = reader.message(kind)?;
    if !reader.rest.is_empty() {
        return Err(EnvelopeError::TrailingBytes(reader.rest.len()));
    }
    Ok(Envelope {
        cluster,
        versions: (min, max),
        sender,
        message,
    })
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn message(&mut self, kind: u8) -> Result<Message> {
        Ok(match kind {
            1 => Message::Heartbeat {
                sequence: self.varint()?,
                incarnation: self.varint()?,
            },
            2 => self.heartbeat_ack()?,
            3 => Message::Probe {
                nonce: self.word()?,
            },
            4 => Message::ProbeAck {
                nonce: self.word()?,
                incarnation: self.varint()?,
            },
            5 => Message::ProbeRequest {
                nonce: self.word()?,
                target: self.identity()?,
            },
            6 => Message::ProbeReply {
                nonce: self.word()?,
                target: self.identity()?,
                incarnation: self.varint()?,
            },
            7 => Message::Push {
                seen: self.seen()?,
                delta: self.delta()?,
            },
            8 => self.pull_request()?,
            9 => Message::PullReply {
                seen: self.seen()?,
                wanted: self.word()?,
                delta: self.delta()?,
            },
            10 => Message::Join {
                record: self.record()?,
            },
            11 => Message::Welcome {
                seen: self.seen()?,
                delta: self.delta()?,
            },
            12 => Message::JoinRefused {
                reason: self.refusal()?,
            },
            13 => Message::Verdict {
                record: self.record()?,
                quarantine: match self.byte()? {
                    0 => None,
                    1 => Some(self.rumor()?),
                    _ => return Err(EnvelopeError::BadField("the flag of a quarantine")),
                },
            },
            _ => return Err(EnvelopeError::BadField("the kind")),
        })
    }

    fn heartbeat_ack(&mut self) -> Result<Message> {
        let sequence = self.varint()?;
        let flags = self.byte()?;
        if flags > 3 {
            return Err(EnvelopeError::BadField("the flags of an acknowledgement"));
        }
        let suspected = match flags & 1 {
            0 => None,
            _ => Some(self.varint()?),
        };
        Ok(Message::HeartbeatAck {
            sequence,
            suspected,
            not_my_monitor: flags & 2 != 0,
        })
    }

    fn pull_request(&mut self) -> Result<Message> {
        let seen = self.seen()?;
        let observer = match self.byte()? {
            0 => false,
            1 => true,
            _ => return Err(EnvelopeError::BadField("the observer flag")),
        };
        let bookmark = self.varint()?;
        let quarantines = self.word()?;
        let mut buckets = Box::new([0; BUCKETS]);
        for bucket in buckets.iter_mut() {
            *bucket = u32::from_le_bytes(self.array()?);
        }
        Ok(Message::PullRequest {
            seen,
            observer,
            bookmark,
            quarantines,
            buckets,
        })
    }

    fn refusal(&mut self) -> Result<JoinRefusal> {
        Ok(match self.byte()? {
            0 => JoinRefusal::Superseded {
                current: NodeUid::from_raw(self.word()?),
            },
            1 => JoinRefusal::Quarantined {
                version: self.word()?,
                remaining_ms: self.varint()?,
                text: self.reason()?,
            },
            2 => JoinRefusal::Full,
            3 => JoinRefusal::NameTaken {
                holder: self.identity()?,
            },
            _ => return Err(EnvelopeError::BadField("the refusal")),
        })
    }

    fn seen(&mut self) -> Result<Seen> {
        Ok(Seen {
            version: self.varint()?,
            digest: self.word()?,
        })
    }

    fn delta(&mut self) -> Result<MembershipDelta> {
        let (from_version, to_version) = (self.varint()?, self.varint()?);
        let count = self.count(MAX_DELTA_RECORDS, "the number of records")?;
        // Growing as they come: a false count allocates nothing.
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(self.record()?);
        }
        let count = self.count(MAX_DELTA_QUARANTINES, "the number of quarantines")?;
        let mut quarantines = Vec::new();
        for _ in 0..count {
            quarantines.push(self.rumor()?);
        }
        Ok(MembershipDelta {
            from_version,
            to_version,
            records,
            quarantines,
        })
    }

    fn record(&mut self) -> Result<MemberRecord> {
        let flags = self.byte()?;
        let known = STATUS_MASK | HAS_METADATA | HAS_ACCUSERS;
        let status = NodeStatus::from_code(flags & STATUS_MASK);
        let (Some(status), true) = (status, flags & !known == 0) else {
            return Err(EnvelopeError::BadField("the flags of a record"));
        };
        let NodeIdentity { authority, uid } = self.identity()?;
        let incarnation = self.varint()?;
        let (metadata_stamp, metadata) = match flags & HAS_METADATA {
            0 => (0, MemberMetadata::EMPTY),
            _ => self.metadata()?,
        };
        let accusations = match flags & HAS_ACCUSERS {
            0 => Accusations::NONE,
            _ if status != NodeStatus::Suspect => {
                return Err(EnvelopeError::BadField(
                    "accusers of a member that is not suspect",
                ));
            }
            _ => self.accusations()?,
        };
        Ok(MemberRecord {
            authority,
            uid,
            incarnation,
            status,
            accusations,
            metadata_stamp,
            metadata,
        })
    }

    fn metadata(&mut self) -> Result<(u64, MemberMetadata)> {
        let stamp = self.varint()?;
        if stamp == 0 {
            return Err(EnvelopeError::BadField("the stamp of metadata"));
        }
        let len = self.count(MAX_METADATA_BYTES, "metadata")?;
        let metadata = MemberMetadata::from_bytes(self.take(len)?);
        let metadata = metadata.map_err(|_| EnvelopeError::TooLarge("metadata"))?;
        Ok((stamp, metadata))
    }

    fn accusations(&mut self) -> Result<Accusations> {
        let count = usize::from(self.byte()?);
        if count == 0 || count > MAX_ACCUSERS {
            return Err(EnvelopeError::TooLarge("the number of accusers"));
        }
        let mut all: Vec<Accusation> = Vec::with_capacity(count);
        for _ in 0..count {
            let accuser = NodeUid::from_raw(self.word()?);
            let round = u16::try_from(self.varint()?).unwrap_or_default();
            if round == 0 {
                return Err(EnvelopeError::BadField("the round of an accusation"));
            }
            if all.last().is_some_and(|last| last.accuser >= accuser) {
                return Err(EnvelopeError::BadField("the order of accusers"));
            }
            all.push(Accusation { accuser, round });
        }
        Ok(Accusations::from_sorted(all))
    }

    fn rumor(&mut self) -> Result<QuarantineRumor> {
        Ok(QuarantineRumor {
            authority: self.authority()?,
            version: self.word()?,
            remaining_ms: self.varint()?,
            remember_ms: self.varint()?,
            text: self.reason()?,
        })
    }

    fn reason(&mut self) -> Result<ReasonText> {
        let text = self.text()?;
        ReasonText::from_wire(text).ok_or(EnvelopeError::BadField("the text of a reason"))
    }

    fn identity(&mut self) -> Result<NodeIdentity> {
        Ok(NodeIdentity {
            authority: self.authority()?,
            uid: NodeUid::from_raw(self.word()?),
        })
    }

    fn authority(&mut self) -> Result<Authority> {
        Authority::new(self.text()?).map_err(|_| EnvelopeError::BadField("an authority"))
    }

    fn text(&mut self) -> Result<&'a str> {
        let len = usize::from(self.byte()?);
        core::str::from_utf8(self.take(len)?).map_err(|_| EnvelopeError::BadField("text"))
    }

    fn count(&mut self, limit: usize, what: &'static str) -> Result<usize> {
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if count > limit {
            return Err(EnvelopeError::TooLarge(what));
        }
        Ok(count)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..).step_by(7).take(10) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit; and only the shortest form is written.
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(EnvelopeError::BadField("a number"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(EnvelopeError::BadField("a number"))
    }

    fn word(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(EnvelopeError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(EnvelopeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}
