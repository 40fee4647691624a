//! Whether every long value that a row points to has all its pieces, and every piece belongs to one.
//!
//! Both sides are added up as hashes, table by table: the pieces that rows ask for, and those that are there. What
//! counts is what opening the database would make of images and log: a key of which the log tells is left out of the
//! images. So it is a second look at these tables, which is taken only where there are pieces.
//!
//! Memory: some 50 bytes for each key of these tables that the log has changed since the checkpoint.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use onrush_lsn::Lsn;
use xxhash_rust::xxh3::xxh3_128;

use crate::companion::Companion;
use crate::decode::definition::read_definition;
use crate::decode::record::{Change, Record, Row, group_records, read_record};
use crate::decode::wide::{Piece, pieces_of};
use crate::finding::Finding;
use crate::findings::Findings;
use crate::invariant::Invariant;
use crate::options::CheckOptions;
use crate::pieces::{self, Pieces};
use crate::progress::Progress;
use crate::steps::catalogue::{Catalogue, TablePlan};
use crate::steps::directory::{Batch, Wanted};
use crate::steps::images::{ImageChecker, Tally};
use crate::steps::large::LargeStatuses;
use crate::steps::log;
use crate::steps::owners::Owners;
use crate::steps::records::{RecordFault, RecordSink};
use crate::steps::stocks::Stocks;
use crate::store::Store;

/// Directory segments that are read at a time.
const SEGMENTS: usize = 64;

/// Checks all tables whose rows may have long values.
pub(crate) fn check(store: &Store<'_>, options: &CheckOptions, catalogue: &Catalogue) {
    // What else is wrong was told by who looked for it.
    let (findings, progress) = (Findings::new(usize::MAX), Progress::default());
    let quiet = Store { findings: &findings, progress: &progress, companion: &(), ..store.clone() };
    let statuses = LargeStatuses::read(store, catalogue, None);
    let mut from_log = FromLog::new(catalogue, &statuses);
    log::check(&quiet, Some(&mut from_log));
    let values = from_log.into_values();
    let quiet = Store { companion: &values, ..quiet };
    let mut owners = Owners::new(&quiet);
    let wanted: Vec<Wanted> = catalogue
        .tables
        .iter()
        .enumerate()
        .filter(|(_, table)| values.kinds.contains_key(&table.root.object))
        .flat_map(|(index, table)| (0..table.root.segments.len()).map(move |at| (index, at)))
        .collect();
    for wanted in wanted.chunk_by(|(left, _), (right, _)| left == right) {
        for wanted in wanted.chunks(SEGMENTS) {
            read_rows(&quiet, options, catalogue, &mut owners, (wanted, &statuses));
        }
    }
    values.report(store);
}

/// Hands the rows of some segments to the companion.
fn read_rows(
    store: &Store<'_>,
    options: &CheckOptions,
    catalogue: &Catalogue,
    owners: &mut Owners,
    (wanted, statuses): (&[Wanted], &LargeStatuses),
) {
    if store.gives_up() {
        return;
    }
    let dop = options.threads(&*store.disk);
    let batch = Batch::read(store, owners, catalogue, wanted, dop);
    let pieces = pieces::cut(&batch.images, |named| named.slot);
    let checker = || ImageChecker {
        store,
        catalogue,
        batch: &batch,
        physical_only: false,
        statuses: Some(statuses),
        tally: Tally::new(catalogue),
    };
    let threads = dop.min(pieces.len()).max(1);
    let mut checkers: Vec<ImageChecker<'_>> = (0..threads).map(|_| checker()).collect();
    pieces::check_all(&mut checkers, &pieces, &Pieces::any(&pieces));
    let statuses = Some(statuses);
    let stocks = Stocks { store, catalogue, batch: &batch, physical_only: false, statuses };
    stocks.check(dop, &Mutex::new(owners), &mut Tally::new(catalogue));
}

/// What the rows of an object say of long values.
#[derive(Clone, Debug)]
enum Kind {
    /// They point to values whose pieces are in the table of this number.
    Rows { pieces: u32, plan: Box<TablePlan> },
    /// They are pieces, in the table of this number.
    Pieces { table: u32 },
}

impl Kind {
    fn of(table: u32, plan: &TablePlan) -> Option<Kind> {
        match (plan.long_values, plan.is_pieces) {
            (_, true) => Some(Kind::Pieces { table }),
            (Some(pieces), _) => Some(Kind::Rows { pieces, plan: Box::new(plan.clone()) }),
            (None, _) => None,
        }
    }

    /// What a row adds.
    fn sum_of(&self, key: &[u8], row: &[u8]) -> Sum {
        let mut sum = Sum::default();
        match self {
            Kind::Rows { plan, .. } => {
                let values = plan.row.pointers(row);
                values.into_iter().flat_map(pieces_of).for_each(|piece| sum.add(piece));
            }
            Kind::Pieces { .. } => Piece::of(key, row).into_iter().for_each(|it| sum.add(it)),
        }
        sum
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Sum {
    pieces: u64,
    hash: u128,
}

impl Sum {
    fn add(&mut self, piece: Piece) {
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(&piece.id.to_be_bytes());
        bytes[16..20].copy_from_slice(&piece.number.to_be_bytes());
        bytes[20..].copy_from_slice(&piece.bytes.to_be_bytes());
        self.pieces += 1;
        self.hash = self.hash.wrapping_add(xxh3_128(&bytes));
    }

    fn add_all(&mut self, other: Sum) {
        self.pieces += other.pieces;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// What the log says of keys in the end, by object and hash of the key.
type Changes = HashMap<(u32, u128), Sum>;

/// Takes what the log says.
struct FromLog<'a> {
    statuses: &'a LargeStatuses,
    kinds: HashMap<u32, Kind>,
    /// Objects that large transactions have made, until a commit makes them a table's.
    private: HashSet<u32>,
    names: HashMap<u32, String>,
    changes: Changes,
    /// The row of a piece at hand.
    row_bytes: Vec<u8>,
}

impl<'a> FromLog<'a> {
    fn new(catalogue: &Catalogue, statuses: &'a LargeStatuses) -> FromLog<'a> {
        let mut from_log = FromLog {
            statuses,
            kinds: HashMap::new(),
            private: catalogue.large.private.iter().copied().collect(),
            names: HashMap::new(),
            changes: Changes::new(),
            row_bytes: Vec::new(),
        };
        for table in &catalogue.tables {
            if let Some(plan) = &table.plan {
                from_log.define(table.root.object, table.root.id, plan);
            }
        }
        from_log
    }

    fn define(&mut self, object: u32, table: u32, plan: &TablePlan) {
        let Some(kind) = Kind::of(table, plan) else { return };
        if let Kind::Rows { pieces, .. } = &kind {
            self.names.insert(*pieces, plan.name.clone());
        }
        self.kinds.insert(object, kind);
    }

    fn row(&mut self, row: &Row<'_>) {
        let Some(kind) = self.kinds.get(&row.object) else { return };
        let sum = match (row.change, kind) {
            (Change::Put(value), kind) => kind.sum_of(row.key, value),
            // Of a piece the elided form has all but the version: its NULLs, its length, its bytes.
            (Change::PutElided { row: elided, .. }, Kind::Pieces { .. }) => {
                self.row_bytes.clear();
                self.row_bytes.extend_from_slice(&[0; 2]);
                self.row_bytes.extend_from_slice(elided);
                kind.sum_of(row.key, &self.row_bytes)
            }
            (Change::PutElided { .. } | Change::Remove, _) => Sum::default(),
            (Change::TakeBack, _) => return,
        };
        self.changes.insert((row.object, xxh3_128(row.key)), sum);
    }

    fn record(&mut self, record: &Record<'_>) {
        let plan =
            |definition: &[u8]| read_definition(definition).ok().map(|it| TablePlan::new(&it));
        match *record {
            Record::Row(row) => self.row(&row),
            Record::CreateTable { object, definition } => {
                self.private.remove(&object);
                if let Some(plan) = plan(definition) {
                    self.define(object, object, &plan);
                }
            }
            // Its rows come before what makes it a table's.
            Record::PrivateObject { object, definition } => {
                self.private.insert(object);
                if let Some(plan) = plan(definition) {
                    self.define(object, object, &plan);
                }
            }
            Record::AlterTable { object, definition } => {
                if let Some(plan) = plan(definition) {
                    self.define(object, object, &plan);
                }
            }
            Record::DropTable { object } => drop(self.kinds.remove(&object)),
            Record::TruncateTable { object, new_object } => {
                self.private.remove(&new_object);
                if let Some(kind) = self.kinds.remove(&object) {
                    self.kinds.insert(new_object, kind);
                }
            }
            _ => {}
        }
    }

    fn into_values(self) -> Values {
        let FromLog { mut kinds, private, names, changes, .. } = self;
        kinds.retain(|object, _| !private.contains(object));
        let mut sums = HashMap::new();
        for ((object, _), sum) in &changes {
            if let Some(kind) = kinds.get(object) {
                add(&mut sums, kind, *sum);
            }
        }
        Values { kinds, names, changes, sums: Mutex::new(sums) }
    }
}

impl RecordSink for FromLog<'_> {
    fn take(&mut self, _lsn: Lsn, payload: &[u8], _report: &mut dyn FnMut(RecordFault)) {
        match read_record(payload) {
            Some(Record::Group(body)) => drop(group_records(body, |record| self.record(&record))),
            Some(Record::Piece { id, rows }) => drop(group_records(rows, |record| match record {
                Record::Row(row) if self.statuses.counts(id, row.object, row.key) => self.row(&row),
                _ => {}
            })),
            Some(record) => self.record(&record),
            None => {}
        }
    }
}

/// By the number of a table of pieces: those that rows ask for, and those that are there.
type Sums = HashMap<u32, (Sum, Sum)>;

fn add(sums: &mut Sums, kind: &Kind, sum: Sum) {
    match kind {
        Kind::Rows { pieces, .. } => sums.entry(*pieces).or_default().0.add_all(sum),
        Kind::Pieces { table } => sums.entry(*table).or_default().1.add_all(sum),
    }
}

/// Takes what images say, beside what the log has said.
struct Values {
    kinds: HashMap<u32, Kind>,
    /// Whose values a table of pieces has.
    names: HashMap<u32, String>,
    changes: Changes,
    sums: Mutex<Sums>,
}

impl Companion for Values {
    fn wants_rows(&self) -> bool {
        true
    }

    fn leaf(&self, object: u32, _low: &[u8], rows: &mut dyn Iterator<Item = (&[u8], &[u8])>) {
        let Some(kind) = self.kinds.get(&object) else { return };
        let mut sum = Sum::default();
        for (key, row) in rows {
            let is_of_log = || self.changes.contains_key(&(object, xxh3_128(key)));
            let of_row = kind.sum_of(key, row);
            if of_row != Sum::default() && !is_of_log() {
                sum.add_all(of_row);
            }
        }
        let mut sums = self.sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        add(&mut sums, kind, sum);
    }
}

impl Values {
    fn report(&self, store: &Store<'_>) {
        let sums = self.sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut differ: Vec<_> =
            sums.iter().filter(|(_, (wanted, there))| wanted != there).collect();
        differ.sort_unstable_by_key(|(table, _)| **table);
        for (table, (wanted, there)) in differ {
            let found = match wanted.pieces == there.pieces {
                true => format!("{} pieces, but not those of its rows", there.pieces),
                false => format!("{} pieces, where its rows have {}", there.pieces, wanted.pieces),
            };
            let folder = store.folders.data.first().cloned().unwrap_or_default();
            let finding = Finding::new(Invariant::LongValuesWhole, folder, 0, found);
            let name = self.names.get(table).map_or("?", String::as_str);
            store.findings.add(finding.of_table(name));
        }
    }
}
