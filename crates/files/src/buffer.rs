//! Memory that direct I/O accepts: aligned to a block, as long as whole blocks, all zeros at first.
//!
//! Invariants
//! 1. The address of the first byte is a multiple of [`BLOCK_BYTES`], and stays the same for the
//!    buffer's life.
//! 2. The length is a multiple of [`BLOCK_BYTES`] and never changes.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The unit of direct I/O: offsets, lengths and addresses are multiples of it.
pub const BLOCK_BYTES: usize = 4096;

/// Zeroed memory for direct I/O.
pub struct AlignedBuffer {
    memory: Box<[u8]>, // one block longer than needed, so that an aligned start lies inside
    start: usize,      // of the first aligned byte; fixed, since a box never moves its bytes
    len: usize,
}

impl AlignedBuffer {
    /// Makes a buffer of at least `len_bytes`, rounded up to whole blocks.
    ///
    /// # Panics
    /// When the rounded length does not fit in memory's address range.
    pub fn new(len_bytes: usize) -> AlignedBuffer {
        let len = len_bytes.checked_next_multiple_of(BLOCK_BYTES).expect("length fits in memory");
        let with_space = len.checked_add(BLOCK_BYTES).expect("length fits in memory");
        let memory = vec![0_u8; with_space].into_boxed_slice();
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        assert!(start < BLOCK_BYTES, "an aligned byte lies in the first block");
        AlignedBuffer { memory, start, len }
    }

    /// Copies `bytes` to a new buffer; the rest of the last block is zeros.
    pub fn from_bytes(bytes: &[u8]) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::new(bytes.len());
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl Clone for AlignedBuffer {
    fn clone(&self) -> AlignedBuffer {
        AlignedBuffer::from_bytes(self)
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AlignedBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_rounded_up() {
        for len in [0, 1, 4095, 4096, 4097, 70_000] {
            let buffer = AlignedBuffer::new(len);
            assert_eq!(buffer.as_ptr().align_offset(BLOCK_BYTES), 0);
            assert_eq!(buffer.len(), len.next_multiple_of(BLOCK_BYTES));
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_moved_or_cloned_buffer_keeps_bytes_and_alignment() {
        let first = AlignedBuffer::from_bytes(b"row");
        let moved = Box::new(first);
        let copy = (*moved).clone();
        assert_eq!(copy.as_ptr().align_offset(BLOCK_BYTES), 0);
        assert_eq!(moved.as_ptr().align_offset(BLOCK_BYTES), 0);
        assert_eq!(&copy[..4], b"row\0");
    }
}
