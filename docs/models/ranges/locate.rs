//! Reads of the stock, outside all latches.

use std::rc::Rc;

use super::entries::{Entries, Entry};
use super::leaf::Known;
use super::plant::Plant;
use super::stock::{Part, Stock};
use super::types::Key;
use super::world::{Shared, World};

/// Reads what may have a key; those of older runs come first.
pub(super) async fn read_key(
    shared: &Shared,
    stock: &Rc<Stock>,
    candidates: &[Part],
    key: Key,
) -> Vec<Entry> {
    let mut found = Vec::new();
    for part in candidates.iter().rev() {
        shared.step().await;
        let mut world = shared.world();
        world.counts.stock_reads += 1;
        if world.redone.is_some() {
            let what = "redo reads a key of the stock".to_owned();
            world.must(Err(what));
        }
        let Some(image) = stock.image(*part, key) else { continue };
        let entries = world.read_image(&image.place, key, key + 1);
        found.extend(entries.of(key));
    }
    found
}

/// Reads what a refused look asked for.
pub(super) async fn look_up(
    shared: &Shared,
    stock: Rc<Stock>,
    candidates: &[Part],
    key: Key,
) -> Known {
    let found = read_key(shared, &stock, candidates, key).await;
    let address = stock.address;
    let keeps = shared.plant() != Plant::LookupByAddress;
    Known { stock: keeps.then_some(stock), address, found }
}

impl World {
    /// All entries of a part of a stock.
    pub(super) fn read_run(&mut self, stock: &Stock, part: Part) -> Entries {
        let run = stock.run(part);
        let mut read = Entries::default();
        for (at, image) in run.iter().enumerate() {
            let high = run.get(at + 1).map_or(stock.high, |next| next.low);
            read.extend(self.read_image(&image.place, image.low, high));
        }
        read
    }
}
