#!/usr/bin/env bash
# Looks for known vulnerabilities in every lock file: tests/audit/run.sh
#
# 1. Every locked version is compared with the ranges in advisories.txt. That needs no network and can fail.
# 2. With cargo-audit and a copy of RustSec's database (in $ADVISORY_DB, or where cargo-audit keeps it), the whole
#    database is asked. Without them this says so and goes on: what advisories.txt does not list was not checked then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly TABLE=tests/audit/advisories.txt
readonly DATABASE=${ADVISORY_DB:-${CARGO_HOME:-$HOME/.cargo}/advisory-db}

# Prints an affected package per line, and fails if there is one. Versions have three numbers; a pre-release counts as
# the release before it, which errs on the safe side.
affected() { # lock file
    awk -v lock="$1" '
        function number(version, parts, pre) {
            pre = version ~ /-/
            sub(/[-+].*/, "", version)
            split(version, parts, ".")
            return ((parts[1] * 1000000) + parts[2]) * 1000000 + parts[3] - (pre ? 0.5 : 0)
        }
        FNR == 1 { file++ }
        file == 1 {
            if ($0 !~ /^#/ && NF > 0) {
                if (NF != 4) { print "a row that cannot be read: " $0; bad = 1; next }
                count++
                id[count] = $1; crate[count] = $2; from[count] = $3; to[count] = $4
            }
            next
        }
        /^name = / { gsub(/"/, "", $3); name = $3 }
        /^version = / && name != "" {
            gsub(/"/, "", $3)
            packages++
            for (row = 1; row <= count; row++) {
                if (crate[row] == name && number($3) >= number(from[row]) &&
                    (to[row] == "-" || number($3) < number(to[row]))) {
                    advice = to[row] == "-" ? "there is no patched version" : "needs " to[row]
                    print lock ": " name " " $3 " is affected by " id[row] "; " advice
                    bad = 1
                }
            }
            name = ""
        }
        END {
            if (count == 0 || packages == 0) { print lock ": nothing was compared"; bad = 1 }
            exit bad
        }' "$TABLE" "$1"
}

# A comparison that finds nothing in a lock file full of holes would find nothing anywhere.
check_the_check() {
    local scratch
    scratch=$(mktemp)
    printf '[[package]]\nname = "%s"\nversion = "%s"\n' rustls 0.23.44 rand 0.10.1 rand 0.9.2 zstd 0.14.3 \
        rustls-pemfile 2.2.0 quinn-proto 0.11.15-rc.1 >"$scratch"
    local found
    found=$(affected "$scratch" | grep -c 'affected by' || true)
    rm -f "$scratch"
    # rustls has five rows above 0.23.44, rand one, rustls-pemfile one, quinn-proto one.
    if [[ $found -ne 8 ]]; then
        echo "audit: the comparison itself is wrong: $found of 8 found" >&2
        exit 1
    fi
}

check_the_check
status=0
mapfile -t locks < <(git ls-files '*Cargo.lock')
for lock in "${locks[@]}"; do
    affected "$lock" || status=1
done
echo "audit: ${#locks[@]} lock files against $(grep -c '^RUSTSEC' "$TABLE") rows of $TABLE: $(
    [[ $status -eq 0 ]] && echo nothing affected || echo AFFECTED
)"

if ! command -v cargo-audit >/dev/null; then
    echo "audit: RustSec's database itself was NOT asked: there is no cargo-audit (cargo install cargo-audit)"
elif [[ ! -d $DATABASE ]]; then
    echo "audit: RustSec's database itself was NOT asked: there is no copy in $DATABASE" \
        "(git clone https://github.com/rustsec/advisory-db)"
else
    for lock in "${locks[@]}"; do
        cargo audit --no-fetch --stale --db "$DATABASE" --deny warnings --file "$lock" || status=1
    done
fi
exit "$status"
