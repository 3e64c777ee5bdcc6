# shellcheck shell=bash disable=SC2154  # read by enter.sh, which sets root and folder
# Additions to a host of a lab: /opt and /srv, which are on a disk; the wheelhouse, if there is one; files that it
# has from its start, such as Swift's configuration.
for place in opt srv; do
    mkdir -p "$folder/$place"
    mount --bind "$folder/$place" "$root/$place"
done
if [ -d "$folder/../wheelhouse" ]; then
    mkdir -p "$root/opt/wheelhouse"
    mount --bind "$folder/../wheelhouse" "$root/opt/wheelhouse"
fi
cp -a "$folder/files/." "$root/"
chroot "$root" id swift > /dev/null 2>&1 || chroot "$root" useradd --system --shell /usr/sbin/nologin swift
rm -f "$root/etc/systemd/system/multi-user.target.wants"/*
