//! Whole leaves: imaged, evicted, and made into a range.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::build::{Late, write_filter};
use super::disk::Content;
use super::entries::Entries;
use super::leaf::Home;
use super::plant::Plant;
use super::stock::{Part, Range, RunImage, Stock};
use super::types::{Full, KEYS, Key, Lsn};
use super::world::{Shared, World};

/// Times that a leaf is imaged before a conversion leaves it, and those right of it, as they are.
const TRIES: usize = 3;
/// Leaves that one conversion takes.
const GROUP: usize = 3;

/// Images a latched whole leaf: copied under the latch, written after it. Small intents stay, and with them the leaf is
/// dirty in this epoch.
pub(super) async fn image_latched(
    shared: &Shared,
    low: Key,
    takes_slot_if_empty: bool,
) -> Result<(), Full> {
    let prepared = shared.world().prepare_image(low, takes_slot_if_empty);
    shared.unlatch(low);
    shared.step().await;
    if let Some((place, entries)) = prepared? {
        shared.world().write_page(&place, Content::Image(Rc::new(entries)));
    }
    Ok(())
}

type Prepared = Option<(Rc<super::disk::Place>, Entries)>;

impl World {
    fn prepare_image(&mut self, low: Key, takes_slot_if_empty: bool) -> Result<Prepared, Full> {
        self.load(low);
        let entries = self.entries_for_image(low);
        let needs_slot = takes_slot_if_empty || !entries.is_empty();
        let place = needs_slot.then(|| self.disk.assign()).transpose();
        let Ok(place) = place else {
            self.counts.full += 1;
            return Err(Full);
        };
        self.counts.images += 1;
        let leaf = self.leaf(low);
        if let Home::Whole { image, .. } = &mut leaf.home {
            *image = place.clone();
        }
        leaf.dirty = None;
        if leaf.has_small_intents() {
            self.make_dirty(low);
        }
        self.counts.intents_imaged += entries.intents.len() as u64;
        Ok(place.map(|place| (place, entries)))
    }

    fn is_image_written(&mut self, key: Key) -> bool {
        match &self.leaf(key).home {
            Home::Whole { image, .. } => image.as_ref().is_none_or(|image| image.is_written.get()),
            Home::Front(_) => true,
        }
    }
}

/// Evicts leaves, one each time: a whole leaf goes when it is clean and its image is written. A front leaf is never
/// imaged: its rows go by a flush.
pub(super) async fn evict(shared: Shared, leaves: usize, idle: u64) {
    for _ in 0..leaves {
        shared.idle(idle).await;
        let key = shared.world().random.below(u64::from(KEYS)) as Key;
        let low = shared.latch(key).await;
        let (is_front, is_dirty) = {
            let mut world = shared.world();
            let leaf = world.leaf(low);
            (leaf.range().is_some(), leaf.dirty.is_some())
        };
        if is_front {
            if shared.plant() == Plant::FrontLeafImaged {
                let mut world = shared.world();
                let entries = world.entries_for_image(low);
                let leaf = world.leaf(low);
                let high = leaf.high;
                (leaf.rows, leaf.dirty) = (BTreeMap::new(), None);
                let image = world.disk.assign();
                if let Ok(place) = image {
                    world.write_page(&place, Content::Image(Rc::new(entries)));
                    let home = Home::Whole { image: Some(place), is_in_memory: false };
                    let leaf = world.leaf(low);
                    (leaf.home, leaf.high) = (home, high);
                }
            }
            shared.unlatch(low);
            continue;
        }
        if is_dirty {
            let outcome = image_latched(&shared, low, false).await;
            if outcome.is_err() {
                continue;
            }
        } else {
            shared.unlatch(low);
        }
        shared.step().await;
        let low = shared.latch(key).await;
        let mut world = shared.world();
        let is_written = world.is_image_written(low);
        let leaf = world.leaf(low);
        let is_clean = leaf.dirty.is_none() && !leaf.has_small_intents() && is_written;
        if let (Home::Whole { is_in_memory, .. }, true) = (&mut leaf.home, is_clean) {
            *is_in_memory = false;
            leaf.rows.clear();
            leaf.intents.clear();
        }
        world.unlatch(low);
    }
}

/// Makes some whole leaves into ranges.
pub(super) async fn convert(shared: Shared, groups: usize, idle: u64) {
    shared.until_open().await;
    for _ in 0..groups {
        shared.idle(idle).await;
        let low = {
            let mut world = shared.world();
            let whole = world.leaves.iter().filter(|(_, leaf)| leaf.range().is_none());
            let whole: Vec<Key> = whole.map(|(low, _)| *low).collect();
            let count = whole.len() as u64;
            if count == 0 {
                return;
            }
            whole[world.random.below(count) as usize]
        };
        convert_group(&shared, low).await;
    }
}

/// The range grows leaf by leaf: a leaf that is clean under its latch, with its image written, becomes a front leaf
/// without rows in the same step in which the range's stock has its image.
async fn convert_group(shared: &Shared, low: Key) {
    let flush_lsn = shared.world().applied();
    let mut range: Option<Rc<Range>> = None;
    let (mut cursor, mut tries, mut leaves) = (low, 0, 0);
    while cursor < KEYS && leaves < GROUP && tries < TRIES {
        let low = shared.latch(cursor).await;
        if low != cursor || shared.world().leaf(low).range().is_some() {
            shared.unlatch(low);
            break;
        }
        let converted = shared.world().convert_leaf(low, flush_lsn, &mut range);
        if let Some(high) = converted {
            shared.unlatch(low);
            (cursor, tries, leaves) = (high, 0, leaves + 1);
        } else if shared.world().is_image_written(low) {
            tries += 1;
            let outcome = image_latched(shared, low, true).await;
            if outcome.is_err() {
                break;
            }
        } else {
            shared.unlatch(low);
            shared.until(move |world| world.is_image_written(cursor)).await;
        }
        shared.step().await;
    }
    let Some(range) = range else { return };
    build_filter(shared, &range).await;
    range.unlock();
}

impl World {
    /// Returns the leaf's high fence if it belongs to the range by now.
    fn convert_leaf(
        &mut self,
        low: Key,
        flush_lsn: Lsn,
        range: &mut Option<Rc<Range>>,
    ) -> Option<Key> {
        let plant = self.plant;
        let is_written = self.is_image_written(low);
        let leaf = self.leaf(low);
        let high = leaf.high;
        let is_clean = leaf.dirty.is_none() || plant == Plant::DirtyLeafConverted;
        let Home::Whole { image, .. } = &leaf.home else { return None };
        if !is_clean || leaf.has_small_intents() || !is_written {
            return None;
        }
        let image = match image.clone() {
            None if plant != Plant::EmptyLeafWithoutImage => return None,
            image => image.map(|place| RunImage { low, place }),
        };
        let numbers =
            image.as_ref().map(|image| self.read_image(&image.place, low, high).numbers());
        let numbers = numbers.filter(|_| plant != Plant::ConvertedWithoutNumbers);
        let held = self.hold(numbers.unwrap_or_default());
        let stock = match range {
            Some(range) => {
                let stock = range.stock();
                let (mut base, mut base_held) = (stock.base.clone(), stock.base_held.clone());
                base.extend(image);
                base_held.extend(held);
                Stock { high, base, base_held, ..(*stock).clone() }
            }
            None => Stock {
                address: 0,
                low,
                high,
                base: image.into_iter().collect(),
                base_held: held,
                filter: None,
                fragments: Vec::new(),
                flush_lsn,
            },
        };
        let range = match range {
            Some(range) => {
                self.publish(range, stock);
                range.clone()
            }
            None => {
                let stock = self.new_stock(stock);
                let made = self.new_range(stock, true);
                *range = Some(made.clone());
                made
            }
        };
        self.note(|| {
            format!("leaf [{low}, {high}) becomes a front leaf of range {}", range.number)
        });
        self.counts.conversions += 1;
        let leaf = self.leaf(low);
        leaf.rows.clear();
        leaf.intents.clear();
        leaf.home = Home::Front(range);
        Some(high)
    }
}

/// A range of images as they were has no filter: every key may be in it, until one is built.
async fn build_filter(shared: &Shared, range: &Range) {
    if shared.world().random.one_in(2) {
        return;
    }
    let stock = range.stock();
    let entries = shared.world().read_run(&stock, Part::Base);
    shared.step().await;
    let Ok(filter) = write_filter(shared, &entries, &mut Late::new()).await else { return };
    let stock = Stock { filter: Some(filter), ..(*stock).clone() };
    shared.world().publish(range, stock);
}
