#!/bin/sh
# join_objects.sh: OUT.a LIB.a...   The first archive and what it needs of the others, as an
# archive of one object in which only queen_* is global: no name of ours can meet one of a
# program that links it.
set -eu
out=$1
first=$2
shift 2
joined=${out%.a}.joined.o
${LD:-ld} -r -o "$joined" --whole-archive "$first" --no-whole-archive --start-group "$@" --end-group
${OBJCOPY:-objcopy} --wildcard --keep-global-symbol='queen_*' "$joined"
rm -f "$out"
${AR:-ar} rcs "$out" "$joined"
rm -f "$joined"
