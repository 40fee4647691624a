//! The frame around a record: its payload length as a varint (7 bits a byte, low bits first), then
//! the payload.
//!
//! Records follow each other without gaps; a block may end anywhere inside one.

/// The longest frame header, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 5;

/// Bytes of the frame header for a payload of that length.
#[inline]
pub(crate) const fn header_bytes(payload_bytes: usize) -> usize {
    match payload_bytes {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => HEADER_BYTES_MAX,
    }
}

/// The frame header, in the first bytes of the array.
#[inline]
pub(crate) fn encode(payload_bytes: usize) -> ([u8; HEADER_BYTES_MAX], usize) {
    let count = header_bytes(payload_bytes);
    // In a register: who reads what was just written byte by byte waits until all writes before it are done.
    let (mut header, mut rest) = (0, payload_bytes as u64);
    for index in 0..count {
        header |= (rest & 0x7f | 0x80) << (8 * index); // 7 bits
        rest >>= 7;
    }
    header ^= 0x80 << (8 * (count - 1));
    let [first, second, third, fourth, fifth, ..] = header.to_le_bytes();
    ([first, second, third, fourth, fifth], count)
}

/// What the start of some bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A record whose payload is `start..end`.
    Whole { start: usize, end: usize },
    /// The record goes on behind these bytes; `need` of them are known to be needed.
    Partial { need: usize },
    /// No length that [`encode`] makes.
    Invalid,
}

/// Looks at the record that `bytes` start with.
pub(crate) fn decode(bytes: &[u8]) -> Frame {
    let mut payload_bytes = 0_usize;
    for (index, byte) in bytes.iter().take(HEADER_BYTES_MAX).enumerate() {
        payload_bytes |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let start = index + 1;
            if header_bytes(payload_bytes) != start {
                return Frame::Invalid;
            }
            let end = start + payload_bytes;
            let whole = end <= bytes.len();
            return if whole { Frame::Whole { start, end } } else { Frame::Partial { need: end } };
        }
    }
    if bytes.len() < HEADER_BYTES_MAX {
        Frame::Partial { need: bytes.len() + 1 }
    } else {
        Frame::Invalid
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_and_never_before_it_is_whole() {
        let lengths = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000];
        // Miri takes minutes for a large one.
        for len in lengths.into_iter().filter(|len| !cfg!(miri) || *len < 0x8000) {
            let (header, count) = encode(len);
            assert_eq!(count, header_bytes(len));
            let mut bytes = header[..count].to_vec();
            for cut in 0..count {
                assert_eq!(decode(&bytes[..cut]), Frame::Partial { need: cut + 1 });
            }
            if len > 0 {
                assert_eq!(decode(&bytes), Frame::Partial { need: count + len });
            }
            bytes.resize(count + len + 3, 0);
            assert_eq!(decode(&bytes), Frame::Whole { start: count, end: count + len });
        }
    }

    #[test]
    fn a_length_in_too_many_bytes_is_invalid() {
        assert_eq!(decode(&[0x80, 0x00]), Frame::Invalid);
        assert_eq!(decode(&[0xff; 8]), Frame::Invalid);
    }
}
