//! How the memory of a process is divided: one number in, a share for each part out.
//!
//! Beside the life of an insert. What follows the size of the tables (leaf headers, inner nodes, the
//! directory) has its share together with the frames of leaves: where there is more of it, there are fewer
//! frames ([`FramePool::retire`](super::FramePool::retire)). Figures: `docs/memory.md`.

/// The least that can be divided.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// The shares of `memory_bytes`, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryPlan {
    /// Frames of leaves, with the headers of all leaves, inner nodes and the directory.
    pub leaves: u64,
    /// The ring between inserters and the log's device.
    pub log_ring: u64,
    /// Images on their way to disk, and batches of rows that are redone.
    pub work: u64,
    /// What rows were before, for open snapshots.
    pub old_versions: u64,
    /// Changes of open transactions.
    pub transactions: u64,
    /// Queries.
    pub queries: u64,
    /// Connections of clients.
    pub connections: u64,
}

impl MemoryPlan {
    /// Divides `memory_bytes`; the shares add up to it.
    #[must_use]
    pub fn of(memory_bytes: u64) -> MemoryPlan {
        let ring = (memory_bytes / 32).clamp(1 << 20, 64 << 20);
        let log_ring = 1 << ring.ilog2();
        let sixteenth = memory_bytes / 16;
        let (work, old_versions, transactions) = (sixteenth, sixteenth, sixteenth);
        let (queries, connections) = (sixteenth * 2, sixteenth);
        let others = log_ring + work + old_versions + transactions + queries + connections;
        let leaves = memory_bytes.saturating_sub(others);
        MemoryPlan { leaves, log_ring, work, old_versions, transactions, queries, connections }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up_to_the_memory() {
        for memory in [MEMORY_BYTES_MIN, 100_000_000, 1 << 30, 24 << 30, 1 << 40] {
            let plan = MemoryPlan::of(memory);
            let MemoryPlan { leaves, log_ring, work, old_versions, .. } = plan;
            let MemoryPlan { transactions, queries, connections, .. } = plan;
            let sum =
                leaves + log_ring + work + old_versions + transactions + queries + connections;
            assert_eq!(sum, memory);
            assert!(leaves * 2 > memory, "leaves have {leaves} of {memory}");
            assert!(log_ring.is_power_of_two());
        }
    }
}
