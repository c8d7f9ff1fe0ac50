//! The row that a session's last request had, which the next one often has too.

use crate::base::ids::CommandId;

/// The row of a request, and the name it was sent with, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) name: PackedName,
    pub(crate) id: CommandId,
}

/// A name of up to 16 bytes, which is compared without a loop: its first and its last bytes, which overlap in a shorter
/// one, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedName {
    head: u64,
    tail: u64,
    len: usize,
}

impl PackedName {
    #[inline]
    pub(crate) fn new(name: &[u8]) -> Option<Self> {
        let len = name.len();
        let (head, tail) = match (name.first_chunk(), name.last_chunk()) {
            (Some(&head), Some(&tail)) if len <= 16 => {
                (u64::from_le_bytes(head), u64::from_le_bytes(tail))
            }
            (Some(_), _) => return None,
            _ => match (name.first_chunk(), name.last_chunk()) {
                (Some(&head), Some(&tail)) => (
                    u32::from_le_bytes(head).into(),
                    u32::from_le_bytes(tail).into(),
                ),
                _ => (
                    name.iter()
                        .fold(0, |word, &byte| word << 8 | u64::from(byte)),
                    0,
                ),
            },
        };
        Some(Self { head, tail, len })
    }
}
