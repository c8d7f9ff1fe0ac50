//! Lives: the runs of a program under one name, in an order that needs no coordination.
//!
//! ```text
//! bit 63                                  22 21                  0
//!     | start, in milliseconds since 1970   | random             |
//! ```
//!
//! A later start has the higher number; the random bits tell two starts of one millisecond apart. Nodes, workers and
//! MUF instances all take their lives from [`Life::new`], so that a life of one kind can be compared with one of another.

use core::fmt;
use core::str::FromStr;

/// Bits below the milliseconds.
const RANDOM_BITS: u32 = 22;

/// Hexadecimal digits of a life's text.
const DIGITS: usize = 16;

/// One run of a program under a name that earlier and later runs have too. Its text is 16 hexadecimal digits in small
/// letters, which sort like the lives.
///
/// ```
/// use kumi_common::Life;
///
/// let first = Life::new(1_700_000_000_000, 0x155);
/// assert_eq!(first.to_string(), "62f3f95a00000155");
/// assert_eq!("62f3f95a00000155".parse(), Ok(first));
/// assert!(first < Life::new(1_700_000_000_001, 0));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Life(u64);

impl Life {
    /// The life of a program of which nothing but its name is known. It sorts below all others.
    pub const UNKNOWN: Self = Self(0);

    /// A life that begins at `unix_ms`, milliseconds since 1970. Of `random` the lowest 22 bits are used.
    #[must_use]
    pub const fn new(unix_ms: u64, random: u64) -> Self {
        let below = random & ((1 << RANDOM_BITS) - 1);
        Self((unix_ms << RANDOM_BITS) | below)
    }

    /// A life from its number.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The life as a number.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// When this life began, in milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        self.0 >> RANDOM_BITS
    }

    /// The next higher life; `None` for the largest number, which no clock gives.
    #[must_use]
    pub fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidLife;

impl fmt::Display for InvalidLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a life is 16 hexadecimal digits in small letters")
    }
}

impl core::error::Error for InvalidLife {}

impl FromStr for Life {
    type Err = InvalidLife;

    /// Reads exactly what [`Display`](fmt::Display) writes, so that texts and lives have the same order.
    fn from_str(text: &str) -> Result<Self, InvalidLife> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != DIGITS || !text.bytes().all(is_digit) {
            return Err(InvalidLife);
        }
        let number = u64::from_str_radix(text, 16).map_err(|_| InvalidLife)?;
        Ok(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    #[test]
    fn a_later_start_has_the_higher_life_whatever_the_random_bits() {
        let lives = [
            Life::UNKNOWN,
            Life::new(0, 1),
            Life::new(1, 0),
            Life::new(1_700_000_000_000, u64::MAX),
            Life::new(1_700_000_000_001, 0),
            Life::new(4_000_000_000_000, 9),
        ];
        assert!(lives.is_sorted(), "{lives:?}");
        let texts = lives.map(|life| life.to_string());
        assert!(texts.is_sorted(), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() == DIGITS), "{texts:?}");
        assert_eq!(
            Life::new(1_700_000_000_001, 99).unix_ms(),
            1_700_000_000_001
        );
    }

    #[test]
    fn a_life_is_read_from_its_own_text_only() {
        for life in [
            Life::UNKNOWN,
            Life::new(1_700_000_000_000, 5),
            Life(u64::MAX),
        ] {
            assert_eq!(life.to_string().parse(), Ok(life));
        }
        let long = String::from("62f3f95a000001550");
        for wrong in [
            "",
            "1",
            "62F459FD40000155",
            "+2f459fd40000155",
            "62f459fd4000015g",
            &long,
        ] {
            assert_eq!(wrong.parse::<Life>(), Err(InvalidLife), "{wrong}");
        }
        assert_eq!(Life(u64::MAX).successor(), None);
        assert_eq!(Life(7).successor(), Some(Life(8)));
    }

    /// Workers and MUF instances of earlier versions had microseconds above 8 random bits. Each such life is before every
    /// life of today's form for as long as clocks show a year before 2780, so that an upgrade needs no migration.
    #[test]
    fn a_life_of_the_former_form_is_before_every_life_of_this_one() {
        let former = |unix_ms: u64| Life(((unix_ms * 1_000) << 8) | 0xff);
        let [year_2020, year_2750] = [1_577_836_800_000, 24_614_323_200_000];
        assert!(former(year_2750) < Life::new(year_2020, 0));
    }
}
