#!/bin/bash
# Run by `unshare` as process 1 of namespaces of its own: creates a scratch root that looks like this machine and writes
# to memory, with only a loopback interface, and stays until it is killed, which ends all of its processes.
#
#   enter.sh FOLDER NAME PYTHON SETUP PATH…
#
# NAME is its host name.  The tests' systemctl.py replaces systemctl, run by PYTHON.  Each PATH of this machine is at
# its place in the root, for reading, and all users may read the folders above it.  SETUP is a script that is sourced
# before the root is entered: it adds further files to `$root`, from `$folder`.
set -euo pipefail
folder=$1 name=$2 python=$3 setup=$4
shift 4

ip link set lo up
hostname "$name"

mount -t tmpfs -o mode=755 tmpfs "$folder/layers"
mkdir "$folder"/layers/{changes,work,root}
root=$folder/layers/root
mount -t overlay -o "lowerdir=/,upperdir=$folder/layers/changes,workdir=$folder/layers/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
for path in run tmp var/lib/redis var/lib/rabbitmq var/log; do
    mkdir -p "$root/$path"
    mount -t tmpfs tmpfs "$root/$path"
done
chmod 1777 "$root/tmp"
mkdir "$root"/var/log/{redis,rabbitmq}
for package in redis rabbitmq; do
    chown "$package:$package" "$root/var/lib/$package" "$root/var/log/$package"
done

show() { # show PATH
    local above=$1
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root$(dirname "$1")"; touch "$root$1"; fi
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
    while [ "$above" != / ]; do
        above=$(dirname "$above")
        chmod o+x "$root$above"
    done
}
for path in "$@"; do show "$path"; done

rm -f "$root/usr/bin/systemctl"
{ printf '#!%s\n' "$python"; cat "$(dirname "$0")/systemctl.py"; } > "$root/usr/bin/systemctl"
chmod 755 "$root/usr/bin/systemctl"
mkdir -p "$root/mnt"
# shellcheck source=/dev/null
source "$setup"

cd "$root"
pivot_root . mnt
exec chroot . /bin/bash -c 'umount -l /mnt && echo ready && { sleep infinity & } && wait $!'
