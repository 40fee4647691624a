//! The disk, and what a crash leaves on it. After every call that changes it, a power cut is taken
//! and what recovery would find is compared with the history: between two calls a cut leaves
//! nothing else than right after the first. So every moment of a run is covered, not one.

use std::collections::BTreeMap;
use std::sync::Mutex as Plain;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::image::{SLOTS, SlotId};
use super::leaf::{Entry, LeafState, Stamp};
use super::log::{History, Record};
use super::{Fault, Key, Lsn, Value, lock};

/// An image: the rows of a leaf and the fences that it had.
#[derive(Clone, Debug)]
pub struct Page {
    pub checksum: u64,
    low: Key,
    high: Option<Key>,
    pub rows: Vec<Entry>,
}

impl Page {
    pub fn new(leaf: &LeafState, mut rows: Vec<Entry>) -> Page {
        rows.sort_unstable_by_key(|entry| entry.key);
        Page { checksum: thread_rng().r#gen(), low: leaf.low, high: leaf.high, rows }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct EntryOnDisk {
    pub low: Key,
    pub image: Option<(SlotId, u64)>,
}

#[derive(Clone, Debug)]
pub struct Superblock {
    pub checkpoint: u64,
    /// C: where redo starts.
    pub start: Lsn,
    /// E: no image holds anything at or above.
    pub end: Lsn,
    pub entries: Vec<EntryOnDisk>,
}

/// A slot: what is durable, and what was written since.
#[derive(Clone, Default)]
struct SlotContent {
    durable: Option<Page>,
    written: Vec<Page>,
}

struct State {
    slots: Vec<SlotContent>,
    superblock: Superblock,
    next_superblock: Option<Superblock>,
    log_first: Lsn,
    log_durable: Lsn,
    log_written: Lsn,
}

pub struct Disk {
    fault: Fault,
    pub history: History,
    state: Plain<State>,
    /// Counts calls; others may run before and after each.
    calls: AtomicU64,
}

/// What a power cut does to writes that are not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Lost,
    Kept,
    /// Each as it comes, some torn.
    Mixed,
}

impl Disk {
    pub fn new(
        fault: Fault,
        history: History,
        pages: Vec<(SlotId, Page)>,
        superblock: Superblock,
    ) -> Disk {
        let mut slots = vec![SlotContent::default(); SLOTS];
        for (slot, page) in pages {
            slots[slot].durable = Some(page);
        }
        let end = history.len();
        let state = State {
            slots,
            superblock,
            next_superblock: None,
            log_first: end,
            log_durable: end,
            log_written: end,
        };
        Disk { fault, history, state: Plain::new(state), calls: AtomicU64::new(0) }
    }

    fn call(&self, change: impl FnOnce(&mut State)) {
        self.calls.fetch_add(1, SeqCst);
        {
            let mut state = lock(&self.state);
            change(&mut state);
            self.check_crashes(&state);
        }
        self.calls.fetch_add(1, SeqCst);
    }

    pub fn write(&self, slot: SlotId, page: Page) {
        self.call(|state| state.slots[slot].written.push(page));
    }

    pub fn read(&self, slot: SlotId) -> Option<Page> {
        self.calls.fetch_add(1, SeqCst);
        let state = lock(&self.state);
        let content = &state.slots[slot];
        content.written.last().or(content.durable.as_ref()).cloned()
    }

    /// The superblock that counts.
    pub fn superblock(&self) -> Superblock {
        lock(&self.state).superblock.clone()
    }

    /// The records from `start` on and below `end`; they are still in the log.
    pub fn read_log(&self, start: Lsn, end: Lsn, what: &str) -> Vec<(Lsn, Record)> {
        self.calls.fetch_add(1, SeqCst);
        assert!(lock(&self.state).log_first <= start, "the log is recycled above C: {what}");
        self.history.range(start, end)
    }

    pub fn sync(&self) {
        self.call(|state| {
            for slot in &mut state.slots {
                if let Some(last) = slot.written.pop() {
                    *slot = SlotContent { durable: Some(last), written: Vec::new() };
                }
            }
        });
    }

    pub fn write_superblock(&self, superblock: Superblock) {
        self.call(|state| state.next_superblock = Some(superblock));
        self.call(|state| {
            state.superblock = state.next_superblock.take().expect("one checkpoint at a time");
        });
    }

    pub fn write_log(&self, end: Lsn) {
        self.call(|state| state.log_written = end);
    }

    pub fn sync_log(&self) {
        self.call(|state| state.log_durable = state.log_written);
    }

    /// What lies below is written over.
    pub fn recycle_log(&self, below: Lsn) {
        self.call(|state| state.log_first = state.log_first.max(below));
    }

    /// Cuts the power and recovers, in each way.
    fn check_crashes(&self, state: &State) {
        for cut in [Cut::Lost, Cut::Kept, Cut::Mixed] {
            for superblock in [Some(&state.superblock), state.next_superblock.as_ref()] {
                let Some(superblock) = superblock else { continue };
                let log_end = match cut {
                    Cut::Lost => state.log_durable,
                    Cut::Kept => state.log_written,
                    Cut::Mixed => thread_rng().gen_range(state.log_durable..=state.log_written),
                };
                self.check_recovery(state, superblock, cut, log_end);
            }
        }
    }

    /// Every change below the end of the log is there after recovery, none twice, none else.
    fn check_recovery(&self, state: &State, superblock: &Superblock, cut: Cut, log_end: Lsn) {
        let Superblock { checkpoint, start, end, .. } = superblock;
        let what =
            format!("checkpoint {checkpoint}, C {start}, E {end}, log to {log_end}, {cut:?}");
        assert!(state.log_first <= *start, "the log is recycled above C: {what}");
        assert!(*end <= log_end, "the log ends before E: {what}");
        let read = |slot: SlotId| after_cut(&state.slots[slot], cut).cloned();
        let leaves = self.load_directory(&superblock.entries, read, &what);
        let recovered = redo_all(leaves, self.history.range(*start, log_end));
        assert_eq!(recovered, expected(&self.history, log_end), "{what}");
    }

    /// The leaves as low fences and rows. Fences meet, and each image covers its leaf.
    pub fn load_directory(
        &self,
        entries: &[EntryOnDisk],
        read: impl Fn(SlotId) -> Option<Page>,
        what: &str,
    ) -> Vec<(Key, Vec<Entry>)> {
        assert_eq!(entries[0].low, 0, "the directory does not begin at the first key: {what}");
        let mut leaves = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let high = entries.get(index + 1).map(|next| next.low);
            assert!(high.is_none_or(|high| entry.low < high), "leaves overlap: {what}");
            let mut rows = Vec::new();
            if let Some((slot, checksum)) = entry.image {
                let page = read(slot).filter(|page| page.checksum == checksum);
                let page = page.unwrap_or_else(|| panic!("no image in slot {slot}: {what}"));
                let reaches = page.high.is_none_or(|end| high.is_some_and(|high| high <= end));
                assert!(page.low <= entry.low && reaches, "an image is too narrow: {what}");
                let holds = |key: Key| entry.low <= key && high.is_none_or(|high| key < high);
                let trims = self.fault != Fault::NoTrim;
                rows.extend(page.rows.into_iter().filter(|entry| !trims || holds(entry.key)));
            }
            leaves.push((entry.low, rows));
        }
        leaves
    }

    /// The rows after all records that there are.
    pub fn all_rows(&self) -> Vec<Entry> {
        expected(&self.history, self.history.len())
    }
}

fn after_cut(slot: &SlotContent, cut: Cut) -> Option<&Page> {
    let newest = slot.written.len();
    let kept = match cut {
        Cut::Lost => 0,
        Cut::Kept => newest,
        Cut::Mixed if newest == 0 => 0,
        Cut::Mixed => thread_rng().gen_range(0..=newest + 1),
    };
    match kept {
        0 => slot.durable.as_ref(),
        number => slot.written.get(number - 1), // one too many: torn
    }
}

/// The rows of all leaves after the records, in key order.
pub fn redo_all(mut leaves: Vec<(Key, Vec<Entry>)>, records: Vec<(Lsn, Record)>) -> Vec<Entry> {
    for (lsn, record) in records {
        for (key, value) in record.changes {
            let index = leaves.partition_point(|(low, _)| *low <= key) - 1;
            redo(&mut leaves[index].1, key, value, lsn);
        }
    }
    let mut redone = Vec::new();
    for (_, mut rows) in leaves {
        rows.sort_unstable_by_key(|entry| entry.key);
        redone.extend(rows);
    }
    redone
}

/// Redoes one change, unless the leaf has it already.
fn redo(rows: &mut Vec<Entry>, key: Key, value: Option<Value>, lsn: Lsn) {
    let found = rows.iter().position(|entry| entry.key == key);
    if let Some(index) = found {
        match rows[index].stamp {
            Stamp::Committed(known) if known >= lsn => return,
            _ => drop(rows.remove(index)),
        }
    }
    if let Some(value) = value {
        rows.push(Entry { stamp: Stamp::Committed(lsn), key, value });
    }
}

/// The rows after all records below `end`.
pub fn expected(history: &History, end: Lsn) -> Vec<Entry> {
    let mut rows = BTreeMap::new();
    for (lsn, record) in history.range(0, end) {
        for (key, value) in record.changes {
            match value {
                Some(value) => {
                    rows.insert(key, Entry { stamp: Stamp::Committed(lsn), key, value });
                }
                None => drop(rows.remove(&key)),
            }
        }
    }
    rows.into_values().collect()
}
