# For scripts that measure Onrush and PostgreSQL in turn, on the same machine in the same run; to be sourced, with the
# programs that it needs besides in `needed`. Starts both servers and says how they are spoken to.
#
# Needs PostgreSQL's programs (Debian: postgresql, postgresql-contrib) and a release build of `onrush`; ONRUSH_BIN
# names another one. Databases lie in a new folder below the present one and are removed. PostgreSQL is set up as the lab
# sets it up (crates/lab/src/target/server/postgresql), Onrush by default, with its memory touched at the start; both
# have 1 GiB of it for tables.

onrush=${ONRUSH_BIN:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../target/release/onrush}
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
export PATH="${programs:-/nowhere}:$PATH"
for program in "$onrush" initdb postgres psql $needed; do
    command -v "$program" >/dev/null || { echo "$program is not there: see the head of $0" >&2; exit 1; }
done

folder=$(mktemp -d "$PWD/compared-XXXXXX")
chmod 755 "$folder"
onrush_pid=
finish() {
    [ -z "$onrush_pid" ] || kill "$onrush_pid" 2>/dev/null || true
    [ ! -e "$folder/pg/data/postmaster.pid" ] || as_owner "$(command -v pg_ctl)" -D "$folder/pg/data" -m fast -s stop || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# PostgreSQL refuses to run as root.
as_owner() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
mkdir "$folder/pg"
[ "$(id -u)" != 0 ] || chown postgres "$folder/pg"
as_owner "$(command -v initdb)" -D "$folder/pg/data" -U bench -A trust -E UTF8 --locale=C >/dev/null
as_owner "$(command -v postgres)" -D "$folder/pg/data" -p 55432 -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories="$folder/pg" -c shared_buffers=1GB -c wal_level=minimal -c max_wal_senders=0 \
    -c wal_buffers=64MB -c min_wal_size=1GB -c max_wal_size=4GB -c checkpoint_timeout=15min \
    -c autovacuum=off -c jit=off -c max_connections=200 -c max_parallel_workers_per_gather=0 \
    >"$folder/pg/log" 2>&1 &
"$onrush" serve "$folder/onrush" --listen 127.0.0.1:55433 --prefault-leaf-memory on >"$folder/log" 2>&1 &
onrush_pid=$!

port_of() { [ "$1" = postgresql ] && echo 55432 || echo 55433; }
database_of() { [ "$1" = postgresql ] && echo postgres || echo onrush; }
sql() { psql -qAtX -h 127.0.0.1 -p "$(port_of "$1")" -U bench -d "$(database_of "$1")" -v ON_ERROR_STOP=1 "${@:2}"; }
for server in postgresql onrush; do
    for _ in $(seq 200); do sql "$server" -c "SELECT 1" >/dev/null 2>&1 && break; sleep 0.05; done
done

# What was loaded and is left to be written would be written while the other server waits for its syncs.
settle() {
    local each
    for each in postgresql onrush; do sql "$each" -c CHECKPOINT; done
    sync
}

# show: the medians of what "$folder/values" has, one line for each value: CASE SERVER VALUE
show() {
    values() { awk -v c="$1" -v s="$2" '$1 == c && $2 == s { print $3 }' "$folder/values" | sort -g; }
    median() { values "$@" | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
    range() { values "$@" | awk 'NR == 1 { first = $1 } END { printf "%.0f to %.0f", first, $1 }'; }
    printf '%-26s %12s %12s %7s   %-24s %s\n' "a second, medians of $rounds" postgresql onrush times "postgresql from to" "onrush from to"
    for case in $(awk '!seen[$1]++ { print $1 }' "$folder/values"); do
        p=$(median "$case" postgresql) o=$(median "$case" onrush)
        awk -v c="$case" -v p="$p" -v o="$o" -v pr="$(range "$case" postgresql)" -v or="$(range "$case" onrush)" \
            'BEGIN { printf "%-26s %12.0f %12.0f %7.2f   %-24s %s\n", c, p, o, o / p, pr, or }'
    done
}
