//! What has changed in a table from one snapshot to a later one, in key order.
//!
//! Only leaves that may have changed are read ([`tree/changes.rs`](crate::tree)), so it takes little more than a
//! look at each leaf where little has changed.

use super::snapshot::{Snapshot, read_refused};
use crate::Row;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::tree::{Bounds, TwoBatches};
use crate::units::ObjectId;

/// The row at one key, before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// None where there was no row.
    pub before: Option<Row>,
    /// None where there is no row any more.
    pub after: Option<Row>,
}

/// Changed rows in key order; see [`Snapshot::changes_since`]. After an error it gives nothing more.
pub struct Changes {
    earlier: Snapshot,
    later: Snapshot,
    table: Table,
    object: ObjectId,
    bounds: Bounds,
    batches: TwoBatches,
    /// The next row of each batch.
    next: (usize, usize),
    exhausted: bool,
}

impl Snapshot {
    /// The rows of a table that are others than in `earlier`, an older snapshot. What a transaction of the
    /// snapshots has changed itself is left out.
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
    /// let earlier = session.snapshot()?;
    /// session.delete(&notes, &[1i64.into()])?;
    /// session.insert(&notes, &[2i64.into()])?;
    /// let changes = session.snapshot()?.changes_since(&earlier, &notes)?;
    /// let changes = changes.collect::<Result<Vec<RowChange>>>()?;
    /// assert_eq!(changes.len(), 2);
    /// assert_eq!(changes[0], RowChange { before: Some(vec![1i64.into()]), after: None });
    /// assert_eq!(changes[1], RowChange { before: None, after: Some(vec![2i64.into()]) });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A table of another database, or one that was made, emptied or dropped since.
    pub fn changes_since(&self, earlier: &Snapshot, table: &Table) -> Result<Changes> {
        table.check_database(self.worker.engine.database_id)?;
        earlier.held.check_sees(table)?;
        self.held.check_sees(table)?;
        Ok(Changes {
            earlier: Snapshot::new(earlier.held.again()),
            later: Snapshot::new(self.held.again()),
            table: table.clone(),
            object: table.entry.object()?,
            bounds: Bounds::default(),
            batches: TwoBatches::default(),
            next: (0, 0),
            exhausted: false,
        })
    }
}

impl Changes {
    fn next_change(&mut self) -> Result<Option<RowChange>> {
        loop {
            let (earlier, later) = (&self.batches.earlier, &self.batches.later);
            let before = (self.next.0 < earlier.len()).then(|| earlier.row(self.next.0));
            let after = (self.next.1 < later.len()).then(|| later.row(self.next.1));
            let order = match (before, after) {
                (None, None) if self.exhausted => return Ok(None),
                (None, None) => {
                    self.fill()?;
                    continue;
                }
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((before, _)), Some((after, _))) => before.cmp(after),
            };
            self.next.0 += usize::from(order.is_le());
            self.next.1 += usize::from(order.is_ge());
            let (before, after) =
                (before.filter(|_| order.is_le()), after.filter(|_| order.is_ge()));
            if before == after {
                continue;
            }
            let table = &self.table;
            let row = |row: Option<(&[u8], &[u8])>, view: &mut Snapshot| -> Result<Option<Row>> {
                let Some((key, value)) = row else { return Ok(None) };
                let schema = &table.entry.schema;
                if table.entry.points_elsewhere(value) {
                    let whole = view.whole(table, value, None)?;
                    return Ok(Some(schema.decode_row(key, &whole)?));
                }
                Ok(Some(schema.decode_row(key, value)?))
            };
            let before = row(before, &mut self.earlier)?;
            let after = row(after, &mut self.later)?;
            return Ok(Some(RowChange { before, after }));
        }
    }

    /// Goes on to the next leaf that may have changed.
    fn fill(&mut self) -> Result<()> {
        let views = (self.earlier.view()?, self.later.view()?);
        let (Some(earlier), Some(later)) = (views.0.lsn(), views.1.lsn()) else {
            return Err(Error::Internal("a snapshot has no place in the log".into()));
        };
        let Changes { later: snapshot, table, object, bounds, batches, .. } = self;
        let worker = &mut snapshot.worker;
        worker.engine.check_readable()?;
        let (tree, at) = (&table.entry.tree, (*object, (earlier, later)));
        let outcome =
            worker.inside(|engine, seat| tree.scan_changed(engine, seat, at, bounds, batches))?;
        self.next = (0, 0);
        // What was read of the leaves was all there only if it still is.
        self.earlier.view()?;
        self.later.view()?;
        match outcome {
            Ok(more) => {
                self.exhausted = !more;
                Ok(())
            }
            Err(refusal) => Err(read_refused(&self.later.worker.engine, &self.table, refusal)),
        }
    }
}

impl Iterator for Changes {
    type Item = Result<RowChange>;

    fn next(&mut self) -> Option<Result<RowChange>> {
        let change = self.next_change();
        if change.is_err() {
            self.exhausted = true;
            self.batches = TwoBatches::default();
            self.next = (0, 0);
        }
        change.transpose()
    }
}
