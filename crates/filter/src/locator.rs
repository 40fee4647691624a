//! Which fragments may have a key: one table for up to eight fragments, so that one cache line answers for all.
//!
//! A line has 32 entries; an entry has 13 bits of a key's hash and the number of the fragment that has the key. A full
//! line goes on in the next. Entries are filled and never emptied: a merge throws the whole locator away.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::zeroed::Zeroed;

/// Fragments that share a locator, at most.
pub const FRAGMENTS_MAX: usize = 8;

const LINE_BYTES: usize = 64;
const ENTRY_BITS: u32 = 16;
const WORDS_OF_LINE: usize = LINE_BYTES / 8;
const ENTRIES_OF_WORD: u32 = 64 / ENTRY_BITS;
const ENTRIES_OF_LINE: usize = LINE_BYTES * 8 / ENTRY_BITS as usize;
const FRAGMENT_BITS: u32 = 3;
/// The lowest bit, and the highest, of each entry of a word.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = 0x8000_8000_8000_8000;
/// Entries that are filled when a locator has all its keys, of 100: beyond it too many lines go on in the next.
const FILLED_PERCENT: usize = 82;

/// Fragments of one locator, by their number in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragments(u8);

impl Fragments {
    /// Whether there is none: the key is certainly in no fragment.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, the newest first.
    pub fn newest_first(self) -> impl Iterator<Item = usize> {
        (0..FRAGMENTS_MAX).rev().filter(move |number| self.0 >> number & 1 == 1)
    }

    fn insert(&mut self, number: u8) {
        self.0 |= 1 << number;
    }
}

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Line([AtomicU64; WORDS_OF_LINE]);

impl Line {
    /// Adds the fragments that have the wanted entry. Whether the line is full, and so goes on in the next.
    #[inline]
    fn find(&self, wanted: u64, found: &mut Fragments) -> bool {
        let mut last = 0;
        for word in &self.0 {
            last = word.load(Ordering::Relaxed);
            let mut matches = empty_entries((last ^ wanted) & !(FRAGMENT_MASK * LOWEST));
            while matches != 0 {
                let shift = matches.trailing_zeros() / ENTRY_BITS * ENTRY_BITS;
                found.insert((last >> shift & FRAGMENT_MASK) as u8);
                matches &= matches - 1;
            }
        }
        last >> (u64::BITS - ENTRY_BITS) != 0
    }
}

/// Says in which fragments a key may be.
///
/// Many read it while one adds to it. Whoever sees a fragment finds all keys of it: who adds them publishes the
/// fragment afterwards, with release. A reader that does not see the fragment yet may find its number all the same.
#[derive(Debug)]
pub struct Locator {
    lines: Zeroed<Line>,
    keys_max: usize,
}

impl Locator {
    /// A locator for so many keys, a key counted once for each fragment that has it.
    #[must_use]
    pub fn new(keys_max: usize) -> Locator {
        let entries = (keys_max * 100).div_ceil(FILLED_PERCENT);
        let lines = entries.div_ceil(ENTRIES_OF_LINE).max(1);
        Locator { lines: Zeroed::new(lines), keys_max }
    }

    /// Keys that it is made for.
    #[must_use]
    pub fn keys_max(&self) -> usize {
        self.keys_max
    }

    /// Memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Locator>() + self.lines.len() * LINE_BYTES
    }

    /// Adds a key of the fragment of this number. One thread at a time adds.
    ///
    /// # Panics
    /// If the number is not below [`FRAGMENTS_MAX`], or every entry is filled: it was made for fewer keys.
    pub fn add(&self, key_hash: u64, fragment: usize) {
        assert!(fragment < FRAGMENTS_MAX, "a locator has eight fragments");
        let entry = u64::from(entry_of(key_hash) | fragment as u16);
        for line in self.lines_from(key_hash) {
            for word in &line.0 {
                let filled = word.load(Ordering::Relaxed);
                let used = (u64::BITS - filled.leading_zeros()).div_ceil(ENTRY_BITS);
                if used < ENTRIES_OF_WORD {
                    word.store(filled | entry << (used * ENTRY_BITS), Ordering::Relaxed);
                    return;
                }
            }
        }
        panic!("a locator for {} keys is full", self.keys_max);
    }

    /// The fragments that may have the key with this hash. None is certain.
    #[inline]
    #[must_use]
    pub fn find(&self, key_hash: u64) -> Fragments {
        let mut found = Fragments::default();
        let wanted = u64::from(entry_of(key_hash)) * LOWEST;
        // Nearly always the first line is the only one.
        let first = self.first_line(key_hash);
        if self.lines[first].find(wanted, &mut found) {
            for line in self.lines[first + 1..].iter().chain(&self.lines[..first]) {
                if !line.find(wanted, &mut found) {
                    break;
                }
            }
        }
        found
    }

    fn lines_from(&self, key_hash: u64) -> impl Iterator<Item = &Line> {
        let first = self.first_line(key_hash);
        self.lines[first..].iter().chain(&self.lines[..first])
    }

    #[inline]
    fn first_line(&self, key_hash: u64) -> usize {
        ((u128::from(key_hash) * self.lines.len() as u128) >> 64) as usize
    }
}

const FRAGMENT_MASK: u64 = (1 << FRAGMENT_BITS) - 1;

/// The entry of a key in the fragment of number 0; never 0, which is an empty one.
#[inline]
fn entry_of(key_hash: u64) -> u16 {
    // The line is chosen by the highest bits.
    let hash = (key_hash as u16) << FRAGMENT_BITS;
    if hash == 0 { 1 << FRAGMENT_BITS } else { hash }
}

/// The highest bit of each entry of a word that is zero; no other bit.
#[inline]
fn empty_entries(word: u64) -> u64 {
    // Adding all ones but the highest to the lower 15 bits carries into the highest unless they are zero.
    !(((word & !HIGHEST) + !HIGHEST) | word | !HIGHEST)
}
