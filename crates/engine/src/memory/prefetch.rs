//! Asking for memory ahead: a line that is on its way need not be waited for.

/// The processor's cache line, in bytes.
const LINE_BYTES: usize = 64;

/// Asks for the lines of `bytes`. Changes nothing but speed.
#[inline]
pub(crate) fn prefetch<T>(bytes: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = bytes.as_ptr().cast::<i8>();
        let skew = start as usize % LINE_BYTES;
        for offset in (0..size_of_val(bytes) + skew).step_by(LINE_BYTES) {
            // SAFETY: SSE is part of every x86-64 processor, and a prefetch accesses nothing: any
            // address will do. Covered by `bytes_stay_as_they_are`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, LINE_BYTES);
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn bytes_stay_as_they_are() {
        let bytes: Vec<u8> = (0..=255).collect();
        for (from, to) in [(0, 256), (1, 2), (63, 65), (7, 7)] {
            prefetch(&bytes[from..to]);
        }
        assert!(bytes.iter().enumerate().all(|(index, byte)| index == usize::from(*byte)));
    }
}
