//! What the log's records say, against the catalogue.

use std::collections::{HashMap, HashSet};

use onrush_lsn::Lsn;

use crate::companion::Companion;
use crate::decode::definition::read_definition;
use crate::decode::record::{Change, Record, Row, group_records, read_record};
use crate::decode::row::RowFault;
use crate::invariant::Invariant;
use crate::steps::catalogue::{Catalogue, TablePlan};
use crate::steps::large::LargeStatuses;

/// Where keys and rows of records are checked, and what they raise.
pub(crate) struct Records<'a> {
    catalogue: &'a Catalogue,
    companion: &'a dyn Companion,
    /// What of large transactions counts, where somebody takes rows.
    statuses: Option<&'a LargeStatuses>,
    /// Objects at this place of the log: a table of the catalogue, or of `created`.
    objects: HashMap<u32, Origin>,
    created: Vec<Option<TablePlan>>,
    /// Objects that were dropped or truncated, or whose table is gone.
    gone: HashSet<u32>,
    /// Objects below were handed out.
    pub(crate) next_object: u32,
    /// Marks by table and column.
    pub(crate) marks: HashMap<(u32, u32), u64>,
    /// The highest number met of each generated column of each table of the catalogue.
    pub(crate) highest: Vec<Vec<Option<u64>>>,
    pub(crate) count: u64,
    /// Whether there was a piece of a long value.
    pub(crate) has_pieces: bool,
}

#[derive(Clone, Copy)]
enum Origin {
    Catalogue(usize),
    /// Of the catalogue, but with another definition: that of `created`.
    Altered(usize, usize),
    Created(usize),
}

/// Whoever takes the records of the log, one after the other.
pub(crate) trait RecordSink {
    /// Takes the next record; `report` hears what is wrong with it.
    fn take(&mut self, lsn: Lsn, payload: &[u8], report: &mut dyn FnMut(RecordFault));
}

/// What is wrong with a record: the invariant, the table and key if known, and what was found.
pub(crate) struct RecordFault {
    pub(crate) invariant: Invariant,
    pub(crate) table: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) found: String,
}

impl RecordFault {
    fn new(invariant: Invariant, found: impl Into<String>) -> RecordFault {
        RecordFault { invariant, table: None, key: None, found: found.into() }
    }
}

impl<'a> Records<'a> {
    pub(crate) fn new(
        catalogue: &'a Catalogue,
        companion: &'a dyn Companion,
        statuses: Option<&'a LargeStatuses>,
    ) -> Records<'a> {
        let tables = catalogue.tables.iter().enumerate();
        let objects = tables.map(|(index, table)| (table.root.object, Origin::Catalogue(index)));
        let columns =
            |plan: &Option<TablePlan>| plan.as_ref().map_or(0, |plan| plan.generated.len());
        let highest = catalogue.tables.iter().map(|table| vec![None; columns(&table.plan)]);
        Records {
            catalogue,
            companion,
            statuses,
            objects: objects.collect(),
            created: Vec::new(),
            gone: HashSet::new(),
            next_object: catalogue.next_object,
            marks: HashMap::new(),
            highest: highest.collect(),
            count: 0,
            has_pieces: false,
        }
    }

    fn row(&mut self, row: &Row<'_>, of_large: Option<u64>, report: &mut dyn FnMut(RecordFault)) {
        let counts = of_large.is_none_or(|id| {
            self.statuses.is_some_and(|statuses| statuses.counts(id, row.object, row.key))
        });
        if counts && row.change != Change::TakeBack {
            self.companion.log_change(row.object, row.key, row.change);
        }
        if of_large.is_none() && row.change == Change::TakeBack {
            let found = "a key is taken back outside of a large transaction";
            report(RecordFault::new(Invariant::RecordFits, found));
        }
        let Some(origin) = self.objects.get(&row.object) else {
            // The rows of a table that is gone by the end of the log; a number that was never handed
            // out belongs to none.
            if row.object >= self.next_object && !self.gone.contains(&row.object) {
                let found = format!("a row of object {}, which never was", row.object);
                report(RecordFault::new(Invariant::RecordFits, found));
            }
            return;
        };
        let (plan, highest) = match *origin {
            Origin::Created(index) => (self.created[index].as_ref(), None),
            // Its counters are looked at by the catalogue's columns.
            Origin::Altered(index, created) => {
                self.note_numbers(index, row);
                (self.created[created].as_ref(), None)
            }
            Origin::Catalogue(index) => {
                (self.catalogue.tables[index].plan.as_ref(), self.highest.get_mut(index))
            }
        };
        let Some(plan) = plan else { return };
        self.has_pieces |= plan.is_pieces;
        let checked =
            plan.key.check(row.key).map_err(RowFault::Shape).and_then(|()| match row.change {
                Change::PutElided { row, names_version } => {
                    plan.row.check_elided(row, names_version)
                }
                Change::Put(value) => plan.row.check(value),
                Change::Remove | Change::TakeBack => Ok(()),
            });
        let found = match checked {
            Ok(()) => {
                if let Some(highest) = highest {
                    plan.note_numbers(row, highest);
                }
                return;
            }
            Err(RowFault::Shape(found)) => found.to_owned(),
            Err(RowFault::Value(column, found)) => format!("column {column}: {found}"),
        };
        report(RecordFault {
            invariant: Invariant::RecordFits,
            table: Some(plan.name.clone()),
            key: Some(plan.key.words(row.key)),
            found,
        });
    }
}

impl Records<'_> {
    /// The numbers of generated columns in keys: a row of a later version than the catalogue's tells no
    /// others.
    fn note_numbers(&mut self, index: usize, row: &Row<'_>) {
        let plan = self.catalogue.tables[index].plan.as_ref();
        if let (Some(plan), Some(highest)) = (plan, self.highest.get_mut(index))
            && plan.key.check(row.key).is_ok()
        {
            let key_only = Change::PutElided { row: &[], names_version: false };
            let is_gone = matches!(row.change, Change::Remove | Change::TakeBack);
            let change = if is_gone { Change::Remove } else { key_only };
            plan.note_numbers(&Row { change, ..*row }, highest);
        }
    }

    /// A table has another definition, unless the catalogue has that or a later one already.
    fn alter(&mut self, object: u32, bytes: &[u8], report: &mut dyn FnMut(RecordFault)) {
        let plan = match read_definition(bytes) {
            Ok(definition) => TablePlan::new(&definition),
            Err(fault) => return report(RecordFault::new(Invariant::RecordFits, fault)),
        };
        let Some(&origin) = self.objects.get(&object) else { return };
        let known = match origin {
            Origin::Catalogue(index) => self.catalogue.tables[index].plan.as_ref(),
            Origin::Altered(_, created) | Origin::Created(created) => {
                self.created[created].as_ref()
            }
        };
        if known.is_some_and(|known| known.version >= plan.version) {
            return;
        }
        let created = self.created.len();
        self.created.push(Some(plan));
        let altered = match origin {
            Origin::Catalogue(index) | Origin::Altered(index, _) => Origin::Altered(index, created),
            Origin::Created(_) => Origin::Created(created),
        };
        self.objects.insert(object, altered);
    }
}

impl TablePlan {
    /// Raises the highest numbers of the generated columns by those of a sound row.
    fn note_numbers(&self, row: &Row<'_>, highest: &mut [Option<u64>]) {
        let value = if let Change::Put(value) = row.change { value } else { &[] };
        for (generated, highest) in self.generated.iter().zip(highest) {
            let in_row = !value.is_empty() || generated.is_in_key();
            if in_row && !matches!(row.change, Change::Remove | Change::TakeBack) {
                *highest = (*highest).max(generated.number(&self.key, &self.row, row.key, value));
            }
        }
    }
}

impl RecordSink for Records<'_> {
    fn take(&mut self, _lsn: Lsn, payload: &[u8], report: &mut dyn FnMut(RecordFault)) {
        use Invariant::RecordDecodes;
        self.count += 1;
        match read_record(payload) {
            None => report(RecordFault::new(RecordDecodes, "bytes of no known record")),
            Some(Record::Group(body)) => {
                if let Err(fault) = group_records(body, |record| self.record(&record, report)) {
                    report(RecordFault::new(RecordDecodes, fault));
                }
            }
            Some(Record::Piece { id, rows }) => {
                let mut has_others = false;
                let decoded = group_records(rows, |record| match record {
                    Record::Row(row) => self.row(&row, Some(id), report),
                    _ => has_others = true,
                });
                if has_others || decoded.is_err() {
                    let found = decoded.err().unwrap_or("a piece with more than rows");
                    report(RecordFault::new(RecordDecodes, found));
                }
            }
            Some(record) => self.record(&record, report),
        }
    }
}

impl Records<'_> {
    /// A record that is no group.
    fn record(&mut self, record: &Record<'_>, report: &mut dyn FnMut(RecordFault)) {
        use Invariant::RecordFits;
        match *record {
            Record::Row(row) => self.row(&row, None, report),
            Record::CreateTable { object, definition } => {
                self.next_object = self.next_object.max(object.saturating_add(1));
                let known = self.catalogue.tables.iter().any(|table| table.root.id == object);
                let plan = match read_definition(definition) {
                    Ok(definition) => Some(TablePlan::new(&definition)),
                    Err(fault) => {
                        report(RecordFault::new(RecordFits, fault));
                        None
                    }
                };
                if !known {
                    self.objects.insert(object, Origin::Created(self.created.len()));
                    self.created.push(plan);
                }
            }
            Record::PrivateObject { object, definition } => {
                self.next_object = self.next_object.max(object.saturating_add(1));
                match read_definition(definition) {
                    Ok(definition) if !self.objects.contains_key(&object) => {
                        self.objects.insert(object, Origin::Created(self.created.len()));
                        self.created.push(Some(TablePlan::new(&definition)));
                    }
                    Ok(_) => {}
                    Err(fault) => report(RecordFault::new(RecordFits, fault)),
                }
            }
            Record::AlterTable { object, definition } => self.alter(object, definition, report),
            Record::DropTable { object } => {
                self.objects.remove(&object);
                self.gone.insert(object);
            }
            Record::TruncateTable { object, new_object } => {
                if new_object <= object {
                    let found = format!("object {object} becomes {new_object}, which is older");
                    report(RecordFault::new(RecordFits, found));
                }
                self.next_object = self.next_object.max(new_object.saturating_add(1));
                self.gone.insert(object);
                if let Some(origin) = self.objects.remove(&object) {
                    self.objects.insert(new_object, origin);
                }
            }
            Record::Sequence { table, column, mark } => {
                let highest = self.marks.entry((table, column)).or_default();
                *highest = (*highest).max(mark);
            }
            Record::Group(_) | Record::Piece { .. } | Record::LargeCommit { .. } | Record::Tick => {
            }
        }
    }
}
