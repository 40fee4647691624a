"""Kills nodes of a lake with kill -9 in the middle of everything, again and again, and compares what PyIceberg reads with
what the clients were told.

    pip install -r clients/python/requirements.txt
    ONRUSH_BIN=target/debug/onrush python clients/lake/kill.py --kills 100

Three nodes drain a table each into one Iceberg table, a round each 0.1 s; the first one keeps the catalogue. A client of
each inserts a row a commit and writes down what was acknowledged. Every tenth kill, and at the end, all is brought into
the lake and compared: each acknowledged row once, none that was never sent, of each node its own.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import threading
import time

import psycopg
from pyiceberg.catalog.sql import SqlCatalog

sys.path.append(str(pathlib.Path(__file__).parent.parent / "python"))
from conftest import Server  # noqa: E402

NODES = (1, 2, 3)


class Client(threading.Thread):
    """Inserts row by row, and comes back when the server does."""

    def __init__(self, server, node):
        super().__init__(daemon=True)
        self.server, self.node = server, node
        self.sent, self.acknowledged = set(), set()
        self.is_ended = False
        self.pause = threading.Lock()

    def run(self):
        number = 0
        while not self.is_ended:
            try:
                with connect(self.server) as connection:
                    while not self.is_ended:
                        with self.pause:
                            number += 1
                            row = self.node * 10**14 + number
                            self.sent.add(row)
                            connection.execute("INSERT INTO events VALUES (%s, %s)", [row, "n" * (number % 500)])
                            self.acknowledged.add(row)
            except psycopg.Error:
                time.sleep(0.02)


def connect(server):
    settings = dict(host="127.0.0.1", port=server.port, user="test", dbname="onrush")
    return psycopg.connect(**settings, autocommit=True, connect_timeout=5)


def bring(server):
    """Everything durable is in the lake; the catalogue may have to come back first."""
    for _ in range(100):
        try:
            with connect(server) as connection:
                connection.execute("CALL onrush.lake_flush('events')")
                return
        except (psycopg.errors.ConnectionFailure, psycopg.OperationalError):
            time.sleep(0.1)
    with connect(server) as connection:
        raise SystemExit(f"nothing comes into the lake: {connection.execute('TABLE onrush.lake').fetchall()}")


def compare(clients, uri, warehouse):
    # Its connections end with the server that keeps the catalogue.
    lake = SqlCatalog("prod", uri=f"postgresql+psycopg://test@{uri}", warehouse=warehouse)
    rows = lake.load_table("shop.events").scan(selected_fields=("id", "_node")).to_arrow().to_pylist()
    for client in clients:
        own = [row["id"] for row in rows if row["_node"] == client.node]
        doubled, lost = len(own) - len(set(own)), client.acknowledged - set(own)
        unknown = set(own) - client.sent
        if doubled or lost or unknown:
            raise SystemExit(f"node {client.node}: {doubled} doubled, {len(lost)} lost, {len(unknown)} never sent")
    return len(rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--kills", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    arguments = arguments.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        servers = [Server(folder / f"node-{node}", ["--node", str(node)]) for node in NODES]
        config = folder / "lake.toml"
        uri = f"127.0.0.1:{servers[0].port}/onrush"
        warehouse = f"file://{folder}/lake"
        config.write_text(f'[prod]\nkind = "sql"\nuri = "postgres://test@{uri}"\nwarehouse = "{warehouse}"\n')
        try:
            for server in servers:
                server.kill()
                server.arguments += ["--lake", str(config)]
                server.start()
            for server in servers:
                with connect(server) as connection:
                    connection.execute("CREATE TABLE events (id bigint PRIMARY KEY, note text)")
                    connection.execute("CALL onrush.lake_attach('events', 'prod.shop.events', 0.1)")
            clients = [Client(server, node) for server, node in zip(servers, NODES)]
            for client in clients:
                client.start()
            for kill in range(1, arguments.kills + 1):
                time.sleep(chance.expovariate(4))
                server = chance.choice(servers)
                server.kill()
                time.sleep(chance.expovariate(20))
                server.start()
                if kill % 10 == 0 or kill == arguments.kills:
                    # Nobody inserts while it is counted.
                    for client in clients:
                        client.pause.acquire()
                    for server in servers:
                        bring(server)
                    print(f"{kill} kills: {compare(clients, uri, warehouse)} rows, each once", flush=True)
                    for client in clients:
                        client.pause.release()
            for client in clients:
                client.is_ended = True
            for client in clients:
                client.join()
        finally:
            for server in servers:
                server.end()


if __name__ == "__main__":
    main()
