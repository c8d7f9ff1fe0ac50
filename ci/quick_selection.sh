#!/usr/bin/env bash
# What --quick builds and runs, as arguments of cargo test, one a line: the libraries, the programs, and all integration
# tests but those that take minutes or mostly wait. The generated code of tests/schema takes minutes to compile.
set -euo pipefail
printf '%s\n' --workspace --exclude kumi-bench --exclude kumi-schema-tests --lib --bins
cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
left_out = {"kumi-bench", "kumi-schema-tests"}
targets = [t for p in json.load(sys.stdin)["packages"] if p["name"] not in left_out for t in p["targets"]]
print("\n".join(sorted({t["name"] for t in targets if t["kind"] == ["test"]})))' | while read -r name; do
    case $name in
        cluster | examples | muf_cli | net | node | queues | servers | simulation | slow_disk) ;;
        *) printf '%s\n' --test "$name" ;;
    esac
done
