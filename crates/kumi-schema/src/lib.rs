//! KDL schemas of Unison protocols: read, checked, and turned into Rust and TypeScript.
//!
//! A schema says which channels a protocol has and what travels on them. [`Schema`] reads one, with everything it
//! imports, and refuses it with all its errors at once, each with the line, a caret and a suggestion:
//!
//! ```
//! use kumi_schema::Schema;
//!
//! let errors = Schema::parse(
//!     "chat.kdl",
//!     r#"
//! protocol "chat" version="1.0.0" {
//!     channel "rooms" from="client" {
//!         request "Join" {
//!             field "room" type="strng" required=#true
//!         }
//!     }
//! }
//! "#,
//! )
//! .unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     r#"error: there is no type "strng"
//!   --> chat.kdl:5:31
//!    |
//!  5 |             field "room" type="strng" required=#true
//!    |                               ^^^^^^^
//!    = help: did you mean "string"?"#
//! );
//! ```
//!
//! The crate opens only the files that it is given, and starts nothing. It knows nothing of the network: the code it
//! writes names the runtime's crate, whose path is a parameter.

pub mod build;
mod check;
mod diff;
mod doc;
mod format;
mod hash;
pub mod limits;
mod lines;
mod loader;
mod model;
mod names;
mod pattern;
mod read;
mod rust;
mod shape;
mod typescript;
mod value;

pub use diff::{Change, Difference, Impact};
pub use format::format;
pub use hash::SchemaHash;
pub use kumi_kdl::{Diagnostic, Diagnostics};
pub use loader::{FileLoader, LoadError, Loader, MemoryLoader};
pub use model::{
    Channel, Compression, Constraints, Delivery, Enum, EnumValue, Event, Field, Lifetime, Literal,
    Message, Overflow, Protocol, Request, Schema, Side, Type, Typedef, Union, Variant, Version,
};
pub use rust::{RustError, RustOptions, is_same_rust};
pub use typescript::{TYPESCRIPT_RUNTIME, TYPESCRIPT_RUNTIME_FILE};

use std::path::Path;

impl Schema {
    /// Reads a file and what it imports.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Diagnostics> {
        Self::load_with(&FileLoader, &path.as_ref().to_string_lossy())
    }

    /// Reads a text that imports nothing. The name is the one errors show.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        Self::load_with(&MemoryLoader::new().with(name, text), name)
    }

    /// Reads a schema through a loader, which an editor uses to hand in what is not saved yet.
    pub fn load_with(loader: &dyn Loader, name: &str) -> Result<Self, Diagnostics> {
        read::read(loader, name)
    }
}
