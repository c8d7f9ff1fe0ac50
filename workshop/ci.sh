#!/usr/bin/env bash
# What CI runs for the workshop: workshop/ci.sh
#
# Needs redis-server and redis-cli, and a built kumi-server: the one in the root workspace's target folder, or what
# KUMI_SERVER names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

root_target=${CARGO_TARGET_DIR:-$PWD/../target}
export KUMI_SERVER=${KUMI_SERVER:-$root_target/debug/kumi-server}
# The tools keep their builds in workshop/target, apart from those of the root workspace.
unset CARGO_TARGET_DIR
if [[ ! -x $KUMI_SERVER ]]; then
    echo "workshop/ci.sh: there is no $KUMI_SERVER; build it first: cargo build -p kumi-server" >&2
    exit 1
fi
KUMI_SERVER=$(realpath "$KUMI_SERVER")

cargo fmt --all --check
for manifest in skeleton/en/Cargo.toml skeleton/ja/Cargo.toml book/Cargo.toml; do
    cargo fmt --manifest-path "$manifest" --check
done
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
cargo test --quiet --workspace --locked
# The book, apart from what learners build.
cargo clippy --quiet --manifest-path book/Cargo.toml --all-targets --locked --target-dir book/target -- -D warnings
cargo test --quiet --manifest-path book/Cargo.toml --locked --target-dir book/target
