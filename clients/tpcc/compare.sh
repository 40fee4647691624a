#!/usr/bin/env bash
# Onrush and PostgreSQL under TPC-C as go-tpc has it, in turn, on the same machine in the same run.
#
#   clients/tpcc/compare.sh [ROUNDS [SECONDS [THREADS [WAREHOUSES]]]]
#
# 3 rounds of 20 seconds each, 8 threads and 4 warehouses where nothing is said. Needs Go, by which go-tpc is built into
# target/tmp/tpcc; what else, and how the servers are set up, says clients/servers.sh. Commits are durable. Each server's
# tables are checked for consistency by go-tpc after they are filled and after all rounds. Prints medians of
# transactions a second and of new orders a minute, lowest and highest; fails where a transaction or a check does.
set -euo pipefail

rounds=${1:-3}
seconds=${2:-20}
threads=${3:-8}
warehouses=${4:-4}
version=v1.0.7
root=$(cd "$(dirname "$0")/../.." && pwd)
programs_of_go=$root/target/tmp/tpcc/$version
[ -x "$programs_of_go/go-tpc" ] ||
    GOBIN=$programs_of_go go install "github.com/pingcap/go-tpc/cmd/go-tpc@$version"
PATH="$programs_of_go:$PATH"
needed=go-tpc
. "$root/clients/servers.sh"

# bench SERVER COMMAND [FLAG ...]: as go-tpc says it
bench() {
    go-tpc tpcc -d postgres -H 127.0.0.1 -P "$(port_of "$1")" -U bench -D "$(database_of "$1")" \
        --conn-params sslmode=disable --warehouses "$warehouses" -T "$threads" "${@:2}" >"$folder/said" 2>&1 ||
        { cat "$folder/said" >&2; echo "$1: $2 failed" >&2; exit 1; }
}
for server in postgresql onrush; do
    echo "$server: $warehouses warehouses are filled and checked" >&2
    began=$EPOCHREALTIME
    bench "$server" prepare
    awk -v a="$began" -v b="$EPOCHREALTIME" -v s="$server" -v w="$warehouses" \
        'BEGIN { print "warehouses-filled-an-hour", s, w * 3600 / (b - a) }' >>"$folder/values"
    bench "$server" check --check-all
done
for round in $(seq "$rounds"); do
    for server in postgresql onrush; do
        echo "round $round of $rounds: $server" >&2
        settle
        bench "$server" run --time "${seconds}s"
        awk -v s="$server" '
            /^\[Summary\]/ && !/_ERR/ { for (i = 1; i < NF; i++) if ($i == "Count:") count += $(i + 1) }
            /^\[Summary\].*_ERR/ { for (i = 1; i < NF; i++) if ($i == "Count:") failed += $(i + 1) }
            /^tpmC:/ { gsub(",", "", $2); orders = $2 }
            END { print "new-orders-a-minute", s, orders; print "failed-transactions", s, failed + 0 }' \
            "$folder/said" >>"$folder/values"
        grep -E "^\[Summary\]|^tpmC" "$folder/said" >&2
    done
done
for server in postgresql onrush; do
    bench "$server" check --check-all
    echo "$server: consistent" >&2
done
show
