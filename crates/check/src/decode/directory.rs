//! Root and segments of the directory.

use onrush_lsn::Lsn;

use super::input::Input;
use super::slot::{BlobAddress, SlotNumber};

/// The root: every table, and where its segments are.
#[derive(Debug, Default)]
pub(crate) struct Root {
    pub(crate) next_object: u32,
    pub(crate) tables: Vec<RootTable>,
    pub(crate) large: Large,
}

/// What the root says of large transactions.
#[derive(Debug, Default)]
pub(crate) struct Large {
    /// Numbers below it were given.
    pub(crate) next: u64,
    pub(crate) committed: Vec<Committed>,
    /// Objects that open ones have made: they stand among the tables, under their own numbers.
    pub(crate) private: Vec<u32>,
}

/// A large transaction that was committed, and of which images may hold intents.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) id: u64,
    pub(crate) lsn: Lsn,
    pub(crate) objects: Vec<u32>,
}

impl Large {
    /// Whether the transaction was committed below this LSN, as far as the directory tells.
    pub(crate) fn has_committed(&self, id: u64, below: Lsn) -> bool {
        self.committed.iter().any(|own| own.id == id && own.lsn < below)
    }

    /// Nothing follows as long as there was none.
    fn read(input: &mut Input<'_>) -> Option<Large> {
        if input.is_empty() {
            return Some(Large { next: 1, ..Large::default() });
        }
        let mut large = Large { next: input.varint()?, ..Large::default() };
        for _ in 0..input.varint()? {
            let (id, lsn, count) = (input.varint()?, Lsn(input.varint()?), input.varint()?);
            let mut objects = Vec::new();
            for _ in 0..count {
                objects.push(u32::try_from(input.varint()?).ok()?);
            }
            large.committed.push(Committed { id, lsn, objects });
        }
        for _ in 0..input.varint()? {
            large.private.push(u32::try_from(input.varint()?).ok()?);
        }
        Some(large)
    }
}

/// One table of the root.
#[derive(Debug)]
pub(crate) struct RootTable {
    pub(crate) id: u32,
    pub(crate) object: u32,
    pub(crate) definition: Vec<u8>,
    /// Column, and the mark below which numbers may have been handed out.
    pub(crate) counters: Vec<(u32, u64)>,
    pub(crate) segments: Vec<RootSegment>,
}

/// Where a segment begins, and its bytes.
#[derive(Debug)]
pub(crate) struct RootSegment {
    pub(crate) low: Box<[u8]>,
    pub(crate) place: BlobAddress,
}

/// Reads the root.
pub(crate) fn read_root(bytes: &[u8]) -> Option<Root> {
    let mut input = Input::new(bytes);
    let next_object = input.u32()?;
    let mut tables = Vec::new();
    for _ in 0..input.varint()? {
        let id = input.u32()?;
        let object = input.u32()?;
        let definition = input.counted()?.to_vec();
        let mut counters = Vec::new();
        for _ in 0..input.varint()? {
            counters.push((input.u32()?, input.u64()?));
        }
        let mut segments = Vec::new();
        for _ in 0..input.varint()? {
            let low = input.counted()?.into();
            segments.push(RootSegment { low, place: BlobAddress::read(&mut input)? });
        }
        tables.push(RootTable { id, object, definition, counters, segments });
    }
    let large = Large::read(&mut input)?;
    input.is_empty().then_some(Root { next_object, tables, large })
}

/// Stands in place of a slot where a range with a stock follows.
const STOCK_MARK: u64 = u64::MAX - 1;

/// One leaf of a segment, or a range with a stock; its low fence is a part of the segment's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    /// None: the leaf is empty and has no image, or it is a range with a stock.
    pub(crate) slot: Option<SlotNumber>,
    pub(crate) checksum: u32,
    low_at: u32,
    low_bytes: u16,
}

/// The stock of a range.
#[derive(Debug)]
pub(crate) struct Stock {
    /// Which of the segment's leaves the range is.
    pub(crate) leaf: usize,
    /// Every change of the range below is in the stock.
    pub(crate) flushed_below: Lsn,
    /// The heads of its runs, the oldest first.
    pub(crate) heads: Vec<BlobAddress>,
}

impl Stock {
    fn read(leaf: usize, input: &mut Input<'_>) -> Option<Stock> {
        let flushed_below = Lsn(input.u64()?);
        let mut heads = Vec::new();
        for _ in 0..input.varint()? {
            heads.push(BlobAddress::read(input)?);
        }
        Some(Stock { leaf, flushed_below, heads })
    }
}

/// A segment: its bytes, and the leaves they name.
#[derive(Debug)]
pub(crate) struct Segment {
    bytes: Vec<u8>,
    pub(crate) object: u32,
    pub(crate) leaves: Vec<Leaf>,
    /// Of those of the leaves that are ranges with a stock, in their order.
    pub(crate) stocks: Vec<Stock>,
}

impl Segment {
    /// Reads a segment. `None`: it does not decode.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Segment> {
        let mut input = Input::new(&bytes);
        let object = input.u32()?;
        let count = input.varint()?;
        // A leaf takes 13 bytes at least, a range more, so a wrong count is no reason to take much memory.
        let mut leaves = Vec::with_capacity((bytes.len() / 13).min(count as usize));
        let mut stocks = Vec::new();
        for _ in 0..count {
            let low = input.counted()?;
            let low_at = u32::try_from(input.at() - low.len()).ok()?;
            let low_bytes = u16::try_from(low.len()).ok()?;
            let (mark, checksum) = (input.u64()?, input.u32()?);
            let slot = SlotNumber::or_none(mark).filter(|_| mark != STOCK_MARK);
            if mark == STOCK_MARK {
                stocks.push(Stock::read(leaves.len(), &mut input).filter(|_| checksum == 0)?);
            }
            leaves.push(Leaf { slot, checksum, low_at, low_bytes });
        }
        let whole = input.is_empty() && !leaves.is_empty();
        whole.then_some(Segment { bytes, object, leaves, stocks })
    }

    /// The low fence of a leaf.
    pub(crate) fn low(&self, leaf: usize) -> &[u8] {
        let leaf = &self.leaves[leaf];
        let start = leaf.low_at as usize;
        &self.bytes[start..start + usize::from(leaf.low_bytes)]
    }
}
