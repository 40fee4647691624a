//! The bytes of one file in memory: pages that are shared until written, and holes that are zeros.
//!
//! Beside the life of an insert: the memory disk and the crash disk keep files in it. A copy costs
//! almost nothing, which is what makes tens of thousands of crash images affordable.
//!
//! Invariants
//! 1. A byte that no write reached reads as zero.
//! 2. Bytes past the length are never kept: cutting the file and making it longer again gives
//!    zeros.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Size of a shared page.
const PAGE_BYTES: usize = 4096;
const PAGE_BYTES_64: u64 = 4096;

type Page = [u8; PAGE_BYTES];

/// All reserved but unwritten pages are this one, until a write makes them its own.
static ZERO_PAGE: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

/// Bytes with holes, copied on write page by page.
#[derive(Clone, Debug, Default)]
pub struct SparseBytes {
    pages: Arc<BTreeMap<u64, Arc<Page>>>, // by page number; absent = hole
    len: u64,
}

impl SparseBytes {
    /// No bytes.
    pub fn new() -> SparseBytes {
        SparseBytes::default()
    }

    /// The length in bytes, holes included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes of space the pages take; holes take none.
    pub fn space_bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES_64
    }

    /// The pages that are there, by their number: all else reads as zeros.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pages.iter().map(|(number, page)| (*number, page.as_slice()))
    }

    /// How many more bytes of space it would take to write or reserve `len` bytes at `offset`.
    pub fn missing_space_bytes(&self, offset: u64, len: u64) -> u64 {
        let pages = page_numbers(offset, len);
        let count = pages.end - pages.start;
        let present = self.pages.range(pages).count() as u64;
        (count - present) * PAGE_BYTES_64
    }

    /// Fills the buffer from `offset`; returns false, the buffer unchanged, when the file ends
    /// before.
    #[must_use]
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> bool {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return false;
        }
        buffer.fill(0);
        for piece in pieces(offset, buffer.len()) {
            if let Some(page) = self.pages.get(&piece.page) {
                buffer[piece.from..piece.to]
                    .copy_from_slice(&page[piece.within..piece.within + piece.to - piece.from]);
            }
        }
        true
    }

    /// Writes the bytes at `offset`; a gap before them becomes a hole.
    ///
    /// # Panics
    /// When the end does not fit in 64 bits.
    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        let end = offset.checked_add(bytes.len() as u64).expect("the end fits in 64 bits");
        if bytes.is_empty() {
            return;
        }
        let pages = Arc::make_mut(&mut self.pages);
        for piece in pieces(offset, bytes.len()) {
            let page = pages.entry(piece.page).or_insert_with(|| ZERO_PAGE.clone());
            Arc::make_mut(page)[piece.within..piece.within + piece.to - piece.from]
                .copy_from_slice(&bytes[piece.from..piece.to]);
        }
        self.len = self.len.max(end);
    }

    /// Cuts the file, or makes it longer with a hole.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            let pages = Arc::make_mut(&mut self.pages);
            pages.split_off(&len.div_ceil(PAGE_BYTES_64));
            let kept = usize::try_from(len % PAGE_BYTES_64).expect("less than a page");
            if kept > 0
                && let Some(page) = pages.get_mut(&(len / PAGE_BYTES_64))
            {
                Arc::make_mut(page)[kept..].fill(0);
            }
        }
        self.len = len;
    }

    /// Gives every page below `len` its space, and makes a shorter file `len` long.
    pub fn allocate(&mut self, len: u64) {
        let pages = Arc::make_mut(&mut self.pages);
        for page in page_numbers(0, len) {
            pages.entry(page).or_insert_with(|| ZERO_PAGE.clone());
        }
        self.len = self.len.max(len);
    }
}

/// The part of a buffer that falls on one page.
struct Piece {
    page: u64,
    within: usize, // first byte on the page
    from: usize,   // first byte in the buffer
    to: usize,     // end in the buffer
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == len {
            return None;
        }
        let position = offset + from as u64;
        let within = usize::try_from(position % PAGE_BYTES_64).expect("less than a page");
        let to = len.min(from + PAGE_BYTES - within);
        let piece = Piece { page: position / PAGE_BYTES_64, within, from, to };
        from = to;
        Some(piece)
    })
}

fn page_numbers(offset: u64, len: u64) -> std::ops::Range<u64> {
    let first = offset / PAGE_BYTES_64;
    if len == 0 { first..first } else { first..(offset + len).div_ceil(PAGE_BYTES_64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &SparseBytes) -> Vec<u8> {
        let mut buffer = vec![1; usize::try_from(bytes.len()).expect("small")];
        assert!(bytes.read(&mut buffer, 0));
        buffer
    }

    #[test]
    fn holes_are_zeros_and_take_no_space() {
        let mut bytes = SparseBytes::new();
        bytes.write(b"abc", 1 << 41);
        assert_eq!(bytes.len(), (1 << 41) + 3);
        assert_eq!(bytes.space_bytes(), PAGE_BYTES_64);
        let mut buffer = [9; 4];
        assert!(bytes.read(&mut buffer, (1 << 41) - 1));
        assert_eq!(&buffer, b"\0abc");
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut bytes = SparseBytes::new();
        bytes.write(&[7; 10_000], 100);
        let before = bytes.clone();
        bytes.write(&[8; 10], 4090);
        assert_eq!(whole(&before)[4090], 7);
        assert_eq!(whole(&bytes)[4090..4100], [8; 10]);
    }

    #[test]
    fn a_cut_tail_comes_back_as_zeros() {
        let mut bytes = SparseBytes::new();
        bytes.write(&[7; 9000], 0);
        bytes.set_len(4100);
        bytes.set_len(9000);
        let content = whole(&bytes);
        assert!(content[..4100].iter().all(|byte| *byte == 7));
        assert!(content[4100..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn reserved_space_is_not_missing_any_more() {
        let mut bytes = SparseBytes::new();
        bytes.write(&[7; 10], 4096);
        assert_eq!(bytes.missing_space_bytes(0, 8193), 2 * PAGE_BYTES_64);
        bytes.allocate(8193);
        assert_eq!(bytes.missing_space_bytes(0, 8193), 0);
        assert_eq!(bytes.len(), 8193);
        assert_eq!(whole(&bytes)[4096], 7);
    }

    #[test]
    fn a_read_past_the_end_is_refused_whole() {
        let mut bytes = SparseBytes::new();
        bytes.write(b"abc", 0);
        let mut buffer = [9; 4];
        assert!(!bytes.read(&mut buffer, 0));
        assert!(!bytes.read(&mut buffer, u64::MAX));
        assert_eq!(buffer, [9; 4]);
    }
}
