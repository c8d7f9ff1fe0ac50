#!/usr/bin/env bash
# Makes the Debian package of a binary, unpacks it and runs what is in it: packaging/try.sh [BINARY]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binary=${1:-$here/../target/debug/kumi}
scratch=$(mktemp -d)
node=
manager=
finish() {
    [[ -z $node ]] || kill "$node" 2>/dev/null || true
    [[ -z $manager ]] || kill "$manager" 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT

package=$(DEB_COMPRESSION_LEVEL=0 "$here/debian/build.sh" "$binary" "$scratch/out")
dpkg-deb --info "$package" | sed -n 's/^ \(Package\|Version\|Depends\|Installed-Size\)/\1/p'
dpkg-deb -x "$package" "$scratch/root"
dpkg-deb -e "$package" "$scratch/root/DEBIAN"
for file in usr/bin/kumi-server etc/kumi/redis.conf usr/lib/systemd/system/kumi.service \
    usr/share/bash-completion/completions/kumi usr/share/doc/kumi/copyright \
    $(grep -oh 'usr/share/doc/[^ ;]*' "$here/debian/redis.conf" "$here/debian/kumi.service"); do
    [[ -s $scratch/root/$file ]] || { echo "try.sh: $file is missing" >&2; exit 1; }
done
grep -qx /etc/kumi/redis.conf "$scratch/root/DEBIAN/conffiles"

python3 -c '
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
missing = []
for page in sorted(root.rglob("*.md")):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        target = link.partition("#")[0]
        if "://" not in link and not (page.parent / target).exists():
            missing.append(f"{page.relative_to(root)}: {link}")
if missing:
    sys.exit("try.sh: links that lead nowhere:\n" + "\n".join(missing))' "$scratch/root/usr/share/doc/kumi"

# What the scripts of the package ask of systemd: a systemctl that writes its arguments down.
mkdir "$scratch/bin" "$scratch/wants"
printf '#!/bin/sh\necho "$@" >>%s\n' "$scratch/asked" >"$scratch/bin/systemctl"
chmod 755 "$scratch/bin/systemctl"
asks() {
    local expected=$1 script=$2
    shift 2
    : >"$scratch/asked"
    [[ -x $scratch/root/DEBIAN/$script ]]
    sed "s#/run/systemd/system#$scratch/systemd#; s#/etc/systemd/system/multi-user.target.wants#$scratch/wants#" \
        "$scratch/root/DEBIAN/$script" >"$scratch/script"
    PATH=$scratch/bin:$PATH sh "$scratch/script" "$@"
    local asked
    asked=$(paste -sd, "$scratch/asked")
    [[ $asked == "$expected" ]] || { echo "try.sh: $script $* asks for '$asked', not '$expected'" >&2; exit 1; }
}
# Without systemd, as in a container.
asks '' postinst configure 0.0.1
asks '' prerm remove
asks '' postrm remove
mkdir "$scratch/systemd"
asks 'daemon-reload' postinst configure ''
asks 'daemon-reload,try-restart kumi.service' postinst configure 0.0.1
asks '' prerm upgrade 0.0.2
asks '' postrm upgrade 0.0.2
asks 'stop kumi.service' prerm remove
touch "$scratch/wants/kumi.service"
asks 'daemon-reload' postrm remove
[[ -e $scratch/wants/kumi.service ]]
asks 'daemon-reload' postrm purge
[[ ! -e $scratch/wants/kumi.service ]]

if command -v systemd-analyze >/dev/null; then
    sed "s#/usr/bin/kumi#$scratch/root/usr/bin/kumi#" "$scratch/root/usr/lib/systemd/system/kumi.service" \
        >"$scratch/kumi.service"
    systemd-analyze verify "$scratch/kumi.service"
fi

# The service manager's side of Type=notify: ends with 0 when the service has said that it is ready.
python3 -c '
import socket, sys
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind(sys.argv[1])
notify.settimeout(20)
while b"READY=1" not in notify.recv(4096).split(b"\n"):
    pass' "$scratch/notify" 2>/dev/null &
manager=$!
for _ in $(seq 200); do
    [[ ! -S $scratch/notify ]] || break
    sleep 0.05
done

# The command line of the unit file, with paths below the scratch directory and a socket in place of the port.
mkdir "$scratch/data"
read -ra words < <(sed -n 's/^ExecStart=//p' "$scratch/root/usr/lib/systemd/system/kumi.service")
words=("${words[@]/#\/usr\/bin\//$scratch/root/usr/bin/}")
words=("${words[@]/#%d\//$scratch/root/etc/kumi/}")
words=("${words[@]/#\/var\/lib\/kumi/$scratch/data}")
NOTIFY_SOCKET=$scratch/notify "${words[@]}" --port 0 --unixsocket "$scratch/socket" &
node=$!
wait "$manager" || { manager=; echo 'try.sh: the service did not say that it is ready' >&2; exit 1; }
manager=
[[ $(redis-cli -s "$scratch/socket" SET greeting hello) == OK ]]
kill "$node"
wait "$node"
node=
[[ -d $scratch/data/appendonlydir ]]
echo "try.sh: $(basename "$package") installs and runs"
