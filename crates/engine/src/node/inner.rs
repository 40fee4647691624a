//! An inner node: children and the separators between them, in memory only.
//!
//! Every field is an atomic word, so that a reader may look while a writer changes the node: what
//! it read counts only if the node's version is the same afterwards. Writers hold the tree's
//! structure mutex, and the version latch while they change words.
//!
//! Invariants
//! 1. Separators ascend; child `i` holds the keys from separator `i` (for `i = 0`: from the
//!    node's own low end) up to separator `i + 1`.
//! 2. A reader never indexes by a word it has not bounded first: torn values give a wrong child,
//!    which the version check or the leaf's fences reject, never a panic.

use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use onrush_latch::VersionLatch;

use super::fence::head;
use crate::memory::prefetch;

/// Children of one node.
pub(crate) const FANOUT: usize = 128;
/// Words for the parts of separators beyond their first eight bytes.
const HEAP_WORDS: usize = 1024;
/// Longest separator in bytes; a key is never longer.
pub(crate) const SEPARATOR_BYTES_MAX: usize = 1024;

/// See the module.
pub(crate) struct InnerNode {
    pub(crate) version: VersionLatch,
    level: AtomicU32,
    count: AtomicU32,
    heap_used: AtomicU32,
    heads: [AtomicU64; FANOUT],
    /// Length of the separator, and the word in the heap where the bytes after the head start.
    spans: [AtomicU64; FANOUT],
    children: [AtomicU32; FANOUT],
    heap: Box<[AtomicU64; HEAP_WORDS]>,
}

/// A node without children, right above the leaves: a search in it leads to leaf 0, which belongs
/// to no table.
impl Default for InnerNode {
    fn default() -> Self {
        InnerNode {
            version: VersionLatch::new(),
            level: AtomicU32::new(1),
            count: AtomicU32::new(0),
            heap_used: AtomicU32::new(0),
            heads: [const { AtomicU64::new(0) }; FANOUT],
            spans: [const { AtomicU64::new(0) }; FANOUT],
            children: [const { AtomicU32::new(0) }; FANOUT],
            heap: Box::new([const { AtomicU64::new(0) }; HEAP_WORDS]),
        }
    }
}

impl InnerNode {
    /// What a node takes.
    pub(crate) const fn memory_bytes() -> usize {
        size_of::<InnerNode>() + HEAP_WORDS * size_of::<AtomicU64>()
    }
}

fn tail_words(len: usize) -> usize {
    len.saturating_sub(8).div_ceil(8)
}

impl InnerNode {
    /// Asks for the lines that a search reads.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(std::slice::from_ref(&self.version));
        prefetch(&self.heads);
    }

    /// 1 above the leaves, and one more for each level.
    pub(crate) fn level(&self) -> u32 {
        self.level.load(Relaxed)
    }

    pub(crate) fn len(&self) -> usize {
        (self.count.load(Relaxed) as usize).min(FANOUT)
    }

    pub(crate) fn child(&self, index: usize) -> u32 {
        self.children[index.min(FANOUT - 1)].load(Relaxed)
    }

    /// Index of the child that holds `key`.
    #[inline]
    pub(crate) fn search(&self, key_head: u64, key: &[u8]) -> usize {
        let count = self.len();
        // The first separator at or above the key's head, among 1..count.
        let (mut low, mut size) = (1usize, count.saturating_sub(1));
        while size > 0 {
            let half = size / 2;
            let below = self.heads[(low + half).min(FANOUT - 1)].load(Relaxed) < key_head;
            // Of random keys no branch would be foretold.
            low = select_unpredictable(below, low + half + 1, low);
            size = select_unpredictable(below, size - half - 1, half);
        }
        while low < count && low < FANOUT && self.heads[low].load(Relaxed) == key_head {
            if self.compare_tail(low, key) == Ordering::Greater {
                break;
            }
            low += 1;
        }
        low - 1
    }

    /// Index of the last child that holds keys below `key`; `None` means above every key.
    pub(crate) fn search_below(&self, key: Option<(u64, &[u8])>) -> usize {
        let count = self.len();
        let Some((key_head, key)) = key else { return count.saturating_sub(1) };
        let mut low = 1;
        while low < count {
            let own = self.heads[low].load(Relaxed);
            let order = own.cmp(&key_head).then_with(|| self.compare_tail(low, key));
            if order != Ordering::Less {
                break;
            }
            low += 1;
        }
        low - 1
    }

    /// Order of separator `index` against `key`, their heads being equal.
    fn compare_tail(&self, index: usize, key: &[u8]) -> Ordering {
        let span = self.spans[index].load(Relaxed);
        let len = ((span & 0xFFFF_FFFF) as usize).min(SEPARATOR_BYTES_MAX);
        if len <= 8 || key.len() <= 8 {
            return len.cmp(&key.len());
        }
        let start = (span >> 32) as usize;
        let rest = &key[8..];
        for (word, piece) in (0..tail_words(len)).zip(rest.chunks(8)) {
            let own = self.heap[(start + word).min(HEAP_WORDS - 1)].load(Relaxed);
            match own.cmp(&head(piece)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        len.cmp(&key.len())
    }

    /// The separator in front of child `index`, for writers; empty for index 0.
    pub(crate) fn separator(&self, index: usize) -> Vec<u8> {
        if index == 0 {
            return Vec::new();
        }
        let span = self.spans[index].load(Relaxed);
        let (len, start) = ((span & 0xFFFF_FFFF) as usize, (span >> 32) as usize);
        let mut bytes = Vec::with_capacity(len + 8);
        bytes.extend_from_slice(&self.heads[index].load(Relaxed).to_be_bytes());
        for word in 0..tail_words(len) {
            bytes.extend_from_slice(&self.heap[start + word].load(Relaxed).to_be_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// Whether one more separator of any length surely fits.
    pub(crate) fn has_space(&self) -> bool {
        let heap = self.heap_used.load(Relaxed) as usize + tail_words(SEPARATOR_BYTES_MAX);
        self.len() < FANOUT && heap <= HEAP_WORDS
    }

    /// Makes this an empty node of `level`. Only for a node that no reader can reach, or under
    /// its version latch.
    pub(crate) fn reset(&self, level: u32) {
        self.level.store(level, Relaxed);
        self.count.store(0, Relaxed);
        self.heap_used.store(0, Relaxed);
    }

    /// Puts `child`, whose keys start at `separator`, at `index`. The caller holds the structure
    /// mutex and either the version latch or the only reference; [`has_space`](Self::has_space).
    pub(crate) fn insert(&self, index: usize, separator: &[u8], child: u32) {
        debug_assert!(self.has_space());
        self.push(index, separator, child);
    }

    fn push(&self, index: usize, separator: &[u8], child: u32) {
        let count = self.len();
        debug_assert!(index <= count && count < FANOUT);
        for to in (index + 1..=count).rev() {
            self.copy_child(to - 1, to);
        }
        let start = self.heap_used.load(Relaxed) as usize;
        for (word, piece) in separator.get(8..).unwrap_or(&[]).chunks(8).enumerate() {
            self.heap[start + word].store(head(piece), Relaxed);
        }
        self.heap_used.store((start + tail_words(separator.len())) as u32, Relaxed);
        self.heads[index].store(head(separator), Relaxed);
        self.spans[index].store(separator.len() as u64 | (start as u64) << 32, Relaxed);
        self.children[index].store(child, Relaxed);
        self.count.store(count as u32 + 1, Relaxed);
    }

    fn copy_child(&self, from: usize, to: usize) {
        self.heads[to].store(self.heads[from].load(Relaxed), Relaxed);
        self.spans[to].store(self.spans[from].load(Relaxed), Relaxed);
        self.children[to].store(self.children[from].load(Relaxed), Relaxed);
    }

    /// Drops the children from `count` on and squeezes the heap. Same rights as
    /// [`insert`](Self::insert).
    pub(crate) fn truncate(&self, count: usize) {
        let mut kept = self.children();
        kept.truncate(count);
        self.rebuild(kept);
    }

    /// Takes the child at `index` out; its keys go to the child on its left. Without one, the first
    /// child begins where the node begins. Same rights as [`insert`](Self::insert).
    pub(crate) fn remove(&self, index: usize) {
        let mut kept = self.children();
        kept.remove(index);
        if let Some((separator, _)) = kept.first_mut() {
            separator.clear();
        }
        self.rebuild(kept);
    }

    /// Whether [`replace_separator`](Self::replace_separator) has space for `separator`.
    pub(crate) fn has_space_instead(&self, index: usize, separator: &[u8]) -> bool {
        let others = self.children().into_iter().enumerate().filter(|(at, _)| *at != index);
        let words: usize = others.map(|(_, (separator, _))| tail_words(separator.len())).sum();
        words + tail_words(separator.len()) <= HEAP_WORDS
    }

    /// Lets the keys of the child at `index` start at `separator`, for which there is
    /// [space](Self::has_space_instead). Same rights as [`insert`](Self::insert).
    pub(crate) fn replace_separator(&self, index: usize, separator: &[u8]) {
        let mut kept = self.children();
        kept[index].0 = separator.to_vec();
        self.rebuild(kept);
    }

    fn children(&self) -> Vec<(Vec<u8>, u32)> {
        (0..self.len()).map(|index| (self.separator(index), self.child(index))).collect()
    }

    fn rebuild(&self, children: Vec<(Vec<u8>, u32)>) {
        self.reset(self.level());
        for (index, (separator, child)) in children.into_iter().enumerate() {
            self.push(index, &separator, child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_search_finds_the_child_whose_range_holds_the_key(
            separators in proptest::collection::btree_set(
                proptest::collection::vec(0u8..4, 1..20), 1..60),
            keys in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..20), 50),
        ) {
            let node = InnerNode::default();
            node.reset(1);
            node.insert(0, &[], 0);
            for (i, separator) in separators.iter().enumerate() {
                node.insert(i + 1, separator, i as u32 + 1);
            }
            for key in &keys {
                let expected = separators.iter().filter(|s| *s <= key).count();
                prop_assert_eq!(node.search(head(key), key), expected);
            }
            for (i, separator) in separators.iter().enumerate() {
                prop_assert_eq!(&node.separator(i + 1), separator);
            }
        }
    }

    proptest! {
        #[test]
        fn without_a_child_its_keys_go_to_the_left_neighbour(
            separators in proptest::collection::btree_set(
                proptest::collection::vec(0u8..4, 1..20), 2..40),
            keys in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..20), 50),
            removed in any::<proptest::sample::Index>(),
        ) {
            let node = InnerNode::default();
            node.reset(1);
            node.insert(0, &[], 0);
            for (i, separator) in separators.iter().enumerate() {
                node.insert(i + 1, separator, i as u32 + 1);
            }
            let removed = removed.index(separators.len()) + 1;
            let expected = |key: &Vec<u8>| {
                let child = separators.iter().filter(|s| *s <= key).count();
                if child == removed { child - 1 } else { child }
            };
            node.remove(removed);
            for key in &keys {
                let found = node.child(node.search(head(key), key));
                prop_assert_eq!(found as usize, expected(key));
            }
        }
    }

    #[test]
    fn without_its_first_child_a_node_begins_with_the_second() {
        let node = InnerNode::default();
        node.reset(1);
        for (index, separator) in [&b""[..], b"k", b"p"].into_iter().enumerate() {
            node.insert(index, separator, index as u32);
        }
        node.remove(0);
        assert_eq!(node.len(), 2);
        assert_eq!(node.child(node.search(head(b"a"), b"a")), 1);
        assert_eq!(node.child(node.search(head(b"q"), b"q")), 2);
    }

    #[test]
    fn a_separator_is_replaced_by_a_longer_one() {
        let node = InnerNode::default();
        node.reset(1);
        for (index, separator) in [&b""[..], b"k", b"p"].into_iter().enumerate() {
            node.insert(index, separator, index as u32);
        }
        let longer = b"n with more than eight bytes";
        assert!(node.has_space_instead(1, longer));
        node.replace_separator(1, longer);
        assert_eq!(node.child(node.search(head(b"l"), b"l")), 0);
        assert_eq!(node.child(node.search(head(b"o"), b"o")), 1);
        assert_eq!(node.separator(1), longer);
    }

    #[test]
    fn truncating_gives_heap_space_back() {
        let node = InnerNode::default();
        node.reset(1);
        let mut count = 0;
        while node.has_space() {
            let separator = [vec![count as u8 + 1; 8], vec![7; 800]].concat();
            node.insert(count, &separator, count as u32);
            count += 1;
        }
        node.truncate(1);
        assert!(node.has_space());
        assert_eq!(node.len(), 1);
    }
}
