//! Generates Rust from the schemas of kumi-schema's tests.

use kumi_schema::build::{BuildError, Config};

const SCHEMAS: [&str; 6] = [
    "everything",
    "odd",
    "unusual",
    "versions/v1_0",
    "versions/v1_1",
    "versions/v2_0",
];

fn main() -> Result<(), BuildError> {
    println!("cargo::rerun-if-changed=build.rs");
    for name in SCHEMAS {
        Config::new().compile(format!("../../crates/kumi-schema/tests/schemas/{name}.kdl"))?;
    }
    Ok(())
}
