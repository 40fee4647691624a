//! Snapshots: point reads and scans beside everything else.

use std::collections::BTreeMap;
use std::rc::Rc;

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
        Some(if owns { stock } else { Rc::new(stock.unowned()) })
    }

    fn check_read(&mut self, snapshot: Lsn, key: Key, read: Option<Version>) {
        let value: Option<Value> = read.and_then(|version| version.value);
        let outcome = self.oracle.read(key, snapshot, value);
        self.must(outcome);
        self.counts.snapshot_reads += 1;
    }
}

fn newest(versions: Vec<Version>, snapshot: Lsn) -> Option<Version> {
    let seen = versions.into_iter().filter(|version| version.lsn < snapshot);
    seen.max_by_key(|version| version.lsn)
}

/// Under the latch: what the leaf has, and the stock pointer. Then the version store, then the stock.
async fn point(shared: &Shared, snapshot: Lsn, key: Key) -> Option<Version> {
    let early = shared.world().old_version(key, snapshot);
    shared.step().await;
    let low = shared.latch(key).await;
    let (mut versions, stock) = {
        let mut world = shared.world();
        world.load(low);
        let stock = world.stock_for_reader(key);
        (world.memory_versions(key), stock)
    };
    shared.unlatch(low);
    shared.step().await;
    let old = match shared.plant() {
        Plant::StoreBeforeLeaf => early,
        _ => shared.world().old_version(key, snapshot),
    };
    versions.extend(old);
    if let Some(stock) = stock {
        let candidates = stock.candidates(key);
        versions.extend(read_key(shared, &stock, &candidates, key).await);
    }
    newest(versions, snapshot)
}

/// Leaf by leaf: rows, frozen and the stock pointer under one latch, then the runs between the leaf's fences.
async fn scan(shared: &Shared, snapshot: Lsn) {
    let mut cursor = 0;
    while cursor < KEYS {
        let low = shared.latch(cursor).await;
        let (high, mut versions, stock) = {
            let mut world = shared.world();
            world.load(low);
            let high = world.leaf(cursor).high;
            let memory = (cursor..high).map(|key| (key, world.memory_versions(key)));
            let versions: BTreeMap<Key, Vec<Version>> = memory.collect();
            let stock = world.stock_for_reader(cursor);
            (high, versions, stock)
        };
        shared.unlatch(low);
        shared.step().await;
        if let Some(stock) = stock {
            scan_stock(shared, &stock, (cursor, high), &mut versions).await;
        }
        let mut world = shared.world();
        for (key, mut versions) in versions {
            versions.extend(world.old_version(key, snapshot));
            world.check_read(snapshot, key, newest(versions, snapshot));
        }
        cursor = high;
    }
}

async fn scan_stock(
    shared: &Shared,
    stock: &Rc<Stock>,
    (low, high): (Key, Key),
    versions: &mut BTreeMap<Key, Vec<Version>>,
) {
    for part in stock.parts() {
        shared.step().await;
        let rows = shared.world().read_run(stock, part).into_iter().flatten();
        for (key, version) in rows {
            if low <= key && key < high {
                versions.entry(key).or_default().push(version);
            }
        }
    }
}
