//! Nodes that drain into one table over a catalogue that fails on demand.
//!
//! A node has one row at each of its LSNs, so what the table must hold follows from the marks.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod catalogue;
pub mod drained;
pub mod lake;
pub mod lost;
pub mod node;
pub mod postgres;
#[path = "../../../server/tests/server/postgresql.rs"]
pub mod postgresql;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use futures::TryStreamExt;
use iceberg::spec::DataFile;
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::{Catalog, TableIdent};
use onrush_lake::{
    Claim, Claimant, Confirmed, ExpectedMark, FencedBecause, IcebergTarget, LakeColumn, LakeError,
    LakeKind, LakeValue, Mark, NodeId, Verdict,
};

#[allow(unused_imports, reason = "each test file uses a part")]
pub use catalogue::{Fault, FaultyCatalogue};

pub const TABLE: &str = "lake.events";
/// Where a node's rows begin.
pub const START: u64 = 100;
/// The clock of these tests stands still but for waits.
pub const PATIENCE: Duration = Duration::from_secs(10);
pub const DAY_MICROS: i64 = 86_400_000_000;

pub fn columns() -> Vec<LakeColumn> {
    let column =
        |name: &str, kind, is_nullable| LakeColumn { name: name.into(), kind, is_nullable };
    vec![column("id", LakeKind::Int64, false), column("note", LakeKind::Text, true)]
}

pub fn ident() -> TableIdent {
    TableIdent::from_strs(TABLE.split('.')).unwrap()
}

/// One process that drains as a node.
#[derive(Debug)]
pub struct Process {
    pub target: IcebergTarget,
    pub node: NodeId,
    pub history: u128,
    pub mark: Mark,
    pub confirmed: Confirmed,
}

pub async fn open(catalogue: &Arc<FaultyCatalogue>) -> IcebergTarget {
    let catalogue: Arc<dyn Catalog> = Arc::clone(catalogue) as _;
    IcebergTarget::open_or_create(catalogue, TABLE, &columns(), &["id"], PATIENCE).await.unwrap()
}

/// The first process of a node.
pub async fn start(catalogue: &Arc<FaultyCatalogue>, node: u32) -> Process {
    let expected = ExpectedMark::start(START);
    claim(catalogue, node, expected).await.unwrap()
}

/// Another process of a node, with the note that the one before left.
pub async fn succeed(catalogue: &Arc<FaultyCatalogue>, before: &Process) -> Process {
    let expected = ExpectedMark::Confirmed(before.confirmed);
    claim(catalogue, before.node.0, expected).await.unwrap()
}

pub async fn claim(
    catalogue: &Arc<FaultyCatalogue>,
    node: u32,
    expected: ExpectedMark,
) -> Result<Process, LakeError> {
    let target = open(catalogue).await;
    let (node, history) = (NodeId(node), u128::from(node) + 1);
    let nonce = uuid::Uuid::new_v4().as_u128();
    let by = Claimant { node, history, nonce, lost: &[] };
    let claimed = target.claim(&by, expected, PATIENCE).await;
    let Claim { mark, confirmed } = claimed?;
    Ok(Process { target, node, history, mark, confirmed })
}

impl Process {
    /// Files with the rows up to an LSN.
    pub async fn stage(&self, to_lsn: u64) -> Vec<DataFile> {
        let mut batches = self.target.batches(self.node).unwrap();
        for lsn in self.mark.lsn..to_lsn {
            let id = LakeValue::Int64(i64::try_from(lsn).unwrap());
            let note = if lsn % 3 == 0 { LakeValue::Null } else { LakeValue::Text("a note") };
            // Some rounds span two days.
            let at = i64::try_from(lsn / 7).unwrap() * DAY_MICROS;
            batches.row(&[id, note], lsn, at).unwrap();
        }
        let mut files = self.target.files(self.node, self.mark.lsn, to_lsn).unwrap();
        files.write(batches.finish().unwrap()).await.unwrap();
        files.close().await.unwrap()
    }

    pub async fn append(&self, to_lsn: u64, files: &[DataFile]) -> Result<Verdict, LakeError> {
        let to = self.mark.at(to_lsn);
        self.target.append(self.node, &self.mark, &to, files, PATIENCE).await
    }

    pub async fn verdict(&self, to_lsn: u64) -> Result<Verdict, LakeError> {
        let to = self.mark.at(to_lsn);
        self.target.verdict(self.node, &self.mark, &to, PATIENCE).await
    }

    /// What a node notes when its rows are in.
    pub fn confirm(&mut self, confirmed: Confirmed) {
        assert!(confirmed.lsn >= self.mark.lsn);
        self.mark = self.mark.at(confirmed.lsn);
        self.confirmed = confirmed;
    }

    /// A round, until it is applied.
    pub async fn drain(&mut self, to_lsn: u64) {
        let files = self.stage(to_lsn).await;
        loop {
            match self.append(to_lsn, &files).await.unwrap() {
                Verdict::Applied(confirmed) => return self.confirm(confirmed),
                Verdict::NotApplied { .. } => {}
            }
        }
    }
}

pub fn applied(verdict: Result<Verdict, LakeError>) -> Confirmed {
    match verdict {
        Ok(Verdict::Applied(confirmed)) => confirmed,
        other => panic!("not applied: {other:?}"),
    }
}

pub fn not_applied(verdict: Result<Verdict, LakeError>) -> String {
    match verdict {
        Ok(Verdict::NotApplied { cause }) => cause,
        other => panic!("not what was expected: {other:?}"),
    }
}

pub fn fenced<T: std::fmt::Debug>(result: Result<T, LakeError>) -> FencedBecause {
    match result {
        Err(LakeError::Fenced { because, .. }) => *because,
        other => panic!("not fenced: {other:?}"),
    }
}

pub async fn table(catalogue: &Arc<FaultyCatalogue>) -> Table {
    catalogue.load_table(&ident()).await.unwrap()
}

/// The LSNs of the rows in the table, by node, in order and with repetitions.
pub async fn rows(table: &Table) -> BTreeMap<u32, Vec<u64>> {
    let scan = table.scan().select(["_node", "_lsn"]).build().unwrap();
    let batches: Vec<_> = scan.to_arrow().await.unwrap().try_collect().await.unwrap();
    let mut rows: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for batch in batches {
        let nodes = batch.column_by_name("_node").unwrap().as_primitive::<Int32Type>();
        let lsns = batch.column_by_name("_lsn").unwrap().as_primitive::<Int64Type>();
        for (node, lsn) in nodes.values().iter().zip(lsns.values()) {
            rows.entry(u32::try_from(*node).unwrap()).or_default().push(*lsn as u64);
        }
    }
    rows.values_mut().for_each(|lsns| lsns.sort_unstable());
    rows
}

/// For each node that has a mark: exactly its rows below, each once.
pub async fn check_exact(catalogue: &Arc<FaultyCatalogue>) {
    let table = table(catalogue).await;
    let rows = rows(&table).await;
    for name in table.metadata().properties().keys() {
        let Some(node) = NodeId::from_property(name) else { continue };
        let mark = Mark::find(table.metadata().properties(), node).unwrap().unwrap();
        let found = rows.get(&node.0).cloned().unwrap_or_default();
        assert_eq!(found, (START..mark.lsn).collect::<Vec<_>>(), "rows of node {node}");
    }
}

/// Commits as somebody does who looks neither at marks nor at main.
pub async fn commit_blindly(
    catalogue: &dyn Catalog,
    base: &Table,
    files: &[DataFile],
    mark: Option<(NodeId, Mark)>,
) -> iceberg::Result<Table> {
    let transaction = Transaction::new(base);
    let mut append = transaction
        .fast_append()
        .with_check_duplicate(false)
        .set_snapshot_properties(HashMap::from([("by".to_owned(), "another".to_owned())]))
        .add_data_files(files.iter().cloned());
    let mut properties = transaction.update_table_properties();
    if let Some((node, mark)) = mark {
        let summary = HashMap::from([(node.property(), mark.to_string())]);
        append = append.set_snapshot_properties(summary);
        properties = properties.set(node.property(), mark.to_string());
    }
    let transaction = properties.apply(append.apply(transaction)?)?;
    transaction.commit(catalogue).await
}

/// Expires all snapshots but main's.
pub async fn expire(catalogue: &Arc<FaultyCatalogue>) {
    let base = table(catalogue).await;
    let transaction = Transaction::new(&base);
    let expiry = transaction.expire_snapshots().expire_older_than_ms(i64::MAX).retain_last(1);
    let transaction = expiry.apply(transaction).unwrap();
    transaction.commit(&**catalogue).await.unwrap();
}
