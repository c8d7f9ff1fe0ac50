//! Constraints of a schema, checked on values, and what is said about those that break one.

use crate::text::Shown;
use regex_lite::Regex;
use std::fmt;
use std::sync::OnceLock;

/// A message breaks a constraint of its schema. Its sender is at fault; it was not sent, or not handled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", Shown(path))]
#[non_exhaustive]
pub struct ValidationError {
    /// The field at fault, from the message down: `users[3].name`.
    pub path: String,
    /// Which constraint it breaks.
    pub problem: Problem,
}

impl ValidationError {
    /// The same error, seen from the message that holds this one at `path`.
    #[must_use]
    pub fn within(self, path: impl Into<String>) -> Self {
        Self {
            path: format!("{}.{}", path.into(), self.path),
            problem: self.problem,
        }
    }
}

/// Which constraint a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The number is below this.
    TooSmall(String),
    /// The number is above this.
    TooLarge(String),
    /// The number is infinite or none at all, which JSON cannot say.
    NotFinite,
    /// It has fewer characters, bytes or items than this.
    TooShort(usize),
    /// It has more than this.
    TooLong(usize),
    /// The text does not match this pattern.
    Pattern(&'static str),
}

impl Problem {
    /// The problem of the field at a path.
    pub fn at(self, path: impl Into<String>) -> ValidationError {
        ValidationError {
            path: path.into(),
            problem: self,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall(least) => write!(f, "it is less than {least}"),
            Self::TooLarge(most) => write!(f, "it is more than {most}"),
            Self::NotFinite => f.write_str("it is not a finite number"),
            Self::TooShort(least) => write!(f, "it is shorter than {least}"),
            Self::TooLong(most) => write!(f, "it is longer than {most}"),
            Self::Pattern(pattern) => write!(f, "it does not match {pattern}"),
        }
    }
}

/// Refuses infinity and what is not a number.
///
/// # Errors
/// [`Problem::NotFinite`].
pub fn finite(value: f64) -> Result<(), Problem> {
    if value.is_finite() {
        Ok(())
    } else {
        Err(Problem::NotFinite)
    }
}

/// Refuses what is below a bound, and what cannot be compared with it.
///
/// # Errors
/// [`Problem::TooSmall`].
pub fn at_least<T: PartialOrd + fmt::Display>(value: &T, least: &T) -> Result<(), Problem> {
    if value >= least {
        Ok(())
    } else {
        Err(Problem::TooSmall(least.to_string()))
    }
}

/// Refuses what is above a bound, and what cannot be compared with it.
///
/// # Errors
/// [`Problem::TooLarge`].
pub fn at_most<T: PartialOrd + fmt::Display>(value: &T, most: &T) -> Result<(), Problem> {
    if value <= most {
        Ok(())
    } else {
        Err(Problem::TooLarge(most.to_string()))
    }
}

/// Refuses lengths below a bound.
///
/// # Errors
/// [`Problem::TooShort`].
pub fn min_length(length: usize, least: usize) -> Result<(), Problem> {
    if length >= least {
        Ok(())
    } else {
        Err(Problem::TooShort(least))
    }
}

/// Refuses lengths above a bound.
///
/// # Errors
/// [`Problem::TooLong`].
pub fn max_length(length: usize, most: usize) -> Result<(), Problem> {
    if length <= most {
        Ok(())
    } else {
        Err(Problem::TooLong(most))
    }
}

/// A regular expression, compiled when it is first needed. Matching takes time in proportion to the text.
#[derive(Debug)]
pub struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern that a schema check has accepted. One that is no regular expression matches nothing.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// Refuses a text in which the pattern occurs nowhere.
    ///
    /// # Errors
    /// [`Problem::Pattern`].
    pub fn check(&self, value: &str) -> Result<(), Problem> {
        let compiled = self.compiled.get_or_init(|| Regex::new(self.text).ok());
        match compiled {
            Some(pattern) if pattern.is_match(value) => Ok(()),
            _ => Err(Problem::Pattern(self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_not_a_number_is_outside() {
        assert_eq!(at_least(&1, &1), Ok(()));
        assert_eq!(at_least(&0, &1), Err(Problem::TooSmall("1".into())));
        assert_eq!(at_most(&1.5, &1.5), Ok(()));
        assert!(at_most(&f64::NAN, &1.0).is_err() && at_least(&f64::NAN, &1.0).is_err());
        assert_eq!(min_length(2, 3), Err(Problem::TooShort(3)));
        assert_eq!(max_length(4, 3), Err(Problem::TooLong(3)));
    }

    #[test]
    fn a_path_grows_outwards() {
        let error = Problem::TooLong(3)
            .at("name")
            .within("users[3]")
            .within("room");
        assert_eq!(error.to_string(), "room.users[3].name: it is longer than 3");
    }

    #[test]
    fn a_pattern_is_searched_for() {
        static PATTERN: Pattern = Pattern::new(r"^\d+$");
        assert_eq!(PATTERN.check("12"), Ok(()));
        assert_eq!(PATTERN.check("12a"), Err(Problem::Pattern(r"^\d+$")));
        assert!(Pattern::new("(").check("").is_err());
    }
}
