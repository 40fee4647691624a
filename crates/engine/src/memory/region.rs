//! Memory from the system in one piece, for frames.

use std::ptr::NonNull;

use super::frame::LargePages;

/// One piece of memory, given back when dropped.
pub(super) struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pointer is only handed out, and given back on drop; what is done with the memory is up to
// whoever has the region.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// `bytes` of memory, a multiple of a large page. With `prefault` all of it is touched now.
    pub(super) fn new(
        bytes: usize,
        large_pages: LargePages,
        prefault: bool,
    ) -> std::io::Result<Region> {
        let start = take(bytes, large_pages, prefault)?;
        Ok(Region { start, bytes })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Gives the memory of `bytes` at `start` back to the system, whatever is in it; it may be touched
    /// again. Whether the system takes it is a matter of its own: large pages that are reserved stay.
    ///
    /// # Safety
    /// The range is inside the region, and nobody uses what is in it.
    pub(super) unsafe fn release(&self, start: NonNull<u8>, bytes: usize) {
        debug_assert!(start >= self.start && bytes <= self.bytes);
        // SAFETY: what the caller promises.
        unsafe { release(start, bytes) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        give_back(self.start, self.bytes);
    }
}

#[cfg(not(miri))]
use mapped::{give_back, release, take};
#[cfg(miri)]
use plain::{give_back, release, take};

/// Mappings of the system.
#[cfg(not(miri))]
mod mapped {
    use std::ptr::NonNull;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::LargePages;

    pub(super) fn take(
        bytes: usize,
        large_pages: LargePages,
        prefault: bool,
    ) -> std::io::Result<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | mapping_flags(large_pages);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        // Covered, with those below, by `frames_do_not_overlap`.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        #[cfg(target_os = "linux")]
        {
            let advice = match large_pages {
                LargePages::Off => Advice::LinuxNoHugepage,
                LargePages::Try | LargePages::Require => Advice::LinuxHugepage,
            };
            // SAFETY: the range is the mapping made above. Systems without large pages refuse,
            // which changes nothing but speed.
            let _ = unsafe { madvise(start, bytes, advice) };
        }
        if prefault {
            #[cfg(target_os = "linux")]
            // SAFETY: the range is the mapping made above; touching it changes no content.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxPopulateWrite) };
        }
        Ok(NonNull::new(start.cast()).expect("a mapping is never at address 0"))
    }

    /// Large pages are taken from the system's reserve now: without that promise the first touch of a
    /// page that is not there would end the process. Other memory is taken when it is touched.
    fn mapping_flags(large_pages: LargePages) -> MapFlags {
        match large_pages {
            #[cfg(target_os = "linux")]
            LargePages::Require => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            _ => MapFlags::NORESERVE,
        }
    }

    pub(super) unsafe fn release(start: NonNull<u8>, bytes: usize) {
        #[cfg(target_os = "linux")]
        // SAFETY: the caller owns the range, and nobody reads it before it is written again. Covered by
        // `a_frame_that_is_retired_is_not_handed_out_again`.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontNeed) };
        #[cfg(not(target_os = "linux"))]
        let _ = (start, bytes);
    }

    pub(super) fn give_back(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the mapping was made by `take` with this length, and its owner is dropped.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

/// Memory of the allocator: Miri knows no mappings.
#[cfg(miri)]
mod plain {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::io::ErrorKind;
    use std::ptr::NonNull;

    use super::LargePages;
    use crate::memory::LARGE_PAGE_BYTES;

    fn layout(bytes: usize) -> std::io::Result<Layout> {
        Layout::from_size_align(bytes, LARGE_PAGE_BYTES).map_err(|_| ErrorKind::OutOfMemory.into())
    }

    pub(super) fn take(bytes: usize, _: LargePages, _: bool) -> std::io::Result<NonNull<u8>> {
        // SAFETY: pools have at least one frame, so the size is not zero.
        let start = unsafe { alloc_zeroed(layout(bytes)?) };
        NonNull::new(start).ok_or_else(|| ErrorKind::OutOfMemory.into())
    }

    pub(super) unsafe fn release(_: NonNull<u8>, _: usize) {}

    pub(super) fn give_back(start: NonNull<u8>, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: the memory was allocated by `take` with this layout.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}
