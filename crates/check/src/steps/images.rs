//! The images of a batch, in the order of the disk.

use std::time::Duration;

use crate::decode::image::{self, Image};
use crate::decode::slot::{SLOT_BYTES, SlotNumber};
use crate::finding::Finding;
use crate::invariant::Invariant;
use crate::pieces::{Piece, PieceChecker};
use crate::steps::catalogue::{Catalogue, CatalogueTable};
use crate::steps::directory::{Batch, LeafView, Named, range_words};
use crate::steps::large::LargeStatuses;
use crate::steps::rows::{self, Counted, Holder, Limits};
use crate::store::Store;

/// What one thread has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) read_bytes: u64,
    /// For each table.
    pub(crate) tables: Vec<TableTally>,
}

/// The same of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableTally {
    pub(crate) images: u64,
    pub(crate) rows: u64,
    pub(crate) undecided: u64,
    /// The highest number met of each generated column.
    pub(crate) highest: Vec<Option<u64>>,
}

impl Tally {
    pub(crate) fn new(catalogue: &Catalogue) -> Tally {
        Tally { read_bytes: 0, tables: catalogue.tables.iter().map(TableTally::of).collect() }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.read_bytes += other.read_bytes;
        for (own, other) in self.tables.iter_mut().zip(&other.tables) {
            own.add(other);
        }
    }
}

impl TableTally {
    pub(crate) fn of(table: &CatalogueTable) -> TableTally {
        let columns = table.plan.as_ref().map_or(0, |plan| plan.generated.len());
        TableTally { highest: vec![None; columns], ..TableTally::default() }
    }

    pub(crate) fn add(&mut self, other: &TableTally) {
        self.images += other.images;
        self.rows += other.rows;
        self.undecided += other.undecided;
        for (own, other) in self.highest.iter_mut().zip(&other.highest) {
            *own = (*own).max(*other);
        }
    }
}

/// Checks images. One for each thread.
pub(crate) struct ImageChecker<'a> {
    pub(crate) store: &'a Store<'a>,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) batch: &'a Batch,
    pub(crate) physical_only: bool,
    /// Where rows are handed over.
    pub(crate) statuses: Option<&'a LargeStatuses>,
    pub(crate) tally: Tally,
}

impl PieceChecker for ImageChecker<'_> {
    fn read(&self, piece: &Piece, buffer: &mut [u8]) -> bool {
        let (first, bytes) = self.extent(piece);
        let Ok(file) = self.store.file_of(first.slot) else { return false };
        file.file.read_at(&mut buffer[..bytes], first.slot.offset()).is_ok()
    }

    fn check(&mut self, piece: &Piece, buffer: &[u8]) {
        let (first, bytes) = self.extent(piece);
        let mut last = None;
        for &named in &self.batch.images[piece.clone()] {
            let at = (named.slot.index() - first.slot.index()) as usize * SLOT_BYTES;
            self.check_image(named, &buffer[at..at + SLOT_BYTES], last == Some(named.slot));
            last = Some(named.slot);
        }
        self.copy(piece, buffer);
        self.tally.read_bytes += bytes as u64;
        self.store.progress.add_done(bytes as u64);
    }

    fn check_singly(&mut self, piece: &Piece, buffer: &mut [u8]) {
        for number in piece.clone() {
            let page = &mut buffer[..SLOT_BYTES];
            if self.store.read(self.batch.images[number].slot, page).is_ok() {
                self.check(&(number..number + 1), page);
            }
        }
    }

    fn rest(&self, worked: Duration) {
        self.store.companion.rest(worked);
    }

    fn gives_up(&self) -> bool {
        self.store.gives_up()
    }
}

impl ImageChecker<'_> {
    /// The first image of a piece, and the bytes from there to the end of the last.
    fn extent(&self, piece: &Piece) -> (Named, usize) {
        let first = self.batch.images[piece.start];
        let last = self.batch.images[piece.end - 1];
        (first, (last.slot.index() - first.slot.index() + 1) as usize * SLOT_BYTES)
    }

    /// Hands the images of a piece to the companion, those that touch each other at once.
    fn copy(&self, piece: &Piece, buffer: &[u8]) {
        let images = &self.batch.images[piece.clone()];
        let first = images[0].slot;
        let touches = |left: &Named, right: &Named| right.slot.index() <= left.slot.index() + 1;
        for run in images.chunk_by(touches) {
            let (start, end) = (run[0].slot.index(), run[run.len() - 1].slot.index() + 1);
            let at = |index: u64| (index - first.index()) as usize * SLOT_BYTES;
            let pages = &buffer[at(start)..at(end)];
            self.store.companion.pages(first.file(), run[0].slot.offset(), pages);
        }
    }

    /// `is_shared`: the image has been checked already, for another leaf.
    #[inline]
    pub(crate) fn check_image(&mut self, named: Named, page: &[u8], is_shared: bool) {
        let leaf = self.batch.leaf(named);
        let Some((image, _)) = open(self.store, self.catalogue, named.slot, &leaf, page) else {
            return;
        };
        let is_inside = image.fences.is_none_or(|(low, high)| {
            let below = match (leaf.high, high) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(leaf), Some(image)) => leaf <= image,
            };
            leaf.low >= low && below
        });
        if !is_inside {
            let (low, high) = image.fences.unwrap_or_default();
            let table = &self.catalogue.tables[leaf.table];
            let found = format!("an image made for {}", range_words(table, low, high));
            let invariant = Invariant::LeafInsideImage;
            report(self.store, self.catalogue, named.slot, &leaf, invariant, found);
        }
        self.tally.tables[leaf.table].images += u64::from(!is_shared);
        if !self.physical_only {
            self.check_rows(named, &leaf, &image, is_shared);
        }
    }

    #[inline]
    fn check_rows(
        &mut self,
        named: Named,
        leaf: &LeafView<'_>,
        image: &Image<'_>,
        is_shared: bool,
    ) {
        let table = &self.catalogue.tables[leaf.table];
        let Some(plan) = &table.plan else { return };
        if self.store.companion.wants_rows() {
            self.hand_over(leaf, image, table.root.object);
        }
        let tally = &mut self.tally.tables[leaf.table];
        let is_whole = image.fences == Some((leaf.low, leaf.high));
        let begin = self.store.superblock.start.lsn;
        let is_committed = |id| self.catalogue.large.has_committed(id, begin);
        let counted = match is_whole {
            true if !rows::has_intents(image) => {
                Counted { rows: u64::from(image.count), undecided: 0 }
            }
            _ => rows::count_between(image, leaf.low, leaf.high, is_committed),
        };
        tally.rows += counted.rows;
        tally.undecided += counted.undecided;
        if is_shared {
            return;
        }
        let store = self.store;
        let (end, next_large) = (store.superblock.end, self.catalogue.large.next);
        let limits = Limits { holder: Holder::Leaf, fences: image.fences, end, next_large };
        rows::check(image, plan, limits, &mut tally.highest, |fault| {
            let offset = named.slot.offset() + fault.offset as u64;
            let finding =
                Finding::new(fault.invariant, store.path(named.slot), offset, fault.found);
            let keys = match fault.key.is_empty() {
                true => plan.key.range_words(leaf.low, leaf.high),
                false => format!("key {}", plan.key.words(fault.key)),
            };
            store.findings.add(finding.of_table(&plan.name).with_keys(keys));
        });
    }

    /// Hands the rows of a leaf to the companion.
    fn hand_over(&self, leaf: &LeafView<'_>, image: &Image<'_>, object: u32) {
        let none = LargeStatuses::default();
        let statuses = self.statuses.unwrap_or(&none);
        let mut rows = rows::resolved(image, object, statuses)
            .filter(|entry| entry.key >= leaf.low && leaf.high.is_none_or(|high| entry.key < high))
            .map(|entry| (entry.key, entry.value));
        self.store.companion.leaf(object, leaf.low, &mut rows);
    }
}

/// The image of a leaf, or of as much of a run, in the page of its slot; none if it is not one, and false if it is not
/// the one that was named. Both have their finding.
#[inline]
pub(crate) fn open<'p>(
    store: &Store<'_>,
    catalogue: &Catalogue,
    slot: SlotNumber,
    leaf: &LeafView<'_>,
    page: &'p [u8],
) -> Option<(Image<'p>, bool)> {
    let report = |invariant, found: &str| {
        report(store, catalogue, slot, leaf, invariant, found);
        None
    };
    let checksum = match image::checksum(page) {
        Ok(checksum) => checksum,
        Err(found) => return report(Invariant::ImageWhole, found),
    };
    let image = match Image::read(page) {
        Ok(image) => image,
        Err(found) => return report(Invariant::ImageAddsUp, found),
    };
    let object = catalogue.tables[leaf.table].root.object;
    let is_ours = image.database_id == store.superblock.database_id;
    if !is_ours || image.slot != slot || image.object != object {
        let found = format!(
            "an image of object {} for {} of {} database, where object {object} is expected",
            image.object,
            image.slot,
            if is_ours { "this" } else { "another" },
        );
        return report(Invariant::ImagePlace, &found);
    }
    if checksum != leaf.checksum {
        let found = format!("checksum {checksum:08x}, {:08x} was named", leaf.checksum);
        report(Invariant::ImageNamed, &found);
    }
    Some((image, checksum == leaf.checksum))
}

/// Reports what is wrong with a whole image.
#[cold]
pub(crate) fn report(
    store: &Store<'_>,
    catalogue: &Catalogue,
    slot: SlotNumber,
    leaf: &LeafView<'_>,
    invariant: Invariant,
    found: impl Into<String>,
) {
    let table = &catalogue.tables[leaf.table];
    let finding = store.at_slot(invariant, slot, found).of_table(&table.name());
    store.findings.add(finding.with_keys(range_words(table, leaf.low, leaf.high)));
}
