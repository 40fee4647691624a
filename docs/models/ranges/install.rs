//! The log writer, checkpoints, space installs, and the directory that they install.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::convert::image_latched;
use super::disk::Place;
use super::flush::flush_below;
use super::leaf::Home;
use super::plant::Plant;
use super::status::LargeRoot;
use super::stock::{RunImage, Stock};
use super::sweep::sweep_due;
use super::types::{Full, KEYS, Key, Lsn, Number};
use super::world::Shared;

/// What a directory says of one range.
#[derive(Clone, Debug)]
pub(super) struct RangeEntry {
    pub(super) base: Vec<RunImage>,
    /// The large transactions whose intents the base has.
    pub(super) base_numbers: BTreeSet<Number>,
    pub(super) filter: Option<Rc<Place>>,
    /// Heads of the fragments, oldest first.
    pub(super) heads: Vec<Rc<Place>>,
    pub(super) flush_lsn: Lsn,
}

#[derive(Clone, Debug)]
pub(super) enum EntryKind {
    /// A whole leaf; one without rows has no image.
    Leaf(Option<Rc<Place>>),
    Range(RangeEntry),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) low: Key,
    pub(super) high: Key,
    pub(super) kind: EntryKind,
    /// Owns the slots of a range's images until the directory is gone.
    pub(super) stock: Option<Rc<Stock>>,
}

/// What an installed superblock leads to.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// C: redo begins here.
    pub(super) start: Lsn,
    /// E: nothing in the directory is of a change at or above.
    pub(super) end: Lsn,
    pub(super) entries: Vec<Entry>,
    pub(super) large: LargeRoot,
    /// Every slot that it names, with its stamp.
    pub(super) named: Vec<(usize, u64)>,
}

impl Directory {
    pub(super) fn new(start: Lsn, end: Lsn, entries: Vec<Entry>, large: LargeRoot) -> Directory {
        let mut named = Vec::new();
        for entry in &entries {
            match (&entry.kind, &entry.stock) {
                (EntryKind::Leaf(image), _) => {
                    named.extend(image.iter().map(|place| (place.slot, place.stamp)));
                }
                (EntryKind::Range(_), stock) => {
                    let places = stock.iter().flat_map(|stock| stock.places());
                    named.extend(places.map(|place| (place.slot, place.stamp)));
                }
            }
        }
        Directory { start, end, entries, large, named }
    }
}

/// Writes the log up to the completed prefix, then syncs it, while there are others.
pub(super) async fn write_log(shared: Shared) {
    loop {
        shared.until(|world| world.active == 0 || world.prefix() > world.durable).await;
        let written = shared.world().prefix();
        if written == shared.world().durable {
            return;
        }
        shared.step().await;
        shared.world().written = written;
        shared.step().await;
        shared.world().durable = written;
    }
}

/// Takes checkpoints, one after the other.
pub(super) async fn checkpoints(shared: Shared, count: usize, idle: u64) {
    shared.until_open().await;
    for _ in 0..count {
        shared.idle(idle).await;
        shared.until(|world| !std::mem::replace(&mut world.is_install_busy, true)).await;
        let outcome = checkpoint(&shared).await;
        let mut world = shared.world();
        world.is_install_busy = false;
        if outcome.is_ok() {
            world.counts.checkpoints += 1;
        }
    }
    shared.world().active -= 1;
}

/// Publishes the directory with the C of the one before, so that slots become free.
pub(super) async fn space_installs(shared: Shared, count: usize, idle: u64) {
    for _ in 0..count {
        shared.idle(idle).await;
        shared.until(|world| !std::mem::replace(&mut world.is_install_busy, true)).await;
        let start = match shared.plant() {
            Plant::SpaceInstallTakesNewStart => shared.world().applied(),
            _ => shared.world().installed.start,
        };
        install(&shared, start, &BTreeSet::new()).await;
        let mut world = shared.world();
        world.is_install_busy = false;
        world.counts.space_installs += 1;
    }
    shared.world().active -= 1;
}

async fn checkpoint(shared: &Shared) -> Result<(), Full> {
    let plant = shared.plant();
    if shared.world().random.one_in(2) {
        sweep_due(shared).await;
    }
    let mut start = shared.world().applied();
    let mut swept = shared.world().large.swept();
    shared.step().await;
    let epoch = {
        let mut world = shared.world();
        world.epoch += 1;
        world.note(|| format!("checkpoint: C {start}"));
        world.epoch
    };
    if plant == Plant::StartReadAfterEpoch {
        shared.step().await;
        start = shared.world().applied();
    }
    shared.step().await;
    write_back(shared, epoch, start).await?;
    if plant == Plant::StatusForgottenEarly {
        swept = shared.world().large.swept();
    }
    install(shared, start, &swept).await;
    shared.world().forget(&swept);
    Ok(())
}

/// Images the whole leaves, and flushes the ranges of the front leaves, that became dirty before this epoch, until no
/// older list has anything: a leaf that is split meanwhile puts its sibling on one. What could not be done stays
/// listed.
async fn write_back(shared: &Shared, epoch: u64, start: Lsn) -> Result<(), Full> {
    let mut failed = Vec::new();
    loop {
        let mut listed: Vec<Key> = {
            let mut world = shared.world();
            let newer = world.lists.split_off(&epoch);
            let older = std::mem::replace(&mut world.lists, newer);
            older.into_values().flatten().collect()
        };
        if listed.is_empty() {
            break;
        }
        listed.sort_unstable();
        listed.dedup();
        for key in listed {
            if write_back_leaf(shared, key, (epoch, start)).await.is_err() {
                failed.push(key);
            }
        }
        if shared.plant() == Plant::ListsTakenOnce {
            break;
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    if shared.plant() != Plant::FailedFlushUnlisted {
        shared.world().lists.entry(epoch).or_default().extend(failed);
    }
    Err(Full)
}

async fn write_back_leaf(
    shared: &Shared,
    key: Key,
    (epoch, start): (u64, Lsn),
) -> Result<(), Full> {
    loop {
        let low = shared.latch(key).await;
        let (range, dirty) = {
            let mut world = shared.world();
            let leaf = world.leaf(low);
            (leaf.range().cloned(), leaf.dirty)
        };
        let is_listed = dirty.is_some_and(|own| own < epoch);
        let Some(range) = range else {
            if is_listed {
                return image_latched(shared, low, false).await;
            }
            shared.unlatch(low);
            return Ok(());
        };
        shared.unlatch(low);
        if shared.plant() == Plant::WriteBackSkipsCleanLeaf && !is_listed {
            return Ok(());
        }
        // Clean or not: a flush may be under way that has frozen what the list was about.
        flush_below(shared, &range, (key, start)).await?;
        if !range.is_dead.get() {
            return Ok(());
        }
        shared.step().await;
    }
}

/// Walk, E, log durable to E, data synced, superblock synced; only then old slots are free and the log is recycled. No
/// leaf has intents of the transactions that were `swept`.
async fn install(shared: &Shared, start: Lsn, swept: &BTreeSet<Number>) {
    let plant = shared.plant();
    let early_end = shared.world().tail();
    let early_next = shared.world().large.next;
    let entries = walk(shared).await;
    let end = match plant {
        Plant::EndReadBeforeWalk => early_end,
        _ => shared.world().tail(),
    };
    shared.step().await;
    let is_space = start == shared.world().installed.start;
    let skips =
        plant == Plant::LogNotDurableToEnd || (plant == Plant::SpaceLogNotDurableToEnd && is_space);
    if !skips {
        shared.until_durable(end).await;
    }
    if plant != Plant::DataNotSynced {
        let pages = shared.world().disk.unsynced();
        shared.step().await;
        shared.step().await;
        shared.world().disk.synced(&pages);
    }
    let large = {
        let world = shared.world();
        let stocks = entries.iter().filter_map(|entry| entry.stock.as_ref());
        let held = stocks.flat_map(|stock| stock.numbers()).collect();
        let forgets = is_space && plant == Plant::SpaceInstallForgets;
        let swept = if forgets { &world.large.swept() } else { swept };
        let root = world.large_root(swept, &held);
        let next = if plant == Plant::NextNumberBeforeWalk { early_next } else { root.next };
        LargeRoot { next, ..root }
    };
    let directory = Rc::new(Directory::new(start, end, entries, large));
    {
        let mut world = shared.world();
        world.note(|| format!("install: C {start}, E {end}: {}", said(&directory)));
        world.installing = Some(directory.clone());
    }
    shared.step().await;
    if plant == Plant::OldDirectoryFreedEarly {
        let old = shared.world().installed.clone();
        let freed = Directory { entries: unowned(&old.entries), ..(*old).clone() };
        shared.world().installed = Rc::new(freed);
        shared.step().await;
    }
    shared.step().await;
    let mut world = shared.world();
    world.log_start = start;
    world.installing = None;
    world.installed = directory;
}

/// The fault: a directory that may still be the newest after a crash owns no slots.
fn unowned(entries: &[Entry]) -> Vec<Entry> {
    let entry = |entry: &Entry| match &entry.stock {
        Some(stock) => range_entry(Rc::new(stock.unowned())),
        None => entry.clone(),
    };
    entries.iter().map(entry).collect()
}

fn said(directory: &Directory) -> String {
    let entry = |entry: &Entry| {
        let Entry { low, high, kind, .. } = entry;
        match kind {
            EntryKind::Leaf(_) => format!("leaf [{low}, {high})"),
            EntryKind::Range(range) => {
                let (base, heads, lsn) = (range.base.len(), range.heads.len(), range.flush_lsn);
                format!("range [{low}, {high}) base {base} heads {heads} flush {lsn}")
            }
        }
    };
    directory.entries.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// Collects the directory's entries in key order. A range that begins below the cursor was made since the walk passed
/// there, or is being left by its leaves: what reaches into it is given up, and it is taken for all of that; if that
/// began further left, the walk goes on from there.
async fn walk(shared: &Shared) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut cursor = 0;
    while cursor < KEYS {
        let low = shared.latch(cursor).await;
        let (high, home) = {
            let mut world = shared.world();
            let leaf = world.leaf(low);
            (leaf.high, leaf.home.clone())
        };
        shared.unlatch(low);
        match home {
            Home::Whole { image, .. } => {
                if let Some(place) = image.clone() {
                    shared.until(move |_| place.is_written.get()).await;
                }
                entries.push(Entry {
                    low: cursor,
                    high,
                    kind: EntryKind::Leaf(image),
                    stock: None,
                });
                cursor = high;
            }
            Home::Front(range) => {
                let entry = range_entry(range.stock());
                let (low, high) = (entry.low, entry.high);
                if low < cursor && shared.plant() != Plant::WalkKeepsWhatItHas {
                    while let Some(last) = entries.pop_if(|last| last.high > low) {
                        cursor = last.low;
                    }
                    if cursor < low {
                        shared.step().await;
                        continue;
                    }
                }
                entries.push(entry);
                cursor = high;
            }
        }
        shared.step().await;
    }
    entries
}

pub(super) fn range_entry(stock: Rc<Stock>) -> Entry {
    let entry = RangeEntry {
        base: stock.base.clone(),
        base_numbers: stock.base_held.iter().map(|hold| **hold).collect(),
        filter: stock.filter.as_ref().map(|filter| filter.place.clone()),
        heads: stock.fragments.iter().map(|fragment| fragment.head.clone()).collect(),
        flush_lsn: stock.flush_lsn,
    };
    let (low, high) = (stock.low, stock.high);
    Entry { low, high, kind: EntryKind::Range(entry), stock: Some(stock) }
}
