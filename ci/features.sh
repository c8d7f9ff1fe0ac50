#!/usr/bin/env bash
# Each part of the facade by itself, with nothing of the command line, neither its parser nor its allocator: ci/features.sh
set -euo pipefail
for feature in store muf jobs unison cluster; do
    cargo check --quiet --locked -p kumi --lib --no-default-features --features "$feature"
    tree=$(cargo tree --quiet --locked --offline -p kumi --no-default-features --features "$feature" -e normal \
        --prefix none --format '{lib}')
    if grep -xE 'clap|clap_builder|mimalloc|libmimalloc_sys' <<<"$tree"; then
        echo "ci/features.sh: the feature '$feature' brings these crates, which belong to 'cli'" >&2
        exit 1
    fi
done
