#!/usr/bin/env bash
# Installs the Debian packages that the tests need and that are missing, or says which to install: ci/packages.sh
set -euo pipefail

missing_packages() {
    local pair
    # command:package
    for pair in redis-server:redis-server redis-cli:redis-tools cc:build-essential c++:build-essential \
        node:nodejs npm:npm faketime:faketime python3:python3 ip:iproute2 openssl:openssl unshare:util-linux \
        prometheus:prometheus promtool:prometheus curl:curl pkill:procps; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
    done | sort -u | tr '\n' ' '
    python3 -c 'import ensurepip, venv' 2>/dev/null || printf 'python3-venv '
}

# Debian starts a service right after its package is installed unless policy-rc.d says no.
install_packages() {
    local root=() policy=/usr/sbin/policy-rc.d written=no
    if [[ $(id -u) -ne 0 ]]; then
        root=(sudo -n)
        if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
            echo "test.sh: missing Debian packages: $*" >&2
            echo "test.sh: install them first: sudo apt-get install $*" >&2
            return 1
        fi
    fi
    if ! command -v apt-get >/dev/null; then
        echo "test.sh: there is no apt-get here; install what these Debian packages hold: $*" >&2
        return 1
    fi
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
        "${root[@]}" chmod 755 "$policy"
        written=yes
    fi
    local status=0
    { "${root[@]}" apt-get update -q && "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@"; } </dev/null || status=$?
    [[ $written == no ]] || "${root[@]}" rm -f "$policy"
    return "$status"
}

for tool in cargo rustfmt cargo-clippy; do
    if ! command -v "$tool" >/dev/null; then
        echo "test.sh: $tool is missing; it comes with Rust's stable toolchain (rustup component add rustfmt clippy)" >&2
        exit 1
    fi
done
packages=$(missing_packages)
if [[ -n ${packages// /} ]]; then
    # shellcheck disable=SC2086 # a list of package names
    install_packages $packages
fi
cargo --version
redis-server --version
