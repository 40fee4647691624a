//! The rows of the log: gathered in batches, divided by key among workers, redone in key order.
//!
//! Every range of keys is looked at once a batch: neighbours meet in a leaf that is in the processor's
//! cache already, and where the table is larger than memory, a leaf is loaded once for all its rows.
//!
//! Invariants
//! 1. A batch is done before the next one begins, so the changes of a key happen in log order whichever
//!    workers make them.
//! 2. Within a batch all changes of a key are in one part, which is sorted by key and then by the order
//!    of the log.
//! 3. There are two batches, one that is gathered and one that is redone, and their memory is used again:
//!    redo takes no more of it for a longer log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use onrush_latch::available_cpus;
use onrush_log::Lsn;
use onrush_waits::{Counter, Recorder};
use parking_lot::Mutex;

use crate::catalog::TableEntry;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::logging::{RowChange, RowRecord};
use crate::node::fence::head;
use crate::node::leaf::LargeOwner;
use crate::options::Background;
use crate::tree::{Hint, RedoneAs, Seat, Spares};
use crate::units::ObjectId;

/// Parts of a batch for each worker: with more than one, workers end at about the same time.
const PARTS_PER_WORKER: usize = 8;
/// Rows of a batch that are looked at for each part, to divide it into parts of about one size.
const SAMPLES_PER_PART: usize = 32;

/// Redoes rows in batches, in threads or in the calling one.
pub(super) struct RowRedo {
    engine: Arc<Engine>,
    gathered: Batch,
    batch_bytes: usize,
    workers: Vec<Worker>,
    /// Where there are no threads.
    own: Option<Redoer>,
    running: Option<Arc<Parts>>,
    /// The memory of the last batch that is done.
    spare: Option<Parts>,
}

struct Worker {
    tasks: SyncSender<Arc<Parts>>,
    done: Receiver<Result<()>>,
    thread: JoinHandle<()>,
}

/// Row records copied out of the log, with their LSNs.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<BatchRow>,
}

#[derive(Clone, Copy)]
struct BatchRow {
    lsn: Lsn,
    /// The first bytes of the key, for sorting.
    key_head: u64,
    object: ObjectId,
    start: u32,
    body_bytes: u32,
    key_bytes: u16,
    kind: BatchKind,
    owner: RowOwner,
}

/// The large transaction whose piece a row is in; none for a row that is committed. In the space of an owner,
/// since batches are large: the number of a large transaction is never 0.
#[derive(Clone, Copy)]
struct RowOwner(LargeOwner);

impl RowOwner {
    fn new(owner: Option<LargeOwner>) -> RowOwner {
        RowOwner(owner.unwrap_or(LargeOwner { id: 0, piece: 0 }))
    }

    fn get(self) -> Option<LargeOwner> {
        Some(self.0).filter(|owner| owner.id != 0)
    }
}

#[derive(Clone, Copy)]
enum BatchKind {
    PutElided,
    PutElidedVersion,
    Put,
    Remove,
    TakeBack,
}

/// A batch that workers take part by part.
#[derive(Default)]
struct Parts {
    bytes: Vec<u8>,
    parts: Vec<Mutex<Vec<BatchRow>>>,
    next: AtomicUsize,
}

impl RowRedo {
    pub(super) fn start(engine: &Arc<Engine>) -> RowRedo {
        let threads = match engine.options.background {
            Background::Threads => available_cpus(),
            Background::Callers => 0,
        };
        RowRedo {
            engine: Arc::clone(engine),
            gathered: Batch::default(),
            batch_bytes: engine.options.redo_batch_bytes(),
            workers: (0..threads).map(|number| Worker::start(engine, number)).collect(),
            own: (threads == 0).then(|| Redoer::new(engine, 0)),
            running: None,
            spare: None,
        }
    }

    /// Takes a row.
    pub(super) fn push(
        &mut self,
        lsn: Lsn,
        row: &RowRecord<'_>,
        owner: Option<LargeOwner>,
    ) -> Result<()> {
        self.gathered.push(lsn, row, owner);
        if self.gathered.memory_bytes() < self.batch_bytes { Ok(()) } else { self.send() }
    }

    /// Waits until all rows so far are done.
    pub(super) fn barrier(&mut self) -> Result<()> {
        self.send()?;
        self.wait()
    }

    /// Waits for all rows, and for the threads; the first error counts.
    pub(super) fn finish(mut self) -> Result<()> {
        let outcome = self.barrier();
        for Worker { tasks, done, thread } in self.workers {
            drop((tasks, done));
            // That it panicked has been said where its answer was waited for.
            let _ = thread.join();
        }
        outcome
    }

    /// Hands the gathered rows over, once those before are done.
    fn send(&mut self) -> Result<()> {
        self.wait()?;
        if self.gathered.rows.is_empty() {
            return Ok(());
        }
        if let Some(first) = self.gathered.rows.first() {
            self.engine.ranges.set_redone_below(first.lsn);
        }
        let mut parts = self.spare.take().unwrap_or_default();
        let count = (self.workers.len() * PARTS_PER_WORKER).max(1);
        self.gathered.divide(count, &mut parts);
        if let Some(redoer) = &mut self.own {
            let done = redoer.redo_parts(&parts);
            self.spare = Some(parts);
            return done;
        }
        let parts = Arc::new(parts);
        for worker in &self.workers {
            worker.tasks.send(Arc::clone(&parts)).map_err(|_| ended_early())?;
        }
        self.running = Some(parts);
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let mut outcome = Ok(());
        for worker in &self.workers {
            let done = worker.done.recv().unwrap_or_else(|_| Err(ended_early()));
            outcome = outcome.and(done);
        }
        // Workers give it back before they say that they are done.
        self.spare = Arc::into_inner(running);
        outcome
    }
}

fn ended_early() -> Error {
    Error::Internal("a redo worker has ended early".into())
}

impl Worker {
    fn start(engine: &Arc<Engine>, number: usize) -> Worker {
        let mut redoer = Redoer::new(engine, number);
        let (tasks, queue) = sync_channel::<Arc<Parts>>(1);
        let (answers, done) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            while let Ok(parts) = queue.recv() {
                let outcome = redoer.redo_parts(&parts);
                drop(parts);
                if answers.send(outcome).is_err() {
                    return;
                }
            }
        });
        Worker { tasks, done, thread }
    }
}

impl Batch {
    fn push(&mut self, lsn: Lsn, row: &RowRecord<'_>, owner: Option<LargeOwner>) {
        let (kind, body): (BatchKind, &[u8]) = match row.change {
            RowChange::PutElided(body) => (BatchKind::PutElided, body),
            RowChange::PutElidedVersion(body) => (BatchKind::PutElidedVersion, body),
            RowChange::Put(body) => (BatchKind::Put, body),
            RowChange::Remove => (BatchKind::Remove, &[]),
            RowChange::TakeBack => (BatchKind::TakeBack, &[]),
        };
        // A batch is far below 4 GiB, and neither a key nor a row fills a leaf.
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(row.key);
        self.bytes.extend_from_slice(body);
        self.rows.push(BatchRow {
            lsn,
            key_head: head(row.key),
            object: row.object,
            start,
            body_bytes: body.len() as u32,
            key_bytes: row.key.len() as u16,
            kind,
            owner: RowOwner::new(owner),
        });
    }

    /// What it takes until it is redone: rows stand in a part, too.
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.rows.len() * 2 * size_of::<BatchRow>()
    }

    /// Puts the rows into `count` parts of about one size, by table and key, and is empty afterwards.
    fn divide(&mut self, count: usize, parts: &mut Parts) {
        std::mem::swap(&mut self.bytes, &mut parts.bytes);
        self.bytes.clear();
        parts.parts.resize_with(count, Mutex::default);
        *parts.next.get_mut() = 0;
        let usual = self.rows.len().div_ceil(count);
        for part in &mut parts.parts {
            let part = part.get_mut();
            part.clear();
            part.shrink_to(usual * 2);
        }
        let bytes = &parts.bytes;
        let step = (self.rows.len() / (count * SAMPLES_PER_PART)).max(1);
        let mut samples: Vec<BatchRow> = self.rows.iter().step_by(step).copied().collect();
        samples.sort_unstable_by(|a, b| a.order(b, bytes));
        // The first row of each part but the first.
        let bounds: Vec<BatchRow> =
            (1..count).map(|part| samples[part * samples.len() / count]).collect();
        for row in self.rows.drain(..) {
            let part = bounds.partition_point(|bound| bound.key_order(&row, bytes).is_le());
            parts.parts[part].get_mut().push(row);
        }
    }
}

impl BatchRow {
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let start = self.start as usize;
        &bytes[start..start + usize::from(self.key_bytes)]
    }

    fn body<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let start = self.start as usize + usize::from(self.key_bytes);
        &bytes[start..start + self.body_bytes as usize]
    }

    /// By table and key.
    fn key_order(&self, other: &BatchRow, bytes: &[u8]) -> std::cmp::Ordering {
        (self.object, self.key_head)
            .cmp(&(other.object, other.key_head))
            .then_with(|| self.key(bytes).cmp(other.key(bytes)))
    }

    /// By table and key, and for the same key as in the log, in whose order the bytes were copied.
    fn order(&self, other: &BatchRow, bytes: &[u8]) -> std::cmp::Ordering {
        self.key_order(other, bytes).then_with(|| self.start.cmp(&other.start))
    }
}

/// Puts rows into leaves.
struct Redoer {
    engine: Arc<Engine>,
    recorder: Arc<Recorder>,
    permit: usize,
    spares: Spares,
    row: Vec<u8>,
    table: Option<(ObjectId, Arc<TableEntry>)>,
    /// The leaf of the last row, which is mostly that of the next.
    hint: Option<Hint>,
}

impl Redoer {
    fn new(engine: &Arc<Engine>, number: usize) -> Redoer {
        Redoer {
            engine: Arc::clone(engine),
            recorder: Recorder::new(&engine.registry, "redo"),
            permit: number,
            spares: Spares::default(),
            row: Vec::new(),
            table: None,
            hint: None,
        }
    }

    /// Takes parts that nobody has taken, until there are none.
    fn redo_parts(&mut self, parts: &Parts) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(part) = parts.parts.get(parts.next.fetch_add(1, Ordering::Relaxed)) {
            let mut rows = part.lock();
            rows.sort_unstable_by(|a, b| a.order(b, &parts.bytes));
            outcome = outcome.and_then(|()| self.redo(&rows, &parts.bytes));
        }
        // The table may be dropped, truncated or altered behind the next barrier.
        (self.table, self.hint) = (None, None);
        outcome
    }

    fn redo(&mut self, rows: &[BatchRow], bytes: &[u8]) -> Result<()> {
        for row in rows {
            self.redo_row(row, row.key(bytes), row.body(bytes))?;
        }
        self.recorder.count(Counter::RedoneRecords, rows.len() as u64);
        Ok(())
    }

    fn redo_row(&mut self, row: &BatchRow, key: &[u8], body: &[u8]) -> Result<()> {
        if self.table.as_ref().is_none_or(|(object, _)| *object != row.object) {
            let found = self.engine.catalog.by_object(row.object);
            self.table = found.map(|entry| (row.object, entry));
            self.hint = None;
        }
        if matches!(row.kind, BatchKind::Remove) && planted(Fault::RemoveNotRedone) {
            return Ok(());
        }
        // Rows of an object that is gone by the end of the log.
        let Some((_, table)) = &self.table else { return Ok(()) };
        let value: Option<&[u8]> = match row.kind {
            BatchKind::Put => Some(body),
            BatchKind::Remove | BatchKind::TakeBack => None,
            BatchKind::PutElided | BatchKind::PutElidedVersion => {
                let names_version = matches!(row.kind, BatchKind::PutElidedVersion);
                self.row.clear();
                table.schema.expand_elided(body, names_version, &mut self.row)?;
                Some(&self.row)
            }
        };
        let as_what = match (row.owner.get(), row.kind) {
            (None, _) => RedoneAs::Row,
            (Some(owner), BatchKind::TakeBack) => RedoneAs::NoIntent(owner),
            (Some(owner), _) => RedoneAs::Intent(owner),
        };
        let lsn = (row.lsn, as_what);
        loop {
            let mut seat =
                Seat { permit: self.permit, recorder: &self.recorder, spares: &mut self.spares };
            let (tree, hint) = (&table.tree, &mut self.hint);
            match tree.redo(&self.engine, &mut seat, hint, row.object, (key, value), lsn) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(object: u32, key: &[u8]) -> RowRecord<'_> {
        let object = ObjectId::new(object).unwrap();
        RowRecord { object, key, change: RowChange::Put(b"value") }
    }

    fn divided(rows: &[(u32, Vec<u8>)], count: usize) -> Parts {
        let mut batch = Batch::default();
        for (number, (object, key)) in rows.iter().enumerate() {
            batch.push(Lsn(number as u64), &row(*object, key), None);
        }
        let mut parts = Parts::default();
        batch.divide(count, &mut parts);
        assert!(batch.rows.is_empty() && batch.bytes.is_empty());
        parts
    }

    #[test]
    fn ascending_keys_are_divided_into_parts_of_about_one_size() {
        let rows: Vec<_> = (0..10_000u64).map(|key| (1, key.to_be_bytes().to_vec())).collect();
        let parts = divided(&rows, 16);
        for part in &parts.parts {
            let len = part.lock().len();
            assert!((500..800).contains(&len), "{len} of 10000 rows in one of 16 parts");
        }
    }

    #[test]
    fn the_changes_of_a_key_are_in_one_part_in_the_order_of_the_log() {
        // Keys with the same first eight bytes, and the same keys in two tables.
        let key = |number: usize| format!("customer-{}", number % 7).into_bytes();
        let rows: Vec<_> = (0..1000).map(|number| (1 + number as u32 % 2, key(number))).collect();
        let parts = divided(&rows, 8);
        let mut seen = std::collections::HashMap::new();
        for (number, part) in parts.parts.iter().enumerate() {
            let mut part = part.lock();
            part.sort_unstable_by(|a, b| a.order(b, &parts.bytes));
            for row in part.iter() {
                let (at, last) = seen
                    .entry((row.object, row.key(&parts.bytes).to_vec()))
                    .or_insert((number, row.lsn));
                assert_eq!(*at, number, "a key is in two parts");
                assert!(*last <= row.lsn, "a key's changes are not in log order");
                *last = row.lsn;
            }
        }
        assert_eq!(seen.len(), 14);
    }

    #[test]
    fn the_memory_of_a_batch_is_used_again() {
        let rows: Vec<_> = (0..4096u64).map(|key| (1, key.to_be_bytes().to_vec())).collect();
        let mut batch = Batch::default();
        let mut parts = Parts::default();
        let mut capacities = Vec::new();
        for _ in 0..4 {
            for (number, (object, key)) in rows.iter().enumerate() {
                batch.push(Lsn(number as u64), &row(*object, key), None);
            }
            batch.divide(4, &mut parts);
            let of_parts: usize = parts.parts.iter().map(|part| part.lock().capacity()).sum();
            capacities.push((batch.rows.capacity(), of_parts, parts.bytes.capacity()));
        }
        assert_eq!(capacities[2], capacities[3]);
    }
}
