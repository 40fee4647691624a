//! Recovery: the directory, then the log from C. Rows are redone by object; definition entries at or above E are
//! applied by id, those below are in the directory.

use std::collections::BTreeMap;

use super::oracle::{State, TableState};
use super::plant::Plant;
use super::types::{
    Definition, Definitions, Directory, Entry, LEAVES, Lsn, NAMES, Object, Record, RowChange, Rows,
    SEGMENT, SYSTEM, TableId, apply,
};
use super::world::{Cell, Counter, Leaf, Outcome, Tree, World};

impl World {
    /// Recovers from what a crash left, and compares with what was promised.
    pub(super) fn check_recovery(
        &self,
        directory: &Directory,
        log_end: Lsn,
    ) -> Result<Recovered, String> {
        let recovered = recover(directory, &self.log[..log_end as usize], self.plant)?;
        let expected = self.oracle.expected(log_end)?;
        let found = recovered.state();
        if found != expected {
            let (start, end) = (directory.start, directory.end);
            return Err(format!(
                "C {start}, E {end}, log to {log_end}: recovered {found:?}, expected {expected:?}"
            ));
        }
        found.check_system()?;
        Ok(recovered)
    }

    /// A log segment is lost or blank: recovery refuses, or nothing that was promised was in it.
    pub(super) fn check_damage(
        &self,
        directory: &Directory,
        log_end: Lsn,
        lost: Lsn,
    ) -> Result<(), String> {
        let is_gap = lost < self.segments_prepared && self.plant != Plant::GapAccepted;
        let end = log_end.min(lost * SEGMENT).max(directory.start);
        if is_gap || end < directory.end {
            return Ok(());
        }
        let outcome = self.check_recovery(directory, end);
        outcome.map(drop).map_err(|what| format!("without segment {lost}: {what}"))
    }

    /// The next incarnation over what was recovered: the same directory and C, nothing in memory but
    /// what came from the disk.
    pub(super) fn reopened(
        mut self,
        mut directory: Directory,
        end: Lsn,
        recovered: Recovered,
    ) -> World {
        if self.is_planted(Plant::EndRaisedAtOpen) {
            directory.end = directory.end.max(end);
        }
        self.log.truncate(end as usize);
        let oracle = self.oracle.reopened(recovered.state());
        let mut world = World::new(self.plant, self.random, self.in_flight.len());
        world.installed = directory;
        world.next_id = recovered.next_id;
        world.trees.clear();
        for (object, rows) in &recovered.rows {
            let mut tree = Tree::default();
            tree.iter_mut().for_each(|leaf: &mut Leaf| leaf.is_dirty = true);
            for (key, row) in rows {
                let cell = Cell { row: Some(*row), intent: None };
                tree[*key as usize % LEAVES].cells.insert(*key, cell);
                world.versions.insert((*object, *key), vec![(row.1, Some(row.0))]);
            }
            world.trees.insert(*object, tree);
        }
        for (id, reserved) in recovered.counters {
            let counter = Counter { next: reserved, reserved, is_busy: false };
            world.counters.insert(id, counter);
        }
        world.segments_prepared = self.segments_prepared;
        world.catalogue = recovered.tables;
        world.name_changed = [end; NAMES as usize];
        (world.log, world.written, world.durable) = (self.log, end, end);
        (world.prefix_published, world.oracle) = (end, oracle);
        (world.next_made_by, world.next_number) = (self.next_made_by, self.next_number);
        (world.trace, world.refusals, world.commits) = (self.trace, self.refusals, self.commits);
        world.note(|| format!("=== crash; the log ends at {end}; open again"));
        world
    }

    /// When nobody is at work: what is in memory is what the commits say.
    pub(super) fn check_live(&mut self) -> Result<(), String> {
        let objects: Vec<Object> = self.trees.keys().copied().collect();
        for object in objects {
            (0..LEAVES).for_each(|leaf| self.fold(object, leaf));
        }
        if self.outcomes.contains(&Outcome::Open) {
            return Err("a transaction is left without an outcome".to_owned());
        }
        let rows = |tree: &Tree| {
            let cells = tree.iter().flat_map(|leaf| &leaf.cells);
            cells.filter_map(|(key, cell)| Some((*key, cell.row?))).collect::<Rows>()
        };
        let live = Recovered {
            tables: self.catalogue.clone(),
            counters: BTreeMap::new(),
            rows: self.trees.iter().map(|(object, tree)| (*object, rows(tree))).collect(),
            next_id: self.next_id,
        };
        let (found, expected) = (live.state(), &self.oracle.now);
        if found != *expected {
            return Err(format!("in memory is {found:?}, expected {expected:?}"));
        }
        Ok(())
    }
}

/// What recovery gives.
pub(super) struct Recovered {
    tables: Definitions,
    counters: BTreeMap<TableId, u64>,
    rows: BTreeMap<Object, Rows>,
    next_id: u32,
}

impl Recovered {
    fn state(&self) -> State {
        let values = |object: Object| {
            let rows = self.rows.get(&object).into_iter().flatten();
            rows.map(|(key, (value, _))| (*key, *value)).collect()
        };
        let table = |definition: &Definition| {
            let Definition { id, made_by, object, name, version } = *definition;
            (id, TableState { made_by, name, version, rows: values(object) })
        };
        State { tables: self.tables.values().map(table).collect(), system: values(SYSTEM) }
    }

    fn define(&mut self, entry: &Entry, plant: Plant) -> Result<(), String> {
        if plant == Plant::RedoByName {
            return self.define_by_name(entry);
        }
        let known = |id: &TableId| self.tables.get(id).copied();
        let (before, takes_name) = match entry {
            Entry::Create { definition, .. } => {
                if known(&definition.id).is_some() {
                    return Err(format!("redo: {entry:?} of a table that is there"));
                }
                (None, Some(definition.name))
            }
            Entry::Alter { definition, .. } => (known(&definition.id), Some(definition.name)),
            Entry::Drop { id, .. } | Entry::Truncate { id, .. } => (known(id), None),
        };
        if before.is_none() && !matches!(entry, Entry::Create { .. }) {
            return Err(format!("redo: {entry:?} of a table that is not there"));
        }
        if let Some(name) = takes_name {
            let taken = World::named(&self.tables, name);
            if taken.is_some_and(|other| Some(other.id) != before.map(|own| own.id)) {
                return Err(format!("redo: {entry:?}, and the name is taken"));
            }
        }
        self.carry_out(entry, before);
        Ok(())
    }

    fn carry_out(&mut self, entry: &Entry, before: Option<Definition>) {
        match *entry {
            Entry::Create { definition, counter } => {
                self.rows.insert(definition.object, Rows::new());
                self.counters.insert(definition.id, counter);
            }
            Entry::Alter { .. } => {}
            Entry::Drop { id, .. } => {
                if let Some(before) = before {
                    self.rows.remove(&before.object);
                }
                self.counters.remove(&id);
            }
            Entry::Truncate { object, .. } => {
                if let Some(before) = before {
                    self.rows.remove(&before.object);
                }
                self.rows.insert(object, Rows::new());
            }
        }
        apply(&mut self.tables, entry);
    }

    /// The fault of old: whoever has the name now is meant.
    fn define_by_name(&mut self, entry: &Entry) -> Result<(), String> {
        let named = |name| World::named(&self.tables, name);
        match *entry {
            Entry::Create { definition, .. } => {
                if named(definition.name).is_none() {
                    self.carry_out(entry, None);
                }
            }
            Entry::Alter { from, definition } => {
                if let Some(own) = named(from) {
                    named(definition.name)
                        .filter(|other| other.id != own.id)
                        .map(|other| self.tables.remove(&other.id));
                    let definition = Definition { id: own.id, ..definition };
                    self.carry_out(&Entry::Alter { from, definition }, Some(own));
                }
            }
            Entry::Drop { name, .. } => {
                if let Some(own) = named(name) {
                    self.carry_out(&Entry::Drop { id: own.id, name }, Some(own));
                }
            }
            Entry::Truncate { id, .. } => {
                let own = self.tables.get(&id).copied();
                self.carry_out(entry, own);
            }
        }
        Ok(())
    }

    fn row(&mut self, change: &RowChange, lsn: Lsn) {
        let RowChange { object, key, value } = *change;
        // Rows of an object that is gone, or that the definitions do not know.
        let Some(rows) = self.rows.get_mut(&object) else { return };
        if rows.get(&key).is_some_and(|(_, known)| *known >= lsn) {
            return;
        }
        match value {
            Some(value) => rows.insert(key, (value, lsn)),
            None => rows.remove(&key),
        };
    }
}

/// The directory, then the log from C: rows by object, definitions at or above E by id.
fn recover(
    directory: &Directory,
    log: &[Option<Record>],
    plant: Plant,
) -> Result<Recovered, String> {
    if (log.len() as Lsn) < directory.end {
        return Err(format!("the log ends at {} before E {}", log.len(), directory.end));
    }
    let tables = directory.tables.iter();
    let mut recovered = Recovered {
        tables: tables.clone().map(|(id, (definition, _))| (*id, *definition)).collect(),
        counters: tables.map(|(id, (_, reserved))| (*id, *reserved)).collect(),
        rows: directory.images.clone(),
        next_id: directory.next_id,
    };
    for lsn in directory.start..log.len() as Lsn {
        match &log[lsn as usize] {
            None => return Err(format!("LSN {lsn} is durable, and was never copied")),
            Some(Record::Sequence { id, reserved }) => {
                if let Some(counter) = recovered.counters.get_mut(id) {
                    *counter = (*counter).max(*reserved);
                }
            }
            Some(Record::Commit { entries, rows }) => {
                redo(&mut recovered, (entries, rows), lsn, directory.end, plant)?;
            }
        }
    }
    Ok(recovered)
}

fn redo(
    recovered: &mut Recovered,
    (entries, rows): (&[Entry], &[RowChange]),
    lsn: Lsn,
    end: Lsn,
    plant: Plant,
) -> Result<(), String> {
    let rows_first = plant == Plant::RowsRedoneFirst;
    if rows_first {
        rows.iter().for_each(|row| recovered.row(row, lsn));
    }
    let redoes_below = matches!(plant, Plant::RedoBelowE | Plant::RedoByName);
    for entry in entries {
        let made = match entry {
            Entry::Create { definition, .. } => definition.object + 1,
            Entry::Truncate { object, .. } => object + 1,
            _ => 0,
        };
        recovered.next_id = recovered.next_id.max(made);
        let redoes_alter =
            plant == Plant::AlterRedoneBelowE && matches!(entry, Entry::Alter { .. });
        if lsn >= end || redoes_below || redoes_alter {
            recovered.define(entry, plant)?;
        }
    }
    if !rows_first {
        rows.iter().for_each(|row| recovered.row(row, lsn));
    }
    Ok(())
}
