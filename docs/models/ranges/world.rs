//! The engine in miniature: memory, log and disk, and how tasks share them.
//!
//! A task changes the world between two of its steps without being disturbed; where the engine could be
//! interrupted, the task has a step. So what stands in one function here is atomic, and only memory copies
//! under a latch or a mutex may be.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::counts::Counts;
use super::disk::Disk;
use super::install::Directory;
use super::leaf::Leaf;
use super::oracle::Oracle;
use super::plant::Plant;
use super::random::Random;
use super::shared::Blocks;
use super::status::{LargeTable, Status};
use super::stock::{Range, Stock};
use super::types::{Epoch, Key, Lsn, Record, Value, Version};

/// A version that was replaced: a snapshot sees it if it is above `version.lsn` and not above `ended_at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub(super) version: Version,
    pub(super) ended_at: Lsn,
}

/// Redo runs in parallel, by key.
pub(super) const REDO_WORKERS: usize = 2;

pub(super) struct World {
    pub(super) plant: Plant,
    pub(super) random: Random,
    /// By low key; they tile the keys.
    pub(super) leaves: BTreeMap<Key, Leaf>,
    pub(super) epoch: Epoch,
    /// Keys in leaves that became dirty in an epoch.
    pub(super) lists: BTreeMap<Epoch, Vec<Key>>,
    /// The version store.
    pub(super) old: BTreeMap<Key, Vec<Old>>,
    /// Open snapshots; 0 while one has not read its prefix.
    pub(super) snapshots: BTreeMap<u32, Lsn>,
    /// Of small transactions.
    pub(super) statuses: Vec<Status>,
    pub(super) large: LargeTable,
    /// One mark a client, as in the log's ring.
    pub(super) in_flight: Vec<Option<Lsn>>,
    pub(super) prefix_published: Lsn,
    /// One record an LSN; none: reserved, not copied yet.
    pub(super) log: Vec<Option<Record>>,
    /// Below this the log is recycled.
    pub(super) log_start: Lsn,
    pub(super) written: Lsn,
    pub(super) durable: Lsn,
    pub(super) disk: Disk,
    pub(super) installed: Rc<Directory>,
    /// Written as a superblock that is not synced yet.
    pub(super) installing: Option<Rc<Directory>>,
    pub(super) is_install_busy: bool,
    /// Stocks by address; an address is used again when its stock is dead.
    pub(super) addresses: Vec<Weak<Stock>>,
    /// While redo runs: below this each of its workers has redone every record. None: the engine is open.
    pub(super) redone: Option<[Lsn; REDO_WORKERS]>,
    pub(super) next_number: u32,
    pub(super) oracle: Oracle,
    pub(super) violation: Option<String>,
    /// The task that was polled last could not go on.
    pub(super) is_blocked: bool,
    /// Tasks that may still write to the log or wait for it.
    pub(super) active: usize,
    /// A loss of power in this run may damage a stored filter.
    pub(super) damages: bool,
    pub(super) trace: Option<Vec<String>>,
    pub(super) counts: Counts,
}

impl World {
    pub(super) fn is_planted(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(what());
        }
    }

    pub(super) fn must(&mut self, outcome: Result<(), String>) {
        if let (Err(what), None) = (outcome, &self.violation) {
            self.violation = Some(what);
        }
    }

    pub(super) fn stop(&mut self, why: &'static str) {
        self.note(|| format!("the engine stops: {why}"));
        self.counts.stops += 1;
    }

    pub(super) fn tail(&self) -> Lsn {
        self.log.len() as Lsn
    }

    /// The completed prefix, which never goes back.
    pub(super) fn prefix(&mut self) -> Lsn {
        let marks = self.in_flight.iter().flatten().copied();
        let now = marks.fold(self.tail(), Lsn::min);
        self.prefix_published = self.prefix_published.max(now);
        self.prefix_published
    }

    /// Below this every change has been applied to the leaves: the completed prefix, and while redo runs the place
    /// that all of its workers have passed.
    pub(super) fn applied(&mut self) -> Lsn {
        match self.redone {
            None => self.prefix(),
            Some(redone) => match self.plant {
                Plant::RedoFlushTakesLogEnd => self.prefix(),
                Plant::RedoFlushTakesOneWorker => redone[0],
                _ => redone.into_iter().fold(Lsn::MAX, Lsn::min),
            },
        }
    }

    pub(super) fn mark(&mut self, client: usize) {
        self.in_flight[client] = Some(self.tail());
    }

    pub(super) fn reserve(&mut self) -> Lsn {
        self.log.push(None);
        self.tail() - 1
    }

    pub(super) fn copy(&mut self, lsn: Lsn, record: Record) {
        self.note(|| format!("  LSN {lsn}: {record:?}"));
        self.log[lsn as usize] = Some(record);
    }

    pub(super) fn clear(&mut self, client: usize) {
        self.in_flight[client] = None;
    }

    pub(super) fn new_number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn new_value(&mut self) -> Value {
        Value(self.new_number())
    }

    /// A stock gets its address, which a dead one may have had.
    pub(super) fn new_stock(&mut self, mut stock: Stock) -> Rc<Stock> {
        let free = self.addresses.iter().position(|known| known.strong_count() == 0);
        let address = free.unwrap_or(self.addresses.len());
        stock.address = address as u64;
        let stock = Rc::new(stock);
        let known = Rc::downgrade(&stock);
        match free {
            Some(free) => self.addresses[free] = known,
            None => self.addresses.push(known),
        }
        stock
    }

    pub(super) fn new_range(&mut self, stock: Rc<Stock>, is_busy: bool) -> Rc<Range> {
        let number = self.new_number();
        let (is_busy, is_dead) = (Cell::new(is_busy), Cell::new(false));
        Rc::new(Range { number, stock: RefCell::new(stock), is_busy, is_dead })
    }

    /// No snapshot that is open or may still open is below this.
    pub(super) fn horizon(&mut self) -> Lsn {
        let prefix = self.prefix();
        self.snapshots.values().copied().fold(prefix, Lsn::min)
    }

    /// What a merge may forget: a version that was ended below this LSN.
    pub(super) fn merge_horizon(&mut self) -> Lsn {
        match self.plant {
            Plant::MergeForgetsVersions => Lsn::MAX,
            Plant::MergeHorizonWithoutPrefix => {
                self.snapshots.values().copied().min().unwrap_or(Lsn::MAX)
            }
            _ => self.horizon(),
        }
    }

    pub(super) fn keep_old(&mut self, key: Key, version: Version, ended_at: Lsn) {
        let forgets_tombstones = self.plant == Plant::ReplacedTombstoneForgotten;
        if version.value.is_none() && forgets_tombstones {
            return;
        }
        // Of one LSN, which is that of two changes of one large transaction, the newer is given first: it was in a
        // leaf, and the older in the stock.
        self.note(|| format!("  key {key}: {version:?} is old, ended at {ended_at}"));
        let versions = self.old.entry(key).or_default();
        let is_known = versions.iter().any(|old| old.version.lsn == version.lsn);
        if !is_known || self.plant == Plant::StoreTakesEarlierPiece {
            versions.push(Old { version, ended_at });
        }
    }

    pub(super) fn collect_old(&mut self) {
        let horizon = self.horizon();
        for versions in self.old.values_mut() {
            versions.retain(|old| old.ended_at >= horizon);
        }
    }

    /// The newest version in the version store that a snapshot sees.
    pub(super) fn old_version(&self, key: Key, snapshot: Lsn) -> Option<Version> {
        let versions = self.old.get(&key).into_iter().flatten();
        let seen = versions.filter(|old| old.version.lsn < snapshot && snapshot <= old.ended_at);
        seen.map(|old| old.version).max_by_key(|version| version.lsn)
    }
}

impl Blocks for World {
    fn block(&mut self) {
        self.is_blocked = true;
    }
}

/// The world, as tasks share it.
pub(super) type Shared = super::shared::Shared<World>;

impl Shared {
    pub(super) fn plant(&self) -> Plant {
        self.world().plant
    }

    /// So many steps at most, for a task that need not be in time.
    pub(super) async fn idle(&self, limit: u64) {
        let steps = if limit == 0 { 0 } else { self.world().random.below(limit) };
        for _ in 0..steps {
            self.step().await;
        }
    }

    /// A step, now and then many of them.
    pub(super) async fn dawdle(&self) {
        let long = self.world().random.one_in(6);
        self.idle(if long { 120 } else { 1 }).await;
        self.step().await;
    }

    pub(super) async fn until_durable(&self, below: Lsn) {
        self.until(move |world| world.durable >= below).await;
    }

    pub(super) async fn until_open(&self) {
        self.until(|world| world.redone.is_none()).await;
    }

    /// The latch of the leaf that a key belongs to; returns the leaf's low key.
    pub(super) async fn latch(&self, key: Key) -> Key {
        self.until(move |world| {
            let leaf = world.leaf(key);
            !std::mem::replace(&mut leaf.is_latched, true)
        })
        .await;
        self.world().low(key)
    }

    pub(super) fn unlatch(&self, low: Key) {
        self.world().unlatch(low);
    }

    /// The mutex of a range; false if its leaves belong to other ranges by now.
    pub(super) async fn lock(&self, range: &Rc<Range>) -> bool {
        let waited_for = range.clone();
        self.until(move |_| waited_for.is_dead.get() || !waited_for.is_busy.replace(true)).await;
        !range.is_dead.get()
    }
}
