//! Writes `chat.rs` from the schema, for `src/main.rs` to include.

fn main() -> Result<(), kumi_schema::build::BuildError> {
    kumi_schema::build::Config::new().compile("schema/chat.kdl")
}
