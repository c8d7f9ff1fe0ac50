//! KDL 2 documents: nodes with arguments, properties and blocks of further nodes.
//!
//! Made for files that cannot be trusted: reading takes time in proportion to the text, nests no deeper than
//! [`crate::MAX_BLOCK_DEPTH`], goes on after an error to find the next one, and keeps the comments, which the
//! formatter needs. It knows nothing of schemas. What it reads is compared with the `kdl` crate in the tests.

mod lexer;
mod parser;
mod strings;

#[cfg(test)]
mod tests;

pub use lexer::{is_disallowed, is_identifier_character, is_newline};
pub use parser::parse;

use crate::source::{Span, Spanned};

/// The nodes of a file, or of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// In the order they were written.
    pub nodes: Vec<Node>,
    /// What stands after the last node.
    pub trailing: Vec<Trivia>,
    /// A node of it could not be read and is missing. Of a file also: braces do not match, or its end was not read, so
    /// that any node may be missing or in the wrong block.
    pub is_incomplete: bool,
}

/// `(type)name argument property=value { children }`
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Comments and empty lines before it, and comments from within its line.
    pub leading: Vec<Trivia>,
    /// The type in parentheses before the name.
    pub annotation: Option<Spanned<String>>,
    /// What kind of node it is.
    pub name: Spanned<String>,
    /// The values without a name, in order.
    pub arguments: Vec<Value>,
    /// In the order they were written; a name may occur twice.
    pub properties: Vec<(Spanned<String>, Value)>,
    /// Its block, if it has one.
    pub children: Option<Document>,
    /// The comment at the end of its line, with its slashes.
    pub trailing: Option<String>,
}

/// What a reader of a file sees between nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Trivia {
    /// One empty line, or several.
    Blank,
    /// A comment with its slashes.
    Comment(String),
    /// A node that a slashdash took out, as it was written.
    Disabled(String),
}

/// An argument, or what a property has.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The type in parentheses before it.
    pub annotation: Option<Spanned<String>>,
    /// What it is.
    pub scalar: Scalar,
    /// Where it was written.
    pub span: Span,
    /// A text that was written over several lines.
    pub in_lines: bool,
}

/// What a value can be.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// A text, quoted or not.
    String(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction or an exponent; `#inf`, `#-inf` and `#nan`.
    Float(f64),
    /// `#true` or `#false`.
    Bool(bool),
    /// `#null`.
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
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Null => "#null",
        }
    }
}
