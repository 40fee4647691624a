//! Statements that nobody thought of give what PostgreSQL gives: the same rows, in the same order where one is asked
//! for, and the same rows in the table that they change; or they are refused by name.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{World, code};
use crate::postgresql::Cluster;
use crate::query_generator::{Choices, Statement, TABLES, statement};

/// What a server made of a statement.
#[derive(Clone, PartialEq, Eq)]
enum Outcome {
    /// The rows that it gave, and those of the table that it changed.
    Rows {
        given: Vec<String>,
        left: Vec<String>,
    },
    Refused {
        code: String,
        words: String,
    },
}

/// A value, without the zeros at its end if it is a number: which of several equal numbers is shown is not said.
fn plain(value: &str) -> &str {
    match value.contains('.') && value.parse::<f64>().is_ok() {
        true => value.trim_end_matches('0').trim_end_matches('.'),
        false => value,
    }
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await? {
        match message {
            SimpleQueryMessage::Row(row) => {
                let values = (0..row.len()).map(|at| plain(row.get(at).unwrap_or("NULL")));
                rows.push(values.collect::<Vec<_>>().join("|"));
            }
            SimpleQueryMessage::CommandComplete(count) => rows.push(format!("{count} rows")),
            _ => {}
        }
    }
    Ok(rows)
}

async fn outcome(client: &Client, statement: &Statement) -> Outcome {
    let refused = |error: tokio_postgres::Error| Outcome::Refused {
        code: code(&error),
        words: error.as_db_error().map_or(error.to_string(), |error| error.message().to_owned()),
    };
    if statement.changes.is_some() {
        client.batch_execute("BEGIN").await.unwrap();
    }
    let mut result = match rows(client, &statement.sql).await {
        Ok(given) => Outcome::Rows { given, left: Vec::new() },
        Err(error) => refused(error),
    };
    if let (Some(table), Outcome::Rows { left, .. }) = (statement.changes, &mut result) {
        *left = rows(client, &format!("SELECT * FROM {table}")).await.unwrap();
        left.sort();
    }
    if statement.changes.is_some() {
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    if let (Outcome::Rows { given, .. }, false) = (&mut result, statement.is_ordered) {
        given.sort();
    }
    result
}

/// What is wrong with what was given, where something is.
fn difference(sql: &str, given: &Outcome, right: &Outcome) -> Option<String> {
    let mut told = format!("{sql}\n");
    match (given, right) {
        (Outcome::Refused { code: given, .. }, Outcome::Refused { code: right, .. })
            if given == right =>
        {
            return None;
        }
        _ if given == right => return None,
        _ => {}
    }
    for (server, outcome) in [("PostgreSQL", right), ("Onrush", given)] {
        match outcome {
            Outcome::Refused { code, words } => writeln!(told, "{server}: {code} {words}").unwrap(),
            Outcome::Rows { given, left } => {
                writeln!(told, "{server}: {given:?}, table: {left:?}").unwrap();
            }
        }
    }
    Some(told)
}

/// `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for more statements, and for others.
#[tokio::test(flavor = "multi_thread")]
async fn generated_statements_give_what_postgresql_gives() {
    let Some(cluster) = Cluster::start() else { return };
    let postgresql = cluster.client_in_new_database("generated").await;
    let world = World::new();
    let client = world.client().await;
    for client in [&postgresql, &client] {
        client.batch_execute(TABLES).await.unwrap();
    }
    let mut config = ProptestConfig::with_source_file(file!());
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 600;
    }
    // The same statements each time, unless others are asked for.
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    let cases = config.cases;
    let (mut compared, mut refused) = (0_u32, 0_u32);
    let runtime = tokio::runtime::Handle::current();
    let tapes = prop::collection::vec(any::<u8>(), 0..400);
    let result = tokio::task::block_in_place(|| {
        let count = std::cell::RefCell::new((&mut compared, &mut refused));
        TestRunner::new(config).run(&tapes, |tape| {
            let statement = statement(&mut Choices::new(&tape));
            let right = runtime.block_on(outcome(&postgresql, &statement));
            let given = runtime.block_on(outcome(&client, &statement));
            let mut count = count.borrow_mut();
            *count.0 += 1;
            if matches!(&given, Outcome::Refused { code, .. } if code == "0A000") {
                *count.1 += 1;
                return Ok(());
            }
            match difference(&statement.sql, &given, &right) {
                None => Ok(()),
                Some(told) => Err(TestCaseError::fail(told)),
            }
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(refused * 10 <= compared, "{refused} of {cases} statements were refused");
}
