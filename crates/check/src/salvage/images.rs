//! The rows of images: each image is checked as a check does it, then its good rows are handed over.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use onrush_files::AlignedBuffer;
use onrush_lsn::Lsn;

use crate::decode::image::{Entry, Image, entry_offset, take_entry};
use crate::decode::slot::SLOT_BYTES;
use crate::finding::Finding;
use crate::salvage::report::Loss;
use crate::salvage::survey::Wanted;
use crate::salvage::{SalvageReport, SalvageTarget};
use crate::steps::catalogue::Catalogue;
use crate::steps::directory::{self, Batch, Holding, Named, NamedStock, range_words};
use crate::steps::images::{ImageChecker, Tally};
use crate::steps::large::LargeStatuses;
use crate::steps::merge::{IntentMeanings, Merge};
use crate::steps::owners::Owners;
use crate::steps::runs::RangeWork;
use crate::store::Store;

/// Keys by table.
pub(super) type Keys = HashSet<(usize, Box<[u8]>)>;

/// See the module.
pub(super) struct Images<'a> {
    store: &'a Store<'a>,
    catalogue: &'a Catalogue,
    owners: Owners,
    page: AlignedBuffer,
    /// The end of the good part of the log.
    end: Lsn,
    statuses: &'a LargeStatuses,
    /// Rows that are newer than that: older records of the log do not touch them.
    newer: &'a mut Keys,
}

impl<'a> Images<'a> {
    pub(super) fn new(
        store: &'a Store<'a>,
        catalogue: &'a Catalogue,
        (end, statuses): (Lsn, &'a LargeStatuses),
        newer: &'a mut Keys,
    ) -> Images<'a> {
        let page = AlignedBuffer::new(SLOT_BYTES);
        Images { store, catalogue, owners: Owners::new(store), page, end, statuses, newer }
    }

    /// All rows of one table's images.
    pub(super) fn hand_over<T: SalvageTarget>(
        &mut self,
        wanted: &mut Wanted,
        table: usize,
        target: &mut T,
        report: &mut SalvageReport,
    ) -> Result<(), T::Error> {
        let (store, catalogue) = (self.store, self.catalogue);
        let Some(place) = wanted.tables[table].catalogue else { return Ok(()) };
        let named = &catalogue.tables[place];
        directory::check_lows(store, named);
        for segment in &named.root.segments {
            let images = directory::estimated_image_bytes(&segment.low, segment.place);
            store.progress.add_total(images);
        }
        for number in 0..named.root.segments.len() {
            let segment = [(place, number)];
            let batch = Batch::read(store, &mut self.owners, catalogue, &segment, 1);
            report.take_directory(store.findings);
            for holding in batch.by_key() {
                match holding {
                    Holding::Image(image) => {
                        self.image(wanted, table, &batch, image, target, report)?;
                    }
                    Holding::Stock(stock) => {
                        self.stock(wanted, table, &batch, stock, target, report)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a row, or an intent, is what its key has in the end. `rest` is behind it.
    fn stands(&self, image: &Image<'_>, entry: &Entry<'_>, mut rest: &[u8]) -> bool {
        let counts = |entry: &Entry<'_>| {
            let intent = entry.intent();
            intent.is_some_and(|it| self.statuses.intent_counts(it, image.object, entry.key))
        };
        match entry.intent() {
            Some(intent) => !intent.removes && counts(entry),
            None => {
                let next = take_entry(&mut rest).filter(|next| next.key == entry.key);
                !next.is_some_and(|next| counts(&next))
            }
        }
    }

    /// The rows of a range, of each key what the newest run has that can be read.
    fn stock<T: SalvageTarget>(
        &mut self,
        wanted: &mut Wanted,
        table: usize,
        batch: &Batch,
        named: NamedStock,
        target: &mut T,
        report: &mut SalvageReport,
    ) -> Result<(), T::Error> {
        let (stock, range) = batch.stock(named);
        let work = RangeWork::new(self.store, self.catalogue, range, false, true);
        let (store, catalogue, statuses) = (self.store, self.catalogue, Some(self.statuses));
        let object = catalogue.tables[range.table].root.object;
        let intents = IntentMeanings { store, catalogue, statuses, object };
        let mut merge = Merge::new(work.open(&Mutex::new(&mut self.owners), stock), intents);
        while let Some(entry) = merge.next(|key| work.has(key)) {
            if !work.has(entry.key) {
                continue;
            }
            if entry.lsn().is_some_and(|lsn| lsn >= self.end) {
                self.newer.insert((table, entry.key.into()));
            }
            if entry.is_removal() || entry.intent().is_some_and(|intent| intent.removes) {
                continue;
            }
            wanted.tables[table].note_numbers(entry.key, entry.value);
            report.tables[table].image_rows += 1;
            target.image_row(table, entry.key, entry.value)?;
        }
        for mut run in merge.into_runs() {
            run.finish();
            report.tables[table].images += run.tally.images;
            report.take_lost(run.lost);
        }
        // Of runs whose heads cannot be read.
        report.take_directory(self.store.findings);
        Ok(())
    }

    fn image<T: SalvageTarget>(
        &mut self,
        wanted: &mut Wanted,
        table: usize,
        batch: &Batch,
        named: Named,
        target: &mut T,
        report: &mut SalvageReport,
    ) -> Result<(), T::Error> {
        let (store, catalogue) = (self.store, self.catalogue);
        if store.read(named.slot, &mut self.page).is_ok() {
            let tally = Tally::new(catalogue);
            let (physical_only, statuses) = (false, None);
            let mut checker =
                ImageChecker { store, catalogue, batch, physical_only, statuses, tally };
            checker.check_image(named, &self.page, false);
        }
        store.progress.add_done(SLOT_BYTES as u64);
        let findings = store.findings.take();
        let (of_rows, of_image): (Vec<Finding>, Vec<Finding>) =
            findings.into_iter().partition(|finding| finding.invariant.area() == "rows");
        let leaf = batch.leaf(named);
        if !of_image.is_empty() {
            let described = &catalogue.tables[leaf.table];
            let keys = range_words(described, leaf.low, leaf.high);
            let losses = of_image.into_iter().enumerate().map(|(number, mut finding)| {
                finding.table.get_or_insert_with(|| described.name());
                finding.keys.get_or_insert_with(|| keys.clone());
                // An image with several faults is lost once.
                let images = u64::from(number == 0);
                Loss { finding, images: Some(images), bytes: Some(images * SLOT_BYTES as u64) }
            });
            report.losses.extend(losses);
            return Ok(());
        }
        // Read a second time: the checker keeps what it has read to itself.
        let Ok(image) = Image::read(&self.page) else { return Ok(()) };
        report.tables[table].images += 1;
        let mut damaged: HashMap<u64, u64> =
            of_rows.iter().map(|finding| (finding.offset, 0)).collect();
        let mut rest = image.entries;
        loop {
            let offset = named.slot.offset() + entry_offset(&image, rest) as u64;
            let Some(entry) = take_entry(&mut rest) else { break };
            if let Some(bytes) = damaged.get_mut(&offset) {
                *bytes = (entry.key.len() + entry.value.len()) as u64;
                continue;
            }
            if entry.key < leaf.low || leaf.high.is_some_and(|high| entry.key >= high) {
                continue;
            }
            if !self.stands(&image, &entry, rest) {
                continue;
            }
            if entry.lsn().is_some_and(|lsn| lsn >= self.end) {
                self.newer.insert((table, entry.key.into()));
            }
            wanted.tables[table].note_numbers(entry.key, entry.value);
            report.tables[table].image_rows += 1;
            target.image_row(table, entry.key, entry.value)?;
        }
        let losses = of_rows.into_iter().map(|finding| {
            // A row with several faults is lost once.
            let bytes = damaged.remove(&finding.offset).unwrap_or(0);
            Loss { finding, images: Some(0), bytes: Some(bytes) }
        });
        report.losses.extend(losses);
        Ok(())
    }
}
