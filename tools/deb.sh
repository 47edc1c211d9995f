#!/bin/bash
# deb.sh VERSION DIST DEB: builds the Debian packages of DIST/queen-VERSION.tar.xz into the folder DEB and checks them with
# lintian. The rules are deploy/debian of the tarball.
set -euo pipefail
version=$1 dist=$(realpath "$2") deb=$3
mkdir -p "$deb"
cd "$deb"
rm -rf "queen-$version" queen_* queen-*.deb libqueenclient*
cp "$dist/queen-$version.tar.xz" "queen_$version.orig.tar.xz"
tar xf "queen_$version.orig.tar.xz"
cp -r "queen-$version/deploy/debian" "queen-$version/debian"
cd "queen-$version"
dpkg-buildpackage --unsigned-source --unsigned-changes -rfakeroot "-j$(nproc)"
cd ..
# The packages are not for Debian's archive, so there is no bug to close.
lintian --fail-on error,warning --allow-root --suppress-tags initial-upload-closes-no-bugs "queen_${version}"-*.changes
rm -rf "queen-$version" ./*-dbgsym_*.deb
ls -- *.deb
