//! Names of nodes and workers, and a name together with one life: `name~life`.

use crate::life::Life;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::str::FromStr;

/// The longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 63;

/// What [`Name::fitted`] keeps of the end of a text that is too long: a hyphen and a port.
const END_BYTES: usize = 6;

/// Between a name and a life. No name holds it.
const SEPARATOR: char = '~';

/// A name of a node or worker, `[a-z0-9][a-z0-9.-]{0,62}`, which all its lives have. Cheap to clone.
///
/// ```
/// use kumi_common::{Life, Name};
///
/// let name = Name::new("web-1")?;
/// assert_eq!(name.with_life(Life::from_raw(42)).as_str(), "web-1~000000000000002a");
/// assert!(Name::new("Web 1").is_err());
/// # Ok::<(), kumi_common::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Takes a name of 1 to 63 lower-case letters, digits, dots and hyphens that begins with a letter or a digit.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        match is_name(text) {
            true => Ok(Self(text.into())),
            false => Err(InvalidName),
        }
    }

    /// The name nearest to a text: in lower case, with a hyphen for each byte that no name holds, without brackets, and
    /// `node` if nothing is left. An address becomes `10.0.0.1-7400`; one that is too long loses the end of its host.
    ///
    /// ```
    /// assert_eq!(kumi_common::Name::fitted("Node_3:7400").as_str(), "node-3-7400");
    /// ```
    #[must_use]
    pub fn fitted(text: &str) -> Self {
        let bytes = text.bytes().filter(|byte| !matches!(byte, b'[' | b']'));
        let fitted = bytes.map(|byte| match byte.to_ascii_lowercase() {
            byte if may_hold(byte) => char::from(byte),
            _ => '-',
        });
        let mut name: String = fitted.skip_while(|c| matches!(c, '.' | '-')).collect();
        if name.is_empty() {
            name.push_str("node");
        }
        if name.len() > MAX_NAME_BYTES {
            let end = name.len() - END_BYTES;
            name.replace_range(MAX_NAME_BYTES - END_BYTES..end, "");
        }
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name with one of its lives.
    #[must_use]
    pub fn with_life(&self, life: Life) -> NameAndLife {
        NameAndLife(format!("{self}{SEPARATOR}{life}").into())
    }
}

fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.bytes().all(may_hold)
        && text.bytes().next().is_some_and(may_begin)
}

fn may_begin(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn may_hold(byte: u8) -> bool {
    may_begin(byte) || matches!(byte, b'.' | b'-')
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidName;

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a name is 1 to 63 lower-case letters, digits, dots and hyphens, and begins with a letter or a digit",
        )
    }
}

impl core::error::Error for InvalidName {}

/// One life of a name, written `name~life`: an owner of jobs, a node in logs and in the output of commands. Cheap to clone.
///
/// The lives of one name sort by their start.
///
/// ```
/// use kumi_common::{Life, NameAndLife};
///
/// let owner: NameAndLife = "web-1~000000000000002a".parse()?;
/// assert_eq!((owner.name(), owner.life()), ("web-1", Life::from_raw(42)));
/// # Ok::<(), kumi_common::InvalidNameAndLife>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameAndLife(Arc<str>);

impl NameAndLife {
    /// The name, [`Name::new`] would take it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().0
    }

    /// The life.
    #[must_use]
    pub fn life(&self) -> Life {
        self.life_text().parse().unwrap_or_default()
    }

    /// The life as it is written, 16 hexadecimal digits.
    #[must_use]
    pub fn life_text(&self) -> &str {
        self.parts().1
    }

    /// `name~life`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(SEPARATOR).unwrap_or_default()
    }
}

impl From<NameAndLife> for String {
    fn from(written: NameAndLife) -> Self {
        written.as_str().into()
    }
}

impl FromStr for NameAndLife {
    type Err = InvalidNameAndLife;

    fn from_str(text: &str) -> Result<Self, InvalidNameAndLife> {
        match text.split_once(SEPARATOR) {
            Some((name, life)) if is_name(name) && life.parse::<Life>().is_ok() => {
                Ok(Self(text.into()))
            }
            _ => Err(InvalidNameAndLife),
        }
    }
}

impl fmt::Display for NameAndLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NameAndLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name with a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNameAndLife;

impl fmt::Display for InvalidNameAndLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected name~life, the life being 16 hexadecimal digits")
    }
}

impl core::error::Error for InvalidNameAndLife {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lower_case_letters_digits_dots_and_hyphens() {
        let longest = "a".repeat(MAX_NAME_BYTES);
        for right in ["a", "0", "web-1", "node3.example", "a-", &longest] {
            assert_eq!(Name::new(right).expect(right).as_str(), right);
        }
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for wrong in [
            "", "-a", ".a", "Web", "a b", "a~b", "a_b", "a:1", "é", "a\n", &long,
        ] {
            assert_eq!(Name::new(wrong), Err(InvalidName), "{wrong:?}");
        }
    }

    #[test]
    fn an_address_can_be_made_a_name() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Name::fitted(text).as_str(), expected);
            assert!(Name::new(expected).is_ok(), "{expected}");
        };
        check("10.0.0.1:7400", "10.0.0.1-7400");
        check("Node_3.Example:7400", "node-3.example-7400");
        check("[::1]:7400", "1-7400");
        check("[fe80::1%eth0]:7400", "fe80--1-eth0-7400");
        check("[]", "node");
        check("", "node");
        check("é", "node");
        let host = "h".repeat(200);
        let expected = format!("{}-65535", &host[..MAX_NAME_BYTES - END_BYTES]);
        check(&format!("{host}:65535"), &expected);
    }

    #[test]
    fn a_name_and_a_life_are_read_from_their_own_text_only() {
        let name = Name::new("web-1").expect("a name");
        let both = name.with_life(Life::new(1_700_000_000_000, 7));
        assert_eq!(both.as_str().parse(), Ok(both.clone()));
        assert_eq!(both.name(), "web-1");
        assert_eq!(both.life(), Life::new(1_700_000_000_000, 7));
        assert!(both < name.with_life(Life::new(1_700_000_000_001, 0)));
        for wrong in [
            "",
            "a",
            "~0123456789abcdef",
            "A~0123456789abcdef",
            "a~0123",
            "a~0123456789abcdeF",
            "a~~0123456789abcdef",
            "-a~0123456789abcdef",
        ] {
            let refused = wrong.parse::<NameAndLife>();
            assert_eq!(refused, Err(InvalidNameAndLife), "{wrong}");
        }
    }
}
