#!/usr/bin/env bash
# Onrush and PostgreSQL under sysbench's own workloads, in turn, on the same machine in the same run.
#
#   clients/sysbench/compare.sh [ROUNDS [SECONDS [THREADS [ROWS]]]]
#
# 3 rounds of 5 seconds each, 4 threads and 100,000 rows in each of two tables where nothing is said. Needs sysbench
# (Debian: sysbench); what else, and how the servers are set up, says clients/servers.sh. Commits are durable. Prints
# medians of transactions a second, lowest and highest.
set -euo pipefail

rounds=${1:-3}
seconds=${2:-5}
threads=${3:-4}
rows=${4:-100000}
needed=sysbench
. "$(dirname "$0")/../servers.sh"

workloads="oltp_insert oltp_write_only oltp_read_write oltp_read_only oltp_point_select oltp_update_index
    oltp_update_non_index oltp_delete select_random_points select_random_ranges"

# bench SERVER WORKLOAD COMMAND: as sysbench says it
bench() {
    local tables=2
    case $2 in select_*) tables=1 ;; esac
    sysbench "$2" --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port="$(port_of "$1")" --pgsql-user=bench \
        --pgsql-db="$(database_of "$1")" --tables="$tables" --table-size="$rows" --threads="$threads" \
        --time="$seconds" "$3" 2>&1 || { echo "$1: $2 $3 failed" >&2; exit 1; }
}
for round in $(seq "$rounds"); do
    for server in postgresql onrush; do
        echo "round $round of $rounds: $server" >&2
        for workload in $workloads; do
            bench "$server" "$workload" prepare >/dev/null
            settle
            bench "$server" "$workload" run >"$folder/said"
            awk -v c="$workload" -v s="$server" '/transactions:/ { gsub(/\(/, "", $3); print c, s, $3 }' \
                "$folder/said" >>"$folder/values"
            bench "$server" "$workload" cleanup >/dev/null
        done
    done
done
show
