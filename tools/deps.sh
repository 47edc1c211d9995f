#!/bin/bash
# deps.sh: installs the Debian packages that are missing.   tools/deps.sh build|platform|test|bench|check|deb|test-deb|test-ha
#
# When nothing is missing it does nothing: no network, no root.  A word with bars is a
# choice: any of its packages will do, and the first one that the archive has is installed.
set -euo pipefail

build="gcc make meson ninja-build pkg-config|pkgconf libc6-dev libuv1-dev libpq-dev libssl-dev zlib1g-dev
       libllhttp-dev|node-llhttp uthash-dev libxxhash-dev python3 python3-yaml"
# The broker starts its own PostgreSQL unless PG_HOST is set, so running it needs the server.
run="postgresql-15|postgresql-16|postgresql-17|postgresql"
platform="libmariadb-dev"
# Of MariaDB only the programs: the package with the service would start an unwanted server.
test="openssl systemd locales curl jq libcmocka-dev python3-pytest python3-httpx python3-psycopg2 python3-jsonschema pgbouncer
      zsh fish tmux chromium fonts-dejavu-core
      mariadb-server-core|mariadb-server-core-10.5 mariadb-client|mariadb-client-10.5"
check="git clang clang-format clang-tidy libclang-rt-dev|libclang-rt-14-dev libjansson-dev
       faketime nftables stress-ng"

# Each of these targets has its own tools, which the others do not install.
deb="debhelper lintian fakeroot xz-utils git scdoc"
test_deb="mmdebstrap python3-pytest"
test_ha="patroni python3-etcd etcd-server etcd-client haproxy nftables iproute2"

case "${1:-}" in
build) wanted="$build $run" ;;
platform) wanted="$build $run $platform" ;;
test) wanted="$build $run $platform $test" ;;
bench) wanted="$build $run redis-tools python3-psycopg2 python3-httpx postgresql-client" ;;
check) wanted="$build $run $platform $test $check" ;;
deb) wanted="$build $platform $deb" ;;
test-deb) wanted="$test_deb" ;;
test-ha) wanted="$build $run $test $test_ha" ;;
*)
    echo "usage: tools/deps.sh build|platform|test|bench|check|deb|test-deb|test-ha" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: not a Debian system; please install the packages listed in $0 by hand" >&2
    exit 0
fi

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for choice in $wanted; do
    found=no
    for package in ${choice//|/ }; do
        if is_installed "$package"; then
            found=yes
            break
        fi
    done
    [ $found = yes ] || missing+=("$choice")
done
case "$1" in test | check) command -v npm >/dev/null || missing+=(npm) ;; esac
# The tests drive the dashboard with packages from npm. Programs are built without them: web/dist is committed.
node_packages() {
    case "$1" in test | check) ;; *) return 0 ;; esac
    cd "$(dirname "$0")/../web"
    [ ! node_modules/.package-lock.json -nt package-lock.json ] || return 0
    npm ci --ignore-scripts --no-progress --loglevel=error
}

if [ ${#missing[@]} -eq 0 ]; then
    node_packages "$1"
    exit 0
fi

echo "deps.sh: missing: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps.sh: need root or sudo to install them" >&2
        exit 1
    fi
    as_root=(sudo)
fi
# apt-get waits for the lock of dpkg, but not for the locks of its lists and its archive: another apt-get would make it fail.
apt_get() {
    local errors status end=$((SECONDS + 300)) waits=no
    errors=$(mktemp)
    while :; do
        status=0
        "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y \
            -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" 2>"$errors" || status=$?
        if [ $status = 0 ] || [ $SECONDS -ge $end ] || ! grep -q 'Could not get lock' "$errors"; then
            break
        fi
        [ $waits = yes ] || echo "deps.sh: another apt-get is running; waiting for up to 5 minutes"
        waits=yes
        sleep 2
    done
    cat "$errors" >&2
    rm -f "$errors"
    return $status
}
apt_get update

packages=()
for choice in "${missing[@]}"; do
    chosen=""
    for package in ${choice//|/ }; do
        if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then
            chosen=$package
            break
        fi
    done
    if [ -z "$chosen" ]; then
        echo "deps.sh: the archive has none of $choice" >&2
        exit 1
    fi
    packages+=("$chosen")
done

# Debian makes and starts a cluster when a server package is first configured; none is
# needed here.  The drop-in is there only while we install.
dropin=/etc/postgresql-common/createcluster.d/queen-deps.conf
if [[ " ${packages[*]} " == *" postgresql"* ]]; then
    apt_get install --no-install-recommends postgresql-common
    "${as_root[@]}" mkdir -p "$(dirname $dropin)"
    trap '"${as_root[@]}" rm -f $dropin' EXIT
    echo 'create_main_cluster = false' | "${as_root[@]}" tee $dropin >/dev/null
fi
apt_get install --no-install-recommends "${packages[@]}"
node_packages "$1"
