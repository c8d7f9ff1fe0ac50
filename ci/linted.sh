#!/usr/bin/env bash
# Runs a command (cargo test ...) with clippy as the compiler of the workspace's own crates: ci/linted.sh COMMAND...
#
# Lints cost no build of their own that way. clippy-driver takes its arguments from CLIPPY_ARGS, as `cargo clippy` hands
# them to it: warnings are errors. Debug information would only lengthen the build; a panic names its line without.
#   ci/linted.sh --check     fails if a line that clippy warns about would pass
set -euo pipefail
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CARGO_PROFILE_DEV_DEBUG=none
export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
if [[ ${1-} != --check ]]; then
    exec "$@"
fi
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
echo 'pub fn flawed(x: Option<u8>) -> bool { x.is_some() == true }' >"$directory/flawed.rs"
if clippy-driver rustc --crate-type lib --emit metadata --out-dir "$directory" "$directory/flawed.rs" 2>/dev/null; then
    echo 'ci/linted.sh: clippy-driver let a warning pass' >&2
    exit 1
fi
