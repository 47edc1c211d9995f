#!/bin/bash
# dist.sh VERSION FOLDER: writes FOLDER/queen-VERSION.tar.xz with the committed files. Equal commits give equal bytes.
set -euo pipefail
name=queen-$1 folder=$2
export LC_ALL=C
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "dist.sh: uncommitted changes are not in the tarball" >&2
mkdir -p "$folder"
# git takes times, owners and modes from the commit; --threads=1 because the number of threads shows in the output.
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | xz -6 --threads=1 >"$folder/.$name.tar.xz"
mv "$folder/.$name.tar.xz" "$folder/$name.tar.xz"
(cd "$folder" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256")
echo "$folder/$name.tar.xz"
