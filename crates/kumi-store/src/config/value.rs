//! The kinds of value a directive may have: how its words are parsed, and its canonical text.
//!
//! Error texts are Redis's, because clients and scripts match on them. The table decides whether kumi acts on a value
//! and whether a client may change it.

use std::borrow::Cow;

use super::special::{self, OutputLimits, ReplicaOf, Special};
use super::{NotifyFlags, words};

/// Why words were rejected, in Redis's words.
pub(super) type Reason = Cow<'static, str>;

/// What a directive's words must look like.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// One of the names.
    Choice(&'static [&'static str]),
    /// Any of the names together; the first one means none of them.
    Flags(&'static [&'static str]),
    /// A whole number from `min` to `max`.
    Integer {
        /// Smallest accepted value.
        min: i128,
        /// Largest accepted value.
        max: i128,
        /// How it is written.
        unit: Unit,
    },
    /// Any bytes that pass the check.
    Text(fn(&[u8]) -> Result<(), &'static str>),
    /// A syntax of its own.
    Special(Special),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Decimal digits.
    Plain,
    /// Decimal digits and perhaps `b k kb m mb g gb`; shown in bytes.
    Memory,
    /// As memory, or a percentage, which is kept as a negative number.
    PercentOrMemory,
    /// Octal digits, as file permissions are.
    Octal,
}

/// The value of one directive. Its variant follows from the directive's [`Kind`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Choice`]: an index into the names.
    Choice(usize),
    /// Of [`Kind::Flags`]: bit `n - 1` stands for name `n`.
    Flags(u32),
    /// Of [`Kind::Integer`].
    Integer(i128),
    /// Of [`Kind::Text`].
    Text(Vec<u8>),
    /// Addresses of `bind`, as they were written.
    Addresses(Vec<Vec<u8>>),
    /// Seconds and changes of each `save` point.
    SavePoints(Vec<(i64, i64)>),
    /// `client-output-buffer-limit`.
    OutputLimits(OutputLimits),
    /// `oom-score-adj-values`.
    OomScores([i32; 3]),
    /// `notify-keyspace-events`.
    Notify(NotifyFlags),
    /// `latency-tracking-info-percentiles`.
    Percentiles(Vec<f64>),
    /// `replicaof`.
    ReplicaOf(Option<ReplicaOf>),
}

impl Kind {
    /// Whether the file may give several words.
    fn takes_many_words(&self) -> bool {
        match self {
            Kind::Flags(_) => true,
            Kind::Special(special) => special.takes_many_words(),
            _ => false,
        }
    }

    /// Splits a value given as one text. Consecutive spaces make empty words, which most kinds reject.
    pub(super) fn split<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        if !self.takes_many_words() {
            vec![text]
        } else if text.is_empty() {
            Vec::new()
        } else {
            text.split(|&byte| byte == b' ').collect()
        }
    }

    /// The words of a value given as the words of a line: `save "900 1"` equals `save 900 1`. `None`
    /// when there are more or fewer than this kind takes.
    pub(super) fn words<'t>(&self, words: Vec<&'t [u8]>) -> Option<Vec<&'t [u8]>> {
        match words.as_slice() {
            [one] => Some(self.split(one)),
            _ => self.takes_many_words().then_some(words),
        }
    }

    /// Parses the words. `current` is the present value, because some directives change a part of it.
    pub(super) fn parse(&self, words: &[&[u8]], current: &Value) -> Result<Value, Reason> {
        if let Kind::Special(special) = self {
            return special.parse(words, current);
        }
        if let Kind::Flags(names) = self {
            return parse_flags(names, words);
        }
        let &[word] = words else {
            return Err("wrong number of arguments".into());
        };
        match self {
            Kind::Bool if word.eq_ignore_ascii_case(b"yes") => Ok(Value::Bool(true)),
            Kind::Bool if word.eq_ignore_ascii_case(b"no") => Ok(Value::Bool(false)),
            Kind::Bool => Err("argument must be 'yes' or 'no'".into()),
            Kind::Choice(names) => position(names, word)
                .map(Value::Choice)
                .ok_or_else(|| one_of(names)),
            Kind::Integer { min, max, unit } => parse_integer(word, *min, *max, *unit),
            Kind::Text(check) => {
                check(word)?;
                Ok(Value::Text(word.to_vec()))
            }
            Kind::Flags(_) | Kind::Special(_) => Err("wrong number of arguments".into()),
        }
    }

    /// The text CONFIG GET shows.
    pub fn text(&self, value: &Value) -> Vec<u8> {
        match (self, value) {
            (Kind::Choice(names), Value::Choice(index)) => names
                .get(*index)
                .copied()
                .unwrap_or_default()
                .as_bytes()
                .to_vec(),
            (Kind::Flags(names), Value::Flags(bits)) => flag_names(names, *bits).into_bytes(),
            (Kind::Integer { unit, .. }, Value::Integer(number)) => {
                integer_text(*number, *unit).into_bytes()
            }
            (_, Value::Bool(true)) => b"yes".to_vec(),
            (_, Value::Bool(false)) => b"no".to_vec(),
            (_, Value::Text(text)) => text.clone(),
            (_, other) => special::text(other),
        }
    }

    /// What CONFIG REWRITE writes after the directive's name: one text per line it takes.
    pub(super) fn lines(&self, value: &Value) -> Vec<Vec<u8>> {
        match (self, value) {
            (
                Kind::Integer {
                    unit: Unit::Memory | Unit::PercentOrMemory,
                    ..
                },
                Value::Integer(bytes),
            ) => {
                vec![memory_text(*bytes).into_bytes()]
            }
            (_, Value::Text(text)) => vec![words::quoted(text)],
            (Kind::Special(_), value) => special::lines(value),
            _ => vec![self.text(value)],
        }
    }
}

impl Value {
    /// The value of a [`Kind::Bool`]; `false` for any other kind.
    pub(super) fn is_yes(&self) -> bool {
        *self == Value::Bool(true)
    }

    /// The number, clamped to the type of its setting. The row's range makes clamping unnecessary.
    pub(super) fn number<T: TryFrom<i128> + Limits>(&self) -> T {
        let number = if let Value::Integer(number) = self {
            *number
        } else {
            0
        };
        T::try_from(number).unwrap_or(if number < 0 { T::LOWEST } else { T::HIGHEST })
    }

    /// The bytes of a [`Kind::Text`].
    pub(super) fn bytes(&self) -> &[u8] {
        if let Value::Text(text) = self {
            text
        } else {
            &[]
        }
    }

    /// The bytes of a [`Kind::Text`] for which empty means absent.
    pub(super) fn optional_bytes(&self) -> Option<Vec<u8>> {
        Some(self.bytes().to_vec()).filter(|bytes| !bytes.is_empty())
    }

    /// The index of a [`Kind::Choice`].
    pub(super) fn index(&self) -> usize {
        if let Value::Choice(index) = self {
            *index
        } else {
            0
        }
    }
}

/// The ends of an integer type.
pub(super) trait Limits {
    /// Smallest value of the type.
    const LOWEST: Self;
    /// Largest value of the type.
    const HIGHEST: Self;
}

macro_rules! limits {
    ($($type:ty),*) => { $(impl Limits for $type { const LOWEST: Self = Self::MIN; const HIGHEST: Self = Self::MAX; })* };
}
limits!(u16, u32, u64, usize, i64);

/// A decimal number exactly as Redis would print it: no sign but `-`, no leading zeros, no spaces.
pub(super) fn parse_decimal(word: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == word).then_some(number)
}

/// Bytes, with a unit or without. No digits at all are zero, and too many are the largest number, as in Redis.
pub(crate) fn parse_memory(word: &[u8]) -> Option<u64> {
    // Redis reads a C string here, which ends at a zero byte.
    let word = word.split(|&byte| byte == 0).next().unwrap_or(word);
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = word.split_at(digits);
    let scale: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let number = digits.iter().fold(0u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(number.saturating_mul(scale))
}

fn parse_integer(word: &[u8], min: i128, max: i128, unit: Unit) -> Result<Value, Reason> {
    let number = match unit {
        Unit::Plain => {
            i128::from(parse_decimal(word).ok_or("argument couldn't be parsed into an integer")?)
        }
        Unit::Memory => i128::from(parse_memory(word).ok_or("argument must be a memory value")?),
        Unit::Octal => parse_octal(word).ok_or("argument couldn't be parsed as an octal number")?,
        Unit::PercentOrMemory => match word.strip_suffix(b"%").and_then(parse_decimal) {
            Some(percent) if percent >= 0 => {
                let most = -min;
                if i128::from(percent) > most {
                    return Err(
                        format!("percentage argument must be less or equal to {most}").into(),
                    );
                }
                return Ok(Value::Integer(-i128::from(percent)));
            }
            _ => {
                i128::from(parse_memory(word).ok_or("argument must be a memory or percent value")?)
            }
        },
    };
    if (min..=max).contains(&number) {
        return Ok(Value::Integer(number));
    }
    Err(match unit {
        Unit::Octal => format!("argument must be between {min:o} and {max:o} inclusive"),
        _ => format!("argument must be between {min} and {max} inclusive"),
    }
    .into())
}

fn parse_octal(word: &[u8]) -> Option<i128> {
    if word.is_empty() {
        // strtoll() reads an empty text as zero, and Redis looks only at what follows the digits.
        return Some(0);
    }
    i64::from_str_radix(std::str::from_utf8(word).ok()?, 8)
        .ok()
        .map(i128::from)
}

fn parse_flags(names: &'static [&'static str], words: &[&[u8]]) -> Result<Value, Reason> {
    if words.is_empty() {
        return Err(one_of(names));
    }
    let mut bits = 0;
    for word in words {
        let index = position(names, word).ok_or_else(|| one_of(names))?;
        bits |= if index == 0 { 0 } else { 1 << (index - 1) };
    }
    Ok(Value::Flags(bits))
}

fn position(names: &[&str], word: &[u8]) -> Option<usize> {
    names
        .iter()
        .position(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

fn one_of(names: &[&str]) -> Reason {
    format!(
        "argument(s) must be one of the following: {}",
        names.join(", ")
    )
    .into()
}

fn flag_names(names: &[&str], bits: u32) -> String {
    let set: Vec<&str> = names
        .iter()
        .skip(1)
        .enumerate()
        .filter(|(bit, _)| bits & (1 << bit) != 0)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        names.first().copied().unwrap_or_default().to_owned()
    } else {
        set.join(" ")
    }
}

fn integer_text(number: i128, unit: Unit) -> String {
    match unit {
        Unit::Octal => format!("{number:o}"),
        Unit::PercentOrMemory if number < 0 => format!("{}%", -number),
        _ => number.to_string(),
    }
}

/// Bytes in the largest unit that divides them.
pub(super) fn memory_text(bytes: i128) -> String {
    match bytes {
        ..0 => format!("{}%", -bytes),
        0 => "0".to_owned(),
        _ if bytes % (1 << 30) == 0 => format!("{}gb", bytes >> 30),
        _ if bytes % (1 << 20) == 0 => format!("{}mb", bytes >> 20),
        _ if bytes % (1 << 10) == 0 => format!("{}kb", bytes >> 10),
        _ => bytes.to_string(),
    }
}
