//! Envelopes without what both ends of a link know: version, cluster and sender.
//!
//! ```text
//!   envelope  | magic, three version bytes | kind | cluster, authority, uid | body |
//!   compact   |                              kind |                           body |
//! ```
//!
//! Each side says in its hello which version bytes it writes, beside its cluster, authority and uid; that is the whole
//! head of every envelope it sends on this link. An envelope with another head, as after the sender took a new uid,
//! travels whole. Of a heartbeat of 36 bytes, 33 are the head.

use crate::core::NodeIdentity;
use crate::core::wire::codec::envelope_head;
use bytes::{BufMut, Bytes, BytesMut};
use std::vec::Vec;

/// Where the kind lies in an envelope.
const KIND_AT: usize = 4;

/// What the envelopes of one side of a link begin with, without their kind.
#[derive(Debug)]
pub(super) struct Head {
    before_kind: [u8; KIND_AT],
    after_kind: Vec<u8>,
}

impl Head {
    /// The head of envelopes that are written with these version bytes.
    pub(super) fn new(versions: [u8; 3], cluster: &str, sender: &NodeIdentity) -> Self {
        let (before_kind, after_kind) = envelope_head(versions, cluster, sender);
        Self {
            before_kind,
            after_kind,
        }
    }

    /// The envelope without its head; `None` if it has another one.
    pub(super) fn strip(&self, envelope: &Bytes) -> Option<Bytes> {
        let rest = envelope.strip_prefix(&self.before_kind)?;
        let (kind, rest) = rest.split_first()?;
        let body = rest.strip_prefix(self.after_kind.as_slice())?;
        let mut compact = BytesMut::with_capacity(1 + body.len());
        compact.put_u8(*kind);
        compact.put_slice(body);
        Some(compact.freeze())
    }

    /// The envelope of which this is the compact form; `None` if it is empty.
    pub(super) fn restore(&self, compact: &[u8]) -> Option<Bytes> {
        let (kind, body) = compact.split_first()?;
        let len = KIND_AT + 1 + self.after_kind.len() + body.len();
        let mut envelope = BytesMut::with_capacity(len);
        envelope.put_slice(&self.before_kind);
        envelope.put_u8(*kind);
        envelope.put_slice(&self.after_kind);
        envelope.put_slice(body);
        Some(envelope.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::wire::codec::{ENVELOPE_VERSIONS, Envelope, Message};
    use crate::core::{Authority, MAX_VERSION, MIN_VERSION, NodeUid};

    fn identity(uid: u64) -> NodeIdentity {
        NodeIdentity {
            authority: Authority::new("127.0.0.1:7400").expect("a name"),
            uid: NodeUid::from_raw(uid),
        }
    }

    fn heartbeat(uid: u64) -> Bytes {
        let envelope = Envelope {
            cluster: "kumi".into(),
            versions: (MIN_VERSION, MAX_VERSION),
            sender: identity(uid),
            message: Message::Heartbeat {
                sequence: 7,
                incarnation: 1,
            },
        };
        envelope.encode().into()
    }

    #[test]
    fn a_heartbeat_is_three_bytes_and_comes_back_whole() {
        let head = Head::new(ENVELOPE_VERSIONS, "kumi", &identity(5));
        let compact = head.strip(&heartbeat(5)).expect("its own head");
        assert_eq!(compact.len(), 3);
        assert_eq!(head.restore(&compact), Some(heartbeat(5)));
    }

    #[test]
    fn an_envelope_of_another_life_or_garbage_is_not_stripped() {
        let head = Head::new(ENVELOPE_VERSIONS, "kumi", &identity(5));
        assert_eq!(head.strip(&heartbeat(6)), None);
        for wrong in [&b""[..], b"x", &heartbeat(5)[..4]] {
            assert_eq!(head.strip(&Bytes::copy_from_slice(wrong)), None);
        }
        assert_eq!(head.restore(b""), None);
    }
}
