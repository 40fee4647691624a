//! A stored database of which one part is somebody else's bytes, with all checksums right.
//!
//! The database is one that the engine's tests keep for ever (`tests/golden`), so that inputs stay
//! good. It was left open: there are images and a log behind them. Where things stand is taken from
//! `docs/data-file.md` and `docs/log-format.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use onrush::{Background, Database, Options, ScanOptions};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::{AlignedBuffer, Disk, MemoryDisk, OpenMode};

#[path = "../../engine/tests/golden/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "of the engine's tests, which use all of it"
)]
mod golden;

const SLOT: usize = 16 << 10;
const EXTENT: usize = 1 << 20;
const BLOCK: usize = 4096;
/// Bytes of a blob's page before those of the blob.
const BLOB_HEADER: usize = 48;
/// Of an image those that say whose and where it is, which stay.
const IMAGE_OWN: usize = 32;
/// Of a log block magic and version, which stay.
const LOG_BLOCK_OWN: usize = 12;
const LOG_BLOCK_HEADER: usize = 96;
const SUPERBLOCK_HEADER: usize = 16;
const COPIES: [usize; 2] = [0, 64 << 10];
/// Where the superblock names the root, and C.
const ROOT_PLACE: usize = 101;
const START_SEGMENT: usize = 72;
const START_OFFSET: usize = 80;

/// What an input stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The body of the superblock.
    Superblock,
    /// The directory's root.
    Root,
    /// One of its segments.
    Directory,
    /// The image of a leaf, behind its place.
    Image,
    /// The largest block of the log that is redone, behind its version.
    LogBlock,
}

/// A superblock.
pub fn superblock(input: &[u8]) {
    read(Part::Superblock, input);
}

/// A root of the directory.
pub fn root(input: &[u8]) {
    read(Part::Root, input);
}

/// A segment of the directory.
pub fn directory(input: &[u8]) {
    read(Part::Directory, input);
}

/// An image.
pub fn image(input: &[u8]) {
    read(Part::Image, input);
}

/// A log block, and the records in it.
pub fn log_block(input: &[u8]) {
    read(Part::LogBlock, input);
}

/// The part as the database has it.
#[must_use]
pub fn seeds(part: Part) -> Vec<(String, Vec<u8>)> {
    let store = store();
    let mut seeds = Vec::new();
    match part {
        Part::Superblock => seeds.push(trimmed(&store.superblock()[SUPERBLOCK_HEADER..BLOCK])),
        Part::Root => seeds.push(store.blob(store.root_slot()).to_vec()),
        Part::Directory => {
            seeds.extend(store.segments().into_iter().map(|slot| store.blob(slot).to_vec()));
        }
        Part::Image => {
            let images = store.images().into_iter();
            seeds.extend(images.map(|slot| trimmed(&store.page(slot)[IMAGE_OWN..])));
        }
        Part::LogBlock => {
            let (path, at) = store.log_block();
            let block = &store.files[&path][at + LOG_BLOCK_OWN..];
            let header = LOG_BLOCK_HEADER - LOG_BLOCK_OWN;
            let records = (number(block, 80 - LOG_BLOCK_OWN) & 0xffff_ffff) as usize;
            let with = |records: usize| {
                let mut cut = block[..header + records].to_vec();
                let length = 80 - LOG_BLOCK_OWN;
                cut[length..length + 4].copy_from_slice(&(records as u32).to_le_bytes());
                cut
            };
            seeds.extend([100, 1500, 5000].map(|most| with(records.min(most))));
        }
    }
    // Small ones, of each size once.
    seeds.retain(|seed| seed.len() < 6000);
    seeds.sort_by_key(Vec::len);
    seeds.dedup_by_key(|seed| seed.len());
    seeds.push(Vec::new());
    seeds.into_iter().enumerate().map(|(number, seed)| (format!("{number}"), seed)).collect()
}

fn trimmed(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..end].to_vec()
}

/// Checks and opens the database with the part replaced, reads and writes.
fn read(part: Part, input: &[u8]) {
    let mut changed = store().clone();
    changed.replace(part, input);
    let disk = changed.disk();
    let shared: Arc<dyn Disk> = Arc::new(disk);
    let one = CheckOptions { dop: 1, ..CheckOptions::default() };
    // Whatever they say, they say it; what must not be is a panic.
    let _ = check(Arc::clone(&shared), &folder(), &one, &Progress::default());
    let _ = work(shared);
}

fn work(disk: Arc<dyn Disk>) -> onrush::Result<()> {
    let options = Options {
        background: Background::Callers,
        leaf_memory_bytes: 64 * SLOT,
        ..golden::options()
    };
    let database = Database::open_on(disk, folder(), options)?;
    let mut session = database.session()?;
    for definition in database.tables() {
        let table = database.table(definition.name())?;
        // One table may be damaged, and another not.
        let rows = session.scan(&table, &ScanOptions::default())?.take(1000);
        let _ = rows.collect::<onrush::Result<Vec<_>>>();
        let _ = session.insert(&table, &[]);
    }
    database.checkpoint()?;
    drop(session);
    database.close()
}

fn folder() -> PathBuf {
    PathBuf::from("/fuzz")
}

/// The files of a database.
#[derive(Clone, Debug)]
struct Store {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

fn store() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        let packed = include_bytes!("../../engine/tests/golden/format-1/left-open.packed");
        let scratch = tempfile::tempdir().expect("a temporary folder");
        golden::unpack(packed, scratch.path());
        let mut files = BTreeMap::new();
        collect(scratch.path(), Path::new(""), &mut files);
        for (path, bytes) in &mut files {
            if path == Path::new("data-00.onrush") {
                let used = trimmed(bytes).len().next_multiple_of(EXTENT);
                bytes.truncate(used);
            }
        }
        Store { files }
    })
}

fn collect(root: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(root.join(below)).expect("a folder").flatten() {
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, files);
        } else {
            files.insert(path, std::fs::read(entry.path()).expect("a file"));
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

impl Store {
    fn disk(&self) -> MemoryDisk {
        let disk = MemoryDisk::new();
        for (path, bytes) in &self.files {
            let path = folder().join(path);
            disk.create_folder(path.parent().unwrap_or(&path)).expect("a folder in memory");
            let file = disk.open(&path, OpenMode::CreateNew).expect("a file in memory");
            let mut aligned = AlignedBuffer::new(bytes.len().next_multiple_of(BLOCK));
            aligned[..bytes.len()].copy_from_slice(bytes);
            file.write_at(&aligned, 0).expect("space in memory");
        }
        disk
    }

    fn file(&mut self, name: &str) -> &mut Vec<u8> {
        self.files.get_mut(Path::new(name)).expect("a file of the database")
    }

    /// The newer copy.
    fn superblock(&self) -> &[u8] {
        let all = &self.files[Path::new("superblock.onrush")];
        let copies = COPIES.map(|copy| &all[copy..copy + BLOCK]);
        if number(copies[0], 32) > number(copies[1], 32) { copies[0] } else { copies[1] }
    }

    fn data(&self) -> &[u8] {
        &self.files[Path::new("data-00.onrush")]
    }

    fn page(&self, slot: u64) -> &[u8] {
        &self.data()[slot as usize * SLOT..][..SLOT]
    }

    fn blob(&self, slot: u64) -> &[u8] {
        let page = self.page(slot);
        &page[BLOB_HEADER..BLOB_HEADER + (number(page, 40) & 0xffff_ffff) as usize]
    }

    fn root_slot(&self) -> u64 {
        number(self.superblock(), ROOT_PLACE)
    }

    fn slots_with(&self, magic: &[u8]) -> Vec<u64> {
        let slots = 0..(self.data().len() / SLOT) as u64;
        slots.filter(|slot| self.page(*slot).starts_with(magic)).collect()
    }

    /// Slots of the segments that the root names, each of one page.
    fn segments(&self) -> Vec<u64> {
        let root = self.blob(self.root_slot());
        let named = |slot: &u64| find(root, &self.place(*slot)[..16]).is_some();
        self.slots_with(b"ONRB").into_iter().filter(named).collect()
    }

    /// Slots of the images that a segment names.
    fn images(&self) -> Vec<u64> {
        let images = self.slots_with(b"ONRI").into_iter();
        images.filter(|slot| self.segment_of(*slot).is_some()).collect()
    }

    /// The segment that names the image, and where in it.
    fn segment_of(&self, image: u64) -> Option<(u64, usize)> {
        let named = [&image.to_le_bytes()[..], &self.page(image)[4..8]].concat();
        let segments = self.segments().into_iter();
        segments.filter_map(|slot| Some((slot, find(self.blob(slot), &named)?))).next()
    }

    /// A place as it is stored: slot, length, checksum.
    fn place(&self, slot: u64) -> Vec<u8> {
        let blob = self.blob(slot);
        let (length, sum) = (blob.len() as u64, crc32c::crc32c(blob));
        [&slot.to_le_bytes()[..], &length.to_le_bytes(), &sum.to_le_bytes()].concat()
    }

    /// The file of the largest log block behind the checkpoint, and where it is.
    fn log_block(&self) -> (PathBuf, usize) {
        let superblock = self.superblock();
        let (segment, offset) =
            (number(superblock, START_SEGMENT), number(superblock, START_OFFSET));
        let is_it = |path: &&PathBuf| {
            path.starts_with("log")
                && self.files[*path].len() > 40
                && number(&self.files[*path], 32) == segment
        };
        let path = self.files.keys().find(is_it).expect("the log segment of C");
        let file = &self.files[path];
        let bytes = |at: usize| (number(file, at + 80) & 0xffff_ffff) as usize + LOG_BLOCK_HEADER;
        let next = |at: &usize| Some(at + bytes(*at).next_multiple_of(BLOCK));
        let blocks = std::iter::successors(Some(offset as usize), next);
        let blocks = blocks
            .take_while(|at| file.get(*at..).is_some_and(|rest| rest.starts_with(b"ONRUSHLB")));
        (path.clone(), blocks.max_by_key(|at| bytes(*at)).expect("a block behind C"))
    }

    /// Puts the input in its place, and makes all checksums right.
    fn replace(&mut self, part: Part, input: &[u8]) {
        match part {
            Part::Superblock => self.put_superblock(input),
            Part::Root => self.put_root(input),
            Part::Directory => self.put_segment(self.segments()[0], input),
            Part::Image => {
                let image = self.images()[0];
                let (segment, at) = self.segment_of(image).expect("an image is named");
                let mut page = self.page(image).to_vec();
                fill(&mut page[IMAGE_OWN..], input);
                let sum = crc32c::crc32c(&page[8..]);
                page[4..8].copy_from_slice(&sum.to_le_bytes());
                self.put_page(image, &page);
                let mut blob = self.blob(segment).to_vec();
                blob[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
                self.put_segment(segment, &blob);
            }
            Part::LogBlock => self.put_log_block(input),
        }
    }

    fn put_page(&mut self, slot: u64, page: &[u8]) {
        self.file("data-00.onrush")[slot as usize * SLOT..][..SLOT].copy_from_slice(page);
    }

    fn put_blob(&mut self, slot: u64, blob: &[u8]) {
        let mut page = self.page(slot).to_vec();
        let bytes = blob.len().min(SLOT - BLOB_HEADER);
        fill(&mut page[BLOB_HEADER..], &blob[..bytes]);
        page[40..44].copy_from_slice(&(bytes as u32).to_le_bytes());
        let sum = crc32c::crc32c(&page[8..]);
        page[4..8].copy_from_slice(&sum.to_le_bytes());
        self.put_page(slot, &page);
    }

    fn put_segment(&mut self, slot: u64, blob: &[u8]) {
        let root = self.blob(self.root_slot());
        let at = find(root, &self.place(slot)[..16]).expect("the root names the segment");
        let mut root = root.to_vec();
        self.put_blob(slot, blob);
        root[at..at + 20].copy_from_slice(&self.place(slot));
        self.put_root(&root);
    }

    fn put_root(&mut self, blob: &[u8]) {
        let slot = self.root_slot();
        self.put_blob(slot, blob);
        let mut body = self.superblock()[SUPERBLOCK_HEADER..].to_vec();
        let at = ROOT_PLACE - SUPERBLOCK_HEADER;
        body[at..at + 20].copy_from_slice(&self.place(slot));
        self.put_superblock(&body);
    }

    /// In the place of the newer one; the other one is an older one still.
    fn put_superblock(&mut self, body: &[u8]) {
        let mut block = self.superblock().to_vec();
        fill(&mut block[SUPERBLOCK_HEADER..], body);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..]);
        block[12..16].copy_from_slice(&sum.to_le_bytes());
        let newer = COPIES[(number(self.superblock(), 32) & 1) as usize];
        let older = COPIES[0] + COPIES[1] - newer;
        let file = self.file("superblock.onrush");
        file[newer..newer + BLOCK].copy_from_slice(&block);
        // It is not to be taken instead.
        if number(&block, 32) <= number(&file[older..older + BLOCK], 32) {
            file[older..older + BLOCK].fill(0);
        }
    }

    fn put_log_block(&mut self, input: &[u8]) {
        let (path, at) = self.log_block();
        let file = self.files.get_mut(&path).expect("the log segment of C");
        let mut header = file[at..at + LOG_BLOCK_HEADER].to_vec();
        fill(
            &mut header[LOG_BLOCK_OWN..],
            &input[..input.len().min(LOG_BLOCK_HEADER - LOG_BLOCK_OWN)],
        );
        // It is as long as it says, if there is space for that.
        let claimed = (number(&header, 80) & 0xffff_ffff) as usize + LOG_BLOCK_HEADER;
        let bytes = claimed.next_multiple_of(BLOCK).min(file.len() - at);
        let mut block = vec![0; bytes];
        fill(&mut block[LOG_BLOCK_OWN..], &input[..input.len().min(bytes - LOG_BLOCK_OWN)]);
        block[..LOG_BLOCK_OWN].copy_from_slice(&header[..LOG_BLOCK_OWN]);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&block[..92]), &block[LOG_BLOCK_HEADER..]);
        block[92..96].copy_from_slice(&sum.to_le_bytes());
        file[at..at + bytes].copy_from_slice(&block);
    }
}

/// The bytes, then zeros.
fn fill(place: &mut [u8], bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(place.len())];
    place.fill(0);
    place[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an input of the database itself makes is the database: else nothing behind the checksums
    /// is ever reached.
    #[test]
    fn the_parts_put_back_are_sound() {
        for part in [Part::Superblock, Part::Root, Part::Directory, Part::Image, Part::LogBlock] {
            let own = match part {
                Part::Directory => store().blob(store().segments()[0]).to_vec(),
                Part::Image => trimmed(&store().page(store().images()[0])[IMAGE_OWN..]),
                Part::LogBlock => {
                    let (path, at) = store().log_block();
                    store().files[&path][at + LOG_BLOCK_OWN..].to_vec()
                }
                _ => seeds(part)[0].1.clone(),
            };
            let mut changed = store().clone();
            changed.replace(part, &own);
            let disk: Arc<dyn Disk> = Arc::new(changed.disk());
            let options = CheckOptions::default();
            let report = check(Arc::clone(&disk), &folder(), &options, &Progress::default());
            let report = report.expect("a check");
            assert!(report.is_sound(), "{part:?}: {report}");
            assert!(report.log_records > 10, "{part:?}: {report}");
            work(disk).expect("it opens");
        }
    }

    #[test]
    fn a_changed_image_is_not_refused_for_its_checksum() {
        let mut own = trimmed(&store().page(store().images()[0])[IMAGE_OWN..]);
        let last = own.len() - 1;
        own[last] ^= 1;
        let mut changed = store().clone();
        changed.replace(Part::Image, &own);
        let disk: Arc<dyn Disk> = Arc::new(changed.disk());
        let report = check(disk, &folder(), &CheckOptions::default(), &Progress::default());
        let text = report.expect("a check").to_string();
        assert!(!text.contains("checksum"), "{text}");
    }
}
