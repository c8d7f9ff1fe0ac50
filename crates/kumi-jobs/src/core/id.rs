//! The names of things in a queue: tasks, claims, and points in time. `owner.rs` has those of workers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// A text that is no id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

impl ParseIdError {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        let text = text.chars().take(80).collect();
        Self { text, expected }
    }
}

/// Digits of an id's short text; its alphabet sorts like the ids in every locale.
const SHORT_LEN: usize = 26;
const SHORT_DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The value of each digit by its byte; `NO_DIGIT` for all other bytes.
const SHORT_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < SHORT_DIGITS.len() {
        values[SHORT_DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NO_DIGIT: u8 = 0xff;

pub(crate) const EXPECTED_NAME: &str =
    "a worker's name (1 to 63 of a-z, 0-9, '.' and '-', the first a letter or a digit)";

/// The id of a task: a UUIDv7, so ids sort by the millisecond in which they were made. Its text is 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(u128);

impl TaskId {
    /// The id for a moment and 74 random bits.
    #[must_use]
    pub fn from_parts(at: Timestamp, random: u128) -> Self {
        let [bytes @ .., _, _, _, _, _, _] = random.to_be_bytes();
        let uuid = uuid::Builder::from_unix_timestamp_millis(at.as_ms(), &bytes).into_uuid();
        Self(uuid.as_u128())
    }

    /// The short text that queues use inside: 26 digits of base 32, in the alphabet and order of a ULID, in small letters.
    pub(crate) fn short(self) -> [u8; SHORT_LEN] {
        let mut bits = self.0;
        let mut text = [0; SHORT_LEN];
        for digit in text.iter_mut().rev() {
            *digit = SHORT_DIGITS[bits as usize & 31];
            bits >>= 5;
        }
        text
    }

    /// Reads what [`TaskId::short`] writes.
    fn from_short(text: &str) -> Option<Self> {
        let mut bits: u128 = 0;
        for (place, byte) in text.bytes().enumerate() {
            let value = SHORT_VALUES[usize::from(byte)];
            // The first of 26 digits holds three of 128 bits.
            if value == NO_DIGIT || place == 0 && value > 7 {
                return None;
            }
            bits = bits << 5 | u128::from(value);
        }
        Some(Self(bits))
    }

    /// The id as a UUID.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        Uuid::from_u128(self.0)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = ParseIdError;

    /// Reads 32 hex digits, with or without a UUID's hyphens, or the 26 digits that a queue's keys hold.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let id = match text.len() {
            SHORT_LEN => Self::from_short(text),
            _ => Uuid::try_parse(text).ok().map(|uuid| Self(uuid.as_u128())),
        };
        id.ok_or_else(|| ParseIdError::new(text, "a task id (32 hex digits)"))
    }
}

impl Serialize for TaskId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The right to finish one run of a task: the queue's claim counter and the claimer's nonce. Tokens are compared for
/// equality only. The nonce keeps a server that lost its last writes, and counts again, from repeating a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// The queue's counter at the claim.
    pub count: u64,
    /// The claimer's random number.
    pub nonce: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.count, self.nonce)
    }
}

impl FromStr for Token {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parsed = text.split_once('-').and_then(|(count, nonce)| {
            let nonce = u64::from_str_radix(nonce, 16).ok()?;
            Some(Self {
                count: count.parse().ok()?,
                nonce,
            })
        });
        parsed.ok_or_else(|| ParseIdError::new(text, "a claim token"))
    }
}

/// Milliseconds since 1970 on the queue's clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A moment, in milliseconds since 1970.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The moment that much later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ms))
    }

    /// How long after `earlier` this is; zero if it is before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_read_back_and_sort_like_ids() {
        let mut last = String::new();
        for bits in [0, 1, 31, 32, u128::from(u64::MAX), u128::MAX / 3, u128::MAX] {
            let id = TaskId(bits);
            let text = String::from_utf8(id.short().to_vec()).unwrap();
            assert_eq!(text.parse(), Ok(id));
            assert!(last < text, "{last} {text}");
            last = text;
        }
        let too_large = "8".to_owned() + &"0".repeat(25);
        for wrong in [
            &*too_large,
            "0000000000000000000000000i",
            "0000000000000000000000000A",
        ] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_sort_by_time_and_survive_their_text() {
        let early = TaskId::from_parts(Timestamp::from_ms(1_000), u128::MAX);
        let late = TaskId::from_parts(Timestamp::from_ms(1_001), 0);
        assert!(early < late);
        assert_eq!(early.to_string().parse(), Ok(early));
        assert_eq!(early.uuid().to_string().parse(), Ok(early));
        assert_eq!(early.uuid().get_version_num(), 7);
        assert!("12".parse::<TaskId>().is_err());
    }

    #[test]
    fn tokens_survive_their_text() {
        let token = Token {
            count: 7,
            nonce: u64::MAX,
        };
        assert_eq!(token.to_string().parse(), Ok(token));
        for bad in ["", "7", "x-1", "7-x"] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }
}
