# shellcheck shell=bash disable=SC2154  # read by enter.sh, which sets root and folder
# Additions to the scratch root of DevStack: the user stack, who becomes root by sudo; FOLDER/stack, which is on a
# disk, as /opt/stack; the clone as /opt/stack/sluice.
chroot "$root" id stack > /dev/null 2>&1 || chroot "$root" useradd --create-home --shell /bin/bash stack
echo 'stack ALL=(root) NOPASSWD:ALL' > "$root/etc/sudoers.d/50_stack_sh"
chmod 440 "$root/etc/sudoers.d/50_stack_sh"
printf '127.0.0.1 localhost devstack\n' > "$root/etc/hosts"
touch "$root/etc/default/rsync"
mkdir -p "$root/opt/stack"
mount --bind "$folder/stack" "$root/opt/stack"
chroot "$root" chown --recursive --no-dereference stack: /opt/stack
mount --bind "$(readlink "$folder/clone")" "$root/opt/stack/sluice"
mount -o remount,bind,ro "$root/opt/stack/sluice"
