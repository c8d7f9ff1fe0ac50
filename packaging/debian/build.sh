#!/usr/bin/env bash
# Makes a Debian package of a built binary: packaging/debian/build.sh [BINARY] [OUTPUT_DIRECTORY]
#
# Needs dpkg and dpkg-deb; no network and no root. Prints the package's path.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=${1:-$root/target/release/kumi}
output=${2:-$root/target/debian}

if [[ ! -x $binary ]]; then
    echo "build.sh: there is no binary at $binary; build it first: cargo build --release --locked -p kumi" >&2
    exit 1
fi

version=$("$binary" --version)
version=${version#kumi }
architecture=$(dpkg --print-architecture)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

install -D -m 755 "$binary" "$tree/usr/bin/kumi"
# A release binary has no symbols; that of another profile may.
if command -v strip >/dev/null; then
    strip --strip-unneeded "$tree/usr/bin/kumi"
fi
printf '#!/bin/sh\nexec /usr/bin/kumi server "$@"\n' >"$tree/usr/bin/kumi-server"
chmod 755 "$tree/usr/bin/kumi-server"
install -D -m 644 "$here/kumi.service" "$tree/usr/lib/systemd/system/kumi.service"
# It may hold a password later.
install -D -m 600 "$here/redis.conf" "$tree/etc/kumi/redis.conf"
# The pages that README.md and redis.conf name, and those that they name. The workshop and the examples need a checkout:
# links to them become text.
doc=$tree/usr/share/doc/kumi
(
    cd "$root"
    for page in README.md README.ja.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE-* packaging/README.md docs/*.md docs/*/*.md; do
        install -D -m 644 "$page" "$doc/$page"
        sed -Ei 's#\[([^]]*)\]\(((\.\./)*)(workshop|examples)/[^)]*\)#\1#g' "$doc/$page"
    done
)
{
    echo 'kumi is licensed under MIT or Apache-2.0, at your choice.'
    echo
    cat "$root/LICENSE-MIT"
} >"$doc/copyright"

completion() {
    mkdir -p "$(dirname "$tree/$2")"
    "$binary" completions "$1" >"$tree/$2"
}
completion bash usr/share/bash-completion/completions/kumi
completion zsh usr/share/zsh/vendor-completions/_kumi
completion fish usr/share/fish/vendor_completions.d/kumi.fish

# The C library is all that a release binary links; its version is what this machine has.
libc=$(dpkg-query -W -f '${Version}' libc6)
mkdir "$tree/DEBIAN"
echo /etc/kumi/redis.conf >"$tree/DEBIAN/conffiles"
install -m 755 -t "$tree/DEBIAN" "$here/postinst" "$here/prerm" "$here/postrm"
cat >"$tree/DEBIAN/control" <<EOF
Package: kumi
Version: $version
Architecture: $architecture
Maintainer: The kumi authors <kumi@localhost>
Depends: libc6 (>= ${libc%%-*}), libgcc-s1
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Section: database
Priority: optional
Description: Redis-compatible store, calls, jobs and membership in one binary
 kumi runs a Redis-compatible store that keeps its data, calls between programs
 through readable Redis keys, background jobs, typed channels over QUIC, and
 membership with failure detection.
EOF

mkdir -p "$output"
package="$output/kumi_${version}_$architecture.deb"
dpkg-deb --root-owner-group -Zxz "-z${DEB_COMPRESSION_LEVEL:-6}" --build "$tree" "$package" >&2
echo "$package"
