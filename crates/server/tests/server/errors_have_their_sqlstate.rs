//! Each error has the SQLSTATE that PostgreSQL gives it, and what is not there says what is.

use tokio_postgres::error::ErrorPosition;

use crate::common::{World, failure, query};

#[tokio::test(flavor = "multi_thread")]
async fn states_are_those_of_postgresql() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, v varchar(3), n int NOT NULL DEFAULT 0)")
        .await;
    for (text, state) in [
        ("SELEC 1", "42601"),
        ("SELECT * FROM missing", "42P01"),
        ("SELECT missing FROM t", "42703"),
        ("INSERT INTO t (id, nope) VALUES (1, 2)", "42703"),
        ("INSERT INTO t VALUES (1, 'long')", "22001"),
        ("INSERT INTO t VALUES (1, NULL, NULL)", "23502"),
        ("INSERT INTO t VALUES (NULL)", "23502"),
        ("INSERT INTO t VALUES ('one')", "22P02"),
        ("INSERT INTO t VALUES (3000000000)", "22003"),
        ("INSERT INTO t VALUES (1, 'x', 2, 3)", "42601"),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "42701"),
        ("INSERT INTO t VALUES ($1)", "42P02"),
        ("SELECT nofunction()", "42883"),
        ("SELECT * FROM other.t", "42P01"),
        ("SET nosuch = 1", "42704"),
        ("SET synchronous_commit = maybe", "22023"),
        ("CREATE TABLE u (id int PRIMARY KEY, id int)", "42701"),
        ("SELECT id FROM t LIMIT -1", "2201W"),
        ("SELECT id FROM t OFFSET -1", "2201X"),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t LIMIT 1 - 2)", "2201W"),
        ("CREATE DOMAIN d AS int UNIQUE", "42601"),
        ("CREATE DOMAIN d AS nothing", "0A000"),
        ("ALTER DOMAIN d SET NOT NULL", "42704"),
        ("DROP DOMAIN d", "42704"),
        ("DROP VIEW v", "42P01"),
        ("DROP INDEX i", "42704"),
        ("DROP SEQUENCE IF EXISTS t", "42809"),
        ("DROP INDEX IF EXISTS t_pkey", "2BP01"),
        ("TABLE missing", "42P01"),
    ] {
        assert_eq!(failure(&client, text).await, state, "{text}");
    }
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_supported_says_so_and_what_to_do() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, n int)").await;
    for text in [
        "SELECT * FROM (SELECT * FROM t) AS u FOR UPDATE",
        "SELECT 1 FROM (WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x) AS q",
        "EXPLAIN MERGE INTO t USING t AS s ON t.id = s.n WHEN MATCHED THEN DELETE",
        "EXPLAIN (FORMAT JSON) SELECT * FROM t",
        "EXPLAIN VERBOSE SELECT * FROM t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN (ANALYZE) UPDATE t SET n = 1",
        "INSERT INTO t VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = (SELECT 1)",
        "CREATE TABLE u (id int PRIMARY KEY, who text DEFAULT current_user)",
        "CREATE TABLE u (id int PRIMARY KEY, who text DEFAULT lower(current_user))",
        "CREATE TABLE u (id int PRIMARY KEY, at box)",
        "CREATE INDEX i ON t (md5(n::text))",
        "CREATE TABLE u (id int PRIMARY KEY, n int REFERENCES t MATCH PARTIAL)",
        "CREATE TYPE span AS RANGE (subtype = int)",
        "CREATE TYPE shell",
        "COPY t FROM '/etc/passwd'",
        "COPY t TO PROGRAM 'cat'",
        "ALTER SYSTEM SET work_mem = '1MB'",
        "PREPARE TRANSACTION 'one'",
        "COMMIT PREPARED 'one'",
        "GRANT pg_monitor TO CURRENT_USER",
        "CREATE ROLE clerk IN ROLE pg_read_all_data",
        "ALTER ROLE clerk SET work_mem = '1MB'",
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        let error = error.as_db_error().expect(text);
        assert_eq!(error.code().code(), "0A000", "{text}: {error}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syntax_error_says_where_in_the_statement() {
    let world = World::new();
    let client = world.client().await;
    for (text, expected) in
        [("SELEC 1", 1), ("SELECT 1 FROM\n  'ü' t WHERE )", 29), ("SELECT 'unterminated", 8)]
    {
        let error = client.simple_query(text).await.expect_err(text);
        let error = error.as_db_error().unwrap();
        assert_eq!(error.position(), Some(&ErrorPosition::Original(expected)), "{text}: {error}");
        assert!(!error.message().contains("Line"), "{error}");
    }
}

// Object-relational mappers tell by these fields which constraint an application has run into.
#[tokio::test(flavor = "multi_thread")]
async fn violations_name_the_constraint_and_the_key_in_fields_of_their_own() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE SCHEMA sales").await;
    query(
        &client,
        "CREATE TABLE sales.q (x int, y text, n int NOT NULL DEFAULT 1 CONSTRAINT pos CHECK (n > 0), \
         PRIMARY KEY (x, y))",
    )
    .await;
    query(&client, "INSERT INTO sales.q VALUES (1, 'a b')").await;
    let fields = async |text: &str| {
        let error = client.simple_query(text).await.expect_err(text);
        let error = error.as_db_error().expect("the server has said it").clone();
        let owned = |field: Option<&str>| field.map(str::to_owned);
        (
            [owned(error.schema()), owned(error.table())],
            [owned(error.column()), owned(error.constraint()), owned(error.detail())],
        )
    };
    let named = |column: Option<&str>, constraint: Option<&str>, detail: Option<&str>| {
        let owned = |field: Option<&str>| field.map(str::to_owned);
        ([owned(Some("sales")), owned(Some("q"))], [column, constraint, detail].map(owned))
    };
    assert_eq!(
        fields("INSERT INTO sales.q VALUES (1, 'a b')").await,
        named(None, Some("q_pkey"), Some("Key (x, y)=(1, a b) already exists."))
    );
    assert_eq!(
        fields("INSERT INTO sales.q VALUES (2, 'c', NULL)").await,
        named(Some("n"), None, None)
    );
    assert_eq!(
        fields("INSERT INTO sales.q VALUES (2, 'c', -1)").await,
        named(None, Some("pos"), None)
    );
}
