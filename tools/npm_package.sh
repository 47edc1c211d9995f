#!/bin/bash
# npm_package.sh NAME VERSION INTEGRITY FOLDER: unpacks a package of npm into FOLDER, without running anything of it.
# INTEGRITY is its checksum, as `npm view NAME@VERSION dist.integrity` prints it.
set -euo pipefail
name=$1 version=$2 integrity=$3 folder=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$name@$version" >/dev/null)
found=sha512-$(openssl dgst -sha512 -binary "$work"/*.tgz | base64 -w 0)
[ "$found" = "$integrity" ] || { echo "npm_package.sh: $name $version has checksum $found, not $integrity" >&2; exit 1; }
mkdir -p "$folder"
tar -xzf "$work"/*.tgz -C "$folder" --strip-components=1
