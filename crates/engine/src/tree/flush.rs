//! Moves the rows of a range from its front leaves into a new fragment of its stock.
//!
//! 1. F, the completed prefix of the log, is read. 2. Leaf by leaf rows and removals are copied, in key order, and
//!    written. 3. The stock with the new fragment is published. 4. Leaf by leaf, under the latch, what is below F is
//!    dropped; what came since stays.
//!
//! Invariants
//! 1. Rows are dropped after the stock with them is published, never before.
//! 2. All below F is copied: a change below F has placed its row before F was read, and what a transaction decided
//!    below F is known, so its intents are resolved first. An entry below F that appears later was taken out of the
//!    stock. What is not below F is copied, too: the row of a large transaction may be of a piece below F, though its
//!    own LSN, that of the commit, is not. Redo comes to what is above F again.
//! 3. A row stays in its leaf as long as an intent is on its key: what the intent replaces is needed there. The
//!    intent of a large transaction goes with its row into the same image, and leaves no row behind.
//! 4. What was copied with an intent is dropped only if the same intent is there still. Of a leaf from which one was
//!    taken back since, nothing is dropped: it may be that the stock alone had it, with a row that is now in the leaf.
//! 5. A leaf that keeps rows stays dirty for its epoch, unless the flush is a checkpoint's, for which F is at least C:
//!    then what it keeps is for the next one.

use std::collections::HashMap;
use std::ops::Range as Span;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::{Counter, Phase, Recorder};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::intent::resolve_intents;
use super::{Refusal, Tree, Trees};
use crate::error::{Error, Result};
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::node::leaf::{LeafRows, Stamp};
use crate::options::Background;
use crate::storage::{LeafState, Range, RunWriter};
use crate::units::{Epoch, LeafId};

/// Rows copied out of a leaf.
#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    keys: Vec<CopiedKey>,
}

/// Of one key a row or a removal, the intent of a large transaction on it, or both.
struct CopiedKey {
    key: Span<usize>,
    decided: Option<CopiedEntry>,
    intent: Option<CopiedEntry>,
}

#[derive(Clone, Copy)]
struct CopiedEntry {
    stamp: Stamp,
    value_at: usize,
    end: usize,
}

/// Intents that were copied, by their keys, both as hashes.
type CopiedIntents = HashMap<u64, u64>;

fn hash_of_intent(stamp: Stamp, value: &[u8]) -> u64 {
    xxh3_64_with_seed(value, stamp.raw())
}

impl Copied {
    /// Copies rows, removals and intents of large transactions, from `low` on.
    fn take(&mut self, rows: &LeafRows, low: &[u8]) {
        self.bytes.clear();
        self.keys.clear();
        self.bytes.extend_from_slice(rows.entry_bytes());
        let (bytes, keys) = (&self.bytes, &mut self.keys);
        rows.visit_in_order(|stamp, key_at, value_at, end| {
            let key = key_at..value_at;
            if bytes[key.clone()] < *low {
                return;
            }
            let end = if stamp.is_removal() { value_at } else { end };
            let entry = CopiedEntry { stamp, value_at, end };
            if stamp.decided_at().is_some() {
                keys.push(CopiedKey { key, decided: Some(entry), intent: None });
            } else if !stamp.is_small_intent() {
                match keys.last_mut() {
                    Some(last) if bytes[last.key.clone()] == bytes[key.clone()] => {
                        last.intent = Some(entry);
                    }
                    _ => keys.push(CopiedKey { key, decided: None, intent: Some(entry) }),
                }
            }
        });
    }

    /// Without the removals where there is nothing that they could hide.
    fn write(
        &self,
        writer: &mut RunWriter<'_>,
        first: bool,
        intents: &mut CopiedIntents,
    ) -> Result<()> {
        let with_value =
            |entry: &CopiedEntry| (entry.stamp, &self.bytes[entry.value_at..entry.end]);
        let hides_nothing = first || planted(Fault::RemovalsNotFlushed);
        for CopiedKey { key, decided, intent } in &self.keys {
            let key = &self.bytes[key.clone()];
            let is_written = |it: &&CopiedEntry| !(hides_nothing && it.stamp.is_removal());
            let decided = decided.as_ref().filter(is_written).map(with_value);
            match (decided, intent.as_ref().map(with_value)) {
                (Some((stamp, value)), None) => writer.push(stamp, key, value)?,
                (decided, Some((stamp, value))) => {
                    writer.push_intent(key, decided, (stamp, value))?;
                    intents.insert(xxh3_64(key), hash_of_intent(stamp, value));
                }
                (None, None) => {}
            }
        }
        Ok(())
    }
}

impl Tree {
    /// Flushes what is below the completed prefix, and tells how many frames that gave back; none if somebody else is
    /// at the range. A checkpoint waits for him: `checkpoint` is the epoch that it has begun. Called without latches.
    ///
    /// # Errors
    /// A full disk: nothing has changed. A failed write: the engine stops.
    pub(crate) fn flush(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Arc<Range>,
        checkpoint: Option<Epoch>,
    ) -> Result<Option<usize>> {
        let one = match (checkpoint, trees.options.background) {
            (Some(_), Background::Threads) => Some(range.maintenance.lock()),
            // The caller may be at it himself: he came here while the disk was busy for him.
            _ => range.maintenance.try_lock(),
        };
        if range.is_retired() {
            return Ok(Some(0));
        }
        if one.is_none() {
            // A checkpoint that cannot have the rows below C fails.
            let frames = trees.frames.frames();
            return checkpoint.map_or(Ok(None), |_| Err(Error::LeafMemoryTooSmall { frames }));
        }
        let _work = recorder.work(Phase::Flush);
        let below = trees.completed_below();
        let mut writer = RunWriter::new(trees, recorder, range.object);
        // What is redone had its slots before the crash.
        if checkpoint.is_some() || trees.log.get().is_none() {
            writer = writer.for_checkpoint();
        }
        let first = range.stock().is_empty();
        let copied = self.copy_front(trees, recorder, range, first, &mut writer);
        let intents = match copied {
            Ok(intents) => intents,
            // The table is gone, and with it the range.
            Err(CopyError::Gone) => return Ok(Some(0)),
            Err(CopyError::Failed(error)) => return Err(error),
        };
        let shed = || self.shed_front(trees, recorder, range, (below, &intents), checkpoint);
        let early = planted(Fault::ShedBeforePublish).then(shed);
        let rows = writer.totals().rows;
        if rows > 0 {
            // The first run is a base, since there is nothing below it.
            let bits = first.then(|| trees.filter_bits());
            let (run, keys) = writer.finish(bits)?;
            recorder.count(Counter::RangeFlushes, 1);
            recorder.count(Counter::RangeRowsFlushed, rows);
            let told = if planted(Fault::FlushLsnTooHigh) { Lsn(below.0 + 4096) } else { below };
            trees.ranges.publish(range, range.stock().with(run, keys, told));
            trees.withhold_for_ranges();
        } else if range.stock().has_intents() {
            // A compaction makes rows of intents whose commits are below.
            trees.ranges.publish(range, range.stock().flushed_to(below));
        }
        let Shed { emptied, frames } = early.unwrap_or_else(shed);
        self.pack(trees, recorder, range, emptied);
        if frames > 0 {
            trees.ranges.note_flushed();
        }
        Ok(Some(frames))
    }

    fn copy_front(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Range,
        first: bool,
        writer: &mut RunWriter<'_>,
    ) -> std::result::Result<CopiedIntents, CopyError> {
        let (mut copied, mut intents) = (Copied::default(), CopiedIntents::new());
        let mut at = range.low.to_vec();
        loop {
            let next = {
                let key = (head(&at), at.as_slice());
                let latched = self.latch_exclusive(trees, recorder, None, key, range.object);
                let (_, mut leaf) = latched.map_err(|_: Refusal| CopyError::Gone)?;
                copied.keys.clear();
                if let Some(rows) = leaf.rows.as_mut() {
                    resolve_intents(trees, self, rows);
                    rows.set_taken_back(false);
                    copied.take(rows, &at);
                }
                next_in(range, &leaf)
            };
            copied.write(writer, first, &mut intents).map_err(CopyError::Failed)?;
            match next {
                Some(next) => at = next,
                None => return Ok(intents),
            }
        }
    }

    /// Drops what was copied, what is below `below` and these intents, from the front leaves.
    fn shed_front(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Range,
        (below, intents): (Lsn, &CopiedIntents),
        checkpoint: Option<Epoch>,
    ) -> Shed {
        let Shed { mut emptied, mut frames } = Shed::default();
        let mut at = range.low.to_vec();
        loop {
            let key = (head(&at), at.as_slice());
            let latched = self.latch_exclusive(trees, recorder, None, key, range.object);
            let Ok((id, mut leaf)) = latched else { break };
            shed(&mut leaf, below, intents);
            if leaf.has_nothing_in_memory() {
                frames += usize::from(trees.drop_rows(&mut leaf));
                if leaf.low.bytes() > &*range.low {
                    emptied.push((id, leaf.low.bytes().into()));
                }
            } else if let Some(epoch) = checkpoint
                && leaf.dirty_epoch.is_some_and(|own| own < epoch)
            {
                leaf.dirty_epoch = Some(trees.dirty.epoch());
                trees.list_dirty(trees.background_permit(), id, &leaf);
            }
            match next_in(range, &leaf) {
                Some(next) => at = next,
                None => break,
            }
        }
        Shed { emptied, frames }
    }
}

/// What became of front leaves behind a flush.
#[derive(Default)]
struct Shed {
    /// Those with nothing left, but for the first.
    emptied: Vec<(LeafId, Box<[u8]>)>,
    /// How many were given back.
    frames: usize,
}

enum CopyError {
    Gone,
    Failed(Error),
}

/// Where the next leaf of the range begins; none behind the last.
fn next_in(range: &Range, leaf: &LeafState) -> Option<Vec<u8>> {
    let next = leaf.high.as_ref()?.bytes();
    range.high.as_ref().is_none_or(|high| *next < **high).then(|| next.to_vec())
}

/// Drops rows and removals below `below`, and intents that were copied with all that is there of their keys.
fn shed(leaf: &mut LeafState, below: Lsn, intents: &CopiedIntents) {
    let Some(rows) = leaf.rows.as_mut().filter(|rows| !rows.has_taken_back()) else { return };
    let has_intents = rows.intents() > 0;
    let is_below = |stamp: Stamp| stamp.decided_at().is_some_and(|lsn| lsn < below);
    let was_copied_with = |rows: &LeafRows, key: &[u8]| {
        let found = rows.find(key);
        let decided = found.decided().map(|index| rows.entry(index).stamp);
        let intent = found.intent.map(|index| rows.entry(index));
        let copied = intents.get(&xxh3_64(key)).copied();
        let now = intent.map(|entry| hash_of_intent(entry.stamp, entry.value));
        decided.is_none_or(is_below) && now == copied
    };
    let looks_for_intents =
        (has_intents || !intents.is_empty()) && !planted(Fault::ShedUnderIntent);
    let mut is_dropped: Vec<bool> = Vec::with_capacity(rows.len());
    for index in 0..rows.len() {
        let entry = rows.entry(index);
        is_dropped.push(match looks_for_intents {
            true => was_copied_with(rows, entry.key),
            false => is_below(entry.stamp),
        });
    }
    for index in (0..rows.len()).rev().filter(|index| is_dropped[*index]) {
        rows.remove(index);
    }
}
