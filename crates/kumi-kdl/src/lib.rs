//! KDL 2 files that cannot be trusted: read within limits, with the place of everything, and all errors at once.
//!
//! [`parse`] turns a text into a [`Document`]. It takes time in proportion to the text, goes on after an error to find the next
//! one, and keeps comments for who formats the file. Errors are [`Diagnostics`], each with the line, a caret and a
//! suggestion:
//!
//! ```
//! use kumi_kdl::{Diagnostics, Sources, parse};
//!
//! let mut sources = Sources::default();
//! let file = sources.add("kumi.kdl".into(), "node \"a\" {\n".into());
//! let mut errors = Diagnostics::default();
//! parse(&sources, file, &mut errors);
//! assert_eq!(errors.len(), 1);
//! ```
//!
//! It opens no file, and knows nothing of what the nodes mean.

mod diagnostic;
mod document;
mod limits;
mod source;

pub use diagnostic::{Diagnostic, Diagnostics, did_you_mean};
pub use document::{
    Document, Node, Scalar, Trivia, Value, is_disallowed, is_identifier_character, is_newline,
    parse,
};
pub use limits::{MAX_BLOCK_DEPTH, MAX_DIAGNOSTICS, MAX_FILE_BYTES};
pub use source::{FileId, SourceFile, Sources, Span, Spanned};
