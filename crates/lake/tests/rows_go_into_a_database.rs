//! What is particular where the lake is a database that speaks PostgreSQL's protocol.

#![allow(clippy::unwrap_used)]

mod world;

use std::path::Path;

use onrush::{ColumnDefinition, DataType, Database, Decimal, Options, TableDefinition, Value};
use onrush_lake::{FencedBecause, LakeError};
use tokio_postgres::Client;
use world::lake::Lake;
use world::node::{EVENTS, Node, attach, create, open};
use world::postgres::PostgresLake;
use world::*;

/// None where PostgreSQL is not installed.
async fn lake() -> Option<Lake> {
    Lake::postgres().await
}

fn postgres(lake: &Lake) -> &PostgresLake {
    match lake {
        Lake::Postgres(lake) => lake,
        Lake::Iceberg(_) => panic!("no PostgreSQL"),
    }
}

async fn execute(client: &Client, statements: &str) {
    client.batch_execute(statements).await.unwrap();
}

fn column(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition::new(name, data_type)
}

/// A database with a table of these columns behind its id, attached.
fn create_with(folder: &Path, lake: &Lake, columns: Vec<ColumnDefinition>) -> Node {
    let database = Database::create(folder.join("db"), Options::small()).unwrap();
    let mut table = TableDefinition::builder(EVENTS);
    table = table.column(column("id", DataType::Int64).not_null()).primary_key(["id"]);
    for column in columns {
        table = table.column(column);
    }
    database.create_table(table.build().unwrap()).unwrap();
    attach(&database, EVENTS);
    open(database, lake)
}

/// A type, values of it, and what PostgreSQL shows for them.
fn types() -> Vec<(DataType, Vec<(Value<'static>, &'static str)>)> {
    let decimal = DataType::Decimal { precision: 28, scale: 10 };
    let number = |digits: i128| Value::Decimal(Decimal::from_i128_with_scale(digits, 10));
    let micros = 1_700_000_000_123_456;
    vec![
        (DataType::Boolean, vec![(true.into(), "true"), (false.into(), "false")]),
        (DataType::Int16, vec![(Value::Int16(i16::MIN), "-32768"), (Value::Int16(7), "7")]),
        (DataType::Int32, vec![(Value::Int32(i32::MIN), "-2147483648"), (Value::Int32(0), "0")]),
        (DataType::Int64, vec![(i64::MIN.into(), "-9223372036854775808"), (1i64.into(), "1")]),
        (
            DataType::Float32,
            vec![
                (Value::Float32(-0.0), "-0"),
                (Value::Float32(f32::NAN), "NaN"),
                (Value::Float32(1.5e-30), "1.5e-30"),
            ],
        ),
        (
            DataType::Float64,
            vec![(Value::Float64(0.1), "0.1"), (Value::Float64(f64::NEG_INFINITY), "-Infinity")],
        ),
        (
            decimal,
            vec![
                (number(0), "0.0000000000"),
                (number(1), "0.0000000001"),
                (number(-10_000_000_000), "-1.0000000000"),
                (number(100_000_000_000_000), "10000.0000000000"),
                (number(1_234_567_890_123_456_789_012_345_678), "123456789012345678.9012345678"),
                (number(-9_999_999_999_999_999_999_999_999_999), "-999999999999999999.9999999999"),
            ],
        ),
        (
            DataType::Decimal { precision: 5, scale: 0 },
            vec![
                (Value::Decimal(Decimal::from(99_999)), "99999"),
                (Value::Decimal(Decimal::from(-30_000)), "-30000"),
                (Value::Decimal(Decimal::from(0)), "0"),
            ],
        ),
        (DataType::Char(5), vec![("ab".into(), "ab")]),
        (
            DataType::Text,
            vec![("".into(), ""), ("a\t\\N\n'\"ä\u{10ffff}".into(), "a\t\\N\n'\"ä\u{10ffff}")],
        ),
        (
            DataType::Bytes,
            vec![(Value::from(vec![0u8, 255]), "\\x00ff"), (Value::from(Vec::<u8>::new()), "\\x")],
        ),
        (
            DataType::Uuid,
            vec![(Value::Uuid(uuid::Uuid::from_u128(7)), "00000000-0000-0000-0000-000000000007")],
        ),
        (
            DataType::Date,
            vec![
                (Value::Date(0), "1970-01-01"),
                (Value::Date(-719_163), "0001-12-31 BC"),
                (Value::Date(i32::MAX), "infinity"),
                (Value::Date(i32::MIN), "-infinity"),
            ],
        ),
        (
            DataType::Time,
            vec![
                (Value::Time(0), "00:00:00"),
                (Value::Time(86_400_000_000), "24:00:00"),
                (Value::Time(1), "00:00:00.000001"),
            ],
        ),
        (
            DataType::Timestamp,
            vec![
                (Value::Timestamp(micros), "2023-11-14 22:13:20.123456"),
                (Value::Timestamp(-1), "1969-12-31 23:59:59.999999"),
                (Value::Timestamp(i64::MAX), "infinity"),
                (Value::Timestamp(i64::MIN), "-infinity"),
            ],
        ),
        (
            DataType::TimestampTz,
            vec![
                (Value::TimestampTz(micros), "2023-11-14 22:13:20.123456+00"),
                (Value::TimestampTz(i64::MAX), "infinity"),
            ],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_reads_back() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let types = types();
    let name = |place: usize| format!("c{place}");
    let columns = types.iter().enumerate().map(|(place, (kind, _))| column(&name(place), *kind));
    let node = create_with(folder.path(), &lake, columns.collect());
    let rows = types.iter().map(|(_, values)| values.len()).max().unwrap() + 1;
    let mut session = node.session();
    for row in 0..rows {
        let value = |(_, values): &(DataType, Vec<(Value<'static>, &str)>)| {
            values.get(row).map_or(Value::Null, |(value, _)| value.clone())
        };
        let mut values = vec![(row as i64).into()];
        values.extend(types.iter().map(value));
        session.insert(&node.table, &values).unwrap();
    }
    node.flush().await.unwrap();
    let shown: Vec<String> = (0..types.len()).map(|place| format!("c{place}::text")).collect();
    let query = format!("SELECT {} FROM lake.events ORDER BY id", shown.join(", "));
    let found = postgres(&lake).client().query(&query, &[]).await.unwrap();
    assert_eq!(found.len(), rows);
    for (row, found) in found.iter().enumerate() {
        for (place, (kind, values)) in types.iter().enumerate() {
            let expected = values.get(row).map(|(_, text)| *text);
            assert_eq!(found.get::<_, Option<&str>>(place), expected, "row {row} of {kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_there_is_taken_if_it_fits() {
    let Some(lake) = lake().await else { return };
    let client = postgres(&lake).client();
    let added = "_node int NOT NULL, _lsn bigint NOT NULL, _at timestamptz NOT NULL";
    let amount = || column("amount", DataType::Decimal { precision: 8, scale: 2 });
    for (columns, wrong) in [
        ("id bigint, amount numeric(8,1)", "amount"),
        ("id bigint, amount numeric(7,2)", "amount"),
        ("id bigint, amount numeric(8,2) NOT NULL", "amount"),
        ("id int, amount numeric", "id"),
        ("id bigint", "amount"),
        ("id bigint, amount numeric, more text NOT NULL", "more"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        execute(client, "DROP SCHEMA IF EXISTS lake CASCADE; CREATE SCHEMA lake").await;
        execute(client, &format!("CREATE TABLE lake.events ({columns}, {added})")).await;
        let node = create_with(folder.path(), &lake, vec![amount()]);
        match node.flush().await {
            Err(LakeError::TableMismatch { column, .. }) => assert_eq!(column, wrong),
            other => panic!("{columns} was taken: {other:?}"),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    execute(client, "DROP SCHEMA lake CASCADE; CREATE SCHEMA lake").await;
    let columns = "more text, mine int NOT NULL DEFAULT 3, amount numeric(12,3)";
    execute(
        client,
        &format!("CREATE TABLE lake.events ({columns}, {added}, id bigint PRIMARY KEY)"),
    )
    .await;
    let node = create_with(folder.path(), &lake, vec![amount()]);
    let amount = Value::Decimal(Decimal::new(12_345, 2));
    node.session().insert(&node.table, &[1i64.into(), amount]).unwrap();
    node.flush().await.unwrap();
    let row = client.query_one("SELECT amount::text, mine, more FROM lake.events", &[]);
    let row = row.await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i32>(1)), ("123.450", 3));
    assert_eq!(row.get::<_, Option<&str>>(2), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_hangs_before_its_commit_is_waited_for() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    node.insert(10..20);
    lake.fail_commits([Fault::Hang]).await;
    let end = async {
        let client = postgres(&lake).client();
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
        assert_eq!(lake.ids().await.len(), 10);
        // As the server does itself after a minute of silence.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE state = 'idle in transaction' AND datname = current_database()";
        assert_eq!(client.query_one(end, &[]).await.unwrap().get::<_, i64>(0), 1);
    };
    let mut flush = std::pin::pin!(node.flush());
    tokio::select! {
        flushed = &mut flush => panic!("{flushed:?} while the transaction hung"),
        () = end => {}
    }
    flush.await.unwrap();
    assert_eq!(lake.ids().await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_anew_takes_nothing_until_somebody_has_looked() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    let client = postgres(&lake).client();
    execute(client, "ALTER TABLE lake.events RENAME TO events_before").await;
    node.insert(10..20);
    for _ in 0..2 {
        match node.flush().await {
            Err(LakeError::Fenced { because, .. }) => assert!(
                matches!(*because, FencedBecause::TableGone | FencedBecause::OtherRelation { .. }),
                "{because}"
            ),
            other => panic!("{other:?}"),
        }
    }
    // Its rows come back, as from a dump, and whoever brought them says so.
    execute(
        client,
        "DROP TABLE lake.events; CREATE TABLE lake.events AS TABLE lake.events_before;
         UPDATE lake.onrush_marks SET table_oid = 'lake.events'::regclass::oid::bigint",
    )
    .await;
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_the_database_refuses_stop_the_drain_until_that_is_put_right() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    node.flush().await.unwrap();
    let client = postgres(&lake).client();
    execute(client, "ALTER TABLE lake.events ADD CONSTRAINT small CHECK (id < 5)").await;
    node.insert(0..10);
    match node.flush().await {
        Err(LakeError::Refused { cause }) => assert!(cause.contains("small"), "{cause}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(node.drain.states()[0].phase.word(), "stopped");
    assert!(lake.ids().await.is_empty());
    execute(client, "ALTER TABLE lake.events DROP CONSTRAINT small").await;
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_postgresql_has_not_is_told_with_its_row_and_column() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    node.insert(0..1);
    node.session().insert(&node.table, &[7i64.into(), "a\0b".into()]).unwrap();
    let error = node.flush().await.unwrap_err().to_string();
    assert!(error.contains("note") && error.contains("(7)"), "{error}");
    assert!(lake.ids().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_table_can_have_is_refused() {
    let Some(lake) = lake().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    for name in ["a.b.c", "lake.onrush_marks"] {
        let attachment = onrush_lake::drain::attachment::Attachment {
            table: node.table.id(),
            catalogue: "prod".to_owned(),
            name: name.to_owned(),
            lag: std::time::Duration::from_secs(1),
        };
        let refused = node.drain.check(&attachment).await;
        assert!(matches!(refused, Err(LakeError::NoSuchTarget { .. })), "{refused:?}");
    }
}
