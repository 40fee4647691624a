//! The rows of a table that were written since an LSN, in key order, each with the LSN that wrote it.
//!
//! Only leaves that may have such rows are read ([`tree/changes.rs`](crate::tree)). No snapshot has to be kept since:
//! each row has its LSN in the leaf and in images, so this works across restarts, too. A row that was removed leaves
//! nothing behind, and one that was replaced counts as written when that was.

use onrush_log::Lsn;

use super::scan::{KeyRange, OwnChange, ScannedPart};
use super::snapshot::{Snapshot, read_refused, wanted_columns};
use crate::Row;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::tree::{Batch, Bounds};
use crate::units::ObjectId;

/// Groups of leaves that one call of [`WrittenRows::visit_part`] looks at at most.
const FILLS_MAX: usize = 64;

/// A row and the LSN of the record that wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenRow {
    /// The commit order of the rows; rows of one transaction have the same.
    pub lsn: Lsn,
    /// The values.
    pub row: Row,
}

/// Rows in key order; see [`Snapshot::written_since`]. After an error it gives nothing more. Those that the own
/// transaction has written, if they are asked for ([`Snapshot::written_in`]), come behind all others.
pub struct WrittenRows {
    snapshot: Snapshot,
    table: Table,
    object: ObjectId,
    since: Lsn,
    bounds: Bounds,
    batch: Batch,
    next: usize,
    exhausted: bool,
    /// Changes of the own transaction that are in no leaf, by key, and how many of them were given.
    own: Vec<OwnChange>,
    own_next: usize,
    /// The columns that somebody looks at, where rows have long values.
    wanted: Option<Vec<bool>>,
}

impl Snapshot {
    /// The rows of a table that this sees and that were written at `since` or later.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let mut session = db.session()?;
    /// session.insert(&notes, &[1i64.into()])?;
    /// let earlier = session.durable_snapshot()?.lsn();
    /// session.insert(&notes, &[2i64.into()])?;
    /// let rows = session.durable_snapshot()?.written_since(&notes, earlier)?;
    /// let rows = rows.collect::<Result<Vec<WrittenRow>>>()?;
    /// assert_eq!(rows.len(), 1);
    /// assert_eq!(rows[0].row, vec![2i64.into()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A table of another database, or one that was made, emptied or dropped since.
    pub fn written_since(&self, table: &Table, since: Lsn) -> Result<WrittenRows> {
        let committed = Snapshot::new(self.held.again());
        WrittenRows::new(committed, table, Bounds::default(), since, Vec::new())
    }

    /// The rows of a range of keys that this sees and that were written at `since` or later, those of the own
    /// transaction among them, for [`WrittenRows::visit_part`].
    ///
    /// # Errors
    /// As for [`Snapshot::written_since`].
    pub fn written_in(&self, table: &Table, range: &KeyRange, since: Lsn) -> Result<WrittenRows> {
        let own = self.own_changes(table, &range.bounds);
        self.held.note_range(table.entry.object()?, &range.bounds);
        WrittenRows::new(self.same(), table, range.bounds.clone(), since, own)
    }
}

impl WrittenRows {
    fn new(
        snapshot: Snapshot,
        table: &Table,
        bounds: Bounds,
        since: Lsn,
        own: Vec<OwnChange>,
    ) -> Result<WrittenRows> {
        table.check_database(snapshot.worker.engine.database_id)?;
        snapshot.held.check_sees(table)?;
        Ok(WrittenRows {
            snapshot,
            table: table.clone(),
            object: table.entry.object()?,
            since,
            bounds,
            batch: Batch::default(),
            next: 0,
            exhausted: false,
            own,
            own_next: 0,
            wanted: None,
        })
    }

    /// The same rows for who looks at these columns alone, by their positions: long values of others are not read, and
    /// whoever looks at one gets an error.
    #[must_use]
    pub fn only_columns(mut self, columns: impl IntoIterator<Item = usize>) -> WrittenRows {
        self.wanted = Some(wanted_columns(&self.table, columns.into_iter()));
        self
    }

    /// Hands the LSN, the key bytes and the value bytes of the next rows to `visit`, of at most `rows_max`, and ends
    /// behind the row with which the long values that were read have `long_bytes_max` bytes. A row that the own
    /// transaction has written has no LSN yet. There may be fewer rows, or none, before the end: where many leaves have
    /// none the caller has a turn.
    ///
    /// # Errors
    /// A damaged leaf; a table truncated or dropped meanwhile.
    pub fn visit_part(
        &mut self,
        rows_max: u64,
        long_bytes_max: usize,
        mut visit: impl FnMut(Option<Lsn>, &[u8], &[u8]),
    ) -> Result<ScannedPart> {
        let mut part = ScannedPart::default();
        let mut fills = 0;
        while part.rows < rows_max && part.long_bytes < long_bytes_max {
            let is_empty = self.next == self.batch.len();
            if is_empty && !self.exhausted {
                if fills == FILLS_MAX {
                    break;
                }
                fills += 1;
                self.fill()?;
                continue;
            }
            let WrittenRows { snapshot, table, batch, next, own, own_next, wanted, .. } = self;
            let (key, value, lsn) = if is_empty {
                let Some((key, value)) = own.get(*own_next) else {
                    part.is_over = true;
                    break;
                };
                *own_next += 1;
                let Some(value) = value else { continue };
                (key.as_slice(), value.as_slice(), None)
            } else {
                let ((key, value), lsn) = (batch.row(*next), batch.lsn(*next));
                *next += 1;
                // What the own transaction has made of a row comes behind.
                if own.binary_search_by(|(own, _)| own.as_slice().cmp(key)).is_ok() {
                    continue;
                }
                (key, value, lsn)
            };
            part.rows += 1;
            if table.entry.points_elsewhere(value) {
                let whole = snapshot.whole(table, value, wanted.as_deref())?;
                part.long_bytes += whole.len();
                visit(lsn, key, &whole);
            } else {
                visit(lsn, key, value);
            }
        }
        Ok(part)
    }

    fn next_row(&mut self) -> Result<Option<WrittenRow>> {
        while self.next == self.batch.len() {
            if self.exhausted {
                return Ok(None);
            }
            self.fill()?;
        }
        let ((key, value), lsn) = (self.batch.row(self.next), self.batch.lsn(self.next));
        self.next += 1;
        let lsn = lsn.ok_or_else(|| Error::Internal("a committed row has no LSN".into()))?;
        let schema = &self.table.entry.schema;
        let row = if self.table.entry.points_elsewhere(value) {
            schema.decode_row(key, &self.snapshot.whole(&self.table, value, None)?)?
        } else {
            schema.decode_row(key, value)?
        };
        Ok(Some(WrittenRow { lsn, row }))
    }

    /// Goes on to the next leaf that may have such rows.
    fn fill(&mut self) -> Result<()> {
        let view = self.snapshot.view()?;
        let WrittenRows { snapshot, table, object, since, bounds, batch, .. } = self;
        let worker = &mut snapshot.worker;
        worker.engine.check_readable()?;
        let (tree, at) = (&table.entry.tree, (*object, view, *since));
        let outcome =
            worker.inside(|engine, seat| tree.scan_written(engine, seat, at, bounds, batch))?;
        self.next = 0;
        // What it saw of its own transaction was there as long as that was open.
        self.snapshot.view()?;
        match outcome {
            Ok(more) => {
                self.exhausted = !more;
                Ok(())
            }
            Err(refusal) => Err(read_refused(&self.snapshot.worker.engine, &self.table, refusal)),
        }
    }
}

impl Iterator for WrittenRows {
    type Item = Result<WrittenRow>;

    fn next(&mut self) -> Option<Result<WrittenRow>> {
        let row = self.next_row();
        if row.is_err() {
            self.exhausted = true;
            self.batch = Batch::default();
            self.next = 0;
        }
        row.transpose()
    }
}
