//! When ranges are flushed, compacted and made: by threads of their own, or where all work is the callers' by those who
//! need frames, and by checkpoints.
//!
//! Memory short: the range with the most frames in front of its stock is flushed. Fragments as large as the base: the
//! stock is compacted. Leaves of one node that were read for changes so often that making a range of them costs no
//! more than these reads did: a range is made of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_waits::{Recorder, Wait};

use super::Store;
use crate::error::{Error, Result};
use crate::options::{Background, PastMemory};
use crate::storage::Range;
use crate::tree::{LEAVES_OF_A_RANGE_MIN, Neighbours};
use crate::units::{LeafId, ObjectId};

/// Of the frames that front leaves may have, so many parts of [`PARTS`] are used before ranges are flushed.
const FLUSHED_FROM: usize = 7;
const PARTS: usize = 8;
/// A session waits for the flusher no longer than this before it flushes itself.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(100);
/// How often the threads look when nobody wakes them.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// After a flush or compaction that found the disk full.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A stock with so many fragments is compacted, however small they are.
const FRAGMENTS_MAX: usize = 64;
/// Fragments of less than this part of the usual base are not compacted.
const SMALL_PART: u64 = 16;
/// So often a node's reads are counted half.
const FORGET_EVERY: Duration = Duration::from_secs(10);

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
        while self.is_front_full() {
            self.check_open()?;
            if self.ranges.wake_threads() {
                let _wait = recorder.wait(Wait::FrontFull);
                self.ranges.wait_flushed(FLUSH_WAIT_MAX);
            }
            if self.is_front_full() && !self.flush_fullest(recorder)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Flushes the range with the most frames in front of it; false if nothing came of it.
    fn flush_fullest(&self, recorder: &Recorder) -> Result<bool> {
        let ranges = self.ranges.all();
        let Some(range) = ranges.iter().max_by_key(|range| range.front_frames()) else {
            return Ok(false);
        };
        let Some(tree) = self.tree_of(range.object) else {
            self.ranges.retire(range);
            return Ok(true);
        };
        let before = range.front_frames();
        tree.flush(self, recorder, range, None)?;
        if self.options.background == Background::Callers && is_due(range, self.range_bytes()) {
            self.compact(recorder, range)?;
        }
        Ok(range.front_frames() < before)
    }

    fn compact(&self, recorder: &Recorder, range: &Arc<Range>) -> Result<()> {
        let Some(tree) = self.tree_of(range.object) else {
            self.ranges.retire(range);
            return Ok(());
        };
        let (base, fragments) = range.stock().bytes();
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
            if is_due(&range, self.range_bytes())
                && let Some(tree) = self.tree_of(range.object)
            {
                go_on_with_damage(&range, tree.compact(self, recorder, &range, true))?;
            }
        }
        let mut counts = ColdNodes::default();
        counts.count(self, recorder);
        counts.convert_due(self, recorder).map(drop)
    }

    /// A leaf that is on disk only is about to be read for a change.
    pub(super) fn note_cold(&self, id: LeafId, recorder: &Recorder) {
        if self.options.past_memory != PastMemory::Auto {
            return;
        }
        let leaf = self.leaves.get(id.0).latch.shared(recorder, onrush_waits::LatchClass::Leaf);
        if let Some(object) = leaf.object.filter(|_| leaf.logged && leaf.rows.is_none())
            && leaf.image.is_some()
        {
            self.ranges.note_cold(object, leaf.low.bytes());
        }
    }
}

/// A damaged image is for those to report who need its rows. The range is left as it is.
fn go_on_with_damage(range: &Range, outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::Damaged(_)) => {
            range.set_damaged();
            Ok(())
        }
        other => other,
    }
}

/// Whether the stock of a range is to be compacted.
fn is_due(range: &Range, usual: u64) -> bool {
    let stock = range.stock();
    let (base, fragments) = stock.bytes();
    let fragments_max = base.max(usual / SMALL_PART);
    let is_due = fragments >= fragments_max.max(1) || stock.fragments() >= FRAGMENTS_MAX;
    is_due && !range.is_damaged()
}

/// How often leaves below each node were read for changes.
#[derive(Default)]
struct ColdNodes {
    counts: HashMap<(ObjectId, Box<[u8]>), u32>,
}

impl ColdNodes {
    /// Counts what was noted since.
    fn count(&mut self, store: &Store, recorder: &Recorder) {
        for (object, key) in store.ranges.take_cold() {
            if let Some(tree) = store.tree_of(object) {
                let low = tree.node_low(store, recorder, &key);
                *self.counts.entry((object, low.into())).or_insert(0) += 1;
            }
        }
    }

    /// Makes ranges of the nodes that were read often enough; returns how many.
    fn convert_due(&mut self, store: &Store, recorder: &Recorder) -> Result<usize> {
        let mut made = 0;
        for ((object, low), count) in std::mem::take(&mut self.counts) {
            let Some(tree) = store.tree_of(object) else { continue };
            if count < LEAVES_OF_A_RANGE_MIN as u32 {
                self.counts.insert((object, low), count);
                continue;
            }
            let Neighbours { leaves, in_memory } = tree.neighbours(store, recorder, &low);
            let is_due = leaves >= LEAVES_OF_A_RANGE_MIN
                && count as usize * 4 >= leaves
                && in_memory * 8 < leaves * 7;
            if !is_due {
                self.counts.insert((object, low), count);
                continue;
            }
            made += usize::from(tree.convert(store, recorder, object, &low)?);
        }
        Ok(made)
    }

    fn forget_half(&mut self) {
        self.counts.retain(|_, count| {
            *count /= 2;
            *count > 0
        });
    }
}

/// Keeps frames of front leaves free; for a thread.
pub(crate) fn flush_ranges(store: &Store, recorder: &Recorder) {
    while !store.is_closing() && !store.has_failed() {
        let outcome =
            if store.is_front_filling() { store.flush_fullest(recorder) } else { Ok(false) };
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
        let outcome = compact_one(store, recorder).and_then(|compacted| {
            cold.count(store, recorder);
            let no_checkpoint = store.checkpointer.try_lock();
            let made = match no_checkpoint {
                Some(_) => cold.convert_due(store, recorder)?,
                None => 0,
            };
            Ok(compacted || made > 0)
        });
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
        is_due(range, usual).then(|| fragments * 1000 / base.max(usual / SMALL_PART).max(1))
    };
    let ranges = store.ranges.all();
    let due = ranges.iter().filter_map(|range| Some((share(range)?, range)));
    let Some((_, range)) = due.max_by_key(|(share, _)| *share) else { return Ok(false) };
    store.compact(recorder, range).map(|()| true)
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
