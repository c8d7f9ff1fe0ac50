//! What a value looks like once typedefs are gone: its kind, and every constraint that holds for it.
//!
//! The hash, the comparison of versions and both generators look at shapes, so that a typedef never makes a
//! difference to them.

use crate::model::{Constraints, Literal, Protocol, Type};
use std::collections::BTreeSet;
use std::fmt;

/// A type with all typedefs followed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) min: Option<Literal>,
    pub(crate) max: Option<Literal>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    /// All of them have to match. Sorted, without repeats.
    pub(crate) patterns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    String,
    Int,
    Float,
    Bool,
    Timestamp,
    Bytes,
    Json,
    Array(Box<Shape>),
    Map(Box<Shape>),
    Message(String),
    Enum(String),
    Union(String),
}

impl Shape {
    /// The shape of a type under constraints of its own. Typedefs end, because a checked schema has no circle of them.
    pub(crate) fn of(protocol: &Protocol, ty: &Type, own: &Constraints) -> Self {
        let (base, mut constraints) = protocol.resolve(ty);
        constraints.push(own);
        let free = Constraints::default();
        let item = |item: &Type| Box::new(Self::of(protocol, item, &free));
        let kind = match base {
            Type::String => Kind::String,
            Type::Int => Kind::Int,
            Type::Float => Kind::Float,
            Type::Bool => Kind::Bool,
            Type::Timestamp => Kind::Timestamp,
            Type::Bytes => Kind::Bytes,
            Type::Json => Kind::Json,
            Type::Array(inner) => Kind::Array(item(inner)),
            Type::Map(inner) => Kind::Map(item(inner)),
            Type::Named(name) if protocol.enumeration(name).is_some() => Kind::Enum(name.clone()),
            Type::Named(name) if protocol.union(name).is_some() => Kind::Union(name.clone()),
            Type::Named(name) => Kind::Message(name.clone()),
        };
        let mut patterns: Vec<String> = constraints
            .iter()
            .filter_map(|set| set.pattern.clone())
            .collect();
        patterns.sort();
        patterns.dedup();
        let stricter =
            |a: Literal, b: Literal, larger: bool| if less(&a, &b) == larger { b } else { a };
        Self {
            kind,
            min: constraints
                .iter()
                .filter_map(|set| set.min.clone())
                .reduce(|a, b| stricter(a, b, true)),
            max: constraints
                .iter()
                .filter_map(|set| set.max.clone())
                .reduce(|a, b| stricter(a, b, false)),
            min_length: constraints.iter().filter_map(|set| set.min_length).max(),
            max_length: constraints.iter().filter_map(|set| set.max_length).min(),
            patterns,
        }
    }

    /// The message, enum or union in it, behind arrays and maps.
    pub(crate) fn named(&self) -> Option<&str> {
        match &self.kind {
            Kind::Array(item) | Kind::Map(item) => item.named(),
            Kind::Message(name) | Kind::Enum(name) | Kind::Union(name) => Some(name),
            _ => None,
        }
    }
}

/// The patterns of all fields and variants, each once, with a name for each. No name of a schema becomes such a one: types
/// are in Pascal case.
#[derive(Default)]
pub(crate) struct Patterns(BTreeSet<String>);

impl Patterns {
    pub(crate) fn of(protocol: &Protocol) -> Self {
        let mut all = BTreeSet::new();
        for (ty, constraints, _) in protocol.members() {
            let mut shape = &Shape::of(protocol, ty, constraints);
            loop {
                all.extend(shape.patterns.iter().cloned());
                match &shape.kind {
                    Kind::Array(item) | Kind::Map(item) => shape = item,
                    _ => break,
                }
            }
        }
        Self(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and patterns.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &str)> {
        self.0
            .iter()
            .enumerate()
            .map(|(index, pattern)| (format!("PATTERN_{index}"), &**pattern))
    }

    /// The name of a pattern that is one of these.
    pub(crate) fn name(&self, pattern: &str) -> String {
        let before = self.0.iter().take_while(|other| **other != *pattern);
        format!("PATTERN_{}", before.count())
    }
}

/// Whether one number is below another. Both are of the same kind once a schema is checked.
pub(crate) fn less(a: &Literal, b: &Literal) -> bool {
    match (a, b) {
        (Literal::Int(a), Literal::Int(b)) => a < b,
        (Literal::Float(a), Literal::Float(b)) => a < b,
        _ => false,
    }
}

/// The kind alone, as a reader sees it: `array of Message`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Bool => f.write_str("bool"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Bytes => f.write_str("bytes"),
            Self::Json => f.write_str("json"),
            Self::Array(item) => write!(f, "array of {}", item.kind),
            Self::Map(item) => write!(f, "map of {}", item.kind),
            Self::Message(name) | Self::Enum(name) | Self::Union(name) => f.write_str(name),
        }
    }
}
