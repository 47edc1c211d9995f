#!/bin/bash
# fuzz.sh: builds and runs libFuzzer programs.   tools/fuzz.sh NAME|all [SECONDS]
#
# A fuzzer is tests/fuzz/fuzz_NAME.c; its lines "// build: ..." name the sources, flags and libraries it needs besides itself and
# lib/base.  Seeds: tests/fuzz/corpus/NAME; words: tests/fuzz/NAME.dict.  Findings go to build/fuzz; a crash becomes a
# seed and a unit test by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
wanted=${1:-all}
seconds=${2:-60}
generated=build/fuzz/generated
flags="-std=gnu11 -D_GNU_SOURCE -Ilib -Ibroker/src -Iplatform/src -I$generated -g -O1 -fno-sanitize-recover=undefined"

base=build/fuzz/base
rm -rf "$base"
mkdir -p "$base" "$generated/db"
python3 tools/embed_sql.py --root pg queen queen broker/sql --include db/sql.gen.h --source "$generated/db/sql.gen.c" \
    --header "$generated/db/sql.gen.h" --constants "$generated/db/constants.gen.h" --depfile "$generated/db/sql.gen.d"
for source in lib/base/*.c; do
    # shellcheck disable=SC2086  # words are meant to be split
    clang $flags -fsanitize=fuzzer-no-link,address,undefined -c "$source" -o "$base/$(basename "$source" .c).o"
done
ar rc "$base.a" "$base"/*.o

ran=0
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    [ "$wanted" = all ] || [ "$wanted" = "$name" ] || continue
    found=build/fuzz/$name.found
    mkdir -p "$found"
    needs=$(sed -n 's|^// build: ||p' "$source")
    # shellcheck disable=SC2086  # words are meant to be split
    clang $flags -fsanitize=fuzzer,address,undefined "$source" $needs "$base.a" -luv -lpthread -lm -o "build/fuzz/$name"
    extra=()
    [ ! -f "tests/fuzz/$name.dict" ] || extra+=("-dict=tests/fuzz/$name.dict")
    seeds=()
    [ ! -d "tests/fuzz/corpus/$name" ] || seeds+=("tests/fuzz/corpus/$name")
    echo "fuzz: $name for $seconds s"
    "build/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$name-" "${extra[@]}" "$found" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1 || {
        tail -40 "build/fuzz/$name.log"
        exit 1
    }
    grep -E '^Done|number_of_executed_units' "build/fuzz/$name.log"
    ran=$((ran + 1))
done
[ $ran -gt 0 ] || { echo "fuzz.sh: no fuzzer called $wanted" >&2; exit 1; }
