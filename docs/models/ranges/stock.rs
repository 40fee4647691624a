//! Ranges and their stocks: what a cold key range has on the disk, and what memory says of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use super::disk::Place;
use super::status::Hold;
use super::types::{Key, Lsn, Number};

/// One image of a run; the next one's low key is where it ends, whatever else the image holds.
#[derive(Clone, Debug)]
pub(super) struct RunImage {
    pub(super) low: Key,
    pub(super) place: Rc<Place>,
}

/// Images in key order.
pub(super) type Run = Vec<RunImage>;

/// What one flush wrote, or a flush and the small fragment before it.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    pub(super) head: Rc<Place>,
    pub(super) images: Run,
    /// Keys that the locator finds in it, some of them falsely.
    pub(super) located: Rc<BTreeSet<Key>>,
    /// Entries of it.
    pub(super) rows: usize,
    /// The large transactions whose intents it has.
    pub(super) held: Vec<Hold>,
}

/// The filter of a base: where it is stored, and the keys that it says *maybe* to.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) place: Rc<Place>,
    pub(super) keys: Rc<BTreeSet<Key>>,
}

/// Immutable, replaced as a whole.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    /// Where it lies in memory: a later stock may lie where a dead one lay.
    pub(super) address: u64,
    pub(super) low: Key,
    pub(super) high: Key,
    pub(super) base: Run,
    /// The large transactions whose intents the base has.
    pub(super) base_held: Vec<Hold>,
    /// None: not built, or damaged on the disk; then every key may be in the base.
    pub(super) filter: Option<Filter>,
    /// Oldest first.
    pub(super) fragments: Vec<Fragment>,
    /// Every change of a key of the range below this LSN is in the stock.
    pub(super) flush_lsn: Lsn,
}

/// Which run of a stock may have a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Base,
    Fragment(usize),
}

impl Stock {
    pub(super) fn covers(&self, key: Key) -> bool {
        self.low <= key && key < self.high
    }

    pub(super) fn run(&self, part: Part) -> &Run {
        match part {
            Part::Base => &self.base,
            Part::Fragment(number) => &self.fragments[number].images,
        }
    }

    /// All runs, the newest first.
    pub(super) fn parts(&self) -> Vec<Part> {
        let fragments = (0..self.fragments.len()).rev().map(Part::Fragment);
        fragments.chain([Part::Base]).collect()
    }

    /// Runs that filter and locators cannot rule out for a key, the newest first.
    pub(super) fn candidates(&self, key: Key) -> Vec<Part> {
        let mut parts = self.parts();
        parts.retain(|part| match part {
            Part::Base if self.base.first().is_none_or(|image| key < image.low) => false,
            Part::Base => self.filter.as_ref().is_none_or(|filter| filter.keys.contains(&key)),
            Part::Fragment(number) => self.fragments[*number].located.contains(&key),
        });
        parts
    }

    /// The image of a run that would hold a key.
    pub(super) fn image(&self, part: Part, key: Key) -> Option<&RunImage> {
        self.run(part).iter().rev().find(|image| image.low <= key)
    }

    /// The fault: a stock whose slots are free when others give them up.
    pub(super) fn unowned(&self) -> Stock {
        let copy = |place: &Rc<Place>| {
            let (slot, stamp, is_written) = (place.slot, place.stamp, place.is_written.clone());
            Rc::new(Place { slot, stamp, is_written })
        };
        let image = |image: &RunImage| RunImage { low: image.low, place: copy(&image.place) };
        let run = |run: &Run| run.iter().map(image).collect::<Run>();
        let mut stock = self.clone();
        stock.base = run(&self.base);
        for fragment in &mut stock.fragments {
            fragment.images = run(&fragment.images);
            fragment.head = copy(&fragment.head);
        }
        if let Some(filter) = &mut stock.filter {
            filter.place = copy(&filter.place);
        }
        stock
    }

    /// The fault: a stock that does not keep the status of its intents from being forgotten.
    pub(super) fn without_holds(&self) -> Stock {
        let mut stock = self.clone();
        stock.base_held.clear();
        stock.fragments.iter_mut().for_each(|fragment| fragment.held.clear());
        stock
    }

    /// Large transactions whose intents it may have.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        let fragments = self.fragments.iter().flat_map(|fragment| &fragment.held);
        self.base_held.iter().chain(fragments).map(|hold| **hold)
    }

    /// Every place that it has.
    pub(super) fn places(&self) -> impl Iterator<Item = &Rc<Place>> {
        let fragments = self.fragments.iter().flat_map(|fragment| {
            fragment.images.iter().map(|image| &image.place).chain([&fragment.head])
        });
        let base = self.base.iter().map(|image| &image.place);
        base.chain(self.filter.iter().map(|filter| &filter.place)).chain(fragments)
    }
}

/// A cold key range.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) number: u32,
    pub(super) stock: RefCell<Rc<Stock>>,
    /// The mutex: one flush, merge, split, join or conversion at a time.
    pub(super) is_busy: Cell<bool>,
    /// Its leaves belong to other ranges by now.
    pub(super) is_dead: Cell<bool>,
}

impl Range {
    pub(super) fn stock(&self) -> Rc<Stock> {
        self.stock.borrow().clone()
    }

    pub(super) fn publish(&self, stock: Rc<Stock>) {
        *self.stock.borrow_mut() = stock;
    }

    pub(super) fn unlock(&self) {
        self.is_busy.set(false);
    }
}
