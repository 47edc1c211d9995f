#!/bin/bash
# The standard table: starts a broker with its own PostgreSQL on fresh data, runs every row,
# measures the raw COPY limit of the same PostgreSQL in between, and writes
# bench/results/<date>-<commit>.json and .md.  Slow is not a failure; a broken row is.
#
#   QUEEN            program (build/queen)
#   RAWCOPY          raw limit program (build/release/bench/rawcopy)
#   SECONDS_PER_ROW  measured time (10)
#   ROWS             which rows, for example "A3 A6 B1" (all of the standard table), or "scaling"
#   BENCH_PORT       of the broker (16632)
#   BENCH_WORKERS    of the broker (2)
#   RESULTS          folder of the results (bench/results)
#   KEEP             set: leave the data directory and the broker's log
set -u -o pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
queen=${QUEEN:-$root/build/queen}
rawcopy=${RAWCOPY:-$root/build/release/bench/rawcopy}
seconds=${SECONDS_PER_ROW:-10}
rows=${ROWS:-A1 A2 A3 A4 A6 A7 A8 A9 B1 B2 B3 C1 C2 C4 C5 D1 D2 E1 E2 P W1 W1o W2 W3 W4 S1 S2 S3 I}
# Cost by the number of partitions (N: pushed to, then popped), and by the backlog (K).
scaling="N1 N100 N10k N100k N1M"
backlogs="K1k K10k K100k K1M K10M" # and K100M, by name: it takes 10 minutes and 12 GB
# V: of a work queue, by name: V10k V1M V10M.
rows=${rows/#scaling/$scaling $backlogs}
port=${BENCH_PORT:-16632}
results=${RESULTS:-$root/bench/results}
python=/usr/bin/python3
url=http://127.0.0.1:$port

work=$(mktemp -d /tmp/queen-bench.XXXXXX)
chmod 755 "$work"
data=$work/data
lines=$work/rows.jsonl
raw=$work/raw.jsonl
: >"$lines"
: >"$raw"
broker=0
failed=0
as_owner=() # how to speak to PostgreSQL: as ourselves, or as its owner

say() { printf '%s\n' "$*" >&2; }

stop_broker() {
    [ "$broker" -gt 0 ] || return 0
    kill -TERM "$broker" 2>/dev/null
    for _ in $(seq 300); do
        kill -0 "$broker" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$broker" 2>/dev/null; then
        say "the broker did not stop within 30 s; killed"
        kill -KILL "$broker"
    fi
    wait "$broker" 2>/dev/null
    broker=0
}

clean_up() {
    stop_broker
    if [ -n "${KEEP:-}" ]; then
        say "kept $work"
    else
        rm -rf "$work"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

broker_settings=() # besides those of all rows
start_broker() {
    env -u PG_HOST "${broker_settings[@]}" PORT="$port" HOST=127.0.0.1 NUM_WORKERS="${BENCH_WORKERS:-2}" LOG_LEVEL=warn \
        QUEEN_DATA_DIR="$data" "$queen" serve >>"$work/broker.log" 2>&1 &
    broker=$!
    for _ in $(seq 300); do
        $python - "$url/health" <<'PY' && return 0
import sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=2) as r:
        sys.exit(0 if r.status == 200 else 1)
except OSError:
    sys.exit(1)
PY
        kill -0 "$broker" 2>/dev/null || break
        sleep 0.2
    done
    say "the broker did not become healthy; the end of its log:"
    tail -20 "$work/broker.log" >&2
    exit 1
}

# postmaster.pid: line 1 pid, line 4 port, line 5 folder of the socket.
find_postgres() {
    pg_file=$(find "$data" -maxdepth 4 -name postmaster.pid 2>/dev/null | head -1)
    pg_pid=0
    if [ -z "$pg_file" ]; then
        say "no PostgreSQL below $data: WAL and the raw limit are not measured"
        return 1
    fi
    pg_pid=$(sed -n 1p "$pg_file")
    export PGHOST PGPORT PGUSER PGDATABASE
    PGPORT=$(sed -n 4p "$pg_file")
    PGHOST=$(sed -n 5p "$pg_file")
    PGDATABASE=postgres
    local owner
    owner=$(stat -c %U "$pg_file")
    for PGUSER in ${BENCH_PG_USER:-} postgres queen "$owner"; do
        as_owner=()
        sql 'select 1' >/dev/null 2>&1 && return 0
        as_owner=(runuser -u "$owner" --)
        sql 'select 1' >/dev/null 2>&1 && return 0
    done
    say "PostgreSQL at $PGHOST does not let us in: WAL and the raw limit are not measured"
    return 1
}

sql() { "${as_owner[@]}" psql -XAtqc "$1"; }

# Conditions of the standard table.  Takes effect with the restart that follows.
tune_postgres() {
    sql "alter system set shared_buffers = '1GB'" || say "shared_buffers stays as it is"
}

run_raw() { # connections, rows a transaction
    [ "$has_pg" = yes ] || return 0
    if [ ! -x "$rawcopy" ]; then
        say "no $rawcopy: the raw limit is not measured"
        return 0
    fi
    say "--- raw limit, $1 connections, $2 rows a transaction"
    "${as_owner[@]}" "$rawcopy" --connections "$1" --rows "$2" --payload 100 --seconds "$raw_seconds" |
        tee -a "$raw" >&2
}

run_row() { # name, options of queen bench ...
    local name=$1 code
    shift
    case " $rows " in *" $name "*) ;; *) return 0 ;; esac
    local probe=()
    [ "$has_pg" = yes ] && [ "$name" != I ] &&
        probe=(--probe "${as_owner[*]} psql -XAtqc \"select pg_current_wal_insert_lsn() - '0/0'::pg_lsn\"")
    say "--- $name"
    "$queen" bench --url "$url" --pid "$broker" --pg-pid "$pg_pid" --label "$name" --json "$lines" \
        --duration "$seconds" "${probe[@]}" "$@" >&2
    code=$?
    if [ $code -ne 0 ]; then
        say "$name ended with $code"
        failed=1
    fi
}

scaled() { $python -c "print(max(1000, int($1 * $seconds / 10)))"; }

ulimit -n "$(ulimit -Hn)" || say "the limit of open files stays at $(ulimit -n)"
raw_seconds=$($python -c "print(min(5, $seconds))")
start_broker
has_pg=no
if find_postgres; then
    has_pg=yes
    tune_postgres
    stop_broker
    start_broker
    find_postgres || has_pg=no
fi
pg_version=$([ $has_pg = yes ] && sql 'show server_version')

run_raw 2 100
run_row A1 -w push -c 1
run_row A2 -w push -c 16
run_row A3 -w push -c 64
run_row A4 -w push -c 256
run_row A6 -w push -c 16 -b 100
run_row A7 -w push -c 16 -b 100 --spread
run_row A8 -w push -c 8 -b 1000
run_row A9 -w push -c 64 -p 10000
run_raw 8 100
run_row B1 -w pop -c 8 -B 100 -F "$(scaled 1000000)"
run_row B2 -w pop -c 64 -B 1 -F "$(scaled 200000)"
run_row B3 -w popack -c 8 -B 100 -F "$(scaled 500000)"
run_row C1 -w e2e -r 200
run_row C2 -w e2e -r 200 --ack
run_row C4 -w e2e
run_row C5 -w e2e -b 10
run_row D1 -w pop -g 10 -c 20 -F "$(scaled 100000)"
run_row D2 -w fanout -g 10 -C 20 -r 200
run_row E1 -w pop -c 8 -p 10000 -F "$(scaled 200000)"
run_row E2 -w pop -c 8 -p 100000 -P 50 -F "$(scaled 200000)" # two messages in each partition
run_row P -w e2e -c 8 -C 8 -b 100 --ack
run_row W1 -w popack -m 2000 -K -p 1 -c 64 -B 1 -F "$(scaled 200000)"
run_row W1o -w popack -m 2000 -c 64 -B 1 -F "$(scaled 200000)" # the same on an ordered queue of 100 partitions
run_row W2 -w popack -m 2000 -K -p 1 -c 8 -B 100 -F "$(scaled 500000)"
run_row W3 -w popack -m 2000 -K -p 1 -c 500 -B 1 -H 100 -F "$(scaled 100000)"
run_row W4 -w e2e -K -p 1 -C 16 -r 200 --ack
while read -r name partitions; do
    run_row "$name" -w push -c 16 -b 100 --spread -p "$partitions"
    run_row "$name" -w pop -c 8 -P 50 -p "$partitions" -F $((partitions > 100000 ? 2 * partitions : 200000)) -d 300
done <<'END'
N1 1
N100 100
N10k 10000
N100k 100000
N1M 1000000
END
while read -r name backlog; do
    run_row "$name" -w pop -c 8 -F "$backlog" -d 300
done <<'END'
K1k 1000
K10k 10000
K100k 100000
K1M 1000000
K10M 10000000
K100M 100000000
END
while read -r name backlog; do
    run_row "$name" -w popack -m 2000 -K -p 1 -c 8 -B 100 -F "$backlog" -d 300
done <<'END'
V10k 10000
V1M 1000000
V10M 10000000
END
run_raw 2 1000
# The cost of security: row A3 with an API key, with a token, and with TLS and the key.
case " $rows " in
*" S"[123]" "*)
    stop_broker
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$work/tls.key" -out "$work/tls.pem" 2>>"$work/broker.log"
    key=$("$queen" init "$work/admin.key" | $python -c 'import json, sys; print(json.load(sys.stdin)["key"])')
    token=$(PYTHONPATH=$root/tests/support $python -c 'import time, tokens; print(tokens.token(exp=int(time.time()) + 86400))')
    secret=$(PYTHONPATH=$root/tests/support $python -c 'import tokens; print(tokens.SECRET)')
    broker_settings=(QUEEN_ADMIN_KEY_FILE="$work/admin.key" JWT_ENABLED=true JWT_SECRET="$secret"
        QUEEN_TLS_CERT="$work/tls.pem" QUEEN_TLS_KEY="$work/tls.key" QUEEN_TLS_PORT=$((port + 1)))
    start_broker
    [ $has_pg = yes ] && { find_postgres || has_pg=no; }
    QUEEN_TOKEN=$key run_row S1 -w push -c 64
    QUEEN_TOKEN=$token run_row S2 -w push -c 64
    plain=$url
    url=https://localhost:$((port + 1))
    QUEEN_TOKEN=$key run_row S3 -w push -c 64 --ca-file "$work/tls.pem"
    url=$plain
    broker_settings=()
    ;;
esac
case " $rows " in
*" I "*)
    stop_broker # its memory before the queues must not be that of the rows above
    broker_settings=(QUEEN_MAX_CONNECTIONS_PER_ADDRESS=15000) # all consumers have one address
    start_broker
    broker_settings=()
    [ $has_pg = yes ] && { find_postgres || has_pg=no; }
    run_row I -w idle -Q 10000 -C 10000 --wait-ms 120000 -W 20
    ;;
esac

mkdir -p "$results"
commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
[ -z "$(git -C "$root" status --porcelain -- lib broker cli client bench 2>/dev/null)" ] || commit=$commit-dirty
out=$results/$(date -u +%Y-%m-%dT%H%M)-$commit
$python "$root/bench/table.py" --rows "$lines" --raw "$raw" --commit "$commit" --seconds "$seconds" \
    --pg-version "$pg_version" --json "$out.json" --markdown "$out.md" || exit 1
say "written: $out.json $out.md"
exit $failed
