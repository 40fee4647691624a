//! The memory of leaves: one region, cut into frames of 16 KiB.
//!
//! Invariants
//! 1. A frame is owned by one leaf, one pool, or one session's spare; nobody else has its bytes.
//! 2. The region outlives every frame: the pool is dropped after the leaf table.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use onrush_latch::lock_counted;
use onrush_waits::{LatchClass, Recorder};
use parking_lot::Mutex;

use super::region::Region;
use crate::units::LEAF_BYTES;

/// Whether the memory of leaves uses pages of 2 MiB, which saves address translation on random
/// keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LargePages {
    /// Pages of the system's usual size.
    Off,
    /// Ask for large pages and go on without them where the system has none.
    #[default]
    Try,
    /// Fail to open where the system has none reserved.
    Require,
}

/// Bytes of a large page.
pub(crate) const LARGE_PAGE_BYTES: usize = 2 << 20;

/// 16 KiB of memory with one owner.
#[derive(Debug)]
pub(crate) struct Frame {
    bytes: NonNull<[u8; LEAF_BYTES]>,
}

// SAFETY: a frame is the only way to its bytes (invariant 1), so it may move between threads and
// be read by those who share it. Covered by `frames_do_not_overlap`.
unsafe impl Send for Frame {}
// SAFETY: as above; shared access is read-only.
unsafe impl Sync for Frame {}

impl Frame {
    /// A stand-in that owns nothing, for the moment in which two frames change places. Its bytes
    /// are never touched.
    pub(crate) fn none() -> Frame {
        Frame { bytes: NonNull::dangling() }
    }
}

impl Deref for Frame {
    type Target = [u8; LEAF_BYTES];

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: the frame owns these bytes, and the region is mapped as long as it (2).
        unsafe { self.bytes.as_ref() }
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { self.bytes.as_mut() }
    }
}

/// Frames that no leaf uses.
pub(crate) struct FramePool {
    region: Region,
    frames: usize,
    free: CachePadded<Mutex<Free>>,
    /// Copy of the number of free frames, for those who only want to know.
    available: CachePadded<AtomicUsize>,
    /// Frames whose memory was given back to the system.
    retired: Mutex<Vec<Frame>>,
    /// Copy of their number.
    retired_count: AtomicUsize,
}

struct Free {
    given_back: Vec<Frame>,
    /// Frames from here on were never used: their memory is not touched before it is needed.
    untouched: usize,
}

impl FramePool {
    /// Maps memory for `frames` frames; with `prefault` touches all of it now, so that no insert
    /// pays for the first touch.
    ///
    /// # Errors
    /// Not so much memory, or not so many large pages reserved where they are required.
    pub(crate) fn new(
        frames: usize,
        large_pages: LargePages,
        prefault: bool,
    ) -> std::io::Result<FramePool> {
        let region_bytes = frames
            .checked_mul(LEAF_BYTES)
            .and_then(|bytes| bytes.checked_next_multiple_of(LARGE_PAGE_BYTES))
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let region = Region::new(region_bytes, large_pages, prefault)?;
        let free = Free { given_back: Vec::new(), untouched: 0 };
        let free = CachePadded::new(Mutex::new(free));
        let available = CachePadded::new(AtomicUsize::new(frames));
        let (retired, retired_count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        Ok(FramePool { region, frames, free, available, retired, retired_count })
    }

    /// Frames that [`take`](Self::take) can give out right now.
    pub(crate) fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed)
    }

    /// Frames in all, those retired not counted.
    pub(crate) fn frames(&self) -> usize {
        self.frames - self.retired_count.load(Ordering::Relaxed)
    }

    /// Gives the memory of a frame of this pool back to the system: there is one less until it is restored.
    pub(crate) fn retire(&self, frame: Frame) {
        // SAFETY: the frame is the only way to its bytes, and nobody looks at them before it is restored.
        unsafe { self.region.release(frame.bytes.cast(), LEAF_BYTES) };
        let mut retired = self.retired.lock();
        retired.push(frame);
        self.retired_count.store(retired.len(), Ordering::Relaxed);
    }

    /// So many retired frames, if there are, can be taken again. Their bytes are zeros.
    pub(crate) fn restore(&self, frames: usize) {
        for _ in 0..frames {
            let mut retired = self.retired.lock();
            let Some(frame) = retired.pop() else { return };
            self.retired_count.store(retired.len(), Ordering::Relaxed);
            drop(retired);
            self.give_back(frame);
        }
    }

    /// A free frame, if there is one; its bytes are whatever they were.
    pub(crate) fn take(&self, recorder: &Recorder) -> Option<Frame> {
        let mut free = lock_counted(&self.free, recorder, LatchClass::FrameTable);
        let frame = match free.given_back.pop() {
            Some(frame) => frame,
            None if free.untouched < self.frames => {
                let offset = free.untouched * LEAF_BYTES;
                free.untouched += 1;
                // SAFETY: offset + LEAF_BYTES is inside the region, and `untouched` only grows,
                // so this frame was never handed out before.
                Frame { bytes: unsafe { self.region.start().add(offset) }.cast() }
            }
            None => return None,
        };
        self.available.fetch_sub(1, Ordering::Relaxed);
        Some(frame)
    }

    /// Gives a frame of this pool back.
    pub(crate) fn give_back(&self, frame: Frame) {
        let mut free = self.free.lock();
        free.given_back.push(frame);
        // Under the lock, as in `take`: a frame that is taken before it is counted would make the number
        // of free ones wrap around, and whoever looks for one would not evict.
        self.available.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder() -> std::sync::Arc<Recorder> {
        Recorder::new(&onrush_waits::Registry::new(), "test")
    }

    #[test]
    fn frames_do_not_overlap() {
        let pool = FramePool::new(8, LargePages::Off, false).unwrap();
        let mut frames: Vec<Frame> = std::iter::from_fn(|| pool.take(&recorder())).collect();
        assert_eq!(frames.len(), 8);
        for (number, frame) in frames.iter_mut().enumerate() {
            frame.fill(number as u8);
        }
        for (number, frame) in frames.iter().enumerate() {
            assert!(frame.iter().all(|byte| usize::from(*byte) == number));
        }
    }

    #[test]
    fn no_more_frames_are_said_to_be_free_than_there_are() {
        const FRAMES: usize = 2;
        let pool = FramePool::new(FRAMES, LargePages::Off, false).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let recorder = recorder();
                    for _ in 0..50_000 {
                        if let Some(frame) = pool.take(&recorder) {
                            pool.give_back(frame);
                        }
                        assert!(pool.available() <= FRAMES);
                    }
                });
            }
        });
        assert_eq!(pool.available(), FRAMES);
    }

    #[test]
    fn a_frame_that_is_retired_is_not_handed_out_again() {
        let pool = FramePool::new(3, LargePages::Off, false).unwrap();
        let mut kept = pool.take(&recorder()).unwrap();
        kept.fill(7);
        let mut retired = pool.take(&recorder()).unwrap();
        retired.fill(8);
        pool.retire(retired);
        assert_eq!((pool.frames(), pool.available()), (2, 1));
        let last = pool.take(&recorder()).unwrap();
        assert!(pool.take(&recorder()).is_none());
        pool.give_back(last);
        assert!(kept.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_retired_frame_that_is_restored_can_be_taken_again() {
        let pool = FramePool::new(2, LargePages::Try, false).unwrap();
        let retired = pool.take(&recorder()).unwrap();
        let kept = pool.take(&recorder()).unwrap();
        pool.retire(retired);
        pool.restore(9);
        assert_eq!((pool.frames(), pool.available()), (2, 1));
        assert!(pool.take(&recorder()).is_some() && pool.take(&recorder()).is_none());
        pool.give_back(kept);
    }

    #[test]
    fn a_frame_given_back_can_be_taken_again() {
        let pool = FramePool::new(1, LargePages::Try, false).unwrap();
        let frame = pool.take(&recorder()).unwrap();
        assert!(pool.take(&recorder()).is_none());
        pool.give_back(frame);
        assert_eq!(pool.available(), 1);
        assert!(pool.take(&recorder()).is_some());
    }
}
