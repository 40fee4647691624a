//! Memory of a filter or a locator: an array that begins as zeros.
//!
//! A large one is a mapping of its own. These arrays live long, have many sizes and come and go for as long as keys
//! are inserted: in the heap of the allocator they would leave holes, and a process would take twice what they need.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::locator::Line;

/// Arrays from here on are mappings, which end at a page.
const MAPPED_FROM_BYTES: usize = 16 << 10;
/// So many arrays of a process are mappings at most, a quarter of what Linux lets it have; the others are of the
/// allocator.
const MAPPINGS_MAX: usize = 16 << 10;
/// How many there are.
static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

/// What zero bytes are a value of, and what needs no drop.
///
/// # Safety
/// Both hold for the type.
pub(crate) unsafe trait Zero {}

// SAFETY: every byte is a value.
unsafe impl Zero for u8 {}
// SAFETY: it is made of words, of which every pattern is a value, and drops nothing.
unsafe impl Zero for Line {}

/// See the module.
#[derive(Debug)]
pub(crate) struct Zeroed<T: Zero> {
    start: NonNull<T>,
    len: usize,
    is_mapped: bool,
}

// SAFETY: it owns its elements, as a box does.
unsafe impl<T: Zero + Send> Send for Zeroed<T> {}
// SAFETY: as above; it gives references out only as a box does.
unsafe impl<T: Zero + Sync> Sync for Zeroed<T> {}

impl<T: Zero> Zeroed<T> {
    pub(crate) fn new(len: usize) -> Zeroed<T> {
        let layout = layout::<T>(len);
        if layout.size() >= MAPPED_FROM_BYTES
            && let Some(start) = map(layout.size())
        {
            return Zeroed { start: start.cast(), len, is_mapped: true };
        }
        if layout.size() == 0 {
            return Zeroed { start: NonNull::dangling(), len, is_mapped: false };
        }
        // SAFETY: the size is not zero. Covered, with all below, by `small_and_large_arrays_begin_as_zeros`.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start.cast()) else { handle_alloc_error(layout) };
        Zeroed { start, len, is_mapped: false }
    }
}

fn layout<T>(len: usize) -> Layout {
    Layout::array::<T>(len).expect("no filter has as many bytes as there are addresses")
}

impl<T: Zero> Drop for Zeroed<T> {
    fn drop(&mut self) {
        let layout = layout::<T>(self.len);
        if self.is_mapped {
            unmap(self.start.cast(), layout.size());
        } else if layout.size() > 0 {
            // SAFETY: `new` allocated it with this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Zero> Deref for Zeroed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many elements begin there, aligned and all values, since they began as zeros.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zero> DerefMut for Zeroed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; whoever has it exclusively has its elements so.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Clone for Zeroed<u8> {
    fn clone(&self) -> Self {
        Zeroed::from(&**self)
    }
}

impl From<&[u8]> for Zeroed<u8> {
    fn from(bytes: &[u8]) -> Self {
        let mut copy = Zeroed::new(bytes.len());
        copy.copy_from_slice(bytes);
        copy
    }
}

impl PartialEq for Zeroed<u8> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Zeroed<u8> {}

/// A new mapping of zeros; None if there are as many as there may be, or the system has no more. Miri knows none.
#[cfg(not(miri))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    if MAPPINGS.fetch_add(1, Ordering::Relaxed) >= MAPPINGS_MAX {
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
    let start =
        unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) };
    let start = start.ok().and_then(|start| NonNull::new(start.cast()));
    if start.is_none() {
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    }
    start
}

#[cfg(not(miri))]
fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the mapping was made by `map` with this length, and its owner is dropped.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
    MAPPINGS.fetch_sub(1, Ordering::Relaxed);
}

#[cfg(miri)]
fn map(_: usize) -> Option<NonNull<u8>> {
    let _ = (&MAPPINGS, MAPPINGS_MAX, Ordering::Relaxed);
    None
}

#[cfg(miri)]
fn unmap(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it knows no mappings")]
    fn more_arrays_than_there_may_be_mappings_are_of_the_allocator() {
        let arrays: Vec<_> =
            (0..MAPPINGS_MAX + 2).map(|_| Zeroed::<u8>::new(MAPPED_FROM_BYTES)).collect();
        assert!(arrays.iter().any(|array| !array.is_mapped));
        drop(arrays);
        assert!(Zeroed::<u8>::new(MAPPED_FROM_BYTES).is_mapped, "there is space for one again");
    }

    #[test]
    fn small_and_large_arrays_begin_as_zeros() {
        for len in [0, 1, 1000, MAPPED_FROM_BYTES - 1, MAPPED_FROM_BYTES, 1 << 20] {
            let mut bytes = Zeroed::<u8>::new(len);
            assert_eq!(bytes.len(), len);
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            assert!(bytes.clone() == bytes, "a copy of {len} bytes has the same");
        }
    }
}
