//! Elements that never move and are never freed while the arena lives, so that a reader may keep
//! an index across any change; what an element holds is re-checked under its latch.
//!
//! A chunk is about as large as a 32nd to a 64th of all before it. So a small database is opened without
//! making elements that it will never use, a large one has hardly more than it uses, whoever needs the
//! first element of a chunk waits no longer than it takes to make that part, and the words that find an
//! element stay in the processor's cache.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::advice::ask_for_large_pages;

const FIRST_CHUNK: usize = 16;
/// So many chunks are of one size; the next have twice as many elements.
const CHUNKS_OF_A_SIZE: usize = 32;
/// Elements of all chunks of the first size.
const FIRST_SIZE: usize = FIRST_CHUNK * CHUNKS_OF_A_SIZE;
/// As many as any number of 32 bits needs.
const CHUNKS: usize = CHUNKS_OF_A_SIZE * (33 - FIRST_SIZE.ilog2() as usize);

/// See the module.
pub(crate) struct Arena<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    /// Indexes handed out so far, and those given back. Held for a few instructions.
    indexes: CachePadded<Mutex<Indexes>>,
}

struct Indexes {
    next: u32,
    free: Vec<u32>,
}

/// The chunk of an index, and where in it.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST_SIZE;
    let size = (shifted / FIRST_SIZE).ilog2() as usize;
    let inside = shifted - (FIRST_SIZE << size);
    let len = chunk_len(size * CHUNKS_OF_A_SIZE);
    (size * CHUNKS_OF_A_SIZE + inside / len, inside % len)
}

/// Elements of a chunk.
#[inline]
fn chunk_len(chunk: usize) -> usize {
    FIRST_CHUNK << (chunk / CHUNKS_OF_A_SIZE)
}

impl<T: Default> Arena<T> {
    /// An empty arena. Index 0 is never handed out: it means *none*.
    pub(crate) fn new() -> Arena<T> {
        let arena = Arena {
            chunks: [const { OnceLock::new() }; CHUNKS],
            indexes: CachePadded::new(Mutex::new(Indexes { next: 0, free: Vec::new() })),
        };
        arena.add();
        arena
    }

    /// An index that nobody uses: new, or given back before.
    pub(crate) fn add(&self) -> u32 {
        let mut indexes = self.indexes.lock();
        if let Some(index) = indexes.free.pop() {
            return index;
        }
        let index = indexes.next;
        indexes.next += 1;
        let (chunk, _) = locate(index);
        self.chunks[chunk].get_or_init(|| new_chunk(chunk_len(chunk)));
        index
    }

    /// Gives an index back. Readers may still look at it.
    pub(crate) fn give_back(&self, index: u32) {
        self.indexes.lock().free.push(index);
    }

    /// One more than the highest index handed out.
    pub(crate) fn len(&self) -> u32 {
        self.indexes.lock().next
    }

    /// Indexes handed out and not given back, index 0 not counted.
    pub(crate) fn in_use(&self) -> u64 {
        let indexes = self.indexes.lock();
        u64::from(indexes.next) - indexes.free.len() as u64 - 1
    }

    /// Elements that have been made, in use or not: what the arena takes memory for.
    pub(crate) fn made(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.get().map_or(0, |chunk| chunk.len())).sum()
    }

    /// The element at `index`, which [`add`](Self::add) returned.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let (chunk, at) = locate(index);
        &self.chunks[chunk].get().expect("an index comes from this arena")[at]
    }

    /// The element at `index`, or none if no such index was ever handed out.
    #[inline]
    pub(crate) fn try_get(&self, index: u32) -> Option<&T> {
        let (chunk, at) = locate(index);
        self.chunks.get(chunk)?.get()?.get(at)
    }
}

/// Elements are reached at random, so their memory had better be in large pages.
fn new_chunk<T: Default>(len: usize) -> Box<[T]> {
    let mut chunk: Vec<T> = Vec::with_capacity(len);
    ask_for_large_pages(chunk.as_mut_ptr().cast(), len * size_of::<T>());
    chunk.resize_with(len, T::default);
    chunk.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn each_index_has_its_own_element() {
        let arena: Arena<AtomicU32> = Arena::new();
        let indexes: Vec<u32> = (0..5000).map(|_| arena.add()).collect();
        for index in &indexes {
            arena.get(*index).store(*index, Ordering::Relaxed);
        }
        for index in indexes {
            assert_eq!(arena.get(index).load(Ordering::Relaxed), index);
        }
    }

    #[test]
    fn an_arena_has_made_hardly_more_elements_than_were_asked_for() {
        let arena: Arena<u8> = Arena::new();
        for asked in 2..200_000 {
            arena.add();
            let spare = arena.made() - asked;
            assert!(spare < FIRST_CHUNK + asked / 16, "{spare} more than {asked}");
        }
    }

    #[test]
    fn the_last_index_of_32_bits_has_a_chunk() {
        let (chunk, at) = locate(u32::MAX);
        assert!(chunk < CHUNKS && at < chunk_len(chunk), "{chunk}, {at}");
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(511), (31, 15));
        assert_eq!(locate(512), (32, 0));
        assert_eq!(locate(512 + 31), (32, 31));
        assert_eq!(locate(512 + 32), (33, 0));
    }

    #[test]
    fn an_index_given_back_is_used_again() {
        let arena: Arena<AtomicU32> = Arena::new();
        let index = arena.add();
        arena.give_back(index);
        assert_eq!(arena.add(), index);
    }

    #[test]
    fn an_index_never_handed_out_has_no_element() {
        let arena: Arena<AtomicU32> = Arena::new();
        assert!(arena.try_get(u32::MAX).is_none());
    }
}
