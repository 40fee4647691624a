//! Whether the long values of an open database are whole: every one that a row points to has its pieces, and every
//! piece belongs to one.
//!
//! Rows are read as they are stored, so that no value is read that is not looked at, and added up as hashes beside the
//! pieces that there are. Where the sums differ they are looked at one by one, and the first that are wrong are named.
//!
//! Memory, only where they differ: the names of all values of the table.

use std::collections::HashSet;

use onrush_check::{CheckReport, Finding, Invariant};
use onrush_types::long_values::PIECE_BYTES;
use onrush_types::{LongValue, StoredBytes, Uuid, Value};

use super::compare::{Sum, key_hash, row_hash};
use super::guest::Guest;
use super::indexes::{NAMED_MAX, for_each_table, handle, visit_scan};
use crate::catalog::{Table, TableEntry, piece_count, piece_key};
use crate::database::Database;
use crate::error::Result;
use crate::session::{ScanOptions, Snapshot};

/// Looks at all tables, or at one, and adds what is wrong to the report. Whether nothing is.
pub(super) fn compare(
    database: &Database,
    snapshot: &mut Snapshot,
    guest: &Guest,
    only: Option<&str>,
    report: &mut CheckReport,
) -> Result<bool> {
    let before = report.findings.len();
    for_each_table(database, only, TableEntry::has_long_values, |table| {
        report.findings.extend(compare_table(database, snapshot, guest, table)?);
        Ok(())
    })?;
    Ok(report.findings.len() == before)
}

fn compare_table(
    database: &Database,
    snapshot: &mut Snapshot,
    guest: &Guest,
    table: &Table,
) -> Result<Option<Finding>> {
    let engine = database.engine();
    let pieces = table.entry.long_values(|id| engine.catalog.by_id(id))?;
    let pieces = handle(database, pieces);
    let (mut expected, mut seen) = (Sum::default(), Sum::default());
    visit_values(snapshot, guest, table, |_, value| {
        for number in 0..piece_count(&value) {
            let key = piece_key(pieces.schema(), value.id, number)?;
            expected.add(piece_hash(&key, piece_bytes(&value, number)));
        }
        Ok(true)
    })?;
    let scan = snapshot.scan(&pieces, &ScanOptions::default())?;
    visit_scan(scan, guest, |key, row| {
        seen.add(piece_hash(key, bytes_of(&pieces, key, row)?));
        Ok(true)
    })?;
    if seen == expected {
        return Ok(None);
    }
    let wrong = wrong_ones(snapshot, guest, (table, &pieces))?.join("; ");
    let found = format!("{} pieces, where rows have {}; {wrong}", seen.rows(), expected.rows());
    let finding = Finding::new(Invariant::LongValuesFollowRows, database.folder(), 0, found);
    Ok(Some(finding.of_table(table.name())))
}

/// Names rows that lack pieces, and pieces that are no row's.
fn wrong_ones(
    snapshot: &mut Snapshot,
    guest: &Guest,
    (table, pieces): (&Table, &Table),
) -> Result<Vec<String>> {
    let mut reader = snapshot.again();
    let (mut known, mut lacking, mut needless) = (HashSet::<Uuid>::new(), Vec::new(), Vec::new());
    visit_values(snapshot, guest, table, |row_key, value| {
        known.insert(value.id);
        for number in 0..piece_count(&value) {
            let key = piece_key(pieces.schema(), value.id, number)?;
            let bytes = match reader.get_raw(pieces, &key)? {
                Some(row) => bytes_of(pieces, &key, &row)?,
                None => 0,
            };
            if bytes != piece_bytes(&value, number) && lacking.len() < NAMED_MAX {
                let row = table.describe_key(row_key);
                lacking.push(format!("the row {row} lacks piece {number} of {}", value.id));
            }
        }
        Ok(true)
    })?;
    let scan = snapshot.scan(pieces, &ScanOptions::default())?;
    visit_scan(scan, guest, |key, row| {
        let value = pieces.schema().view(key, row)?.column(0)?;
        if !matches!(value, Value::Uuid(id) if known.contains(&id)) {
            needless.push(format!("the piece {} is no row's", pieces.describe_key(key)));
        }
        Ok(needless.len() < NAMED_MAX)
    })?;
    lacking.append(&mut needless);
    Ok(lacking)
}

/// Hands the values of rows that stand elsewhere to `use_value`, with the keys of the rows.
fn visit_values(
    snapshot: &Snapshot,
    guest: &Guest,
    table: &Table,
    mut use_value: impl FnMut(&[u8], LongValue) -> Result<bool>,
) -> Result<()> {
    let scan = snapshot.scan(table, &ScanOptions::default())?.only_stored();
    visit_scan(scan, guest, |key, row| {
        for value in table.schema().long_values(row)? {
            if !use_value(key, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

fn piece_bytes(value: &LongValue, number: u32) -> usize {
    (value.bytes - number as usize * PIECE_BYTES).min(PIECE_BYTES)
}

fn bytes_of(pieces: &Table, key: &[u8], row: &[u8]) -> Result<usize> {
    match pieces.schema().view(key, row)?.stored_bytes(2) {
        StoredBytes::Here(bytes) => Ok(bytes.len()),
        _ => Ok(0),
    }
}

fn piece_hash(key: &[u8], bytes: usize) -> u128 {
    row_hash(key_hash(key), &bytes.to_le_bytes())
}
