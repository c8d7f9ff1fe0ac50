//! Generated Rust compiles and works, feature by feature. `current.rs` sees to it that the text is current.

#[path = "generated/cases/mod.rs"]
mod cases;

/// What the generator wrote for `schemas/everything.kdl`.
pub mod everything {
    include!("generated/everything.rs");
}
