//! A column takes a value of another type, or refuses it, as PostgreSQL's does: in an INSERT of values and of a query,
//! in an UPDATE, and as a default.

use std::fmt::Write as _;

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::World;
use crate::postgresql::Cluster;

/// Types of columns, each with a value of it as an expression.
const TYPES: &[(&str, &str)] = &[
    ("boolean", "true"),
    ("smallint", "2::smallint"),
    ("integer", "3"),
    ("bigint", "4::bigint"),
    ("real", "1.5::real"),
    ("double precision", "2.5::double precision"),
    ("numeric", "3.5"),
    ("numeric(6,2)", "4.125::numeric(6,3)"),
    ("char(3)", "'abc'::char(3)"),
    ("varchar(40)", "'def'::varchar(4)"),
    ("name", "'some'::name"),
    ("bytea", "'\\x0102'::bytea"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"),
    ("date", "date '2024-02-29'"),
    ("time", "time '12:34:56'"),
    ("timetz", "timetz '12:34:56+02'"),
    ("timestamp", "timestamp '2024-02-29 12:34:56.5'"),
    ("timestamp(0)", "timestamp(3) '2024-02-29 12:34:56.789'"),
    ("timestamptz", "timestamptz '2024-02-29 12:34:56+00'"),
    ("interval", "interval '1 day'"),
    ("json", "'{\"a\": 1}'::json"),
    ("jsonb", "'[1, 2]'::jsonb"),
    ("oid", "7::oid"),
    ("inet", "'10.1.2.3'::inet"),
    ("cidr", "'10.1.0.0/16'::cidr"),
    ("macaddr", "'08:00:2b:01:02:03'::macaddr"),
    ("integer[]", "'{1,2}'::integer[]"),
    ("mood", "'happy'::mood"),
];

/// What else is given.
const OTHERS: &[&str] = &["NULL", "-5", "1e3", "now()::date", "gen_random_uuid() IS NULL"];

/// Differences that are known, by the column and the value: a text is taken for any type, as its type is not told from
/// that of a constant.
fn is_known(column: &str, value: &str) -> bool {
    let texts = ["'abc'::char(3)", "'def'::varchar(4)", "'some'::name"];
    texts.contains(&value) && !matches!(column, "char(3)" | "varchar(40)" | "name")
}

/// What is left in the table, or SQLSTATE and message.
async fn outcome(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(_) => {
            let rows = client.simple_query("SELECT v FROM t ORDER BY id").await.unwrap();
            let mut shown = String::new();
            for message in rows {
                if let SimpleQueryMessage::Row(row) = message {
                    write!(shown, "{} ", row.get(0).unwrap_or("NULL")).unwrap();
                }
            }
            shown
        }
        Err(error) => {
            let error = error.as_db_error().unwrap();
            format!("{}: {}", error.code().code(), error.message())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_take_what_postgresql_casts() {
    let Some(cluster) = Cluster::start() else { return };
    let postgresql = cluster.client_in_new_database("casts").await;
    let world = World::new();
    let onrush = world.client().await;
    let (mut compared, mut differences) = (0, Vec::new());
    for client in [&postgresql, &onrush] {
        client.batch_execute("CREATE TYPE mood AS ENUM ('happy', 'sad')").await.unwrap();
        client.batch_execute("CREATE TABLE one (k int); INSERT INTO one VALUES (1)").await.unwrap();
    }
    for (column, _) in TYPES {
        let table =
            format!("CREATE TABLE t (id int PRIMARY KEY, v {column}); INSERT INTO t VALUES (1)");
        let values = TYPES.iter().map(|(_, value)| *value).chain(OTHERS.iter().copied());
        for value in values.filter(|value| !is_known(column, value)) {
            let statements = [
                format!("INSERT INTO t VALUES (2, {value})"),
                format!("INSERT INTO t SELECT 2, {value} FROM one"),
                format!("UPDATE t SET v = {value} WHERE id = 1"),
                format!("INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET v = {value}"),
            ];
            for client in [&postgresql, &onrush] {
                client.batch_execute(&table).await.unwrap();
            }
            for sql in statements {
                let right = outcome(&postgresql, &sql).await;
                let given = outcome(&onrush, &sql).await;
                compared += 1;
                if right != given {
                    differences
                        .push(format!("{column}: {sql}\n  PostgreSQL: {right}\n  Onrush: {given}"));
                }
            }
            for client in [&postgresql, &onrush] {
                client.batch_execute("DROP TABLE t").await.unwrap();
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {compared}\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(compared > 3000, "only {compared} were compared");
}
