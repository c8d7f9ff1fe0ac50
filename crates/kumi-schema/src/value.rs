//! Whether a value fulfils its constraints, decided for defaults while a schema is checked.
//!
//! Generated code decides the same for values that travel; both count characters of a text, not bytes.

use crate::model::{Constraints, Literal};
use std::fmt;

/// Which constraint a value breaks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Violation {
    Small(Literal),
    Large(Literal),
    Short(u64),
    Long(u64),
    Pattern(String),
}

impl Violation {
    /// The first constraint that a value breaks.
    pub(crate) fn of(value: &Literal, constraints: &Constraints) -> Option<Self> {
        match value {
            Literal::Int(_) | Literal::Float(_) => {
                let below = |bound: &&Literal| less(value, bound);
                let above = |bound: &&Literal| less(bound, value);
                let small = constraints.min.as_ref().filter(below).cloned();
                let large = constraints.max.as_ref().filter(above).cloned();
                small.map(Self::Small).or(large.map(Self::Large))
            }
            Literal::String(text) => {
                let length = text.chars().count() as u64;
                let short = constraints.min_length.filter(|&least| length < least);
                let long = constraints.max_length.filter(|&most| length > most);
                let pattern = constraints.pattern.as_ref().filter(|pattern| {
                    // A pattern that is wrong in itself is reported where it stands.
                    regex_lite::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
                });
                short
                    .map(Self::Short)
                    .or(long.map(Self::Long))
                    .or(pattern.cloned().map(Self::Pattern))
            }
            Literal::Bool(_) => None,
        }
    }
}

fn less(a: &Literal, b: &Literal) -> bool {
    match (a, b) {
        (Literal::Int(a), Literal::Int(b)) => a < b,
        (a, b) => float(a) < float(b),
    }
}

fn float(literal: &Literal) -> f64 {
    match literal {
        Literal::Int(number) => *number as f64,
        Literal::Float(number) => *number,
        _ => f64::NAN,
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small(least) => write!(f, "it is less than {least}"),
            Self::Large(most) => write!(f, "it is more than {most}"),
            Self::Short(least) => write!(f, "it is shorter than {least}"),
            Self::Long(most) => write!(f, "it is longer than {most}"),
            Self::Pattern(pattern) => write!(f, "it does not match {pattern}"),
        }
    }
}
