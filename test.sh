#!/usr/bin/env bash
# The one test command: ./test.sh [--quick | --full]
#
# Installs what it needs (Debian packages), then checks format, lints, every test, the unsafe module under
# AddressSanitizer, the fuzz targets for a bounded time, the core that has no standard library, the workshop, packages of
# others on kumi-server, and the documentation. Stops at the first failure. Servers that tests start listen on loopback
# and Unix sockets only, and none is left behind. --quick leaves out what needs another build (the sanitizer, the fuzz
# targets, the library by features, the packages of the crates, the workshop, packages of others, the documentation),
# kumi-bench and the tests that mostly wait, and takes a sample of the seeds of the differential test. --full runs more seeds
# of simulations, 200 crashes instead of 30, nodes killed 50 times instead of twice, MUF over the slowest link, 2 GB through TLS,
# and each fuzz target for a minute.
#
# The parts are in ci/; each step prints its time, and all times stand together at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

quick=no
full=no
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        --full) full=yes ;;
        -h | --help)
            sed -n '2,13s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *)
            echo "test.sh: unknown argument '$argument' (try --help)" >&2
            exit 2
            ;;
    esac
done

# How many seeds the simulations and the differential test run, how many crashes a server survives, how often nodes are killed, how
# many bytes go through TLS, and how long each fuzz target runs.
if [[ $quick == yes ]]; then
    export KUMI_DIFF_ITERS=${KUMI_DIFF_ITERS:-500}
elif [[ $full == yes ]]; then
    export KUMI_SIM_SEEDS=${KUMI_SIM_SEEDS:-20000}
    export KUMI_SIM_LARGE_SEEDS=${KUMI_SIM_LARGE_SEEDS:-10}
    export KUMI_CRASH_ROUNDS=${KUMI_CRASH_ROUNDS:-200}
    export KUMI_MUF_SLOW_LINK=${KUMI_MUF_SLOW_LINK:-1}
    export KUMI_MUF_MEMORY_SECONDS=${KUMI_MUF_MEMORY_SECONDS:-20}
    export KUMI_NODE_ROUNDS=${KUMI_NODE_ROUNDS:-50}
    export KUMI_TLS_BYTES=${KUMI_TLS_BYTES:-2000000000}
    : "${FUZZ_SECONDS:=60}" "${STEP_LIMIT:=2h}"
else
    export KUMI_SIM_LARGE_SEEDS=${KUMI_SIM_LARGE_SEEDS:-1}
fi
readonly FUZZ_SECONDS=${FUZZ_SECONDS:-5}
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# shellcheck source=ci/steps.sh
source ci/steps.sh

step Tools ci/packages.sh
# Ten thousand connections want ten thousand descriptors on either side.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

selection=(--workspace)
kinds='unit, property, differential, end to end, documentation'
if [[ $quick == yes ]]; then
    kinds='unit, property, differential, end to end'
    mapfile -t selection < <(ci/quick_selection.sh)
fi
step Format ci/format.sh
step 'Known vulnerabilities' tests/audit/run.sh
step Linter ci/linted.sh --check
step 'Lints and build' ci/linted.sh cargo test "${selection[@]}" --locked --no-run
step "Tests: $kinds" ci/linted.sh cargo test "${selection[@]}" --locked
if [[ $quick == no ]]; then
    step 'AddressSanitizer: the unsafe module' ci/sanitizer.sh
    for target in $(fuzz/run.sh --list); do
        step "Fuzzing: $target for $FUZZ_SECONDS s" fuzz/run.sh "$target" "$FUZZ_SECONDS" -verbosity=0
    done
fi
step 'Membership core without the standard library' cargo run --quiet --locked --target-dir target/no_std \
    --manifest-path crates/kumi-cluster/no_std_check/Cargo.toml
if [[ $quick == no ]]; then
    step 'The library, feature by feature' ci/features.sh
    verify=()
    [[ $full == no ]] || verify=(--verify)
    step 'Packages of the crates' ci/crates.sh "${verify[@]}"
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
