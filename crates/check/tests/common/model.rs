//! A stored database as a model that can be bent: read, changed, and written back with every checksum
//! repaired, so that only what the bytes *say* is wrong. Written from the documents, for tests only.

use std::path::{Path, PathBuf};

use onrush_files::{Disk, MemoryDisk, OpenMode};

pub const SLOT: usize = 16 * 1024;
pub const NONE: u64 = u64::MAX;

/// A whole model.
pub struct Model {
    pub disk: MemoryDisk,
    pub folder: PathBuf,
    /// The body of each superblock copy: 16 bytes from the start of the block on.
    pub copies: [Vec<u8>; 2],
    pub next_object: u32,
    pub tables: Vec<Table>,
    root_slot: u64,
    /// What was there before each write.
    undo: Vec<(PathBuf, u64, Vec<u8>)>,
}

#[derive(Clone)]
pub struct Table {
    pub id: u32,
    pub object: u32,
    pub definition: Vec<u8>,
    pub counters: Vec<(u32, u64)>,
    pub segments: Vec<Segment>,
}

#[derive(Clone)]
pub struct Segment {
    /// As the root says.
    pub low: Vec<u8>,
    pub slot: u64,
    pub object: u32,
    pub leaves: Vec<Leaf>,
}

#[derive(Clone, PartialEq)]
pub struct Leaf {
    pub low: Vec<u8>,
    pub slot: u64,
    pub checksum: u32,
}

/// The rows of an image, and the range that it was made for.
pub struct Image {
    pub slot: u64,
    pub object: u32,
    pub rows: Vec<(u64, Vec<u8>, Vec<u8>)>,
    pub fences: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

/// A blob page is cut off behind what was used: the rest must fit the one page that it has.
const PAGE_BYTES: usize = SLOT - 48;

struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn varint(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.number(1);
            number |= (byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return number;
            }
        }
    }

    fn counted(&mut self) -> Vec<u8> {
        let count = self.varint() as usize;
        self.take(count).to_vec()
    }
}

fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_counted(bytes: &[u8], out: &mut Vec<u8>) {
    push_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn sealed_checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..])
}

impl Model {
    pub fn load(disk: &MemoryDisk, folder: &Path) -> Model {
        let mut model = Model {
            disk: disk.clone(),
            folder: folder.into(),
            copies: [Vec::new(), Vec::new()],
            next_object: 0,
            tables: Vec::new(),
            root_slot: 0,
            undo: Vec::new(),
        };
        model.copies =
            [0, 65_536].map(|at| model.bytes("superblock.onrush", at, 4096)[16..].to_vec());
        model.root_slot = model.newest_field(85, 8);
        let root = model.blob(model.root_slot);
        let mut cursor = Cursor(&root);
        model.next_object = cursor.number(4) as u32;
        for _ in 0..cursor.varint() {
            let (id, object) = (cursor.number(4) as u32, cursor.number(4) as u32);
            let definition = cursor.counted();
            let counters =
                (0..cursor.varint()).map(|_| (cursor.number(4) as u32, cursor.number(8))).collect();
            let segments = (0..cursor.varint())
                .map(|_| {
                    let low = cursor.counted();
                    let slot = cursor.number(8);
                    cursor.take(12);
                    model.segment(low, slot)
                })
                .collect();
            model.tables.push(Table { id, object, definition, counters, segments });
        }
        model
    }

    fn segment(&self, low: Vec<u8>, slot: u64) -> Segment {
        let bytes = self.blob(slot);
        let mut cursor = Cursor(&bytes);
        let object = cursor.number(4) as u32;
        let leaves = (0..cursor.varint())
            .map(|_| Leaf {
                low: cursor.counted(),
                slot: cursor.number(8),
                checksum: cursor.number(4) as u32,
            })
            .collect();
        Segment { low, slot, object, leaves }
    }

    /// The bytes of a blob of one page.
    fn blob(&self, slot: u64) -> Vec<u8> {
        let page = self.page(slot);
        assert_eq!(page[32..40], NONE.to_le_bytes(), "blobs of tests have one page");
        let length = u32::from_le_bytes(page[40..44].try_into().unwrap()) as usize;
        page[48..48 + length].to_vec()
    }

    /// Which copy of the superblock counts.
    pub fn newest(&self) -> usize {
        let generation =
            |copy: usize| u64::from_le_bytes(self.copies[copy][16..24].try_into().unwrap());
        usize::from(generation(1) > generation(0))
    }

    /// A field of the newest superblock, by its offset in the body.
    pub fn newest_field(&self, at: usize, bytes: usize) -> u64 {
        Cursor(&self.copies[self.newest()][at..]).number(bytes)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn bytes(&self, name: &str, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let file = self.disk.open(&self.path(name), OpenMode::ReadOnly).unwrap();
        file.read_at(&mut bytes, at).unwrap();
        bytes
    }

    pub fn write(&mut self, name: &str, at: u64, bytes: &[u8]) {
        let before = self.bytes(name, at, bytes.len());
        let path = self.path(name);
        self.disk.open(&path, OpenMode::ReadWrite).unwrap().write_at(bytes, at).unwrap();
        self.undo.push((path, at, before));
    }

    pub fn page(&self, slot: u64) -> Vec<u8> {
        self.bytes("data-00.onrush", slot * SLOT as u64, SLOT)
    }

    /// Writes a page as it is, its own checksum repaired.
    pub fn write_page(&mut self, slot: u64, mut page: Vec<u8>) -> u32 {
        let checksum = crc32c::crc32c(&page[8..]);
        put(&mut page, 4, &checksum.to_le_bytes());
        self.write("data-00.onrush", slot * SLOT as u64, &page);
        checksum
    }

    /// Writes an image's page and names it in the directory.
    pub fn write_image(&mut self, slot: u64, page: Vec<u8>) {
        let checksum = self.write_page(slot, page);
        let segments = self.tables.iter_mut().flat_map(|table| &mut table.segments);
        for leaf in segments.flat_map(|segment| &mut segment.leaves) {
            if leaf.slot == slot {
                leaf.checksum = checksum;
            }
        }
    }

    pub fn image(&self, slot: u64) -> Image {
        let page = self.page(slot);
        let mut header = Cursor(&page[32..50]);
        let (count, bytes) = (header.number(4), header.number(4) as usize);
        let object = header.number(4) as u32;
        let (kind, low, high) =
            (header.number(2), header.number(2) as usize, header.number(2) as usize);
        let mut cursor = Cursor(&page[64..]);
        let rows = (0..count)
            .map(|_| {
                let lsn = cursor.number(8);
                let (key, value) = (cursor.number(2) as usize, cursor.number(2) as usize);
                (lsn, cursor.take(key).to_vec(), cursor.take(value).to_vec())
            })
            .collect();
        let mut cursor = Cursor(&page[64 + bytes..]);
        let (low, high) = (cursor.take(low).to_vec(), cursor.take(high).to_vec());
        let fences = (kind != 0).then_some((low, (kind == 1).then_some(high)));
        Image { slot, object, rows, fences }
    }

    /// Writes an image anew, in its slot, and names it in the directory.
    pub fn put_image(&mut self, image: &Image) {
        let page = self.image_page(image);
        self.write_image(image.slot, page);
    }

    pub fn image_page(&self, image: &Image) -> Vec<u8> {
        let mut entries = Vec::new();
        for (lsn, key, value) in &image.rows {
            entries.extend_from_slice(&lsn.to_le_bytes());
            entries.extend_from_slice(&(key.len() as u16).to_le_bytes());
            entries.extend_from_slice(&(value.len() as u16).to_le_bytes());
            entries.extend_from_slice(key);
            entries.extend_from_slice(value);
        }
        let mut page = vec![0; SLOT];
        put(&mut page, 0, b"ONRI");
        put(&mut page, 8, &self.copies[0][..16]);
        put(&mut page, 24, &image.slot.to_le_bytes());
        put(&mut page, 32, &(image.rows.len() as u32).to_le_bytes());
        put(&mut page, 36, &(entries.len() as u32).to_le_bytes());
        put(&mut page, 40, &image.object.to_le_bytes());
        if let Some((low, high)) = &image.fences {
            page[44] = if high.is_some() { 1 } else { 2 };
            let high = high.clone().unwrap_or_default();
            put(&mut page, 46, &(low.len() as u16).to_le_bytes());
            put(&mut page, 48, &(high.len() as u16).to_le_bytes());
            entries.extend_from_slice(low);
            entries.extend_from_slice(&high);
        }
        put(&mut page, 64, &entries);
        page
    }

    /// Writes segments, root and superblock as the model says, every checksum repaired.
    pub fn save(&mut self) {
        let tables = self.tables.clone();
        let mut root = self.next_object.to_le_bytes().to_vec();
        push_varint(tables.len() as u64, &mut root);
        for table in &tables {
            root.extend_from_slice(&table.id.to_le_bytes());
            root.extend_from_slice(&table.object.to_le_bytes());
            push_counted(&table.definition, &mut root);
            push_varint(table.counters.len() as u64, &mut root);
            for (column, mark) in &table.counters {
                root.extend_from_slice(&column.to_le_bytes());
                root.extend_from_slice(&mark.to_le_bytes());
            }
            push_varint(table.segments.len() as u64, &mut root);
            for segment in &table.segments {
                let mut bytes = segment.object.to_le_bytes().to_vec();
                push_varint(segment.leaves.len() as u64, &mut bytes);
                for leaf in &segment.leaves {
                    push_counted(&leaf.low, &mut bytes);
                    bytes.extend_from_slice(&leaf.slot.to_le_bytes());
                    bytes.extend_from_slice(&leaf.checksum.to_le_bytes());
                }
                push_counted(&segment.low, &mut root);
                let place = self.write_blob(segment.slot, &bytes);
                root.extend_from_slice(&place);
            }
        }
        self.save_root(&root);
    }

    /// Writes these bytes as the root.
    pub fn save_root(&mut self, root: &[u8]) {
        let place = self.write_blob(self.root_slot, root);
        let newest = self.newest();
        put(&mut self.copies[newest], 85, &place);
        self.save_superblock();
    }

    /// The bytes of the root as it is stored.
    pub fn root(&self) -> Vec<u8> {
        self.blob(self.root_slot)
    }

    /// Writes a blob of one page; returns its place.
    pub fn write_blob(&mut self, slot: u64, bytes: &[u8]) -> Vec<u8> {
        assert!(bytes.len() <= PAGE_BYTES);
        let mut page = vec![0; SLOT];
        put(&mut page, 0, b"ONRB");
        put(&mut page, 8, &self.copies[0][..16]);
        put(&mut page, 24, &slot.to_le_bytes());
        put(&mut page, 32, &NONE.to_le_bytes());
        put(&mut page, 40, &(bytes.len() as u32).to_le_bytes());
        put(&mut page, 48, bytes);
        self.write_page(slot, page);
        let mut place = slot.to_le_bytes().to_vec();
        place.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        place.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        place
    }

    /// Writes both copies as the model says.
    pub fn save_superblock(&mut self) {
        for (copy, at) in [(0, 0), (1, 65_536)] {
            let mut block = b"ONRUSH\0\0\x01\0\0\0\0\0\0\0".to_vec();
            block.extend_from_slice(&self.copies[copy]);
            let checksum = sealed_checksum(&block);
            put(&mut block, 12, &checksum.to_le_bytes());
            self.write("superblock.onrush", at, &block);
        }
    }

    /// Changes the folders' block and repairs its checksum.
    pub fn change_folders(&mut self, change: impl FnOnce(&mut [u8])) {
        let mut block = self.bytes("superblock.onrush", 131_072, 65_536);
        change(&mut block[16..]);
        let checksum = sealed_checksum(&block);
        put(&mut block, 12, &checksum.to_le_bytes());
        self.write("superblock.onrush", 131_072, &block);
    }

    /// Changes the header of the data file and repairs its checksum.
    pub fn change_data_header(&mut self, change: impl FnOnce(&mut [u8])) {
        let mut header = self.bytes("data-00.onrush", 0, 64);
        change(&mut header);
        let checksum = crc32c::crc32c(&header[..60]);
        put(&mut header, 60, &checksum.to_le_bytes());
        self.write("data-00.onrush", 0, &header);
    }

    /// Takes every write back.
    pub fn undo(&mut self) {
        for (path, at, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            self.disk.open(&path, OpenMode::ReadWrite).unwrap().write_at(&before, at).unwrap();
        }
    }
}

/// The log from where redo starts: its blocks, one behind the other.
pub struct LogModel {
    pub blocks: Vec<Block>,
}

/// One block: where it is, and its bytes.
pub struct Block {
    pub name: String,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Block {
    /// The bytes of its records.
    pub fn records(&self) -> &[u8] {
        let length = u32::from_le_bytes(self.bytes[80..84].try_into().unwrap()) as usize;
        &self.bytes[96..96 + length]
    }

    /// Where each whole record's payload lies in the block, if it starts with a whole record.
    pub fn payloads(&self) -> Vec<std::ops::Range<usize>> {
        let records = self.records();
        let (mut payloads, mut rest) = (Vec::new(), Cursor(records));
        while !rest.0.is_empty() {
            let length = rest.varint() as usize;
            let start = 96 + records.len() - rest.0.len();
            if length > rest.0.len() {
                break;
            }
            payloads.push(start..start + length);
            rest.take(length);
        }
        payloads
    }
}

impl LogModel {
    /// Reads the blocks from where redo starts to the end.
    pub fn load(model: &Model) -> LogModel {
        let (mut segment, mut offset) = (model.newest_field(56, 8), model.newest_field(64, 8));
        let mut blocks = Vec::new();
        loop {
            let name = format!("log/log-{segment:016}.segment");
            let Ok(file) = model.disk.open(&model.path(&name), OpenMode::ReadOnly) else { break };
            if offset == file.len().unwrap() {
                (segment, offset) = (segment + 1, 4096);
                continue;
            }
            let header = model.bytes(&name, offset, 96);
            let is_here = header.starts_with(b"ONRUSHLB")
                && header[40..48] == segment.to_le_bytes()
                && header[48..56] == offset.to_le_bytes();
            if !is_here {
                break;
            }
            let records = u32::from_le_bytes(header[80..84].try_into().unwrap()) as usize;
            let bytes = model.bytes(&name, offset, (96 + records).next_multiple_of(4096));
            blocks.push(Block { name, offset, bytes });
            offset += blocks.last().map_or(0, |block| block.bytes.len() as u64);
        }
        LogModel { blocks }
    }

    /// Writes all blocks with checksums, and the links between them, repaired.
    pub fn save(&mut self, model: &mut Model) {
        let mut previous: Option<u32> = None;
        for block in &mut self.blocks {
            if let Some(previous) = previous {
                put(&mut block.bytes, 84, &previous.to_le_bytes());
            }
            let checksum = repaired(&mut block.bytes);
            previous = Some(checksum);
            model.write(&block.name, block.offset, &block.bytes);
        }
    }

    /// Writes one block with its own checksum repaired, and no link.
    pub fn save_block(&mut self, model: &mut Model, number: usize) {
        let block = &mut self.blocks[number];
        repaired(&mut block.bytes);
        model.write(&block.name, block.offset, &block.bytes);
    }
}

fn repaired(block: &mut [u8]) -> u32 {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&block[..92]), &block[96..]);
    put(block, 92, &checksum.to_le_bytes());
    checksum
}
