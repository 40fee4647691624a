//! Integer keys made from leased numbers: identity, node-offset, bit-reversed, hash-prefix.
//!
//! Every mapping from number to key is one to one within its range, so keys are unique because
//! leased numbers are. A lease is cut at the end of the range; the numbers beyond give an error,
//! now and for ever, because the counter never goes back.
//!
//! - **identity**: key = start + number, up to the largest value of the column's type.
//! - **node-offset**: key = node x 10^14 + number, numbers below 10^14. The classic scheme takes
//!   10^9; a node would use that up in 17 minutes at a million rows per second, so ours is wider:
//!   three years at that rate, for 92,233 nodes. Databases with different nodes never collide.
//! - **bit-reversed**: the 63 bits of the number in reverse order; never negative. The lowest bits
//!   of the number choose the place, so neighbours in time lie far apart.
//! - **hash-prefix**: bits 55 to 62 are a hash of the number, the lower 55 bits the number itself;
//!   never negative. Unique by the lower bits alone.

use std::ops::Range;

use super::strategy::largest;
use crate::{DataType, KeyStrategy};

/// Keys of one node.
pub(super) const NODE_ROWS: u64 = 100_000_000_000_000;
/// Numbers of bit-reversed: 63 bits.
const REVERSED_END: u64 = 1 << 63;
/// Bits of the number in a hash-prefix key.
const HASHED_NUMBER_BITS: u32 = 55;
const HASHED_END: u64 = 1 << HASHED_NUMBER_BITS;

/// The current block of numbers: `next..end`, already cut to the range.
#[derive(Debug)]
pub(super) struct Counter {
    mapping: Mapping,
    /// First number that the range does not have.
    range_end: u64,
    next: u64,
    end: u64,
}

#[derive(Debug, Clone, Copy)]
enum Mapping {
    /// key = base + number; the sum fits because `range_end` was chosen so.
    Offset {
        base: i64,
    },
    Reversed,
    Hashed,
}

impl Counter {
    pub(super) fn new(strategy: KeyStrategy, data_type: DataType) -> Counter {
        let (mapping, range_end) = match strategy {
            KeyStrategy::Identity { start, .. } => {
                // From start to the largest value, both included: at most 2^64 keys.
                let keys = i128::from(largest(data_type)) - i128::from(start) + 1;
                (Mapping::Offset { base: start }, u64::try_from(keys).unwrap_or(u64::MAX))
            }
            KeyStrategy::NodeOffset { node } => {
                let base = i64::from(node).saturating_mul(NODE_ROWS.cast_signed());
                (Mapping::Offset { base }, NODE_ROWS)
            }
            KeyStrategy::HashPrefix => (Mapping::Hashed, HASHED_END),
            _ => (Mapping::Reversed, REVERSED_END),
        };
        Counter { mapping, range_end, next: 0, end: 0 }
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<i64> {
        if self.next == self.end {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some(match self.mapping {
            // Modulo 2^64 this is exact: start may be negative and number above 2^63.
            Mapping::Offset { base } => base.wrapping_add(number.cast_signed()),
            Mapping::Reversed => (number.reverse_bits() >> 1).cast_signed(),
            Mapping::Hashed => (prefix(number) << HASHED_NUMBER_BITS | number).cast_signed(),
        })
    }

    /// Starts a new block (not empty) and takes its first key.
    pub(super) fn refill(&mut self, range: Range<u64>) -> Result<i64, Box<str>> {
        self.next = range.start;
        self.end = range.end.min(self.range_end).max(range.start);
        self.take().ok_or_else(|| self.reason())
    }

    /// Takes the numbers of the block that made no key, if there are any: it is empty afterwards.
    pub(super) fn give_back(&mut self) -> Option<Range<u64>> {
        let unused = self.next..std::mem::replace(&mut self.end, self.next);
        (!unused.is_empty()).then_some(unused)
    }

    fn reason(&self) -> Box<str> {
        let cure = match self.mapping {
            Mapping::Offset { .. } if self.range_end == NODE_ROWS => "give the column a new node",
            Mapping::Offset { .. } => "use a wider integer type",
            _ => "use another strategy",
        };
        format!("all {} keys of its range are handed out; {cure}", self.range_end).into()
    }
}

/// Eight bits that spread successive numbers evenly (multiplication by 2^64 over the golden ratio).
#[inline]
fn prefix(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56
}
