#!/bin/bash
# check_frozen.sh: no file of the schema changes once databases may have it; what is new is listed.
#
# Before the first release, and for a new file:  cd broker/sql/schema (or platform/sql/tenant/schema ...) && sha256sum *.sql > SHA256SUMS
set -euo pipefail
cd "$(dirname "$0")/.."

for schema in broker/sql/schema platform/sql/*/schema; do
    (
        cd "$schema"
        sha256sum --quiet --strict -c SHA256SUMS || {
            echo "check_frozen.sh: a frozen file of $schema has changed; write a new one instead" >&2
            exit 1
        }
        if ! diff <(awk '{print $2}' SHA256SUMS) <(ls -- *.sql); then
            echo "check_frozen.sh: $schema/SHA256SUMS does not list these files" >&2
            exit 1
        fi
    )
done
