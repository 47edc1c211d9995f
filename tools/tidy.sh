#!/bin/bash
# tidy.sh: clang-tidy over C files.   tools/tidy.sh BUILD_DIR all|changed
#
# changed: what differs from origin/main (or is not committed); everything if there is no such branch.
set -euo pipefail
cd "$(dirname "$0")/.."

sources="lib/*.c broker/*.c client/src/*.c cli/*.c bench/load/*.c platform/*.c"
set -f # git expands the patterns

base=$(git merge-base HEAD origin/main 2>/dev/null || true)
if [ "$2" = changed ] && [ -n "$base" ]; then
    files=$( (git diff --name-only --diff-filter=d "$base" -- $sources; git ls-files -o --exclude-standard $sources) | sort -u)
else
    files=$(git ls-files $sources)
fi
[ -n "$files" ] || exit 0
echo "$files" | xargs -P "$(nproc)" -n 4 clang-tidy -p "$1" --quiet 2> >(grep -vE 'warnings? (generated|treated)|^Suppressed|^Use -header' >&2)
