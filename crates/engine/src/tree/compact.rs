//! Writes the stock of a range anew as one base, and divides a range that has become large.
//!
//! Invariants
//! 1. The new stock has of each key the row of the newest run, and no removals: it is made of all runs. Intents of
//!    large transactions become rows, or nothing; those that are open or replace what a snapshot may need stay on
//!    their rows.
//! 2. Two ranges are made of one only while no checkpoint is taken, which would meet leaves of both generations.
//!    The leaf across the cut is split at it first. Neither is flushed before all leaves look at them, so a leaf
//!    that looks at the old one still finds all there.

use std::sync::Arc;

use onrush_log::Lsn;
use onrush_waits::{Counter, Phase, Recorder};

use super::split::add_sibling;
use super::stock_intents::{Settled, compacted};
use super::{Seat, Spares, Tree, Trees};
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::memory::Frame;
use crate::node::fence::head;
use crate::options::Background;
use crate::space::Purpose;
use crate::storage::{PART_IMAGES_MAX, Range, Run, RunKeys, RunWriter, Stock};
use crate::units::LeafId;

/// Images of the longest run that are merged at a time.
const IMAGES_AT_A_TIME: usize = 4 * PART_IMAGES_MAX;

/// What a compaction has written.
struct Bases {
    parts: Vec<Part>,
    /// Rows were replaced that no snapshot needs, by commits up to here.
    replaced_to: Lsn,
}

/// A base that was written, and where its keys begin.
struct Part {
    low: Box<[u8]>,
    base: Option<(Run, RunKeys)>,
}

impl Tree {
    /// Compacts the stock, if that can be now; `may_divide`: no checkpoint is being taken. Called without latches.
    ///
    /// # Errors
    /// A full disk, a damaged image: nothing has changed. A failed write: the engine stops.
    pub(crate) fn compact(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Arc<Range>,
        may_divide: bool,
    ) -> Result<bool> {
        let one = match trees.options.background {
            Background::Threads => Some(range.maintenance.lock()),
            Background::Callers => range.maintenance.try_lock(),
        };
        if one.is_none() || range.is_retired() {
            return Ok(false);
        }
        let _work = recorder.work(Phase::Compact);
        let stock = range.stock();
        let (base, fragments) = stock.bytes();
        let usual = trees.range_bytes();
        let is_large = base + fragments > 2 * usual;
        let divide_at = if may_divide && is_large { (base + fragments) / 2 } else { u64::MAX };
        let lacking = planted(Fault::CompactionLacksFragment).then(|| stock.without_newest());
        let source = lacking.map_or_else(|| Arc::clone(&stock), Arc::new);
        let bases = write_bases(trees, recorder, range, &source, divide_at)?;
        let Some(Bases { parts, replaced_to }) = bases else { return Ok(false) };
        if replaced_to > Lsn::ZERO {
            self.versions.let_go(replaced_to);
        }
        recorder.count(Counter::RangeCompactions, 1);
        let flushed_below = stock.flushed_below();
        drop(stock);
        let mut parts =
            parts.into_iter().map(|Part { low, base }| (low, Stock::of_base(base, flushed_below)));
        match (parts.next(), parts.next()) {
            (Some((_, stock)), None) => trees.ranges.publish(range, stock),
            (Some(left), Some(right)) => self.divide(trees, recorder, range, left.1, right)?,
            (None, _) => {}
        }
        trees.withhold_for_ranges();
        Ok(true)
    }

    /// Makes two ranges of one, whose rows are in two new stocks.
    fn divide(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Arc<Range>,
        left: Stock,
        (cut, right): (Box<[u8]>, Stock),
    ) -> Result<()> {
        if !self.split_at(trees, recorder, range, &cut)? {
            // The table is gone.
            return Ok(());
        }
        let left = trees.ranges.add(range.object, (range.low.clone(), Some(cut.clone())), left);
        let right = trees.ranges.add(range.object, (cut.clone(), range.high.clone()), right);
        let _both = (left.maintenance.lock(), right.maintenance.lock());
        let mut at = range.low.to_vec();
        loop {
            let key = (head(&at), at.as_slice());
            let latched = self.latch_exclusive(trees, recorder, None, key, range.object);
            let Ok((_, mut leaf)) = latched else { break };
            let of_leaf = if *leaf.low.bytes() < *cut { &left } else { &right };
            trees.set_range(&mut leaf, of_leaf);
            match &leaf.high {
                Some(high) if range.high.as_ref().is_none_or(|end| *high.bytes() < **end) => {
                    at = high.bytes().to_vec();
                }
                _ => break,
            }
        }
        trees.ranges.note_changed(range.object, &range.low);
        trees.ranges.note_changed(range.object, &cut);
        trees.ranges.retire(range);
        recorder.count(Counter::RangesDivided, 1);
        Ok(())
    }

    /// Makes a front leaf begin at `cut`. False if the table is gone.
    fn split_at(
        &self,
        trees: &Trees,
        recorder: &Recorder,
        range: &Range,
        cut: &[u8],
    ) -> Result<bool> {
        let mut spares = Spares::default();
        spares.push(trees.take_frame(recorder)?);
        spares.push(trees.take_frame(recorder)?);
        let permit = trees.background_permit();
        let made = self.split_latched(
            trees,
            &mut Seat { permit, recorder, spares: &mut spares },
            range,
            cut,
        );
        spares.drain(..).for_each(|frame: Frame| trees.frames.give_back(frame));
        match made? {
            Cut::Gone => Ok(false),
            Cut::Was => Ok(true),
            Cut::Made(leaf) => {
                self.link(trees, recorder, range.object, cut, leaf);
                Ok(true)
            }
        }
    }

    fn split_latched(
        &self,
        trees: &Trees,
        seat: &mut Seat<'_>,
        range: &Range,
        cut: &[u8],
    ) -> Result<Cut> {
        let key_head = head(cut);
        let latched =
            self.latch_exclusive(trees, seat.recorder, None, (key_head, cut), range.object);
        let Ok((_, mut left)) = latched else { return Ok(Cut::Gone) };
        if left.low.bytes() == cut || planted(Fault::DividedWithoutCut) {
            return Ok(Cut::Was);
        }
        if left.is_dirty() {
            while !trees.space.try_reserve(1, Purpose::Checkpoint) {
                trees.space.grow()?;
            }
        }
        let moved = left.rows.as_mut().and_then(|rows| {
            let order = rows.order();
            let position =
                order.partition_point(|index| rows.compare(*index, key_head, cut).is_lt());
            let frame = seat.spares.pop()?;
            Some(rows.split_off(&order, position, frame, &mut seat.spares[0]))
        });
        let (half, mut right) = add_sibling(trees, seat, &mut left, cut.into());
        if let Some(moved) = moved {
            trees.put_rows(&mut right, moved);
        }
        Ok(Cut::Made(half.leaf))
    }
}

/// What became of a leaf that was to begin somewhere.
enum Cut {
    /// It began there already.
    Was,
    Made(LeafId),
    Gone,
}

/// Writes all rows of a stock, and begins a second base once there are so many bytes. None if that cannot be now.
fn write_bases(
    trees: &Trees,
    recorder: &Recorder,
    range: &Range,
    stock: &Arc<Stock>,
    divide_at: u64,
) -> Result<Option<Bases>> {
    let bits = trees.filter_bits();
    let new_writer = || RunWriter::new(trees, recorder, range.object);
    let finish = |writer: RunWriter<'_>| {
        recorder.count(Counter::RangeRowsCompacted, writer.totals().rows);
        Ok::<_, crate::error::Error>(match writer.is_empty() {
            true => None,
            false => Some(writer.finish(Some(bits))?),
        })
    };
    let (mut parts, mut replaced_to) = (Vec::new(), Lsn::ZERO);
    let (mut writer, mut low) = (new_writer(), range.low.clone());
    let mut at = Some(range.low.clone());
    while let Some(from) = at.take() {
        let merged = trees.read_merged(stock, range, from, IMAGES_AT_A_TIME, recorder)?;
        for found in merged.keys() {
            let key = found.key();
            if parts.is_empty() && writer.totals().bytes >= divide_at {
                let begun = (std::mem::replace(&mut writer, new_writer()), low);
                parts.push(Part { low: begun.1, base: finish(begun.0)? });
                low = key.into();
            }
            let Some(settling) = compacted(trees, &found, stock.flushed_below()) else {
                return Ok(None);
            };
            replaced_to = replaced_to.max(settling.replaced_to());
            let Settled { below, open } = settling.settled;
            let row = below.filter(|(stamp, _)| !stamp.is_removal());
            match (row, open) {
                (row, Some(intent)) => writer.push_intent(key, row, intent)?,
                (Some((stamp, value)), None) => writer.push(stamp, key, value)?,
                (None, None) => {}
            }
        }
        at = merged.high().filter(|high| range.high.as_deref() != Some(*high)).map(Box::from);
    }
    parts.push(Part { low, base: finish(writer)? });
    Ok(Some(Bases { parts, replaced_to }))
}
