//! Where rows are drained to.
//!
//! Invariants
//! 1. A commit carries a node's rows and its mark, or neither.
//! 2. A commit is applied only where the node's mark is the one it starts from.
//! 3. Whether a commit was applied is read from the mark, never from an answer.

mod iceberg;
mod postgres;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::iceberg::Catalog;
use ::iceberg::spec::DataFile;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::batch::{BatchBuilder, LakeValue};
use crate::claim::{Claim, Claimant, Confirmed, ExpectedMark};
use crate::columns::LakeColumn;
use crate::error::LakeError;
use crate::files::FileWriter;
use crate::mark::{Mark, NodeId};
use crate::wire::Door;
use postgres::PostgresTarget;

pub use iceberg::IcebergTarget;

/// Between two calls to a target that does not answer; doubled each time up to the second one.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A century.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A batch of files is cut at so many rows, and at so many bytes: it is held in memory.
const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 8 << 20;

/// Takes the rows of a node, value by value.
pub(crate) trait RowSink {
    /// The value of the row's next column. One that is refused was not taken.
    fn push(&mut self, value: LakeValue<'_>) -> Result<(), LakeError>;

    /// Ends the row whose values were pushed; `at` is in microseconds since 1970-01-01 00:00 UTC.
    fn end_row(&mut self, lsn: u64, at: i64) -> Result<(), LakeError>;
}

/// The rows of a node between two LSNs, one after the other.
pub(crate) trait Rows {
    /// Gives the next row to the sink; false if there is none.
    fn next_into(&mut self, sink: &mut impl RowSink) -> Result<bool, LakeError>;
}

/// How much is brought.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) rows: u64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Rows that are ready to be appended.
pub(crate) struct Staged {
    pub(crate) counts: Counts,
    /// What was written of them; nothing where they are read again.
    files: Vec<DataFile>,
}

/// Where tables are.
#[derive(Clone)]
pub(crate) enum Place {
    /// Iceberg tables.
    Catalogue(Arc<dyn Catalog>),
    /// Tables of a database.
    Database(Arc<Door>),
}

/// A table that rows are drained into.
#[expect(clippy::large_enum_variant, reason = "there is one for each attached table")]
pub(crate) enum Target {
    Iceberg(Box<IcebergTarget>),
    Postgres(PostgresTarget),
}

impl Target {
    /// Opens the table, or makes it with these columns.
    pub(crate) async fn open_or_create(
        place: Place,
        name: &str,
        columns: &[LakeColumn],
        key: &[&str],
        patience: Duration,
    ) -> Result<Target, LakeError> {
        Ok(match place {
            Place::Catalogue(catalogue) => {
                let opened = IcebergTarget::open_or_create(catalogue, name, columns, key, patience);
                Target::Iceberg(Box::new(opened.await?))
            }
            Place::Database(door) => {
                let opened = PostgresTarget::open_or_create(door, name, columns, patience);
                Target::Postgres(opened.await?)
            }
        })
    }

    /// What the table says now.
    pub(crate) async fn load(&self, patience: Duration) -> Result<TargetState, LakeError> {
        match self {
            Target::Iceberg(target) => target.load(patience).await,
            Target::Postgres(target) => target.load(patience).await,
        }
    }

    /// Makes this process the one that appends as the claimant's node.
    pub(crate) async fn claim(
        &self,
        by: &Claimant<'_>,
        expected: ExpectedMark,
        patience: Duration,
    ) -> Result<Claim, LakeError> {
        match self {
            Target::Iceberg(target) => target.claim(by, expected, patience).await,
            Target::Postgres(target) => target.claim(by, expected, patience).await,
        }
    }

    /// Makes rows ready that go between the two marks; none if there are no rows.
    pub(crate) async fn stage(
        &self,
        node: NodeId,
        (from, to): (&Mark, &Mark),
        mut rows: impl Rows,
    ) -> Result<Option<Staged>, LakeError> {
        match self {
            Target::Iceberg(target) => write_files(target, node, (from, to), rows).await,
            // They are read again when they are sent.
            Target::Postgres(_) => {
                let has_rows = rows.next_into(&mut Nowhere)?;
                Ok(has_rows.then(|| Staged { counts: Counts::default(), files: Vec::new() }))
            }
        }
    }

    /// Whether what was staged is not there any more, and has to be staged again.
    pub(crate) async fn is_missing(&self, staged: &Staged) -> Result<bool, LakeError> {
        match self {
            Target::Iceberg(target) => Ok(!target.missing_files(&staged.files).await?.is_empty()),
            Target::Postgres(_) => Ok(false),
        }
    }

    /// Appends what is staged, of which `rows` gives the rows once more, and moves the mark: tried
    /// once, and then the verdict.
    pub(crate) async fn append<R: Rows>(
        &self,
        node: NodeId,
        (from, to): (&Mark, &Mark),
        staged: &mut Staged,
        rows: impl FnOnce() -> Result<R, LakeError>,
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        match self {
            Target::Iceberg(target) => target.append(node, from, to, &staged.files, patience).await,
            Target::Postgres(target) => {
                target.append(node, (from, to), rows()?, &mut staged.counts, patience).await
            }
        }
    }

    /// Whether an append between these marks was applied. Asking changes nothing.
    pub(crate) async fn verdict(
        &self,
        node: NodeId,
        (from, to): (&Mark, &Mark),
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        match self {
            Target::Iceberg(target) => target.verdict(node, from, to, patience).await,
            Target::Postgres(target) => target.verdict(node, from, to, patience).await,
        }
    }
}

/// Writes the rows as files of an Iceberg table.
async fn write_files(
    target: &IcebergTarget,
    node: NodeId,
    (from, to): (&Mark, &Mark),
    mut rows: impl Rows,
) -> Result<Option<Staged>, LakeError> {
    let mut batch = target.batches(node)?;
    let (mut files, mut counts): (Option<FileWriter>, Counts) = Default::default();
    let mut is_more = true;
    while is_more {
        is_more = rows.next_into(&mut batch)?;
        let is_full = batch.rows() >= BATCH_ROWS || batch.bytes() >= BATCH_BYTES;
        if is_full || (!is_more && batch.rows() > 0) {
            counts.rows += batch.rows() as u64;
            let writer = match &mut files {
                Some(writer) => writer,
                none => none.insert(target.files(node, from.lsn, to.lsn)?),
            };
            writer.write(batch.finish()?).await?;
            // Whoever wants the drain to stop has a turn.
            tokio::task::yield_now().await;
        }
    }
    let Some(files) = files else { return Ok(None) };
    let files = files.close().await?;
    counts.files = files.len() as u64;
    counts.bytes = files.iter().map(DataFile::file_size_in_bytes).sum();
    Ok(Some(Staged { counts, files }))
}

impl RowSink for BatchBuilder {
    fn push(&mut self, value: LakeValue<'_>) -> Result<(), LakeError> {
        BatchBuilder::push(self, value)
    }

    fn end_row(&mut self, lsn: u64, at: i64) -> Result<(), LakeError> {
        BatchBuilder::end_row(self, lsn, at)
    }
}

/// For whoever only wants to know whether there is a row.
struct Nowhere;

impl RowSink for Nowhere {
    fn push(&mut self, _: LakeValue<'_>) -> Result<(), LakeError> {
        Ok(())
    }

    fn end_row(&mut self, _: u64, _: i64) -> Result<(), LakeError> {
        Ok(())
    }
}

/// What the table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// Which table it is; nil where tables have no such number.
    pub table_uuid: Uuid,
    /// Main's snapshot; `None` in a table that was never claimed.
    pub snapshot_id: Option<i64>,
    /// How far each node is.
    pub marks: BTreeMap<NodeId, Mark>,
    /// Nodes whose mark is none that this version can read.
    pub unreadable: Vec<NodeId>,
}

/// Whether a commit was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rows are in the table.
    Applied(Confirmed),
    /// They are not, and the mark is where it was: the same rows may be appended again. Where they
    /// are refused again and again, the table's columns or partitions may have been changed: stage
    /// the rows anew.
    NotApplied {
        /// What the target said, for the log. Empty if only the verdict was asked for.
        cause: String,
    },
}

fn check_range(from: &Mark, to: &Mark) -> Result<(), LakeError> {
    if from.at(to.lsn) == *to && from.lsn < to.lsn {
        return Ok(());
    }
    Err(LakeError::Internal(format!("a range from mark {from} to {to} is none")))
}

/// For somebody who waits for ever, a time that does not come.
fn deadline_in(patience: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(patience).unwrap_or(now + NEVER)
}

/// The waits between calls to a target that does not answer.
struct Pause(Duration);

impl Pause {
    fn new() -> Pause {
        Pause(PAUSE)
    }

    /// Waits, or gives up with the cause when the deadline would pass.
    async fn wait(&mut self, deadline: Instant, cause: &str) -> Result<(), LakeError> {
        if Instant::now() + self.0 >= deadline {
            return Err(LakeError::Away { cause: cause.to_owned() });
        }
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
        Ok(())
    }
}
