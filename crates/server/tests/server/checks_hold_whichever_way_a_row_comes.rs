//! CHECK constraints: no row that violates one gets in, whichever way it comes, also after the
//! database was opened again. What SQL says about them is written down in `slt/check.slt`.

use crate::common::{World, code, query};
use futures_util::{SinkExt, pin_mut};
use onrush::{Database, Error, Options, Value};
use onrush_server::{Server, ServerOptions};
use tokio_postgres::{Client, NoTls};

const ITEMS: &str = "CREATE TABLE items (id int PRIMARY KEY, price int CHECK (price > 0))";

async fn copy_in(client: &Client, text: &str, data: &[u8]) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(text).await?;
    pin_mut!(sink);
    sink.send(bytes::Bytes::copy_from_slice(data)).await?;
    sink.finish().await
}

/// One row in PostgreSQL's binary format of COPY.
fn binary_row(id: i32, price: i32) -> Vec<u8> {
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02".to_vec();
    for value in [id, price] {
        data.extend_from_slice(&4i32.to_be_bytes());
        data.extend_from_slice(&value.to_be_bytes());
    }
    data.extend_from_slice(&(-1i16).to_be_bytes());
    data
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_rows_meet_them() {
    let world = World::new();
    let client = world.client().await;
    query(&client, ITEMS).await;
    let csv = "COPY items FROM STDIN (FORMAT csv)";
    let binary = "COPY items FROM STDIN (FORMAT binary)";
    let refused = [
        copy_in(&client, "COPY items FROM STDIN", b"1\t5\n2\t0\n").await,
        copy_in(&client, csv, b"1,5\n2,-1\n").await,
        copy_in(&client, binary, &binary_row(1, 0)).await,
    ];
    for refused in refused {
        assert_eq!(code(&refused.unwrap_err()), "23514");
    }
    assert_eq!(query(&client, "SELECT count(*) FROM items").await, ["0"]);
    assert_eq!(copy_in(&client, "COPY items FROM STDIN", b"1\t5\n2\t\\N\n").await.unwrap(), 2);
    assert_eq!(copy_in(&client, csv, b"3,1\n").await.unwrap(), 1);
    assert_eq!(copy_in(&client, binary, &binary_row(4, 1)).await.unwrap(), 1);
    assert_eq!(query(&client, "SELECT count(*) FROM items").await, ["4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_insert_meets_them_and_names_what_it_violates() {
    let world = World::new();
    let client = world.client().await;
    query(&client, ITEMS).await;
    let insert = client.prepare("INSERT INTO items VALUES ($1, $2)").await.unwrap();
    assert_eq!(client.execute(&insert, &[&1i32, &5i32]).await.unwrap(), 1);
    let error = client.execute(&insert, &[&2i32, &0i32]).await.unwrap_err();
    let told = error.as_db_error().unwrap();
    assert_eq!(told.code().code(), "23514");
    assert_eq!(
        told.message(),
        "new row for relation \"items\" violates check constraint \"items_price_check\""
    );
    assert_eq!(told.table(), Some("items"));
    assert_eq!(told.constraint(), Some("items_price_check"));
    // A constraint that comes later counts for statements that are there.
    query(&client, "ALTER TABLE items ADD CONSTRAINT cheap CHECK (price < 10)").await;
    let error = client.execute(&insert, &[&3i32, &10i32]).await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("cheap"));
    assert_eq!(client.execute(&insert, &[&3i32, &9i32]).await.unwrap(), 1);
}

/// A server on the database in this folder.
fn serve(folder: &std::path::Path) -> Server {
    let database = Database::open_or_create(folder, Options::small()).unwrap();
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let options = ServerOptions { listen, threads: 2, ..ServerOptions::default() };
    Server::start(database, options).unwrap()
}

async fn client_of(server: &Server) -> Client {
    let settings = format!("host=127.0.0.1 port={} user=test", server.address().unwrap().port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = serve(&path);
    let client = client_of(&server).await;
    query(&client, ITEMS).await;
    query(&client, "ALTER TABLE items RENAME COLUMN price TO cost").await;
    query(&client, "ALTER TABLE items ADD CONSTRAINT cheap CHECK (cost < 10)").await;
    drop(client);
    server.stop().unwrap();

    let server = serve(&path);
    let client = client_of(&server).await;
    for (values, constraint) in [("1, 0", "items_price_check"), ("1, 10", "cheap")] {
        let insert = format!("INSERT INTO items VALUES ({values})");
        let error = client.batch_execute(&insert).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().constraint(), Some(constraint));
    }
    query(&client, "INSERT INTO items VALUES (1, 5)").await;
    drop(client);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_nothing_is_written_to_a_table_that_has_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = serve(&path);
    let client = client_of(&server).await;
    query(&client, ITEMS).await;
    query(&client, "INSERT INTO items VALUES (1, 5)").await;
    drop(client);
    server.stop().unwrap();

    let database = Database::open(&path, Options::small()).unwrap();
    let items = database.table("items").unwrap();
    let mut session = database.session().unwrap();
    let row = [Value::Int32(2), Value::Int32(5)];
    let refused = session.insert(&items, &row).unwrap_err();
    assert!(matches!(refused, Error::ChecksNotUnderstood { .. }), "{refused}");
    let refused = session.update(&items, &row[..1], &[("price", 6.into())]);
    assert!(matches!(refused, Ok(false)), "there is no such row: {refused:?}");
    let refused = session.update(&items, &[Value::Int32(1)], &[("price", 6.into())]).unwrap_err();
    assert!(matches!(refused, Error::ChecksNotUnderstood { .. }), "{refused}");
    assert!(session.delete(&items, &[Value::Int32(1)]).unwrap());
}

/// Rows come while the constraint does: none that violates it is there afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_constraint_misses_no_row_that_comes_at_the_same_time() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE items (id int PRIMARY KEY, price int)").await;
    let writer = world.client().await;
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let writing = tokio::spawn(async move {
        let insert = writer.prepare("INSERT INTO items VALUES ($1, $2)").await.unwrap();
        let mut id = 0i32;
        while !*stopped.borrow_and_update() {
            id += 1;
            let price = i32::from(id % 50 != 0);
            match writer.execute(&insert, &[&id, &price]).await {
                Ok(_) => {}
                Err(error) => {
                    assert!(matches!(code(&error).as_str(), "23514" | "40001"), "{error}")
                }
            }
        }
    });
    // As long as a row is in the way, the constraint is refused and rows go on coming.
    loop {
        query(&client, "DELETE FROM items WHERE price = 0").await;
        let add = "ALTER TABLE items ADD CONSTRAINT sold CHECK (price > 0)";
        match client.batch_execute(add).await {
            Ok(()) => break,
            Err(error) => assert!(matches!(code(&error).as_str(), "23514" | "40001"), "{error}"),
        }
    }
    stop.send(true).unwrap();
    writing.await.unwrap();
    assert_eq!(query(&client, "SELECT count(*) FROM items WHERE price = 0").await, ["0"]);
}
