#!/bin/bash
# tidy.sh: clang-tidy over C files.   tools/tidy.sh BUILD_DIR all|changed
#
# changed: what differs from origin/main (or is not committed); everything if there is no such branch.
set -euo pipefail
cd "$(dirname "$0")/.."

base=$(git merge-base HEAD origin/main 2>/dev/null || true)
if [ "$2" = changed ] && [ -n "$base" ]; then
    files=$( (git diff --name-only --diff-filter=d "$base" -- 'src/*.c'; git ls-files -o --exclude-standard 'src/*.c') | sort -u)
else
    files=$(git ls-files 'src/*.c')
fi
[ -n "$files" ] || exit 0
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$1" --quiet 2> >(grep -vE 'warnings? (generated|treated)|^Suppressed|^Use -header' >&2)
