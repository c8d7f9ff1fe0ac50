//! The generated texts that are checked in are what the generator writes today. `generated.rs` compiles and runs them.
//!
//! `KUMI_BLESS=1 cargo test -p kumi-schema --test current` writes them anew after a change of the generator.

use kumi_schema::{RustOptions, Schema};
use std::path::Path;

#[test]
fn the_texts_that_are_checked_in_are_what_the_generator_writes() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for name in [
        "everything",
        "odd",
        "unusual",
        "versions/v1_0",
        "versions/v1_1",
        "versions/v2_0",
    ] {
        let schema = Schema::load(tests.join("schemas").join(name).with_extension("kdl"))
            .unwrap_or_else(|errors| panic!("{errors}"));
        let text = schema.to_rust(&RustOptions::new()).expect("it is Rust");
        let path = tests.join("generated").join(name).with_extension("rs");
        if std::env::var_os("KUMI_BLESS").is_some() {
            std::fs::write(&path, &text).expect("the tree can be written to");
        }
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        let first = current
            .lines()
            .zip(text.lines())
            .find(|(old, new)| old != new);
        assert!(
            current == text,
            "{name}: run with KUMI_BLESS=1; the first difference is {first:?}"
        );
    }
}
