#!/bin/bash
# Run by `unshare` as process 1 of namespaces of its own: makes a scratch root that looks like this machine and writes
# to memory, with nothing but loopback, and stays until it is killed; then all that it started is gone.
#
#   enter.sh FOLDER CLONE PYTHON PATH…
#
# FOLDER/stack, which is on a disk, becomes /opt/stack, and CLONE becomes /opt/stack/sluice. Our systemctl.py takes the
# place of systemctl, run by PYTHON. Each PATH of this machine is at its place in the root, for reading, and everybody
# may look into the folders above it.
set -euo pipefail
folder=$1 clone=$2 python=$3
shift 3

ip link set lo up
hostname devstack

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

chroot "$root" id stack > /dev/null 2>&1 || chroot "$root" useradd --create-home --shell /bin/bash stack
echo 'stack ALL=(root) NOPASSWD:ALL' > "$root/etc/sudoers.d/50_stack_sh"
chmod 440 "$root/etc/sudoers.d/50_stack_sh"
printf '127.0.0.1 localhost devstack\n' > "$root/etc/hosts"
rm -f "$root/usr/bin/systemctl"
{ printf '#!%s\n' "$python"; cat "$(dirname "$0")/systemctl.py"; } > "$root/usr/bin/systemctl"
chmod 755 "$root/usr/bin/systemctl"
touch "$root/etc/default/rsync"

mkdir -p "$root/opt/stack" "$root/mnt"
mount --bind "$folder/stack" "$root/opt/stack"
chroot "$root" chown --recursive --no-dereference stack: /opt/stack
mount --bind "$clone" "$root/opt/stack/sluice"
mount -o remount,bind,ro "$root/opt/stack/sluice"

cd "$root"
pivot_root . mnt
exec chroot . /bin/bash -c 'umount -l /mnt && echo ready && { sleep infinity & } && wait $!'
