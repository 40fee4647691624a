//! Heads of runs: where the images are, and which keys may be in them.

use onrush_lsn::Lsn;
use xxhash_rust::xxh3::xxh3_64;

use super::input::Input;
use super::is_zero;
use super::slot::SlotNumber;

const MAGIC: [u8; 4] = *b"ONRR";
/// Beside the kind: numbers of large transactions follow.
const HAS_INTENTS: u8 = 0x80;
/// Fingerprints are packed; so many zeros follow them, so that four bytes can be read at each of them.
const FILTER_ZEROS: usize = 3;

/// What a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunKind {
    Base,
    /// It may have removals.
    Fragment,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RunHead {
    bytes: Vec<u8>,
    pub(crate) kind: RunKind,
    pub(crate) object: u32,
    /// The highest LSN of its entries.
    pub(crate) newest: Lsn,
    pub(crate) entries: u64,
    /// Bytes of all entries.
    pub(crate) entry_bytes: u64,
    /// Numbers of the large transactions whose intents the run has, ascending.
    pub(crate) owners: Vec<u64>,
    pub(crate) images: Vec<RunImage>,
    keys: Keys,
}

/// One image; its low fence is a part of the head's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunImage {
    pub(crate) slot: SlotNumber,
    pub(crate) checksum: u32,
    low_at: u32,
    low_bytes: u16,
}

/// What is known of the keys, and where in the head it begins.
#[derive(Debug)]
enum Keys {
    Filter(Filter, usize),
    /// The high halves of the hashes, in key order.
    Hashes(usize),
}

impl RunHead {
    /// Reads a head.
    pub(crate) fn read(bytes: Vec<u8>) -> Result<RunHead, &'static str> {
        const SHORT: &str = "the head ends too early";
        let mut input = Input::new(&bytes);
        if input.array().ok_or(SHORT)? != MAGIC {
            return Err("bytes that are no head of a run");
        }
        let kind = input.u8().ok_or(SHORT)?;
        let has_intents = kind & HAS_INTENTS != 0;
        let kind = match kind & !HAS_INTENTS {
            1 => RunKind::Base,
            2 => RunKind::Fragment,
            _ => return Err("a run that is neither a base nor a fragment"),
        };
        let object = input.u32().ok_or(SHORT)?;
        let newest = Lsn(input.u64().ok_or(SHORT)?);
        let entries = input.varint().ok_or(SHORT)?;
        let entry_bytes = input.varint().ok_or(SHORT)?;
        let owners = if has_intents { read_owners(&mut input)? } else { Vec::new() };
        let count = input.varint().ok_or(SHORT)?;
        // As of leaves: an image takes 13 bytes at least.
        let most = bytes.len() / 13;
        let mut images: Vec<RunImage> = Vec::with_capacity(most.min(count as usize));
        let mut last: &[u8] = &[];
        for _ in 0..count {
            let low = input.counted().ok_or(SHORT)?;
            if !images.is_empty() && low <= last {
                return Err("the low fences of the images do not ascend");
            }
            last = low;
            const TOO_LONG: &str = "a low fence longer than a key may be";
            let low_at = u32::try_from(input.at() - low.len()).map_err(|_| TOO_LONG)?;
            let low_bytes = u16::try_from(low.len()).map_err(|_| TOO_LONG)?;
            let slot = SlotNumber(input.u64().ok_or(SHORT)?);
            let checksum = input.u32().ok_or(SHORT)?;
            images.push(RunImage { slot, checksum, low_at, low_bytes });
        }
        if images.is_empty() || entries < images.len() as u64 {
            return Err("a run with fewer entries than images, or without any");
        }
        let keys = match kind {
            RunKind::Base => {
                let filter = Filter::read(&mut input)?;
                Keys::Filter(filter, input.at())
            }
            RunKind::Fragment if entries.checked_mul(4) != Some(input.rest().len() as u64) => {
                return Err("not as many hashes of keys as entries");
            }
            RunKind::Fragment => Keys::Hashes(input.at()),
        };
        Ok(RunHead { kind, object, newest, entries, entry_bytes, owners, images, keys, bytes })
    }

    /// The low fence of an image.
    pub(crate) fn low(&self, image: usize) -> &[u8] {
        let image = &self.images[image];
        let start = image.low_at as usize;
        &self.bytes[start..start + usize::from(image.low_bytes)]
    }

    /// Whether the head says that the run may have the key that is that of its entry number `entry`.
    pub(crate) fn knows(&self, entry: u64, key: &[u8]) -> bool {
        let hash = xxh3_64(key);
        match &self.keys {
            Keys::Filter(filter, at) => filter.may_contain(&self.bytes[*at..], hash),
            Keys::Hashes(at) => {
                let (hashes, _) = self.bytes[*at..].as_chunks::<4>();
                let own = usize::try_from(entry).ok().and_then(|entry| hashes.get(entry));
                own.is_some_and(|own| u64::from(u32::from_le_bytes(*own)) == hash >> 32)
            }
        }
    }
}

fn read_owners(input: &mut Input<'_>) -> Result<Vec<u64>, &'static str> {
    const SHORT: &str = "the head ends too early";
    let count = input.varint().ok_or(SHORT)?;
    let owners = (0..count).map(|_| input.varint().ok_or(SHORT)).collect::<Result<Vec<_>, _>>()?;
    match count > 0 && owners.is_sorted_by(|a, b| a < b) {
        true => Ok(owners),
        false => Err("the numbers of large transactions do not ascend"),
    }
}

/// A binary fuse filter of three positions a key, one in each of three neighbouring segments: the exclusive or of the
/// fingerprints there is the key's own.
#[derive(Debug)]
struct Filter {
    seed: u64,
    /// A power of two.
    segment_length: u32,
    /// Segments in which the first position of a key can be; there are two more.
    first_segments: u32,
    /// Of a fingerprint.
    bits: u32,
}

impl Filter {
    /// Takes the header; the fingerprints are the rest.
    fn read(input: &mut Input<'_>) -> Result<Filter, &'static str> {
        const SHORT: &str = "the filter ends too early";
        let seed = input.u64().ok_or(SHORT)?;
        let segment_length = input.u32().ok_or(SHORT)?;
        let first_segments = input.u32().ok_or(SHORT)?;
        let bits = input.u32().ok_or(SHORT)?;
        if !segment_length.is_power_of_two() || first_segments == 0 || !(4..=10).contains(&bits) {
            return Err("a filter of a shape that none has");
        }
        let segments = first_segments.checked_add(2);
        let positions = segments.and_then(|segments| segments.checked_mul(segment_length));
        let all_bits = positions.map(|positions| u64::from(positions) * u64::from(bits));
        let packed = all_bits.map_or(u64::MAX, |bits| bits.div_ceil(8));
        let rest = input.rest();
        if packed.checked_add(FILTER_ZEROS as u64) != Some(rest.len() as u64) {
            return Err("a filter with too few or too many fingerprints");
        }
        if !is_zero(&rest[rest.len() - FILTER_ZEROS..]) {
            return Err("bytes behind the fingerprints of a filter that are not zero");
        }
        Ok(Filter { seed, segment_length, first_segments, bits })
    }

    fn may_contain(&self, fingerprints: &[u8], key_hash: u64) -> bool {
        let hash = mixed(key_hash.wrapping_add(self.seed));
        let length = u64::from(self.segment_length);
        let firsts = u128::from(self.first_segments) * u128::from(length);
        let first = ((u128::from(hash) * firsts) >> 64) as u64;
        let second = (first + length) ^ (hash >> 18 & (length - 1));
        let third = (first + 2 * length) ^ (hash & (length - 1));
        let mask = (1 << self.bits) - 1;
        let at = |position: u64| {
            let bit = position * u64::from(self.bits);
            let bytes = fingerprints.get((bit / 8) as usize..).and_then(<[u8]>::first_chunk::<4>);
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) >> (bit % 8) & mask)
        };
        at(first) ^ at(second) ^ at(third) == (hash ^ hash >> 32) as u32 & mask
    }
}

/// Another seed is another hash of the same key.
const fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with an image whose low fence is a byte, and so many entries.
    fn head(kind: u8, entries: u8, keys: &[u8]) -> Vec<u8> {
        let mut bytes = [b"ONRR".as_slice(), &[kind], &7u32.to_le_bytes()].concat();
        bytes.extend_from_slice(&99u64.to_le_bytes());
        bytes.extend_from_slice(&[entries, 60, 1, 1, b'k']);
        bytes.extend_from_slice(&5u64.to_le_bytes());
        bytes.extend_from_slice(&6u32.to_le_bytes());
        bytes.extend_from_slice(keys);
        bytes
    }

    /// A filter of three segments of four positions, of 8 bits each, whose fingerprints are all 0.
    fn filter() -> Vec<u8> {
        let numbers = [4u32, 1, 8].map(u32::to_le_bytes).concat();
        [[9; 8].as_slice(), &numbers, &[0; 12 + FILTER_ZEROS]].concat()
    }

    #[test]
    fn a_fragment_knows_its_keys_in_their_order() {
        let keys: [&[u8]; 2] = [b"k", b"key"];
        let hashes: Vec<u8> =
            keys.iter().flat_map(|key| ((xxh3_64(key) >> 32) as u32).to_le_bytes()).collect();
        let head = RunHead::read(head(2, 2, &hashes)).unwrap();
        assert_eq!((head.kind, head.object, head.newest), (RunKind::Fragment, 7, Lsn(99)));
        assert_eq!((head.entries, head.entry_bytes, head.low(0)), (2, 60, b"k".as_slice()));
        assert_eq!((head.images[0].slot, head.images[0].checksum), (SlotNumber(5), 6));
        assert!(head.knows(0, b"k") && head.knows(1, b"key"));
        assert!(!head.knows(0, b"key") && !head.knows(2, b"k") && !head.knows(u64::MAX, b"k"));
    }

    #[test]
    fn a_filter_knows_keys_whose_fingerprints_add_up() {
        let head = RunHead::read(head(1, 3, &filter())).unwrap();
        let known = (0..10_000u32).filter(|key| head.knows(0, &key.to_le_bytes())).count();
        assert!(
            (10..100).contains(&known),
            "one of 256 has the fingerprint 0, not {known} of 10,000"
        );
    }

    #[test]
    fn the_head_of_a_run_with_intents_says_whose_they_are() {
        let mut bytes = head(1, 3, &filter());
        bytes[4] |= HAS_INTENTS;
        bytes.splice(19..19, [2, 5, 7]);
        assert_eq!(RunHead::read(bytes.clone()).unwrap().owners, [5, 7]);
        bytes[21] = 5;
        assert!(RunHead::read(bytes).is_err());
    }

    #[test]
    fn heads_that_end_early_or_say_too_much_do_not_decode() {
        for whole in [head(1, 3, &filter()), head(2, 3, &[0; 12])] {
            assert!(RunHead::read(whole.clone()).is_ok());
            for length in 0..whole.len() {
                assert!(RunHead::read(whole[..length].to_vec()).is_err());
            }
            assert!(RunHead::read([whole.as_slice(), &[0]].concat()).is_err());
            for bit in 0..whole.len() * 8 {
                let mut other = whole.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                if let Ok(head) = RunHead::read(other) {
                    head.knows(1, b"key");
                }
            }
        }
    }
}
