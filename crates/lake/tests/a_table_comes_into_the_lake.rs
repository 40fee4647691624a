//! The rows of an attached table come into its table in the lake, each once, whatever becomes of the lake's answers and
//! of the database.

#![allow(clippy::unwrap_used)]

mod world;

use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};
use world::lake::Lake;
use world::node::{EVENTS, attach, open};

over_every_lake! {
    drained:
    rows_come_once_each_in_rounds_and_across_restarts,
    a_transaction_comes_whole_also_one_that_is_larger_than_memory,
    answers_that_are_lost_double_and_lose_nothing,
    a_claim_that_is_lost_takes_nothing_from_what_was_asked_for_before,
    a_first_claim_that_comes_late_is_the_nodes_own,
    a_copy_of_the_database_that_went_another_way_brings_nothing,
    of_a_database_and_its_copy_that_begin_alike_one_goes_on,
    values_never_come_into_columns_of_others,
    rows_that_come_meanwhile_come_with_a_later_round,
    a_commit_that_is_delayed_and_its_repetition_are_applied_once,
    marks_outlive_the_upkeep_of_the_lake,
    what_a_predecessor_has_in_flight_is_refused_once_it_is_succeeded,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_iceberg_has_not_is_told_with_its_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let day = ColumnDefinition::new("day", DataType::Date);
    let events = TableDefinition::builder("events").column(id).column(day).primary_key(["id"]);
    database.create_table(events.build().unwrap()).unwrap();
    attach(&database, EVENTS);
    let node = open(database, &Lake::iceberg());
    node.session().insert(&node.table, &[7i64.into(), onrush::Value::Date(i32::MAX)]).unwrap();
    let error = node.flush().await.unwrap_err().to_string();
    assert!(error.contains("day") && error.contains("(7)"), "{error}");
}
