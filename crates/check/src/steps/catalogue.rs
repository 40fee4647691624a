//! The root and what it says about tables, before any of their leaves is looked at.

use std::collections::{HashMap, HashSet};

use onrush_lsn::Lsn;

use crate::decode::definition::{Definition, read_definition};
use crate::decode::directory::{Committed, Large, Root, RootTable, read_root};
use crate::decode::key::KeyPlan;
use crate::decode::record::LARGE_IDS;
use crate::decode::row::RowPlan;
use crate::decode::slot::SlotNumber;
use crate::finding::Finding;
use crate::generated::Generated;
use crate::invariant::Invariant;
use crate::steps::owners::Owners;
use crate::store::Store;

/// A table whose definition is sound, with everything that checking its rows needs.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    pub(crate) name: String,
    pub(crate) version: u16,
    pub(crate) key: KeyPlan,
    pub(crate) row: RowPlan,
    pub(crate) generated: Vec<Generated>,
    /// The number of the table that has the pieces of long values.
    pub(crate) long_values: Option<u32>,
    /// Whether its rows are such pieces.
    pub(crate) is_pieces: bool,
}

impl TablePlan {
    pub(crate) fn new(definition: &Definition) -> TablePlan {
        TablePlan {
            name: definition.name.clone(),
            version: definition.version,
            key: KeyPlan::new(definition),
            row: RowPlan::new(definition),
            generated: Generated::of(definition),
            long_values: definition.long_values,
            is_pieces: definition.pieces_of().is_some(),
        }
    }
}

/// The tables as the root names them.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    pub(crate) next_object: u32,
    pub(crate) tables: Vec<CatalogueTable>,
    /// Large transactions.
    pub(crate) large: Large,
}

/// One table.
#[derive(Debug)]
pub(crate) struct CatalogueTable {
    pub(crate) root: RootTable,
    /// None: the definition is damaged, so only the table's structure can be checked.
    pub(crate) plan: Option<TablePlan>,
}

impl CatalogueTable {
    /// Its name, or a number where that is damaged. No other table is called so while it is not committed.
    pub(crate) fn name(&self) -> String {
        match &self.plan {
            Some(plan) => plan.name.clone(),
            None => format!("number {}", self.root.id),
        }
    }
}

impl Catalogue {
    /// Whether it is of no table yet: a large transaction has made it and is open.
    pub(crate) fn is_private(&self, table: &CatalogueTable) -> bool {
        self.large.private.contains(&table.root.object)
    }
}

/// Reads and checks the root. None with a finding: no table can be found.
pub(crate) fn read(store: &Store<'_>, owners: &mut Owners) -> Option<Catalogue> {
    let Some(place) = store.superblock.root else { return Some(Catalogue::default()) };
    let (bytes, slots) = store.read_blob(place)?;
    claim_pages(store, owners, &slots);
    let Some(root) = read_root(&bytes) else {
        let found = "bytes that are no list of tables";
        store.findings.add(store.at_slot(Invariant::RootDecodes, place.first, found));
        return None;
    };
    check_numbers(store, place.first, &root);
    check_large(store, place.first, &root);
    let next_object = root.next_object;
    let (mut tables, mut pieces_of) = (Vec::new(), HashMap::new());
    for table in root.tables {
        let definition = match read_definition(&table.definition) {
            Ok(definition) => Some(definition),
            Err(fault) => {
                let finding = store.at_slot(Invariant::DefinitionDecodes, place.first, fault);
                store.findings.add(finding.of_table(&format!("number {}", table.id)));
                None
            }
        };
        if let Some(definition) = &definition {
            check_counters(store, place.first, &table, definition);
        }
        let plan = definition.as_ref().map(TablePlan::new);
        pieces_of
            .extend(definition.iter().filter_map(|it| it.pieces_of().map(|of| (table.id, of))));
        tables.push(CatalogueTable { root: table, plan });
    }
    let mut names = HashSet::new();
    let is_private = |table: &CatalogueTable| root.large.private.contains(&table.root.object);
    let listed = tables.iter().filter(|table| !is_private(table));
    for table in listed.clone() {
        let pieces = table.plan.as_ref().and_then(|plan| plan.long_values);
        if pieces.is_some_and(|pieces| pieces_of.get(&pieces) != Some(&table.root.id)) {
            let found = "its long values are in a table that is not there, or another table's";
            let finding = store.at_slot(Invariant::DefinitionDecodes, place.first, found);
            store.findings.add(finding.of_table(&table.name()));
        }
    }
    for plan in listed.filter_map(|table| table.plan.as_ref()) {
        if !names.insert(&plan.name) {
            let finding = store.at_slot(Invariant::ObjectNumbers, place.first, "two of that name");
            store.findings.add(finding.of_table(&plan.name));
        }
    }
    Some(Catalogue { next_object, tables, large: root.large })
}

fn check_large(store: &Store<'_>, at: SlotNumber, root: &Root) {
    let Large { next, committed, private } = &root.large;
    let mut ids = HashSet::new();
    if *next == 0 || *next > LARGE_IDS {
        let found = format!("large transactions below {next}, where numbers end at {LARGE_IDS}");
        store.findings.add(store.at_slot(Invariant::LargeTransactions, at, found));
    }
    let objects = |object: &u32| root.tables.iter().any(|table| table.object == *object);
    if let Some(object) = private.iter().find(|object| !objects(object)) {
        let found = format!("object {object} of a large transaction, which has no images");
        store.findings.add(store.at_slot(Invariant::LargeTransactions, at, found));
    }
    for Committed { id, lsn, objects } in committed {
        let is_possible = *id > 0 && id < next && *lsn > Lsn::ZERO && *lsn < store.superblock.end;
        let unknown = objects.iter().find(|object| **object >= root.next_object);
        let found = if !is_possible || !ids.insert(*id) {
            format!("large transaction {id} at LSN {lsn}, where {next} comes next")
        } else if let Some(object) = unknown {
            format!("large transaction {id} has written to object {object}, which never was")
        } else {
            continue;
        };
        store.findings.add(store.at_slot(Invariant::LargeTransactions, at, found));
    }
}

/// Marks the slots of a blob.
pub(crate) fn claim_pages(store: &Store<'_>, owners: &mut Owners, slots: &[SlotNumber]) {
    for slot in slots {
        if !owners.claim_page(*slot) {
            let found = format!("{slot} is named by a page of the directory and by something else");
            store.findings.add(store.at_slot(Invariant::SlotOwned, *slot, found));
        }
    }
}

fn check_numbers(store: &Store<'_>, at: SlotNumber, root: &Root) {
    let (mut ids, mut objects) = (HashSet::new(), HashSet::new());
    for table in &root.tables {
        let (id, object, next) = (table.id, table.object, root.next_object);
        let found = if id == 0 || object < id || object >= next {
            format!(
                "table number {id} with object {object}, where objects below {next} were handed out"
            )
        } else if !ids.insert(id) || !objects.insert(object) {
            format!("table number {id} or object {object} stands twice")
        } else {
            continue;
        };
        store.findings.add(store.at_slot(Invariant::ObjectNumbers, at, found));
    }
}

fn check_counters(store: &Store<'_>, at: SlotNumber, table: &RootTable, definition: &Definition) {
    let mut given: Vec<u32> = table.counters.iter().map(|(column, _)| *column).collect();
    given.sort_unstable();
    let columns = definition.columns.iter().enumerate();
    let wanted: Vec<u32> = columns
        .filter(|(_, column)| column.strategy().is_some())
        .map(|(position, _)| definition.column_number(position) as u32)
        .collect();
    if given != wanted {
        let found = format!("counters for columns {given:?}, generated columns {wanted:?}");
        let finding: Finding = store.at_slot(Invariant::Counters, at, found);
        store.findings.add(finding.of_table(&definition.name));
    }
}
