//! Writes `node.rs` from the schema of the channel `kumi.node`, for `src/driver/channel.rs` to include.

fn main() -> Result<(), kumi_schema::build::BuildError> {
    kumi_schema::build::Config::new().compile("schema/node.kdl")
}
