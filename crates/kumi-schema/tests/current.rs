//! The generated text that is checked in is what the generator writes today. `generated.rs` compiles and runs it.
//!
//! `KUMI_BLESS=1 cargo test -p kumi-schema --test current` writes it anew after a change of the generator.

use kumi_schema::{RustOptions, Schema};

#[test]
fn the_text_that_is_checked_in_is_what_the_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generated/everything.rs");
    let schema = Schema::parse("everything.kdl", include_str!("schemas/everything.kdl"))
        .unwrap_or_else(|errors| panic!("{errors}"));
    let text = schema.to_rust(&RustOptions::new()).expect("it is Rust");
    if std::env::var_os("KUMI_BLESS").is_some() {
        std::fs::write(path, &text).expect("the tree can be written to");
    }
    let current = std::fs::read_to_string(path).expect("it is checked in");
    let first = current
        .lines()
        .zip(text.lines())
        .find(|(old, new)| old != new);
    assert!(
        current == text,
        "run with KUMI_BLESS=1; the first difference is {first:?}"
    );
}
