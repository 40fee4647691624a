//! Slots of the data file and what a loss of power leaves of them.
//!
//! A slot is free when nobody owns its place any more: no stock, no leaf, no directory that is installed or being
//! installed, no reader, no writer.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

use super::entries::Entries;
use super::random::Random;
use super::types::{Full, Key, Lsn, Number};

/// A slot, and which of its contents is meant: the stamp stands for the checksum beside the slot's number.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) slot: usize,
    pub(super) stamp: u64,
    pub(super) is_written: Cell<bool>,
}

/// Another image of a run, as a fragment's head lists it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) low: Key,
    pub(super) slot: usize,
    pub(super) stamp: u64,
}

/// A fragment's first slot.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) low: Key,
    pub(super) images: Vec<Listed>,
    pub(super) hashes: BTreeSet<Key>,
    /// The large transactions whose intents it has.
    pub(super) numbers: BTreeSet<Number>,
    pub(super) rows: usize,
    pub(super) lsn_bounds: (Lsn, Lsn),
    pub(super) flush_lsn: Lsn,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Image(Rc<Entries>),
    Head(Rc<Head>),
    Filter(Rc<BTreeSet<Key>>),
}

#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) stamp: u64,
    pub(super) content: Content,
    /// The bytes are no longer those that were written.
    pub(super) is_damaged: bool,
}

#[derive(Clone, Default, Debug)]
struct Slot {
    owner: Weak<Place>,
    synced: Option<Page>,
    /// Written, not synced.
    pending: Option<Page>,
    /// A fault gave the slot away while it had an owner.
    is_forced_free: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Disk {
    slots: Vec<Slot>,
    pub(super) capacity: usize,
    next_stamp: u64,
}

impl Disk {
    pub(super) fn new(capacity: usize) -> Disk {
        Disk { slots: Vec::new(), capacity, next_stamp: 1 }
    }

    pub(super) fn assign(&mut self) -> Result<Rc<Place>, Full> {
        let is_free = |slot: &Slot| slot.owner.strong_count() == 0 || slot.is_forced_free;
        let slot = match self.slots.iter().position(is_free) {
            Some(slot) => slot,
            None if self.slots.len() < self.capacity => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
            None => return Err(Full),
        };
        self.next_stamp += 1;
        let place = Place { slot, stamp: self.next_stamp, is_written: Cell::new(false) };
        let place = Rc::new(place);
        self.slots[slot].owner = Rc::downgrade(&place);
        self.slots[slot].is_forced_free = false;
        Ok(place)
    }

    pub(super) fn write(&mut self, place: &Place, content: Content) {
        let page = Page { stamp: place.stamp, content, is_damaged: false };
        self.slots[place.slot].pending = Some(page);
        place.is_written.set(true);
    }

    /// The page of a place, if it is there and checks.
    pub(super) fn read(&self, place: &Place) -> Option<&Content> {
        self.page(place.slot, place.stamp).filter(|page| !page.is_damaged).map(|page| &page.content)
    }

    /// The page of a place, whether or not its bytes are those that were written.
    pub(super) fn page(&self, slot: usize, stamp: u64) -> Option<&Page> {
        let slot = self.slots.get(slot)?;
        let page = slot.pending.as_ref().or(slot.synced.as_ref())?;
        (page.stamp == stamp).then_some(page)
    }

    /// What a sync that begins now will have made durable when it is done.
    pub(super) fn unsynced(&self) -> Vec<(usize, u64)> {
        let pending = self.slots.iter().enumerate();
        pending.filter_map(|(at, slot)| Some((at, slot.pending.as_ref()?.stamp))).collect()
    }

    pub(super) fn synced(&mut self, pages: &[(usize, u64)]) {
        for (at, stamp) in pages {
            let slot = &mut self.slots[*at];
            if slot.pending.as_ref().is_some_and(|page| page.stamp == *stamp) {
                slot.synced = slot.pending.take();
            }
        }
    }

    /// What a loss of power now leaves: of each unsynced page all, nothing, or a torn page.
    pub(super) fn crash(&self, random: &mut Random) -> Disk {
        let mode = random.below(4);
        let slot = |slot: &Slot| {
            let written = slot.pending.as_ref().filter(|_| match mode {
                0 => false,
                1 => true,
                _ => random.one_in(2),
            });
            let is_torn = slot.pending.is_some() && mode > 1 && random.one_in(6);
            let kept = written.or(slot.synced.as_ref()).filter(|_| !is_torn);
            Slot { synced: kept.cloned(), ..Slot::default() }
        };
        let slots = self.slots.iter().map(slot).collect();
        Disk { slots, capacity: self.capacity, next_stamp: self.next_stamp }
    }

    /// An owner for what an installed directory names; entries that share an image share it.
    pub(super) fn adopt(&mut self, slot: usize, stamp: u64, is_shared: bool) -> Rc<Place> {
        let known = self.slots[slot].owner.upgrade().filter(|_| is_shared);
        if let Some(known) = known {
            return known;
        }
        let place = Rc::new(Place { slot, stamp, is_written: Cell::new(true) });
        self.slots[slot].owner = Rc::downgrade(&place);
        place
    }

    /// Bytes of a filter or head change: a hash is missing, and the checksum does not fit.
    pub(super) fn damage(&mut self, slot: usize, missing: usize) {
        let Some(page) = &mut self.slots[slot].synced else { return };
        page.is_damaged = true;
        let without = |keys: &BTreeSet<Key>| {
            let lost = keys.iter().nth(missing % keys.len().max(1)).copied();
            keys.iter().copied().filter(|key| Some(*key) != lost).collect::<BTreeSet<Key>>()
        };
        match &mut page.content {
            Content::Image(_) => {}
            Content::Head(head) => {
                let hashes = without(&head.hashes);
                *head = Rc::new(Head { hashes, ..(**head).clone() });
            }
            Content::Filter(keys) => *keys = Rc::new(without(keys)),
        }
    }

    pub(super) fn force_free(&mut self, place: &Place) {
        self.slots[place.slot].is_forced_free = true;
    }

    /// Slots with an owner, and the stamps of these.
    pub(super) fn owned(&self) -> BTreeMap<usize, u64> {
        let owned = self.slots.iter().enumerate();
        owned.filter_map(|(at, slot)| Some((at, slot.owner.upgrade()?.stamp))).collect()
    }
}
