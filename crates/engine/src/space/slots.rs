//! Which slots are free, extent by extent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onrush_files::{DiskError, DiskErrorKind};
use parking_lot::Mutex;

use super::file::DataFiles;
use crate::error::Result;
use crate::units::{EXTENT_SLOTS, LEAF_BYTES};

/// Extents by which a data file grows at once.
const GROWTH_EXTENTS: u64 = 16;
/// The most extents of a data file, 64 TiB: a slot's number in its file has 32 bits.
const EXTENTS_MAX: u64 = (1 << 32) / EXTENT_SLOTS as u64;

/// A slot's number: data file and place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct SlotId {
    pub(crate) file: u16,
    pub(crate) index: u32,
}

impl SlotId {
    const RAW_NONE: u64 = u64::MAX;
    /// Stands in a directory segment where a key range has a stock instead of an image.
    pub(crate) const RAW_STOCK: u64 = u64::MAX - 1;

    /// The form that stands in directory segments: file in the top 16 bits.
    pub(crate) fn to_raw(self) -> u64 {
        u64::from(self.file) << 48 | u64::from(self.index)
    }

    /// The same of a slot that may be missing, which no slot's form is.
    pub(crate) fn to_raw_or_none(slot: Option<SlotId>) -> u64 {
        slot.map_or(Self::RAW_NONE, SlotId::to_raw)
    }

    /// What [`SlotId::to_raw_or_none`] made: no slot, or the one that is named; the outer none is for what
    /// names no slot there can be.
    pub(crate) fn from_raw_or_none(raw: u64) -> Option<Option<SlotId>> {
        if raw == Self::RAW_NONE { Some(None) } else { SlotId::from_raw(raw).map(Some) }
    }

    /// How many of the slots, from the first on, lie side by side in one file, upward.
    pub(crate) fn side_by_side(slots: &[SlotId]) -> usize {
        let follows = |pair: &&[SlotId]| {
            pair[0].file == pair[1].file && pair[0].index.checked_add(1) == Some(pair[1].index)
        };
        1 + slots.windows(2).take_while(follows).count()
    }

    pub(crate) fn from_raw(raw: u64) -> Option<SlotId> {
        let index = u32::try_from(raw & 0xFFFF_FFFF_FFFF).ok()?;
        Some(SlotId { file: (raw >> 48) as u16, index })
    }

    /// Byte position in its data file.
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.index) * LEAF_BYTES as u64
    }

    fn extent(self) -> usize {
        self.index as usize / EXTENT_SLOTS
    }

    fn bit(self) -> u64 {
        1 << (self.index as usize % EXTENT_SLOTS)
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} of data file {}", self.index, self.file)
    }
}

/// Owns a slot; dropping it frees the slot.
pub(crate) struct Slot {
    id: SlotId,
    space: Arc<Space>,
}

impl Slot {
    pub(crate) fn id(&self) -> SlotId {
        self.id
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.space.free(self.id);
    }
}

/// Owns many slots, with one pointer to the space for all of them; dropping it frees them.
pub(crate) struct Slots {
    ids: Vec<SlotId>,
    space: Arc<Space>,
}

impl Slots {
    pub(crate) fn none(space: &Arc<Space>) -> Slots {
        Slots { ids: Vec::new(), space: Arc::clone(space) }
    }

    /// The owner of slots that the directory names, at open.
    pub(crate) fn adopt(space: &Arc<Space>, ids: Vec<SlotId>) -> Slots {
        Slots { ids, space: Arc::clone(space) }
    }

    pub(crate) fn ids(&self) -> &[SlotId] {
        &self.ids
    }

    /// Turns a reservation into one more slot.
    pub(crate) fn allocate(&mut self, cursor: &mut Cursor) -> SlotId {
        let id = self.space.allocate_id(cursor);
        self.ids.push(id);
        id
    }

    pub(crate) fn shrink(&mut self) {
        self.ids.shrink_to_fit();
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ids.fmt(f)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.ids.iter().for_each(|id| self.space.free(*id));
    }
}

/// Where one writer goes on, so that what it writes lies together.
#[derive(Default, Debug)]
pub(crate) struct Cursor {
    at: Option<(usize, usize)>,
}

/// The slots of all data files.
pub(crate) struct Space {
    files: DataFiles,
    map: Mutex<Map>, // held over memory alone
    /// Held while a data file grows; taken before `map`.
    growing: Mutex<()>,
    /// Free slots minus reservations. Below zero only for a moment inside `try_reserve`.
    credit: AtomicI64,
    /// Free slots that new rows leave alone; see [`Purpose`]. Follows the size of the files.
    withheld: AtomicI64,
    /// Free slots that only flushes, compactions and removals may use.
    for_ranges: AtomicI64,
}

/// What slots are reserved for. With the disk full, what makes space must still be possible: rows
/// can be removed when none can be added, and a checkpoint can be taken when none can be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    NewRows,
    Removal,
    Checkpoint,
}

/// Of so many slots one is withheld from new rows, but never fewer than the second number.
const WITHHELD_PART: u64 = 32;
const WITHHELD_MIN: u64 = 16;

struct Map {
    /// Per file and extent, a bit for each free slot.
    free: Vec<Vec<u64>>,
    /// Extents that were wholly free when they were pushed; re-checked when popped.
    whole: Vec<Vec<u32>>,
    next_file: usize,
    /// Where the search for a partly free extent goes on.
    hand: (usize, usize),
    /// Copy of each file's length in extents.
    grown: Vec<u64>,
}

impl Space {
    /// All slots of `files` are free but those in `used`.
    ///
    /// # Errors
    /// Damage: a slot in `used` is in none of the files, or is there twice, so that whoever gives it
    /// back first would free it for both.
    pub(crate) fn new(files: DataFiles, used: &[SlotId]) -> Result<Arc<Space>> {
        let count = files.count();
        let mut map = Map {
            free: vec![Vec::new(); count],
            whole: vec![Vec::new(); count],
            next_file: 0,
            hand: (0, 0),
            grown: vec![0; count],
        };
        for file in 0..count {
            let extents = (files.slots(file)? / EXTENT_SLOTS as u64).min(EXTENTS_MAX);
            map.add_extents(file, extents);
        }
        for slot in used {
            let file = map.free.get_mut(usize::from(slot.file));
            let bits = file.and_then(|extents| extents.get_mut(slot.extent()));
            let taken = bits.is_some_and(|bits| {
                let was_free = *bits & slot.bit() != 0;
                *bits &= !slot.bit();
                was_free
            });
            if !taken {
                let what = "the directory names a slot twice, or one that there is not";
                return Err(files.damaged(*slot, what));
            }
        }
        let free: u64 = map.free.iter().flatten().map(|bits| u64::from(bits.count_ones())).sum();
        let credit = AtomicI64::new(free as i64);
        let withheld = AtomicI64::new(map.withheld());
        Ok(Arc::new(Space {
            files,
            map: Mutex::new(map),
            growing: Mutex::new(()),
            credit,
            withheld,
            for_ranges: AtomicI64::new(0),
        }))
    }

    pub(crate) fn files(&self) -> &DataFiles {
        &self.files
    }

    /// Slots that are neither used nor reserved.
    pub(crate) fn unreserved(&self) -> i64 {
        self.credit.load(Ordering::Relaxed)
    }

    /// Slots in all data files.
    pub(crate) fn slots(&self) -> u64 {
        self.map.lock().grown.iter().sum::<u64>() * EXTENT_SLOTS as u64
    }

    /// Reserves `slots` slots for `purpose` if so many are free for it. Never waits.
    #[inline]
    pub(crate) fn try_reserve(&self, slots: i64, purpose: Purpose) -> bool {
        let left = self.leaves_alone(purpose);
        if self.credit.fetch_sub(slots, Ordering::AcqRel) >= slots + left {
            return true;
        }
        self.credit.fetch_add(slots, Ordering::AcqRel);
        false
    }

    /// Free slots that are not for `purpose`.
    #[inline]
    pub(crate) fn leaves_alone(&self, purpose: Purpose) -> i64 {
        let withheld = self.withheld.load(Ordering::Relaxed);
        match purpose {
            Purpose::NewRows => withheld + self.for_ranges.load(Ordering::Relaxed),
            Purpose::Removal => withheld / 2,
            Purpose::Checkpoint => 0,
        }
    }

    /// Keeps so many free slots for flushes and compactions of ranges: without them no row could be removed either.
    pub(crate) fn withhold_for_ranges(&self, slots: i64) {
        self.for_ranges.store(slots, Ordering::Relaxed);
    }

    /// Gives up a reservation that was not used.
    pub(crate) fn unreserve(&self, slots: i64) {
        self.credit.fetch_add(slots, Ordering::AcqRel);
    }

    /// Makes the data files larger, in turn.
    ///
    /// # Errors
    /// A full disk: nothing has changed, and a later call may succeed.
    pub(crate) fn grow(&self) -> std::result::Result<(), DiskError> {
        let _growing = self.growing.lock();
        let enough = EXTENT_SLOTS as i64 + self.leaves_alone(Purpose::NewRows);
        if self.credit.load(Ordering::Acquire) >= enough {
            return Ok(());
        }
        let (file, grown) = self.map.lock().next_to_grow();
        let extents = longer(grown).ok_or_else(|| {
            DiskError::new(
                DiskErrorKind::Full,
                "make longer than 64 TiB",
                self.files.path(file as u16),
            )
        })?;
        self.files.grow(file, extents * EXTENT_SLOTS as u64)?;
        let mut map = self.map.lock();
        let free = map.add_extents(file, extents);
        self.withheld.store(map.withheld(), Ordering::Relaxed);
        self.credit.fetch_add(free, Ordering::AcqRel);
        Ok(())
    }

    /// Turns a reservation into a slot, next to the cursor's last one where that is free.
    pub(crate) fn allocate(self: &Arc<Space>, cursor: &mut Cursor) -> Slot {
        Slot { id: self.allocate_id(cursor), space: Arc::clone(self) }
    }

    fn allocate_id(&self, cursor: &mut Cursor) -> SlotId {
        let mut map = self.map.lock();
        let (file, extent) = match cursor.at {
            Some((file, extent)) if map.free[file][extent] != 0 => (file, extent),
            _ => map.choose_extent().expect("whoever allocates has reserved (invariant 2)"),
        };
        cursor.at = Some((file, extent));
        let bits = &mut map.free[file][extent];
        let bit = bits.trailing_zeros();
        *bits &= *bits - 1;
        let index = extent as u32 * EXTENT_SLOTS as u32 + bit;
        SlotId { file: file as u16, index }
    }

    /// The owner of a slot that the directory names, at open.
    pub(crate) fn adopt(self: &Arc<Space>, id: SlotId) -> Slot {
        Slot { id, space: Arc::clone(self) }
    }

    fn free(&self, id: SlotId) {
        let mut map = self.map.lock();
        let file = usize::from(id.file);
        let bits = &mut map.free[file][id.extent()];
        assert_eq!(*bits & id.bit(), 0, "{id} was freed twice (invariant 1)");
        *bits |= id.bit();
        if *bits == u64::MAX {
            map.whole[file].push(id.extent() as u32);
        }
        drop(map);
        self.credit.fetch_add(1, Ordering::AcqRel);
    }
}

/// How many extents a data file of `extents` gets when it grows; none if it has all that there may be.
fn longer(extents: u64) -> Option<u64> {
    let wanted = extents + GROWTH_EXTENTS.max(extents / 32);
    (extents < EXTENTS_MAX).then(|| wanted.min(EXTENTS_MAX))
}

impl Map {
    /// The file whose turn it is, and how many extents it has.
    fn next_to_grow(&mut self) -> (usize, u64) {
        let file = self.next_file;
        self.next_file = (file + 1) % self.grown.len();
        (file, self.grown[file])
    }

    fn withheld(&self) -> i64 {
        let slots = self.grown.iter().sum::<u64>() * EXTENT_SLOTS as u64;
        (slots / WITHHELD_PART).max(WITHHELD_MIN) as i64
    }

    /// Makes file `file` `extents` long; the first slot is the file's header. Returns how many
    /// slots that adds.
    fn add_extents(&mut self, file: usize, extents: u64) -> i64 {
        let mut added = 0;
        for extent in self.grown[file]..extents {
            let bits = if extent == 0 { !1 } else { u64::MAX };
            self.free[file].push(bits);
            added += i64::from(bits.count_ones());
        }
        let new = self.grown[file]..extents;
        self.whole[file].extend(new.rev().map(|extent| extent as u32));
        self.grown[file] = extents;
        added
    }

    /// A wholly free extent, the files in turn; else the freest that a short search finds.
    fn choose_extent(&mut self) -> Option<(usize, usize)> {
        let files = self.free.len();
        for turn in 0..files {
            let file = (self.next_file + turn) % files;
            while let Some(extent) = self.whole[file].pop() {
                if self.free[file][extent as usize].count_ones() >= EXTENT_SLOTS as u32 - 1 {
                    self.next_file = (file + 1) % files;
                    return Some((file, extent as usize));
                }
            }
        }
        [EXTENT_SLOTS as u32 / 2, EXTENT_SLOTS as u32 / 8, 1]
            .into_iter()
            .find_map(|least| self.search_from_hand(least))
    }

    fn search_from_hand(&mut self, least: u32) -> Option<(usize, usize)> {
        let files = self.free.len();
        let (start_file, start_extent) = self.hand;
        for turn in 0..=files {
            let file = (start_file + turn) % files;
            let from = if turn == 0 { start_extent } else { 0 };
            let found = self.free[file]
                .iter()
                .enumerate()
                .skip(from)
                .find(|(_, bits)| bits.count_ones() >= least);
            if let Some((extent, _)) = found {
                self.hand = (file, extent);
                return Some((file, extent));
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "slots_test.rs"]
mod tests;
