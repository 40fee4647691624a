//! `lake.<table>` has each row once, whichever side it is on, with the value that the table shows.

use tokio::net::{TcpListener, TcpStream};

use crate::common::{World, code};
use crate::lake_world::{EVENTS, Lake, attach, flush, one, refused, shown};

#[tokio::test(flavor = "multi_thread")]
async fn all_rows_are_there_before_between_and_after_rounds() {
    let lake = Lake::new();
    let (seven, eight) = (lake.node(7), lake.node(8));
    let (client, other) = (seven.client().await, eight.client().await);
    for client in [&client, &other] {
        client.batch_execute(EVENTS).await.unwrap();
    }
    client.batch_execute("INSERT INTO events VALUES (1, 'a', 'one')").await.unwrap();
    attach(&client, "events").await;
    let all = "SELECT id, kind, note, _node FROM lake.events ORDER BY id";
    assert_eq!(shown(&client, all).await, ["1|a  |one|7"]);
    flush(&client, "events").await;
    assert_eq!(shown(&client, all).await, ["1|a  |one|7"]);

    // The other node's rows come with its rounds, its own rows at once.
    attach(&other, "events").await;
    other.batch_execute("INSERT INTO events VALUES (10, 'b', 'ten')").await.unwrap();
    client.batch_execute("INSERT INTO events VALUES (2, NULL, NULL)").await.unwrap();
    assert_eq!(shown(&client, all).await, ["1|a  |one|7", "2|NULL|NULL|7"]);
    assert_eq!(shown(&other, all).await, ["1|a  |one|7", "10|b  |ten|8"]);
    flush(&other, "events").await;
    assert_eq!(shown(&client, all).await, ["1|a  |one|7", "2|NULL|NULL|7", "10|b  |ten|8"]);
    flush(&client, "events").await;
    for client in [&client, &other] {
        assert_eq!(shown(client, all).await, ["1|a  |one|7", "2|NULL|NULL|7", "10|b  |ten|8"]);
    }
    // What parts them is told, a row a node.
    let cut = shown(&client, "CALL onrush.lake_cut('events')").await;
    assert_eq!(cut.len(), 2, "{cut:?}");
    assert!(cut[0].contains("|7|") && cut[1].contains("|8|"), "{cut:?}");
    let mark = one(&client, "SELECT mark_lsn FROM onrush.lake").await;
    assert_eq!(cut[0].split('|').nth(2), Some(mark.as_str()));
    client.batch_execute("INSERT INTO events VALUES (3, 'c', 'hot')").await.unwrap();
    let hot = format!("SELECT id FROM lake.events WHERE _node = 7 AND _lsn >= {mark}");
    assert_eq!(shown(&client, &hot).await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_joins_and_groups_see_both_sides() {
    let lake = Lake::new();
    let node = lake.node(7);
    let client = node.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    attach(&client, "events").await;
    for (from, to) in [(1, 1000), (1001, 2000), (2001, 2500)] {
        let insert = format!(
            "INSERT INTO events SELECT n, CASE n % 3 WHEN 0 THEN 'x' WHEN 1 THEN 'yy' END, 'note ' || n
             FROM generate_series({from}, {to}) AS n"
        );
        client.batch_execute(&insert).await.unwrap();
        if to != 2500 {
            flush(&client, "events").await;
        }
    }
    client
        .batch_execute(
            "CREATE TABLE names (kind char(3) PRIMARY KEY, name text);
             INSERT INTO names VALUES ('x', 'cross'), ('yy', 'why')",
        )
        .await
        .unwrap();
    for (condition, count) in [
        ("true", 2500),
        ("id = 17", 1),
        ("id IN (17, 1500, 2400, 9999)", 3),
        ("id BETWEEN 900 AND 1100", 201),
        ("id > 1990 AND id < 2010", 19),
        ("id = 2300", 1),
        ("kind = 'x'", 833),
        ("kind IS NULL", 833),
        ("note = 'note 2001'", 1),
        ("note LIKE 'note 2%'", 612),
        ("_node = 7", 2500),
        ("_node = 8", 0),
        ("_node <> 7", 0),
        ("_at > now() - interval '1 day'", 2500),
        ("_at <= now() - interval '1 day'", 0),
        ("_at BETWEEN '2020-01-01' AND '2021-01-01'", 0),
        ("_lsn < 0", 0),
        ("id % 2 = 0 AND kind = 'yy'", 417),
    ] {
        let query =
            format!("SELECT count(*), count(DISTINCT id) FROM lake.events WHERE {condition}");
        assert_eq!(one(&client, &query).await, format!("{count}|{count}"), "{condition}");
        if !condition.contains('_') {
            let local = query.replace("lake.events", "events");
            assert_eq!(one(&client, &local).await, format!("{count}|{count}"), "{condition}");
        }
    }
    let pairs = [
        "SELECT kind, count(*), min(id), max(note) FROM lake.events GROUP BY kind ORDER BY kind",
        "SELECT name, sum(id) FROM lake.events JOIN names USING (kind) GROUP BY name ORDER BY name",
        "SELECT id, note FROM lake.events ORDER BY id DESC LIMIT 7",
        "SELECT id FROM lake.events ORDER BY id OFFSET 1995 LIMIT 10",
        "SELECT count(*) FROM lake.events a JOIN lake.events b ON a.id = b.id + 1",
        "SELECT avg(id), count(kind) FROM lake.events WHERE id > (SELECT avg(id) FROM lake.events)",
        "SELECT count(*) FROM lake.events e WHERE EXISTS (SELECT FROM names n WHERE n.kind = e.kind)",
        "SELECT octet_length(kind), octet_length(note) FROM lake.events WHERE id IN (3, 2403) ORDER BY id",
        "SELECT count(*) FROM lake.events WHERE id = ANY (ARRAY[1, 1001, 2001])",
        "WITH some AS (SELECT id FROM lake.events WHERE id > 1998) SELECT count(*), max(id) FROM some",
    ];
    for query in pairs {
        let local = query.replace("lake.events", "events");
        assert_eq!(shown(&client, query).await, shown(&client, &local).await, "{query}");
    }
    assert_eq!(shown(&client, "SELECT id FROM lake.events LIMIT 3").await.len(), 3);
    // Files whose keys are others are not read, nor leaves.
    let plan = shown(&client, "EXPLAIN SELECT * FROM lake.events WHERE id = 17").await.join("\n");
    assert!(plan.contains("OnrushColdScan: events, files=1"), "{plan}");
    let plan = shown(&client, "EXPLAIN SELECT * FROM lake.events WHERE _node = 8").await.join("\n");
    assert!(!plan.contains("OnrushHotScan"), "{plan}");
    // By a prepared statement, too, and each time anew.
    let prepared = "SELECT count(*) FROM lake.events WHERE id >= $1";
    let prepared = client.prepare(prepared).await.unwrap();
    let count = |row: tokio_postgres::Row| row.get::<_, i64>(0);
    assert_eq!(count(client.query_one(&prepared, &[&2001i64]).await.unwrap()), 500);
    client.batch_execute("INSERT INTO events VALUES (2501, 'z', 'new')").await.unwrap();
    flush(&client, "events").await;
    assert_eq!(count(client.query_one(&prepared, &[&2001i64]).await.unwrap()), 501);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_has_the_value_that_the_table_shows() {
    let lake = Lake::new();
    let node = lake.node(7);
    let client = node.client().await;
    client
        .batch_execute(
            "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
             CREATE TABLE kinds (id int PRIMARY KEY, b boolean, s smallint, i integer, l bigint, o oid,
                 r real, d double precision, n numeric(12,3), big numeric(28,0), c char(5), v varchar(7),
                 t text, na name, j json, jb jsonb, m mood, y bytea, u uuid, da date, ti time, ts timestamp,
                 tz timestamptz, ts3 timestamp(3))",
        )
        .await
        .unwrap();
    attach(&client, "kinds").await;
    let rows = [
        "(1, true, -32768, -2147483648, -9223372036854775808, 0, '-3.4028235e38', '1.7976931348623157e308',
          -123456789.123, -1234567890123456789012345678, '', '', '', '', 'null', 'null', 'sad', '',
          '00000000-0000-0000-0000-000000000000', '0001-01-01', '00:00', '0001-01-01 00:00:00',
          '0001-01-01 00:00:00+00', '2000-01-01 00:00:00.1234')",
        "(2, false, 32767, 2147483647, 9223372036854775807, 4294967295, 'NaN', '-Infinity',
          999999999.999, 9999999999999999999999999999, 'ab', 'abcdefg', 'grüße 🎉', 'a name',
          '{\"a\":  [1, 2.50]}', '{\"b\": 1, \"a\": {\"x\": null}}', 'happy', '\\x00ff10',
          'ffffffff-ffff-ffff-ffff-ffffffffffff', '9999-12-31', '23:59:59.999999',
          '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '1969-12-31 23:59:59.9996')",
        "(3, NULL, NULL, NULL, NULL, NULL, '-0', '-0', 0, 0, 'abcde', 'x ', ' t ', 'n', '[]', '[]', 'ok', NULL,
          NULL, NULL, NULL, NULL, NULL, NULL)",
        "(4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, NULL, NULL, NULL, NULL)",
    ];
    for row in rows {
        client.batch_execute(&format!("INSERT INTO kinds VALUES {row}")).await.unwrap();
    }
    let columns =
        "id, b, s, i, l, o, r, d, n, big, c, v, t, na, j, jb, m, y, u, da, ti, ts, tz, ts3";
    let queries = [
        format!("SELECT {columns} FROM kinds ORDER BY id"),
        "SELECT c || '|', length(c), jb -> 'a', j::text, m > 'sad', y || y, n + 1, na || 'x'
         FROM kinds ORDER BY id"
            .to_owned(),
        "SELECT id FROM kinds WHERE m > 'sad' ORDER BY id".to_owned(),
        "SELECT id FROM kinds WHERE m = 'happy'".to_owned(),
        "SELECT id FROM kinds WHERE c = 'ab'".to_owned(),
        "SELECT id FROM kinds WHERE d < 0 OR d > 1e307 OR r > 5 ORDER BY id".to_owned(),
        "SELECT id FROM kinds WHERE r = 0".to_owned(),
        "SELECT id FROM kinds WHERE n = 999999999.999".to_owned(),
        "SELECT id FROM kinds WHERE u = 'ffffffff-ffff-ffff-ffff-ffffffffffff'".to_owned(),
        "SELECT id FROM kinds WHERE o = 4294967295".to_owned(),
        "SELECT id FROM kinds WHERE s = 32767".to_owned(),
        "SELECT id FROM kinds WHERE b".to_owned(),
        "SELECT id FROM kinds WHERE y = '\\x00ff10'".to_owned(),
        "SELECT id FROM kinds WHERE da < '1000-01-01' OR ti = '23:59:59.999999' ORDER BY id".to_owned(),
        "SELECT id FROM kinds WHERE ts3 < '1980-01-01'".to_owned(),
        "SELECT id FROM kinds WHERE jb @> '{\"b\": 1}'".to_owned(),
        "SELECT m, count(*) FROM kinds GROUP BY m ORDER BY m".to_owned(),
        "SELECT pg_typeof(s), pg_typeof(o), pg_typeof(c), pg_typeof(m), pg_typeof(jb), pg_typeof(na) FROM kinds
         LIMIT 1"
            .to_owned(),
    ];
    // All hot, all cold, and half of each.
    for round in 0..3 {
        match round {
            0 => {}
            1 => flush(&client, "kinds").await,
            _ => {
                let rest = columns.trim_start_matches("id, ");
                let again = format!("INSERT INTO kinds SELECT id + 10, {rest} FROM kinds");
                client.batch_execute(&again).await.unwrap();
            }
        }
        for query in &queries {
            let lake = query.replace("FROM kinds", "FROM lake.kinds");
            let local = shown(&client, query).await;
            assert_eq!(shown(&client, &lake).await, local, "round {round}: {query}");
        }
    }
    // And in the binary format.
    let lake = client.query(&format!("SELECT {columns} FROM lake.kinds ORDER BY id"), &[]).await;
    let lake = lake.unwrap();
    let local = client.query(&queries[0], &[]).await.unwrap();
    assert_eq!(lake.len(), local.len());
    for (lake, local) in lake.iter().zip(&local) {
        assert_eq!(lake.columns().len(), local.columns().len());
        for (one, other) in lake.columns().iter().zip(local.columns()) {
            assert_eq!((one.name(), one.type_()), (other.name(), other.type_()));
        }
        assert_eq!(lake.get::<_, Option<&str>>("c"), local.get::<_, Option<&str>>("c"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_found_by_their_ids_whatever_they_are_called() {
    let lake = Lake::new();
    let node = lake.node(7);
    let client = node.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    attach(&client, "events").await;
    client
        .batch_execute("INSERT INTO events VALUES (1, 'a', 'old'), (2, 'b', NULL)")
        .await
        .unwrap();
    flush(&client, "events").await;
    // As other engines change a table: the file keeps the names that it was written with.
    let catalogue = lake.catalogue.client().await;
    let place = one(&catalogue, "SELECT metadata_location FROM iceberg_tables").await;
    let place = place.trim_start_matches("file://");
    let before = std::fs::read_to_string(place).unwrap();
    let (note, remark) = ("\"name\":\"note\"", "\"name\":\"remark\"");
    assert!(before.contains(note), "{before}");
    std::fs::write(place, before.replace(note, remark)).unwrap();
    let (found, message, _) = refused(&client, "SELECT note FROM lake.events WHERE id = 1").await;
    assert_eq!((found.as_str(), message.contains("note")), ("42804", true), "{message}");
    client.batch_execute("ALTER TABLE events RENAME COLUMN note TO remark").await.unwrap();
    let query = "SELECT id, remark FROM lake.events ORDER BY id";
    assert_eq!(shown(&client, query).await, ["1|old", "2|NULL"]);
    assert_eq!(shown(&client, "SELECT id FROM lake.events WHERE remark = 'old'").await, ["1"]);
    // A column that came later is NULL in older files.
    client.batch_execute("ALTER TABLE events ADD COLUMN extra int").await.unwrap();
    let field = "{\"id\":90,\"name\":\"extra\",\"required\":false,\"type\":\"int\"},{\"id\":3,";
    let after = before.replace(note, remark).replace("{\"id\":3,", field);
    let (head, tail) = after.split_once("\"last-column-id\":").unwrap();
    let (_, tail) = tail.split_once(',').unwrap();
    std::fs::write(place, format!("{head}\"last-column-id\":90,{tail}")).unwrap();
    client.batch_execute("INSERT INTO events VALUES (3, 'c', 'new', 5)").await.unwrap();
    let query = "SELECT id, remark, extra FROM lake.events ORDER BY id";
    assert_eq!(shown(&client, query).await, ["1|old|NULL", "2|NULL|NULL", "3|new|5"]);
    assert_eq!(shown(&client, "SELECT id FROM lake.events WHERE extra = 5").await, ["3"]);
    assert_eq!(shown(&client, "SELECT count(extra), count(*) FROM lake.events").await, ["1|3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_waits_for_the_catalogue_can_be_cancelled() {
    let lake = Lake::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let node = lake.node_by(7, address.port());
    let catalogue = lake.catalogue.address;
    let answering = tokio::spawn(async move {
        let mut clients = tokio::task::JoinSet::new();
        loop {
            let Ok((mut client, _)) = listener.accept().await else { return };
            clients.spawn(async move {
                let mut server = TcpStream::connect(catalogue).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let client = node.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    attach(&client, "events").await;
    flush(&client, "events").await;
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events").await, "0");
    answering.abort();
    let _ = answering.await;
    // From now on whoever comes is let in and told nothing.
    let silent = TcpListener::bind(address).await.unwrap();
    let token = client.cancel_token();
    let query = tokio::spawn(async move {
        let error = client.simple_query("SELECT count(*) FROM lake.events").await.unwrap_err();
        (code(&error), client)
    });
    let waiting = silent.accept().await.unwrap();
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    let (found, client) = query.await.unwrap();
    assert_eq!(found, "57014");
    drop(waiting);
    assert_eq!(one(&client, "SELECT count(*) FROM events").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_the_table_may_read_it_in_the_lake() {
    let lake = Lake::new();
    let node = lake.node(7);
    let client = node.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    client.batch_execute("CREATE ROLE anna LOGIN").await.unwrap();
    attach(&client, "events").await;
    client.batch_execute("SET ROLE anna").await.unwrap();
    for statement in [
        "SELECT * FROM lake.events",
        "CALL onrush.lake_cut('events')",
        "CALL onrush.lake_view('events', 'trino')",
    ] {
        assert_eq!(refused(&client, statement).await.0, "42501", "{statement}");
    }
    client
        .batch_execute("RESET ROLE; GRANT SELECT ON events TO anna; SET ROLE anna")
        .await
        .unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events").await, "0");
    shown(&client, "CALL onrush.lake_cut('events')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_says_why_and_what_to_do() {
    let mut lake = Lake::new();
    let node = lake.node(7);
    let client = node.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    for (statement, code, words) in [
        ("SELECT * FROM lake.events", "55000", "lake_attach"),
        ("SELECT * FROM lake.nothing", "42P01", "onrush.lake"),
        ("CALL onrush.lake_cut('events')", "55000", "lake_attach"),
        ("INSERT INTO lake.events VALUES (1)", "42P01", ""),
    ] {
        let (found, message, hint) = refused(&client, statement).await;
        assert_eq!(found, code, "{statement}: {message}");
        assert!(hint.contains(words), "{statement}: {hint}");
    }
    attach(&client, "events").await;
    client.batch_execute("INSERT INTO events VALUES (1, 'a', 'b')").await.unwrap();
    flush(&client, "events").await;
    let (found, message, hint) = refused(&client, "CALL onrush.lake_view('events', 'excel')").await;
    assert_eq!((found.as_str(), hint.contains("trino")), ("22023", true), "{message}");
    let statement = one(&client, "CALL onrush.lake_view('events', 'trino')").await;
    for words in
        ["\"prod\".\"shop\".\"events\" FOR VERSION AS OF", "node_7.system.query", "_lsn >="]
    {
        assert!(statement.contains(words), "{statement}");
    }
    let hot = statement.split("query => '").nth(1).unwrap().split("'))").next().unwrap();
    assert!(shown(&client, hot).await.is_empty(), "{hot}");

    // A view keeps the name.
    client.batch_execute("CREATE VIEW all_events AS SELECT * FROM lake.events").await.unwrap();
    assert_eq!(one(&client, "SELECT id, note, _node FROM all_events").await, "1|b|7");
    // A schema of this name that somebody has made comes first.
    client.batch_execute("CREATE SCHEMA lake; CREATE TABLE lake.own (n int)").await.unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM lake.own").await, "0");
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events").await, "1");

    // A file that is gone is named.
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    files(lake.files.path(), &mut found);
    let data =
        found.iter().find(|path| path.extension().is_some_and(|end| end == "parquet")).unwrap();
    let kept = std::fs::read(data).unwrap();
    std::fs::remove_file(data).unwrap();
    let (found, message, _) = refused(&client, "SELECT * FROM lake.events").await;
    let name = data.file_name().unwrap().to_str().unwrap();
    assert_eq!((found.as_str(), message.contains(name)), ("08006", true), "{message}");
    std::fs::write(data, &kept[..kept.len() / 2]).unwrap();
    let (found, message, _) = refused(&client, "SELECT * FROM lake.events").await;
    assert!(message.contains(name), "{found} {message}");
    std::fs::write(data, &kept).unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events").await, "1");

    // The Iceberg table is gone; the catalogue is away; the table is detached.
    let catalogue = lake.catalogue.client().await;
    let rename = "UPDATE iceberg_tables SET table_name = ";
    catalogue.batch_execute(&format!("{rename} 'other'")).await.unwrap();
    let (found, message, _) = refused(&client, "SELECT * FROM lake.events").await;
    assert_eq!((found.as_str(), message.contains("detach")), ("55000", true), "{message}");
    catalogue.batch_execute(&format!("{rename} 'events'")).await.unwrap();
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events").await, "1");
    lake.catalogue.server.take().unwrap().stop().unwrap();
    let (found, message, _) = refused(&client, "SELECT * FROM lake.events").await;
    assert_eq!((found.as_str(), message.contains("away")), ("08006", true), "{message}");
    assert_eq!(one(&client, "SELECT count(*) FROM events").await, "1");
    client.batch_execute("CALL onrush.lake_detach('events')").await.unwrap();
    assert_eq!(refused(&client, "SELECT * FROM lake.events").await.0, "55000");

    let without = World::new();
    let client = without.client().await;
    client.batch_execute(EVENTS).await.unwrap();
    let (found, message, hint) = refused(&client, "SELECT * FROM lake.events").await;
    assert_eq!((found.as_str(), hint.contains("lake_attach")), ("55000", true), "{message}");
}
