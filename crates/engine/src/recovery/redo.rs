//! Redoes the log: each record changes what an image does not have yet.
//!
//! Records go to workers by key, so the changes of one key stay in log order while different keys
//! are redone at the same time. A worker redoes a batch in the order of its keys, each key's changes
//! in log order: neighbours meet in a leaf that is in the processor's cache already. Records about
//! tables are barriers: everything before them is done first. A row in a leaf that is as new as the
//! record, or newer, came from an image: the record is skipped.

use std::hash::Hasher;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use onrush_latch::available_cpus;
use onrush_log::Lsn;
use onrush_types::TableDefinition;
use onrush_waits::{Counter, Recorder};

use crate::btree::{SPARE_FRAMES, Seat, Tree};
use crate::catalog::TableEntry;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{Record, RowChange, RowRecord, group_rows, read_record};
use crate::memory::Frame;
use crate::options::Background;
use crate::units::ObjectId;

/// Bytes of records handed to a worker at once.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that may wait for a worker.
const BATCHES_AHEAD: usize = 2;

/// What was redone.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Totals {
    pub(super) records: u64,
    pub(super) rows: u64,
}

/// The redo of one log.
pub(super) struct Redo {
    engine: Arc<Engine>,
    /// The directory holds what every definition record below this has made: names have changed hands
    /// since, so to apply one again would be to apply it to another table.
    defined_to: Lsn,
    lanes: Vec<Lane>,
    totals: Totals,
}

/// One worker, or the calling thread itself where there are no threads.
struct Lane {
    batch: Batch,
    worker: Option<(SyncSender<Task>, JoinHandle<Result<()>>)>,
    /// For lanes without a thread.
    redoer: Option<Redoer>,
}

enum Task {
    Rows(Batch),
    /// Answer when everything before is done.
    Barrier(SyncSender<()>),
}

/// Row records copied out of the log, with their LSNs.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<BatchRow>,
}

#[derive(Clone, Copy)]
struct BatchRow {
    lsn: u64,
    object: ObjectId,
    /// The first bytes of the key, for sorting.
    key_prefix: u64,
    kind: BatchKind,
    start: usize,
    key_end: usize,
    end: usize,
}

#[derive(Clone, Copy)]
enum BatchKind {
    PutElided,
    PutElidedVersion,
    Put,
    Remove,
}

impl Redo {
    pub(super) fn start(engine: &Arc<Engine>, defined_to: Lsn) -> Redo {
        let threads = match engine.options.background {
            Background::Threads => available_cpus(),
            Background::Callers => 0,
        };
        let lanes = (0..threads.max(1)).map(|number| Lane::start(engine, number, threads > 0));
        let (engine, lanes) = (Arc::clone(engine), lanes.collect());
        Redo { engine, defined_to, lanes, totals: Totals::default() }
    }

    /// Takes the next record of the log.
    pub(super) fn record(&mut self, lsn: Lsn, payload: &[u8]) -> Result<()> {
        let unreadable = || Error::DamagedLog(format!("the record at LSN {lsn} does not decode"));
        self.totals.records += 1;
        match read_record(payload).ok_or_else(unreadable)? {
            Record::Row(row) => self.row(lsn, &row),
            Record::Group(body) => {
                let rows = group_rows(body).ok_or_else(unreadable)?;
                rows.iter().try_for_each(|row| self.row(lsn, row))
            }
            Record::Tick => Ok(()),
            // Marks only rise, so those of the directory stand.
            other
                if lsn < self.defined_to
                    && !matches!(other, Record::Sequence { .. })
                    && !planted(Fault::DefinitionsRedoneBelowE) =>
            {
                Ok(())
            }
            other => {
                self.barrier()?;
                self.definition(&other)
            }
        }
    }

    fn row(&mut self, lsn: Lsn, row: &RowRecord<'_>) -> Result<()> {
        self.totals.rows += 1;
        let lane = lane_of(row.key, self.lanes.len());
        let lane = &mut self.lanes[lane];
        lane.batch.push(lsn, row);
        if lane.batch.bytes.len() >= BATCH_BYTES { lane.send() } else { Ok(()) }
    }

    /// Waits until all rows so far are done.
    fn barrier(&mut self) -> Result<()> {
        for lane in &mut self.lanes {
            lane.send()?;
            if let Some((tasks, _)) = &lane.worker {
                let (done, wait) = sync_channel(1);
                if tasks.send(Task::Barrier(done)).is_err() || wait.recv().is_err() {
                    return Err(Error::Internal("a redo worker has ended early".into()));
                }
            }
        }
        Ok(())
    }

    fn definition(&self, record: &Record<'_>) -> Result<()> {
        let engine = &self.engine;
        match *record {
            Record::CreateTable { definition, object } => {
                engine.catalog.raise_next_object(object.0.saturating_add(1));
                if engine.catalog.by_id(object.0).is_none() {
                    let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                    let tree = Tree::new(engine, object, definition.is_logged());
                    let entry = TableEntry::new(object.0, definition, tree, &[])?;
                    engine.catalog.add(Arc::new(entry));
                }
            }
            Record::AlterTable { .. } if planted(Fault::AlterNotRedone) => {}
            Record::AlterTable { definition, object } => {
                let definition = Arc::new(TableDefinition::from_bytes(definition)?);
                // A checkpoint after this record may know a later definition already.
                if let Some(entry) = engine.catalog.by_object(object)
                    && entry.schema.version() < definition.version()
                {
                    engine.catalog.alter(&entry, entry.altered(definition)?);
                }
            }
            Record::DropTable { object } => {
                if let Some(entry) = engine.catalog.by_object(object) {
                    engine.catalog.remove(&entry);
                    entry.tree.clear(engine, &engine.recorder, ObjectId(0));
                }
            }
            Record::TruncateTable { .. } if planted(Fault::TruncateNotRedone) => {}
            Record::TruncateTable { object, new_object } => {
                engine.catalog.raise_next_object(new_object.0.saturating_add(1));
                if let Some(entry) = engine.catalog.by_object(object) {
                    engine.catalog.replace_object(&entry, new_object);
                    entry.tree.clear(engine, &engine.recorder, new_object);
                }
            }
            Record::Sequence { table, column, reserved } => {
                let entry = engine.catalog.by_id(table);
                let counter = |entry: &Arc<TableEntry>| entry.numbered_sequence(column as usize);
                if let Some(sequence) = entry.as_ref().and_then(counter) {
                    sequence.raise(reserved);
                }
            }
            Record::Row(_) | Record::Group(_) | Record::Tick => {}
        }
        Ok(())
    }

    /// Waits for all workers; the first error counts.
    pub(super) fn finish(mut self) -> Result<Totals> {
        let mut outcome = Ok(());
        for lane in &mut self.lanes {
            let sent = lane.send();
            outcome = outcome.and(sent);
        }
        for lane in self.lanes {
            if let Some((tasks, thread)) = lane.worker {
                drop(tasks);
                let panicked = || Err(Error::Internal("a redo worker panicked".into()));
                let ended = thread.join().unwrap_or_else(|_| panicked());
                // A worker's own error says more than that it has ended.
                outcome = ended.and(outcome);
            }
        }
        outcome.map(|()| self.totals)
    }
}

/// The lane of a key. Neighbours share a lane, so that workers do not meet on a leaf all the
/// time; what matters is only that a key has one lane.
fn lane_of(key: &[u8], lanes: usize) -> usize {
    if lanes == 1 {
        return 0;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&key[..key.len().saturating_sub(2)]);
    (hasher.finish() % lanes as u64) as usize
}

impl Lane {
    fn start(engine: &Arc<Engine>, number: usize, threaded: bool) -> Lane {
        let redoer = Redoer::new(engine, number);
        if !threaded {
            return Lane { batch: Batch::default(), worker: None, redoer: Some(redoer) };
        }
        let (tasks, queue) = sync_channel(BATCHES_AHEAD);
        let thread = std::thread::spawn(move || work(redoer, &queue));
        Lane { batch: Batch::default(), worker: Some((tasks, thread)), redoer: None }
    }

    fn send(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if let Some(redoer) = &mut self.redoer {
            return redoer.redo(&batch);
        }
        match &self.worker {
            Some((tasks, _)) if tasks.send(Task::Rows(batch)).is_ok() => Ok(()),
            _ => Err(Error::Internal("a redo worker has ended early".into())),
        }
    }
}

fn work(mut redoer: Redoer, queue: &Receiver<Task>) -> Result<()> {
    while let Ok(task) = queue.recv() {
        match task {
            Task::Rows(mut batch) => {
                batch.sort_by_key();
                redoer.redo(&batch)?;
            }
            Task::Barrier(done) => drop(done.send(())),
        }
    }
    Ok(())
}

impl Batch {
    fn push(&mut self, lsn: Lsn, row: &RowRecord<'_>) {
        let (kind, body): (BatchKind, &[u8]) = match row.change {
            RowChange::PutElided(body) => (BatchKind::PutElided, body),
            RowChange::PutElidedVersion(body) => (BatchKind::PutElidedVersion, body),
            RowChange::Put(body) => (BatchKind::Put, body),
            RowChange::Remove => (BatchKind::Remove, &[]),
        };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(row.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(body);
        let end = self.bytes.len();
        let mut prefix = [0; 8];
        let length = row.key.len().min(8);
        prefix[..length].copy_from_slice(&row.key[..length]);
        let key_prefix = u64::from_be_bytes(prefix);
        let (lsn, object) = (lsn.0, row.object);
        self.rows.push(BatchRow { lsn, object, key_prefix, kind, start, key_end, end });
    }

    /// By table and key. Changes of the same key stay in log order: the sort is a stable one.
    fn sort_by_key(&mut self) {
        let bytes = &self.bytes;
        self.rows.sort_by(|a, b| {
            (a.object.0, a.key_prefix)
                .cmp(&(b.object.0, b.key_prefix))
                .then_with(|| bytes[a.start..a.key_end].cmp(&bytes[b.start..b.key_end]))
        });
    }
}

/// Puts rows into leaves.
struct Redoer {
    engine: Arc<Engine>,
    recorder: Arc<Recorder>,
    place: usize,
    spares: Vec<Frame>,
    row: Vec<u8>,
    table: Option<(ObjectId, Arc<TableEntry>)>,
}

impl Redoer {
    fn new(engine: &Arc<Engine>, number: usize) -> Redoer {
        Redoer {
            engine: Arc::clone(engine),
            recorder: Recorder::new(&engine.registry, "redo"),
            place: number,
            spares: Vec::with_capacity(SPARE_FRAMES),
            row: Vec::new(),
            table: None,
        }
    }

    fn redo(&mut self, batch: &Batch) -> Result<()> {
        for row in &batch.rows {
            let (key, body) =
                (&batch.bytes[row.start..row.key_end], &batch.bytes[row.key_end..row.end]);
            self.redo_row(row, key, body)?;
        }
        self.recorder.count(Counter::RedoneRecords, batch.rows.len() as u64);
        // The table may be dropped, truncated or altered behind the next barrier.
        self.table = None;
        Ok(())
    }

    fn redo_row(&mut self, row: &BatchRow, key: &[u8], body: &[u8]) -> Result<()> {
        if self.table.as_ref().is_none_or(|(object, _)| *object != row.object) {
            let found = self.engine.catalog.by_object(row.object);
            self.table = found.map(|entry| (row.object, entry));
        }
        if matches!(row.kind, BatchKind::Remove) && planted(Fault::RemoveNotRedone) {
            return Ok(());
        }
        // Rows of an object that is gone by the end of the log.
        let Some((_, table)) = &self.table else { return Ok(()) };
        let value: Option<&[u8]> = match row.kind {
            BatchKind::Put => Some(body),
            BatchKind::Remove => None,
            BatchKind::PutElided | BatchKind::PutElidedVersion => {
                let names_version = matches!(row.kind, BatchKind::PutElidedVersion);
                self.row.clear();
                table.schema.expand_elided(body, names_version, &mut self.row)?;
                Some(&self.row)
            }
        };
        loop {
            let mut seat =
                Seat { place: self.place, recorder: &self.recorder, spares: &mut self.spares };
            match table.tree.redo(&self.engine, &mut seat, row.object, (key, value), row.lsn) {
                Ok(()) => return Ok(()),
                Err(blocked) => self.engine.unblock(blocked, &mut self.spares, &self.recorder)?,
            }
        }
    }
}

impl Drop for Redoer {
    fn drop(&mut self) {
        for frame in self.spares.drain(..) {
            self.engine.frames.give_back(frame);
        }
    }
}
