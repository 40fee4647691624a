//! Is every acknowledged row there, once, with the right content, and no other?
//!
//! The whole table is scanned, in parts by key range, one thread each. Three questions are asked of
//! it, and all answers must be yes:
//!
//! 1. Do count and fingerprint equal those of the acknowledged rows? (nothing lost, doubled, added
//!    or changed)
//! 2. Does every key lie above the one before it? (order, and no duplicates)
//! 3. Does every row decode to what the load inserts: the defaults, and a moment within the load?
//!    (what was acknowledged was right in the first place)

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use onrush::{Database, ScanOptions, Table, Value};
use serde::{Deserialize, Serialize};

use crate::classic_table::{self, NumberColumns};
use crate::error::MeasureError;
use crate::fingerprint::Fingerprint;
use crate::load::client_keys::Key;
use crate::load::ledger::KeySample;
use crate::machine::cpus;
use crate::progress::{Observer, Step};

/// So many faults are described; the others are only counted.
const FAULTS_DESCRIBED: usize = 5;
/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 4096;
/// More parts than processors, since each waits for its reads most of the time.
const PARTS_PER_CPU: usize = 4;

/// What the comparison found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether exactly the acknowledged rows are there, with their content.
    pub passed: bool,
    /// Rows acknowledged.
    pub rows_acknowledged: u64,
    /// Rows found.
    pub rows_found: u64,
    /// Whether the rows were compared byte by byte. Else, after transactions of several rows or updates, their
    /// number and order was checked, and that each is as the load inserts it.
    pub is_exact: bool,
    /// Time of the comparison.
    pub elapsed_s: f64,
    /// What is wrong, in words; empty when it passed.
    pub faults: Vec<String>,
}

impl Verification {
    /// What was found wrong besides.
    pub fn add_faults(&mut self, faults: Vec<String>) {
        self.passed &= faults.is_empty();
        self.faults.extend(faults);
    }
}

/// What must be there.
#[derive(Debug)]
pub struct Acknowledged {
    /// Of the classic table it is known what every row must hold.
    pub is_classic: bool,
    /// What its rows hold in c4, c5 and c6.
    pub numbers: NumberColumns,
    /// Rows.
    pub rows: u64,
    /// Of all rows; or of fewer, when some were acknowledged without their bytes being known.
    pub fingerprint: Fingerprint,
    /// Some of their keys.
    pub keys: KeySample,
    /// First and last moment of the load, in microseconds since 1970-01-01 00:00:00 UTC.
    pub inserted_micros: (i64, i64),
}

/// What a part of the table holds.
#[derive(Default)]
pub struct Part {
    /// Of all of them.
    pub fingerprint: Fingerprint,
    /// Rows that are not as they must be.
    pub fault_count: u64,
    /// The first of them, in words.
    pub faults: Vec<String>,
}

/// Scans the tables and compares what all of them hold.
pub fn verify(
    database: &Database,
    tables: &[Table],
    acknowledged: &Acknowledged,
    observer: &dyn Observer,
) -> Result<Verification, MeasureError> {
    let started = Instant::now();
    observer.begin(Step::Verify, Some(acknowledged.rows));
    let mut found = Part::default();
    let scanned = tables.iter().try_for_each(|table| {
        let done = found.fingerprint.rows;
        scan_parts(database, table, acknowledged, observer, done).map(|part| found.merge(part))
    });
    observer.end();
    scanned.map(|()| compare(acknowledged, found, started.elapsed()))
}

fn scan_parts(
    database: &Database,
    table: &Table,
    acknowledged: &Acknowledged,
    observer: &dyn Observer,
    rows_before: u64,
) -> Result<Part, MeasureError> {
    let ranges = ranges(table, &acknowledged.keys)?;
    let (rows_done, running) = (AtomicU64::new(0), AtomicUsize::new(ranges.len()));
    let reporter = std::thread::current();
    let parts = std::thread::scope(|scope| {
        let handles: Vec<_> = ranges
            .into_iter()
            .map(|range| {
                let (rows_done, running, reporter) = (&rows_done, &running, &reporter);
                scope.spawn(move || {
                    let part = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        scan_part(database, table, &range, acknowledged, rows_done)
                    }));
                    running.fetch_sub(1, Ordering::Release);
                    reporter.unpark();
                    part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
            })
            .collect();
        while running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(Duration::from_millis(100));
            observer.advance(rows_before + rows_done.load(Ordering::Relaxed));
        }
        handles.into_iter().map(|handle| handle.join()).collect::<Vec<_>>()
    });
    let mut all = Part::default();
    for part in parts {
        all.merge(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(all)
}

/// The whole key space in parts of about as many rows, cut at acknowledged keys.
fn ranges(table: &Table, keys: &KeySample) -> Result<Vec<ScanOptions<'static>>, MeasureError> {
    let mut ranges = Vec::new();
    let mut from = Bound::Unbounded;
    for cut in keys.cuts(cpus() * PARTS_PER_CPU) {
        let key = table.schema().decode_key(&cut).map_err(onrush::Error::from)?;
        let to = Bound::Excluded(key.clone());
        ranges.push(ScanOptions { from, to, ..ScanOptions::default() });
        from = Bound::Included(key);
    }
    ranges.push(ScanOptions { from, ..ScanOptions::default() });
    Ok(ranges)
}

fn scan_part(
    database: &Database,
    table: &Table,
    range: &ScanOptions<'_>,
    acknowledged: &Acknowledged,
    rows_done: &AtomicU64,
) -> Result<Part, MeasureError> {
    let mut part = Part::default();
    let mut previous: Vec<u8> = Vec::new();
    let mut session = database.session()?;
    session.scan(table, range)?.visit_raw(|key, value| {
        part.fingerprint.add(key, value);
        if key <= previous.as_slice() {
            part.fault(table, key, "its key is not above the one before it");
        }
        previous.clear();
        previous.extend_from_slice(key);
        if acknowledged.is_classic
            && let Some(fault) = content_fault(table, key, value, acknowledged)
        {
            part.fault(table, key, &fault);
        }
        if part.fingerprint.rows.is_multiple_of(REPORT_ROWS) {
            rows_done.fetch_add(REPORT_ROWS, Ordering::Relaxed);
        }
    })?;
    rows_done.fetch_add(part.fingerprint.rows % REPORT_ROWS, Ordering::Relaxed);
    Ok(part)
}

#[inline]
fn content_fault(
    table: &Table,
    key: &[u8],
    value: &[u8],
    acknowledged: &Acknowledged,
) -> Option<String> {
    let view = match table.schema().view(key, value) {
        Ok(view) => view,
        Err(error) => return Some(error.to_string()),
    };
    let numbers = match acknowledged.numbers {
        // The key says nothing about them: it is not decoded.
        NumberColumns::Constant => NumberColumns::Constant.of(Key::Number(0)),
        NumberColumns::Random => {
            let values = table.schema().decode_key(key).ok();
            let Some(key) = values.and_then(|values| Key::of(values.first()?)) else {
                return Some("its key is neither a number nor a UUID".to_owned());
            };
            NumberColumns::Random.of(key)
        }
    };
    let mut values: [Value<'_>; 6] = Default::default();
    for (column, place) in values.iter_mut().enumerate().skip(1) {
        match view.column(column) {
            Ok(value) => *place = value,
            Err(error) => return Some(error.to_string()),
        }
    }
    classic_table::fault_of(&values, numbers, acknowledged.inserted_micros)
}

impl Part {
    fn merge(&mut self, other: Part) {
        self.fingerprint.merge(&other.fingerprint);
        self.fault_count += other.fault_count;
        self.faults.extend(other.faults);
    }

    #[cold]
    fn fault(&mut self, table: &Table, key: &[u8], what: &str) {
        self.fault_count += 1;
        if self.faults.len() >= FAULTS_DESCRIBED {
            return;
        }
        let name = match table.schema().decode_key(key) {
            Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            Err(_) => format!("{key:02x?}"),
        };
        self.faults.push(format!("row {name}: {what}"));
    }
}

/// Compares what was found with what was acknowledged.
pub fn compare(acknowledged: &Acknowledged, found: Part, elapsed: Duration) -> Verification {
    let expected = acknowledged.fingerprint;
    let mut faults = Vec::new();
    let (wanted, there) = (acknowledged.rows, found.fingerprint.rows);
    let is_exact = expected.rows == wanted;
    if there < wanted {
        faults.push(format!(
            "{} acknowledged rows are missing: {wanted} were acknowledged, {there} are there",
            wanted - there
        ));
    } else if there > wanted {
        faults.push(format!(
            "{} rows too many: {wanted} were acknowledged, {there} are there",
            there - wanted
        ));
    } else if is_exact && found.fingerprint != expected {
        faults.push(format!(
            "the number of rows is right, but not which rows or their content: \
             acknowledged {expected}; found {}",
            found.fingerprint
        ));
    }
    if found.fault_count > 0 {
        faults.push(format!("{} rows are wrong in themselves, for example:", found.fault_count));
        faults.extend(found.faults.into_iter().take(FAULTS_DESCRIBED));
    }
    Verification {
        passed: faults.is_empty(),
        rows_acknowledged: wanted,
        rows_found: there,
        is_exact,
        elapsed_s: elapsed.as_secs_f64(),
        faults,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rows: &[(&str, &str)]) -> Part {
        let mut part = Part::default();
        for (key, value) in rows {
            part.fingerprint.add(key.as_bytes(), value.as_bytes());
        }
        part
    }

    fn verdict(acknowledged: &[(&str, &str)], found: Part) -> Verification {
        let acknowledged = Acknowledged {
            is_classic: true,
            numbers: NumberColumns::Constant,
            rows: acknowledged.len() as u64,
            fingerprint: part(acknowledged).fingerprint,
            keys: KeySample::default(),
            inserted_micros: (0, 1),
        };
        compare(&acknowledged, found, Duration::ZERO)
    }

    #[test]
    fn the_same_rows_pass() {
        let rows = [("1", "a"), ("2", "b")];
        let verification = verdict(&rows, part(&[("2", "b"), ("1", "a")]));
        assert!(verification.passed && verification.faults.is_empty());
    }

    #[test]
    fn missing_added_and_changed_rows_fail_in_words() {
        let rows = [("1", "a"), ("2", "b")];
        for (found, word) in [
            (part(&[("1", "a")]), "1 acknowledged rows are missing"),
            (part(&[("1", "a"), ("2", "b"), ("3", "c")]), "1 rows too many"),
            (part(&[("1", "a"), ("2", "x")]), "not which rows or their content"),
        ] {
            let verification = verdict(&rows, found);
            assert!(!verification.passed);
            assert!(verification.faults[0].contains(word), "{:?}", verification.faults);
        }
    }

    #[test]
    fn a_row_wrong_in_itself_fails_even_when_it_was_acknowledged_so() {
        let mut found = part(&[("1", "a")]);
        found.fault_count = 1;
        found.faults.push("row 1: c4 is 3, not 1".into());
        let verification = verdict(&[("1", "a")], found);
        assert!(!verification.passed);
        assert!(verification.faults[1].contains("c4 is 3"));
    }

    /// A database with the classic table, and rows that were acknowledged.
    fn loaded(folder: &std::path::Path) -> (Database, Table, Acknowledged) {
        let database = Database::create(folder, onrush::Options::small()).unwrap();
        let strategy = onrush::KeyStrategy::Identity { start: 1, strict: true };
        let definition = classic_table::classic_table("t", strategy).unwrap();
        let table = database.create_table(definition).unwrap();
        let mut session = database.session().unwrap();
        let mut acknowledged = Acknowledged {
            is_classic: true,
            numbers: NumberColumns::Constant,
            rows: 500,
            fingerprint: Fingerprint::default(),
            keys: KeySample::default(),
            inserted_micros: (0, i64::MAX),
        };
        for _ in 0..500 {
            session.insert(&table, &[]).unwrap();
            let (key, value) = session.last_row();
            acknowledged.fingerprint.add(key, value);
        }
        (database, table, acknowledged)
    }

    #[test]
    fn a_database_that_lost_changed_or_invented_a_row_does_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let (database, table, acknowledged) = loaded(&folder.path().join("db"));
        let mut session = database.session().unwrap();
        let verdict = |words: &str| {
            let found =
                verify(&database, std::slice::from_ref(&table), &acknowledged, &crate::Quiet)
                    .unwrap();
            assert_eq!(found.passed, words.is_empty(), "{:?}", found.faults);
            let faults = found.faults.join("; ");
            assert!(faults.contains(words), "{words}: {faults}");
        };
        verdict("");
        let key = [Value::Int64(250)];
        let row = session.get(&table, &key).unwrap().unwrap();
        session.delete(&table, &key).unwrap();
        verdict("1 acknowledged rows are missing");
        session.insert(&table, &row).unwrap();
        verdict("");
        session.update(&table, &key, &[("c2", Value::Timestamp(7))]).unwrap();
        verdict("not which rows or their content");
        session.update(&table, &key, &[("c2", row[1].clone()), ("c5", Value::Int32(9))]).unwrap();
        verdict("row 250: c5 is 9, not 2");
        session.update(&table, &key, &[("c5", Value::Int32(2))]).unwrap();
        verdict("");
        session.insert(&table, &[]).unwrap();
        verdict("1 rows too many");
    }
}
