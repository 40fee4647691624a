"""Loses machines: kills a server with kill -9, deletes its folder, and restores it from its archive, again and again.

    pip install psycopg
    ONRUSH_BIN=target/debug/onrush python clients/archive/lose.py --losses 20
    ONRUSH_BIN=target/debug/onrush python clients/archive/lose.py --losses 20 --store s3://bucket/prefix

Half of the clients wait for the archive (synchronous_commit = remote_write), the others do not. After each loss every row
that was acknowledged to the former must be there, and of each client the first rows without a gap; of the latter it
prints how many were lost, and how old the first of them was. It prints how long it took until the successor took an
insert.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import psycopg

sys.path.append(str(pathlib.Path(__file__).parent.parent / "python"))


class Node:
    """`onrush serve` with an archive."""

    def __init__(self, folder, store, seconds):
        self.folder, self.store = folder, store
        command = [os.environ["ONRUSH_BIN"], "serve", str(folder), "--listen", "127.0.0.1:0"]
        command += ["--archive", store, "--archive-seconds", str(seconds), "--leaf-memory", "256MiB"]
        self.messages = open(f"{folder}.messages", "w")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.messages, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.port = int(line.split()[-1].rsplit(":", 1)[1])

    def connect(self):
        return psycopg.connect(host="127.0.0.1", port=self.port, user="test", dbname="onrush", autocommit=True)

    def lose(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder)


class Client(threading.Thread):
    """Inserts row by row until the server is gone."""

    def __init__(self, node, number, waits, first):
        super().__init__(daemon=True)
        self.node, self.number, self.waits, self.next = node, number, waits, first
        self.acknowledged = []

    def run(self):
        try:
            with self.node.connect() as connection:
                connection.execute(f"SET synchronous_commit = {'remote_write' if self.waits else 'on'}")
                while True:
                    row = self.number * 10**12 + self.next
                    connection.execute("INSERT INTO events VALUES (%s, %s)", [row, "n" * (self.next % 300)])
                    self.acknowledged.append((self.next, time.monotonic()))
                    self.next += 1
        except psycopg.Error:
            return


def rows_of(connection, number):
    below, above = number * 10**12, (number + 1) * 10**12
    query = "SELECT count(*), max(id) FROM events WHERE id >= %s AND id < %s"
    count, highest = connection.execute(query, [below, above]).fetchone()
    return count, (highest - below + 1 if highest is not None else 0)


def wait_for_archive(node):
    with node.connect() as connection:
        while True:
            state, cause = connection.execute("SELECT state, cause FROM onrush.archive").fetchone()
            if state == "running":
                return
            if state == "fenced":
                raise SystemExit(cause)
            time.sleep(0.02)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--losses", type=int, default=20)
    arguments.add_argument("--clients", type=int, default=8)
    arguments.add_argument("--seconds", type=float, default=1.0, help="archive_seconds")
    arguments.add_argument("--run", type=float, default=4.0, help="mean seconds until a loss")
    arguments.add_argument("--store")
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    arguments = arguments.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    lost_rows, lost_seconds, restore_seconds, back_seconds, waiting = [], [], [], [], [0, 0.0]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        store = arguments.store or f"file://{scratch}/store"
        node = Node(scratch / "node-0", store, arguments.seconds)
        with node.connect() as connection:
            connection.execute("CREATE TABLE events (id bigint PRIMARY KEY, note text)")
        firsts = [0] * arguments.clients
        for loss in range(1, arguments.losses + 1):
            wait_for_archive(node)
            clients = [Client(node, number, number % 2 == 0, first) for number, first in enumerate(firsts)]
            for client in clients:
                client.start()
            began = time.monotonic()
            time.sleep(1 + chance.expovariate(1 / arguments.run))
            with node.connect() as connection:
                history = connection.execute("SELECT history FROM onrush.archive").fetchone()[0]
            died = time.monotonic()
            node.lose()
            for client in clients:
                client.join()
            waiting[0] += sum(len(client.acknowledged) for client in clients if client.waits)
            waiting[1] += died - began
            folder = scratch / f"node-{loss}"
            begun = time.monotonic()
            command = [os.environ["ONRUSH_BIN"], "restore", f"{store}/{history}", "--into", str(folder), "--json"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            restore_seconds.append(time.monotonic() - begun)
            report = json.loads(done.stdout)
            node = Node(folder, store, arguments.seconds)
            with node.connect() as connection:
                connection.execute("INSERT INTO events VALUES (%s, '')", [10**18 + loss])
                back_seconds.append(time.monotonic() - begun)
                for client in clients:
                    count, end = rows_of(connection, client.number)
                    if count != end:
                        raise SystemExit(f"client {client.number} has {count} rows up to its row {end}: a gap")
                    acknowledged = [row for row, _ in client.acknowledged]
                    if end > client.next + 1:
                        raise SystemExit(f"client {client.number}: row {end} was never sent")
                    lost = [at for row, at in client.acknowledged if row >= end]
                    if client.waits and lost:
                        raise SystemExit(f"client {client.number}: {len(lost)} rows that were archived are lost")
                    if lost:
                        lost_rows.append(len(lost))
                        lost_seconds.append(died - lost[0])
                    firsts[client.number] = end
                    assert not acknowledged or acknowledged[-1] < client.next
            total = sum(firsts)
            print(
                f"loss {loss}: {total} rows; restored in {restore_seconds[-1]:.2f} s ({report['log_objects']} objects, "
                f"{report['log_bytes'] / 1e6:.1f} MB of log), an insert after {back_seconds[-1]:.2f} s; "
                f"lost at most {max(lost_seconds[-arguments.clients:], default=0):.2f} s",
                flush=True,
            )
        node.lose()
    print(
        f"{arguments.losses} losses: of clients that wait 0 rows; of the others at most {max(lost_rows, default=0)} rows "
        f"of a client, the oldest {max(lost_seconds, default=0):.2f} s old. An insert after "
        f"{sorted(back_seconds)[len(back_seconds) // 2]:.2f} s, at most {max(back_seconds):.2f} s. Clients that wait: "
        f"{waiting[0] / waiting[1]:.0f} rows/s"
    )


if __name__ == "__main__":
    main()
