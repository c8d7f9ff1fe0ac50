#!/usr/bin/env bash
# Makes the Debian package of a binary, unpacks it and runs what is in it: packaging/try.sh [BINARY]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=${1:-$here/../target/debug/kumi}
scratch=$(mktemp -d)
node=
finish() {
    [[ -z $node ]] || kill "$node" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT

package=$(DEB_COMPRESSION_LEVEL=0 "$here/debian/build.sh" "$binary" "$scratch/out")
dpkg-deb --info "$package" | sed -n 's/^ \(Package\|Version\|Depends\|Installed-Size\)/\1/p'
dpkg-deb -x "$package" "$scratch/root"
dpkg-deb -e "$package" "$scratch/root/DEBIAN"
for file in usr/bin/kumi-server etc/kumi/redis.conf usr/lib/systemd/system/kumi.service \
    usr/share/bash-completion/completions/kumi usr/share/doc/kumi/copyright; do
    [[ -s $scratch/root/$file ]] || { echo "try.sh: $file is missing" >&2; exit 1; }
done
grep -qx /etc/kumi/redis.conf "$scratch/root/DEBIAN/conffiles"
if command -v systemd-analyze >/dev/null; then
    sed "s#/usr/bin/kumi#$scratch/root/usr/bin/kumi#" "$scratch/root/usr/lib/systemd/system/kumi.service" \
        >"$scratch/kumi.service"
    systemd-analyze verify "$scratch/kumi.service"
fi

# The words of the unit file, with paths below the scratch directory and a socket in place of the port.
mkdir "$scratch/data"
"$scratch/root/usr/bin/kumi" up --redis-conf "$scratch/root/etc/kumi/redis.conf" --dir "$scratch/data" --port 0 \
    --unixsocket "$scratch/socket" --quiet &
node=$!
for _ in $(seq 200); do
    [[ ! -S $scratch/socket ]] || break
    sleep 0.05
done
[[ $(redis-cli -s "$scratch/socket" SET greeting hello) == OK ]]
kill "$node"
wait "$node"
node=
[[ -d $scratch/data/appendonlydir ]]
echo "try.sh: $(basename "$package") installs and runs"
