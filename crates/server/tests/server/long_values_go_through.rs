//! Long values come in and go out by every way of the protocol: as parameters and answers in binary, in the text of
//! statements, and in copies of every format.

use futures_util::{SinkExt, TryStreamExt, pin_mut};
use tokio_postgres::Client;

use crate::common::{World, query};

const MIB: usize = 1 << 20;

/// Bytes that say where they stand.
fn picture(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8 ^ (at >> 16) as u8).collect()
}

async fn with_table(world: &World) -> Client {
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, body text, picture bytea)").await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn as_binary_parameters_and_answers() {
    let world = World::new();
    let client = with_table(&world).await;
    for (id, bytes) in [(1, 8_000), (2, 70_000), (3, MIB), (4, 20 * MIB)] {
        let (text, picture) = ("é".repeat(bytes / 2), picture(bytes));
        let insert = "INSERT INTO t VALUES ($1, NULL, $2)";
        assert_eq!(client.execute(insert, &[&id, &picture]).await.unwrap(), 1);
        let set = "UPDATE t SET body = $2 WHERE id = $1";
        assert_eq!(client.execute(set, &[&id, &text]).await.unwrap(), 1);
        let row = client.query_one("SELECT body, picture FROM t WHERE id = $1", &[&id]).await;
        let row = row.unwrap();
        assert!(row.get::<_, &str>(0) == text, "{bytes}");
        assert!(row.get::<_, &[u8]>(1) == picture, "{bytes}");
    }
    let rows = client.query("SELECT id, body, picture FROM t ORDER BY picture", &[]).await.unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        query(&client, "DELETE FROM t WHERE length(picture) > 100000 RETURNING id").await.len(),
        2
    );
    drop(client);
    let client = world.client().await;
    let lengths = "SELECT id, octet_length(body), length(picture) FROM t ORDER BY id";
    assert_eq!(query(&client, lengths).await, ["1|8000|8000", "2|70000|70000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_rows_between_two_keys() {
    let world = World::new();
    let mut client = with_table(&world).await;
    query(&client, "ALTER TABLE t ADD kind int").await;
    query(&client, "CREATE INDEX ON t (kind)").await;
    // Many more bytes than are handed out at a time, and short rows between them.
    let body = |id: i32| {
        format!("{id:03}").repeat(if id % 5 == 0 { 3 } else { 9_000 + 700 * id as usize })
    };
    let insert = "INSERT INTO t (id, body, kind) VALUES ($1, $2, $3)";
    for id in 1..=60 {
        client.execute(insert, &[&id, &body(id), &(id % 4)]).await.unwrap();
    }
    let transaction = client.transaction().await.unwrap();
    // Own rows among them.
    transaction.execute("UPDATE t SET body = $1 WHERE id = 30", &[&body(61)]).await.unwrap();
    transaction.execute("DELETE FROM t WHERE id = 33", &[]).await.unwrap();
    let ids = |rows: &[tokio_postgres::Row]| -> Vec<i32> {
        rows.iter()
            .map(|row| {
                let id: i32 = row.get("id");
                let written = if id == 30 { body(61) } else { body(id) };
                assert!(row.get::<_, &str>("body") == written, "{id}");
                id
            })
            .collect()
    };
    let between = "SELECT body, id FROM t WHERE id BETWEEN 7 AND 52";
    let wanted: Vec<i32> = (7..=52).filter(|id| *id != 33).collect();
    assert_eq!(ids(&transaction.query(between, &[]).await.unwrap()), wanted);
    let backward = "SELECT body, id FROM t WHERE id BETWEEN 7 AND 52 ORDER BY id DESC";
    let wanted: Vec<i32> = wanted.into_iter().rev().collect();
    assert_eq!(ids(&transaction.query(backward, &[]).await.unwrap()), wanted);
    let sorted = "SELECT id, body FROM t WHERE id BETWEEN 28 AND 34 ORDER BY body LIMIT 3";
    assert_eq!(ids(&transaction.query(sorted, &[]).await.unwrap()), [28, 29, 31]);
    let by_index = "SELECT id, body FROM t WHERE kind = 1 ORDER BY id LIMIT 9";
    let by_kind = [1, 5, 9, 13, 17, 21, 25, 29, 37];
    assert_eq!(ids(&transaction.query(by_index, &[]).await.unwrap()), by_kind);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_text_of_a_statement() {
    let world = World::new();
    let client = with_table(&world).await;
    let text = "it''s ".repeat(MIB);
    query(&client, &format!("INSERT INTO t (id, body) VALUES (1, '{text}')")).await;
    let answer = query(&client, "SELECT body FROM t").await;
    assert!(answer[0] == "it's ".repeat(MIB));
}

async fn copy_in(client: &Client, text: &str, data: &[u8]) -> u64 {
    let sink = client.copy_in(text).await.unwrap();
    pin_mut!(sink);
    for piece in data.chunks(50_000) {
        sink.send(bytes::Bytes::copy_from_slice(piece)).await.unwrap();
    }
    sink.finish().await.unwrap()
}

async fn copy_out(client: &Client, text: &str) -> Vec<u8> {
    let pieces: Vec<bytes::Bytes> =
        client.copy_out(text).await.unwrap().try_collect().await.unwrap();
    pieces.concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_copies_of_every_format() {
    let world = World::new();
    let client = with_table(&world).await;
    let body = "line\n\"quoted\", \\ and é\t".repeat(100_000);
    for (id, bytes) in [(1, 10_000), (2, 3 * MIB), (3, 0)] {
        let insert = "INSERT INTO t VALUES ($1, $2, $3)";
        client.execute(insert, &[&id, &body, &picture(bytes)]).await.unwrap();
    }
    for format in ["text", "csv", "binary"] {
        let data = copy_out(&client, &format!("COPY t TO STDOUT (FORMAT {format})")).await;
        query(&client, "CREATE TABLE again (LIKE t)").await;
        let copy = format!("COPY again FROM STDIN (FORMAT {format})");
        assert_eq!(copy_in(&client, &copy, &data).await, 3);
        let same = "SELECT count(*) FROM t JOIN again USING (id, body, picture)";
        assert_eq!(query(&client, same).await, ["3"], "{format}");
        query(&client, "DROP TABLE again").await;
    }
}
