//! Ids of sessions, users, commands and data sets, for what refers to them without knowing what they are.

use std::fmt;

/// A handle on a session. It goes stale when the session ends: later use finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// Index that is dense and reused: a front can keep its sockets under it.
    pub slot: u32,
    serial: u32,
}

impl SessionKey {
    /// The key of the session with this id, which is never reused.
    pub(crate) fn new(slot: u32, id: u64) -> Self {
        let serial = id as u32;
        Self { slot, serial }
    }
}

/// The classes of `client-output-buffer-limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Normal,
    Pubsub,
}

/// Position of a row in the index; statistics are kept under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommandId(pub(crate) u16);

/// A user's place in the list of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UserId(pub(crate) u32);

impl UserId {
    /// The user every connection begins with.
    pub(crate) const DEFAULT: Self = Self(0);
    /// No user's: of a session whose user was deleted. It may do nothing.
    pub(crate) const DELETED: Self = Self(u32::MAX);
}

/// The id of a data set, written as 32 hexadecimal digits. It is drawn when the data set begins, and goes with the data: into
/// RDB files and the bases of append-only files, and with them into backups.
///
/// ```
/// use kumi_store::DataId;
///
/// let id = DataId::parse(b"000102030405060708090a0b0c0d0e0f").expect("32 digits");
/// assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0e0f");
/// assert_eq!(DataId::parse(b"0001"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataId(u128);

impl DataId {
    /// How many random bytes an id is made of.
    pub(crate) const BYTES: usize = 16;

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Reads 32 hexadecimal digits in lower case.
    #[must_use]
    pub fn parse(digits: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 2 * Self::BYTES || !digits.iter().all(is_digit) {
            return None;
        }
        let digits = std::str::from_utf8(digits).ok()?;
        u128::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl fmt::Display for DataId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_data_set_is_read_as_it_is_written() {
        for number in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef << 32] {
            let text = DataId(number).to_string();
            assert_eq!(text.len(), 32);
            assert_eq!(DataId::parse(text.as_bytes()), Some(DataId(number)));
        }
        for wrong in [
            "",
            "0",
            "+00102030405060708090a0b0c0d0e0f",
            "000102030405060708090A0B0C0D0E0F",
            "000102030405060708090a0b0c0d0e0f0",
            "000102030405060708090a0b0c0d0e0g",
        ] {
            assert_eq!(DataId::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
