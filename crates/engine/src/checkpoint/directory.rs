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
use crate::storage::Image;
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
    /// Keeps the slots of the images; in key order. Boxed, because a vector made of the entries in place
    /// would keep their capacity for as long as the segment lives.
    #[expect(dead_code, reason = "held for its slots")]
    images: Box<[Option<Arc<Image>>]>,
    blob: Blob,
}

/// A leaf in a segment.
pub(crate) struct SegmentEntry {
    pub(super) low: Box<[u8]>,
    pub(super) image: Option<Arc<Image>>,
}

impl SegmentEntry {
    /// The only leaf of an empty table.
    pub(super) fn empty() -> SegmentEntry {
        SegmentEntry { low: Box::default(), image: None }
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
            let slot = SlotId::to_raw_or_none(entry.image.as_ref().map(|image| image.slot()));
            let checksum = entry.image.as_ref().map_or(0, |image| image.checksum());
            bytes.extend_from_slice(&slot.to_le_bytes());
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        let blob = Blob::write(&store.space, cursor, store.database_id, &bytes)
            .map_err(|error| stop_unless_full(store, error))?;
        let low = entries.first().map_or_else(Box::default, |entry| entry.low.clone());
        let images = entries.into_iter().map(|entry| entry.image).collect();
        Ok(Segment { low, images, blob })
    }
}

/// A full disk leaves everything as it was; any other failed write stops the engine.
fn stop_unless_full(store: &Store, error: Error) -> Error {
    match error {
        Error::Disk(cause) => store.stop(cause),
        other => other,
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
            .map_err(|error| stop_unless_full(store, error))?;
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
    entries: Vec<(Box<[u8]>, Option<(SlotId, u32)>)>,
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
                let named = segment.entries.iter().filter_map(|(_, image)| *image);
                images.extend(named.map(|(slot, _)| slot));
            }
            // Leaves of one table may share an image; nothing else is shared.
            images.sort_unstable();
            images.dedup();
            used.append(&mut images);
        }
        Ok(Root { next_object, tables, large, address, slots })
    }

    /// Gives every slot its owner: the directory, and the leaves of each table.
    pub(crate) fn adopt(self, space: &Arc<Space>) -> (Directory, Vec<AdoptedTable>, LargeTable) {
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
                let mut images = Vec::with_capacity(segment.entries.len());
                for (low, place) in segment.entries {
                    let image = place.map(|(slot, checksum)| {
                        // Siblings of a split share an image, not always side by side: one
                        // between them may have its own already.
                        let standing = || Image::standing(space.adopt(slot), checksum);
                        Arc::clone(images_of_table.entry(slot).or_insert_with(standing))
                    });
                    images.push(image.clone());
                    leaves.push(LeafDescription { low, image });
                }
                let blob = Blob::adopt(space, segment.address, &segment.slots);
                let images = images.into_boxed_slice();
                segments.push(Arc::new(Segment { low: segment.low, images, blob }));
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

type Entries = Vec<(Box<[u8]>, Option<(SlotId, u32)>)>;

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
        let image = SlotId::from_raw_or_none(raw)?.map(|slot| (slot, checksum));
        let in_order = entries.last().is_none_or(|(last, _)| *last < low);
        let in_files = image.is_none_or(|(slot, _)| usize::from(slot.file) < files);
        if !in_order || !in_files {
            return None;
        }
        entries.push((low, image));
    }
    from.is_empty().then_some(entries)
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
