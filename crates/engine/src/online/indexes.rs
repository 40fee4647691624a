//! Whether the indexes of an open database have the entries of its rows, both ways: every row has its entry in
//! each index that it belongs to, and every entry is a row's.
//!
//! What the entries must be is made of the rows of one snapshot and added up as hashes, in any order; what they are is
//! added up likewise. So a sound index is read once, in key order, as its table is. Where the sums differ rows and
//! entries are looked at one by one, and the first that are wrong are named.

use std::sync::Arc;

use onrush_check::{CheckReport, Finding, Invariant};
use onrush_types::{EncodedRow, Schema};

use super::compare::{ROWS_BETWEEN_RESTS, Sum, key_hash, row_hash};
use super::guest::Guest;
use crate::catalog::{Index, Table, TableEntry};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::session::{Scan, ScanOptions, Snapshot};

/// Rows, and entries, that a finding names at most.
pub(super) const NAMED_MAX: usize = 3;

/// In front of the stored columns: the version, which grows with an index's name.
const VERSION_BYTES: usize = 2;

/// Compares the indexes of all tables, or of one, and adds what differs to the report.
pub(super) fn compare(
    database: &Database,
    snapshot: &mut Snapshot,
    guest: &Guest,
    only: Option<&str>,
    report: &mut CheckReport,
) -> Result<()> {
    for_each_table(database, only, TableEntry::is_indexed, |table| {
        report.findings.extend(compare_table(database, snapshot, guest, table)?);
        Ok(())
    })
}

/// Visits the tables that are wanted: all, or that of one name. One that is altered, emptied or dropped meanwhile is
/// left.
pub(super) fn for_each_table(
    database: &Database,
    only: Option<&str>,
    is_wanted: impl Fn(&TableEntry) -> bool,
    mut visit: impl FnMut(&Table) -> Result<()>,
) -> Result<()> {
    for entry in database.engine().catalog.all() {
        if !is_wanted(&entry) || only.is_some_and(|only| entry.name() != only) {
            continue;
        }
        match visit(&handle(database, &entry)) {
            Ok(()) | Err(Error::TableChanged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn handle(database: &Database, entry: &Arc<TableEntry>) -> Table {
    Table { entry: Arc::clone(entry), database_id: database.engine().database_id }
}

fn compare_table(
    database: &Database,
    snapshot: &mut Snapshot,
    guest: &Guest,
    table: &Table,
) -> Result<Vec<Finding>> {
    let engine = database.engine();
    let indexes = table.entry.indexes(|id| engine.catalog.by_id(id))?;
    let schema = &table.entry.schema;
    let mut expected = vec![Sum::default(); indexes.len()];
    let mut entry = EncodedRow::new();
    visit(snapshot, guest, table, |key, row| {
        for (index, sum) in indexes.iter().zip(&mut expected) {
            if index.encode(schema, (key, row), &mut entry)? {
                sum.add(entry_hash(&entry.key, &entry.row));
            }
        }
        Ok(true)
    })?;
    let mut findings = Vec::new();
    for (index, expected) in indexes.iter().zip(expected) {
        let entries = handle(database, &index.entries);
        let mut seen = Sum::default();
        visit(snapshot, guest, &entries, |key, value| {
            seen.add(entry_hash(key, value));
            Ok(true)
        })?;
        let wrong = match seen != expected {
            true => wrong_ones(snapshot, guest, (table, index, &entries))?,
            false => Vec::new(),
        };
        if !wrong.is_empty() || seen != expected && !may_lack_entries(snapshot, index) {
            let found = format!(
                "index {}: {} entries for {} rows; {}",
                entries.name(),
                seen.rows(),
                expected.rows(),
                wrong.join("; ")
            );
            let finding = Finding::new(Invariant::IndexFollowsRows, database.folder(), 0, found);
            findings.push(finding.of_table(table.name()));
        }
    }
    Ok(findings)
}

/// Whether rows may be without entries: the index was being built, as the snapshot sees it.
fn may_lack_entries(snapshot: &Snapshot, index: &Index) -> bool {
    index.is_building() || !index.entries.tree.is_whole_at(snapshot.lsn())
}

/// Names rows without their entry, and entries without their row.
fn wrong_ones(
    snapshot: &mut Snapshot,
    guest: &Guest,
    (table, index, entries): (&Table, &Index, &Table),
) -> Result<Vec<String>> {
    let schema = &table.entry.schema;
    let mut reader = snapshot.again();
    let (mut entry, mut lacking, mut needless) = (EncodedRow::new(), Vec::new(), Vec::new());
    visit(snapshot, guest, table, |key, row| {
        if may_lack_entries(snapshot, index) {
            return Ok(false);
        }
        if !index.encode(schema, (key, row), &mut entry)? {
            return Ok(true);
        }
        let is_there = match reader.get_raw(entries, &entry.key)? {
            Some(value) => Schema::is_same_row(&value, &entry.row),
            None => false,
        };
        if !is_there {
            lacking.push(format!("the row {} has no entry", table.describe_key(key)));
        }
        Ok(lacking.len() < NAMED_MAX)
    })?;
    visit(snapshot, guest, entries, |key, value| {
        let (mut row_key, row_of_entry) = (Vec::new(), index.row_key(schema, (key, value))?);
        schema.encode_key(&row_of_entry, &mut row_key)?;
        let is_of_row = match reader.get_raw(table, &row_key)? {
            Some(row) => {
                index.encode(schema, (&row_key, &row), &mut entry)?
                    && entry.key == key
                    && Schema::is_same_row(&entry.row, value)
            }
            None => false,
        };
        if !is_of_row {
            let (words, row) = (entries.describe_key(key), table.describe_key(&row_key));
            needless.push(format!("the entry {words} is none of the row {row}"));
        }
        Ok(needless.len() < NAMED_MAX)
    })?;
    lacking.append(&mut needless);
    Ok(lacking)
}

fn entry_hash(key: &[u8], value: &[u8]) -> u128 {
    row_hash(key_hash(key), value.get(VERSION_BYTES..).unwrap_or_default())
}

/// Hands all rows to `use_row`, until it says that it has seen enough.
fn visit(
    snapshot: &Snapshot,
    guest: &Guest,
    table: &Table,
    use_row: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<()> {
    visit_scan(snapshot.scan(table, &ScanOptions::default())?, guest, use_row)
}

pub(super) fn visit_scan(
    mut scan: Scan,
    guest: &Guest,
    mut use_row: impl FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<()> {
    let (mut rows, mut pace) = (0, guest.pace());
    while let Some(goes_on) = scan.with_next(&mut use_row)? {
        if !goes_on? {
            break;
        }
        rows += 1;
        if rows % ROWS_BETWEEN_RESTS == 0 {
            pace.rest();
        }
    }
    Ok(())
}
