//! Large transactions: which were committed, so that pieces in the log and intents in images mean something.
//!
//! Memory: the committed ones, and the keys on which they took back in the end what they had said.

use std::collections::{HashMap, HashSet};

use onrush_lsn::Lsn;

use crate::decode::image::Intent;
use crate::decode::record::{Change, Record, Row, group_records, read_record};
use crate::findings::Findings;
use crate::progress::Progress;
use crate::steps::catalogue::Catalogue;
use crate::steps::log;
use crate::steps::records::{RecordFault, RecordSink};
use crate::store::Store;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LargeStatuses {
    committed: HashSet<u64>,
    /// Of the log, by transaction and object.
    taken_back: HashMap<(u64, u32), HashSet<Box<[u8]>>>,
    /// Records from here on do not count.
    end: Option<Lsn>,
}

impl LargeStatuses {
    /// Reads them from the root, and from the log up to `end`.
    pub(crate) fn read(
        store: &Store<'_>,
        catalogue: &Catalogue,
        end: Option<Lsn>,
    ) -> LargeStatuses {
        let committed = catalogue.large.committed.iter().map(|committed| committed.id).collect();
        let mut statuses = LargeStatuses { committed, end, ..LargeStatuses::default() };
        // What is wrong with the log is told by who reads it for that.
        let (findings, progress) = (Findings::new(usize::MAX), Progress::default());
        let store =
            Store { findings: &findings, progress: &progress, companion: &(), ..store.clone() };
        log::check(&store, Some(&mut statuses));
        statuses
    }

    /// Whether what a piece of this transaction says of the row counts.
    pub(crate) fn counts(&self, id: u64, object: u32, key: &[u8]) -> bool {
        let taken_back = self.taken_back.get(&(id, object));
        self.committed.contains(&id) && !taken_back.is_some_and(|keys| keys.contains(key))
    }

    /// Whether the intent in an image counts.
    pub(crate) fn intent_counts(&self, intent: Intent, object: u32, key: &[u8]) -> bool {
        self.counts(intent.id, object, key)
    }

    fn note(&mut self, id: u64, row: &Row<'_>) {
        let at = (id, row.object);
        match row.change {
            Change::TakeBack => drop(self.taken_back.entry(at).or_default().insert(row.key.into())),
            _ => drop(self.taken_back.get_mut(&at).map(|keys| keys.remove(row.key))),
        }
    }
}

impl RecordSink for LargeStatuses {
    fn take(&mut self, lsn: Lsn, payload: &[u8], _report: &mut dyn FnMut(RecordFault)) {
        if self.end.is_some_and(|end| lsn >= end) {
            return;
        }
        let mut commit = |record: &Record<'_>| {
            if let Record::LargeCommit { id } = record {
                self.committed.insert(*id);
            }
        };
        match read_record(payload) {
            Some(Record::Group(body)) => drop(group_records(body, |record| commit(&record))),
            Some(Record::Piece { id, rows, .. }) => drop(group_records(rows, |record| {
                if let Record::Row(row) = record {
                    self.note(id, &row);
                }
            })),
            Some(record) => commit(&record),
            None => {}
        }
    }
}
