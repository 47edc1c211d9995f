#!/bin/sh
# commit.sh: prints the commit that these sources are of, with "-dirty" if files differ from it.
# `git archive` replaces the line below (see .gitattributes), so a release tarball knows its commit without git.
set -eu
# shellcheck disable=SC2016  # not a variable: git replaces it
archived='$Format:%H$'
case $archived in
'$'*) cd "$(dirname "$0")/.." && git describe --always --dirty --abbrev=12 --exclude '*' ;;
*) printf '%.12s\n' "$archived" ;;
esac
