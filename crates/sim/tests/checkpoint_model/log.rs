//! The log: marks, tail and completed prefix, rounds that write and sync. One LSN a record.

use std::sync::{Arc, Mutex as Plain};

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;

use super::disk::Disk;
use super::{Key, Lsn, PLACES, Value, lock};

const NOTHING: u64 = u64::MAX;

/// Changes that are there together or not at all; `None` removes the row.
#[derive(Clone, Debug)]
pub struct Record {
    pub changes: Vec<(Key, Option<Value>)>,
}

/// All records ever filled in, by LSN: the ring and the log files, and what the test knows.
#[derive(Clone, Default)]
pub struct History {
    records: Arc<Plain<Vec<Option<Record>>>>,
}

impl History {
    pub fn push(&self, record: Record) -> Lsn {
        let mut records = lock(&self.records);
        records.push(Some(record));
        records.len() as u64 - 1
    }

    pub fn len(&self) -> Lsn {
        lock(&self.records).len() as u64
    }

    fn fill(&self, lsn: Lsn, record: Record) {
        let mut records = lock(&self.records);
        let index = usize::try_from(lsn).expect("small");
        if records.len() <= index {
            records.resize(index + 1, None);
        }
        records[index] = Some(record);
    }

    /// The records from `start` on and below `end`, which are complete.
    pub fn range(&self, start: Lsn, end: Lsn) -> Vec<(Lsn, Record)> {
        let records = lock(&self.records);
        let record = |lsn: Lsn| records[usize::try_from(lsn).expect("small")].clone();
        (start..end).map(|lsn| (lsn, record(lsn).expect("complete below the prefix"))).collect()
    }
}

/// See the module.
pub struct Log {
    history: History,
    disk: Arc<Disk>,
    tail: AtomicU64,
    prefix: AtomicU64,
    marks: Vec<AtomicU64>,
    /// Held by the leader of a round.
    writer: Mutex<()>,
    durable: AtomicU64,
    /// Where the next block starts.
    position: AtomicU64,
    recycling: Plain<Recycling>,
}

/// What the pool of segments knows of who needs what.
#[derive(Default)]
struct Recycling {
    /// No checkpoint needs what lies below.
    to: Lsn,
    holds: Vec<Lsn>,
}

/// Keeps the log from a position on, until it is dropped.
pub struct LogHold<'a> {
    log: &'a Log,
    from: Lsn,
}

impl Drop for LogHold<'_> {
    fn drop(&mut self) {
        let at = {
            let mut recycling = lock(&self.log.recycling);
            let at = recycling.holds.iter().position(|from| *from == self.from);
            recycling.holds.swap_remove(at.expect("it was held"));
            recycling.keep_from()
        };
        self.log.disk.recycle_log(at);
    }
}

impl Recycling {
    fn keep_from(&self) -> Lsn {
        self.holds.iter().fold(self.to, |least, from| least.min(*from))
    }
}

impl Log {
    pub fn new(history: History, disk: Arc<Disk>) -> Log {
        let end = history.len();
        Log {
            history,
            disk,
            tail: AtomicU64::new(end),
            prefix: AtomicU64::new(end),
            marks: (0..PLACES).map(|_| AtomicU64::new(NOTHING)).collect(),
            writer: Mutex::new(()),
            durable: AtomicU64::new(end),
            position: AtomicU64::new(end),
            recycling: Plain::new(Recycling { to: end, holds: Vec::new() }),
        }
    }

    pub fn reserve(&self, place: usize) -> Lsn {
        self.marks[place].store(self.tail.load(SeqCst), SeqCst);
        self.tail.fetch_add(1, SeqCst)
    }

    pub fn fill(&self, lsn: Lsn, changes: Vec<(Key, Option<Value>)>) {
        self.history.fill(lsn, Record { changes });
    }

    pub fn complete(&self, place: usize) {
        self.marks[place].store(NOTHING, SeqCst);
    }

    pub fn tail(&self) -> Lsn {
        self.tail.load(SeqCst)
    }

    fn prefix(&self) -> Lsn {
        let tail = self.tail.load(SeqCst); // before the marks
        let computed = self.marks.iter().fold(tail, |least, mark| least.min(mark.load(SeqCst)));
        self.prefix.fetch_max(computed, SeqCst).max(computed)
    }

    pub fn position(&self) -> Lsn {
        self.position.load(SeqCst)
    }

    /// Leads a round: writes all that is complete, and syncs it.
    pub fn write_now(&self) {
        let _leader = self.writer.lock().expect("no leader panics and lives on");
        let end = self.prefix();
        if end > self.durable.load(SeqCst) {
            self.disk.write_log(end);
            self.disk.sync_log();
            self.position.store(end, SeqCst);
            self.durable.store(end, SeqCst);
        }
    }

    /// Returns when all below `lsn` is durable.
    pub fn wait_durable(&self, lsn: Lsn) {
        while self.durable.load(SeqCst) < lsn {
            self.write_now();
            if self.prefix() < lsn {
                thread::yield_now();
            }
        }
    }

    pub fn durable(&self) -> Lsn {
        self.durable.load(SeqCst)
    }

    pub fn hold(&self, from: Lsn) -> LogHold<'_> {
        lock(&self.recycling).holds.push(from);
        LogHold { log: self, from }
    }

    pub fn recycle_below(&self, lsn: Lsn) {
        let keep_from = {
            let mut recycling = lock(&self.recycling);
            recycling.to = recycling.to.max(lsn);
            recycling.keep_from()
        };
        self.disk.recycle_log(keep_from);
    }
}
