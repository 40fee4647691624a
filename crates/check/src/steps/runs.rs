//! The runs of one range: their heads, and their images one behind the other. Each image is checked when it is read.
//!
//! Memory: the heads of one range, and some images of each of its runs.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use onrush_files::AlignedBuffer;
use onrush_lsn::Lsn;

use crate::decode::directory::Stock;
use crate::decode::image::{Entry, Intent, entry_offset, take_entry};
use crate::decode::run_head::{RunHead, RunImage, RunKind};
use crate::decode::slot::{BlobAddress, SLOT_BYTES, SlotNumber};
use crate::finding::Finding;
use crate::invariant::Invariant;
use crate::steps::catalogue::{Catalogue, CatalogueTable, claim_pages};
use crate::steps::directory::{LeafView, range_words};
use crate::steps::images::{self, TableTally};
use crate::steps::owners::Owners;
use crate::steps::rows::{self, Holder, Limits};
use crate::store::Store;

/// Images of all runs of a range that are in memory at a time, where each run may have so many.
const IMAGES_OF_RANGE: usize = 128;
const IMAGES_OF_RUN: Range<usize> = 2..33;

/// What a row of a fragment hides, in the words of a loss.
const OLDER_MAY_SHOW: &str =
    "; older versions of the rows that this run had may be there instead, and rows that it removed";

/// Slots and who owns them, for all threads.
pub(crate) type SharedOwners<'a> = Mutex<&'a mut Owners>;

/// Whoever reads a range. One thread.
pub(crate) struct RangeWork<'a> {
    store: &'a Store<'a>,
    catalogue: &'a Catalogue,
    pub(crate) range: LeafView<'a>,
    physical_only: bool,
    /// Rows are handed over: none that is not sound, and what was found is kept by each run.
    salvages: bool,
    since: Cell<Instant>,
}

/// What was found in a salvage: images and bytes that are lost by it.
pub(crate) type Lost = (Finding, Option<u64>, Option<u64>);

impl<'a> RangeWork<'a> {
    pub(crate) fn new(
        store: &'a Store<'a>,
        catalogue: &'a Catalogue,
        range: LeafView<'a>,
        physical_only: bool,
        salvages: bool,
    ) -> RangeWork<'a> {
        let since = Cell::new(Instant::now());
        RangeWork { store, catalogue, range, physical_only, salvages, since }
    }

    fn table(&self) -> &'a CatalogueTable {
        &self.catalogue.tables[self.range.table]
    }

    /// Reports of the range, at a slot.
    fn report(&self, invariant: Invariant, slot: SlotNumber, found: impl Into<String>) {
        images::report(self.store, self.catalogue, slot, &self.range, invariant, found);
    }

    /// Whether the key is one of the range.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        key >= self.range.low && self.range.high.is_none_or(|high| key < high)
    }

    /// The runs, the newest first. One whose head cannot be read has its finding and is left out.
    pub(crate) fn open(&'a self, owners: &SharedOwners<'_>, stock: &Stock) -> Vec<RunReader<'a>> {
        let end = self.store.superblock.end;
        let place = stock.heads.first().copied().or(self.store.superblock.root);
        if let Some(slot) = place.map(|place| place.first).filter(|_| stock.flushed_below > end) {
            let found = format!("a stock of LSN {}, where E is {end}", stock.flushed_below);
            self.report(Invariant::RunsFit, slot, found);
        }
        let buffered = (IMAGES_OF_RANGE / stock.heads.len().max(1))
            .clamp(IMAGES_OF_RUN.start, IMAGES_OF_RUN.end - 1);
        let mut runs = Vec::new();
        for (number, place) in stock.heads.iter().enumerate() {
            if self.store.gives_up() {
                break;
            }
            let Some(head) = self.read_head(owners, *place, number) else { continue };
            self.check_head(&head, number, place.first);
            runs.push(RunReader::new(self, owners, (head, place.first), buffered));
        }
        runs.reverse();
        runs
    }

    fn read_head(
        &self,
        owners: &SharedOwners<'_>,
        place: BlobAddress,
        number: usize,
    ) -> Option<RunHead> {
        let lock = || owners.lock().unwrap_or_else(PoisonError::into_inner);
        if !lock().claim_page(place.first) {
            let found = format!("{} is named by a run and by something else", place.first);
            self.report(Invariant::SlotOwned, place.first, found);
            return None;
        }
        let report = |found: &str| {
            let hidden = if self.salvages && number > 0 { OLDER_MAY_SHOW } else { "" };
            self.report(Invariant::RunHeadDecodes, place.first, format!("{found}{hidden}"));
        };
        let Some((bytes, slots)) = self.store.read_blob(place) else {
            // What the page's own finding cannot know: whose keys are gone.
            report("the head cannot be read, see its page");
            return None;
        };
        claim_pages(self.store, &mut lock(), slots.get(1..).unwrap_or_default());
        let head = match RunHead::read(bytes) {
            Ok(head) => head,
            Err(found) => {
                report(found);
                return None;
            }
        };
        let object = self.table().root.object;
        if head.object != object {
            report(&format!("a run of object {}, not {object}", head.object));
            return None;
        }
        Some(head)
    }

    fn check_head(&self, head: &RunHead, number: usize, slot: SlotNumber) {
        let end = self.store.superblock.end;
        if number > 0 && head.kind == RunKind::Base {
            let found = format!("run {number} of a range is a base, and not the oldest one");
            self.report(Invariant::RunsFit, slot, found);
        }
        if head.newest > end {
            let found = format!("a run up to LSN {}, where E is {end}", head.newest);
            self.report(Invariant::RunsFit, slot, found);
        }
        let (first, last) = (head.low(0), head.low(head.images.len() - 1));
        if !self.has(first) || !self.has(last) {
            let found = "a run with an image that begins outside of the range";
            self.report(Invariant::RunsFit, slot, found);
        }
    }

    /// Something was read: it may be time to rest.
    fn rest(&self) {
        self.store.companion.rest(self.since.get().elapsed());
        self.since.set(Instant::now());
    }
}

/// Reads the images of a run, and stands at one entry after the other.
pub(crate) struct RunReader<'a> {
    work: &'a RangeWork<'a>,
    head: RunHead,
    head_slot: SlotNumber,
    /// Numbers of images that nobody can read, ascending.
    unusable: Vec<usize>,
    buffer: AlignedBuffer,
    /// Numbers of the image that is first in the buffer, of those there that wait, and of the next to be read.
    first: usize,
    waiting: Range<usize>,
    next: usize,
    /// The image at hand, and where its other entries are in the buffer.
    image: usize,
    rest: Range<usize>,
    entry: Option<Place>,
    seen: Seen,
    /// All entries so far were read as they were written.
    is_whole: bool,
    pub(crate) tally: TableTally,
    pub(crate) read_bytes: u64,
    /// In a salvage: what was found, and of the image at hand where rows that are not sound begin, as numbers of it.
    pub(crate) lost: Vec<Lost>,
    damaged: HashMap<usize, usize>,
}

/// Where an entry is in the buffer.
struct Place {
    stamp: u64,
    key: Range<usize>,
    value: Range<usize>,
}

/// What the entries read so far are.
#[derive(Default)]
struct Seen {
    entries: u64,
    bytes: u64,
    newest: Lsn,
    /// How many keys the head does not know, and the first of them.
    unknown: u64,
    first_unknown: Vec<u8>,
    /// Intents of transactions that the head does not name.
    unnamed: u64,
}

impl<'a> RunReader<'a> {
    fn new(
        work: &'a RangeWork<'a>,
        owners: &SharedOwners<'_>,
        (head, head_slot): (RunHead, SlotNumber),
        buffered: usize,
    ) -> RunReader<'a> {
        let buffer = AlignedBuffer::new(buffered.min(head.images.len()) * SLOT_BYTES);
        let mut reader = RunReader {
            work,
            head,
            head_slot,
            unusable: Vec::new(),
            buffer,
            first: 0,
            waiting: 0..0,
            next: 0,
            image: 0,
            rest: 0..0,
            entry: None,
            seen: Seen::default(),
            is_whole: true,
            tally: TableTally::of(work.table()),
            read_bytes: 0,
            lost: Vec::new(),
            damaged: HashMap::new(),
        };
        reader.take_findings(None);
        reader.claim(owners);
        let bytes = (reader.head.images.len() * SLOT_BYTES) as u64;
        work.store.progress.add_total(bytes);
        reader
    }

    /// Images have one owner each.
    fn claim(&mut self, owners: &SharedOwners<'_>) {
        let store = self.work.store;
        for number in 0..self.head.images.len() {
            let slot = self.head.images[number].slot;
            let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
            let (invariant, found) = match store.file_of(slot) {
                Err(found) => (Invariant::SlotExists, format!("{slot}: {found}")),
                Ok(_) if owners.claim_page(slot) => continue,
                Ok(_) => {
                    let found = format!("{slot} is named by this run and by another owner");
                    (Invariant::SlotOwned, found)
                }
            };
            drop(owners);
            let work = self.work;
            images::report(store, work.catalogue, slot, &self.view(number), invariant, found);
            self.unusable.push(number);
            self.lose_image(number);
        }
    }

    fn view(&self, number: usize) -> LeafView<'_> {
        view(&self.head, self.work.range, number)
    }

    fn lose_image(&mut self, number: usize) {
        self.is_whole = false;
        self.take_findings(Some(number));
    }

    /// In a salvage: keeps what was found, of an image that is lost by it or of the head.
    fn take_findings(&mut self, image: Option<usize>) {
        if !self.work.salvages {
            return;
        }
        let found = self.work.store.findings.take();
        for (at, finding) in
            found.into_iter().filter(|it| image.is_none() || !is_of_row(it)).enumerate()
        {
            // An image with several faults is lost once.
            let images = image.map(|_| u64::from(at == 0));
            self.lose(finding, image, images, images.map(|images| images * SLOT_BYTES as u64));
        }
    }

    fn lose(
        &mut self,
        mut finding: Finding,
        image: Option<usize>,
        images: Option<u64>,
        bytes: Option<u64>,
    ) {
        let table = self.work.table();
        finding.table.get_or_insert_with(|| table.name());
        if finding.keys.is_none() {
            let view = image.map_or(self.work.range, |image| self.view(image));
            finding.keys = Some(range_words(table, view.low, view.high));
        }
        if self.head.kind == RunKind::Fragment && image.is_some() {
            finding.found.push_str(OLDER_MAY_SHOW);
        }
        self.lost.push((finding, images, bytes));
    }

    /// Goes to the next entry; false behind the last.
    pub(crate) fn advance(&mut self) -> bool {
        loop {
            let start = self.rest.start;
            let mut rest = &self.buffer[self.rest.clone()];
            let Some(entry) = take_entry(&mut rest) else {
                if self.next_image() {
                    continue;
                }
                self.entry = None;
                return false;
            };
            let end = self.rest.end - rest.len();
            let value = end - entry.value.len()..end;
            let key = value.start - entry.key.len()..value.start;
            self.seen.note(&self.head, &entry, (end - start) as u64, self.is_whole);
            self.entry = Some(Place { stamp: entry.stamp, key, value });
            self.rest.start = end;
            match self.damaged.get(&start) {
                None => return true,
                // A row with several faults is lost once.
                Some(lost) => self.lost[*lost].2 = Some((end - start) as u64),
            }
        }
    }

    /// The entry at hand.
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        let Place { stamp, key, value } = self.entry.as_ref()?;
        let (key, value) = (&self.buffer[key.clone()], &self.buffer[value.clone()]);
        Some(Entry { stamp: *stamp, key, value })
    }

    /// The intent on the row or removal at hand: the next entry, of the same image. None if that is lost.
    pub(crate) fn intent_on(&self) -> Option<Intent> {
        if self.damaged.contains_key(&self.rest.start) {
            return None;
        }
        let mut rest = &self.buffer[self.rest.clone()];
        let (own, next) = (self.entry()?, take_entry(&mut rest)?);
        next.intent().filter(|_| next.key == own.key)
    }

    /// Goes on in the next image; false behind the last.
    pub(crate) fn next_image(&mut self) -> bool {
        self.rest = 0..0;
        self.damaged.clear();
        while !self.waiting.is_empty() || self.fill() {
            self.image = self.waiting.start;
            self.waiting.start += 1;
            match self.check_image() {
                Some(entries) => {
                    self.rest = entries;
                    return true;
                }
                None => self.lose_image(self.image),
            }
        }
        false
    }

    /// Reads some images that lie side by side; false behind the last.
    fn fill(&mut self) -> bool {
        let store = self.work.store;
        loop {
            while self.unusable.binary_search(&self.next).is_ok() {
                self.next += 1;
            }
            if self.next >= self.head.images.len() {
                return false;
            }
            if store.gives_up() {
                self.is_whole = false;
                return false;
            }
            let slot = self.head.images[self.next].slot;
            let mut images = self.side_by_side();
            let read_all = store.file_of(slot).is_ok_and(|file| {
                let buffer = &mut self.buffer[..images * SLOT_BYTES];
                file.file.read_at(buffer, slot.offset()).is_ok()
            });
            let mut is_read = read_all;
            if !read_all {
                images = 1;
                is_read = store.read(slot, &mut self.buffer[..SLOT_BYTES]).is_ok();
            }
            let bytes = images * SLOT_BYTES;
            (self.first, self.waiting) = (self.next, self.next..self.next + images);
            self.next += images;
            store.progress.add_done(bytes as u64);
            self.work.rest();
            if is_read {
                self.read_bytes += bytes as u64;
                store.companion.pages(slot.file(), slot.offset(), &self.buffer[..bytes]);
                return true;
            }
            self.waiting = 0..0;
            self.lose_image(self.first);
        }
    }

    /// How many images from the next one on lie side by side, and in the buffer.
    fn side_by_side(&self) -> usize {
        let most = self.buffer.len() / SLOT_BYTES;
        let images = &self.head.images[self.next..];
        let first = images[0].slot;
        let follows = |(at, image): &(usize, &RunImage)| {
            image.slot.0 == first.0.wrapping_add(*at as u64)
                && image.slot.file() == first.file()
                && self.unusable.binary_search(&(self.next + at)).is_err()
        };
        images.iter().enumerate().take(most).take_while(follows).count().max(1)
    }

    /// Checks the image at hand. Where its entries are in the buffer; none if it is lost.
    fn check_image(&mut self) -> Option<Range<usize>> {
        let (work, number) = (self.work, self.image);
        let (store, catalogue) = (work.store, work.catalogue);
        let slot = self.head.images[number].slot;
        let at = (number - self.first) * SLOT_BYTES;
        let page = &self.buffer[at..at + SLOT_BYTES];
        let view = view(&self.head, work.range, number);
        let (image, mut is_sound) = images::open(store, catalogue, slot, &view, page)?;
        if image.fences.is_some() {
            let found = "fences in the header of a run's image";
            images::report(store, catalogue, slot, &view, Invariant::ImageAddsUp, found);
            is_sound = false;
        }
        let entries_at = at + entry_offset(&image, image.entries);
        let entries = entries_at..entries_at + image.entries.len();
        let mut highest = std::mem::take(&mut self.tally.highest);
        let mut faults: Vec<(usize, Finding)> = Vec::new();
        if let Some(plan) = work.table().plan.as_ref().filter(|_| !work.physical_only) {
            let holder = match self.head.kind {
                RunKind::Base => Holder::Base,
                RunKind::Fragment => Holder::Fragment,
            };
            let (end, next_large) = (store.superblock.end, catalogue.large.next);
            let limits = Limits { holder, fences: Some((view.low, view.high)), end, next_large };
            rows::check(&image, plan, limits, &mut highest, |fault| {
                let offset = slot.offset() + fault.offset as u64;
                let finding = Finding::new(fault.invariant, store.path(slot), offset, fault.found);
                let keys = match fault.key.is_empty() {
                    true => plan.key.range_words(view.low, view.high),
                    false => format!("key {}", plan.key.words(fault.key)),
                };
                let finding = finding.of_table(&plan.name).with_keys(keys);
                match work.salvages {
                    false => store.findings.add(finding),
                    true => faults.push((at + fault.offset, finding)),
                }
                is_sound &= is_of_row_kind(fault.invariant);
            });
        }
        self.tally.highest = highest;
        self.is_whole &= is_sound;
        if work.salvages && !is_sound {
            faults.into_iter().for_each(|(_, finding)| store.findings.add(finding));
            return None;
        }
        self.tally.images += 1;
        for (at, finding) in faults {
            self.damaged.entry(at).or_insert(self.lost.len());
            self.lose(finding, Some(number), Some(0), Some(0));
        }
        Some(entries)
    }

    /// All was read: is it what the head says?
    pub(crate) fn finish(&mut self) {
        let (work, head, seen) = (self.work, &self.head, &self.seen);
        let is_counted = work.table().plan.is_some() && !work.physical_only && self.is_whole;
        let is_other = (seen.entries, seen.bytes, seen.newest)
            != (head.entries, head.entry_bytes, head.newest);
        if seen.unnamed > 0 {
            let found =
                format!("{} intents of transactions that the head does not name", seen.unnamed);
            work.report(Invariant::RunAddsUp, self.head_slot, found);
        }
        if is_counted && is_other || seen.newest > head.newest {
            let found = format!(
                "{} entries of {} bytes up to LSN {}, where the head says {} of {} up to {}",
                seen.entries, seen.bytes, seen.newest, head.entries, head.entry_bytes, head.newest
            );
            work.report(Invariant::RunAddsUp, self.head_slot, found);
        }
        if seen.unknown > 0 {
            let table = work.table();
            let found = format!("{} keys that the head does not know", seen.unknown);
            let finding = work.store.at_slot(Invariant::RunKnowsKeys, self.head_slot, found);
            let key = table.plan.as_ref().map(|plan| plan.key.words(&seen.first_unknown));
            let keys = format!("key {}", key.unwrap_or_default());
            work.store.findings.add(finding.of_table(&table.name()).with_keys(keys));
        }
        self.take_findings(None);
    }
}

/// An image of a run as if it were that of a leaf between the low fences.
fn view<'h>(head: &'h RunHead, range: LeafView<'h>, number: usize) -> LeafView<'h> {
    let next = number + 1;
    let is_last = next == head.images.len();
    LeafView {
        table: range.table,
        checksum: head.images[number].checksum,
        low: head.low(number),
        high: if is_last { range.high } else { Some(head.low(next)) },
    }
}

impl Seen {
    fn note(&mut self, head: &RunHead, entry: &Entry<'_>, bytes: u64, is_whole: bool) {
        // Behind an image that is lost nobody knows which hash of a fragment is whose.
        let is_to_be_known = head.kind == RunKind::Base || is_whole;
        if is_to_be_known && !head.knows(self.entries, entry.key) {
            if self.unknown == 0 {
                self.first_unknown = entry.key.to_vec();
            }
            self.unknown += 1;
        }
        self.entries += 1;
        self.bytes += bytes;
        match entry.intent() {
            Some(Intent { id, .. }) => {
                self.unnamed += u64::from(head.owners.binary_search(&id).is_err());
            }
            None => self.newest = self.newest.max(entry.lsn().unwrap_or_default()),
        }
    }
}

fn is_of_row(finding: &Finding) -> bool {
    is_of_row_kind(finding.invariant)
}

fn is_of_row_kind(invariant: Invariant) -> bool {
    invariant.area() == "rows"
}
