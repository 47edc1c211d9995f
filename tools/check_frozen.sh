#!/bin/bash
# check_frozen.sh: the files of a schema folder match its SHA256SUMS, and SHA256SUMS lists all of them.
#
# Before the first release a change of the baseline is recorded with: tools/check_frozen.sh --update
# After a release the files that it contains must not change.  Add a migration, and record it with --update.
set -euo pipefail
cd "$(dirname "$0")/.."

for schema in broker/sql/schema platform/sql/*/schema; do
    (
        cd "$schema"
        files=$(find * -name '*.sql' | LC_ALL=C sort)
        if [ "${1:-}" = --update ]; then
            sha256sum $files > SHA256SUMS
        fi
        sha256sum --quiet --strict -c SHA256SUMS || {
            echo "check_frozen.sh: a file of $schema has changed; add a migration instead (before the first release: --update)" >&2
            exit 1
        }
        if ! diff <(awk '{print $2}' SHA256SUMS) <(echo "$files"); then
            echo "check_frozen.sh: $schema/SHA256SUMS does not list these files" >&2
            exit 1
        fi
    )
done
