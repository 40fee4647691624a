"""Several nodes: clients that know all of them, and PyIceberg, which reads what they have brought into one lake."""

import datetime as dt
import uuid
from decimal import Decimal

import psycopg
import pytest
from conftest import Server
from pyiceberg.catalog.sql import SqlCatalog

NODES = (1, 2, 3)


@pytest.fixture
def nodes(tmp_path):
    """Three nodes of one lake, whose catalogue the first one keeps."""
    started = [Server(tmp_path / f"node-{node}", ["--node", str(node)]) for node in NODES]
    config = tmp_path / "lake.toml"
    config.write_text(
        f"""[prod]
kind = "sql"
uri = "postgres://test@127.0.0.1:{started[0].port}/onrush"
warehouse = "file://{tmp_path}/lake"
"""
    )
    for server in started:
        server.kill()
        server.arguments += ["--lake", str(config)]
        server.start()
    yield started
    for server in started:
        server.end()


def connect(server):
    return psycopg.connect(host="127.0.0.1", port=server.port, user="test", dbname="onrush", autocommit=True)


def lake_of(nodes, tmp_path):
    uri = f"postgresql+psycopg://test@127.0.0.1:{nodes[0].port}/onrush"
    return SqlCatalog("prod", uri=uri, warehouse=f"file://{tmp_path}/lake")


def test_a_client_that_knows_all_nodes_finds_one_that_is_there(nodes):
    hosts = ",".join("127.0.0.1" for _ in nodes)
    ports = ",".join(str(server.port) for server in nodes)
    settings = f"host={hosts} port={ports} user=test dbname=onrush load_balance_hosts=random"

    def ports_met(count):
        met = set()
        for _ in range(count):
            with psycopg.connect(settings) as connection:
                met.add(connection.info.port)
        return met

    # That one of three is never met in a hundred tries comes once in 10 to the 17th.
    assert ports_met(100) == {server.port for server in nodes}
    nodes[1].kill()
    assert ports_met(100) == {nodes[0].port, nodes[2].port}
    nodes[1].start()


def test_rows_of_all_nodes_come_into_one_table_once_each(nodes, tmp_path):
    kept = []
    for server in nodes:
        with connect(server) as connection:
            connection.execute("CREATE TABLE events (id bigint PRIMARY KEY DEFAULT node_offset(), note text)")
            connection.execute("CALL onrush.lake_attach('events', 'prod.shop.events', 3600)")
    for note in ("first", "second"):
        for server in nodes:
            with connect(server) as connection:
                insert = "INSERT INTO events (note) SELECT %s FROM generate_series(1, 1000) RETURNING id"
                kept += [(row[0], note) for row in connection.execute(insert, [note])]
        # Killed before anything was asked for, and started again.
        nodes[2].kill()
        nodes[2].start()
        for server in nodes:
            with connect(server) as connection:
                connection.execute("CALL onrush.lake_flush('events')")
    table = lake_of(nodes, tmp_path).load_table("shop.events")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["note"]) for row in rows) == sorted(kept)
    assert {row["_node"] for row in rows} == set(NODES)
    for node in NODES:
        own = sorted((row for row in rows if row["_node"] == node), key=lambda row: row["_lsn"])
        # The second transaction stands behind the first.
        assert [row["note"] for row in own] == ["first"] * 1000 + ["second"] * 1000
        assert {row["id"] // 10**14 for row in own} == {node}


def test_values_of_every_type_are_what_they_were(nodes, tmp_path):
    with connect(nodes[0]) as connection:
        connection.execute(
            """CREATE TABLE every_type (id int PRIMARY KEY, a_bool boolean, a_small smallint, a_big bigint,
            a_real real, a_double double precision, a_numeric numeric(20,6), a_char char(5), a_varchar varchar(20),
            a_text text, some_bytes bytea, a_uuid uuid, a_date date, a_time time, a_timestamp timestamp,
            a_moment timestamptz, a_json jsonb)"""
        )
        values = (
            True,
            -(2**15),
            -(2**63),
            0.5,
            -1e100,
            Decimal("-12345678901234.567890"),
            "abc",
            "vär",
            "täxt 'quoted' \\ 😀",
            b"\x00\xff",
            uuid.UUID("01900000-0000-7000-8000-00000000abcd"),
            dt.date(1, 1, 1),
            dt.time(23, 59, 59, 999_999),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.timezone.utc),
            '{"a": [1, null]}',
        )
        places = ", ".join(["%s"] * len(values))
        connection.execute(f"INSERT INTO every_type VALUES (1, {places})", values)
        connection.execute("INSERT INTO every_type (id) VALUES (2)")
        connection.execute("CALL onrush.lake_attach('every_type', 'prod.shop.every_type', 3600)")
        connection.execute("CALL onrush.lake_flush('every_type')")
    rows = lake_of(nodes, tmp_path).load_table("shop.every_type").scan().to_arrow().to_pylist()
    rows = {row["id"]: list(row.values())[1:17] for row in rows}
    assert tuple(rows[1]) == values
    assert rows[2] == [None] * 16
