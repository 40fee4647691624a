//! The bytes between inserters and disk.
//!
//! Plain memory; the record that meets the end goes on at the start, in two copies. (Two mappings
//! of the same memory would save the second copy once in 64 MiB: not worth a system call that not
//! every system has.)
//!
//! Invariants
//! 1. A byte is written only by the owner of the reservation that covers it, before its permit is
//!    completed.
//! 2. A byte is read only below the completed prefix.
//! 3. A byte is reserved again only after it has been copied out: reservations end below `released
//!    + capacity`.

use std::cell::UnsafeCell;

use onrush_lsn::Lsn;

/// A ring of bytes, addressed by LSN.
pub(crate) struct Ring {
    bytes: Box<[UnsafeCell<u8>]>,
    mask: u64,
}

// SAFETY: invariants 1 to 3 keep writers and readers apart; prefix.rs (loom) and tests/appends.rs
// cover them.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `capacity_bytes`, a power of two. Its memory is touched here, so that no insert
    /// pays for it.
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        assert!(capacity_bytes.is_power_of_two());
        let mut bytes = vec![0_u8; capacity_bytes].into_boxed_slice();
        for page in bytes.chunks_mut(4096) {
            *std::hint::black_box(&mut page[0]) = 0;
        }
        // SAFETY: UnsafeCell<u8> has the layout of u8, and the box is ours alone. Covered by the
        // test below.
        let bytes = unsafe { Box::from_raw(Box::into_raw(bytes) as *mut [UnsafeCell<u8>]) };
        Self { bytes, mask: capacity_bytes as u64 - 1 }
    }

    #[inline]
    fn index(&self, lsn: Lsn) -> usize {
        // Below the capacity, which is a usize.
        (lsn.0 & self.mask) as usize
    }

    /// Copies `source` to the bytes from `lsn`.
    ///
    /// # Safety
    /// The caller owns `[lsn, lsn + source.len())` by a reservation that is not complete yet.
    #[inline]
    pub(crate) unsafe fn write(&self, lsn: Lsn, source: &[u8]) {
        let start = self.index(lsn);
        let first = source.len().min(self.bytes.len() - start);
        let (head, rest) = source.split_at(first);
        let base = UnsafeCell::raw_get(self.bytes.as_ptr());
        // SAFETY: both ranges lie inside the box (`first` stops at its end, and a record is smaller
        // than the ring), and nobody else touches them (the caller's promise). Covered by
        // tests/appends.rs.
        unsafe {
            std::ptr::copy_nonoverlapping(head.as_ptr(), base.add(start), head.len());
            if !rest.is_empty() {
                std::ptr::copy_nonoverlapping(rest.as_ptr(), base, rest.len());
            }
        }
    }

    /// Copies the bytes from `lsn` to `target`.
    ///
    /// # Safety
    /// `[lsn, lsn + target.len())` is below the completed prefix and not released.
    pub(crate) unsafe fn read(&self, lsn: Lsn, target: &mut [u8]) {
        let start = self.index(lsn);
        let first = target.len().min(self.bytes.len() - start);
        let (head, rest) = target.split_at_mut(first);
        let base = UnsafeCell::raw_get(self.bytes.as_ptr());
        // SAFETY: both ranges lie inside the box, and nobody writes them (the caller's promise).
        // Covered by tests/appends.rs.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(start), head.as_mut_ptr(), head.len());
            std::ptr::copy_nonoverlapping(base, rest.as_mut_ptr(), rest.len());
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Ring({} bytes)", self.bytes.len())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_record_across_the_end_comes_back_whole() {
        let ring = Ring::new(16);
        let record: Vec<u8> = (1..=10).collect();
        for lsn in (0..40).map(Lsn) {
            let mut copy = [0; 10];
            // SAFETY: one thread; nothing else uses the ring.
            unsafe {
                ring.write(lsn, &record);
                ring.read(lsn, &mut copy);
            }
            assert_eq!(copy[..], record);
        }
    }
}
