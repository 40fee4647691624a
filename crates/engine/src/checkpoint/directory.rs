//! The directory: which image holds which key range, table by table.
//! Byte by byte: `docs/data-file.md`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use onrush_log::Lsn;

use super::Store;
use crate::error::{Damage, Error, Result};
use crate::logging::{push_varint, take_varint};
use crate::node::leaf::LargeOwner;
use crate::space::{Blob, BlobAddress, Cursor, DataFiles, SlotId, Space};
use crate::status::LargeTable;
use crate::storage::{Image, LeafState, Run, RunHead, RunKeys, Stock, read_head};
use crate::tree::LeafDescription;
use crate::units::ObjectId;

/// Entries of a full segment; one with half as many again is divided.
pub(super) const SEGMENT_ENTRIES: usize = 256;

/// The directory of one checkpoint. Never changed; dropping it frees what only it kept.
#[derive(Default)]
pub(crate) struct Directory {
    pub(super) tables: BTreeMap<u32, TableDirectory>,
    pub(super) next_object: u32,
    pub(super) large: LargeTable,
    pub(super) root: Option<Blob>,
}

/// One table in the directory.
pub(crate) struct TableDirectory {
    pub(super) object: ObjectId,
    pub(super) definition: Vec<u8>,
    pub(super) counters: Vec<(u32, u64)>,
    pub(super) segments: Vec<Arc<Segment>>,
}

/// The leaves of one key range.
pub(crate) struct Segment {
    pub(super) low: Box<[u8]>,
    /// Keeps the slots; in key order. Boxed, because a vector made of the entries in place
    /// would keep their capacity for as long as the segment lives.
    #[expect(dead_code, reason = "held for its slots")]
    rows: Box<[StoredRows]>,
    blob: Blob,
}

/// A leaf in a segment, or a range with a stock.
pub(crate) struct SegmentEntry {
    pub(super) low: Box<[u8]>,
    pub(super) rows: StoredRows,
}

/// Where the rows are.
#[derive(Clone)]
pub(super) enum StoredRows {
    /// Nowhere: there are none.
    None,
    Image(Arc<Image>),
    Stock(Arc<Stock>),
}

impl StoredRows {
    /// Of a latched leaf, or of the range that it is the first leaf of.
    pub(super) fn of(leaf: &LeafState) -> StoredRows {
        match (&leaf.range, &leaf.image) {
            (Some(range), _) => {
                let stock = range.stock();
                stock.runs().for_each(|run| run.set_named());
                StoredRows::Stock(stock)
            }
            (None, Some(image)) => StoredRows::Image(Arc::clone(image)),
            (None, None) => StoredRows::None,
        }
    }

    fn push(&self, out: &mut Vec<u8>) {
        let (slot, checksum) = match self {
            StoredRows::None => (SlotId::to_raw_or_none(None), 0),
            StoredRows::Image(image) => (image.slot().to_raw(), image.checksum()),
            StoredRows::Stock(_) => (SlotId::RAW_STOCK, 0),
        };
        out.extend_from_slice(&slot.to_le_bytes());
        out.extend_from_slice(&checksum.to_le_bytes());
        if let StoredRows::Stock(stock) = self {
            out.extend_from_slice(&stock.flushed_below().0.to_le_bytes());
            let runs: Vec<_> = stock.runs().collect();
            push_varint(runs.len() as u64, out);
            // The oldest first.
            runs.iter().rev().for_each(|run| push_address(run.address(), out));
        }
    }
}

impl SegmentEntry {
    /// The only leaf of an empty table.
    pub(super) fn empty() -> SegmentEntry {
        SegmentEntry { low: Box::default(), rows: StoredRows::None }
    }
}

impl Segment {
    /// Writes the entries of one key range; not durable before the data files are synced.
    pub(super) fn write(
        store: &Store,
        cursor: &mut Cursor,
        object: ObjectId,
        entries: Vec<SegmentEntry>,
    ) -> Result<Segment> {
        let mut bytes = object.number().to_le_bytes().to_vec();
        push_varint(entries.len() as u64, &mut bytes);
        for entry in &entries {
            push_varint(entry.low.len() as u64, &mut bytes);
            bytes.extend_from_slice(&entry.low);
            entry.rows.push(&mut bytes);
        }
        let blob = Blob::write(&store.space, cursor, store.database_id, &bytes)
            .map_err(|error| store.stop_unless_full(error))?;
        let low = entries.first().map_or_else(Box::default, |entry| entry.low.clone());
        let rows = entries.into_iter().map(|entry| entry.rows).collect();
        Ok(Segment { low, rows, blob })
    }
}

impl Directory {
    /// Writes the root: tables, counters, and where their segments are.
    pub(super) fn write_root(&mut self, store: &Store) -> Result<BlobAddress> {
        let mut bytes = self.next_object.to_le_bytes().to_vec();
        push_varint(self.tables.len() as u64, &mut bytes);
        for (id, table) in &self.tables {
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&table.object.number().to_le_bytes());
            push_bytes(&table.definition, &mut bytes);
            push_varint(table.counters.len() as u64, &mut bytes);
            for (column, mark) in &table.counters {
                bytes.extend_from_slice(&column.to_le_bytes());
                bytes.extend_from_slice(&mark.to_le_bytes());
            }
            push_varint(table.segments.len() as u64, &mut bytes);
            for segment in &table.segments {
                push_bytes(&segment.low, &mut bytes);
                push_address(segment.blob.address(), &mut bytes);
            }
        }
        push_large(&self.large, &mut bytes);
        let mut cursor = Cursor::default();
        let blob = Blob::write(&store.space, &mut cursor, store.database_id, &bytes)
            .map_err(|error| store.stop_unless_full(error))?;
        let address = blob.address();
        self.root = Some(blob);
        Ok(address)
    }
}

/// What is known of large transactions; nothing as long as there was none.
fn push_large(large: &LargeTable, out: &mut Vec<u8>) {
    if large.next <= 1 {
        return;
    }
    push_varint(large.next, out);
    push_varint(large.committed.len() as u64, out);
    for (id, lsn, objects) in &large.committed {
        push_varint(*id, out);
        push_varint(lsn.0, out);
        push_varint(objects.len() as u64, out);
        objects.iter().for_each(|object| push_varint(u64::from(object.number()), out));
    }
    push_varint(large.private.len() as u64, out);
    large.private.iter().for_each(|object| push_varint(u64::from(object.number()), out));
}

fn take_large(from: &mut &[u8]) -> Option<LargeTable> {
    if from.is_empty() {
        return Some(LargeTable::default());
    }
    let mut large = LargeTable { next: take_varint(from)?, ..LargeTable::default() };
    for _ in 0..take_varint(from)? {
        let (id, lsn) = (take_varint(from)?, Lsn(take_varint(from)?));
        let mut objects = Vec::new();
        for _ in 0..take_varint(from)? {
            objects.push(ObjectId::new(u32::try_from(take_varint(from)?).ok()?)?);
        }
        if id >= large.next || large.next > LargeOwner::IDS {
            return None;
        }
        large.committed.push((id, lsn, objects));
    }
    for _ in 0..take_varint(from)? {
        large.private.push(ObjectId::new(u32::try_from(take_varint(from)?).ok()?)?);
    }
    Some(large)
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    push_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn take_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(take_varint(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*bytes)
}

/// A blob's address as it stands in roots and superblocks: slot, bytes, checksum.
pub(super) fn push_address(address: BlobAddress, out: &mut Vec<u8>) {
    out.extend_from_slice(&address.first.to_raw().to_le_bytes());
    out.extend_from_slice(&address.bytes.to_le_bytes());
    out.extend_from_slice(&address.checksum.to_le_bytes());
}

/// Reads what [`push_address`] wrote.
pub(super) fn take_address(from: &mut &[u8]) -> Option<BlobAddress> {
    let first = SlotId::from_raw(u64::from_le_bytes(take_array(from)?))?;
    let bytes = u64::from_le_bytes(take_array(from)?);
    Some(BlobAddress { first, bytes, checksum: u32::from_le_bytes(take_array(from)?) })
}

/// The directory as read at open, before its slots have owners.
pub(crate) struct Root {
    pub(crate) next_object: u32,
    pub(crate) tables: Vec<RootTable>,
    large: LargeTable,
    address: BlobAddress,
    slots: Vec<SlotId>,
}

/// One table of a root.
pub(crate) struct RootTable {
    pub(crate) id: u32,
    pub(crate) object: ObjectId,
    pub(crate) definition: Vec<u8>,
    pub(crate) counters: Vec<(u32, u64)>,
    segments: Vec<RootSegment>,
}

struct RootSegment {
    low: Box<[u8]>,
    address: BlobAddress,
    slots: Vec<SlotId>,
    entries: Vec<(Box<[u8]>, RootRows)>,
}

/// Where the rows of a leaf or a range are, before its slots have owners.
enum RootRows {
    None,
    Image(SlotId, u32),
    Stock { flushed_below: Lsn, runs: Vec<RootRun> },
}

struct RootRun {
    address: BlobAddress,
    slots: Vec<SlotId>,
    read: Option<(RunHead, RunKeys)>,
}

impl RootRun {
    /// Reads the head; all slots of the run are added to `used`.
    fn read(
        &mut self,
        files: &DataFiles,
        database_id: u128,
        object: ObjectId,
        used: &mut Vec<SlotId>,
    ) -> Result<()> {
        let (bytes, slots) = Blob::read(files, database_id, self.address, used)?;
        let (head, keys) = read_head(&bytes, object, files.count()).ok_or_else(|| {
            let path = files.path(self.address.first.file);
            unreadable(path, self.address, "the head of a run does not decode")
        })?;
        used.extend_from_slice(&head.slots);
        (self.slots, self.read) = (slots, Some((head, keys)));
        Ok(())
    }

    fn adopt(self, space: &Arc<Space>) -> Option<(Run, RunKeys)> {
        let (head, keys) = self.read?;
        Some((Run::adopt(space, self.address, &self.slots, &head), keys))
    }
}

/// The stock of runs that were read, the oldest first.
fn adopt_stock(space: &Arc<Space>, flushed_below: Lsn, runs: Vec<RootRun>) -> Stock {
    let runs = runs.into_iter().filter_map(|run| run.adopt(space));
    let empty = Stock::of_base(None, flushed_below);
    runs.fold(empty, |stock, (run, keys)| stock.with(run, keys, flushed_below))
}

impl Root {
    /// Reads the root at `address` and every segment; all slots in use are added to `used`.
    pub(crate) fn read(
        files: &DataFiles,
        database_id: u128,
        address: BlobAddress,
        used: &mut Vec<SlotId>,
    ) -> Result<Root> {
        let (bytes, slots) = Blob::read(files, database_id, address, used)?;
        let path = files.path(address.first.file).to_owned();
        let (next_object, mut tables, large) = read_root(&bytes)
            .ok_or_else(|| unreadable(&path, address, "the directory's root does not decode"))?;
        for table in &mut tables {
            let mut images = Vec::new();
            for segment in &mut table.segments {
                let (bytes, slots) = Blob::read(files, database_id, segment.address, used)?;
                segment.slots = slots;
                segment.entries = read_segment(&bytes, table.object, files.count())
                    .filter(|entries| entries.first().is_some_and(|first| first.0 == segment.low))
                    .ok_or_else(|| {
                        unreadable(&path, segment.address, "a directory segment does not decode")
                    })?;
                for (_, rows) in &mut segment.entries {
                    match rows {
                        RootRows::None => {}
                        RootRows::Image(slot, _) => images.push(*slot),
                        RootRows::Stock { runs, .. } => {
                            for run in runs {
                                run.read(files, database_id, table.object, used)?;
                            }
                        }
                    }
                }
            }
            // Leaves of one table may share an image; nothing else is shared.
            images.sort_unstable();
            images.dedup();
            used.append(&mut images);
        }
        Ok(Root { next_object, tables, large, address, slots })
    }

    /// Gives every slot its owner: the directory, and the leaves of each table. `end`: no image holds a change at or
    /// above it.
    pub(crate) fn adopt(
        self,
        space: &Arc<Space>,
        end: Lsn,
    ) -> (Directory, Vec<AdoptedTable>, LargeTable) {
        // Intents of large transactions count as written when these commit, which may be later.
        let below = if self.large.has_begun() { Lsn::MAX } else { end };
        let mut directory = Directory {
            tables: BTreeMap::new(),
            next_object: self.next_object,
            large: self.large.clone(),
            root: Some(Blob::adopt(space, self.address, &self.slots)),
        };
        let mut adopted = Vec::new();
        for table in self.tables {
            let mut leaves: Vec<LeafDescription> = Vec::new();
            let mut images_of_table: HashMap<SlotId, Arc<Image>> = HashMap::new();
            let mut segments = Vec::new();
            for segment in table.segments {
                let mut kept = Vec::with_capacity(segment.entries.len());
                for (low, rows) in segment.entries {
                    let rows = match rows {
                        RootRows::None => StoredRows::None,
                        RootRows::Image(slot, checksum) => {
                            // Siblings of a split share an image, not always side by side: one
                            // between them may have its own already.
                            let standing = || Image::standing(space.adopt(slot), checksum, below);
                            let image = images_of_table.entry(slot).or_insert_with(standing);
                            StoredRows::Image(Arc::clone(image))
                        }
                        RootRows::Stock { flushed_below, runs } => {
                            StoredRows::Stock(Arc::new(adopt_stock(space, flushed_below, runs)))
                        }
                    };
                    let (image, stock) = match &rows {
                        StoredRows::None => (None, None),
                        StoredRows::Image(image) => (Some(Arc::clone(image)), None),
                        StoredRows::Stock(stock) => (None, Some(Stock::clone(stock))),
                    };
                    kept.push(rows);
                    leaves.push(LeafDescription { low, image, stock });
                }
                let blob = Blob::adopt(space, segment.address, &segment.slots);
                let rows = kept.into_boxed_slice();
                segments.push(Arc::new(Segment { low: segment.low, rows, blob }));
            }
            let kept = TableDirectory {
                object: table.object,
                definition: table.definition.clone(),
                counters: table.counters.clone(),
                segments,
            };
            directory.tables.insert(table.id, kept);
            adopted.push(AdoptedTable {
                id: table.id,
                object: table.object,
                definition: table.definition,
                counters: table.counters,
                leaves,
            });
        }
        (directory, adopted, self.large)
    }
}

/// A table whose leaves have their images.
pub(crate) struct AdoptedTable {
    pub(crate) id: u32,
    pub(crate) object: ObjectId,
    pub(crate) definition: Vec<u8>,
    pub(crate) counters: Vec<(u32, u64)>,
    pub(crate) leaves: Vec<LeafDescription>,
}

fn unreadable(path: &Path, address: BlobAddress, what: &str) -> Error {
    Error::Damaged(Damage::new(path, address.first.offset(), what))
}

fn read_root(mut bytes: &[u8]) -> Option<(u32, Vec<RootTable>, LargeTable)> {
    let from = &mut bytes;
    let next_object = u32::from_le_bytes(take_array(from)?);
    let count = take_varint(from)?;
    let mut tables = Vec::new();
    for _ in 0..count {
        let id = u32::from_le_bytes(take_array(from)?);
        let object = ObjectId::new(u32::from_le_bytes(take_array(from)?))?;
        let definition = take_bytes(from)?.to_vec();
        let mut counters = Vec::new();
        for _ in 0..take_varint(from)? {
            let column = u32::from_le_bytes(take_array(from)?);
            counters.push((column, u64::from_le_bytes(take_array(from)?)));
        }
        let mut segments = Vec::new();
        for _ in 0..take_varint(from)? {
            let low = take_bytes(from)?.into();
            let address = take_address(from)?;
            segments.push(RootSegment { low, address, slots: Vec::new(), entries: Vec::new() });
        }
        tables.push(RootTable { id, object, definition, counters, segments });
    }
    let large = take_large(from)?;
    from.is_empty().then_some((next_object, tables, large))
}

type Entries = Vec<(Box<[u8]>, RootRows)>;

fn read_segment(mut bytes: &[u8], object: ObjectId, files: usize) -> Option<Entries> {
    let from = &mut bytes;
    if u32::from_le_bytes(take_array(from)?) != object.number() {
        return None;
    }
    let mut entries = Entries::new();
    for _ in 0..take_varint(from)? {
        let low: Box<[u8]> = take_bytes(from)?.into();
        let raw = u64::from_le_bytes(take_array(from)?);
        let checksum = u32::from_le_bytes(take_array(from)?);
        let in_order = entries.last().is_none_or(|(last, _)| *last < low);
        if !in_order {
            return None;
        }
        let rows = match raw {
            SlotId::RAW_STOCK => take_stock(from)?,
            raw => match SlotId::from_raw_or_none(raw)? {
                None => RootRows::None,
                Some(slot) if usize::from(slot.file) >= files => return None,
                Some(slot) => RootRows::Image(slot, checksum),
            },
        };
        entries.push((low, rows));
    }
    from.is_empty().then_some(entries)
}

/// What follows the marker of a stock.
fn take_stock(from: &mut &[u8]) -> Option<RootRows> {
    let flushed_below = Lsn(u64::from_le_bytes(take_array(from)?));
    let mut runs = Vec::new();
    for _ in 0..take_varint(from)? {
        runs.push(RootRun { address: take_address(from)?, slots: Vec::new(), read: None });
    }
    Some(RootRows::Stock { flushed_below, runs })
}

impl Directory {
    /// Where each range of keys of each object begins.
    pub(crate) fn ranges(&self) -> HashMap<u32, Vec<Box<[u8]>>> {
        let lows = |table: &TableDirectory| {
            table.segments.iter().map(|segment| segment.low.clone()).collect()
        };
        self.tables.values().map(|table| (table.object.number(), lows(table))).collect()
    }

    /// Whether the object is of no table yet.
    pub(crate) fn is_private(&self, object: ObjectId) -> bool {
        self.large.private.contains(&object)
    }

    /// Objects below were handed out.
    pub(crate) fn next_object(&self) -> u32 {
        self.next_object
    }
}
