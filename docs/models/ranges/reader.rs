//! Snapshots: point reads and scans beside everything else.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::entries::{ByKey, Entry, newest};
use super::leaf::InLeaf;
use super::locate::read_key;
use super::plant::Plant;
use super::session::{close_snapshot, open_snapshot};
use super::stock::Stock;
use super::types::{KEYS, Key, Lsn, Value, Version};
use super::world::{Shared, World};

/// Opens snapshots, each for some reads.
pub(super) async fn run(shared: Shared, snapshots: usize, idle: u64) {
    shared.until_open().await;
    for _ in 0..snapshots {
        shared.idle(idle).await;
        let (number, snapshot) = open_snapshot(&shared).await;
        for _ in 0..2 {
            shared.idle(idle).await;
            if shared.world().random.one_in(3) {
                scan(&shared, snapshot).await;
            } else {
                let key = shared.world().random.below(u64::from(KEYS)) as Key;
                let read = point(&shared, snapshot, key).await;
                shared.world().check_read(snapshot, key, read);
            }
        }
        close_snapshot(&shared, number);
    }
}

impl World {
    /// The stock of a latched leaf, whose slots are the reader's too from here on.
    fn stock_for_reader(&mut self, key: Key) -> Option<Rc<Stock>> {
        let stock = self.leaf(key).range()?.stock();
        let owns = self.plant != Plant::ReaderOwnsNoSlots;
        let holds = self.plant != Plant::ReaderHoldsNoStatus;
        let stock = if holds { stock } else { Rc::new(stock.without_holds()) };
        Some(if owns { stock } else { Rc::new(stock.unowned()) })
    }

    fn check_read(&mut self, snapshot: Lsn, key: Key, read: Option<Version>) {
        let value: Option<Value> = read.and_then(|version| version.value);
        let outcome = self.oracle.read(key, snapshot, value);
        self.must(outcome);
        self.counts.snapshot_reads += 1;
    }
}

impl World {
    /// The newest version that a snapshot sees. Of two with one LSN the one whose place comes first in the order leaf,
    /// version store, frozen rows, stock.
    fn seen(
        &self,
        in_stock: &[Entry],
        old: Option<Version>,
        in_leaf: InLeaf,
        snapshot: Lsn,
    ) -> Option<Version> {
        let mut versions = self.versions(in_stock);
        match self.plant {
            Plant::FrozenOverStore => versions.extend(old.into_iter().chain(in_leaf.frozen)),
            _ => versions.extend(in_leaf.frozen.into_iter().chain(old)),
        }
        versions.extend(in_leaf.own);
        newest(versions.into_iter().filter(|version| version.lsn < snapshot))
    }
}

/// Under the latch: what the leaf has, and the stock pointer. Then the version store, then the stock. What its intents
/// mean is asked when all is read: the stock holds their statuses.
async fn point(shared: &Shared, snapshot: Lsn, key: Key) -> Option<Version> {
    let early = shared.world().old_version(key, snapshot);
    shared.step().await;
    let low = shared.latch(key).await;
    let (in_leaf, stock) = {
        let mut world = shared.world();
        world.load(low);
        let stock = world.stock_for_reader(key);
        (world.committed_in_leaf(key), stock)
    };
    shared.unlatch(low);
    shared.step().await;
    let old = match shared.plant() {
        Plant::StoreBeforeLeaf => early,
        _ => shared.world().old_version(key, snapshot),
    };
    let mut in_stock = Vec::new();
    if let Some(stock) = &stock {
        let candidates = stock.candidates(key);
        in_stock = read_key(shared, stock, &candidates, key).await;
        shared.dawdle().await;
    }
    shared.world().seen(&in_stock, old, in_leaf, snapshot)
}

/// Leaf by leaf: rows, frozen and the stock pointer under one latch, then the runs between the leaf's fences.
async fn scan(shared: &Shared, snapshot: Lsn) {
    let mut cursor = 0;
    while cursor < KEYS {
        let low = shared.latch(cursor).await;
        let (high, in_leaf, stock) = {
            let mut world = shared.world();
            world.load(low);
            let high = world.leaf(cursor).high;
            let memory = (cursor..high).map(|key| (key, world.committed_in_leaf(key)));
            let versions: BTreeMap<Key, InLeaf> = memory.collect();
            let stock = world.stock_for_reader(cursor);
            (high, versions, stock)
        };
        shared.unlatch(low);
        shared.step().await;
        let mut in_stock = ByKey::new();
        if let Some(stock) = &stock {
            scan_stock(shared, stock, (cursor, high), &mut in_stock).await;
            shared.dawdle().await;
        }
        let mut world = shared.world();
        for (key, in_leaf) in in_leaf {
            let entries = in_stock.remove(&key).unwrap_or_default();
            let old = world.old_version(key, snapshot);
            let read = world.seen(&entries, old, in_leaf, snapshot);
            world.check_read(snapshot, key, read);
        }
        cursor = high;
    }
}

async fn scan_stock(
    shared: &Shared,
    stock: &Rc<Stock>,
    (low, high): (Key, Key),
    in_stock: &mut ByKey,
) {
    for part in stock.parts().into_iter().rev() {
        shared.step().await;
        shared.world().read_run(stock, part).between(low, high).add_to(in_stock);
    }
}
