//! Key bytes with their first eight bytes as a number, so that most comparisons are one `cmp`.

use std::cmp::Ordering;

/// The first eight bytes of `key`, big endian, padded with zeros: `head(a) < head(b)` implies
/// `a < b`; equal heads decide nothing.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0u8; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

/// Order of two keys whose heads are already known.
#[inline]
pub(crate) fn compare(a_head: u64, a: &[u8], b_head: u64, b: &[u8]) -> Ordering {
    a_head.cmp(&b_head).then_with(|| a.cmp(b))
}

/// A bound between two leaves: the low fence belongs to the leaf, the high fence does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    head: u64,
    bytes: Box<[u8]>,
}

impl Fence {
    pub(crate) fn new(key: &[u8]) -> Fence {
        Fence { head: head(key), bytes: key.into() }
    }

    /// The [`head`] of its key; stands beside the pointer to the bytes, which may be far away.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether `key` is at or above this fence.
    #[inline]
    pub(crate) fn at_or_below(&self, key_head: u64, key: &[u8]) -> bool {
        compare(self.head, &self.bytes, key_head, key) != Ordering::Greater
    }
}

/// The shortest prefix of `right` that is above `left`; both sides of a split stay in order when
/// it separates them. Requires `left < right`.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    debug_assert!(left < right);
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    &right[..(common + 1).min(right.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_order_like_keys(a in proptest::collection::vec(any::<u8>(), 0..20),
                                 b in proptest::collection::vec(any::<u8>(), 0..20)) {
            prop_assert_eq!(compare(head(&a), &a, head(&b), &b), a.cmp(&b));
        }

        #[test]
        fn a_separator_divides_its_neighbours(a in proptest::collection::vec(any::<u8>(), 0..12),
                                              b in proptest::collection::vec(any::<u8>(), 0..12)) {
            prop_assume!(a < b);
            let middle = separator(&a, &b);
            prop_assert!(a.as_slice() < middle && middle <= b.as_slice());
        }
    }
}
