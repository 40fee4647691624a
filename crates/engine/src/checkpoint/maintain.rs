//! When ranges are flushed, compacted and made: by threads of their own, or where all work is the callers' by those who
//! need frames, and by checkpoints.
//!
//! Memory short: the range with the most frames in front of its stock is flushed. Fragments as large as the base: the
//! stock is compacted. Leaves of one node that were read for changes so often that making a range of them costs no
//! more than these reads did: a range is made of them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_waits::{LatchClass, Recorder, Wait};

use super::Store;
use crate::error::{Error, Result};
use crate::options::{Background, PastMemory};
use crate::status::TransactionStatus;
use crate::storage::{Range, Stock};
use crate::tree::{LEAVES_OF_A_RANGE_MIN, Neighbours};
use crate::units::{LeafId, ObjectId};

/// Of the frames that front leaves may have, so many parts of [`PARTS`] are used before ranges are flushed.
const FLUSHED_FROM: usize = 7;
const PARTS: usize = 8;
/// A session waits for the flusher no longer than this before it flushes itself.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(100);
/// A session that would read a leaf waits no longer than this for ranges that are about to be made.
const RANGE_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often the threads look when nobody wakes them.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// After flushes that gave no frames back: each writes the rows under intents once more.
const STUCK_RETRY_AFTER: Duration = Duration::from_millis(50);
/// After a flush or compaction that found the disk full.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A stock with so many fragments is compacted, however small they are.
const FRAGMENTS_MAX: usize = 64;
/// Fragments of less than this part of the usual base are not compacted.
const SMALL_PART: u64 = 16;
/// So often a node's reads are counted half.
const FORGET_EVERY: Duration = Duration::from_secs(10);

/// What came of a flush.
enum Flushed {
    /// Frames.
    Frames,
    /// No range gives any back: what is in front of them belongs to commits that are under way.
    Nothing,
    /// Perhaps of a range that somebody else is at.
    Busy,
}

impl Store {
    /// Whether a range must be flushed before front leaves get more frames.
    fn is_front_full(&self) -> bool {
        self.ranges.front_frames() >= self.front_frames_max()
    }

    fn is_front_filling(&self) -> bool {
        self.ranges.front_frames() * PARTS >= self.front_frames_max() * FLUSHED_FROM
    }

    /// Waits until front leaves may have another frame. Called without latches and without a permit.
    pub(super) fn make_front_space(&self, recorder: &Recorder) -> Result<()> {
        if self.ranges.front_frames() == 0 {
            return Ok(());
        }
        while self.is_front_full() && !self.ranges.is_stuck() {
            self.check_open()?;
            if self.ranges.wake_threads() {
                let _wait = recorder.wait(Wait::FrontFull);
                if self.ranges.wait_flushed(FLUSH_WAIT_MAX) {
                    continue;
                }
            }
            if self.is_front_full() {
                match self.flush_with_space(recorder)? {
                    Flushed::Frames => {}
                    Flushed::Nothing => self.ranges.set_stuck(),
                    // Whoever is there may be this thread, further out.
                    Flushed::Busy => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// As [`flush_fullest`](Self::flush_fullest); on a full disk once more when the slots of replaced runs are free: by
    /// a space install, which needs next to none itself, or by a checkpoint.
    fn flush_with_space(&self, recorder: &Recorder) -> Result<Flushed> {
        let flushed = self.flush_fullest(recorder);
        let Err(Error::DiskFull { .. }) = flushed else { return flushed };
        self.compact_garbage(recorder)?;
        if let Ok(true) = super::install_space(self, recorder) {
            let flushed = self.flush_fullest(recorder);
            let Err(Error::DiskFull { .. }) = flushed else { return flushed };
        }
        super::run(self, recorder)?;
        self.flush_fullest(recorder)
    }

    /// On a full disk: compacts the stock that has the most that a compaction drops, if there is space for that. Its
    /// slots are free after the next checkpoint.
    pub(super) fn compact_garbage(&self, recorder: &Recorder) -> Result<()> {
        let garbage = |range: Arc<Range>| {
            let stock = range.stock();
            let (base, fragments) = stock.bytes();
            // Of a transaction that was rolled back it may be all.
            let aborted = if self.has_aborted(&stock) { base + fragments } else { 0 };
            (fragments + aborted, range)
        };
        // The others wait for the checkpoint.
        let Some(_one) = self.ranges.garbage_turn() else { return Ok(()) };
        self.withhold_for_ranges();
        let ranges = self.ranges.all().into_iter().filter(|range| !range.is_damaged());
        let most = ranges.map(garbage).max_by_key(|(garbage, _)| *garbage);
        let worth_it = most.filter(|(garbage, _)| *garbage > self.range_bytes() / SMALL_PART);
        let Some((_, range)) = worth_it else { return Ok(()) };
        match self.compact(recorder, &range) {
            Err(Error::DiskFull { .. }) => Ok(()),
            compacted => compacted.map(drop),
        }
    }

    /// Flushes the range with the most frames in front of it, of those that nobody is at and from which frames come.
    fn flush_fullest(&self, recorder: &Recorder) -> Result<Flushed> {
        let with_frames = |range: Arc<Range>| (range.front_frames(), range);
        let mut ranges: Vec<_> = self.ranges.all().into_iter().map(with_frames).collect();
        ranges.sort_unstable_by_key(|(frames, _)| Reverse(*frames));
        let mut flushed = Flushed::Nothing;
        for (_, range) in ranges.iter().filter(|(frames, _)| *frames > 0) {
            let Some(tree) = self.tree_of(range.object) else {
                self.ranges.retire(range);
                return Ok(Flushed::Frames);
            };
            let Some(frames) = tree.flush(self, recorder, range, None)? else {
                flushed = Flushed::Busy;
                continue;
            };
            if self.options.background == Background::Callers && self.is_due(range) {
                self.compact(recorder, range)?;
            }
            if frames > 0 {
                return Ok(Flushed::Frames);
            }
        }
        Ok(flushed)
    }

    /// Compacts the stock of a range, and divides it if it is large and no checkpoint is being taken.
    fn compact(&self, recorder: &Recorder, range: &Arc<Range>) -> Result<bool> {
        let Some(tree) = self.tree_of(range.object) else {
            self.ranges.retire(range);
            return Ok(true);
        };
        let (base, fragments) = range.stock().bytes();
        if self.has_committed(&range.stock()) {
            tree.flush(self, recorder, range, None)?;
        }
        let is_large = base + fragments > 2 * self.range_bytes();
        let no_checkpoint = is_large.then(|| self.checkpointer.try_lock()).flatten();
        let may_divide = no_checkpoint.is_some();
        let compacted = tree.compact(self, recorder, range, may_divide);
        drop(no_checkpoint);
        go_on_with_damage(range, compacted)
    }

    /// Does what is due with all ranges, where there are no threads for that; in a checkpoint, which has the right
    /// to make and divide ranges.
    pub(super) fn maintain_all(&self, recorder: &Recorder) -> Result<()> {
        if self.options.background == Background::Threads {
            return Ok(());
        }
        for range in self.ranges.all() {
            if self.is_due(&range)
                && let Some(tree) = self.tree_of(range.object)
            {
                go_on_with_damage(&range, tree.compact(self, recorder, &range, true))?;
            }
        }
        let mut counts = ColdNodes::default();
        counts.count(self, recorder);
        counts.convert_due(self, recorder).map(drop)
    }

    /// A leaf that is on disk only is about to be read for a change. While ranges are made, that waits for them: each
    /// read takes the device and the processor from what makes reads needless.
    pub(super) fn note_cold(&self, id: LeafId, recorder: &Recorder) {
        if self.options.past_memory != PastMemory::Auto {
            return;
        }
        {
            let leaf = self.leaves.get(id.0).latch.shared(recorder, LatchClass::Leaf);
            let is_cold = leaf.logged && leaf.rows.is_none() && leaf.image.is_some();
            let Some(object) = leaf.object.filter(|_| is_cold) else { return };
            self.ranges.note_cold(object, leaf.low.bytes());
        }
        if self.ranges.are_due() {
            let _wait = recorder.wait(Wait::FrontFull);
            let began = Instant::now();
            while self.ranges.are_due() && began.elapsed() < RANGE_WAIT_MAX {
                self.ranges.wait_flushed(RANGE_WAIT_MAX);
            }
        }
    }
}

impl Store {
    /// Whether the stock of a range is to be compacted.
    fn is_due(&self, range: &Range) -> bool {
        let stock = range.stock();
        let (base, fragments) = stock.bytes();
        let fragments_max = base.max(self.range_bytes() / SMALL_PART);
        let is_large = fragments >= fragments_max.max(1) || stock.fragments() >= FRAGMENTS_MAX;
        let has_outcomes = || self.has_committed(&stock) || self.has_aborted(&stock);
        (is_large || has_outcomes()) && !range.is_damaged()
    }

    /// Whether a compaction makes rows of intents, so that the outcomes of their transactions can be forgotten.
    fn has_committed(&self, stock: &Stock) -> bool {
        if !stock.has_intents() {
            return false;
        }
        let horizon = self.horizon();
        stock.owners().any(|id| match self.resolver.large.status(id) {
            TransactionStatus::Committed(lsn) => lsn < horizon,
            TransactionStatus::Aborted | TransactionStatus::Pending => false,
        })
    }

    /// Whether a compaction drops intents of transactions that were rolled back.
    fn has_aborted(&self, stock: &Stock) -> bool {
        stock.owners().any(|id| self.resolver.large.status(id) == TransactionStatus::Aborted)
    }
}

/// A damaged image is for those to report who need its rows. The range is left as it is.
fn go_on_with_damage(range: &Range, outcome: Result<bool>) -> Result<bool> {
    match outcome {
        Err(Error::Damaged(_)) => {
            range.set_damaged();
            Ok(false)
        }
        other => other,
    }
}

/// Below a node with fewer reads no range is made.
const READS_MIN: u32 = 4;
/// Once so many ranges were made of a table, its other nodes need fewer reads: their leaves would take the frames that
/// the made ones have left, to no end.
const MADE_OF_A_COLD_TABLE: u32 = 4;

/// A node right above leaves, by its table and where its keys begin.
type ColdNode = (ObjectId, Box<[u8]>);

/// How often leaves below each node were read for changes.
#[derive(Default)]
struct ColdNodes {
    counts: HashMap<ColdNode, u32>,
    /// Ranges that were made of each table lately.
    made: HashMap<ObjectId, u32>,
    /// Reads were counted since it was last looked for nodes that are due.
    has_more: bool,
}

impl ColdNodes {
    /// Counts what was noted since.
    fn count(&mut self, store: &Store, recorder: &Recorder) {
        for (object, key) in store.ranges.take_cold() {
            if let Some(tree) = store.tree_of(object) {
                let low = tree.node_low(store, recorder, &key);
                *self.counts.entry((object, low.into())).or_insert(0) += 1;
                self.has_more = true;
            }
        }
    }

    /// Makes ranges of the nodes that were read often enough; returns how many.
    fn convert_due(&mut self, store: &Store, recorder: &Recorder) -> Result<usize> {
        if !std::mem::take(&mut self.has_more) {
            return Ok(0);
        }
        let due = self.take_due(store, recorder);
        store.ranges.set_due(!due.is_empty());
        let made = self.convert_all(store, recorder, due);
        store.ranges.set_due(false);
        made
    }

    fn convert_all(
        &mut self,
        store: &Store,
        recorder: &Recorder,
        due: Vec<(ColdNode, u32)>,
    ) -> Result<usize> {
        let mut made = 0;
        for ((object, low), count) in due {
            let Some(tree) = store.tree_of(object) else { continue };
            match tree.convert(store, recorder, object, &low) {
                Ok(true) => {
                    *self.made.entry(object).or_insert(0) += 1;
                    made += 1;
                }
                // Its leaves were in use, or one is damaged, which is for those to report who need its rows. Not
                // at once again: it may be that they always are.
                Ok(false) | Err(Error::Damaged(_)) => {
                    self.counts.insert((object, low), count / 2);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    /// The nodes whose leaves were read so often that making a range of them costs no more than these reads did.
    fn take_due(&mut self, store: &Store, recorder: &Recorder) -> Vec<(ColdNode, u32)> {
        let is_due = |(object, low): &ColdNode, count: &mut u32| {
            if *count < READS_MIN {
                return false;
            }
            let Some(tree) = store.tree_of(*object) else { return true };
            let Neighbours { leaves, in_memory } = tree.neighbours(store, recorder, low);
            let reads = *count as usize;
            let is_cold = match self.made.get(object) {
                Some(made) if *made >= MADE_OF_A_COLD_TABLE => reads * 16 >= leaves,
                _ => reads * 4 >= leaves && in_memory * 8 < leaves * 7,
            };
            leaves >= LEAVES_OF_A_RANGE_MIN && is_cold
        };
        self.counts.extract_if(is_due).collect()
    }

    fn forget_half(&mut self) {
        let is_left = |count: &mut u32| {
            *count /= 2;
            *count > 0
        };
        self.counts.retain(|_, count| is_left(count));
        self.made.retain(|_, made| is_left(made));
    }
}

/// Flushes the range with the most frames in front of it, if there is one.
pub(crate) fn flush_fullest(store: &Store, recorder: &Recorder) -> Result<()> {
    store.flush_fullest(recorder).map(drop)
}

/// Keeps frames of front leaves free; for a thread.
pub(crate) fn flush_ranges(store: &Store, recorder: &Recorder) {
    let mut tried = Instant::now();
    while !store.is_closing() && !store.has_failed() {
        let is_worth_it = !store.ranges.is_stuck() || tried.elapsed() >= STUCK_RETRY_AFTER;
        let outcome = match store.is_front_filling() && is_worth_it {
            true => {
                tried = Instant::now();
                store.flush_fullest(recorder).map(|flushed| {
                    if matches!(flushed, Flushed::Nothing) {
                        store.ranges.set_stuck();
                    }
                    matches!(flushed, Flushed::Frames)
                })
            }
            false => Ok(false),
        };
        if !go_on(store, recorder, outcome) {
            return;
        }
    }
}

/// Compacts stocks and makes ranges; for a thread.
pub(crate) fn compact_ranges(store: &Store, recorder: &Recorder) {
    let mut cold = ColdNodes::default();
    let mut forgot = Instant::now();
    while !store.is_closing() && !store.has_failed() {
        cold.count(store, recorder);
        let made = match store.checkpointer.try_lock() {
            Some(_no_checkpoint) => cold.convert_due(store, recorder),
            None => Ok(0),
        };
        let outcome = made.and_then(|made| Ok(compact_one(store, recorder)? || made > 0));
        if forgot.elapsed() >= FORGET_EVERY {
            cold.forget_half();
            forgot = Instant::now();
        }
        if !go_on(store, recorder, outcome) {
            return;
        }
    }
}

/// Compacts the stock that has the most to be compacted; false if there is none.
fn compact_one(store: &Store, recorder: &Recorder) -> Result<bool> {
    let usual = store.range_bytes();
    let share = |range: &Arc<Range>| {
        let (base, fragments) = range.stock().bytes();
        store.is_due(range).then(|| fragments * 1000 / base.max(usual / SMALL_PART).max(1))
    };
    let ranges = store.ranges.all();
    let due = ranges.iter().filter_map(|range| Some((share(range)?, range)));
    let Some((_, range)) = due.max_by_key(|(share, _)| *share) else { return Ok(false) };
    store.compact(recorder, range)
}

/// Rests where nothing was to do, or the disk is full. False: the engine has stopped.
fn go_on(store: &Store, recorder: &Recorder, outcome: Result<bool>) -> bool {
    let rest = match outcome {
        Ok(true) => return true,
        Ok(false) => LOOK_EVERY,
        Err(Error::DiskFull { .. } | Error::LeafMemoryTooSmall { .. }) => RETRY_AFTER,
        Err(error) => {
            store.stop_for(&error.to_string());
            return false;
        }
    };
    let _idle = recorder.wait(Wait::BackgroundIdle);
    std::thread::park_timeout(rest);
    true
}
