//! Little-endian numbers off the front of some bytes. `None`: the bytes end too early.

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Input<'b> {
        Input { bytes, at: 0 }
    }

    /// Bytes taken so far.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'b [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let taken = self.bytes[self.at..].get(..count)?;
        self.at += count;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.bytes[self.at..].first_chunk::<N>()?;
        self.at += N;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }

    /// An unsigned number of seven bits a byte, lowest first. Also `None` where it takes more than
    /// 64 bits.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Bytes behind their length as a varint.
    pub(crate) fn counted(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }
}

/// Two bytes at a place that is known to be there.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// Four bytes at a place that is known to be there.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Eight bytes at a place that is known to be there.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Sixteen bytes at a place that is known to be there.
#[inline]
pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array_at(bytes, at))
}

#[inline]
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
