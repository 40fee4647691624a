//! Serializable transactions that commit could have run one after the other, whichever way they read.

use tokio_postgres::Client;

use crate::common::{World, code, failure, query};

/// Doctors 1 and 2 are on call.
async fn doctors() -> (World, Client, Client) {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE doctors (id int PRIMARY KEY, name text UNIQUE, on_call boolean)")
        .await;
    query(&one, "INSERT INTO doctors VALUES (1, 'ann', true), (2, 'ben', true)").await;
    (world, one, other)
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_read_what_the_other_changes_the_second_fails() {
    let all = "SELECT count(*) FROM doctors WHERE on_call";
    for (one_reads, other_reads) in [
        (all, all),
        ("SELECT * FROM doctors WHERE id = 2", "SELECT * FROM doctors WHERE id = 1"),
        (
            "SELECT on_call FROM doctors WHERE name = 'ben'",
            "SELECT id FROM doctors WHERE name = 'ann'",
        ),
        ("SELECT * FROM doctors WHERE id > 1", "SELECT * FROM doctors WHERE id < 2"),
        (
            "UPDATE doctors SET name = name WHERE id = 1 AND EXISTS (SELECT FROM doctors WHERE id = 2)",
            all,
        ),
        ("SELECT on_call FROM doctors ORDER BY id LIMIT 2", all),
        ("DECLARE c CURSOR FOR SELECT * FROM doctors; FETCH ALL FROM c", all),
    ] {
        let (_world, one, other) = doctors().await;
        for (client, reads) in [(&one, one_reads), (&other, other_reads)] {
            query(client, BEGIN).await;
            client.simple_query(reads).await.unwrap();
        }
        query(&one, "UPDATE doctors SET on_call = false WHERE id = 1").await;
        query(&one, "COMMIT").await;
        query(&other, "UPDATE doctors SET on_call = false WHERE id = 2").await;
        let error = other.simple_query("COMMIT").await.unwrap_err();
        assert_eq!(code(&error), "40001", "{one_reads}: {error}");
        let message = error.as_db_error().unwrap().message();
        assert!(message.starts_with("could not serialize access"), "{message}");
        assert_eq!(query(&one, all).await, ["1"], "{one_reads}");
        // Again it sees what the other one did.
        query(&other, BEGIN).await;
        assert_eq!(query(&other, all).await, ["1"]);
        query(&other, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_other_rows_is_let_through() {
    let (_world, one, other) = doctors().await;
    query(&one, BEGIN).await;
    query(&other, BEGIN).await;
    query(&one, "UPDATE doctors SET on_call = NOT on_call WHERE id = 1").await;
    query(&other, "UPDATE doctors SET on_call = NOT on_call WHERE id = 2").await;
    query(&one, "COMMIT").await;
    query(&other, "COMMIT").await;
    assert_eq!(query(&one, "SELECT count(*) FROM doctors WHERE on_call").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_not_refused_for_what_was_changed_since_it_began() {
    let (_world, one, other) = doctors().await;
    query(&one, BEGIN).await;
    let all = "SELECT count(*) FROM doctors WHERE on_call";
    assert_eq!(query(&one, all).await, ["2"]);
    query(&other, BEGIN).await;
    query(&other, "UPDATE doctors SET on_call = false WHERE id = 2").await;
    query(&other, "COMMIT").await;
    assert_eq!(query(&one, all).await, ["2"]);
    query(&one, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_outside_of_transactions_are_serializable_where_that_is_the_default() {
    for is_default in [true, false] {
        for is_simple in [true, false] {
            let (_world, one, other) = doctors().await;
            if is_default {
                query(&other, "SET default_transaction_isolation = 'serializable'").await;
                assert_eq!(query(&other, "SHOW transaction_isolation").await, ["serializable"]);
            }
            query(&one, BEGIN).await;
            assert_eq!(query(&one, "SELECT count(*) FROM doctors WHERE on_call").await, ["2"]);
            let change = "UPDATE doctors SET on_call = false
                WHERE id = 2 AND (SELECT count(*) FROM doctors WHERE on_call) = 2";
            match is_simple {
                true => drop(query(&other, change).await),
                false => assert_eq!(other.execute(change, &[]).await.unwrap(), 1),
            }
            query(&one, "UPDATE doctors SET on_call = false WHERE id = 1").await;
            let ended = one.simple_query("COMMIT").await;
            // Who runs under another level is no part of the order.
            let failed = ended.err().map(|error| code(&error));
            assert_eq!(failed.as_deref(), is_default.then_some("40001"), "{is_simple}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_can_be_set_until_the_first_statement() {
    let (_world, one, _other) = doctors().await;
    query(&one, "BEGIN").await;
    query(&one, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE").await;
    assert_eq!(query(&one, "SHOW transaction_isolation").await, ["serializable"]);
    query(&one, "SELECT * FROM doctors").await;
    let later = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    assert_eq!(failure(&one, later).await, "25001");
    query(&one, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_a_change_like_others() {
    for is_read in [true, false] {
        let (_world, one, other) = doctors().await;
        query(&one, "CREATE TABLE shifts (id int PRIMARY KEY)").await;
        query(&one, BEGIN).await;
        query(&one, "INSERT INTO shifts SELECT id FROM doctors").await;
        query(&other, BEGIN).await;
        if is_read {
            assert_eq!(query(&other, "SELECT count(*) FROM shifts").await, ["0"]);
        }
        query(&other, "TRUNCATE doctors").await;
        query(&other, "COMMIT").await;
        // It can run before the other one, unless that must run before it.
        let ended = one.simple_query("COMMIT").await;
        let failed = ended.err().map(|error| code(&error));
        assert_eq!(failed.as_deref(), is_read.then_some("40001"));
    }
}
