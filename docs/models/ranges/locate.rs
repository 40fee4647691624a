//! Reads of the stock, outside all latches.

use std::rc::Rc;

use super::leaf::Known;
use super::plant::Plant;
use super::stock::{Part, Stock};
use super::types::{Key, Rows, Version};
use super::world::{Shared, World};

/// Reads what may have a key. The newest is the one with the highest LSN.
pub(super) async fn read_key(
    shared: &Shared,
    stock: &Rc<Stock>,
    candidates: &[Part],
    key: Key,
) -> Vec<Version> {
    let mut found = Vec::new();
    for part in candidates {
        shared.step().await;
        let mut world = shared.world();
        world.counts.stock_reads += 1;
        if world.redone.is_some() {
            let what = "redo reads a key of the stock".to_owned();
            world.must(Err(what));
        }
        let Some(image) = stock.image(*part, key) else { continue };
        let rows = world.read_image(&image.place, key, key + 1);
        found.extend(rows.get(&key));
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
    let versions = read_key(shared, &stock, candidates, key).await;
    let found = versions.into_iter().max_by_key(|version| version.lsn);
    let address = stock.address;
    let keeps = shared.plant() != Plant::LookupByAddress;
    Known { stock: keeps.then_some(stock), address, found }
}

impl World {
    /// All rows of a part of a stock, image by image.
    pub(super) fn read_run(&mut self, stock: &Stock, part: Part) -> Vec<Rows> {
        let run = stock.run(part);
        let mut read = Vec::new();
        for (at, image) in run.iter().enumerate() {
            let high = run.get(at + 1).map_or(stock.high, |next| next.low);
            read.push(self.read_image(&image.place, image.low, high));
        }
        read
    }
}
