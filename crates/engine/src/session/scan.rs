//! Rows in key order, forward or backward, with bounds and a limit.

use std::ops::Bound;

use onrush_types::{Schema, Value, prefix_end};

use super::read_ahead::{Position, ReadAhead};
use super::snapshot::{Snapshot, too_old, wanted_columns};
use crate::Row;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::tree::{Batch, Blocked, Bounds, Direction, Refusal};
use crate::units::{LeafId, ObjectId};

/// What to scan.
///
/// Bounds are values for the first columns of the primary key: one for each, or fewer. A bound of
/// fewer columns stands for all keys that begin with it: `Included` takes all of them in,
/// `Excluded` leaves all of them out.
///
/// ```
/// # use onrush::*;
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::create(folder.path().join("db"), Options::small())?;
/// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
/// # let note = ColumnDefinition::new("note", DataType::Text);
/// # let notes = TableDefinition::builder("notes").column(id).column(note).primary_key(["id"]);
/// # let notes = db.create_table(notes.build()?)?;
/// use std::ops::Bound;
///
/// let mut session = db.session()?;
/// for id in 0..100i64 {
///     session.insert_token(&notes, &[id.into(), "text".into()])?;
/// }
/// let newest_below_fifty = ScanOptions {
///     to: Bound::Excluded(vec![50i64.into()]),
///     direction: Direction::Backward,
///     limit: Some(3),
///     ..ScanOptions::default()
/// };
/// let rows: Vec<Row> = session.scan(&notes, &newest_below_fifty)?.collect::<Result<_>>()?;
/// assert_eq!(rows.iter().map(|row| row[0].as_i64()).collect::<Vec<_>>(),
///     [Some(49), Some(48), Some(47)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScanOptions<'v> {
    /// The lower bound.
    pub from: Bound<Vec<Value<'v>>>,
    /// The upper bound.
    pub to: Bound<Vec<Value<'v>>>,
    /// Which way.
    pub direction: Direction,
    /// At most so many rows.
    pub limit: Option<u64>,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        ScanOptions {
            from: Bound::Unbounded,
            to: Bound::Unbounded,
            direction: Direction::Forward,
            limit: None,
        }
    }
}

/// A range of keys of one table, for [`Snapshot::scan_range`](crate::Snapshot::scan_range); made by
/// [`Snapshot::key_ranges`](crate::Snapshot::key_ranges).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    pub(super) bounds: Bounds,
}

impl KeyRange {
    /// All keys that begin so.
    pub(super) fn with_prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { bounds: Bounds { low: prefix.to_vec(), high: prefix_end(prefix) } }
    }
}

/// A change of the scanning transaction itself: key, and value bytes unless removed.
pub(super) type OwnChange = (Vec<u8>, Option<Vec<u8>>);

/// Which values are read that do not stand in their rows.
enum LongValuesRead {
    /// There are none.
    None,
    All,
    /// Those of columns for which this is set, by position.
    Some(Vec<bool>),
}

/// Rows in key order; see [`ScanOptions`]. As an iterator it gives decoded rows;
/// [`visit_raw`](Self::visit_raw) gives bytes, faster.
///
/// After an error it gives nothing more.
pub struct Scan {
    snapshot: Snapshot,
    table: Table,
    object: ObjectId,
    direction: Direction,
    bounds: Bounds,
    batch: Batch,
    next: usize,
    left: u64,
    exhausted: bool,
    ahead: ReadAhead,
    /// Changes of the own transaction inside the bounds, next one last.
    own: Vec<OwnChange>,
    /// Which long values are read.
    reads: LongValuesRead,
    /// Bytes of rows that were read with such values, since somebody has begun to count.
    long_bytes: usize,
}

/// How far a scan has come; see [`Scan::visit_part`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScannedPart {
    /// Rows that were visited.
    pub rows: u64,
    /// Bytes of those with long values that were read.
    pub long_bytes: usize,
    /// Whether there are no more.
    pub is_over: bool,
}

impl Scan {
    pub(super) fn new(
        snapshot: Snapshot,
        table: &Table,
        options: &ScanOptions<'_>,
        own: Vec<OwnChange>,
    ) -> Result<Scan> {
        let bounds = key_bounds(table, options)?;
        let mut scan = Scan::between(snapshot, table, bounds, options.direction, own)?;
        scan.left = options.limit.unwrap_or(u64::MAX);
        Ok(scan)
    }

    pub(super) fn between(
        snapshot: Snapshot,
        table: &Table,
        bounds: Bounds,
        direction: Direction,
        mut own: Vec<OwnChange>,
    ) -> Result<Scan> {
        table.check_database(snapshot.worker.engine.database_id)?;
        snapshot.held.check_sees(table)?;
        own.retain(|(key, _)| {
            key.as_slice() >= bounds.low.as_slice()
                && bounds.high.as_ref().is_none_or(|high| key < high)
        });
        if direction == Direction::Forward {
            own.reverse();
        }
        let object = table.entry.object()?;
        snapshot.held.note_range(object, &bounds);
        Ok(Scan {
            snapshot,
            table: table.clone(),
            object,
            direction,
            bounds,
            batch: Batch::default(),
            next: 0,
            left: u64::MAX,
            exhausted: false,
            ahead: ReadAhead::default(),
            own,
            reads: match table.entry.has_long_values() {
                true => LongValuesRead::All,
                false => LongValuesRead::None,
            },
            long_bytes: 0,
        })
    }

    /// The same scan for who looks at these columns alone, by their positions: long values of others are not read, and
    /// whoever looks at one gets an error.
    #[must_use]
    pub fn only_columns(mut self, columns: impl IntoIterator<Item = usize>) -> Scan {
        if self.table.entry.has_long_values() {
            self.reads = LongValuesRead::Some(wanted_columns(&self.table, columns.into_iter()));
        }
        self
    }

    /// The snapshot that is read, for other rows of it: that costs less than one more.
    #[must_use]
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The same scan of the rows as they are stored.
    #[must_use]
    pub(crate) fn only_stored(mut self) -> Scan {
        self.reads = LongValuesRead::None;
        self
    }

    /// Hands a row to `use_row`, with the long values that are read.
    fn hand_over<T>(
        &mut self,
        (key, row): (&[u8], &[u8]),
        use_row: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<T> {
        let Scan { snapshot, table, reads, .. } = self;
        let wanted = match reads {
            LongValuesRead::Some(wanted) if Schema::is_wide(row) => Some(wanted.as_slice()),
            LongValuesRead::All if Schema::is_wide(row) => None,
            _ => return Ok(use_row(key, row)),
        };
        let row = snapshot.whole(table, row, wanted)?;
        self.long_bytes += row.len();
        Ok(use_row(key, &row))
    }

    /// The same scan from the key bytes `key` on.
    pub(super) fn starting_at(mut self, key: &[u8]) -> Scan {
        self.bounds.low = key.to_vec();
        self
    }

    /// Calls `visit` with the key bytes and value bytes of every row that is left, and returns
    /// how many there were.
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
    /// for id in 1..=100i64 {
    ///     session.insert(&notes, &[id.into(), "a note".into()])?;
    /// }
    /// let mut bytes = 0;
    /// let scan = session.scan(&notes, &ScanOptions::default())?;
    /// let rows = scan.visit_raw(|key, value| bytes += key.len() + value.len())?;
    /// assert_eq!(rows, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged leaf; a table truncated or dropped meanwhile.
    pub fn visit_raw(mut self, visit: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        self.visit_some(u64::MAX, visit)
    }

    /// As [`visit_raw`](Self::visit_raw), for at most `rows_max` rows; fewer only at the end.
    ///
    /// # Errors
    /// A damaged leaf; a table truncated or dropped meanwhile.
    pub fn visit_some(
        &mut self,
        rows_max: u64,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        self.visit_part(rows_max, usize::MAX, &mut visit).map(|part| part.rows)
    }

    /// As [`visit_some`](Self::visit_some), for who keeps what he is given: it ends behind the row with which the long
    /// values that were read have `long_bytes_max` bytes.
    ///
    /// # Errors
    /// A damaged leaf; a table truncated or dropped meanwhile.
    pub fn visit_part(
        &mut self,
        rows_max: u64,
        long_bytes_max: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<ScannedPart> {
        let mut part = ScannedPart::default();
        self.long_bytes = 0;
        while part.rows < rows_max && self.long_bytes < long_bytes_max {
            let read = self.visit_stored(rows_max - part.rows, long_bytes_max, &mut visit)?;
            if read == 0 && self.with_next(&mut visit)?.is_none() {
                part.is_over = true;
                break;
            }
            part.rows += read.max(1);
        }
        part.long_bytes = self.long_bytes;
        Ok(part)
    }

    /// Hands over rows of the batch, as far as there are some and no own change may lie between them.
    fn visit_stored(
        &mut self,
        rows_max: u64,
        long_bytes_max: usize,
        visit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        if !self.own.is_empty() {
            return Ok(0);
        }
        let rows = rows_max.min(self.left).min((self.batch.len() - self.next) as u64);
        let (first, last) = (self.next, self.next + rows as usize);
        let reads_long = !matches!(self.reads, LongValuesRead::None);
        // For the time of the visit, so that long values can be read.
        let batch = std::mem::take(&mut self.batch);
        let mut outcome = Ok(());
        self.next = last;
        for index in first..last {
            let (key, value) = batch.row(index);
            if !(reads_long && Schema::is_wide(value)) {
                visit(key, value);
                continue;
            }
            outcome = self.hand_over((key, value), &mut *visit);
            if outcome.is_err() || self.long_bytes >= long_bytes_max {
                self.next = index + 1;
                break;
            }
        }
        self.batch = batch;
        outcome?;
        let rows = (self.next - first) as u64;
        self.left -= rows;
        Ok(rows)
    }

    /// Hands the next row's bytes to `use_row`; `None` at the end.
    pub(crate) fn with_next<T>(
        &mut self,
        use_row: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut use_row = Some(use_row);
        loop {
            while self.next == self.batch.len() && !self.exhausted {
                self.fill()?;
            }
            let stored = (self.next < self.batch.len()).then(|| self.batch.row(self.next));
            let forward = self.direction == Direction::Forward;
            let own_first = match (stored, self.own.last()) {
                (None, None) => return Ok(None),
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some((key, _)), Some((own, _))) if own.as_slice() == key => {
                    // The own change hides the stored row.
                    self.next += 1;
                    true
                }
                (Some((key, _)), Some((own, _))) => (own.as_slice() < key) == forward,
            };
            let Some(take) = use_row.take() else { return Ok(None) };
            if !own_first {
                let (key, value) = self.batch.row(self.next);
                self.next += 1;
                self.left -= 1;
                if matches!(self.reads, LongValuesRead::None) || !Schema::is_wide(value) {
                    return Ok(Some(take(key, value)));
                }
                let (key, value) = (key.to_vec(), value.to_vec());
                return self.hand_over((&key, &value), take).map(Some);
            }
            match self.own.pop() {
                Some((key, Some(value))) => {
                    self.left -= 1;
                    return self.hand_over((&key, &value), take).map(Some);
                }
                _ => use_row = Some(take),
            }
        }
    }

    fn fill(&mut self) -> Result<()> {
        let view = self.snapshot.view()?;
        self.snapshot.worker.engine.check_readable()?;
        let outcome = loop {
            let Scan { snapshot, table, object, direction, bounds, batch, .. } = self;
            let tree = &table.entry.tree;
            let outcome = snapshot.worker.inside(|engine, seat| {
                match tree.scan(engine, seat, (*object, view), *direction, bounds, batch) {
                    Err(Refusal::Blocked(Blocked::LoadToRead(leaf))) => Ok(Step::OnDisk(leaf)),
                    other => other.map(Step::Filled),
                }
            })?;
            match outcome {
                Ok(Step::OnDisk(leaf)) => {
                    snapshot.worker.release();
                    self.read_ahead(|ahead, position| ahead.missed(position, leaf));
                    self.snapshot.worker.unblock(Blocked::LoadToRead(leaf))?;
                }
                Ok(Step::Filled(more)) => break Ok(more),
                Err(refusal) => break Err(refusal),
            }
        };
        self.next = 0;
        // What it saw of its own transaction was there as long as that was open.
        self.snapshot.view()?;
        match outcome {
            Ok(more) => {
                self.exhausted = !more;
                if more {
                    let rows = self.batch.len() as u64;
                    self.read_ahead(|ahead, position| ahead.passed(position, rows));
                }
                Ok(())
            }
            Err(refusal) => {
                self.exhausted = true;
                self.left = 0;
                Err(match refusal {
                    Refusal::Gone => Error::TableChanged { name: self.table.name().to_owned() },
                    Refusal::TooOld => too_old(&self.snapshot.worker.engine, &self.table),
                    other => Error::Internal(format!("a scan was refused: {other:?}")),
                })
            }
        }
    }

    fn read_ahead(&mut self, act: impl FnOnce(&mut ReadAhead, &Position<'_>)) {
        let worker = &self.snapshot.worker;
        let position = Position {
            engine: &worker.engine,
            recorder: &worker.recorder,
            tree: &self.table.entry.tree,
            object: self.object,
            direction: self.direction,
            bounds: &self.bounds,
            rows_max: self.left.saturating_sub(self.batch.len() as u64),
        };
        act(&mut self.ahead, &position);
    }
}

/// What the search for the next leaf came to.
enum Step {
    /// Its rows are in the batch; whether there are more.
    Filled(bool),
    /// It must be read first.
    OnDisk(LeafId),
}

impl Iterator for Scan {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let table = self.table.clone();
        let decoded = self.with_next(|key, value| table.entry.schema.decode_row(key, value));
        match decoded {
            Ok(None) => None,
            Ok(Some(Ok(row))) => Some(Ok(row)),
            Ok(Some(Err(error))) => {
                self.left = 0;
                Some(Err(error.into()))
            }
            Err(error) => {
                self.left = 0;
                Some(Err(error))
            }
        }
    }
}

/// The bounds as key bytes: from `low` on, below `high`.
pub(super) fn key_bounds(table: &Table, options: &ScanOptions<'_>) -> Result<Bounds> {
    let prefix = |values: &[Value<'_>]| {
        let mut bytes = Vec::new();
        table.entry.schema.encode_key_prefix(values, &mut bytes)?;
        Ok::<_, Error>(bytes)
    };
    let mut nothing = false;
    let low = match &options.from {
        Bound::Unbounded => Vec::new(),
        Bound::Included(values) => prefix(values)?,
        Bound::Excluded(values) => prefix_end(&prefix(values)?).unwrap_or_else(|| {
            nothing = true;
            Vec::new()
        }),
    };
    let high = match &options.to {
        Bound::Unbounded => None,
        Bound::Included(values) => prefix_end(&prefix(values)?),
        Bound::Excluded(values) => Some(prefix(values)?),
    };
    let high = if nothing { Some(Vec::new()) } else { high };
    Ok(Bounds { low, high })
}
