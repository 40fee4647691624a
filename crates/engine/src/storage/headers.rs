//! What leaves take beside their rows: headers, inner nodes, what is known of stocks; and so how many frames fit into
//! the memory.

use super::Storage;
use super::{Image, Leaf};
use crate::memory::{LargePages, MemoryPlan};
use crate::node::fence::Fence;
use crate::node::inner::InnerNode;
use crate::options::FRAMES_MIN;
use crate::units::LEAF_BYTES;

/// What the allocator takes for a piece beside its bytes, at most.
const PIECE_BYTES: u64 = 16;

/// What stands beside the header of each leaf: the low fence and the high one, the image with its
/// counts, and its place in the directory.
fn beside_header_bytes() -> u64 {
    let fences = 2 * (size_of::<u64>() as u64 + PIECE_BYTES);
    let image = (size_of::<Image>() + 2 * size_of::<usize>()) as u64 + PIECE_BYTES;
    let place_in_directory = size_of::<usize>() as u64;
    fences + image + place_in_directory
}

impl Storage {
    /// Headers of all leaves, in memory or not, with what belongs to each.
    pub(crate) fn header_bytes(&self) -> u64 {
        let headers = (self.leaves.made() * size_of::<Leaf>()) as u64;
        headers + self.leaf_count() * beside_header_bytes()
    }

    pub(crate) fn inner_bytes(&self) -> u64 {
        (self.inners.made() * InnerNode::memory_bytes()) as u64
    }

    /// Frames that fit beside what is known of stocks and, where the memory of the process is divided, beside the
    /// headers of all leaves and the inner nodes. None: their memory does not go back to the system.
    pub(super) fn fitting_frames(&self) -> Option<usize> {
        if self.options.large_pages == LargePages::Require {
            return None;
        }
        let stocks = self.ranges.stock_bytes();
        let (share, beside) = match self.options.memory_bytes {
            Some(memory) => {
                (MemoryPlan::of(memory).leaves, self.header_bytes() + self.inner_bytes() + stocks)
            }
            None => (self.options.leaf_memory_bytes as u64, stocks),
        };
        let fitting = (share.saturating_sub(beside) / LEAF_BYTES as u64) as usize;
        // Below a quarter of the share a table is too large for the memory, and statistics tell so.
        let least = (share / 4 / LEAF_BYTES as u64) as usize;
        Some(fitting.max(least).max(FRAMES_MIN))
    }
}

const _: () = assert!(size_of::<Fence>() <= 32, "a fence is a head and a boxed key");
