//! Whatever is inserted, brought into the lake and asked meanwhile, `lake.<table>` has each row once: own rows as the
//! snapshot has them, those of other nodes as the lake has.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio_postgres::Client;

use crate::lake_world::{EVENTS, Lake, attach, flush, one, shown};

#[derive(Clone, Debug)]
enum Step {
    /// Rows of a node.
    Insert(bool, u8),
    /// A round of a node.
    Round(bool),
    /// An old transaction begins; rows of its own follow, so many.
    Begin(u8),
    /// It reads, and goes on.
    Look,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), 1..40u8).prop_map(|(own, rows)| Step::Insert(own, rows)),
        3 => any::<bool>().prop_map(Step::Round),
        1 => (0..3u8).prop_map(Step::Begin),
        2 => Just(Step::Look),
        1 => Just(Step::End),
    ]
}

/// What one view of the lake has of each node's rows.
async fn compare(client: &Client, own: &BTreeSet<i64>, others: &BTreeSet<i64>) {
    let expected: Vec<String> = own
        .iter()
        .map(|id| (id, 7))
        .chain(others.iter().map(|id| (id, 8)))
        .map(|(id, node)| format!("{id}|{}|{node}", text(*id)))
        .collect();
    let rows = "SELECT id, note, _node FROM lake.events ORDER BY _node, id";
    let found = shown(client, rows).await;
    assert!(found == expected, "{} rows, not {}", found.len(), expected.len());
    let count = expected.len();
    let counts =
        "SELECT count(*), count(DISTINCT id), count(DISTINCT (_node, id)) FROM lake.events";
    assert_eq!(one(client, counts).await, format!("{count}|{count}|{count}"));
    let own_count = own.len();
    let query = "SELECT (SELECT count(*) FROM lake.events WHERE _node = 7), count(*) FROM events";
    assert_eq!(one(client, query).await, format!("{own_count}|{own_count}"));
    if let Some(id) = own.iter().nth(own_count / 2) {
        let query = format!("SELECT note FROM lake.events WHERE id = {id}");
        assert_eq!(shown(client, &query).await, [text(*id)]);
    }
}

fn text(id: i64) -> String {
    format!("note {}", id * 7)
}

async fn run(steps: &[Step]) {
    let lake = Lake::new();
    let (seven, eight) = (lake.node(7), lake.node(8));
    let (own, other, old) = (seven.client().await, eight.client().await, seven.client().await);
    for client in [&own, &other] {
        client.batch_execute(EVENTS).await.unwrap();
        attach(client, "events").await;
        // The first round comes at once, and each other when it is asked for.
        flush(client, "events").await;
    }
    let (mut next, mut rows) = (0i64, [BTreeSet::new(), BTreeSet::new()]);
    let mut in_lake: BTreeSet<i64> = BTreeSet::new();
    // What the old transaction sees: own rows, and the others' once it has read.
    let mut open: Option<(BTreeSet<i64>, Option<BTreeSet<i64>>)> = None;
    for step in steps {
        match step {
            Step::Insert(is_own, count) => {
                let client = if *is_own { &own } else { &other };
                // Keys that lie between those that are there.
                let ids: Vec<i64> =
                    (0..i64::from(*count)).map(|at| (next + at) * 7919 % 1_000_003).collect();
                next += i64::from(*count);
                let values = ids.iter().map(|id| format!("({id}, 'k', '{}')", text(*id)));
                let values = values.collect::<Vec<_>>().join(", ");
                client.batch_execute(&format!("INSERT INTO events VALUES {values}")).await.unwrap();
                rows[usize::from(!*is_own)].extend(ids);
            }
            Step::Round(true) => flush(&own, "events").await,
            Step::Round(false) => {
                flush(&other, "events").await;
                in_lake.clone_from(&rows[1]);
            }
            Step::Begin(count) if open.is_none() => {
                old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
                let mut seen = rows[0].clone();
                assert_eq!(one(&old, "SELECT count(*) FROM events").await, seen.len().to_string());
                for at in 0..i64::from(*count) {
                    let id = 2_000_000 + at;
                    let insert = format!("INSERT INTO events VALUES ({id}, 'k', '{}')", text(id));
                    old.batch_execute(&insert).await.unwrap();
                    seen.insert(id);
                }
                open = Some((seen, None));
            }
            Step::End => {
                if open.take().is_some() {
                    old.batch_execute("ROLLBACK").await.unwrap();
                }
            }
            Step::Begin(_) | Step::Look => {}
        }
        if let Some((seen, pinned)) = &mut open
            && matches!(step, Step::Look)
        {
            let others = pinned.get_or_insert_with(|| in_lake.clone());
            compare(&old, seen, others).await;
        }
        compare(&own, &rows[0], &in_lake).await;
    }
    // The other node sees the same from its side.
    flush(&own, "events").await;
    let query = "SELECT count(*), count(DISTINCT id) FROM lake.events";
    let count = rows[0].len() + rows[1].len();
    assert_eq!(one(&other, query).await, format!("{count}|{count}"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6,
        max_shrink_iters: 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_row_is_missing_or_there_twice_whatever_happens_meanwhile(
        steps in proptest::collection::vec(step(), 10..40),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(run(&steps));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_reads_one_snapshot_of_the_lake() {
    let lake = Lake::new();
    let (seven, eight) = (lake.node(7), lake.node(8));
    let (client, other) = (seven.client().await, eight.client().await);
    for client in [&client, &other] {
        client.batch_execute(EVENTS).await.unwrap();
        attach(client, "events").await;
    }
    let count = "SELECT count(*) FROM lake.events";
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(one(&client, count).await, "0");
    let cut = shown(&client, "CALL onrush.lake_cut('events')").await;
    let writer = seven.client().await;
    writer.batch_execute("INSERT INTO events VALUES (1)").await.unwrap();
    other.batch_execute("INSERT INTO events VALUES (2)").await.unwrap();
    flush(&writer, "events").await;
    flush(&other, "events").await;
    // What is committed here shows, as the isolation says; the lake stays.
    assert_eq!(shown(&client, "SELECT id FROM lake.events").await, ["1"]);
    assert_eq!(shown(&client, "CALL onrush.lake_cut('events')").await, cut);
    client.batch_execute("COMMIT AND CHAIN").await.unwrap();
    assert_eq!(one(&client, count).await, "2");
    client.batch_execute("COMMIT").await.unwrap();
    assert_ne!(shown(&client, "CALL onrush.lake_cut('events')").await, cut);
    // A large transaction sees what it has written, and a savepoint takes it back.
    client.batch_execute("BEGIN; INSERT INTO events VALUES (3); SAVEPOINT s").await.unwrap();
    let insert =
        "INSERT INTO events SELECT n, 'k', repeat('x', 500) FROM generate_series(10, 3009) AS n";
    client.batch_execute(insert).await.unwrap();
    assert_eq!(one(&client, count).await, "3003");
    assert_eq!(one(&client, "SELECT count(*) FROM lake.events WHERE _lsn IS NULL").await, "3001");
    client.batch_execute("ROLLBACK TO s").await.unwrap();
    assert_eq!(one(&client, count).await, "3");
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(one(&client, count).await, "3");
}
