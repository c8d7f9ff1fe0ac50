#!/usr/bin/env bash
# Whether all Rust code is formatted, that of the workspaces beside the main one included: ci/format.sh
set -euo pipefail
cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
cargo fmt --manifest-path crates/kumi-cluster/no_std_check/Cargo.toml --check
