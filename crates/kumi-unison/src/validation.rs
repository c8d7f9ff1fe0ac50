//! Constraints of a schema, checked on values, and what is said about those that break one.

use crate::text::Shown;
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, RangeBounds};
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
    /// The same error of a message, seen from what holds the message: `name` becomes `.name`.
    #[must_use]
    pub fn inside(self) -> Self {
        self.below(".")
    }

    /// The same error with `path` before its own.
    fn below(self, path: &str) -> Self {
        Self {
            path: format!("{path}{}", self.path),
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

/// The outcome of a check.
pub type Checked = Result<(), ValidationError>;

/// A value that knows the constraints of its own type: messages and unions those of their fields, numbers that they are
/// finite, and containers those of what they hold.
pub trait Valid {
    /// Checks the value.
    ///
    /// # Errors
    /// With the path from this value down: `.name` of a message, `[3]` of an array, nothing if it is the value itself.
    fn valid(&self) -> Checked;
}

/// Types that have no constraints of their own.
macro_rules! always_valid {
    ($($ty:ty),*) => {$(
        impl Valid for $ty {
            fn valid(&self) -> Checked {
                Ok(())
            }
        }
    )*};
}

always_valid!(bool, i64, u8, String);

impl Valid for f64 {
    fn valid(&self) -> Checked {
        if self.is_finite() {
            Ok(())
        } else {
            Err(Problem::NotFinite.at(""))
        }
    }
}

impl<T: Valid> Valid for Option<T> {
    fn valid(&self) -> Checked {
        self.as_ref().map_or(Ok(()), T::valid)
    }
}

impl<T: Valid> Valid for Box<T> {
    fn valid(&self) -> Checked {
        T::valid(self)
    }
}

impl<T: Valid> Valid for Vec<T> {
    fn valid(&self) -> Checked {
        self.check_each(T::valid)
    }
}

impl<T: Valid> Valid for BTreeMap<String, T> {
    fn valid(&self) -> Checked {
        self.check_each(T::valid)
    }
}

/// Checks a field by a rule: [`valid`], or what the functions below return.
///
/// # Errors
/// With the path from the message down.
pub fn field<T>(name: &str, value: &T, rule: impl Fn(&T) -> Checked) -> Checked {
    rule(value).map_err(|error| error.below(name))
}

/// The rule of a value's own type.
///
/// # Errors
/// As [`Valid::valid`].
pub fn valid<T: Valid>(value: &T) -> Checked {
    value.valid()
}

/// The rule that a number lies between bounds, which belong to the range. What is not a number
/// is refused first, by its own type.
pub fn range<T: Valid + PartialOrd + fmt::Display>(
    bounds: impl RangeBounds<T>,
) -> impl Fn(&T) -> Checked {
    move |value| {
        value.valid()?;
        if let Bound::Included(least) = bounds.start_bound()
            && value < least
        {
            return Err(Problem::TooSmall(least.to_string()).at(""));
        }
        if let Bound::Included(most) = bounds.end_bound()
            && value > most
        {
            return Err(Problem::TooLarge(most.to_string()).at(""));
        }
        Ok(())
    }
}

/// What has a length: characters of a text, bytes, items of an array or a map.
pub trait Length {
    /// How many there are.
    fn length(&self) -> usize;
}

impl Length for String {
    fn length(&self) -> usize {
        self.chars().count()
    }
}

impl<T> Length for Vec<T> {
    fn length(&self) -> usize {
        self.len()
    }
}

impl<T> Length for BTreeMap<String, T> {
    fn length(&self) -> usize {
        self.len()
    }
}

/// The rule that a length lies between bounds, which belong to the range.
pub fn length<T: Length>(bounds: impl RangeBounds<usize>) -> impl Fn(&T) -> Checked {
    move |value| {
        let length = value.length();
        match (bounds.start_bound(), bounds.end_bound()) {
            (Bound::Included(&least), _) if length < least => Err(Problem::TooShort(least).at("")),
            (_, Bound::Included(&most)) if length > most => Err(Problem::TooLong(most).at("")),
            _ => Ok(()),
        }
    }
}

/// The rule that a pattern occurs in a text.
pub fn matching(pattern: &'static Pattern) -> impl Fn(&String) -> Checked {
    move |value| pattern.check(value).map_err(|problem| problem.at(""))
}

/// The rule of what an option holds, if it holds something.
pub fn some<T>(rule: impl Fn(&T) -> Checked) -> impl Fn(&Option<T>) -> Checked {
    move |value| value.as_ref().map_or(Ok(()), &rule)
}

/// The rule of each item of an array, or of each value of a map.
pub fn each<C: Items>(rule: impl Fn(&C::Item) -> Checked) -> impl Fn(&C) -> Checked {
    move |values| values.check_each(&rule)
}

/// Both rules, the first one first.
pub fn both<T>(
    first: impl Fn(&T) -> Checked,
    second: impl Fn(&T) -> Checked,
) -> impl Fn(&T) -> Checked {
    move |value| first(value).and_then(|()| second(value))
}

/// An array or a map.
pub trait Items {
    /// What it holds.
    type Item;

    /// Checks what it holds, in its order.
    ///
    /// # Errors
    /// Of the first item that breaks the rule, with its index or key.
    fn check_each(&self, rule: impl Fn(&Self::Item) -> Checked) -> Checked;
}

impl<T> Items for Vec<T> {
    type Item = T;

    fn check_each(&self, rule: impl Fn(&T) -> Checked) -> Checked {
        for (index, item) in self.iter().enumerate() {
            rule(item).map_err(|error| error.below(&format!("[{index}]")))?;
        }
        Ok(())
    }
}

impl<T> Items for BTreeMap<String, T> {
    type Item = T;

    fn check_each(&self, rule: impl Fn(&T) -> Checked) -> Checked {
        for (key, item) in self {
            rule(item).map_err(|error| error.below(&format!("[{key:?}]")))?;
        }
        Ok(())
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

    fn problem<T>(value: &T, rule: impl Fn(&T) -> Checked) -> Option<Problem> {
        rule(value).err().map(|error| error.problem)
    }

    #[test]
    fn bounds_are_inclusive_and_not_a_number_is_outside() {
        let too_small = |least: &str| Some(Problem::TooSmall(least.into()));
        assert_eq!(problem(&1_i64, range(1..)), None);
        assert_eq!(problem(&0_i64, range(1..=2)), too_small("1"));
        assert_eq!(
            problem(&3_i64, range(..=2)),
            Some(Problem::TooLarge("2".into()))
        );
        assert_eq!(problem(&1.5, range(..=1.5)), None);
        assert_eq!(problem(&f64::NAN, range(0.0..)), Some(Problem::NotFinite));
        assert_eq!(problem(&f64::INFINITY, valid), Some(Problem::NotFinite));
        let text = "äöü".to_owned();
        assert_eq!(problem(&text, length(3..=3)), None);
        assert_eq!(problem(&text, length(4..)), Some(Problem::TooShort(4)));
        assert_eq!(problem(&text, length(..=2)), Some(Problem::TooLong(2)));
        assert_eq!(
            problem(&5_i64, both(range(1..), range(..=4))),
            Some(Problem::TooLarge("4".into()))
        );
    }

    #[test]
    fn a_path_grows_outwards() {
        let users = vec![BTreeMap::from([(
            "x".to_owned(),
            Some(vec![1.0, f64::NAN]),
        )])];
        let error = field("users", &users, valid).unwrap_err();
        assert_eq!(error.path, "users[0][\"x\"][1]");
        let long = vec!["abcd".to_owned()];
        let error = field("names", &Some(long), some(each(length(..=3)))).unwrap_err();
        let outer = error.inside().below("room");
        assert_eq!(outer.to_string(), "room.names[0]: it is longer than 3");
    }

    #[test]
    fn a_pattern_is_searched_for() {
        static PATTERN: Pattern = Pattern::new(r"^\d+$");
        assert_eq!(PATTERN.check("12"), Ok(()));
        assert_eq!(PATTERN.check("12a"), Err(Problem::Pattern(r"^\d+$")));
        assert!(Pattern::new("(").check("").is_err());
    }
}
