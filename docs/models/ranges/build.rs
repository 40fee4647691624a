//! Writing runs, heads and filters into fresh slots.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::disk::{Content, Head, Listed, Place};
use super::entries::Entries;
use super::plant::Plant;
use super::stock::{Filter, Fragment, Range, Run, RunImage, Stock};
use super::types::{Full, IMAGE_ROWS, KEYS, Key, Lsn};
use super::world::{Shared, World};

/// Writes that a fault does too late.
pub(super) type Late = Vec<(Rc<Place>, Content)>;

/// Assigns a slot and writes it. A full disk gives back what was assigned: nobody owns it any more.
async fn write(shared: &Shared, content: Content, late: &mut Late) -> Result<Rc<Place>, Full> {
    let place = shared.world().disk.assign()?;
    if shared.plant() == Plant::PublishedBeforeWritten {
        late.push((place.clone(), content));
        return Ok(place);
    }
    shared.step().await;
    let mut world = shared.world();
    world.write_page(&place, content);
    Ok(place)
}

pub(super) async fn write_late(shared: &Shared, late: Late) {
    for (place, content) in late {
        shared.step().await;
        shared.world().write_page(&place, content);
    }
}

impl World {
    /// Nothing that the installed directory names is ever overwritten.
    pub(super) fn write_page(&mut self, place: &Place, content: Content) {
        let installing = self.installing.iter();
        let named = installing.chain([&self.installed]).any(|directory| {
            let of_slot = |named: &(usize, u64)| named.0 == place.slot && named.1 != place.stamp;
            directory.named.iter().any(of_slot)
        });
        if named {
            let what = format!("slot {} is overwritten, and a directory names it", place.slot);
            self.must(Err(what));
        }
        self.disk.write(place, content);
    }
}

pub(super) async fn write_run(
    shared: &Shared,
    entries: &Entries,
    late: &mut Late,
) -> Result<Run, Full> {
    let keys: Vec<Key> = entries.keys().into_iter().collect();
    let mut run = Run::new();
    for keys in keys.chunks(IMAGE_ROWS) {
        let image = entries.between(keys[0], keys[keys.len() - 1] + 1);
        let content = Content::Image(Rc::new(image));
        let outcome = write(shared, content, late).await;
        if outcome.is_err() && shared.plant() == Plant::FullKeepsSlots {
            std::mem::forget(std::mem::take(&mut run));
        }
        if outcome.is_err() && shared.plant() == Plant::FullTakesHalf {
            break;
        }
        run.push(RunImage { low: keys[0], place: outcome? });
    }
    Ok(run)
}

/// A fragment of these entries, its head last.
pub(super) async fn write_fragment(
    shared: &Shared,
    entries: &Entries,
    (low, flush_lsn): (Key, Lsn),
    late: &mut Late,
) -> Result<Fragment, Full> {
    let images = write_run(shared, entries, late).await?;
    let keeps_tombstones = shared.plant() != Plant::LocatorWithoutTombstones;
    let rows = &entries.rows;
    let kept = rows.iter().filter(|(_, version)| keeps_tombstones || version.value.is_some());
    let mut hashes: BTreeSet<Key> = kept.map(|(key, _)| *key).collect();
    if shared.plant() != Plant::LocatorWithoutIntents {
        hashes.extend(entries.intents.keys());
    }
    hashes.extend(false_positives(shared, 8));
    let listed = |image: &RunImage| {
        let (slot, stamp) = (image.place.slot, image.place.stamp);
        Listed { low: image.low, slot, stamp }
    };
    let lsns = rows.values().map(|version| version.lsn);
    let lsn_bounds = (lsns.clone().min().unwrap_or(0), lsns.max().unwrap_or(0));
    let images_listed = images.iter().map(listed).collect();
    let head = Head {
        low,
        images: images_listed,
        hashes: hashes.clone(),
        numbers: entries.numbers(),
        rows: entries.len(),
        lsn_bounds,
        flush_lsn,
    };
    let head = write(shared, Content::Head(Rc::new(head)), late).await?;
    let held = shared.world().hold(entries.numbers());
    Ok(Fragment { head, images, located: Rc::new(hashes), rows: entries.len(), held })
}

/// The filter of a base with these entries.
pub(super) async fn write_filter(
    shared: &Shared,
    entries: &Entries,
    late: &mut Late,
) -> Result<Filter, Full> {
    let mut keys: BTreeSet<Key> = entries.keys();
    if shared.plant() == Plant::FilterWithoutIntents {
        keys = entries.rows.keys().copied().collect();
    }
    if shared.plant() == Plant::FilterWithoutLastRow {
        keys.pop_last();
    }
    keys.extend(false_positives(shared, 8));
    let keys = Rc::new(keys);
    let place = write(shared, Content::Filter(keys.clone()), late).await?;
    Ok(Filter { place, keys })
}

/// One in so many keys is found falsely.
fn false_positives(shared: &Shared, one_in: u64) -> Vec<Key> {
    let random = &mut shared.world().random;
    (0..KEYS).filter(|_| random.one_in(one_in)).collect()
}

impl World {
    /// A stock takes the place of another. Slots of the old one are free when its last reader is gone and an
    /// installed directory does not name them.
    pub(super) fn publish(&mut self, range: &Range, stock: Stock) {
        let before = range.stock();
        let stock = self.new_stock(stock);
        self.note(|| {
            let (number, low, high) = (range.number, stock.low, stock.high);
            let (base, fragments) = (stock.base.len(), stock.fragments.len());
            let lsn = stock.flush_lsn;
            format!(
                "range {number} [{low}, {high}): base {base}, fragments {fragments}, flush {lsn}"
            )
        });
        if self.is_planted(Plant::OldStockFreedAtPublish) {
            let kept: BTreeSet<usize> = stock.places().map(|place| place.slot).collect();
            for place in before.places().filter(|place| !kept.contains(&place.slot)) {
                self.disk.force_free(place);
            }
        }
        range.publish(stock);
    }
}
