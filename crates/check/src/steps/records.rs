//! What the log's records say, against the catalogue.

use std::collections::{HashMap, HashSet};

use crate::companion::Companion;
use crate::decode::definition::read_definition;
use crate::decode::record::{Change, Record, Row, group_rows, read_record};
use crate::decode::row::RowFault;
use crate::invariant::Invariant;
use crate::steps::catalogue::{Catalogue, TablePlan};

/// Where keys and rows of records are checked, and what they raise.
pub(crate) struct Records<'a> {
    catalogue: &'a Catalogue,
    companion: &'a dyn Companion,
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
}

#[derive(Clone, Copy)]
enum Origin {
    Catalogue(usize),
    Created(usize),
}

/// Whoever takes the records of the log, one after the other.
pub(crate) trait RecordSink {
    /// Takes the next record; `report` hears what is wrong with it.
    fn take(&mut self, lsn: u64, payload: &[u8], report: &mut dyn FnMut(RecordFault));
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
    pub(crate) fn new(catalogue: &'a Catalogue, companion: &'a dyn Companion) -> Records<'a> {
        let tables = catalogue.tables.iter().enumerate();
        let objects = tables.map(|(index, table)| (table.root.object, Origin::Catalogue(index)));
        let columns =
            |plan: &Option<TablePlan>| plan.as_ref().map_or(0, |plan| plan.generated.len());
        let highest = catalogue.tables.iter().map(|table| vec![None; columns(&table.plan)]);
        Records {
            catalogue,
            companion,
            objects: objects.collect(),
            created: Vec::new(),
            gone: HashSet::new(),
            next_object: catalogue.next_object,
            marks: HashMap::new(),
            highest: highest.collect(),
            count: 0,
        }
    }

    fn row(&mut self, row: &Row<'_>, report: &mut dyn FnMut(RecordFault)) {
        self.companion.log_change(row.object, row.key, row.change);
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
            Origin::Catalogue(index) => {
                (self.catalogue.tables[index].plan.as_ref(), self.highest.get_mut(index))
            }
        };
        let Some(plan) = plan else { return };
        let checked =
            plan.key.check(row.key).map_err(RowFault::Shape).and_then(|()| match row.change {
                Change::PutElided(elided) => plan.row.check_elided(elided),
                Change::Put(value) => plan.row.check(value),
                Change::Remove => Ok(()),
            });
        let found = match checked {
            Ok(()) => {
                let value = if let Change::Put(value) = row.change { value } else { &[] };
                for (generated, highest) in plan.generated.iter().zip(highest.into_iter().flatten())
                {
                    let in_row = !value.is_empty() || generated.is_in_key();
                    if in_row && row.change != Change::Remove {
                        *highest =
                            (*highest).max(generated.number(&plan.key, &plan.row, row.key, value));
                    }
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

impl RecordSink for Records<'_> {
    fn take(&mut self, _lsn: u64, payload: &[u8], report: &mut dyn FnMut(RecordFault)) {
        use Invariant::{RecordDecodes, RecordFits};
        self.count += 1;
        match read_record(payload) {
            None => report(RecordFault::new(RecordDecodes, "bytes of no known record")),
            Some(Record::Row(row)) => self.row(&row, report),
            Some(Record::Group(body)) => {
                if let Err(fault) = group_rows(body, |row| self.row(&row, report)) {
                    report(RecordFault::new(RecordDecodes, fault));
                }
            }
            Some(Record::CreateTable { object, definition }) => {
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
            Some(Record::DropTable { object }) => {
                self.objects.remove(&object);
                self.gone.insert(object);
            }
            Some(Record::TruncateTable { object, new_object }) => {
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
            Some(Record::Sequence { table, column, mark }) => {
                let highest = self.marks.entry((table, column)).or_default();
                *highest = (*highest).max(mark);
            }
            Some(Record::Tick) => {}
        }
    }
}
