//! Reads parts of a stock: one key, or the rows of a stretch of keys. Whoever needs one gives permit and latch back
//! meanwhile, and comes again with what was read, which counts only if the range has the same stock still.

use std::fmt;
use std::ops::Range as Span;
use std::sync::Arc;

use onrush_files::AlignedBuffer;
use onrush_waits::{Counter, Recorder, Wait};

use super::image::{BadImage, IMAGE_HEADER_BYTES, check_page, visit_entries};
use super::run::{Run, hash_of};
use super::stock::Stock;
use super::{Range, Storage};
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::node::fence::head;
use crate::node::leaf::{Entry, Stamp, read_entry};
use crate::space::SlotId;
use crate::units::{EXTENT_SLOTS, LEAF_BYTES, ObjectId};

/// Images that a long scan reads of a run at a time: 1 MiB.
pub(crate) const PART_IMAGES_MAX: usize = EXTENT_SLOTS;

/// Which part of a stock is to be read.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WantedPart {
    stock: SameStock,
    object: ObjectId,
    extent: Extent,
}

#[derive(Clone)]
struct SameStock(Arc<Stock>);

impl PartialEq for SameStock {
    fn eq(&self, other: &SameStock) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SameStock {}

impl fmt::Debug for WantedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WantedPart")
            .field("object", &self.object)
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Extent {
    Key(Box<[u8]>),
    /// The first keys from `low` on, or the last ones below `high`: as many as lie in so many images of the run
    /// that has the most of them.
    Keys {
        low: Box<[u8]>,
        high: Option<Box<[u8]>>,
        from_high: bool,
        images_max: usize,
    },
}

impl WantedPart {
    /// One key.
    pub(crate) fn key(stock: &Arc<Stock>, object: ObjectId, key: &[u8]) -> WantedPart {
        let extent = Extent::Key(key.into());
        WantedPart { stock: SameStock(Arc::clone(stock)), object, extent }
    }

    /// The first keys of these bounds, or the last ones.
    pub(crate) fn keys(
        stock: &Arc<Stock>,
        object: ObjectId,
        (low, high): (&[u8], Option<&[u8]>),
        from_high: bool,
        images_max: usize,
    ) -> WantedPart {
        let (low, high) = (low.into(), high.map(Box::from));
        let extent = Extent::Keys { low, high, from_high, images_max };
        WantedPart { stock: SameStock(Arc::clone(stock)), object, extent }
    }
}

/// What a stock has from `low` on and below `high`.
pub(crate) struct StockPart {
    stock: Arc<Stock>,
    low: Box<[u8]>,
    /// None: to the end of the table.
    high: Option<Box<[u8]>>,
    /// Images that were read of the run with the most of them.
    images: usize,
    pages: Vec<AlignedBuffer>,
    /// In key order; of one key intents, the newest first, and behind them the row that they stand on, if there is
    /// one.
    rows: Vec<PartRow>,
}

/// Where a row, or an intent, lies.
#[derive(Clone, Copy)]
struct PartRow {
    key_head: u64,
    page: u32,
    at: u32,
    stamp: Stamp,
}

/// What a stock has of one key.
#[derive(Clone, Copy)]
pub(crate) struct StockKey<'p> {
    part: &'p StockPart,
    rows: &'p [PartRow],
}

impl<'p> StockKey<'p> {
    pub(crate) fn key(&self) -> &'p [u8] {
        self.part.entry(&self.rows[0]).key
    }

    /// Rows and intents.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Intents of large transactions, the newest first.
    pub(crate) fn intents(&self) -> impl DoubleEndedIterator<Item = Entry<'p>> {
        let (part, rows) = (self.part, self.rows);
        let intents = rows.iter().filter(|row| row.stamp.as_intent().is_some());
        intents.map(|row| part.entry(row))
    }

    /// The row below the intents.
    pub(crate) fn row(&self) -> Option<Entry<'p>> {
        let (part, last) = (self.part, self.rows.last()?);
        last.stamp.lsn().map(|_| part.entry(last))
    }
}

impl StockPart {
    /// Whether it is of this stock.
    pub(crate) fn is_of(&self, stock: &Arc<Stock>) -> bool {
        Arc::ptr_eq(&self.stock, stock)
    }

    pub(crate) fn low(&self) -> &[u8] {
        &self.low
    }

    pub(crate) fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// Whether it tells about `key`.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// Images for the next part of a scan that went through this one.
    pub(crate) fn images_next(&self) -> usize {
        (self.images * 2).clamp(1, PART_IMAGES_MAX)
    }

    fn entry(&self, row: &PartRow) -> Entry<'_> {
        let (entry, _) = read_entry(&self.pages[row.page as usize][..], row.at as usize)
            .expect("the page was read through when it came from the disk");
        entry
    }

    /// Rows and intents.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The key whose first row or intent is at `index`.
    pub(crate) fn key_at(&self, index: usize) -> StockKey<'_> {
        let first = &self.rows[index];
        // Behind a row comes another key.
        let mut end = index + 1;
        while self.rows[end - 1].stamp.as_intent().is_some()
            && self.rows.get(end).is_some_and(|next| self.has_one_key(first, next))
        {
            end += 1;
        }
        StockKey { part: self, rows: &self.rows[index..end] }
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = StockKey<'_>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let key = (next < self.len()).then(|| self.key_at(next))?;
            next += key.len();
            Some(key)
        })
    }

    fn has_one_key(&self, a: &PartRow, b: &PartRow) -> bool {
        a.key_head == b.key_head && self.entry(a).key == self.entry(b).key
    }

    /// Rows and intents with keys below `key`.
    pub(crate) fn rows_below(&self, key: &[u8]) -> usize {
        let key_head = head(key);
        self.rows.partition_point(|row| {
            row.key_head.cmp(&key_head).then_with(|| self.entry(row).key.cmp(key)).is_lt()
        })
    }

    /// What is at `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<StockKey<'_>> {
        let first = self.rows_below(key);
        let is_there = self.rows.get(first).is_some_and(|row| self.entry(row).key == key);
        is_there.then(|| self.key_at(first))
    }

    /// Puts what was read of all runs, the newest first, in key order, and drops what newer runs make void: all behind
    /// the first row or removal of a key, and removals.
    fn put_in_order(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        // Stable: of equal keys what is newer stays first.
        rows.sort_by(|a, b| {
            a.key_head.cmp(&b.key_head).then_with(|| self.entry(a).key.cmp(self.entry(b).key))
        });
        let mut decided: Option<PartRow> = None;
        rows.retain(|row| {
            if decided.is_some_and(|decided| self.has_one_key(&decided, row)) {
                return false;
            }
            if row.stamp.decided_at().is_some() {
                decided = Some(*row);
            }
            true
        });
        rows.retain(|row| row.stamp.as_intent().is_some() || !row.stamp.is_removal());
        self.rows = rows;
    }
}

impl Storage {
    /// Reads what is wanted. Called without latches and without a permit.
    ///
    /// # Errors
    /// A damaged image, with its place; a failed read.
    pub(crate) fn read_part(&self, wanted: &WantedPart, recorder: &Recorder) -> Result<StockPart> {
        let WantedPart { stock: SameStock(stock), object, extent } = wanted;
        match extent {
            Extent::Key(key) => self.read_key(stock, *object, key, recorder),
            Extent::Keys { low, high, from_high, images_max } => {
                let (low, high) = (low.clone(), high.clone());
                let bounds = bounded(stock, (low, high), *from_high, *images_max);
                self.read_keys(stock, *object, bounds, recorder)
            }
        }
    }

    /// The rows from `low` on that lie in so many images of the run that has the most of them.
    ///
    /// # Errors
    /// As [`read_part`](Self::read_part).
    pub(crate) fn read_merged(
        &self,
        stock: &Arc<Stock>,
        range: &Range,
        low: Box<[u8]>,
        images_max: usize,
        recorder: &Recorder,
    ) -> Result<StockPart> {
        let bounds = bounded(stock, (low, range.high.clone()), false, images_max);
        self.read_keys(stock, range.object, bounds, recorder)
    }

    fn read_key(
        &self,
        stock: &Arc<Stock>,
        object: ObjectId,
        key: &[u8],
        recorder: &Recorder,
    ) -> Result<StockPart> {
        let above = [key, &[0]].concat();
        let mut part = StockPart {
            stock: Arc::clone(stock),
            low: key.into(),
            high: Some(above.into()),
            images: 1,
            pages: Vec::new(),
            rows: Vec::new(),
        };
        for run in stock.candidates(hash_of(key)) {
            let images = run.images_in(key, part.high.as_deref());
            if images.is_empty() {
                continue;
            }
            let (rows, pages) = (part.rows.len(), part.pages.len());
            self.read_images(run, object, images, &mut part, recorder)?;
            if part.rows.len() == rows {
                part.pages.truncate(pages);
            }
            // The newest run that has more than an intent decides.
            if part.rows.last().is_some_and(|row| row.stamp.decided_at().is_some()) {
                break;
            }
        }
        part.put_in_order();
        recorder.count(Counter::StockReads, 1);
        Ok(part)
    }

    fn read_keys(
        &self,
        stock: &Arc<Stock>,
        object: ObjectId,
        (low, high): (Box<[u8]>, Option<Box<[u8]>>),
        recorder: &Recorder,
    ) -> Result<StockPart> {
        let (stock, pages) = (Arc::clone(stock), Vec::new());
        let mut part = StockPart { stock, low, high, images: 0, pages, rows: Vec::new() };
        let stock = Arc::clone(&part.stock);
        let mut runs: Vec<&Arc<Run>> = stock.runs().collect();
        if planted(Fault::OlderRunWins) {
            runs.reverse();
        }
        for run in runs {
            let images = run.images_in(&part.low, part.high.as_deref());
            part.images = part.images.max(images.len());
            self.read_images(run, object, images, &mut part, recorder)?;
        }
        part.put_in_order();
        Ok(part)
    }

    /// Reads images of a run, and adds their rows inside the part's bounds to it.
    fn read_images(
        &self,
        run: &Run,
        object: ObjectId,
        images: Span<usize>,
        part: &mut StockPart,
        recorder: &Recorder,
    ) -> Result<()> {
        let mut rest = images;
        while !rest.is_empty() {
            let slots = &run.slots.ids()[rest.clone()];
            let together = SlotId::side_by_side(slots).min(PART_IMAGES_MAX);
            let mut pages = AlignedBuffer::new(together * LEAF_BYTES);
            {
                let _wait = recorder.wait(Wait::StockRead);
                self.space.files().read(slots[0], &mut pages)?;
            }
            recorder.count(Counter::StockReadBytes, pages.len() as u64);
            let number_of_pages = part.pages.len() as u32;
            for (number, page) in pages.chunks_exact(LEAF_BYTES).enumerate() {
                let named = (slots[number], run.checksums[rest.start + number]);
                let rows = check_page(page, self.database_id, object, named).and_then(|()| {
                    let bounds = (&*part.low, part.high.as_deref());
                    take_rows(page, bounds, (number_of_pages, number * LEAF_BYTES), &mut part.rows)
                });
                rows.map_err(|bad| self.damage(named.0, bad))?;
            }
            part.pages.push(pages);
            rest.start += together;
        }
        Ok(())
    }
}

/// Adds the rows of a checked page inside the bounds, the intent on a row in front of it. The page lies in the part's
/// pages as told.
fn take_rows(
    page: &[u8],
    (low, high): (&[u8], Option<&[u8]>),
    (number, start): (u32, usize),
    rows: &mut Vec<PartRow>,
) -> std::result::Result<(), BadImage> {
    let mut last_key = None;
    visit_entries(page, |offset, entry| {
        if entry.key >= low && high.is_none_or(|high| entry.key < high) {
            rows.push(PartRow {
                key_head: head(entry.key),
                page: number,
                at: (start + IMAGE_HEADER_BYTES + offset) as u32,
                stamp: entry.stamp,
            });
            if entry.stamp.as_intent().is_some() && last_key == Some(entry.key) {
                let last = rows.len() - 1;
                rows.swap(last - 1, last);
            }
            last_key = Some(entry.key);
        }
    })
}

/// The bounds of the first keys, or of the last ones, that lie in `images_max` images of the run with the most.
fn bounded(
    stock: &Stock,
    (mut low, mut high): (Box<[u8]>, Option<Box<[u8]>>),
    from_high: bool,
    images_max: usize,
) -> (Box<[u8]>, Option<Box<[u8]>>) {
    let images = |run: &Arc<Run>| run.images_in(&low, high.as_deref());
    let longest = stock.runs().map(|run| (images(run), run)).max_by_key(|(images, _)| images.len());
    if let Some((images, run)) = longest.filter(|(images, _)| images.len() > images_max) {
        if from_high {
            low = run.low(images.end - images_max).into();
        } else {
            high = Some(run.low(images.start + images_max).into());
        }
    }
    (low, high)
}
