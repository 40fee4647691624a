//! Transactions that change or lock the same rows: who waits, who fails, and what each of them sees then, as
//! PostgreSQL's isolation levels say.

use crate::common::{World, code, failure, query};
use onrush::Wait;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// The state of the error, if there was one, and the client.
type Outcome = (Option<String>, Client);

/// A statement is under way that will not end before another transaction has.
async fn waiting(world: &World, client: Client, text: &'static str) -> JoinHandle<Outcome> {
    let waiting = tokio::spawn(async move {
        let failed = client.simple_query(text).await.err().map(|error| code(&error));
        (failed, client)
    });
    let waits = |session: &onrush::LiveSummary| session.waits_now == Some(Wait::LockRow);
    while !world.database.sessions().iter().any(waits) {
        assert!(!waiting.is_finished(), "{text}");
        tokio::task::yield_now().await;
    }
    waiting
}

/// Accounts 1 to 3 with a balance of 100 each.
async fn accounts() -> (World, Client, Client) {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    query(&one, "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)").await;
    query(&one, "INSERT INTO accounts SELECT n, 100 FROM generate_series(1, 3) AS g(n)").await;
    (world, one, other)
}

async fn balance(client: &Client, id: i32) -> String {
    query(client, &format!("SELECT balance FROM accounts WHERE id = {id}")).await.remove(0)
}

const ADD_10: &str = "UPDATE accounts SET balance = balance + 10 WHERE id = 1";

#[tokio::test(flavor = "multi_thread")]
async fn an_update_waits_for_the_transaction_that_has_changed_the_row_and_counts_on() {
    for (begin, end) in [("BEGIN", "COMMIT"), ("SELECT 1", "SELECT 1")] {
        let (world, one, other) = accounts().await;
        query(&one, "BEGIN").await;
        query(&one, ADD_10).await;
        query(&other, begin).await;
        let other = waiting(&world, other, ADD_10).await;
        query(&one, "COMMIT").await;
        let (failed, other) = other.await.unwrap();
        assert_eq!(failed, None);
        query(&other, end).await;
        assert_eq!(balance(&one, 1).await, "120", "{begin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_goes_on_with_the_old_row_when_the_other_transaction_is_rolled_back() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    let other = waiting(&world, other, ADD_10).await;
    query(&one, "ROLLBACK").await;
    assert_eq!(other.await.unwrap().0, None);
    assert_eq!(balance(&one, 1).await, "110");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_no_longer_meets_the_condition_is_left_alone() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, "UPDATE accounts SET balance = 0 WHERE id = 1").await;
    query(&other, "BEGIN").await;
    let text = "UPDATE accounts SET balance = balance - 50 WHERE balance >= 50 AND id < 3";
    let other = waiting(&world, other, text).await;
    query(&one, "COMMIT").await;
    let (failed, other) = other.await.unwrap();
    assert_eq!(failed, None);
    query(&other, "COMMIT").await;
    let balances = query(&one, "SELECT balance FROM accounts ORDER BY id").await;
    assert_eq!(balances, ["0", "50", "100"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_waits_for_the_transaction_that_has_changed_the_row() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    query(&other, "BEGIN").await;
    let other =
        waiting(&world, other, "DELETE FROM accounts WHERE balance >= 100 AND id < 2").await;
    query(&one, "COMMIT").await;
    let (failed, other) = other.await.unwrap();
    assert_eq!(failed, None);
    query(&other, "COMMIT").await;
    assert_eq!(query(&one, "SELECT id FROM accounts ORDER BY id").await, ["2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_and_steps_of_a_statement_wait_for_a_row_and_begin_again() {
    let merge = "MERGE INTO accounts a USING (VALUES (1, 10), (9, 90)) v (id, more) ON a.id = v.id \
                 WHEN MATCHED AND a.balance > 105 THEN UPDATE SET balance = a.balance + v.more \
                 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.more)";
    let steps = "WITH raised AS (UPDATE accounts SET balance = balance + 10 WHERE id = 1 \
                 RETURNING id) \
                 INSERT INTO accounts SELECT id + 8, 90 FROM raised";
    for text in [merge, steps] {
        let (world, one, other) = accounts().await;
        query(&one, "BEGIN").await;
        query(&one, ADD_10).await;
        query(&other, "BEGIN").await;
        let other = waiting(&world, other, text).await;
        query(&one, "COMMIT").await;
        let (failed, other) = other.await.unwrap();
        assert_eq!(failed, None);
        query(&other, "COMMIT").await;
        let after = query(&one, "SELECT id || ':' || balance FROM accounts ORDER BY id").await;
        assert_eq!(after, ["1:120", "2:100", "3:100", "9:90"], "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_repeatable_read_a_row_that_was_changed_meanwhile_is_a_failure() {
    let (world, one, other) = accounts().await;
    query(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(balance(&other, 1).await, "100");
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    let other = waiting(&world, other, ADD_10).await;
    query(&one, "COMMIT").await;
    let (failed, other) = other.await.unwrap();
    assert_eq!(failed.as_deref(), Some("40001"));
    query(&other, "ROLLBACK").await;
    query(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(balance(&other, 2).await, "100");
    query(&one, ADD_10).await;
    assert_eq!(failure(&other, "SELECT * FROM accounts WHERE id = 1 FOR UPDATE").await, "40001");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_of_read_committed_sees_what_others_have_committed() {
    let (_world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!((balance(&one, 1).await, balance(&other, 1).await), ("100".into(), "100".into()));
    let third = _world.client().await;
    query(&third, ADD_10).await;
    assert_eq!((balance(&one, 1).await, balance(&other, 1).await), ("110".into(), "100".into()));
    query(&one, "UPDATE accounts SET balance = balance + 1 WHERE id = 1").await;
    query(&one, "COMMIT").await;
    assert_eq!(balance(&other, 1).await, "100");
    query(&other, "COMMIT").await;
    assert_eq!(balance(&other, 1).await, "111");
}

#[tokio::test(flavor = "multi_thread")]
async fn repeatable_read_sees_what_was_committed_before_its_first_statement() {
    let (_world, one, other) = accounts().await;
    query(&one, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    query(&other, ADD_10).await;
    assert_eq!(balance(&one, 1).await, "110");
    query(&other, ADD_10).await;
    assert_eq!(balance(&one, 1).await, "110");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_read_for_update_stays_as_it_is() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    let rows = query(&one, "SELECT balance FROM accounts WHERE id = 1 FOR UPDATE").await;
    assert_eq!(rows, ["100"]);
    let other = waiting(&world, other, "UPDATE accounts SET balance = 0 WHERE id = 1").await;
    query(&one, "UPDATE accounts SET balance = 70 WHERE id = 1").await;
    query(&one, "COMMIT").await;
    assert_eq!(other.await.unwrap().0, None);
    assert_eq!(balance(&one, 1).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_row_for_update_reads_what_has_become_of_it() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    query(&other, "BEGIN").await;
    let text = "SELECT id FROM accounts WHERE balance = 110 OR id = 1 FOR UPDATE";
    let other = waiting(&world, other, text).await;
    query(&one, "COMMIT").await;
    let (failed, other) = other.await.unwrap();
    assert_eq!(failed, None);
    assert_eq!(balance(&other, 1).await, "110");
    assert_eq!(failure(&one, "SELECT 1 FROM accounts FOR SHARE NOWAIT").await, "55P03");
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_of_rows_keep_each_other_off_as_in_postgresql() {
    let (_world, one, other) = accounts().await;
    let locks = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];
    let kept_off = [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]];
    for (first, others) in locks.iter().zip(kept_off) {
        query(&one, "BEGIN").await;
        query(&one, &format!("SELECT 1 FROM accounts WHERE id = 1 FOR {first}")).await;
        for (second, is_kept_off) in locks.iter().zip(others) {
            let text = format!("SELECT 1 FROM accounts WHERE id = 1 FOR {second} NOWAIT");
            let refused = other.simple_query(&text).await.err().map(|error| code(&error));
            assert_eq!(refused.is_some(), is_kept_off == 1, "{first}, {second}: {refused:?}");
        }
        query(&one, "COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_a_queue_skip_each_others_jobs() {
    let (_world, one, other) = accounts().await;
    let next = "SELECT id FROM accounts ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
    query(&one, "BEGIN").await;
    query(&other, "BEGIN").await;
    assert_eq!(query(&one, next).await, ["1"]);
    assert_eq!(query(&other, next).await, ["2"]);
    query(&one, "DELETE FROM accounts WHERE id = 1").await;
    query(&one, "COMMIT").await;
    assert_eq!(
        query(&one, "SELECT id FROM accounts ORDER BY id FOR SHARE SKIP LOCKED").await,
        ["3"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_wait_for_each_other_one_is_refused_and_the_other_goes_on() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&other, "BEGIN").await;
    query(&one, "UPDATE accounts SET balance = 1 WHERE id = 1").await;
    query(&other, "UPDATE accounts SET balance = 2 WHERE id = 2").await;
    let one = waiting(&world, one, "UPDATE accounts SET balance = 1 WHERE id = 2").await;
    let last = "UPDATE accounts SET balance = 2 WHERE id = 1";
    assert_eq!(failure(&other, last).await, "40P01");
    query(&other, "ROLLBACK").await;
    let (failed, one) = one.await.unwrap();
    assert_eq!(failed, None);
    query(&one, "COMMIT").await;
    assert_eq!(balance(&other, 2).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_row_ends_by_lock_timeout_statement_timeout_or_cancel() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    query(&other, "SET lock_timeout = '10ms'").await;
    assert_eq!(failure(&other, ADD_10).await, "55P03");
    query(&other, "SET lock_timeout = 0; SET statement_timeout = '10ms'").await;
    assert_eq!(failure(&other, ADD_10).await, "57014");
    query(&other, "SET statement_timeout = 0").await;
    let token = other.cancel_token();
    let other = waiting(&world, other, ADD_10).await;
    token.cancel_query(tokio_postgres::NoTls).await.unwrap();
    assert_eq!(other.await.unwrap().0.as_deref(), Some("57014"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_gives_back_the_rows_that_were_changed_behind_it() {
    let (_world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, "UPDATE accounts SET balance = 1 WHERE id = 1").await;
    query(&one, "SAVEPOINT s").await;
    query(&one, "UPDATE accounts SET balance = 2 WHERE id = 2").await;
    query(&one, "ROLLBACK TO s").await;
    query(&other, "UPDATE accounts SET balance = 3 WHERE id = 2").await;
    let text = "SELECT 1 FROM accounts WHERE id = 1 FOR UPDATE NOWAIT";
    assert_eq!(failure(&other, text).await, "55P03");
    query(&one, "COMMIT").await;
    let balances = query(&other, "SELECT balance FROM accounts ORDER BY id").await;
    assert_eq!(balances, ["1", "3", "100"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_insert_a_key_the_second_waits_and_is_told_at_its_statement() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, "INSERT INTO accounts VALUES (9, 1)").await;
    query(&other, "BEGIN").await;
    let other = waiting(&world, other, "INSERT INTO accounts VALUES (9, 2)").await;
    query(&one, "COMMIT").await;
    assert_eq!(other.await.unwrap().0.as_deref(), Some("23505"));
    assert_eq!(balance(&one, 9).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_with_an_insert_goes_on_when_the_other_one_is_rolled_back() {
    for begin in ["BEGIN", "SELECT 1"] {
        let (world, one, other) = accounts().await;
        query(&one, "BEGIN").await;
        query(&one, "INSERT INTO accounts VALUES (9, 1)").await;
        query(&other, begin).await;
        let other = waiting(&world, other, "INSERT INTO accounts VALUES (9, 2)").await;
        query(&one, "ROLLBACK").await;
        let (failed, other) = other.await.unwrap();
        assert_eq!(failed, None);
        assert_eq!(balance(&other, 9).await, "2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_upserts_of_a_new_key_the_second_updates_what_the_first_has_inserted() {
    let (world, one, other) = accounts().await;
    let text = "INSERT INTO accounts VALUES (9, 5) \
                ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + EXCLUDED.balance";
    query(&one, "BEGIN").await;
    query(&one, text).await;
    query(&other, "BEGIN").await;
    let other = waiting(&world, other, text).await;
    query(&one, "COMMIT").await;
    let (failed, other) = other.await.unwrap();
    assert_eq!(failed, None);
    query(&other, "COMMIT").await;
    assert_eq!(balance(&one, 9).await, "10");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_unique_constraint_is_waited_for() {
    let (world, one, other) = accounts().await;
    query(&one, "ALTER TABLE accounts ADD COLUMN code text UNIQUE").await;
    query(&one, "BEGIN").await;
    query(&one, "INSERT INTO accounts VALUES (8, 1, 'same')").await;
    query(&other, "BEGIN").await;
    let other = waiting(&world, other, "INSERT INTO accounts VALUES (9, 1, 'same')").await;
    query(&one, "COMMIT").await;
    assert_eq!(other.await.unwrap().0.as_deref(), Some("23505"));
}

/// Account 1 is referenced by what one transaction inserts, and deleted by another.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_referenced_is_deleted_when_that_is_over_or_not_at_all() {
    for (end, state) in [("COMMIT", Some("23503")), ("ROLLBACK", None)] {
        let (world, one, other) = accounts().await;
        let text = "CREATE TABLE payments (id int PRIMARY KEY, account int REFERENCES accounts)";
        query(&one, text).await;
        query(&one, "BEGIN").await;
        query(&one, "INSERT INTO payments VALUES (1, 1)").await;
        query(&one, "UPDATE accounts SET balance = 0 WHERE id = 1").await;
        query(&other, "BEGIN").await;
        let other = waiting(&world, other, "DELETE FROM accounts WHERE id = 1").await;
        query(&one, end).await;
        assert_eq!(other.await.unwrap().0.as_deref(), state, "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_deleted_is_referenced_when_that_is_over_or_not_at_all() {
    for (end, state) in [("COMMIT", Some("23503")), ("ROLLBACK", None)] {
        let (world, one, other) = accounts().await;
        let text = "CREATE TABLE payments (id int PRIMARY KEY, account int REFERENCES accounts)";
        query(&one, text).await;
        query(&one, "BEGIN").await;
        query(&one, "DELETE FROM accounts WHERE id = 1").await;
        query(&other, "BEGIN").await;
        let other = waiting(&world, other, "INSERT INTO payments VALUES (1, 1)").await;
        query(&one, end).await;
        assert_eq!(other.await.unwrap().0.as_deref(), state, "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advisory_lock_is_waited_for_until_it_is_given_back() {
    for (take, give_back) in [
        ("SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)"),
        ("SELECT pg_advisory_lock_shared(7)", "SELECT pg_advisory_unlock_all()"),
        ("SELECT pg_advisory_lock(7)", "DISCARD ALL"),
        ("BEGIN; SELECT pg_advisory_xact_lock(7)", "ROLLBACK"),
    ] {
        let world = World::new();
        let (one, other) = (world.client().await, world.client().await);
        query(&one, take).await;
        assert_eq!(query(&other, "SELECT pg_try_advisory_lock(7)").await, ["f"], "{take}");
        let other = waiting(&world, other, "SELECT pg_advisory_lock(7)").await;
        query(&one, give_back).await;
        assert_eq!(other.await.unwrap().0, None, "{take}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_advisory_lock_goes_with_its_client_and_one_of_a_transaction_with_its_statement() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    query(&one, "SELECT pg_advisory_xact_lock(7)").await;
    assert_eq!(query(&other, "SELECT pg_try_advisory_lock(7)").await, ["t"]);
    query(&one, "SELECT pg_advisory_lock(8)").await;
    let other = waiting(&world, other, "SELECT pg_advisory_lock(8)").await;
    drop(one);
    assert_eq!(other.await.unwrap().0, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circle_over_a_row_and_an_advisory_lock_is_found() {
    let (world, one, other) = accounts().await;
    query(&one, "BEGIN").await;
    query(&one, ADD_10).await;
    query(&other, "SELECT pg_advisory_lock(7)").await;
    query(&other, "BEGIN").await;
    let other = waiting(&world, other, ADD_10).await;
    assert_eq!(failure(&one, "SELECT pg_advisory_lock(7)").await, "40P01");
    query(&one, "ROLLBACK").await;
    assert_eq!(other.await.unwrap().0, None);
}

/// Eight clients that change two rows each, in the same order, in transactions of their own: nothing fails, and nothing
/// is lost.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_change_the_same_rows_fail_in_none_of_their_transactions() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 25;
    let (world, one, _) = accounts().await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let client = world.client().await;
        clients.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                query(&client, "BEGIN").await;
                query(&client, "UPDATE accounts SET balance = balance - 1 WHERE id = 1").await;
                query(&client, "UPDATE accounts SET balance = balance + 1 WHERE id = 2").await;
                query(&client, "COMMIT").await;
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    let moved = CLIENTS * ROUNDS;
    assert_eq!(balance(&one, 1).await, (100 - moved as i64).to_string());
    assert_eq!(balance(&one, 2).await, (100 + moved).to_string());
}
