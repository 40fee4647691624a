//! The stocks of a batch, range by range: each run's head, each image, and what the runs are together.

use crate::pieces;
use crate::steps::catalogue::Catalogue;
use crate::steps::directory::{Batch, NamedStock};
use crate::steps::images::{TableTally, Tally};
use crate::steps::large::LargeStatuses;
use crate::steps::merge::{IntentMeanings, Merge};
use crate::steps::runs::{RangeWork, RunReader, SharedOwners};
use crate::store::Store;

/// Bytes of rows that are handed over at a time.
const HANDED_OVER_BYTES: usize = 64 << 10;

/// See the module.
pub(crate) struct Stocks<'a> {
    pub(crate) store: &'a Store<'a>,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) batch: &'a Batch,
    pub(crate) physical_only: bool,
    /// Of directory and log, where rows are handed over.
    pub(crate) statuses: Option<&'a LargeStatuses>,
}

/// What was seen of one range.
struct RangeTally {
    table: usize,
    read_bytes: u64,
    tally: TableTally,
}

impl Stocks<'_> {
    /// Checks all of them, on so many threads.
    pub(crate) fn check(&self, dop: usize, owners: &SharedOwners<'_>, tally: &mut Tally) {
        let seen = pieces::map(dop, &self.batch.stocks, |stock| self.check_one(*stock, owners));
        for range in seen {
            tally.read_bytes += range.read_bytes;
            tally.tables[range.table].add(&range.tally);
        }
    }

    fn check_one(&self, named: NamedStock, owners: &SharedOwners<'_>) -> RangeTally {
        let (stock, range) = self.batch.stock(named);
        let table = &self.catalogue.tables[range.table];
        let work = RangeWork::new(self.store, self.catalogue, range, self.physical_only, false);
        let mut runs = work.open(owners, stock);
        let mut tally = TableTally::of(table);
        if self.physical_only || table.plan.is_none() {
            for run in &mut runs {
                while run.next_image() {}
            }
        } else {
            let (store, catalogue, statuses) = (self.store, self.catalogue, self.statuses);
            let object = table.root.object;
            let merge = Merge::new(runs, IntentMeanings { store, catalogue, statuses, object });
            runs = self.merge(&work, merge, &mut tally);
        }
        let mut read_bytes = 0;
        for run in &mut runs {
            run.finish();
            read_bytes += run.read_bytes;
            tally.add(&run.tally);
        }
        RangeTally { table: range.table, read_bytes, tally }
    }

    /// Counts the rows, and hands them over to who wants them.
    fn merge<'r>(
        &self,
        work: &RangeWork<'_>,
        mut merge: Merge<'r>,
        tally: &mut TableTally,
    ) -> Vec<RunReader<'r>> {
        let object = self.catalogue.tables[work.range.table].root.object;
        let mut rows = self.store.companion.wants_rows().then(Rows::default);
        while let Some(entry) = merge.next(|key| work.has(key)) {
            let Some(rows) = rows.as_mut().filter(|_| work.has(entry.key)) else { continue };
            if entry.is_removal() || entry.intent().is_some_and(|intent| intent.removes) {
                continue;
            }
            rows.add(entry.key, entry.value);
            if rows.bytes.len() >= HANDED_OVER_BYTES {
                rows.hand_over(self.store, object);
            }
        }
        if let Some(rows) = &mut rows {
            rows.hand_over(self.store, object);
        }
        tally.rows += merge.counted.rows;
        tally.undecided += merge.counted.undecided;
        merge.into_runs()
    }
}

/// Rows that wait to be handed over.
#[derive(Default)]
struct Rows {
    /// Key and value of each, one behind the other.
    bytes: Vec<u8>,
    /// How long they are.
    lengths: Vec<(usize, usize)>,
}

impl Rows {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lengths.push((key.len(), value.len()));
    }

    fn hand_over(&mut self, store: &Store<'_>, object: u32) {
        let mut bytes = self.bytes.as_slice();
        let mut rows = self.lengths.iter().map(|(key, value)| {
            let (row, behind) = bytes.split_at(key + value);
            bytes = behind;
            row.split_at(*key)
        });
        if let Some((key, _)) = self.lengths.first() {
            store.companion.leaf(object, &self.bytes[..*key], &mut rows);
        }
        self.bytes.clear();
        self.lengths.clear();
    }
}
