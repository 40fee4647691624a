//! The rows of an attached table come into its Iceberg table, each once, whatever becomes of the catalogue's answers
//! and of the database.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use futures::TryStreamExt;
use iceberg::Catalog;
use onrush::{
    ColumnDefinition, DataType, Database, OnlineOptions, Options, Session, Table, TableChange,
    TableDefinition,
};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::{Drain, DrainCatalogue, DrainOptions, LakeError, NodeId};
use world::*;

const NODE: u32 = 7;

/// A database, its drain, and the rows that it has.
struct Node {
    database: Database,
    table: Table,
    drain: Drain,
}

fn drain(database: &Database, catalogue: &Arc<FaultyCatalogue>) -> Drain {
    let catalogue: Arc<dyn Catalog> = Arc::clone(catalogue) as _;
    let catalogues = BTreeMap::from([("prod".to_owned(), DrainCatalogue::Open(catalogue))]);
    let options = DrainOptions::new(NodeId(NODE), catalogues);
    Drain::start(database, DrainOptions { patience: Duration::from_millis(100), ..options })
        .unwrap()
}

/// A database with a table that is attached.
fn create(folder: &Path, catalogue: &Arc<FaultyCatalogue>) -> Node {
    let database = Database::create(folder, Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let note = ColumnDefinition::new("note", DataType::Text);
    let events = TableDefinition::builder("events").column(id).column(note).primary_key(["id"]);
    database.create_table(events.build().unwrap()).unwrap();
    attach(&database);
    open(database, catalogue)
}

fn attach(database: &Database) {
    attachment::prepare(database).unwrap();
    let mut session = database.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let table = transaction.alter_table("events", &[TableChange::SetAppendsOnly(true)]).unwrap();
    let lag = Duration::from_secs(3600);
    let (catalogue, name) = ("prod".to_owned(), TABLE.to_owned());
    let attachment = Attachment { table: table.id(), catalogue, name, lag };
    attachment::put(&mut transaction, &attachment).unwrap();
    transaction.commit().unwrap();
}

fn open(database: Database, catalogue: &Arc<FaultyCatalogue>) -> Node {
    let (table, drain) = (database.table("events").unwrap(), drain(&database, catalogue));
    Node { database, table, drain }
}

impl Node {
    fn session(&self) -> Session {
        self.database.session().unwrap()
    }

    fn insert(&self, ids: std::ops::Range<i64>) {
        let mut session = self.session();
        for id in ids {
            session.insert(&self.table, &[id.into(), "a note".into()]).unwrap();
        }
    }

    async fn flush(&self) -> Result<(), LakeError> {
        self.drain.flush(self.table.id()).await
    }

    /// As after a crash, but for what only a power cut takes.
    fn reopen(self, folder: &Path, catalogue: &Arc<FaultyCatalogue>) -> Node {
        let Node { database, table, drain } = self;
        drop((table, drain));
        database.close().unwrap();
        open(Database::open(folder, Options::small()).unwrap(), catalogue)
    }
}

/// The ids in the lake, in order and with repetitions, and the LSN of each.
async fn in_lake(catalogue: &Arc<FaultyCatalogue>) -> Vec<(i64, i64)> {
    let scan = table(catalogue).await.scan().select(["id", "_lsn"]).build().unwrap();
    let batches: Vec<_> = scan.to_arrow().await.unwrap().try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        let lsns = batch.column_by_name("_lsn").unwrap().as_primitive::<Int64Type>();
        rows.extend(ids.values().iter().copied().zip(lsns.values().iter().copied()));
    }
    rows.sort_unstable();
    rows
}

async fn ids_in_lake(catalogue: &Arc<FaultyCatalogue>) -> Vec<i64> {
    in_lake(catalogue).await.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_once_each_in_rounds_and_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let mut node = create(&folder, &catalogue);
    node.flush().await.unwrap();
    assert!(ids_in_lake(&catalogue).await.is_empty());
    for round in 0..5 {
        node.insert(round * 100..round * 100 + 100);
        if round % 2 == 0 {
            node.database.checkpoint().unwrap();
        }
        node.flush().await.unwrap();
        // Nothing is new.
        node.flush().await.unwrap();
        assert_eq!(ids_in_lake(&catalogue).await, (0..round * 100 + 100).collect::<Vec<_>>());
        node = node.reopen(&folder, &catalogue);
    }
    // In the order of their commits.
    assert!(in_lake(&catalogue).await.is_sorted_by_key(|(_, lsn)| *lsn));
    let state = &node.drain.states()[0];
    assert_eq!((state.rows, state.commits), (0, 0), "of this process");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_comes_whole_also_one_that_is_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let node = create(&folder, &catalogue);
    let mut session = node.session();
    let mut transaction = session.begin().unwrap();
    let note = "n".repeat(1000);
    for id in 0..30_000i64 {
        transaction.insert(&node.table, &[id.into(), note.as_str().into()]).unwrap();
        if id == 20_000 {
            node.insert(30_000..30_010);
            node.flush().await.unwrap();
            // Nobody sees it yet.
            assert_eq!(ids_in_lake(&catalogue).await.len(), 10);
        }
    }
    transaction.commit().unwrap();
    node.flush().await.unwrap();
    let rows = in_lake(&catalogue).await;
    assert!(rows.iter().map(|(id, _)| *id).eq(0..30_010));
    assert!(rows[..30_000].iter().all(|(_, lsn)| *lsn == rows[0].1));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_lost_double_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let mut node = create(&folder, &catalogue);
    node.flush().await.unwrap();
    let mut last = 0;
    for fault in [Fault::LoseRequest, Fault::LoseAnswer, Fault::Twice, Fault::Lie] {
        node.insert(last..last + 10);
        last += 10;
        catalogue.fail_commits([fault]).await;
        node.flush().await.unwrap();
        assert_eq!(ids_in_lake(&catalogue).await, (0..last).collect::<Vec<_>>(), "{fault:?}");
    }
    // The catalogue is away behind the commit, and the database ends before it answers again.
    for (fault, is_applied) in [(Fault::LoseRequest, false), (Fault::LoseAnswer, true)] {
        node.insert(last..last + 10);
        catalogue.fail_commits([fault]).await;
        catalogue.fail_loads_after_commit(usize::MAX).await;
        assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
        assert_eq!(node.drain.states()[0].phase.word(), "away");
        catalogue.heal().await;
        let known = ids_in_lake(&catalogue).await.len() as i64;
        assert_eq!(known, if is_applied { last + 10 } else { last });
        last += 10;
        node = node.reopen(&folder, &catalogue);
        node.flush().await.unwrap();
        assert_eq!(ids_in_lake(&catalogue).await, (0..last).collect::<Vec<_>>(), "{fault:?}");
    }
    // And goes on without an end of the database, with more rows.
    node.insert(last..last + 10);
    catalogue.fail_commits([Fault::LoseAnswer]).await;
    catalogue.fail_loads_after_commit(usize::MAX).await;
    assert!(node.flush().await.is_err());
    node.insert(last + 10..last + 20);
    catalogue.heal().await;
    node.flush().await.unwrap();
    assert_eq!(ids_in_lake(&catalogue).await, (0..last + 20).collect::<Vec<_>>());
}

/// Found by `clients/lake/kill.py`: the claim's note took the place of that of the commit before, whose outcome was not
/// known when the node ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_lost_takes_nothing_from_what_was_asked_for_before() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let mut node = create(&folder, &catalogue);
    node.insert(0..10);
    node.flush().await.unwrap();
    node.insert(10..20);
    catalogue.fail_commits([Fault::LoseAnswer]).await;
    catalogue.fail_loads_after_commit(usize::MAX).await;
    assert!(node.flush().await.is_err());
    for _ in 0..3 {
        catalogue.heal().await;
        node = node.reopen(&folder, &catalogue);
        catalogue.fail_commits([Fault::LoseRequest; 100]).await;
        assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
    }
    catalogue.heal().await;
    node = node.reopen(&folder, &catalogue);
    node.flush().await.unwrap();
    assert_eq!(ids_in_lake(&catalogue).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_claim_that_comes_late_is_the_nodes_own() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let lost = [Fault::LoseRequest; 100];
    catalogue.fail_commits([Fault::Delay].into_iter().chain(lost)).await;
    let mut node = create(&folder, &catalogue);
    node.insert(0..10);
    assert!(node.flush().await.is_err());
    node = node.reopen(&folder, &catalogue);
    catalogue.heal().await;
    catalogue.fail_commits([Fault::AfterDelayed]).await;
    let _ = node.flush().await;
    node = node.reopen(&folder, &catalogue);
    node.flush().await.unwrap();
    assert_eq!(ids_in_lake(&catalogue).await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_database_that_went_another_way_brings_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let node = create(&path, &catalogue);
    node.insert(0..10);
    node.flush().await.unwrap();
    let copied = folder.path().join("copy");
    node.database.backup(&copied, &OnlineOptions::default(), &Default::default()).unwrap();
    node.insert(10..20);
    node.flush().await.unwrap();

    let copy = open(Database::open(&copied, Options::small()).unwrap(), &catalogue);
    copy.insert(100..200);
    let because = copy.flush().await.unwrap_err().to_string();
    assert!(because.contains("copy") && because.contains("backup"), "{because}");
    assert!(matches!(copy.flush().await, Err(LakeError::Fenced { .. })));
    assert_eq!(copy.drain.states()[0].phase.word(), "stopped");
    // The original goes on.
    node.insert(20..30);
    node.flush().await.unwrap();
    assert_eq!(ids_in_lake(&catalogue).await, (0..30).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_database_and_its_copy_that_begin_alike_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let node = create(&path, &catalogue);
    node.insert(0..10);
    node.flush().await.unwrap();
    let copied = folder.path().join("copy");
    node.database.backup(&copied, &OnlineOptions::default(), &Default::default()).unwrap();
    let copy = open(Database::open(&copied, Options::small()).unwrap(), &catalogue);
    copy.insert(100..110);
    copy.flush().await.unwrap();
    node.insert(10..20);
    assert!(node.flush().await.unwrap_err().to_string().contains("claimed"));
    let all: Vec<i64> = (0..10).chain(100..110).collect();
    assert_eq!(ids_in_lake(&catalogue).await, all);
    // Nor after a restart.
    let node = node.reopen(&path, &catalogue);
    assert!(node.flush().await.unwrap_err().to_string().contains("copy"));
    assert_eq!(ids_in_lake(&catalogue).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_never_come_into_columns_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let node = create(&folder, &catalogue);
    node.flush().await.unwrap();
    // As many columns of the same kinds as before.
    let other = ColumnDefinition::new("other", DataType::Text);
    let dropped = TableChange::DropColumn { name: "note".into() };
    node.database.alter_table("events", &[dropped, TableChange::AddColumn(other)]).unwrap();
    let table = node.database.table("events").unwrap();
    node.session().insert(&table, &[1.into(), "of other".into()]).unwrap();
    let error = node.flush().await.unwrap_err();
    assert!(matches!(&error, LakeError::TableMismatch { .. }), "{error}");
    assert!(error.to_string().contains("other") && error.to_string().contains("note"), "{error}");
    assert!(ids_in_lake(&catalogue).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_iceberg_has_not_is_told_with_its_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let day = ColumnDefinition::new("day", DataType::Date);
    let events = TableDefinition::builder("events").column(id).column(day).primary_key(["id"]);
    database.create_table(events.build().unwrap()).unwrap();
    attach(&database);
    let node = open(database, &Arc::new(FaultyCatalogue::new()));
    node.session().insert(&node.table, &[7i64.into(), onrush::Value::Date(i32::MAX)]).unwrap();
    let error = node.flush().await.unwrap_err().to_string();
    assert!(error.contains("day") && error.contains("(7)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_meanwhile_come_with_a_later_round() {
    let folder = tempfile::tempdir().unwrap();
    let (path, catalogue) = (folder.path().join("db"), Arc::new(FaultyCatalogue::new()));
    let node = create(&path, &catalogue);
    let node = &node;
    std::thread::scope(|scope| {
        let inserting: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    for id in 0..500 {
                        node.insert(thread * 500 + id..thread * 500 + id + 1);
                    }
                })
            })
            .collect();
        tokio::task::block_in_place(|| {
            let runtime = tokio::runtime::Handle::current();
            while !inserting.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                runtime.block_on(node.flush()).unwrap();
            }
            runtime.block_on(node.flush()).unwrap();
        });
    });
    assert_eq!(ids_in_lake(&catalogue).await, (0..2000).collect::<Vec<_>>());
}
