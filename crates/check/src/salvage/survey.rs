//! The log, looked through once: how far it is good, and which tables there are at that place.

use std::collections::BTreeMap;

use onrush_lsn::Lsn;

use crate::decode::definition::read_definition;
use crate::decode::record::{Record, group_records, read_record};
use crate::error::CheckError;
use crate::generated::Generated;
use crate::invariant::Invariant;
use crate::salvage::SalvagedTable;
use crate::steps::catalogue::{Catalogue, TablePlan};
use crate::steps::records::{RecordFault, RecordSink, Records};

/// What the log says; made by handing it all records.
pub(super) struct Survey<'a> {
    records: Records<'a>,
    /// By number.
    tables: BTreeMap<u32, Known>,
    /// Where the first record that makes no sense begins: nothing counts from there on.
    pub(super) end: Option<Lsn>,
}

/// A table at some place in the log.
struct Known {
    object: u32,
    definition: Vec<u8>,
    counters: Vec<(u32, u64)>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(catalogue: &'a Catalogue) -> Survey<'a> {
        let listed = catalogue.tables.iter().filter(|table| !catalogue.is_private(table));
        let known = listed.map(|table| {
            let root = &table.root;
            let (definition, counters) = (root.definition.clone(), root.counters.clone());
            (root.id, Known { object: root.object, definition, counters })
        });
        Survey { tables: known.collect(), records: Records::new(catalogue, &(), None), end: None }
    }

    fn define(&mut self, record: &Record<'_>) {
        match *record {
            Record::CreateTable { object, definition } => {
                let definition = definition.to_vec();
                let new = || Known { object, definition, counters: Vec::new() };
                self.tables.entry(object).or_insert_with(new);
            }
            Record::AlterTable { object, definition } => {
                let known = self.tables.values_mut().find(|known| known.object == object);
                let version = |bytes: &[u8]| read_definition(bytes).map(|table| table.version);
                if let Some(known) = known
                    && version(definition).ok() > version(&known.definition).ok()
                {
                    known.definition = definition.to_vec();
                }
            }
            Record::DropTable { object } => self.tables.retain(|_, known| known.object != object),
            Record::TruncateTable { object, new_object } => {
                let known = self.tables.values_mut().find(|known| known.object == object);
                if let Some(known) = known {
                    known.object = new_object;
                }
            }
            _ => {}
        }
    }
}

impl RecordSink for Survey<'_> {
    fn take(&mut self, lsn: Lsn, payload: &[u8], report: &mut dyn FnMut(RecordFault)) {
        if self.end.is_some() {
            return;
        }
        let mut makes_sense = true;
        self.records.take(lsn, payload, &mut |fault| {
            makes_sense &= fault.invariant != Invariant::RecordDecodes;
            report(fault);
        });
        if !makes_sense {
            self.end = Some(lsn);
            return;
        }
        match read_record(payload) {
            // That it decodes has been seen.
            Some(Record::Group(body)) => drop(group_records(body, |record| self.define(&record))),
            Some(record) => self.define(&record),
            None => {}
        }
    }
}

/// The tables to be salvaged.
pub(super) struct Wanted {
    pub(super) tables: Vec<WantedTable>,
}

/// One of them.
pub(super) struct WantedTable {
    number: u32,
    pub(super) object: u32,
    /// Its place in the catalogue, if its images hold what counts.
    pub(super) catalogue: Option<usize>,
    pub(super) plan: TablePlan,
    definition: Vec<u8>,
    /// Below this, numbers of each generated column may have been handed out.
    marks: Vec<u64>,
    /// The highest number met of each.
    highest: Vec<Option<u64>>,
}

impl Wanted {
    /// # Errors
    /// A name in `only` that no table has.
    pub(super) fn new(
        catalogue: &Catalogue,
        survey: Survey<'_>,
        only: &[String],
    ) -> Result<Wanted, CheckError> {
        let Survey { records, tables: known, .. } = survey;
        let mut tables = Vec::new();
        for (id, known) in known {
            // One that does not decode is among the findings.
            let Ok(definition) = read_definition(&known.definition) else { continue };
            let plan = TablePlan::new(&definition);
            let mark = |generated: &Generated| {
                let column = generated.column as u32;
                let stored = known.counters.iter().find(|(other, _)| *other == column);
                let logged = records.marks.get(&(id, column)).copied().unwrap_or(0);
                stored.map_or(0, |(_, mark)| *mark).max(logged)
            };
            let in_images =
                |root: &crate::decode::directory::RootTable| root.object == known.object;
            tables.push(WantedTable {
                number: id,
                object: known.object,
                catalogue: catalogue.tables.iter().position(|table| in_images(&table.root)),
                marks: plan.generated.iter().map(mark).collect(),
                highest: vec![None; plan.generated.len()],
                plan,
                definition: known.definition,
            });
        }
        let names: Vec<&str> = tables.iter().map(|table| table.plan.name.as_str()).collect();
        if let Some(name) = only.iter().find(|name| !names.contains(&name.as_str())) {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(CheckError::UnknownTable { name: name.clone(), known });
        }
        let is_named = |table: &WantedTable| only.is_empty() || only.contains(&table.plan.name);
        // Their long values come along.
        let pieces: Vec<u32> = tables
            .iter()
            .filter(|table| is_named(table))
            .filter_map(|table| table.plan.long_values)
            .collect();
        tables.retain(|table| is_named(table) || pieces.contains(&table.number));
        Ok(Wanted { tables })
    }

    pub(super) fn described(&self) -> Vec<SalvagedTable> {
        let describe = |table: &WantedTable| SalvagedTable {
            name: table.plan.name.clone(),
            number: table.number,
            definition: table.definition.clone(),
        };
        self.tables.iter().map(describe).collect()
    }
}

impl WantedTable {
    /// Remembers the numbers of a sound row.
    pub(super) fn note_numbers(&mut self, key: &[u8], row: &[u8]) {
        let WantedTable { plan, highest, .. } = self;
        for (generated, highest) in plan.generated.iter().zip(highest) {
            *highest = (*highest).max(generated.number(&plan.key, &plan.row, key, row));
        }
    }

    /// For each generated column the first number that was never in use.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&str, u64)> {
        let columns = self.plan.generated.iter().zip(&self.marks).zip(&self.highest);
        columns.map(|((generated, mark), highest)| {
            let beyond = highest.map_or(0, |highest| highest.saturating_add(1));
            (generated.name.as_str(), beyond.max(*mark))
        })
    }
}
