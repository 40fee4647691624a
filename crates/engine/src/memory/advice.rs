//! Asking the system for large pages: fewer address translations where memory is touched at
//! random.

/// Asks for large pages in `len` bytes at `start`, of which nothing is promised: systems without
/// them refuse, which changes nothing but speed. Takes effect on memory not touched yet.
pub(super) fn ask_for_large_pages(start: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    {
        const LARGE: usize = 2 << 20;
        let address = start as usize;
        let first = address.next_multiple_of(LARGE);
        let end = (address + len) / LARGE * LARGE;
        if first < end {
            let inside = start.wrapping_add(first - address).cast();
            let advice = rustix::mm::Advice::LinuxHugepage;
            // SAFETY: the range is inside memory that the caller owns, and the advice changes no
            // content. Covered by `each_place_has_its_own_element`.
            let _ = unsafe { rustix::mm::madvise(inside, end - first, advice) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}
