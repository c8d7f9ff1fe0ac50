//! KDL 2 documents: nodes with arguments, properties and blocks of further nodes.
//!
//! Made for files that cannot be trusted: reading takes time in proportion to the text, nests no deeper than
//! [`crate::limits::MAX_BLOCK_DEPTH`], goes on after an error to find the next one, and keeps the comments, which the
//! formatter needs. It knows nothing of schemas. What it reads is compared with the `kdl` crate in the tests.

mod lexer;
mod parser;
mod strings;

#[cfg(test)]
mod tests;

pub(crate) use lexer::{is_disallowed, is_identifier_character, is_newline};
pub(crate) use parser::parse;

use crate::source::{Span, Spanned};

/// The nodes of a file, or of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) nodes: Vec<Node>,
    /// What stands after the last node.
    pub(crate) trailing: Vec<Trivia>,
    /// A node of it could not be read and is missing. Of a file also: braces do not match, or its end was not read, so
    /// that any node may be missing or in the wrong block.
    pub(crate) is_incomplete: bool,
}

/// `(type)name argument property=value { children }`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Comments and empty lines before it, and comments from within its line.
    pub(crate) leading: Vec<Trivia>,
    pub(crate) annotation: Option<Spanned<String>>,
    pub(crate) name: Spanned<String>,
    pub(crate) arguments: Vec<Value>,
    /// In the order they were written; a name may occur twice.
    pub(crate) properties: Vec<(Spanned<String>, Value)>,
    pub(crate) children: Option<Document>,
    /// The comment at the end of its line, with its slashes.
    pub(crate) trailing: Option<String>,
}

/// What a reader of a file sees between nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trivia {
    /// One empty line, or several.
    Blank,
    /// A comment with its slashes.
    Comment(String),
    /// A node that a slashdash took out, as it was written.
    Disabled(String),
}

/// An argument, or what a property has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) annotation: Option<Spanned<String>>,
    pub(crate) scalar: Scalar,
    pub(crate) span: Span,
    /// A text that was written over several lines.
    pub(crate) in_lines: bool,
}

/// What a value can be.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    String(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    Null,
}

/// As written: a NaN equals itself.
impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Null, Self::Null) => true,
            _ => false,
        }
    }
}

impl Scalar {
    /// What it is, for an error message.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Null => "#null",
        }
    }
}
