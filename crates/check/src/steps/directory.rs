//! A batch of directory segments: read by all threads, their leaves and fences checked, their images
//! put in the order of the disk. Stocks are listed, and read by who checks them.

use crate::decode::directory::{Segment, Stock};
use crate::decode::slot::{BlobAddress, SlotNumber};
use crate::invariant::Invariant;
use crate::pieces;
use crate::steps::catalogue::{Catalogue, CatalogueTable, claim_pages};
use crate::steps::owners::Owners;
use crate::store::Store;

/// A segment to be read: which table, and which of its segments.
pub(crate) type Wanted = (usize, usize);

/// The leaves of some segments.
#[derive(Default)]
pub(crate) struct Batch {
    parts: Vec<Part>,
    /// Every leaf that has an image, by slot.
    pub(crate) images: Vec<Named>,
    /// Every range that has a stock.
    pub(crate) stocks: Vec<NamedStock>,
}

struct Part {
    table: usize,
    segment: Segment,
    /// The low fence of what follows the segment; None at the end of the table.
    high: Option<Box<[u8]>>,
}

/// A leaf's image: where it is, and which leaf of the batch it is for.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) slot: SlotNumber,
    part: u32,
    leaf: u32,
}

/// A range's stock: which of the batch.
#[derive(Clone, Copy)]
pub(crate) struct NamedStock {
    part: u32,
    stock: u32,
}

/// What a leaf of the batch has.
#[derive(Clone, Copy)]
pub(crate) enum Holding {
    Image(Named),
    Stock(NamedStock),
}

/// A leaf as the directory describes it.
#[derive(Clone, Copy)]
pub(crate) struct LeafView<'b> {
    pub(crate) table: usize,
    pub(crate) checksum: u32,
    pub(crate) low: &'b [u8],
    pub(crate) high: Option<&'b [u8]>,
}

impl Batch {
    /// Reads the segments. Those that cannot be read or make no sense have their finding and are
    /// left out.
    pub(crate) fn read(
        store: &Store<'_>,
        owners: &mut Owners,
        catalogue: &Catalogue,
        wanted: &[Wanted],
        dop: usize,
    ) -> Batch {
        let read = pieces::map(dop, wanted, |&(table, number)| {
            read_segment(store, &catalogue.tables[table], number)
        });
        let mut batch = Batch::default();
        for (&(table, number), read) in wanted.iter().zip(read) {
            let Some((segment, slots)) = read else { continue };
            claim_pages(store, owners, &slots);
            let next = catalogue.tables[table].root.segments.get(number + 1);
            let high = next.map(|next| next.low.clone());
            batch.add(store, owners, catalogue, Part { table, segment, high });
        }
        batch.images.sort_unstable_by_key(|named| (named.slot, named.part, named.leaf));
        batch
    }

    fn add(&mut self, store: &Store<'_>, owners: &mut Owners, catalogue: &Catalogue, part: Part) {
        let number = self.parts.len() as u32;
        let stocks = 0..part.segment.stocks.len() as u32;
        self.stocks.extend(stocks.map(|stock| NamedStock { part: number, stock }));
        for (leaf, described) in part.segment.leaves.iter().enumerate() {
            let Some(slot) = described.slot else { continue };
            let (invariant, found) = match store.file_of(slot) {
                Err(found) => (Invariant::SlotExists, format!("{slot}: {found}")),
                Ok(_) if !owners.claim_image(part.table, slot) => (
                    Invariant::SlotOwned,
                    format!("{slot} is named by this table and by another owner"),
                ),
                Ok(_) => {
                    self.images.push(Named { slot, part: number, leaf: leaf as u32 });
                    continue;
                }
            };
            let table = &catalogue.tables[part.table];
            let view = part.view(leaf);
            let finding = store.at_slot(invariant, slot, found).of_table(&table.name());
            store.findings.add(finding.with_keys(range_words(table, view.low, view.high)));
        }
        self.parts.push(part);
    }

    /// The leaf of an image.
    pub(crate) fn leaf(&self, named: Named) -> LeafView<'_> {
        self.parts[named.part as usize].view(named.leaf as usize)
    }

    /// A stock, and its range.
    pub(crate) fn stock(&self, named: NamedStock) -> (&Stock, LeafView<'_>) {
        let part = &self.parts[named.part as usize];
        let stock = &part.segment.stocks[named.stock as usize];
        (stock, part.view(stock.leaf))
    }

    /// Images and stocks as their leaves follow each other.
    pub(crate) fn by_key(&self) -> Vec<Holding> {
        let images =
            self.images.iter().map(|named| (named.part, named.leaf, Holding::Image(*named)));
        let stocks = self
            .stocks
            .iter()
            .map(|named| (named.part, self.stock(*named).0.leaf as u32, Holding::Stock(*named)));
        let mut all: Vec<_> = images.chain(stocks).collect();
        all.sort_unstable_by_key(|(part, leaf, _)| (*part, *leaf));
        all.into_iter().map(|(_, _, holding)| holding).collect()
    }

    /// Table and number of leaves of each segment that was read.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (usize, u64)> {
        self.parts.iter().map(|part| (part.table, part.segment.leaves.len() as u64))
    }
}

impl Part {
    fn view(&self, leaf: usize) -> LeafView<'_> {
        let is_last = leaf + 1 == self.segment.leaves.len();
        LeafView {
            table: self.table,
            checksum: self.segment.leaves[leaf].checksum,
            low: self.segment.low(leaf),
            high: if is_last { self.high.as_deref() } else { Some(self.segment.low(leaf + 1)) },
        }
    }
}

/// A range of keys of a table in words.
pub(crate) fn range_words(table: &CatalogueTable, low: &[u8], high: Option<&[u8]>) -> String {
    match &table.plan {
        Some(plan) => plan.key.range_words(low, high),
        None => format!("keys from bytes {low:02x?} to {high:02x?}"),
    }
}

/// Checks that the segments of a table, as the root names them, cover all keys in order.
pub(crate) fn check_lows(store: &Store<'_>, table: &CatalogueTable) {
    let Some(root) = store.superblock.root else { return };
    let segments = &table.root.segments;
    let found = match segments.first() {
        None => "the table has no segment, and so no place for any key".to_owned(),
        Some(first) if !first.low.is_empty() => {
            "the first segment does not begin at the first key".to_owned()
        }
        Some(_) => match segments.windows(2).position(|pair| pair[0].low >= pair[1].low) {
            Some(at) => format!("segment {at} of the table begins at or above the next one"),
            None => return,
        },
    };
    let finding = store.at_slot(Invariant::FencesMeet, root.first, found);
    store.findings.add(finding.of_table(&table.name()));
}

fn read_segment(
    store: &Store<'_>,
    table: &CatalogueTable,
    number: usize,
) -> Option<(Segment, Vec<SlotNumber>)> {
    let named = &table.root.segments[number];
    let next = table.root.segments.get(number + 1).map(|next| &*next.low);
    let place = named.place;
    let report = |invariant, found: String| {
        let finding = store.at_slot(invariant, place.first, found).of_table(&table.name());
        store.findings.add(finding.with_keys(range_words(table, &named.low, next)));
    };
    let Some((bytes, slots)) = store.read_blob(place) else {
        // What the page's own finding cannot know: whose keys are gone.
        report(Invariant::SegmentDecodes, "the segment cannot be read, see its page".to_owned());
        return None;
    };
    let Some(segment) = Segment::read(bytes) else {
        report(Invariant::SegmentDecodes, "bytes that are no list of leaves".to_owned());
        return None;
    };
    if segment.object != table.root.object {
        let found = format!("a segment of object {}, not {}", segment.object, table.root.object);
        report(Invariant::SegmentDecodes, found);
        return None;
    }
    check_fences(&segment, &named.low, next, &report);
    Some((segment, slots))
}

fn check_fences(
    segment: &Segment,
    low: &[u8],
    next: Option<&[u8]>,
    report: &dyn Fn(Invariant, String),
) {
    let count = segment.leaves.len();
    if segment.low(0) != low {
        let found = "the first leaf does not begin where the root says that the segment does";
        report(Invariant::FencesMeet, found.to_owned());
    }
    if let Some(leaf) = (1..count).find(|leaf| segment.low(leaf - 1) >= segment.low(*leaf)) {
        let found = format!("leaf {leaf} of {count} does not begin above the one before");
        report(Invariant::FencesMeet, found);
    }
    if next.is_some_and(|next| segment.low(count - 1) >= next) {
        let found = "the last leaf begins at or above the next segment";
        report(Invariant::FencesMeet, found.to_owned());
    }
}

/// Bytes of images that a segment of so many bytes names, about.
pub(crate) fn estimated_image_bytes(low: &[u8], place: BlobAddress) -> u64 {
    let leaf_bytes = 13 + low.len().max(4) as u64;
    place.bytes.min(1 << 32) / leaf_bytes * crate::decode::slot::SLOT_BYTES as u64
}
