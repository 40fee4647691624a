//! Moves the rows of a range from its front leaves into a new fragment of its stock.
//!
//! 1. F, the completed prefix of the log, is read. 2. Leaf by leaf the rows and removals below F are copied, in key
//!    order, and written. 3. The stock with the new fragment is published. 4. Leaf by leaf, under the latch, what was
//!    copied is dropped; what came since stays.
//!
//! Invariants
//! 1. Rows are dropped after the stock with them is published, never before.
//! 2. All below F is copied: a change below F has placed its row before F was read, and what a transaction decided
//!    below F is known, so its intents are resolved first. An entry below F that appears later was taken out of the
//!    stock.
//! 3. A row stays in its leaf as long as an intent is on its key: what the intent replaces is needed there.
//! 4. A leaf that keeps rows stays dirty for its epoch, unless the flush is a checkpoint's, for which F is at least C:
//!    then what it keeps is for the next one.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::{Counter, Phase, Recorder};

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
    rows: Vec<(Stamp, usize, usize, usize)>,
}

impl Copied {
    /// Copies rows and removals below `below`, from `low` on.
    fn take(&mut self, rows: &LeafRows, low: &[u8], below: Lsn) {
        self.bytes.clear();
        self.rows.clear();
        self.bytes.extend_from_slice(rows.entry_bytes());
        let (bytes, copied) = (&self.bytes, &mut self.rows);
        rows.visit_in_order(|stamp, key_at, value_at, end| {
            let is_below = stamp.decided_at().is_some_and(|lsn| lsn < below);
            if is_below && bytes[key_at..value_at] >= *low {
                copied.push((stamp, key_at, value_at, end));
            }
        });
    }

    /// Without the removals where there is nothing that they could hide.
    fn write(&self, writer: &mut RunWriter<'_>, first: bool) -> Result<()> {
        for (stamp, key_at, value_at, end) in &self.rows {
            if stamp.is_removal() && (first || planted(Fault::RemovalsNotFlushed)) {
                continue;
            }
            let end = if stamp.is_removal() { value_at } else { end };
            let (key, value) = (&self.bytes[*key_at..*value_at], &self.bytes[*value_at..*end]);
            writer.push(*stamp, key, value)?;
        }
        Ok(())
    }
}

impl Tree {
    /// Flushes what is below the completed prefix; false if somebody else is at the range. A checkpoint waits for him:
    /// `checkpoint` is the epoch that it has begun. Called without latches.
    ///
    /// # Errors
    /// A full disk: nothing has changed. A failed write: the engine stops.
    pub(crate) fn flush(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Arc<Range>,
        checkpoint: Option<Epoch>,
    ) -> Result<bool> {
        let one = match (checkpoint, trees.options.background) {
            (Some(_), Background::Threads) => Some(range.maintenance.lock()),
            // The caller may be at it himself: he came here while the disk was busy for him.
            _ => range.maintenance.try_lock(),
        };
        if range.is_retired() {
            return Ok(true);
        }
        if one.is_none() {
            // A checkpoint that cannot have the rows below C fails.
            let frames = trees.frames.frames();
            return checkpoint.map_or(Ok(false), |_| Err(Error::LeafMemoryTooSmall { frames }));
        }
        let _work = recorder.work(Phase::Flush);
        let below = trees.completed_below();
        let mut writer = RunWriter::new(trees, recorder, range.object);
        let first = range.stock().is_empty();
        let copied = self.copy_front(trees, recorder, range, (below, first), &mut writer);
        match copied {
            Ok(()) => {}
            // The table is gone, and with it the range.
            Err(CopyError::Gone) => return Ok(true),
            Err(CopyError::Failed(error)) => return Err(error),
        }
        let early = planted(Fault::ShedBeforePublish)
            .then(|| self.shed_front(trees, recorder, range, below, checkpoint));
        let rows = writer.totals().rows;
        if rows > 0 {
            // The first run is a base, since there is nothing below it.
            let bits = first.then(|| trees.filter_bits());
            let (run, keys) = writer.finish(bits)?;
            recorder.count(Counter::RangeFlushes, 1);
            recorder.count(Counter::RangeRowsFlushed, rows);
            let told = if planted(Fault::FlushLsnTooHigh) { Lsn(below.0 + 4096) } else { below };
            trees.ranges.publish(range, range.stock().with(run, keys, told));
        }
        let shed = || self.shed_front(trees, recorder, range, below, checkpoint);
        let emptied = early.unwrap_or_else(shed);
        self.pack(trees, recorder, range, emptied);
        trees.ranges.note_flushed();
        Ok(true)
    }

    fn copy_front(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Range,
        (below, first): (Lsn, bool),
        writer: &mut RunWriter<'_>,
    ) -> std::result::Result<(), CopyError> {
        let mut copied = Copied::default();
        let mut at = range.low.to_vec();
        loop {
            let next = {
                let key = (head(&at), at.as_slice());
                let latched = self.latch_exclusive(trees, recorder, None, key, range.object);
                let (_, mut leaf) = latched.map_err(|_: Refusal| CopyError::Gone)?;
                copied.rows.clear();
                if let Some(rows) = leaf.rows.as_mut() {
                    resolve_intents(trees, self, rows);
                    copied.take(rows, &at, below);
                }
                next_in(range, &leaf)
            };
            copied.write(writer, first).map_err(CopyError::Failed)?;
            match next {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    /// Drops what is below `below` from the front leaves. Returns those with nothing left, but for the first.
    fn shed_front(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Range,
        below: Lsn,
        checkpoint: Option<Epoch>,
    ) -> Vec<(LeafId, Box<[u8]>)> {
        let mut emptied = Vec::new();
        let mut at = range.low.to_vec();
        loop {
            let key = (head(&at), at.as_slice());
            let latched = self.latch_exclusive(trees, recorder, None, key, range.object);
            let Ok((id, mut leaf)) = latched else { break };
            shed(&mut leaf, below);
            if leaf.has_nothing_in_memory() {
                trees.drop_rows(&mut leaf);
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
        emptied
    }
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

/// Drops rows and removals below `below`, but for those under an intent.
fn shed(leaf: &mut LeafState, below: Lsn) {
    let Some(rows) = leaf.rows.as_mut() else { return };
    let has_intents = rows.intents() > 0;
    for index in (0..rows.len()).rev() {
        let entry = rows.entry(index);
        let is_below = entry.stamp.decided_at().is_some_and(|lsn| lsn < below);
        let stays = has_intents && rows.find(entry.key).intent.is_some();
        if is_below && (!stays || planted(Fault::ShedUnderIntent)) {
            rows.remove(index);
        }
    }
}
