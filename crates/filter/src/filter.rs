//! A static filter: a binary fuse filter of three positions a key, after Graf and Lemire (2022).
//!
//! Each key has three positions in an array of small fingerprints, in three neighbouring segments of it; the
//! exclusive or of the three is the key's own fingerprint. A key that was never put in matches by chance, once in
//! 2^bits. Building solves the equations by peeling: a position that only one key has is filled last.

use std::num::NonZeroU32;

use thiserror::Error;

use crate::zeroed::Zeroed;

/// More positions than the textbook's, in percent, for each try that found no solution.
const MORE_POSITIONS_PER_TRY_PERCENT: usize = 1;
/// A set of hashes without duplicates needs two or three; more are a defect of this file.
const TRIES_MAX: usize = 200;
/// Bytes in front of the fingerprints, as they are written: seed, segment length, segments, bits.
const HEADER_BYTES: usize = 8 + 4 + 4 + 4;
/// Fingerprints are read four bytes at a time.
const PADDING_BYTES: usize = 3;

/// Bits of a fingerprint: 4 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FingerprintBits(u8);

impl FingerprintBits {
    /// 6 % of the keys that are not there look as if they were.
    pub const LEAST: FingerprintBits = FingerprintBits(4);
    /// 0.1 %.
    pub const MOST: FingerprintBits = FingerprintBits(10);

    /// So many bits; none outside 4 to 10.
    #[must_use]
    pub const fn new(bits: u8) -> Option<FingerprintBits> {
        if bits < Self::LEAST.0 || bits > Self::MOST.0 {
            return None;
        }
        Some(FingerprintBits(bits))
    }

    /// How many.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    const fn mask(self) -> u32 {
        (1 << self.0) - 1
    }
}

/// A filter that was read back and whose parts do not fit each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a filter is damaged: {cause}")]
pub struct DamagedFilter {
    cause: &'static str,
}

/// Where the positions of keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    seed: u64,
    /// A power of two.
    segment_length: NonZeroU32,
    /// Segments in which a key's first position can be; there are two more.
    first_segments: NonZeroU32,
}

impl Shape {
    /// Of so many keys; there are more positions with each try.
    fn new(keys: usize, tries: usize) -> Shape {
        let keys = keys.max(2) as f64;
        let power = (keys.ln() / 3.33_f64.ln() + 2.25).floor().clamp(2.0, 18.0);
        let segment_length = 1_u32 << power as u32;
        let factor = (0.875 + 0.25 * 1_000_000_f64.ln() / keys.ln()).max(1.125);
        let more = 1.0 + (tries * MORE_POSITIONS_PER_TRY_PERCENT) as f64 / 100.0;
        let segments = (keys * factor * more / f64::from(segment_length)).ceil() as u32;
        let one = NonZeroU32::MIN;
        Shape {
            seed: mixed(tries as u64),
            segment_length: NonZeroU32::new(segment_length).unwrap_or(one),
            first_segments: NonZeroU32::new(segments.saturating_sub(2)).unwrap_or(one),
        }
    }

    /// Fingerprints in all.
    fn positions(self) -> Option<usize> {
        let segments = self.first_segments.get().checked_add(2)?;
        usize::try_from(segments.checked_mul(self.segment_length.get())?).ok()
    }

    /// The key's positions, and the hash that its fingerprint is taken from.
    #[inline]
    fn of(self, key_hash: u64) -> ([u32; 3], u64) {
        let hash = mixed(key_hash.wrapping_add(self.seed));
        let length = self.segment_length.get();
        let firsts = u64::from(self.first_segments.get()) * u64::from(length);
        let first = ((u128::from(hash) * u128::from(firsts)) >> 64) as u32;
        let within = length - 1;
        let second = (first + length) ^ ((hash >> 18) as u32 & within);
        let third = (first + 2 * length) ^ (hash as u32 & within);
        ([first, second, third], hash)
    }
}

/// Says of a key that it is certainly not in a set, or that it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    shape: Shape,
    bits: FingerprintBits,
    /// Bit by bit, least significant first; [`PADDING_BYTES`] more than they need.
    fingerprints: Zeroed<u8>,
}

impl Filter {
    /// The filter of the keys with these hashes. Duplicates are allowed.
    ///
    /// Needs 19 bytes of memory a key while it builds.
    ///
    /// # Panics
    /// If no arrangement is found in 200 tries with ever more positions: the hashes are no hashes.
    #[must_use]
    pub fn build(key_hashes: &[u64], bits: FingerprintBits) -> Filter {
        let mut distinct: Vec<u64> = Vec::new();
        for tries in 0..TRIES_MAX {
            let hashes = if tries == 0 { key_hashes } else { &distinct };
            let shape = Shape::new(hashes.len(), tries);
            if let Some(filter) = Filter::try_build(hashes, shape, bits) {
                return filter;
            }
            if tries == 0 {
                // A duplicate can't be peeled. There are none among good hashes of some hundred thousand keys, so they
                // are looked for only now.
                distinct = key_hashes.to_vec();
                distinct.sort_unstable();
                distinct.dedup();
            }
        }
        panic!("no filter of {} keys in {TRIES_MAX} tries", key_hashes.len());
    }

    fn try_build(key_hashes: &[u64], shape: Shape, bits: FingerprintBits) -> Option<Filter> {
        let mut filter = Filter::empty(shape, bits)?;
        let positions = shape.positions()?;
        let mut keys = KeysOfPositions::new(positions);
        for &key_hash in key_hashes {
            let (three, _) = shape.of(key_hash);
            three.into_iter().for_each(|position| keys.add(position, key_hash));
        }
        let mut lonely: Vec<u32> =
            (0..positions as u32).filter(|&position| keys.count(position) == 1).collect();
        // The position that each key had to itself when it was taken; its hash stays in the sum of that position.
        let mut taken: Vec<u32> = Vec::with_capacity(key_hashes.len());
        while let Some(position) = lonely.pop() {
            if keys.count(position) != 1 {
                continue;
            }
            let key_hash = keys.take(position);
            taken.push(position);
            for other in shape.of(key_hash).0.into_iter().filter(|&other| other != position) {
                keys.remove(other, key_hash);
                if keys.count(other) == 1 {
                    lonely.push(other);
                }
            }
        }
        if taken.len() != key_hashes.len() {
            return None;
        }
        for lonely in taken.into_iter().rev() {
            let (three, hash) = shape.of(keys.only(lonely));
            // The lonely one is still zero: nobody who was taken later has it.
            let others = three.into_iter().fold(0, |sum, position| sum ^ filter.at(position));
            filter.set(lonely, others ^ fingerprint(hash, bits));
        }
        Some(filter)
    }

    fn empty(shape: Shape, bits: FingerprintBits) -> Option<Filter> {
        let bytes = fingerprint_bytes(shape, bits)?;
        Some(Filter { shape, bits, fingerprints: Zeroed::new(bytes) })
    }

    /// Whether the key with this hash may be in the set; false is certain.
    #[inline]
    #[must_use]
    pub fn may_contain(&self, key_hash: u64) -> bool {
        let ([first, second, third], hash) = self.shape.of(key_hash);
        self.at(first) ^ self.at(second) ^ self.at(third) == fingerprint(hash, self.bits)
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> FingerprintBits {
        self.bits
    }

    /// Memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Filter>() + self.fingerprints.len()
    }

    /// Appends it as it is written to the disk: little endian, seed of 8 bytes, segment length, first segments and
    /// bits of 4 bytes each, then the fingerprints.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.shape.seed.to_le_bytes());
        bytes.extend_from_slice(&self.shape.segment_length.get().to_le_bytes());
        bytes.extend_from_slice(&self.shape.first_segments.get().to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.bits.get()).to_le_bytes());
        bytes.extend_from_slice(&self.fingerprints);
    }

    /// Reads what [`Filter::write_to`] wrote.
    ///
    /// # Errors
    /// [`DamagedFilter`]: the bytes are too few or too many, or say what no filter has.
    pub fn read_from(bytes: &[u8]) -> Result<Filter, DamagedFilter> {
        let damaged = |cause| DamagedFilter { cause };
        let (header, fingerprints) =
            bytes.split_at_checked(HEADER_BYTES).ok_or(damaged("it has no whole header"))?;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let seed = u64::from(word(0)) | u64::from(word(4)) << 32;
        let length = NonZeroU32::new(word(8)).filter(|length| length.is_power_of_two());
        let segment_length = length.ok_or(damaged("its segments have an impossible length"))?;
        let first_segments = NonZeroU32::new(word(12)).ok_or(damaged("it has no segments"))?;
        let bits = u8::try_from(word(16)).ok().and_then(FingerprintBits::new);
        let bits = bits.ok_or(damaged("its fingerprints have an impossible number of bits"))?;
        let shape = Shape { seed, segment_length, first_segments };
        if fingerprint_bytes(shape, bits) != Some(fingerprints.len()) {
            return Err(damaged("its fingerprints are too few or too many"));
        }
        Ok(Filter { shape, bits, fingerprints: fingerprints.into() })
    }

    #[inline]
    fn at(&self, position: u32) -> u32 {
        let bit = position as usize * usize::from(self.bits.get());
        self.word(bit / 8) >> (bit % 8) & self.bits.mask()
    }

    /// Fills a fingerprint that is zero.
    fn set(&mut self, position: u32, fingerprint: u32) {
        let bit = position as usize * usize::from(self.bits.get());
        let word = self.word(bit / 8) | fingerprint << (bit % 8);
        self.fingerprints[bit / 8..][..4].copy_from_slice(&word.to_le_bytes());
    }

    #[inline]
    fn word(&self, byte: usize) -> u32 {
        let bytes = &self.fingerprints[byte..byte + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

/// How many keys have a position, and the exclusive or of their hashes: with one key, that is its hash.
struct KeysOfPositions {
    counts: Vec<u8>,
    sums: Vec<u64>,
}

impl KeysOfPositions {
    /// A count that went this far stays: the position can't be peeled in this try.
    const MANY: u8 = u8::MAX;

    fn new(positions: usize) -> KeysOfPositions {
        KeysOfPositions { counts: vec![0; positions], sums: vec![0; positions] }
    }

    fn add(&mut self, position: u32, key_hash: u64) {
        let position = position as usize;
        self.counts[position] = self.counts[position].saturating_add(1);
        self.sums[position] ^= key_hash;
    }

    fn remove(&mut self, position: u32, key_hash: u64) {
        let position = position as usize;
        if self.counts[position] != Self::MANY {
            self.counts[position] -= 1;
        }
        self.sums[position] ^= key_hash;
    }

    /// The hash of the only key that is left there; it is counted no more, and stays in the sum.
    fn take(&mut self, position: u32) -> u64 {
        self.counts[position as usize] = 0;
        self.only(position)
    }

    fn count(&self, position: u32) -> u8 {
        self.counts[position as usize]
    }

    fn only(&self, position: u32) -> u64 {
        self.sums[position as usize]
    }
}

fn fingerprint_bytes(shape: Shape, bits: FingerprintBits) -> Option<usize> {
    let all_bits = shape.positions()?.checked_mul(usize::from(bits.get()))?;
    Some(all_bits.div_ceil(8) + PADDING_BYTES)
}

#[inline]
fn fingerprint(hash: u64, bits: FingerprintBits) -> u32 {
    (hash ^ hash >> 32) as u32 & bits.mask()
}

/// A bijection that spreads every bit over all, so that another seed is another hash of the same keys.
#[inline]
const fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}
