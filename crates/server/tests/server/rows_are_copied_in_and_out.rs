//! COPY FROM STDIN and TO STDOUT.

use crate::common::{World, code, query};
use futures_util::{SinkExt, TryStreamExt, pin_mut};
use onrush_files::MemoryDisk;
use tokio_postgres::Client;

async fn copy_in(
    client: &Client,
    text: &str,
    data: impl AsRef<[u8]>,
) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(text).await?;
    pin_mut!(sink);
    for piece in data.as_ref().chunks(1000) {
        sink.send(bytes::Bytes::copy_from_slice(piece)).await?;
    }
    sink.finish().await
}

async fn copy_out(client: &Client, text: &str) -> Vec<u8> {
    let pieces: Vec<bytes::Bytes> =
        client.copy_out(text).await.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_is_computed_for_each_row_that_is_copied_in() {
    let world = World::new();
    let client = world.client().await;
    let columns = "id int PRIMARY KEY, token text DEFAULT md5(random()::text)";
    query(&client, &format!("CREATE TABLE t ({columns})")).await;
    assert_eq!(copy_in(&client, "COPY t (id) FROM STDIN", "1\n2\n3\n").await.unwrap(), 3);
    let tokens = query(&client, "SELECT count(DISTINCT token), min(length(token)) FROM t").await;
    assert_eq!(tokens, ["3|32"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_copied_out_is_copied_in_as_the_same_rows() {
    let world = World::new();
    let client = world.client().await;
    for name in ["source", "text", "csv", "bin"] {
        let columns = "id int PRIMARY KEY, note text, bytes bytea, at timestamptz, x double precision, \
             raw json, body jsonb";
        query(&client, &format!("CREATE TABLE {name} ({columns})")).await;
    }
    for row in [
        r#"1, E'tab\tline\nback\\slash', '\x00ff', now(), 0.1, '{"b": "\"", "a":1}', '{"b": "\"", "a":1}'"#,
        "2, '', NULL, NULL, -1e300, NULL, NULL",
        "3, NULL, '', now(), NULL, '[]', '[]'",
        "4, 'a,\"b\"', 'plain', NULL, 'NaN', NULL, NULL",
        r"5, '\N', NULL, NULL, 1, NULL, NULL",
    ] {
        query(&client, &format!("INSERT INTO source VALUES ({row})")).await;
    }
    let text = copy_out(&client, "COPY source TO STDOUT").await;
    assert_eq!(copy_in(&client, "COPY text FROM STDIN", &text).await.unwrap(), 5);
    let csv = copy_out(&client, "COPY source TO STDOUT WITH (FORMAT csv, HEADER)").await;
    assert!(csv.starts_with(b"id,note,bytes,at,x,raw,body\n"));
    let options = "WITH (FORMAT csv, HEADER)";
    assert_eq!(copy_in(&client, &format!("COPY csv FROM STDIN {options}"), &csv).await.unwrap(), 5);
    let binary = copy_out(&client, "COPY source TO STDOUT (FORMAT binary)").await;
    assert!(binary.starts_with(b"PGCOPY\n\xff\r\n\0"));
    assert_eq!(copy_in(&client, "COPY bin FROM STDIN WITH BINARY", &binary).await.unwrap(), 5);
    let rows = query(&client, "SELECT * FROM source").await;
    for copy in ["text", "csv", "bin"] {
        assert_eq!(query(&client, &format!("SELECT * FROM {copy}")).await, rows, "{copy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_rounded_to_the_digits_of_their_column() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, n numeric(5,2))").await;
    assert_eq!(copy_in(&client, "COPY t FROM STDIN", "1\t1.235\n2\t-7\n").await.unwrap(), 2);
    assert_eq!(query(&client, "SELECT n FROM t").await, ["1.24", "-7.00"]);
    let error = copy_in(&client, "COPY t FROM STDIN", "3\t1000\n").await.unwrap_err();
    assert_eq!(code(&error), "22003");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_row_ends_a_copy_and_says_which_and_what_stays() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, note text)").await;
    let mut lines: String = (1..=1500).map(|id| format!("{id}\tnote\n")).collect();
    lines.push_str("none\tnote\n");
    let error = copy_in(&client, "COPY t FROM STDIN", &lines).await.unwrap_err();
    assert_eq!(code(&error), "22P02");
    let told = error.as_db_error().unwrap();
    assert_eq!(told.where_(), Some("COPY t, line 1501"), "{told}");
    let stays = query(&client, "SELECT count(*) FROM t").await.remove(0);
    assert!(told.hint().unwrap().starts_with(&format!("{stays} rows")), "{told:?}");

    query(&client, "TRUNCATE t").await;
    query(&client, "BEGIN").await;
    copy_in(&client, "COPY t FROM STDIN", &lines).await.unwrap_err();
    query(&client, "ROLLBACK").await;
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_are_not_copied_have_their_defaults() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY, note text, n int DEFAULT 7)").await;
    let copied = copy_in(&client, "COPY t (note) FROM STDIN WITH (FORMAT csv)", "a\nb\n").await;
    assert_eq!(copied.unwrap(), 2);
    assert_eq!(query(&client, "SELECT note, n FROM t").await, ["a|7", "b|7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_fills_the_disk_says_so_and_keeps_what_it_committed() {
    let disk = MemoryDisk::with_capacity(48 << 20);
    let world = World::on(disk.clone());
    let (client, other) = (world.client().await, world.client().await);
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, note text)").await;
    let note = "x".repeat(1000);
    let lines =
        |ids: std::ops::Range<u64>| -> String { ids.map(|id| format!("{id}\t{note}\n")).collect() };
    let error = copy_in(&client, "COPY t FROM STDIN", lines(0..50_000)).await.unwrap_err();
    assert_eq!(code(&error), "53100");
    let hint = error.as_db_error().unwrap().hint().unwrap();
    let digits: String = hint.chars().take_while(char::is_ascii_digit).collect();
    let committed: u64 = digits.parse().expect(hint);
    assert!((1..50_000).contains(&committed), "{hint}");
    let there = format!("{committed}|0|{}", committed - 1);
    assert_eq!(query(&other, "SELECT count(*), min(id), max(id) FROM t").await, [there]);
    disk.set_capacity(u64::MAX);
    let rest = copy_in(&client, "COPY t FROM STDIN", lines(committed..50_000)).await.unwrap();
    assert_eq!(rest, 50_000 - committed);
    assert_eq!(query(&other, "SELECT count(*) FROM t").await, ["50000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_query_are_copied_out() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, note text)").await;
    for (text, rows) in [
        ("COPY (SELECT n, NULL FROM generate_series(1, 2) AS g(n)) TO STDOUT", "1\t\\N\n2\t\\N\n"),
        ("COPY (VALUES (1, 'a,b')) TO STDOUT WITH CSV HEADER", "column1,column2\n1,\"a,b\"\n"),
        (
            "COPY (INSERT INTO t VALUES (1, 'x'), (2, 'y') RETURNING note, id) TO STDOUT",
            "x\t1\ny\t2\n",
        ),
        ("COPY (UPDATE t SET note = 'z' WHERE id = 1 RETURNING *) TO STDOUT", "1\tz\n"),
        ("COPY (DELETE FROM t RETURNING id) TO STDOUT", "1\n2\n"),
        ("COPY (SELECT * FROM t) TO STDOUT", ""),
    ] {
        let copied = String::from_utf8(copy_out(&client, text).await).unwrap();
        assert_eq!(copied, rows, "{text}");
    }
    let refused = client.simple_query("COPY (INSERT INTO t VALUES (1, 'x')) TO STDOUT").await;
    assert_eq!(code(&refused.unwrap_err()), "0A000");
    assert!(query(&client, "SELECT id FROM t").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_copy_ends_behind_a_row_with_its_marker_or_without() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, name text)").await;
    let rows = "COPY (VALUES (1, 'a'), (2, NULL)) TO STDOUT (FORMAT binary)";
    let whole = copy_out(&client, rows).await;
    let (rows, _marker) = whole.split_at(whole.len() - 2);
    let copy = "COPY t FROM STDIN (FORMAT binary)";
    assert_eq!(copy_in(&client, copy, rows).await.unwrap(), 2);
    query(&client, "DELETE FROM t").await;
    let cut = &rows[..rows.len() - 1];
    assert_eq!(code(&copy_in(&client, copy, cut).await.unwrap_err()), "22P04");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_copy_of_a_query_is_copied_in_as_the_same_rows() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint, at timestamptz, share numeric(10, 2))").await;
    let rows = "SELECT n::bigint AS id, now() AS at, n::numeric(10, 2) / 4 AS share FROM generate_series(1, 3) AS g(n)";
    query(&client, &format!("CREATE TABLE source AS {rows}")).await;
    let columns = "id, at, share::numeric(10, 2) AS share";
    let text = format!("COPY (SELECT {columns} FROM source) TO STDOUT (FORMAT binary)");
    let binary = copy_out(&client, &text).await;
    copy_in(&client, "COPY t FROM STDIN (FORMAT binary)", &binary).await.unwrap();
    let same = format!(
        "SELECT count(*) FROM t JOIN (SELECT {columns} FROM source) s USING (id, at, share)"
    );
    assert_eq!(query(&client, &same).await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_message_of_a_binary_copy_has_the_header_and_a_row() {
    let world = World::new();
    let client = world.client().await;
    for (rows, first_bytes) in [(2, 19 + 2 + 4 + 4), (0, 19 + 2)] {
        let text = format!(
            "COPY (SELECT n::int FROM generate_series(1, {rows}) AS g(n)) TO STDOUT (FORMAT binary)"
        );
        let pieces: Vec<bytes::Bytes> =
            client.copy_out(&text).await.unwrap().try_collect().await.unwrap();
        assert_eq!(pieces[0].len(), first_bytes, "{rows} rows");
    }
}
