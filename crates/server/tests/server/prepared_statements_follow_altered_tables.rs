//! A statement that was prepared before a table was altered is planned anew, or refused with what
//! PostgreSQL says; it never reads rows in their old form.

use crate::common::World;
use tokio_postgres::IsolationLevel;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_goes_on_with_the_altered_table_or_says_that_it_cannot() {
    let world = World::new();
    let (client, other) = (world.client().await, world.client().await);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, a int, b text)").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two')").await.unwrap();
    let insert = client.prepare("INSERT INTO t (id, b) VALUES ($1, $2)").await.unwrap();
    let get = client.prepare("SELECT b FROM t WHERE id = $1").await.unwrap();
    let query = client.prepare("SELECT sum(id) FROM t WHERE b >= $1").await.unwrap();
    let update = client.prepare("UPDATE t SET b = $2 WHERE id = $1").await.unwrap();
    let all = client.prepare("SELECT * FROM t WHERE id = $1").await.unwrap();
    client.execute(&insert, &[&3i32, &"three"]).await.unwrap();

    other.batch_execute("ALTER TABLE t DROP COLUMN a, ADD COLUMN c int DEFAULT 5").await.unwrap();

    assert_eq!(client.query_one(&get, &[&2i32]).await.unwrap().get::<_, &str>(0), "two");
    assert_eq!(client.query_one(&query, &[&"three"]).await.unwrap().get::<_, i64>(0), 5);
    assert_eq!(client.execute(&update, &[&1i32, &"uno"]).await.unwrap(), 1);
    client.execute(&insert, &[&4i32, &"four"]).await.unwrap();
    let error = client.query(&all, &[&1i32]).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    let message = error.as_db_error().unwrap().message().to_owned();
    assert_eq!(message, "cached plan must not change result type");
    let fresh = client.query("SELECT * FROM t ORDER BY id", &[]).await.unwrap();
    let rows: Vec<(i32, String, i32)> =
        fresh.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let row = |id, b: &str| (id, b.to_owned(), 5);
    assert_eq!(rows, [row(1, "uno"), row(2, "two"), row(3, "three"), row(4, "four")]);

    other.batch_execute("ALTER TABLE t RENAME TO s").await.unwrap();
    let gone = client.query(&get, &[&2i32]).await.unwrap_err();
    assert_eq!(gone.code(), Some(&SqlState::UNDEFINED_TABLE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_began_before_sees_its_rows_in_the_new_form_and_cannot_write_old_ones() {
    let world = World::new();
    let (mut client, other) = (world.client().await, world.client().await);
    other.batch_execute("CREATE TABLE t (id int PRIMARY KEY, a int)").await.unwrap();
    other.batch_execute("INSERT INTO t VALUES (1, 10)").await.unwrap();
    let repeatable = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let transaction = repeatable.start().await.unwrap();
    transaction.query("SELECT * FROM t", &[]).await.unwrap();
    other.batch_execute("ALTER TABLE t ADD COLUMN b int DEFAULT 7").await.unwrap();
    other.batch_execute("INSERT INTO t VALUES (2, 20, 30)").await.unwrap();
    let rows = transaction.query("SELECT b FROM t", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [7]);
    transaction.execute("INSERT INTO t (id) VALUES (3)", &[]).await.unwrap();
    transaction.commit().await.unwrap();

    let transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO t (id) VALUES (4)", &[]).await.unwrap();
    other.batch_execute("ALTER TABLE t DROP COLUMN a").await.unwrap();
    let error = transaction.commit().await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    assert_eq!(other.query("SELECT id FROM t", &[]).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_go_with_a_table_that_gets_another_name() {
    let world = World::new();
    let client = world.client().await;
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE ROLE reader",
        "GRANT SELECT, INSERT ON t TO reader",
        "ALTER TABLE t RENAME TO s",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let granted = "SELECT table_name, privilege_type FROM information_schema.table_privileges";
    let _ = granted;
    let access = client.query_one(
        "SELECT array_to_string(relacl, ' ') FROM pg_catalog.pg_class WHERE relname = 's'",
        &[],
    );
    let access: String = access.await.unwrap().get(0);
    assert!(access.contains("reader=ar"), "{access}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_prepared_again_means_what_its_names_mean_now() {
    let world = World::new();
    let (client, other) = (world.client().await, world.client().await);
    other.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    other.batch_execute("CREATE SCHEMA a").await.unwrap();
    client.batch_execute("SET search_path = a, public").await.unwrap();
    let insert = "INSERT INTO t VALUES ($1)";
    client.execute(insert, &[&1i32]).await.unwrap();

    // Another table comes before it on the path.
    other.batch_execute("CREATE TABLE a.t (id int PRIMARY KEY)").await.unwrap();
    client.execute(insert, &[&2i32]).await.unwrap();
    // The path is another.
    client.batch_execute("SET search_path = public").await.unwrap();
    client.execute(insert, &[&3i32]).await.unwrap();
    // The table is another, of other columns.
    other.batch_execute("DROP TABLE a.t; CREATE TABLE a.t (id bigint PRIMARY KEY)").await.unwrap();
    client.batch_execute("SET search_path = a").await.unwrap();
    client.execute(insert, &[&4i64]).await.unwrap();

    let ids = async |table: &str, cast: &str| -> Vec<i64> {
        let text = format!("SELECT {cast} FROM {table} ORDER BY id");
        let rows = other.query(&text, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(ids("public.t", "id::bigint").await, [1, 3]);
    assert_eq!(ids("a.t", "id").await, [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_prepared_with_other_types_has_parameters_of_those() {
    let world = World::new();
    let client = world.client().await;
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
    let insert = "INSERT INTO t VALUES ($1)";
    let plain = client.prepare(insert).await.unwrap();
    let typed = client.prepare_typed(insert, &[Type::INT4]).await.unwrap();
    assert_eq!((plain.params(), typed.params()), (&[Type::INT8][..], &[Type::INT4][..]));
    client.execute(&plain, &[&1i64]).await.unwrap();
    client.execute(&typed, &[&2i32]).await.unwrap();
}
