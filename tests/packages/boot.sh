#!/bin/bash
# boot.sh ROOT NAME: runs the systemd of the root file system ROOT in namespaces of its own, without a network.
# Needs root and version 1 or hybrid control groups. NAME names its control group.
set -euo pipefail
root=$(realpath "$1") group=/sys/fs/cgroup/systemd/$2
if [ -d /sys/fs/cgroup/systemd ]; then
    mkdir -p "$group"
    echo $$ >"$group/cgroup.procs"
fi
# shellcheck disable=SC2016  # $1 is of the inner shell
exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child bash -euc '
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty; do
    touch dev/$name
    mount --bind /dev/$name dev/$name
done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s /proc/self/fd dev/fd
# Not chroot: in one, the kernel refuses user namespaces, which the units use. Shared mounts are the default of systemd.
mkdir -p old
pivot_root . old
umount --lazy /old
mount --make-rshared /
exec env -i container=queen-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal --show-status=0
' boot "$root"
