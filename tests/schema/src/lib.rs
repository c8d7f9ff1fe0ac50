//! The tests of generated Rust: `build.rs` generates it from the schemas in `crates/kumi-schema/tests/schemas`, and
//! `tests/generated.rs` compiles and runs it. The library itself is empty.
