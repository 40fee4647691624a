//! One byte a key, compared sixteen at a time: most rows of a leaf are ruled out without a look
//! at their keys.

/// Fingerprints in one chunk; see [`crate::node::leaf`].
pub(crate) const CHUNK: usize = 32;

/// The fingerprint of `key`, from its first and last eight bytes.
#[inline]
pub(crate) fn of(key: &[u8]) -> u8 {
    let first = super::fence::head(key);
    let last = match key.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => first,
    };
    let mixed = (first ^ last.rotate_left(23)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
}

/// Bit `i` is set where `chunk[i] == wanted`.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn matches(chunk: &[u8; CHUNK], wanted: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    // SAFETY: SSE2 is part of every x86-64 processor, and both unaligned loads read 16 of the 32
    // bytes borrowed above. Covered by `every_position_is_found`.
    unsafe {
        let pattern = _mm_set1_epi8(wanted as i8);
        let low = _mm_loadu_si128(chunk.as_ptr().cast());
        let high = _mm_loadu_si128(chunk.as_ptr().add(16).cast());
        let low = _mm_movemask_epi8(_mm_cmpeq_epi8(low, pattern)) as u32;
        let high = _mm_movemask_epi8(_mm_cmpeq_epi8(high, pattern)) as u32;
        low | (high << 16)
    }
}

/// Bit `i` is set where `chunk[i] == wanted`.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn matches(chunk: &[u8; CHUNK], wanted: u8) -> u32 {
    chunk.iter().enumerate().fold(0, |mask, (i, byte)| mask | u32::from(*byte == wanted) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_found() {
        for position in 0..CHUNK {
            let mut chunk = [7u8; CHUNK];
            chunk[position] = 200;
            assert_eq!(matches(&chunk, 200), 1 << position);
            assert_eq!(matches(&chunk, 7), !(1u32 << position));
        }
    }
}
