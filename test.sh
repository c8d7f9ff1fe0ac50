#!/usr/bin/env bash
# The one test command: ./test.sh [--quick | --full]
#
# Installs what it needs (Debian packages), then checks format, lints, every test, the unsafe module under
# AddressSanitizer, the fuzz targets for a bounded time, the core that has no standard library, the workshop, packages of
# others on kumi-server, and the documentation. Stops at the first failure. Servers that tests start listen on loopback
# and Unix sockets only, and none is left behind. --quick leaves out what needs another build (the sanitizer, the fuzz
# targets, the library by features, the workshop, packages of others, the documentation), kumi-bench and the tests that
# mostly wait, and takes a sample of the seeds of the differential test. --full runs more seeds of simulations, 200 crashes
# instead of 30, MUF over the slowest link, 2 GB through TLS, and each fuzz target for a minute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

quick=no
full=no
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        --full) full=yes ;;
        -h | --help)
            sed -n '2,12s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *)
            echo "test.sh: unknown argument '$argument' (try --help)" >&2
            exit 2
            ;;
    esac
done

# How many seeds the simulations and the differential test run, how many crashes a server survives, how many bytes go through
# TLS, and how long each fuzz target runs.
if [[ $quick == yes ]]; then
    export KUMI_DIFF_ITERS=${KUMI_DIFF_ITERS:-1500}
elif [[ $full == yes ]]; then
    export KUMI_SIM_SEEDS=${KUMI_SIM_SEEDS:-20000}
    export KUMI_SIM_LARGE_SEEDS=${KUMI_SIM_LARGE_SEEDS:-10}
    export KUMI_CRASH_ROUNDS=${KUMI_CRASH_ROUNDS:-200}
    export KUMI_MUF_SLOW_LINK=${KUMI_MUF_SLOW_LINK:-1}
    export KUMI_MUF_MEMORY_SECONDS=${KUMI_MUF_MEMORY_SECONDS:-20}
    export KUMI_TLS_BYTES=${KUMI_TLS_BYTES:-2000000000}
    : "${FUZZ_SECONDS:=60}"
else
    export KUMI_SIM_LARGE_SEEDS=${KUMI_SIM_LARGE_SEEDS:-1}
fi
readonly FUZZ_SECONDS=${FUZZ_SECONDS:-5}
# How long any one step may take before it counts as hung.
readonly STEP_LIMIT=${STEP_LIMIT:-$([[ $full == yes ]] && echo 2h || echo 40m)}

# Every process below inherits this mark, so that what is left at the end is found without guessing by name.
export KUMI_TEST_RUN="$$-$RANDOM$RANDOM"
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
started=$SECONDS

# Only builtins here: a helper program would carry the mark too.
marked_processes() {
    local environ pid variable variables
    for environ in /proc/[0-9]*/environ; do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        [[ $pid != "$$" && $pid != "$BASHPID" ]] || continue
        { mapfile -d '' -t variables <"$environ"; } 2>/dev/null || continue
        for variable in "${variables[@]}"; do
            [[ $variable != "KUMI_TEST_RUN=$KUMI_TEST_RUN" ]] || echo "$pid"
        done
    done
}

# Ends what an interrupted or hung step left, and names it: a test that leaks a server is a bug.
finish() {
    local status=$? left
    trap - EXIT
    mapfile -t left < <(marked_processes)
    if [[ ${#left[@]} -gt 0 ]]; then
        echo "test.sh: still running, ended now:" >&2
        ps -o pid=,args= -p "${left[*]}" >&2 || true
        kill "${left[@]}" 2>/dev/null || true
        sleep 1
        kill -KILL "${left[@]}" 2>/dev/null || true
        [[ $status -ne 0 ]] || status=1
    fi
    if [[ $status -eq 0 ]]; then
        printf '\nAll steps passed in %d s.\n' $((SECONDS - started))
    else
        printf '\ntest.sh: FAILED (exit %d) after %d s.\n' "$status" $((SECONDS - started)) >&2
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# step HEADING COMMAND...: in the background and waited for, because bash runs no trap while a command is in front.
step() {
    local heading=$1 began=$SECONDS
    shift
    printf '\n== %s\n' "$heading"
    timeout --kill-after=20s "$STEP_LIMIT" "$@" </dev/null &
    wait $!
    printf -- '-- %s: %d s\n' "$heading" $((SECONDS - began))
}

missing_packages() {
    local pair
    # command:package
    for pair in redis-server:redis-server redis-cli:redis-tools cc:build-essential c++:build-essential \
        node:nodejs npm:npm faketime:faketime python3:python3; do
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

printf '== Tools\n'
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
# Ten thousand connections want ten thousand descriptors on either side.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

check_format() {
    cargo fmt --all --check && cargo fmt --manifest-path fuzz/Cargo.toml --check &&
        cargo fmt --manifest-path crates/kumi-cluster/no_std_check/Cargo.toml --check
}
export -f check_format
# Clippy's driver compiles the workspace's own crates for the tests, so that lints cost no build of their own. It takes
# its arguments from CLIPPY_ARGS, as `cargo clippy` hands them to it: warnings are errors. Debug information would only
# lengthen the build; a panic names its line without.
readonly LINTED=(env RUSTC_WORKSPACE_WRAPPER=clippy-driver
    CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ CARGO_PROFILE_DEV_DEBUG=none)
# Fails if a line that clippy warns about would pass.
check_linter() {
    local directory
    directory=$(mktemp -d)
    echo 'pub fn flawed(x: Option<u8>) -> bool { x.is_some() == true }' >"$directory/flawed.rs"
    if "$@" clippy-driver rustc --crate-type lib --emit metadata --out-dir "$directory" "$directory/flawed.rs" 2>/dev/null
    then
        echo 'test.sh: clippy-driver let a warning pass' >&2
        rm -r "$directory"
        return 1
    fi
    rm -r "$directory"
}
export -f check_linter
# What --quick builds and runs: the libraries, the programs, and all integration tests but those that take minutes.
quick_selection() {
    local name
    printf '%s\n' --workspace --exclude kumi-bench --lib --bins
    cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
targets = [t for p in json.load(sys.stdin)["packages"] if p["name"] != "kumi-bench" for t in p["targets"]]
print("\n".join(sorted({t["name"] for t in targets if t["kind"] == ["test"]})))' | while read -r name; do
        case $name in
            cluster | examples | muf_cli | net | queues | servers | simulation) ;;
            *) printf '%s\n' --test "$name" ;;
        esac
    done
}
selection=(--workspace)
kinds='unit, property, differential, end to end, documentation'
if [[ $quick == yes ]]; then
    kinds='unit, property, differential, end to end'
    mapfile -t selection < <(quick_selection)
fi
step Format bash -c check_format
step 'Known vulnerabilities' tests/audit/run.sh
step 'Linter' bash -c 'check_linter "$@"' linter "${LINTED[@]}"
step 'Lints and build' "${LINTED[@]}" cargo test "${selection[@]}" --locked --no-run
step "Tests: $kinds" "${LINTED[@]}" cargo test "${selection[@]}" --locked
if [[ $quick == no ]]; then
    # The stable compiler knows the sanitizer; RUSTC_BOOTSTRAP only unlocks the flag. --target keeps build scripts
    # and macros uninstrumented.
    step 'AddressSanitizer: the unsafe module' env RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
        cargo test -p kumi-store --lib --locked --target x86_64-unknown-linux-gnu --target-dir target/asan keyspace::
    for target in $(fuzz/run.sh --list); do
        step "Fuzzing: $target for $FUZZ_SECONDS s" fuzz/run.sh "$target" "$FUZZ_SECONDS" -verbosity=0
    done
fi
step 'Membership core without the standard library' cargo run --quiet --locked --target-dir target/no_std \
    --manifest-path crates/kumi-cluster/no_std_check/Cargo.toml
# Each part of the facade by itself, with nothing of the command line: neither its parser nor its allocator.
check_features() {
    local feature tree
    for feature in store muf jobs unison cluster; do
        cargo check --quiet --locked -p kumi --lib --no-default-features --features "$feature" || return
        tree=$(cargo tree --quiet --locked --offline -p kumi --no-default-features --features "$feature" -e normal \
            --prefix none --format '{lib}') || return
        if grep -xE 'clap|clap_builder|mimalloc|libmimalloc_sys' <<<"$tree"; then
            echo "test.sh: the feature '$feature' brings these crates, which belong to 'cli'" >&2
            return 1
        fi
    done
}
export -f check_features
if [[ $quick == no ]]; then
    step 'The library, feature by feature' bash -c check_features
fi
step 'Packages' packaging/try.sh "${CARGO_TARGET_DIR:-target}/debug/kumi"
if [[ $quick == no ]]; then
    # Built by the tests above; asking cargo for it alone would build its dependencies a second time, with fewer features.
    step 'Example: three nodes' "${CARGO_TARGET_DIR:-target}/debug/examples/three_nodes"
    # Both use the kumi-server that the tests above built.
    step 'Workshop' workshop/ci.sh
    step 'Software of others on kumi-server and redis-server' tests/software/run.py
    step 'Documentation' env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
fi
