#!/usr/bin/env bash
# The unsafe module of the store under AddressSanitizer: ci/sanitizer.sh
#
# The stable compiler knows the sanitizer; RUSTC_BOOTSTRAP only unlocks the flag. --target keeps build scripts and macros
# uninstrumented.
set -euo pipefail
RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test -p kumi-store --lib --locked \
    --target x86_64-unknown-linux-gnu --target-dir target/asan keyspace::
