#!/usr/bin/env bash
# Makes the package of every crate that can be published: ci/crates.sh [--verify]
#
# --verify builds each package from what is in it, too.
set -euo pipefail
mapfile -t crates < <(cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None:
        print("-p", package["name"], sep="\n")')
verify=--no-verify
[[ ${1-} != --verify ]] || verify=
# Tests that go through the built binaries stay behind, which cargo warns of; nothing is published here.
# shellcheck disable=SC2086 # no argument if it is empty
cargo package --locked --quiet --allow-dirty $verify "${crates[@]}"
