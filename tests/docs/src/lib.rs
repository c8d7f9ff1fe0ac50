//! The Rust blocks of README.md and docs/ as documentation tests: `cargo test -p kumi-doc-tests`.
//!
//! `build.rs` writes an empty module for each block, named after its page and line, with the block as its documentation.

#[cfg(test)]
#[expect(dead_code, reason = "the build script uses all of it")]
mod blocks;

/// The code that `kumi-schema` writes from the schema of docs/schema.md.
pub mod chat {
    include!(concat!(env!("OUT_DIR"), "/chat.rs"));
}

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

#[cfg(test)]
mod tests;
