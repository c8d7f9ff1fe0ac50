#!/usr/bin/env bash
# Runs fuzz targets: fuzz/run.sh [target] [seconds] [libFuzzer options ...]
#
#   fuzz/run.sh                            every target for a minute
#   fuzz/run.sh command_stream 600         one target for ten minutes
#   fuzz/run.sh command_stream 0 FILE      one input again, for instance one from fuzz/artifacts
#   fuzz/run.sh --list                     the names of the targets
#
# Works with Rust's stable toolchain and a C++ compiler; cargo-fuzz is not needed. Inputs that found something new are
# kept in fuzz/corpus, those that crash in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

readonly HOST=x86_64-unknown-linux-gnu
targets=()
for file in src/targets/*.rs; do
    targets+=("$(basename "$file" .rs)")
done
if [[ ${1-} == --list ]]; then
    printf '%s\n' "${targets[@]}"
    exit
fi
if [[ ${1-} == -h || ${1-} == --help ]]; then
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit
fi
[[ $# -eq 0 ]] || targets=("$1")
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))

# The compiler's coverage and address sanitizer are behind flags that stable only takes with RUSTC_BOOTSTRAP. With
# --target, build scripts and macros stay as they are.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing -Zsanitizer=address -Ccodegen-units=4"
cargo build --release --locked --quiet --target "$HOST" --bins
readonly BUILT=${CARGO_TARGET_DIR:-target}/$HOST/release

# Freed memory waits in a quarantine; by default it may grow to the limit at which libFuzzer gives up.
export ASAN_OPTIONS="quarantine_size_mb=32:detect_leaks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
for target in "${targets[@]}"; do
    corpus=corpus/$target
    mkdir -p "$corpus" "artifacts/$target"
    if [[ $seconds -eq 0 ]]; then
        KUMI_FUZZ_TARGET=$target "$BUILT/fuzz" "$@"
        continue
    fi
    "$BUILT/seeds" "$target" "$corpus" "corpus/$target.dict"
    KUMI_FUZZ_TARGET=$target "$BUILT/fuzz" "$corpus" -dict="corpus/$target.dict" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 "$@"
done
