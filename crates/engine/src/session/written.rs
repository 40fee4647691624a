//! The rows of a table that were written since an LSN, in key order, each with the LSN that wrote it.
//!
//! Only leaves that may have such rows are read ([`tree/changes.rs`](crate::tree)). No snapshot has to be kept since:
//! each row has its LSN in the leaf and in images, so this works across restarts, too. A row that was removed leaves
//! nothing behind, and one that was replaced counts as written when that was.

use onrush_log::Lsn;

use super::snapshot::{Snapshot, read_refused};
use crate::Row;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::tree::{Batch, Bounds};
use crate::units::ObjectId;

/// A row and the LSN of the record that wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenRow {
    /// The commit order of the rows; rows of one transaction have the same.
    pub lsn: Lsn,
    /// The values.
    pub row: Row,
}

/// Rows in key order; see [`Snapshot::written_since`]. After an error it gives nothing more.
pub struct WrittenRows {
    snapshot: Snapshot,
    table: Table,
    object: ObjectId,
    since: Lsn,
    bounds: Bounds,
    batch: Batch,
    next: usize,
    exhausted: bool,
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
        table.check_database(self.worker.engine.database_id)?;
        self.held.check_sees(table)?;
        Ok(WrittenRows {
            snapshot: Snapshot::new(self.held.again()),
            table: table.clone(),
            object: table.entry.object()?,
            since,
            bounds: Bounds::default(),
            batch: Batch::default(),
            next: 0,
            exhausted: false,
        })
    }
}

impl WrittenRows {
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
