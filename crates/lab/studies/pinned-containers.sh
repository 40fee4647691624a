#!/bin/sh
# The study `pinned` with containers: one instance of Onrush for each processor, each in a container tied
# to it; 250,000 rows from one session into each, delayed durability. Prints the rate of each and the sum.
#
#   pinned-containers.sh ONRUSH FOLDER [ROWS]
#
# ONRUSH is the built command, FOLDER a new folder on the device to be measured. The image must have a C
# library at least as new as that of the machine that built the command.
#
#   CONTAINER_ENGINE  docker, or podman, or another with the same flags      [docker]
#   IMAGE             where the command runs                                 [debian:stable-slim]
#   CPUS              how many containers, on processors 0 to CPUS - 1       [all]
set -eu

engine=${CONTAINER_ENGINE:-docker}
image=${IMAGE:-debian:stable-slim}
cpus=${CPUS:-$(nproc)}
if [ $# -lt 2 ]; then
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
onrush=$(realpath "$1")
rows=${3:-250000}
command -v "$engine" > /dev/null || { echo "$engine is not installed; set CONTAINER_ENGINE" >&2; exit 1; }
mkdir "$2"
folder=$(realpath "$2")

pids=
for cpu in $(seq 0 $((cpus - 1))); do
    mkdir "$folder/instance-$cpu"
    "$engine" run --rm --cpuset-cpus "$cpu" \
        -v "$folder/instance-$cpu:/data" -v "$onrush:/usr/local/bin/onrush:ro" "$image" \
        onrush lab insert --rows "$rows" --sessions 1 --durability delayed \
        --dir /data/db --json --quiet > "$folder/instance-$cpu.json" &
    pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
[ $failed = 0 ] || { echo "a container failed, see above" >&2; exit 1; }

grep -h '"rows_per_s":' "$folder"/instance-*.json | tr -d ' ,' | cut -d: -f2 |
    awk '{ printf "instance %d: %.0f rows/s\n", NR, $1; sum += $1 } END { printf "sum: %.0f rows/s\n", sum }'
