//! A consistent view of all tables at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::Value;
use onrush_waits::Recorder;

use super::large::OwnView;
use super::scan::{KeyRange, OwnChange, Scan, ScanOptions, key_bounds};
use super::worker::Worker;
use super::write_set::RowKey;
use crate::Row;
use crate::catalog::Table;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::transaction::ReadSet;
use crate::tree::{Bounds, Direction, Look, Refusal, View};
use crate::units::ObjectId;

/// A consistent view: every read sees the same committed rows, whatever is inserted, changed or
/// deleted meanwhile. Old versions are kept in memory as long as it is open, within
/// [`old_versions_bytes`](crate::Options::old_versions_bytes): beyond that a read of a table of which something
/// is not kept any more says [`SnapshotTooOld`](Error::SnapshotTooOld).
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
    pub(super) held: HeldLsn,
    /// The changes of the transaction that it was taken in, as they were then: value bytes, or none
    /// for a row that is removed.
    own: Option<Arc<OwnChanges>>,
    /// What that transaction had written to the leaves by then, if it is a large one.
    large: Option<OwnView>,
}

/// Changes of a transaction that nobody else sees yet.
pub(super) type OwnChanges = BTreeMap<RowKey, Option<Vec<u8>>>;

/// What was committed below an LSN is kept in memory as long as this lives. A transaction reads by
/// it with its session's own way into the engine.
pub(super) struct HeldLsn {
    engine: Arc<Engine>,
    lsn: Lsn,
    /// Where a serializable transaction notes what it reads.
    reads: Option<Arc<ReadSet>>,
}

impl HeldLsn {
    /// Everything committed now.
    pub(super) fn open(engine: &Arc<Engine>, recorder: &Recorder) -> HeldLsn {
        let lsn = engine.resolver.snapshots.open(&engine.log, recorder);
        HeldLsn { engine: Arc::clone(engine), lsn, reads: None }
    }

    /// Everything durable now.
    pub(super) fn open_durable(engine: &Arc<Engine>, recorder: &Recorder) -> HeldLsn {
        let lsn = engine.resolver.snapshots.open_durable(&engine.log, recorder);
        HeldLsn { engine: Arc::clone(engine), lsn, reads: None }
    }

    /// The same, held once more.
    pub(super) fn again(&self) -> HeldLsn {
        let engine = Arc::clone(&self.engine);
        let (lsn, reads) = (engine.resolver.snapshots.reopen(self.lsn), self.reads.clone());
        HeldLsn { lsn, engine, reads }
    }

    /// The same, of which it is noted what is read.
    pub(super) fn noting(mut self, reads: &Arc<ReadSet>) -> HeldLsn {
        self.reads = Some(Arc::clone(reads));
        self
    }

    /// Notes that these keys of an object are about to be read.
    pub(super) fn note_range(&self, object: ObjectId, bounds: &Bounds) {
        if let Some(reads) = &self.reads {
            reads.note_range(object, bounds);
        }
    }

    pub(super) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The LSN below which this sees.
    pub(super) fn view(&self) -> View {
        let planted = crate::fault::planted(crate::fault::Fault::LessOrEqualVisible);
        View::Before(self.lsn + u64::from(planted))
    }

    /// Refuses a table that was made or emptied by a later commit: its name is known and its rows would
    /// not be there.
    pub(super) fn check_sees(&self, table: &Table) -> Result<()> {
        if table.entry.tree.is_seen_at(self.lsn) {
            return Ok(());
        }
        Err(Error::TableChanged { name: table.name().to_owned() })
    }

    /// What this sees at `key`, and the value bytes of the row.
    pub(super) fn get_bytes(
        &self,
        worker: &mut Worker,
        table: &Table,
        key: &[u8],
        view: View,
    ) -> Result<(Look, Vec<u8>)> {
        table.check_database(worker.engine.database_id)?;
        worker.engine.check_readable()?;
        let tree = &table.entry.tree;
        self.check_sees(table)?;
        let object = table.entry.object()?;
        if let Some(reads) = &self.reads {
            reads.note_key(object, key);
        }
        let mut value = Vec::new();
        let outcome =
            worker.inside(|engine, seat| tree.get(engine, seat, object, key, view, &mut value))?;
        match outcome {
            Ok(look) => Ok((look, value)),
            Err(refusal) => Err(read_refused(&worker.engine, table, refusal)),
        }
    }
}

/// Which columns of a table are among these, by their positions.
pub(super) fn wanted_columns(table: &Table, columns: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut wanted = vec![false; table.entry.schema.column_count()];
    for column in columns {
        if let Some(wanted) = wanted.get_mut(column) {
            *wanted = true;
        }
    }
    wanted
}

/// The snapshot was given up, and may have seen in the table what is not kept any more.
#[cold]
pub(super) fn too_old(engine: &Engine, table: &Table) -> Error {
    let limit_bytes = engine.options.old_versions_bytes;
    Error::SnapshotTooOld { table: table.name().to_owned(), limit_bytes }
}

/// Why a table could not be read.
#[cold]
pub(super) fn read_refused(engine: &Engine, table: &Table, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Gone => Error::TableChanged { name: table.name().to_owned() },
        Refusal::TooOld => too_old(engine, table),
        other => Error::Internal(format!("a read was refused: {other:?}")),
    }
}

impl Drop for HeldLsn {
    fn drop(&mut self) {
        self.engine.resolver.snapshots.close(self.lsn);
    }
}

impl Snapshot {
    pub(super) fn new(held: HeldLsn) -> Snapshot {
        let recorder = Recorder::new(&held.engine.registry, "snapshot");
        Snapshot::recorded_by(recorder, held)
    }

    /// What it waits for is another's: that of the session whose thread reads by it.
    pub(super) fn recorded_by(recorder: Arc<Recorder>, held: HeldLsn) -> Snapshot {
        let worker = Worker::new(&held.engine, recorder);
        Snapshot { worker, held, own: None, large: None }
    }

    /// The same view with what a large transaction has written itself.
    pub(super) fn with_large(mut self, large: Option<OwnView>) -> Snapshot {
        self.large = large;
        self
    }

    /// The same view once more, without changes that are not in the leaves.
    pub(crate) fn again(&self) -> Snapshot {
        let large = self.large.as_ref().map(OwnView::again);
        Snapshot::new(self.held.again()).with_large(large)
    }

    /// What it sees in leaves.
    ///
    /// # Errors
    /// What it saw of a transaction is not there any more: that has ended.
    pub(super) fn view(&self) -> Result<View> {
        let Some(large) = &self.large else { return Ok(self.held.view()) };
        large.check()?;
        Ok(large.over(self.held.lsn()))
    }

    /// The same view with changes that nobody else sees.
    pub(super) fn with_own(mut self, own: OwnChanges) -> Snapshot {
        self.own = (!own.is_empty()).then(|| Arc::new(own));
        self
    }

    /// Everything committed below this position in the log, in bytes, is seen.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.held.lsn
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// A key that does not fit the table; a table truncated or dropped meanwhile.
    pub fn get(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        let mut bytes = Vec::new();
        table.entry.schema.encode_key(key, &mut bytes)?;
        let value = self.get_raw(table, &bytes)?;
        let row = value.map(|value| table.entry.schema.decode_row(&bytes, &value));
        Ok(row.transpose()?)
    }

    /// The value bytes of the row with these key bytes; see [`Schema::encode_key`](crate::Schema::encode_key).
    ///
    /// # Errors
    /// A table truncated or dropped meanwhile.
    pub fn get_raw(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.get_stored(table, key)? {
            Some(row) if table.entry.points_elsewhere(&row) => {
                self.whole(table, &row, None).map(Some)
            }
            row => Ok(row),
        }
    }

    /// As [`get_raw`](Self::get_raw), for who looks at these columns alone, by their positions: long values of others
    /// are not read, and whoever looks at one gets an error.
    ///
    /// # Errors
    /// A table truncated or dropped meanwhile.
    pub fn get_columns_raw(
        &mut self,
        table: &Table,
        key: &[u8],
        columns: &[usize],
    ) -> Result<Option<Vec<u8>>> {
        match self.get_stored(table, key)? {
            Some(row) if table.entry.points_elsewhere(&row) => {
                let wanted = wanted_columns(table, columns.iter().copied());
                self.whole(table, &row, Some(&wanted)).map(Some)
            }
            row => Ok(row),
        }
    }

    /// As [`get_raw`](Self::get_raw), as the row is stored.
    pub(super) fn get_stored(&mut self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(own) = &self.own
            && let Some(value) = own.get(&(table.entry.object()?, key.to_vec()))
        {
            table.check_database(self.worker.engine.database_id)?;
            return Ok(value.clone());
        }
        let view = self.view()?;
        let (look, value) = self.held.get_bytes(&mut self.worker, table, key, view)?;
        Ok(look.is_there.then_some(value))
    }

    /// The same view once more, for another thread.
    #[must_use]
    pub fn same(&self) -> Snapshot {
        Snapshot { own: self.own.clone(), ..self.again() }
    }

    /// Reads rows in key order.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn scan(&self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        let own = self.own_changes(table, &key_bounds(table, options)?);
        Scan::new(self.same(), table, options, own)
    }

    /// The keys between the bounds of `options`, cut into at most `parts` ranges with about as many
    /// rows each, in key order: so that several threads share a scan. One range where there are few
    /// rows. Direction and limit of `options` do not matter here.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn key_ranges(
        &self,
        table: &Table,
        options: &ScanOptions<'_>,
        parts: usize,
    ) -> Result<Vec<KeyRange>> {
        let engine = &self.worker.engine;
        table.check_database(engine.database_id)?;
        let Bounds { mut low, high } = key_bounds(table, options)?;
        let tree = &table.entry.tree;
        let whole = Bounds { low: low.clone(), high: high.clone() };
        self.held.note_range(table.entry.object()?, &whole);
        let cuts = tree.cuts(engine, &self.worker.recorder, &whole, parts);
        let mut ranges = Vec::with_capacity(cuts.len() + 1);
        for cut in cuts {
            let bounds = Bounds { low, high: Some(cut.clone()) };
            ranges.push(KeyRange { bounds });
            low = cut;
        }
        ranges.push(KeyRange { bounds: Bounds { low, high } });
        Ok(ranges)
    }

    /// About how many leaves hold the rows between the bounds of `options`, found without reading any. Direction and
    /// limit of `options` do not matter here.
    ///
    /// # Errors
    /// Bounds that do not fit the table's key.
    pub fn leaves_about(&self, table: &Table, options: &ScanOptions<'_>) -> Result<u64> {
        let engine = &self.worker.engine;
        table.check_database(engine.database_id)?;
        let bounds = key_bounds(table, options)?;
        Ok(table.entry.tree.leaves_about(engine, &self.worker.recorder, &bounds))
    }

    /// Reads the rows of a range in key order, or backward.
    ///
    /// # Errors
    /// A table of another database.
    pub fn scan_range(
        &self,
        table: &Table,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Scan> {
        let own = self.own_changes(table, &range.bounds);
        Scan::between(self.same(), table, range.bounds.clone(), direction, own)
    }

    /// As [`scan`](Self::scan), with what the snapshot itself has; [`Scan::into_snapshot`] gives it back.
    ///
    /// # Errors
    /// As [`scan`](Self::scan).
    pub fn into_scan(self, table: &Table, options: &ScanOptions<'_>) -> Result<Scan> {
        let own = self.own_changes(table, &key_bounds(table, options)?);
        Scan::new(self, table, options, own)
    }

    /// The own changes between these bounds of one table, in key order.
    pub(super) fn own_changes(&self, table: &Table, bounds: &Bounds) -> Vec<OwnChange> {
        let (Some(own), Some(object)) = (&self.own, table.entry.tree.object()) else {
            return Vec::new();
        };
        let is_within = |key: &[u8]| bounds.high.as_deref().is_none_or(|high| key < high);
        let from_low = own.range((object, bounds.low.clone())..);
        let within = from_low.take_while(|((own, key), _)| *own == object && is_within(key));
        within.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }
}
