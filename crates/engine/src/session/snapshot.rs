//! A consistent view of all tables at one moment.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::Value;
use onrush_waits::Recorder;

use super::scan::{Scan, ScanOptions};
use super::worker::Worker;
use crate::Row;
use crate::btree::{Refusal, Seen, View};
use crate::database::Table;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// A consistent view: every read sees the same committed rows, whatever is inserted, changed or
/// deleted meanwhile. Old versions are kept in memory as long as it is open.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let note = ColumnDefinition::new("note", DataType::Text);
/// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// let mut session = db.session()?;
/// session.insert(&notes, &[1i64.into(), "old".into()])?;
/// let mut before = session.snapshot()?;
/// session.update(&notes, &[1i64.into()], &[("note", "new".into())])?;
/// session.insert(&notes, &[2i64.into(), "later".into()])?;
/// assert_eq!(before.get(&notes, &[1i64.into()])?.expect("was there")[1], "old".into());
/// assert_eq!(before.scan(&notes, &ScanOptions::default())?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshot {
    pub(super) worker: Worker,
    pub(super) lsn: Lsn,
}

impl Snapshot {
    pub(super) fn new(engine: &Arc<Engine>, lsn: Lsn) -> Snapshot {
        Snapshot { worker: Worker::new(engine, Recorder::new(&engine.registry, "snapshot")), lsn }
    }

    /// Everything committed below this position in the log, in bytes, is seen.
    #[must_use]
    pub fn lsn(&self) -> u64 {
        self.lsn.0
    }

    /// The LSN below which this view sees.
    pub(super) fn view(&self) -> View {
        let planted = crate::fault::planted(crate::fault::Fault::LessOrEqualVisible);
        View::Before(Lsn(self.lsn.0 + u64::from(planted)))
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// A key that does not fit the table; a table truncated or dropped meanwhile.
    pub fn get(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        let mut bytes = Vec::new();
        table.entry.schema.encode_key(key, &mut bytes)?;
        match self.get_bytes(table, &bytes)? {
            Some(seen) => Ok(Some(table.entry.schema.decode_row(&bytes, &seen.value)?)),
            None => Ok(None),
        }
    }

    pub(super) fn get_bytes(&mut self, table: &Table, key: &[u8]) -> Result<Option<Seen>> {
        table.check_database(&self.worker.engine)?;
        self.worker.engine.check_readable()?;
        let tree = &table.entry.tree;
        let (object, view) = (tree.object(), self.view());
        let outcome =
            self.worker.inside(|engine, seat| tree.get(engine, seat, object, key, view))?;
        outcome.map_err(|refusal| match refusal {
            Refusal::Gone => Error::TableChanged { name: table.name().to_owned() },
            other => Error::Internal(format!("a read was refused: {other:?}")),
        })
    }

    /// Reads rows in key order.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn scan(&self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        let engine = &self.worker.engine;
        let lsn = engine.snapshots.reopen(self.lsn);
        Snapshot::new(engine, lsn).into_scan(table, options)
    }

    pub(super) fn into_scan(self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        Scan::new(self, table, options, Vec::new())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.worker.engine.snapshots.close(self.lsn);
    }
}
