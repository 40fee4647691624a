//! Cold key ranges: each has a stock on the disk, and leaves in front of it with what is newer.
//!
//! Invariants
//! 1. A front leaf has no image. What it has in memory is newer than what its range's stock has of the same key, or
//!    the same; what is only in memory is at or above the stock's `flushed_below`, or an intent.
//! 2. Rows leave a front leaf only when the stock with them is published, under the leaf's latch. So whoever holds
//!    the latch and looks at the leaf's rows first and at the stock then finds each committed row.
//! 3. A range has its bounds for ever. One that is divided is retired, and is never flushed again.
//! 4. What an intent in a stock means is asked while the stock is held, so that no other one is published meanwhile: an
//!    outcome is forgotten when no stock needs it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use onrush_filter::FingerprintBits;
use onrush_log::{AtomicLsn, Log, Lsn};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use super::run::{Run, hash_of};
use super::stock::Stock;
use super::stock_read::{StockKey, StockPart, WantedPart};
use super::{LeafState, Storage};
use crate::node::leaf::LeafRows;
use crate::options::PastMemory;
use crate::runtime::StopsWaiting;
use crate::units::{LEAF_BYTES, ObjectId};

/// See the module.
pub(crate) struct Range {
    pub(crate) object: ObjectId,
    pub(crate) low: Box<[u8]>,
    /// None: to the end of the table.
    pub(crate) high: Option<Box<[u8]>>,
    stock: RwLock<Arc<Stock>>, // held over memory alone
    /// Held by the one who flushes, compacts or divides the range; before any latch of its leaves.
    pub(crate) maintenance: Mutex<()>,
    /// Frames that its front leaves have.
    front_frames: AtomicUsize,
    is_retired: AtomicBool,
    /// An image or a head of its stock could not be read: it stays as it is.
    is_damaged: AtomicBool,
}

impl Range {
    pub(crate) fn stock(&self) -> Arc<Stock> {
        Arc::clone(&self.stock.read())
    }

    /// Keeps the stock until the guard is dropped. Not to be asked for twice by one thread.
    pub(crate) fn hold_stock(&self) -> RwLockReadGuard<'_, Arc<Stock>> {
        self.stock.read()
    }

    /// Tells `read` what the stock has at `key`, a removal as nothing, and holds the stock meanwhile. Whoever asks
    /// holds the latch of the key's leaf, and has not found a row or a removal of the key in it.
    ///
    /// # Errors
    /// What must be read to tell: `part`, which was read before, is of another key, or of another stock.
    #[inline]
    pub(crate) fn look<'p, R>(
        &self,
        part: Option<&'p StockPart>,
        key: &[u8],
        read: impl FnOnce(Option<StockKey<'p>>) -> R,
    ) -> Result<R, WantedPart> {
        let stock = self.stock.read();
        if !stock.may_have(hash_of(key)) {
            return Ok(read(None));
        }
        match known_part(part, &stock, key) {
            Some(part) => Ok(read(part.find(key))),
            None => Err(WantedPart::key(&stock, self.object, key)),
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    pub(crate) fn front_frames(&self) -> usize {
        self.front_frames.load(Ordering::Relaxed)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// The stock cannot be read as a whole. Whoever needs the damaged part is told so.
    pub(crate) fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }
}

fn known_part<'p>(
    part: Option<&'p StockPart>,
    stock: &RwLockReadGuard<'_, Arc<Stock>>,
    key: &[u8],
) -> Option<&'p StockPart> {
    part.filter(|part| part.is_of(stock) && part.covers(key))
}

/// A base has twice as much at most, when it is about to be divided.
const RANGE_BYTES_MIN: u64 = 256 << 10;
const RANGE_BYTES_MAX: u64 = 32 << 20;
/// Of the memory for leaves.
const RANGE_SHARE: u64 = 16;

/// A compaction writes what fragments and base have, and removals fill fragments before it comes.
const COMPACTIONS_WITHHELD: u64 = 2;

/// Leaves that were read for changes and are not counted yet, at most.
const COLD_LEAVES_MAX: usize = 4096;

/// All ranges of a database.
#[derive(Default)]
pub(crate) struct Ranges {
    all: Mutex<Vec<Arc<Range>>>, // held over memory alone
    /// Frames that all front leaves have.
    front_frames: AtomicUsize,
    /// Memory that all stocks take.
    stock_bytes: AtomicU64,
    /// Slots of runs that stocks have no more, and that are kept by the installed directory.
    replaced_slots: AtomicU64,
    /// Low fences of what must be collected anew for the directory.
    changed: Mutex<Vec<(ObjectId, Box<[u8]>)>>, // held over memory alone
    /// Objects and low fences of leaves that were read for changes, until they are counted.
    cold: Mutex<Vec<(ObjectId, Box<[u8]>)>>, // held over memory alone
    /// Ranges that are about to be made.
    are_due: AtomicBool,
    /// All rows of the log below are redone; from recovery alone.
    redone_below: AtomicLsn,
    /// The threads that flush and compact, once they run.
    threads: OnceLock<Vec<Thread>>,
    /// Counts flushes that gave frames back, for those who wait for frames.
    flushes: Mutex<u64>, // held over memory alone
    has_flushed: Condvar,
    /// Held by whoever compacts for space on a full disk.
    garbage_turn: Mutex<()>,
    /// No flush gives frames back: what front leaves have belongs to commits that are under way.
    is_stuck: AtomicBool,
}

impl StopsWaiting for Ranges {
    fn stop(&self) {
        self.note_flushed();
    }
}

impl Ranges {
    /// The ranges of all tables, those of tables that are gone included.
    pub(crate) fn all(&self) -> Vec<Arc<Range>> {
        self.all.lock().clone()
    }

    /// Frames that all front leaves have.
    pub(crate) fn front_frames(&self) -> usize {
        self.front_frames.load(Ordering::Relaxed)
    }

    /// Memory that all stocks take, about.
    pub(crate) fn stock_bytes(&self) -> u64 {
        self.stock_bytes.load(Ordering::Relaxed)
    }

    /// A range of an object that has this stock.
    pub(crate) fn add(
        &self,
        object: ObjectId,
        (low, high): (Box<[u8]>, Option<Box<[u8]>>),
        stock: Stock,
    ) -> Arc<Range> {
        self.stock_bytes.fetch_add(stock.memory_bytes() as u64, Ordering::Relaxed);
        let range = Arc::new(Range {
            object,
            low,
            high,
            stock: RwLock::new(Arc::new(stock)),
            maintenance: Mutex::new(()),
            front_frames: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
        });
        self.all.lock().push(Arc::clone(&range));
        range
    }

    /// Gives a range another stock. The caller holds its maintenance mutex.
    pub(crate) fn publish(&self, range: &Range, stock: Stock) {
        let bytes = stock.memory_bytes() as u64;
        {
            // Nobody retires it meanwhile, who would give back what the stock takes.
            let _all = self.all.lock();
            if range.is_retired() {
                return;
            }
            let old = std::mem::replace(&mut *range.stock.write(), Arc::new(stock));
            self.stock_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.stock_bytes.fetch_sub(old.memory_bytes() as u64, Ordering::Relaxed);
            let stock = range.stock.read();
            let is_gone = |run: &&Arc<Run>| !stock.runs().any(|own| Arc::ptr_eq(own, run));
            self.note_replaced(old.runs().filter(is_gone));
        }
        self.note_changed(range.object, &range.low);
    }

    /// The next checkpoint collects what begins here anew.
    pub(crate) fn note_changed(&self, object: ObjectId, low: &[u8]) {
        self.changed.lock().push((object, low.into()));
    }

    /// What changed until now.
    pub(crate) fn take_changed(&self) -> Vec<(ObjectId, Box<[u8]>)> {
        std::mem::take(&mut *self.changed.lock())
    }

    /// A leaf was read for a change.
    pub(crate) fn note_cold(&self, object: ObjectId, low: &[u8]) {
        let mut cold = self.cold.lock();
        if cold.len() < COLD_LEAVES_MAX {
            cold.push((object, low.into()));
        }
    }

    /// Those read since.
    pub(crate) fn take_cold(&self) -> Vec<(ObjectId, Box<[u8]>)> {
        std::mem::take(&mut *self.cold.lock())
    }

    /// The range is never flushed again: it was divided, or its table is gone.
    pub(crate) fn retire(&self, range: &Arc<Range>) {
        let mut all = self.all.lock();
        if !range.is_retired.swap(true, Ordering::AcqRel) {
            all.retain(|own| !Arc::ptr_eq(own, range));
            let stock = range.stock.read();
            self.stock_bytes.fetch_sub(stock.memory_bytes() as u64, Ordering::Relaxed);
            self.note_replaced(stock.runs());
        }
    }

    fn note_replaced<'r>(&self, runs: impl Iterator<Item = &'r Arc<Run>>) {
        let slots = runs.map(|run| run.named_slots()).sum();
        self.replaced_slots.fetch_add(slots, Ordering::Relaxed);
    }

    /// About as many slots become free when a directory is installed that has the stocks of now.
    pub(crate) fn replaced_slots(&self) -> u64 {
        self.replaced_slots.load(Ordering::Relaxed)
    }

    /// So many of them are free, or must wait for a checkpoint.
    pub(crate) fn forget_replaced(&self, slots: u64) {
        self.replaced_slots.fetch_sub(slots, Ordering::Relaxed);
    }

    /// Whether ranges are about to be made.
    pub(crate) fn set_due(&self, are_due: bool) {
        if self.are_due.swap(are_due, Ordering::Relaxed) && !are_due {
            self.note_flushed();
        }
    }

    /// See [`set_due`](Self::set_due).
    pub(crate) fn are_due(&self) -> bool {
        self.are_due.load(Ordering::Relaxed)
    }

    /// Redo has done all rows below.
    pub(crate) fn set_redone_below(&self, lsn: Lsn) {
        self.redone_below.store(lsn, Ordering::Release);
    }

    /// From now on threads flush and compact.
    pub(crate) fn set_threads(&self, threads: Vec<Thread>) {
        let _ = self.threads.set(threads);
    }

    /// Asks the threads to look; false if there are none.
    pub(crate) fn wake_threads(&self) -> bool {
        let threads = self.threads.get();
        threads.into_iter().flatten().for_each(Thread::unpark);
        threads.is_some()
    }

    /// One compacts for space at a time; none: somebody else does.
    pub(crate) fn garbage_turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.garbage_turn.try_lock()
    }

    /// No flush gives frames back, so waiting for one is of no use, until one does.
    pub(crate) fn set_stuck(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
    }

    /// See [`set_stuck`](Self::set_stuck).
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// A flush gave frames back, or nobody flushes any more.
    pub(crate) fn note_flushed(&self) {
        self.is_stuck.store(false, Ordering::Relaxed);
        *self.flushes.lock() += 1;
        self.has_flushed.notify_all();
    }

    /// Waits for the next flush, but no longer than `most`. Whether there was one.
    pub(crate) fn wait_flushed(&self, most: Duration) -> bool {
        let mut flushes = self.flushes.lock();
        let before = *flushes;
        let waited =
            self.has_flushed.wait_while_for(&mut flushes, |flushes| *flushes == before, most);
        !waited.timed_out()
    }
}

impl Storage {
    /// All changes below are in leaves or further down, and what they were decided to be is known.
    pub(crate) fn completed_below(&self) -> Lsn {
        let redone = || self.ranges.redone_below.load(Ordering::Acquire);
        self.log.get().map_or_else(redone, Log::prefix)
    }

    /// Bytes of the usual base.
    pub(crate) fn range_bytes(&self) -> u64 {
        let memory = (self.frames.frames() * LEAF_BYTES) as u64;
        (memory / RANGE_SHARE).clamp(RANGE_BYTES_MIN, RANGE_BYTES_MAX)
    }

    /// Frames that front leaves may have before inserts wait for a flush.
    pub(crate) fn front_frames_max(&self) -> usize {
        self.frames.frames() * 3 / 4
    }

    /// Keeps slots free for the next flush and compaction of the largest range.
    pub(crate) fn withhold_for_ranges(&self) {
        let slots_of = |range: &Arc<Range>| {
            let (base, fragments) = range.stock().bytes();
            ((base + fragments) / LEAF_BYTES as u64, range.front_frames() as u64)
        };
        let all = self.ranges.all();
        let slots = all.iter().map(slots_of);
        let (stock, front) = slots.fold((0, 0), |(stock, front), (own_stock, own_front)| {
            (stock.max(own_stock), front.max(own_front))
        });
        self.space.withhold_for_ranges((stock * COMPACTIONS_WITHHELD + front) as i64);
    }

    /// How exact the filter of a base is: the less memory there is for filters, the less.
    pub(crate) fn filter_bits(&self) -> FingerprintBits {
        let memory = (self.frames.frames() * LEAF_BYTES) as u64;
        let bits = match self.ranges.stock_bytes() * 100 / memory.max(1) {
            0..15 => 8,
            15..30 => 6,
            _ => 4,
        };
        FingerprintBits::new(bits).unwrap_or(FingerprintBits::LEAST)
    }

    /// Gives a leaf rows. The caller holds its latch exclusive.
    pub(crate) fn put_rows(&self, leaf: &mut LeafState, rows: LeafRows) {
        if let Some(range) = leaf.range.as_ref().filter(|_| leaf.rows.is_none()) {
            range.front_frames.fetch_add(1, Ordering::Relaxed);
            self.ranges.front_frames.fetch_add(1, Ordering::Relaxed);
        }
        leaf.rows = Some(rows);
    }

    /// Gives the frame of a leaf back, if it has one. The caller holds its latch exclusive.
    pub(crate) fn give_back_rows(&self, leaf: &mut LeafState) -> bool {
        let Some(rows) = leaf.rows.take() else { return false };
        self.frames.give_back(rows.into_frame());
        if let Some(range) = &leaf.range {
            range.front_frames.fetch_sub(1, Ordering::Relaxed);
            self.ranges.front_frames.fetch_sub(1, Ordering::Relaxed);
        }
        true
    }

    /// Puts a leaf in front of another range. The caller holds its latch exclusive.
    pub(crate) fn set_range(&self, leaf: &mut LeafState, range: &Arc<Range>) {
        let old = leaf.range.replace(Arc::clone(range));
        let Some(rows) = leaf.rows.as_mut() else { return };
        rows.set_front();
        range.front_frames.fetch_add(1, Ordering::Relaxed);
        match old {
            Some(old) => _ = old.front_frames.fetch_sub(1, Ordering::Relaxed),
            None => _ = self.ranges.front_frames.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A table that begins now gets a range, if all tables are to have some.
    pub(crate) fn first_range(&self, object: ObjectId, logged: bool) -> Option<Arc<Range>> {
        let is_wanted = logged && self.options.past_memory == PastMemory::Always;
        let everything = (Box::default(), None);
        is_wanted.then(|| self.ranges.add(object, everything, Stock::default()))
    }
}
