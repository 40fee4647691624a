//! The log once more: what its good part does to the rows of the images.

use std::collections::HashMap;

use onrush_lsn::Lsn;

use crate::decode::record::{Change, Record, Row, group_records, read_record};
use crate::findings::Findings;
use crate::invariant::Invariant;
use crate::salvage::images::Keys;
use crate::salvage::survey::Wanted;
use crate::salvage::{SalvageReport, SalvageTarget};
use crate::steps::large::LargeStatuses;
use crate::steps::log;
use crate::steps::records::{RecordFault, RecordSink};
use crate::store::Store;

/// See the module.
pub(super) struct Changes<'a, T: SalvageTarget> {
    target: &'a mut T,
    wanted: &'a mut Wanted,
    /// Tables by object.
    objects: HashMap<u32, usize>,
    /// Rows that are newer than the log.
    newer: &'a Keys,
    end: Lsn,
    statuses: &'a LargeStatuses,
    report: &'a mut SalvageReport,
    row: Vec<u8>,
    /// The first error of the target; nothing is done after it.
    outcome: Result<(), T::Error>,
}

impl<T: SalvageTarget> Changes<'_, T> {
    /// Reads the log up to `end` and hands over its changes.
    pub(super) fn hand_over(
        store: &Store<'_>,
        wanted: &mut Wanted,
        newer: &Keys,
        (end, statuses): (Lsn, &LargeStatuses),
        target: &mut T,
        report: &mut SalvageReport,
    ) -> Result<(), T::Error> {
        let objects = wanted.tables.iter().enumerate().map(|(at, table)| (table.object, at));
        let objects = objects.collect();
        // What is wrong with the log was told when it was read first; only what is said here counts.
        let findings = Findings::new(usize::MAX);
        let store = Store { findings: &findings, ..store.clone() };
        let (row, outcome) = (Vec::new(), Ok(()));
        let mut changes =
            Changes { target, wanted, objects, newer, end, statuses, report, row, outcome };
        log::check(&store, Some(&mut changes));
        let outcome = changes.outcome;
        report.take_unlike(&findings);
        outcome
    }

    fn change(
        &mut self,
        row: &Row<'_>,
        report: &mut dyn FnMut(RecordFault),
    ) -> Result<(), T::Error> {
        let Some(&number) = self.objects.get(&row.object) else { return Ok(()) };
        if !self.newer.is_empty() && self.newer.contains(&(number, row.key.into())) {
            return Ok(());
        }
        let table = &mut self.wanted.tables[number];
        // A row that is not sound was a finding when the log was read first.
        if table.plan.key.check(row.key).is_err() {
            return Ok(());
        }
        let whole = match row.change {
            Change::Remove => {
                self.report.tables[number].log_removes += 1;
                return self.target.remove(number, row.key);
            }
            Change::TakeBack => return Ok(()),
            Change::Put(whole) => whole,
            Change::PutElided { row: elided, names_version } => {
                if table.plan.row.check_elided(elided, names_version).is_err() {
                    return Ok(());
                }
                let whole = &mut self.row;
                let is_whole = self.target.expand(number, elided, names_version, whole);
                if !is_whole || table.plan.row.check(&self.row).is_err() {
                    report(RecordFault {
                        invariant: Invariant::RecordFits,
                        table: Some(table.plan.name.clone()),
                        key: Some(table.plan.key.words(row.key)),
                        found: "an elided row that does not make a whole one".to_owned(),
                    });
                    return Ok(());
                }
                &self.row
            }
        };
        if table.plan.row.check(whole).is_err() {
            return Ok(());
        }
        table.note_numbers(row.key, whole);
        self.report.tables[number].log_puts += 1;
        self.target.put(number, row.key, whole)
    }
}

impl<T: SalvageTarget> RecordSink for Changes<'_, T> {
    fn take(&mut self, lsn: Lsn, payload: &[u8], report: &mut dyn FnMut(RecordFault)) {
        if lsn >= self.end {
            return;
        }
        let statuses = self.statuses;
        let mut change = |row: Row<'_>| {
            if self.outcome.is_ok() {
                self.outcome = self.change(&row, report);
            }
        };
        match read_record(payload) {
            Some(Record::Row(row)) => change(row),
            // That it decodes was seen when the log was read first.
            Some(Record::Group(body)) => drop(group_records(body, |record| {
                if let Record::Row(row) = record {
                    change(row);
                }
            })),
            Some(Record::Piece { id, rows }) => {
                let _ = group_records(rows, |record| {
                    if let Record::Row(row) = record
                        && statuses.counts(id, row.object, row.key)
                    {
                        change(row);
                    }
                });
            }
            _ => {}
        }
    }
}
