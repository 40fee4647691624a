//! What a session reads: a row by its key, rows in key order, and the views that this is done by.

use std::sync::Arc;

use onrush_types::Value;
use onrush_waits::{Counter, Phase};

use super::scan::{Scan, ScanOptions};
use super::session::Session;
use super::snapshot::{HeldLsn, Snapshot};
use super::worker::Worker;
use crate::Row;
use crate::catalog::Table;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::tree::{Look, View};

impl Session {
    /// The newest committed version of the row with this primary key.
    ///
    /// It may have been committed but not be durable yet; see
    /// [`durable_snapshot`](Self::durable_snapshot).
    ///
    /// # Errors
    /// A key that does not fit the table; a damaged leaf.
    pub fn get(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        let schema = &table.entry.schema;
        let row = self.get_raw(table, key, |key, value| schema.decode_row(key, value))?;
        Ok(row.transpose()?)
    }

    /// Hands key bytes and value bytes of the newest committed version of the row with this primary
    /// key to `use_row`, as a scan's [`visit_raw`](Scan::visit_raw) does: for who needs no values of
    /// his own. Durable or not as with [`get`](Self::get).
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
    /// session.insert(&notes, &[1i64.into(), "one".into()])?;
    /// let bytes = session.get_raw(&notes, &[1i64.into()], |key, value| key.len() + value.len())?;
    /// assert!(bytes.is_some_and(|bytes| bytes > "one".len()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A key that does not fit the table; a damaged leaf.
    pub fn get_raw<T>(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        use_row: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        self.call(Phase::Read, |session| {
            let mut bytes = std::mem::take(&mut session.encoded.key);
            bytes.clear();
            table.entry.schema.encode_key(key, &mut bytes)?;
            let mut is_there = session.newest(table, &bytes)?.is_there;
            if is_there && table.entry.points_elsewhere(&session.value) {
                is_there = session.read_whole(table, &bytes)?;
            }
            let used = is_there.then(|| use_row(&bytes, &session.value));
            session.encoded.key = bytes;
            session.worker.recorder.count(Counter::RowsRead, u64::from(used.is_some()));
            Ok(used)
        })
    }

    /// Reads rows in key order from a snapshot taken now.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn scan(&mut self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        self.snapshot()?.into_scan(table, options)
    }

    /// A consistent view of everything committed until now, this session's commits included.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let held = self.call(Phase::Read, Session::hold_now)?;
        self.saw(held.lsn());
        Ok(Snapshot::new(held))
    }

    /// As [`snapshot`](Self::snapshot), to be read where the session is used, and not at the same time: what the reads
    /// wait for counts as the session's, and the snapshot costs less.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn snapshot_here(&mut self) -> Result<Snapshot> {
        let held = self.call(Phase::Read, Session::hold_now)?;
        self.saw(held.lsn());
        Ok(Snapshot::recorded_by(Arc::clone(&self.worker.recorder), held))
    }

    /// Everything committed until now, this session's commits included.
    pub(super) fn hold_now(&mut self) -> Result<HeldLsn> {
        self.worker.engine.check_readable()?;
        if let Some(known) = self.last_commit.max(self.last_seen)
            && !planted(Fault::OwnCommitUnseen)
        {
            self.worker.wait_complete(known);
        }
        Ok(HeldLsn::open(&self.worker.engine, &self.worker.recorder))
    }

    /// A consistent view of everything durable now: nothing in it can be lost by a crash. Newer
    /// commits, this session's own included, may be missing.
    ///
    /// # Errors
    /// A stopped or closed engine.
    pub fn durable_snapshot(&mut self) -> Result<Snapshot> {
        let Worker { engine, recorder, .. } = &self.worker;
        engine.check_readable()?;
        Ok(Snapshot::new(HeldLsn::open_durable(engine, recorder)))
    }

    /// The newest committed version of a row, whose bytes are left in `self.value`.
    pub(super) fn newest(&mut self, table: &Table, key: &[u8]) -> Result<Look> {
        self.look_by(table, key, View::Newest)
    }

    /// What a view sees at `key`; the bytes of the row are left in `self.value`.
    pub(super) fn look_by(&mut self, table: &Table, key: &[u8], view: View) -> Result<Look> {
        table.check_database(self.worker.engine.database_id)?;
        self.worker.engine.check_readable()?;
        let tree = &table.entry.tree;
        let (object, value) = (table.entry.object()?, &mut self.value);
        let outcome =
            self.worker.inside(|engine, seat| tree.get(engine, seat, object, key, view, value))?;
        match outcome {
            Ok(look) => {
                self.saw_at(look);
                Ok(look)
            }
            Err(refusal) => Err(self.explain(table, refusal)),
        }
    }
}
