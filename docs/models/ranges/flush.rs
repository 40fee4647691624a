//! The flush of a range: the rows of its front leaves become a fragment.
//!
//! 1. The range's mutex. F is read: below it every change has been applied.
//! 2. Leaf by leaf under its latch, from fence to fence: rows and intents of large transactions are frozen, small
//!    intents stay.
//! 3. Images, then the head. 4. The stock is published. 5. Leaf by leaf `frozen` is dropped.
//!
//! A flush that finds the disk full leaves `frozen` where it is, in leaves that are dirty again; the next one takes it
//! along.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::build::{Late, write_fragment, write_late};
use super::entries::{ByKey, Entries};
use super::leaf::Leaf;
use super::merge::Forgotten;
use super::plant::Plant;
use super::stock::{Fragment, Part, Range, Stock};
use super::types::{Full, Key, Lsn};
use super::world::{Shared, World};

/// Fragments of a range that may be due for a merge; above, the range is not flushed for memory.
const FRAGMENTS_MAX: usize = 4;
/// A last fragment of so few rows is written anew with those of the flush.
const SMALL_ROWS: usize = 1;

/// Flushes for memory, some range each time.
pub(super) async fn run(shared: Shared, flushes: usize, idle: u64) {
    for _ in 0..flushes {
        shared.idle(idle).await;
        shared.step().await;
        let Some(range) = shared.world().some_range() else { continue };
        if range.stock().fragments.len() < FRAGMENTS_MAX && shared.lock(&range).await {
            // What does not fit stays frozen.
            let _ = flush_locked(&shared, &range).await;
            range.unlock();
        }
    }
}

/// For a checkpoint: every change below `start` is in the stock of the range. If it is already, the leaf of this key,
/// which is no longer on a list, goes on the list of this epoch.
pub(super) async fn flush_below(
    shared: &Shared,
    range: &Rc<Range>,
    (key, start): (Key, Lsn),
) -> Result<(), Full> {
    if shared.plant() == Plant::WriteBackTrustsRunningFlush && range.is_busy.get() {
        shared.lock(range).await;
        range.unlock();
        return Ok(());
    }
    if !shared.lock(range).await {
        return Ok(());
    }
    let outcome = if range.stock().flush_lsn < start {
        flush_locked(shared, range).await
    } else {
        let low = shared.latch(key).await;
        shared.world().list_again(low);
        shared.unlatch(low);
        Ok(())
    };
    range.unlock();
    outcome
}

pub(super) async fn flush_locked(shared: &Shared, range: &Rc<Range>) -> Result<(), Full> {
    let plant = shared.plant();
    let (low, high) = (range.stock().low, range.stock().high);
    let mut flush_lsn = shared.world().applied();
    shared.step().await;
    let frozen = freeze_all(shared, low, high).await;
    match plant {
        Plant::FlushLsnAfterFreezing => flush_lsn = shared.world().applied(),
        Plant::FlushLsnIsTail => flush_lsn = shared.world().tail(),
        Plant::FlushLsnTooLow => flush_lsn = 0,
        _ => {}
    }
    if plant == Plant::FrozenDroppedEarly {
        drop_frozen(shared, low, high).await;
    }
    let before = range.stock();
    // Within redo the place that it has come to may lie below what the stock has.
    if !matches!(plant, Plant::FlushLsnTooLow | Plant::FlushLsnGoesBack) {
        flush_lsn = flush_lsn.max(before.flush_lsn);
    }
    if frozen.is_empty() {
        let stock = Stock { flush_lsn, ..(*before).clone() };
        shared.world().publish(range, stock);
        return Ok(());
    }
    let (entries, rewrites) = with_small_fragment(shared, &before, frozen).await;
    let mut late = Late::new();
    let outcome = write_fragment(shared, &entries, (low, flush_lsn), &mut late).await;
    let Ok(mut fragment) = outcome else {
        shared.world().counts.full += 1;
        list_frozen(shared, low, high).await;
        return Err(Full);
    };
    shared.dawdle().await;
    let mut fragments = before.fragments.clone();
    if rewrites {
        fragments.pop();
    }
    if plant == Plant::LocatorWithoutLastFragment && fragments.len() % 2 == 1 {
        fragment = Fragment { located: Rc::new(BTreeSet::new()), ..fragment };
    }
    if plant == Plant::LocatorFilledLate {
        let mut fragments = fragments.clone();
        fragments.push(Fragment { located: Rc::new(BTreeSet::new()), ..fragment.clone() });
        shared.world().publish(range, Stock { fragments, flush_lsn, ..(*before).clone() });
        drop_frozen(shared, low, high).await;
    }
    fragments.push(fragment);
    {
        let mut world = shared.world();
        world.publish(range, Stock { fragments, flush_lsn, ..(*before).clone() });
        world.counts.flushes += 1;
        world.counts.redo_flushes += u64::from(world.redone.is_some());
    }
    write_late(shared, late).await;
    shared.step().await;
    drop_frozen(shared, low, high).await;
    shared.world().join_front_leaves(range);
    Ok(())
}

/// From fence to fence, so that a leaf that is split meanwhile is met as two.
async fn freeze_all(shared: &Shared, low: Key, high: Key) -> Entries {
    let mut frozen = Entries::default();
    let listed: Vec<Key> = shared.world().leaves.range(low..high).map(|(low, _)| *low).collect();
    if shared.plant() == Plant::FlushListsLeavesOnce {
        for low in listed {
            let low = shared.latch(low).await;
            frozen.extend(shared.world().freeze(low));
            shared.unlatch(low);
        }
        return frozen;
    }
    let mut cursor = low;
    while cursor < high {
        let low = shared.latch(cursor).await;
        frozen.extend(shared.world().freeze(low));
        cursor = shared.world().leaf(low).high;
        shared.unlatch(low);
        shared.step().await;
    }
    frozen
}

/// A flush failed: what it has frozen is on no disk, so its leaves are dirty again.
async fn list_frozen(shared: &Shared, low: Key, high: Key) {
    let mut cursor = low;
    while cursor < high && shared.plant() != Plant::FailedFlushUnlisted {
        let low = shared.latch(cursor).await;
        cursor = {
            let mut world = shared.world();
            if world.leaf(low).frozen.is_some() {
                world.make_dirty(low);
            }
            let high = world.leaf(low).high;
            world.unlatch(low);
            high
        };
        shared.step().await;
    }
}

async fn drop_frozen(shared: &Shared, low: Key, high: Key) {
    let mut cursor = low;
    while cursor < high {
        let low = shared.latch(cursor).await;
        cursor = {
            let mut world = shared.world();
            let leaf = world.leaf(low);
            leaf.frozen = None;
            let high = leaf.high;
            world.unlatch(low);
            high
        };
        shared.step().await;
    }
}

/// What to write: with the last fragment, if it is small. Tombstones stay; versions that a snapshot needs go to the
/// version store.
async fn with_small_fragment(shared: &Shared, stock: &Stock, frozen: Entries) -> (Entries, bool) {
    let small = stock.fragments.last().is_some_and(|fragment| fragment.rows <= SMALL_ROWS);
    // Redo does not wait for the disk.
    if !small || shared.world().redone.is_some() {
        return (frozen, false);
    }
    let part = Part::Fragment(stock.fragments.len() - 1);
    let mut all = ByKey::new();
    shared.world().read_run(stock, part).add_to(&mut all);
    frozen.add_to(&mut all);
    shared.step().await;
    let mut world = shared.world();
    world.counts.rewrites += 1;
    let drops_tombstones = world.is_planted(Plant::RewriteDropsTombstones);
    let forgets = world.is_planted(Plant::RewriteForgetsVersions);
    let (mut written, mut forgotten) = (Entries::default(), Forgotten::new());
    for (key, entries) in all {
        let kept = world.kept(&entries);
        let row = kept.row.filter(|row| row.value.is_some() || !drops_tombstones);
        written.rows.extend(row.map(|row| (key, row)));
        written.intents.extend(kept.intent.map(|intent| (key, intent)));
        forgotten.extend(kept.forgotten.into_iter().map(|(old, ended_at)| (key, old, ended_at)));
    }
    if !forgets {
        world.keep_forgotten(&forgotten);
    }
    (written, true)
}

impl World {
    /// A leaf whose entry was taken from an older list, and that stays dirty.
    fn list_again(&mut self, low: Key) {
        let epoch = self.epoch;
        let leaf = self.leaf(low);
        if leaf.dirty.is_some() && self.plant != Plant::SkippedLeafUnlisted {
            self.leaf(low).dirty = Some(epoch);
            self.lists.entry(epoch).or_default().push(low);
        }
    }

    /// Some range that a leaf belongs to.
    pub(super) fn some_range(&mut self) -> Option<Rc<Range>> {
        let mut ranges: Vec<Rc<Range>> =
            self.leaves.values().filter_map(Leaf::range).cloned().collect();
        ranges.dedup_by(|one, other| Rc::ptr_eq(one, other));
        let count = ranges.len() as u64;
        (count > 0).then(|| ranges.swap_remove(self.random.below(count.max(1)) as usize))
    }

    /// Empty neighbours of one range become one leaf.
    fn join_front_leaves(&mut self, range: &Rc<Range>) {
        let is_empty = |leaf: &Leaf| {
            let own = leaf.range().is_some_and(|own| Rc::ptr_eq(own, range));
            let holds = !leaf.rows.is_empty() || !leaf.intents.is_empty() || leaf.frozen.is_some();
            own && !leaf.is_latched && leaf.dirty.is_none() && !holds
        };
        let empty: Vec<Key> =
            self.leaves.iter().filter(|(_, leaf)| is_empty(leaf)).map(|(low, _)| *low).collect();
        for low in empty.into_iter().rev() {
            let left = if low == 0 { continue } else { self.low(low - 1) };
            if is_empty(&self.leaves[&left]) {
                let high = self.leaves.remove(&low).map_or(low, |leaf| leaf.high);
                self.leaf(left).high = high;
                self.counts.leaf_joins += 1;
            }
        }
    }
}
