//! One round of one table: what was written since the last one becomes files, and these a commit.

use std::time::{Duration, Instant, SystemTime};

use iceberg::spec::DataFile;
use onrush::{DataType, Database, Lsn, Row, Snapshot, TableDefinition, WrittenRow};

use super::attachment::Attachment;
use super::notes::{NoteTable, Notes};
use super::{DrainOptions, columns};
use crate::batch::BatchBuilder;
use crate::columns::LakeColumn;
use crate::error::{FencedBecause, LakeError};
use crate::files::FileWriter;
use crate::mark::{Mark, NodeId};
use crate::target::{Confirmed, ExpectedMark, IcebergTarget, Verdict};

/// A batch is cut at so many rows, and at so many bytes: it is held in memory.
const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 8 << 20;
/// Files that were not committed are left alone by those who look for orphans, for so long at least.
const FILES_ARE_SAFE_FOR: Duration = Duration::from_secs(600);
/// How often the catalogue may refuse the files of a round before another table has its turn.
const TRIES: u32 = 10;

/// Files that are written and of which it is not known that they are in the lake. Their range is fixed: a commit that
/// was sent may come late, and then its mark is this one.
struct Staged {
    to: Mark,
    files: Vec<DataFile>,
    rows: u64,
    written_at: Instant,
    /// They were refused so often that they may not fit the Iceberg table any more.
    is_stale: bool,
}

/// What a round has brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brought {
    pub(super) rows: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) commits: u64,
    pub(super) refusals: u64,
}

/// A table whose Iceberg table is open and claimed.
pub(super) struct Round {
    attachment: Attachment,
    node: NodeId,
    patience: Duration,
    target: IcebergTarget,
    /// Those that the Iceberg table was opened with.
    columns: Vec<LakeColumn>,
    notes: Notes,
    mark: Mark,
    /// Between the mark and it there are no rows.
    read_to: Lsn,
    staged: Option<Staged>,
    /// The commit that was asked for last is to be looked for.
    is_unknown: bool,
}

impl Round {
    /// Opens and claims the Iceberg table. `own`: history, and the nonce of this process.
    pub(super) async fn open(
        options: &DrainOptions,
        kept: &NoteTable,
        (target, columns): (IcebergTarget, Vec<LakeColumn>),
        attachment: &Attachment,
        (history, nonce): (u128, u128),
    ) -> Result<Round, LakeError> {
        let DrainOptions { node, patience, .. } = *options;
        let mut notes = kept.read(attachment)?;
        let fence = |because| {
            let because = Box::new(because);
            LakeError::Fenced { node, table: attachment.name.clone(), because }
        };
        let found = target.load(patience).await?;
        if found.unreadable.contains(&node) {
            return Err(LakeError::Internal(format!(
                "the mark of node {node} in {} is of a form that is not known",
                attachment.name
            )));
        }
        let mark = found.marks.get(&node).copied();
        notes.check(mark).map_err(fence)?;
        // Where the claim may find the mark: where it is, or where what was asked for before may still bring it.
        let start_lsn = mark.map_or(Lsn::FIRST.0, |mark| mark.lsn);
        let mut starts: Vec<u64> = notes.asked.iter().map(|mark| mark.lsn).collect();
        starts.push(start_lsn);
        if let Some((mark, snapshot_id)) = mark.zip(found.snapshot_id) {
            let (table_uuid, lsn) = (found.table_uuid, mark.lsn);
            notes.confirmed = Some((Confirmed { table_uuid, snapshot_id, lsn }, mark));
        }
        for lsn in starts.iter().copied().filter(|lsn| *lsn >= start_lsn) {
            notes.ask(Mark { history, nonce, lsn });
        }
        kept.write(attachment, &notes)?;
        let expected = match notes.confirmed {
            None => ExpectedMark::Nothing { start_lsn },
            Some((confirmed, _)) => ExpectedMark::Confirmed(confirmed),
        };
        let claim = match target.claim(node, history, nonce, expected, patience).await {
            Err(LakeError::Fenced { because, .. }) if is_own(&because, &notes) => {
                return Err(LakeError::Away { cause: "an earlier claim came late".into() });
            }
            claim => claim?,
        };
        // Somebody else came between the look and the claim.
        if !starts.contains(&claim.mark.lsn) {
            return Err(fence(FencedBecause::NotNoted { found: claim.mark }));
        }
        let notes = Notes::of(claim.confirmed, claim.mark);
        kept.write(attachment, &notes)?;
        Ok(Round {
            attachment: attachment.clone(),
            node,
            patience,
            target,
            columns,
            notes,
            mark: claim.mark,
            read_to: Lsn(claim.mark.lsn),
            staged: None,
            is_unknown: false,
        })
    }

    pub(super) fn mark(&self) -> Lsn {
        Lsn(self.mark.lsn)
    }

    pub(super) fn read_to(&self) -> Lsn {
        self.read_to
    }

    /// Brings everything that is durable now. After an error that is retryable it goes on where it was.
    pub(super) async fn run(
        &mut self,
        database: &Database,
        kept: &NoteTable,
        brought: &mut Brought,
    ) -> Result<(), LakeError> {
        // What was staged before comes first.
        if self.staged.is_some() {
            self.commit(database, kept, brought).await?;
        }
        self.stage(database).await?;
        if self.staged.is_some() {
            self.commit(database, kept, brought).await?;
        }
        Ok(())
    }

    /// Writes files of the rows that were written since the last round.
    async fn stage(&mut self, database: &Database) -> Result<(), LakeError> {
        let snapshot = database.session()?.durable_snapshot()?;
        let end = snapshot.lsn();
        if end <= self.read_to {
            return Ok(());
        }
        let to = self.mark.at(end.0);
        match self.write(database, &snapshot, to).await? {
            Some(staged) => (self.staged, self.is_unknown) = (Some(staged), false),
            None => self.read_to = end,
        }
        Ok(())
    }

    /// Writes files of the rows up to the mark `to`, which the snapshot sees; none if there are no rows.
    async fn write(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        to: Mark,
    ) -> Result<Option<Staged>, LakeError> {
        let number = self.attachment.table;
        let table = database.table_numbered(number).ok_or(LakeError::NoTable { number })?;
        let definition = table.definition();
        self.check_columns(definition)?;
        let kinds: Vec<(usize, DataType)> =
            definition.shown_columns().map(|at| (at, definition.columns()[at].data_type)).collect();
        let at = micros_now();
        let mut batch = self.target.batches(self.node)?;
        let (mut files, mut rows) = (None, 0);
        for row in snapshot.written_since(&table, self.read_to)? {
            let WrittenRow { lsn, row } = row?;
            if lsn.0 >= to.lsn {
                continue;
            }
            for (column, data_type) in &kinds {
                let value = columns::value_of(*data_type, &row[*column]);
                batch.push(value.map_err(|error| in_row(error, definition, *column, &row))?)?;
            }
            batch.end_row(lsn.0, at)?;
            rows += 1;
            if batch.rows() >= BATCH_ROWS || batch.bytes() >= BATCH_BYTES {
                self.write_batch(&mut files, &mut batch, to).await?;
                // Whoever wants the drain to stop has a turn.
                tokio::task::yield_now().await;
            }
        }
        if batch.rows() > 0 {
            self.write_batch(&mut files, &mut batch, to).await?;
        }
        let Some(files) = files else { return Ok(None) };
        let files = files.close().await?;
        Ok(Some(Staged { to, files, rows, written_at: Instant::now(), is_stale: false }))
    }

    async fn write_batch(
        &self,
        files: &mut Option<FileWriter>,
        batch: &mut BatchBuilder,
        to: Mark,
    ) -> Result<(), LakeError> {
        let files = match files {
            Some(files) => files,
            none => none.insert(self.target.files(self.node, self.mark.lsn, to.lsn)?),
        };
        files.write(batch.finish()?).await
    }

    /// Values go to columns by their places, so these must be those that the Iceberg table was opened with.
    fn check_columns(&self, definition: &TableDefinition) -> Result<(), LakeError> {
        let (columns, _) = columns::of_table(definition)?;
        if columns == self.columns {
            return Ok(());
        }
        let is_other = |at: &usize| columns.get(*at) != self.columns.get(*at);
        let at = (0..columns.len().max(self.columns.len())).find(is_other).unwrap_or_default();
        let told = |column: Option<&LakeColumn>| {
            column.map_or("nothing".to_owned(), |it| format!("{} of kind {:?}", it.name, it.kind))
        };
        Err(LakeError::TableMismatch {
            column: (at + 1).to_string(),
            expected: told(columns.get(at)),
            found: told(self.columns.get(at)),
        })
    }

    /// Asks for the commit of what is staged until it is in the lake.
    async fn commit(
        &mut self,
        database: &Database,
        kept: &NoteTable,
        brought: &mut Brought,
    ) -> Result<(), LakeError> {
        let Some(to) = self.staged.as_ref().map(|staged| staged.to) else { return Ok(()) };
        let from = self.mark;
        if self.notes.ask(to) {
            kept.write(&self.attachment, &self.notes)?;
        }
        let mut refused = String::new();
        for _ in 0..TRIES {
            let was_unknown = std::mem::replace(&mut self.is_unknown, true);
            let verdict = match was_unknown {
                true => self.target.verdict(self.node, &from, &to, self.patience).await?,
                false => {
                    self.write_missing(database).await?;
                    let files = self.staged.as_ref().map_or(&[][..], |staged| &staged.files);
                    self.target.append(self.node, &from, &to, files, self.patience).await?
                }
            };
            self.is_unknown = false;
            match verdict {
                Verdict::Applied(confirmed) => {
                    self.notes = Notes::of(confirmed, to);
                    (self.mark, self.read_to) = (to, Lsn(to.lsn));
                    if let Some(staged) = self.staged.take() {
                        brought.rows += staged.rows;
                        brought.files += staged.files.len() as u64;
                        let bytes = staged.files.iter().map(|file| file.file_size_in_bytes());
                        brought.bytes += bytes.sum::<u64>();
                        brought.commits += 1;
                    }
                    kept.write(&self.attachment, &self.notes)?;
                    return Ok(());
                }
                Verdict::NotApplied { cause } => {
                    brought.refusals += u64::from(!was_unknown);
                    refused = cause;
                }
            }
        }
        if let Some(staged) = &mut self.staged {
            staged.is_stale = true;
        }
        Err(LakeError::Away { cause: refused })
    }

    /// Writes the files of what is staged anew, if they are old and not there any more, or do not fit any more.
    async fn write_missing(&mut self, database: &Database) -> Result<(), LakeError> {
        let Some(staged) = &self.staged else { return Ok(()) };
        let is_old = staged.written_at.elapsed() > FILES_ARE_SAFE_FOR;
        let is_needed = staged.is_stale
            || is_old && !self.target.missing_files(&staged.files).await?.is_empty();
        if is_needed {
            let snapshot = database.session()?.durable_snapshot()?;
            self.staged = self.write(database, &snapshot, staged.to).await?;
        }
        Ok(())
    }
}

/// Whether a claim was in the way that this node has made itself.
fn is_own(because: &FencedBecause, notes: &Notes) -> bool {
    matches!(because, FencedBecause::OtherNonce { found } if notes.asked.contains(found))
}

/// The error with its column and row.
fn in_row(error: LakeError, definition: &TableDefinition, column: usize, row: &Row) -> LakeError {
    let LakeError::Row(cause) = error else { return error };
    let key = definition.primary_key().iter().map(|at| row[*at].to_string());
    let key = key.collect::<Vec<_>>().join(", ");
    LakeError::Row(format!("{} of the row ({key}): {cause}", definition.column_name(column)))
}

fn micros_now() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
