//! Whether the rows that sessions see are those that images and log say there are.
//!
//! Both sides are added up, table by table and key range by key range: a hash of each row's key and
//! value. On one side the rows of a snapshot; on the other those of the checkpoint's images, without
//! the keys that the log has changed since, and what the log says of those in the end. Adding needs no
//! order, so the check reads the images as they lie on the disk. The ranges are those of the
//! directory's segments.
//!
//! Memory: some 50 bytes for each key that the log has changed since the checkpoint.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, OnceLock};

use onrush_check::{CheckReport, Finding, Invariant, LogChange};
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

use super::guest::Guest;
use crate::catalog::{Table, TableEntry};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::session::{ScanOptions, Snapshot};
use crate::units::ObjectId;

/// Rows between two looks at the clock.
pub(super) const ROWS_BETWEEN_RESTS: u64 = 1000;

/// See the module.
pub(super) struct Comparison {
    /// By object: the rows of one table since it was created or truncated.
    tables: HashMap<u32, Expected>,
    /// What the log says, while it is read.
    changes: Mutex<LogSide>,
    /// The same, once it has been read.
    changed: OnceLock<Changes>,
}

#[derive(Default)]
struct LogSide {
    changes: Changes,
    /// The row at hand.
    row: Vec<u8>,
}

/// By object and the hash of the key.
type Changes = HashMap<(u32, u128), Change, BuildHasherDefault<AlreadyHashed>>;

/// What the log says of a key in the end.
struct Change {
    range: u32,
    /// None: the row was removed.
    row: Option<u128>,
}

/// A table as images and log say it is.
struct Expected {
    entry: Arc<TableEntry>,
    object: ObjectId,
    /// Where each range of keys begins; the first at the lowest key.
    lows: Vec<Box<[u8]>>,
    sums: Vec<Mutex<Sum>>,
}

/// Some rows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Sum {
    rows: u64,
    hash: u128,
}

impl Sum {
    pub(super) fn rows(self) -> u64 {
        self.rows
    }

    pub(super) fn add(&mut self, row: u128) {
        self.rows += 1;
        self.hash = self.hash.wrapping_add(row);
    }

    fn add_all(&mut self, other: Sum) {
        self.rows += other.rows;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Keys of eight bytes differ in it for certain. The object is no seed of it: for short keys a seed is
/// mixed in so simply that keys of two tables would meet.
pub(super) fn key_hash(key: &[u8]) -> u128 {
    xxh3_128(key)
}

pub(super) fn row_hash(key: u128, value: &[u8]) -> u128 {
    key ^ xxh3_128(value).rotate_left(64)
}

impl Expected {
    fn range_of(&self, key: &[u8]) -> usize {
        self.lows.partition_point(|low| &**low <= key).saturating_sub(1)
    }
}

impl Comparison {
    /// Of the logged tables that there are now, or of one, with the key ranges of the directory; a table that it
    /// does not know has one.
    pub(super) fn new(
        database: &Database,
        ranges: &HashMap<u32, Vec<Box<[u8]>>>,
        only: Option<&str>,
    ) -> Comparison {
        let entries = database.engine().catalog.all();
        let is_wanted = |entry: &Arc<TableEntry>| {
            entry.tree.is_logged() && only.is_none_or(|only| entry.name() == only)
        };
        let tables = entries.into_iter().filter(is_wanted).filter_map(|entry| {
            let object = entry.tree.object()?;
            let lows = ranges.get(&object.number()).filter(|lows| !lows.is_empty());
            let lows = lows.cloned().unwrap_or_else(|| vec![Box::default()]);
            let sums = lows.iter().map(|_| Mutex::default()).collect();
            Some((object.number(), Expected { entry, object, lows, sums }))
        });
        let (changes, changed) = Default::default();
        Comparison { tables: tables.collect(), changes, changed }
    }

    /// Takes what the log says of a row.
    pub(super) fn change(&self, object: u32, key: &[u8], change: LogChange<'_>) {
        let Some(table) = self.tables.get(&object) else { return };
        let hash = key_hash(key);
        let mut side = self.changes.lock();
        let row = match change {
            LogChange::TakeBack => return,
            LogChange::Remove => None,
            LogChange::Put(value) => Some(row_hash(hash, value)),
            LogChange::PutElided { row, names_version } => {
                side.row.clear();
                // One that does not decode is a finding of the check already.
                let expanded = table.entry.schema.expand_elided(row, names_version, &mut side.row);
                let Ok(()) = expanded else { return };
                Some(row_hash(hash, &side.row))
            }
        };
        let range = table.range_of(key) as u32;
        side.changes.insert((object, hash), Change { range, row });
    }

    /// The log has been read.
    pub(super) fn log_is_read(&self) {
        let changes = std::mem::take(&mut *self.changes.lock()).changes;
        for ((object, _), change) in &changes {
            if let (Some(row), Some(table)) = (change.row, self.tables.get(object)) {
                table.sums[change.range as usize].lock().add(row);
            }
        }
        let _ = self.changed.set(changes);
    }

    /// Takes the rows of one leaf, as its image says.
    pub(super) fn leaf(
        &self,
        object: u32,
        low: &[u8],
        rows: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    ) {
        let (Some(table), Some(changed)) = (self.tables.get(&object), self.changed.get()) else {
            return;
        };
        let mut sum = Sum::default();
        for (key, value) in rows {
            let hash = key_hash(key);
            if changed.is_empty() || !changed.contains_key(&(object, hash)) {
                sum.add(row_hash(hash, value));
            }
        }
        table.sums[table.range_of(low)].lock().add_all(sum);
    }

    /// Compares with what `snapshot` sees, and adds what differs to the report.
    pub(super) fn finish(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        guest: &Guest,
        report: &mut CheckReport,
    ) -> Result<()> {
        for table in self.tables.values() {
            let handle = Table {
                entry: Arc::clone(&table.entry),
                database_id: database.engine().database_id,
            };
            let Some(seen) = seen_rows(table, &handle, snapshot, guest)? else {
                continue;
            };
            for (range, seen) in seen.into_iter().enumerate() {
                let expected = *table.sums[range].lock();
                if seen != expected {
                    report.findings.push(differs(database, &handle, table, range, seen, expected));
                }
            }
        }
        Ok(())
    }
}

/// The rows that the snapshot sees, added up by range; none if the table was dropped or truncated
/// meanwhile.
fn seen_rows(
    table: &Expected,
    handle: &Table,
    snapshot: &Snapshot,
    guest: &Guest,
) -> Result<Option<Vec<Sum>>> {
    let mut sums = vec![Sum::default(); table.lows.len()];
    let (mut range, mut rows) = (0, 0);
    let mut pace = guest.pace();
    let scanned = snapshot.scan(handle, &ScanOptions::default()).and_then(|scan| {
        scan.only_stored().visit_raw(|key, value| {
            while table.lows.get(range + 1).is_some_and(|low| &**low <= key) {
                range += 1;
            }
            sums[range].add(row_hash(key_hash(key), value));
            rows += 1;
            if rows % ROWS_BETWEEN_RESTS == 0 {
                pace.rest();
            }
        })
    });
    match scanned {
        Err(Error::TableChanged { .. }) => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok((table.entry.tree.object() == Some(table.object)).then_some(sums)),
    }
}

fn differs(
    database: &Database,
    handle: &Table,
    table: &Expected,
    range: usize,
    seen: Sum,
    expected: Sum,
) -> Finding {
    let words = |low: &[u8]| handle.describe_key(low).to_string();
    let from = match &*table.lows[range] {
        [] => "the lowest key".to_owned(),
        low => words(low),
    };
    let to = table.lows.get(range + 1).map_or("the highest".to_owned(), |low| words(low));
    let found = if seen.rows == expected.rows {
        format!("{} rows on both sides, but not the same", seen.rows)
    } else {
        format!("{} rows in memory, {} by images and log", seen.rows, expected.rows)
    };
    let finding = Finding::new(Invariant::LiveAsStored, database.folder(), 0, found);
    finding.of_table(handle.name()).with_keys(format!("keys from {from} to {to}"))
}

/// For keys that are hashes.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}
