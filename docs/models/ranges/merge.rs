//! The merge of a range: base and fragments become a new base; large results are split, small neighbours joined.

use std::rc::Rc;

use super::build::{Late, write_filter, write_late, write_run};
use super::entries::{ByKey, Entries};
use super::plant::Plant;
use super::stock::{Range, Stock};
use super::types::{Full, Key, Lsn, Version};
use super::world::{Shared, World};

/// Rows of a base that is split.
const SPLIT_ROWS: usize = 4;
/// Rows of two neighbours that are joined.
const JOIN_ROWS: usize = 4;

pub(super) async fn run(shared: Shared, merges: usize, idle: u64) {
    for _ in 0..merges {
        shared.idle(idle).await;
        shared.step().await;
        let Some(range) = shared.world().some_range() else { continue };
        let joins = shared.world().random.one_in(3);
        if !shared.lock(&range).await {
            continue;
        }
        // A full disk leaves the old stock.
        let neighbour = if joins { lock_neighbour(&shared, &range).await } else { None };
        let outcome = match neighbour {
            Some(right) => {
                let outcome = merge(&shared, &[range.clone(), right.clone()]).await;
                right.unlock();
                outcome
            }
            None => merge(&shared, std::slice::from_ref(&range)).await,
        };
        range.unlock();
        if outcome.is_err() {
            shared.world().counts.full += 1;
        }
    }
}

/// The range to the right; mutexes are taken in key order.
async fn lock_neighbour(shared: &Shared, range: &Rc<Range>) -> Option<Rc<Range>> {
    let high = range.stock().high;
    if high >= super::types::KEYS {
        return None;
    }
    let right = shared.world().leaf(high).range().cloned()?;
    if !shared.lock(&right).await {
        return None;
    }
    if right.stock().low == high {
        return Some(right);
    }
    right.unlock();
    None
}

/// Merges the stocks of neighbours, all of them locked.
async fn merge(shared: &Shared, ranges: &[Rc<Range>]) -> Result<(), Full> {
    let plant = shared.plant();
    let stocks: Vec<Rc<Stock>> = ranges.iter().map(|range| range.stock()).collect();
    if shared.world().is_left_to_sessions(&stocks) {
        return Ok(());
    }
    let read = read(shared, &stocks).await;
    let (entries, forgotten) = shared.world().kept_of_all(read);
    if stocks.len() > 1 && entries.len() > JOIN_ROWS {
        return Ok(());
    }
    let (low, high) = (stocks[0].low, stocks[stocks.len() - 1].high);
    let flush_lsns = stocks.iter().map(|stock| stock.flush_lsn);
    let flush_lsn = match plant {
        Plant::JoinTakesHigherFlushLsn => flush_lsns.max(),
        _ => flush_lsns.min(),
    };
    let cut = if stocks.len() == 1 { cut(shared, &entries) } else { None };
    let pieces = match cut {
        Some(cut) => vec![(low, cut), (cut, high)],
        None => vec![(low, high)],
    };
    let mut late = Late::new();
    let mut made = Vec::new();
    for (low, high) in pieces {
        let entries = entries.between(low, high);
        let base = write_run(shared, &entries, &mut late).await?;
        let base_held = shared.world().hold(entries.numbers());
        let filter = match write_filter(shared, &entries, &mut late).await {
            Err(Full) if plant != Plant::FullTakesHalf => return Err(Full),
            filter => filter.ok(),
        };
        let flush_lsn = flush_lsn.unwrap_or(0);
        let fragments = Vec::new();
        made.push(Stock { address: 0, low, high, base, base_held, filter, fragments, flush_lsn });
        shared.step().await;
    }
    if plant != Plant::VersionsKeptLate {
        shared.world().keep_forgotten(&forgotten);
    }
    shared.step().await;
    shared.world().counts.merges += 1;
    drop(stocks);
    if ranges.len() == 1 && made.len() == 1 {
        shared.world().publish(&ranges[0], made.remove(0));
    } else {
        exchange(shared, ranges, made).await;
    }
    write_late(shared, late).await;
    if plant == Plant::VersionsKeptLate {
        shared.step().await;
        shared.world().keep_forgotten(&forgotten);
    }
    Ok(())
}

/// Every entry of every key, those of older runs first.
async fn read(shared: &Shared, stocks: &[Rc<Stock>]) -> ByKey {
    let mut all = ByKey::new();
    for stock in stocks {
        for part in stock.parts().into_iter().rev() {
            shared.step().await;
            shared.world().read_run(stock, part).add_to(&mut all);
        }
    }
    all
}

/// Versions that a merge leaves out, each with the LSN that ended it.
pub(super) type Forgotten = Vec<(Key, Version, Lsn)>;

impl World {
    /// While redo runs a key may have intents of two transactions whose outcomes redo has not met: an entry has room
    /// for one.
    fn is_left_to_sessions(&self, stocks: &[Rc<Stock>]) -> bool {
        let mut numbers = stocks.iter().flat_map(|stock| stock.numbers());
        let is_early = self.redone.is_some() && self.plant != Plant::MergeWithinRedo;
        is_early && numbers.any(|number| !self.large.is_committed(number))
    }

    /// What a merge writes, and what it leaves out. Tombstones fall out: all that the range has is here.
    fn kept_of_all(&self, all: ByKey) -> (Entries, Forgotten) {
        let (mut written, mut forgotten) = (Entries::default(), Forgotten::new());
        for (key, entries) in all {
            let kept = self.kept(&entries);
            let row = kept.row.filter(|row| row.value.is_some());
            written.rows.extend(row.map(|row| (key, row)));
            written.intents.extend(kept.intent.map(|intent| (key, intent)));
            let old = kept.forgotten.into_iter().map(|(old, ended_at)| (key, old, ended_at));
            forgotten.extend(old);
        }
        (written, forgotten)
    }

    /// What a snapshot that is open or may still open needs goes to the version store.
    pub(super) fn keep_forgotten(&mut self, forgotten: &Forgotten) {
        let horizon = self.merge_horizon();
        for (key, version, ended_at) in forgotten {
            if *ended_at >= horizon {
                self.keep_old(*key, *version, *ended_at);
            }
        }
    }
}

/// Where a large base is cut in two: between two images.
fn cut(shared: &Shared, entries: &Entries) -> Option<Key> {
    let keys = entries.keys();
    if keys.len() < SPLIT_ROWS || shared.world().random.one_in(2) {
        return None;
    }
    keys.into_iter().nth(super::types::IMAGE_ROWS)
}

/// Other ranges take the place of these. Their mutexes are held until every leaf belongs to its new range: a flush
/// before that would publish rows of a leaf that still looks at the old stock.
async fn exchange(shared: &Shared, ranges: &[Rc<Range>], made: Vec<Stock>) {
    let plant = shared.plant();
    let (low, high) = (made[0].low, made[made.len() - 1].high);
    let is_held = plant != Plant::SplitUnlockedEarly;
    let made: Vec<Rc<Range>> = {
        let mut world = shared.world();
        let splits = made.len() > 1;
        world.counts.range_splits += u64::from(splits);
        world.counts.range_joins += u64::from(!splits);
        world.note(|| format!("ranges [{low}, {high}) are made anew, {} of them", made.len()));
        let mut range = |stock| {
            let stock = world.new_stock(stock);
            world.new_range(stock, is_held)
        };
        made.into_iter().map(&mut range).collect()
    };
    shared.step().await;
    // A leaf across a cut is split at the cut first.
    for range in made.iter().skip(1).filter(|_| plant != Plant::StraddlingLeafNotSplit) {
        let at = range.stock().low;
        let low = shared.latch(at).await;
        if low < at {
            shared.world().split(low, at);
        }
        shared.unlatch(low);
        shared.step().await;
    }
    let mut cursor = low;
    while cursor < high {
        let low = shared.latch(cursor).await;
        cursor = {
            let mut world = shared.world();
            let covers = made.iter().find(|range| range.stock().covers(low)).unwrap_or(&made[0]);
            let leaf = world.leaf(low);
            leaf.home = super::leaf::Home::Front(covers.clone());
            let high = leaf.high;
            world.unlatch(low);
            high
        };
        shared.step().await;
    }
    for range in ranges {
        range.is_dead.set(true);
    }
    made.iter().filter(|_| is_held).for_each(|range| range.unlock());
}
