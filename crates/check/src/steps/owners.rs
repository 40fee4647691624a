//! Who owns which slot: two bits a slot.
//!
//! Leaves that come from one split share an image until they have their own, so a slot may be named
//! more than once, but only by leaves of one table; whether they lie inside the image's fences is
//! seen when it is read.

use crate::decode::slot::SlotNumber;
use crate::store::Store;

/// See the module.
pub(crate) struct Owners {
    /// A bit for each slot of each file: named by a blob, or by a table that is done.
    done: Vec<Vec<u64>>,
    /// Named by the table at hand.
    current: Vec<Vec<u64>>,
    table: Option<usize>,
}

impl Owners {
    pub(crate) fn new(store: &Store<'_>) -> Owners {
        let words = |file: &Option<crate::store::DataFile>| {
            vec![0; file.as_ref().map_or(0, |file| file.slots.div_ceil(64) as usize)]
        };
        let done: Vec<Vec<u64>> = store.files.iter().map(words).collect();
        Owners { current: done.clone(), done, table: None }
    }

    /// A slot of a blob; false if it has an owner already.
    pub(crate) fn claim_page(&mut self, slot: SlotNumber) -> bool {
        let free = !is_set(&self.current, slot);
        free && set(&mut self.done, slot)
    }

    /// The slot of an image of `table`; false if something else owns it. Tables come one after the
    /// other.
    pub(crate) fn claim_image(&mut self, table: usize, slot: SlotNumber) -> bool {
        if self.table != Some(table) {
            self.table = Some(table);
            for (done, current) in
                self.done.iter_mut().flatten().zip(self.current.iter_mut().flatten())
            {
                *done |= std::mem::take(current);
            }
        }
        if is_set(&self.done, slot) {
            return false;
        }
        set(&mut self.current, slot);
        true
    }
}

fn place(bits: &[Vec<u64>], slot: SlotNumber) -> Option<(usize, usize, u64)> {
    let word = usize::try_from(slot.index() / 64).ok()?;
    let in_file = bits.get(slot.file())?.len() > word;
    in_file.then_some((slot.file(), word, 1 << (slot.index() % 64)))
}

/// Slots outside of every file count as free: that they do not exist is another finding.
fn is_set(bits: &[Vec<u64>], slot: SlotNumber) -> bool {
    place(bits, slot).is_some_and(|(file, word, bit)| bits[file][word] & bit != 0)
}

/// True if the bit was not set before.
fn set(bits: &mut [Vec<u64>], slot: SlotNumber) -> bool {
    let Some((file, word, bit)) = place(bits, slot) else { return true };
    let before = bits[file][word];
    bits[file][word] |= bit;
    before & bit == 0
}
