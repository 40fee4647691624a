//! CHECK constraints: no row that violates one gets in, whichever way it comes, also after the
//! database was opened again. What SQL says about them is written down in `slt/check.slt`.

use crate::common::{World, code, query};
use futures_util::{SinkExt, pin_mut};
use onrush::expression::{Expression, Function, Interval};
use onrush::{ColumnDefinition, DataType, Database, Error, Options, TableDefinition, Value};
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
async fn without_the_server_nothing_is_written_where_only_the_server_understands_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = serve(&path);
    let client = client_of(&server).await;
    query(
        &client,
        "CREATE TABLE items (id int PRIMARY KEY, price int CHECK (price > 0), \
         code text CONSTRAINT plain CHECK (md5(code) = md5(lower(code))))",
    )
    .await;
    query(&client, "INSERT INTO items VALUES (1, 5, 'a')").await;
    // Of those that are violated the first by name is told, whoever understands it.
    let insert = |values: &str| format!("INSERT INTO items VALUES ({values})");
    for (values, constraint) in [
        ("2, 0, 'A'", "items_price_check"),
        ("2, 0, 'a'", "items_price_check"),
        ("2, 1, 'A'", "plain"),
    ] {
        let error = client.batch_execute(&insert(values)).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().constraint(), Some(constraint));
    }
    drop(client);
    server.stop().unwrap();

    let database = Database::open(&path, Options::small()).unwrap();
    let items = database.table("items").unwrap();
    let mut session = database.session().unwrap();
    let row = [Value::Int32(2), Value::Int32(5), "b".into()];
    let refused = session.insert(&items, &row).unwrap_err();
    let Error::ChecksNotUnderstood { constraint, .. } = &refused else { panic!("{refused}") };
    assert_eq!(constraint, "plain");
    let refused = session.update(&items, &row[..1], &[("price", 6.into())]);
    assert!(matches!(refused, Ok(false)), "there is no such row: {refused:?}");
    let refused = session.update(&items, &[Value::Int32(1)], &[("price", 6.into())]).unwrap_err();
    assert!(matches!(refused, Error::ChecksNotUnderstood { .. }), "{refused}");
    assert!(session.delete(&items, &[Value::Int32(1)]).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_program_keeps_the_rules_of_sql() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let server = serve(&path);
    let client = client_of(&server).await;
    query(
        &client,
        "CREATE TABLE items (id int PRIMARY KEY, price int CHECK (price > 0), name text, \
         due timestamptz DEFAULT now() + interval '1 day', \
         CONSTRAINT named CHECK (length(name) BETWEEN 1 AND 10 AND name NOT LIKE '% ' OR price IN (1, 2)))",
    )
    .await;
    drop(client);
    server.stop().unwrap();

    let database = Database::open(&path, Options::small()).unwrap();
    let items = database.table("items").unwrap();
    let mut session = database.session().unwrap();
    let row = |price: i32, name: &'static str| {
        [Value::Int32(1), Value::Int32(price), name.into(), Value::Default]
    };
    for (row, violated) in [
        (row(0, "good"), "items_price_check"),
        (row(3, "blank "), "named"),
        (row(3, ""), "named"),
        (row(3, "much too long"), "named"),
    ] {
        for refused in [
            session.insert(&items, &row),
            session.insert_many(&items, [row.as_slice()]).map(drop),
            session.insert_token(&items, &row).map(drop),
        ] {
            match refused.unwrap_err() {
                Error::CheckViolated { constraint, .. } => assert_eq!(constraint, violated),
                other => panic!("{other}"),
            }
        }
    }
    session.insert(&items, &row(2, "much too long, but cheap")).unwrap();
    let due = session.get(&items, &[Value::Int32(1)]).unwrap().unwrap()[3].clone();
    assert!(matches!(due, Value::TimestampTz(due) if due > 1_700_000_000_000_000), "{due:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_keeps_the_rules_of_an_embedded_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = Database::create(&path, Options::small()).unwrap();
    let due = Expression::now().plus(Interval::days(1));
    let length = Expression::call(Function::Length, [Expression::column("Name")]);
    let names = [Expression::value("it's"), Expression::value("b")];
    let items = TableDefinition::builder("items")
        .column(ColumnDefinition::new("id", DataType::Int32).not_null())
        .column(ColumnDefinition::new("price", DataType::Int32))
        .column(ColumnDefinition::new("Name", DataType::Text))
        .column(ColumnDefinition::new("due", DataType::TimestampTz).default_computed(&due).unwrap())
        .primary_key(["id"])
        .check("positive", Expression::column("price").greater_than(0))
        .check("named", length.less_than(5).and(Expression::column("Name").one_of(names).not()))
        .build()
        .unwrap();
    database.create_table(items).unwrap();
    database.close().unwrap();

    let server = serve(&path);
    let client = client_of(&server).await;
    for (values, constraint) in
        [("1, 0, 'x'", "positive"), ("1, 1, 'longer'", "named"), ("1, 1, 'it''s'", "named")]
    {
        let insert = format!("INSERT INTO items VALUES ({values})");
        let error = client.batch_execute(&insert).await.unwrap_err();
        let told = error.as_db_error().unwrap();
        assert_eq!((told.code().code(), told.constraint()), ("23514", Some(constraint)));
    }
    query(&client, "INSERT INTO items VALUES (1, 1, 'x')").await;
    assert_eq!(query(&client, "SELECT due > now() + interval '23 hours' FROM items").await, ["t"]);
    let shown =
        "SELECT pg_get_constraintdef(oid, true) FROM pg_constraint WHERE contype = 'c' ORDER BY 1";
    assert_eq!(
        query(&client, shown).await,
        [
            "CHECK (length(\"Name\") < 5 AND NOT (\"Name\" = 'it''s' OR \"Name\" = 'b'))",
            "CHECK (price > 0)",
        ]
    );
    // What the server makes of it when the rows are written anew.
    query(&client, "ALTER TABLE items ALTER COLUMN price TYPE bigint").await;
    let error = client.batch_execute("INSERT INTO items VALUES (2, 0, 'x')").await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("positive"));
    let error = client.batch_execute("INSERT INTO items VALUES (2, 1, 'b')").await.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("named"));
    drop(client);
    server.stop().unwrap();
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
