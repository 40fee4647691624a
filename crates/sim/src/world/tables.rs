//! Tables, and where new keys and payloads come from.

use std::sync::Arc;

use onrush::{Error, Table, TableDefinition, Value};
use onrush_types::EncodedRow;

use super::{Failed, Place, World};
use crate::plan::{Keys, TablePlan};
use onrush_oracle::Checked;
use onrush_oracle::Effect;
use onrush_oracle::violation;

/// The values of one row.
pub(super) type Values = Vec<Value<'static>>;

/// A table of the open database.
pub struct LiveTable {
    pub(crate) plan: TablePlan,
    pub(crate) handle: Table,
    /// The latest version that the engine gave its definition: one that was refused at the end is not
    /// given again while the database is open. None when a change failed where it may have taken a version or not.
    version: Option<u16>,
    next: i64,
    runs: [i64; 4],
}

impl LiveTable {
    pub(crate) fn name(&self) -> &str {
        self.handle.name()
    }

    /// Its definition, to be altered from, if it is known which version the next one gets.
    pub(super) fn definition(&self) -> Option<TableDefinition> {
        let definition = TableDefinition::clone(self.handle.definition());
        Some(definition.with_long_values(None).raised_to(self.version?))
    }

    /// Of a change that failed before or after it took a version.
    pub(super) fn forget_version(&mut self) {
        self.version = None;
    }

    /// Goes on with the altered table, or without it when it was refused.
    pub(super) fn alter(&mut self, altered: &TableDefinition, done: Option<Table>) {
        self.version = Some(altered.version());
        if let Some(handle) = done {
            self.handle = handle;
        }
    }

    pub(super) fn is_generated(&self) -> bool {
        matches!(self.plan.keys, Keys::Generated(_))
    }
}

/// Key bytes and value bytes of a row.
pub(super) fn encode(table: &Table, values: &[Value<'_>]) -> Checked<(Vec<u8>, Arc<[u8]>)> {
    let mut encoded = EncodedRow::new();
    let refuse = |column: usize, _: &_| -> Result<Value<'static>, Error> {
        Err(Error::Internal(format!("column {column} is computed")))
    };
    match table.schema().encode_row(values, refuse, &mut encoded) {
        Ok(()) => Ok((encoded.key, encoded.row.into())),
        Err(error) => violation!("the row of a plan is refused: {error}"),
    }
}

impl World {
    /// Remembers a table that the open database has.
    pub(super) fn meet_table(&mut self, name: &str) {
        let base = name.split('+').next().unwrap_or(name);
        let plan = self.plan.tables.iter().find(|plan| plan.name == base).cloned();
        let handle = self.database.as_ref().and_then(|database| database.table(name).ok());
        if let (Some(plan), Some(handle)) = (plan, handle) {
            // Above every key that a run can have reached.
            let next = 1 + 100_000 * i64::try_from(self.random.below(1000)).unwrap_or(0);
            let runs = [0, 1, 2, 3].map(|run| (run << 40) + next);
            let version = Some(handle.definition().version());
            self.tables.push(LiveTable { plan, handle, version, next, runs });
        }
    }

    pub(super) fn create_table(&mut self, name: String, plan: TablePlan) -> Checked<()> {
        let definition = match plan.definition().renamed(name.clone()) {
            Ok(definition) => definition,
            Err(error) => violation!("{error}"),
        };
        let bytes = definition.to_bytes();
        let begun_at = self.timestamp();
        let effect = || vec![Effect::Create { table: name.clone(), definition: bytes.clone() }];
        match self.database()?.create_table(definition) {
            Ok(_) => {
                let commits = self.note_commit(begun_at, effect(), None)?;
                let timestamp = self.timestamp();
                self.history.acknowledge(timestamp, commits);
                self.meet_table(&name);
            }
            Err(error) => {
                if self.failed("create table", &error)? == Failed::Unknown {
                    self.note_commit(begun_at, effect(), None)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let name = self.tables[table].name().to_owned();
        self.snapshots.clear();
        let begun_at = self.timestamp();
        let outcome = self.database()?.truncate_table(&name);
        let effect = Effect::Truncate { table: name.clone() };
        self.finish_definition("truncate", begun_at, effect, outcome)?;
        Ok(())
    }

    pub(super) fn drop_and_create(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let (name, plan) = (self.tables[table].name().to_owned(), self.tables[table].plan.clone());
        self.snapshots.clear();
        let begun_at = self.timestamp();
        let outcome = self.database()?.drop_table(&name);
        let effect = Effect::Drop { table: name.clone() };
        if !self.finish_definition("drop", begun_at, effect, outcome)? {
            return Ok(());
        }
        self.tables.remove(table);
        // Generated keys begin anew with a table, so each such table has a name of its own.
        let generated = matches!(plan.keys, Keys::Generated(_));
        let name = match generated {
            true => format!("{}+{}", plan.name, self.random.below(u64::MAX)),
            false => name,
        };
        self.create_table(name, plan)
    }

    /// Whether it has happened.
    pub(super) fn finish_definition(
        &mut self,
        what: &str,
        begun_at: usize,
        effect: Effect,
        outcome: onrush::Result<()>,
    ) -> Checked<bool> {
        match outcome {
            Ok(()) => {
                let commits = self.note_commit(begun_at, vec![effect], None)?;
                let timestamp = self.timestamp();
                self.history.acknowledge(timestamp, commits);
                Ok(true)
            }
            Err(error) => {
                if self.failed(what, &error)? == Failed::Unknown {
                    self.note_commit(begun_at, vec![effect], None)?;
                }
                Ok(false)
            }
        }
    }

    /// A payload of the table's size, or NULL.
    pub(super) fn payload(&mut self, table: usize) -> Value<'static> {
        if self.random.chance(1, 12) {
            return Value::Null;
        }
        let (least, most) = self.tables[table].plan.payload_bytes;
        let bytes = least + self.random.below(most - least + 1);
        let mut payload = vec![0; usize::try_from(bytes).unwrap_or(0)];
        self.random.fill(&mut payload);
        payload.into()
    }

    /// The columns after the key.
    pub(super) fn other_columns(&mut self, table: usize) -> Values {
        let kind = match self.random.below(3) {
            0 => Value::Int32(i32::try_from(self.random.below(1000)).unwrap_or(0)),
            _ => Value::Default,
        };
        let mut values = vec![kind, self.payload(table)];
        values.extend(self.added_columns(table));
        values
    }

    /// A row with a key that is new, in all likelihood.
    pub(super) fn new_row(&mut self, table: usize) -> Values {
        let random = &mut self.random;
        let live = &mut self.tables[table];
        let mut values = match live.plan.keys {
            Keys::Generated(_) => vec![Value::Default],
            Keys::Ascending => {
                live.next += 1;
                vec![Value::Int64(live.next)]
            }
            Keys::Random => vec![Value::Int64(random.below(1 << 40).cast_signed())],
            Keys::Runs => {
                let run = &mut live.runs[usize::try_from(random.below(4)).unwrap_or(0)];
                *run += 1;
                vec![Value::Int64(*run)]
            }
            Keys::Composite => {
                let region = ["", "north", "north\0east", "süd", "zz"][random.below(5) as usize];
                let number = i32::try_from(random.below(1 << 20)).unwrap_or(0);
                vec![Value::from(region.to_owned()), Value::Int32(number - 1000)]
            }
        };
        values.extend(self.other_columns(table));
        values
    }

    /// A key that the table has.
    pub(super) fn some_key(&mut self, table: usize) -> Option<Vec<u8>> {
        let rows = &self.history.now().table(self.tables[table].name())?.rows;
        let at = usize::try_from(self.random.below(rows.len().max(1) as u64)).unwrap_or(0);
        rows.keys().nth(at).cloned()
    }

    /// The values of a row that the table has.
    pub(super) fn values_of(&self, table: usize, key: &[u8], value: &[u8]) -> Checked<Values> {
        match self.tables[table].handle.schema().decode_row(key, value) {
            Ok(values) => Ok(values),
            Err(error) => violation!("a row of the model does not decode: {error}"),
        }
    }

    pub(super) fn key_values(&self, table: usize, key: &[u8]) -> Checked<Values> {
        match self.tables[table].handle.schema().decode_key(key) {
            Ok(values) => Ok(values),
            Err(error) => violation!("a key of the model does not decode: {error}"),
        }
    }

    pub(super) fn place(&self, table: usize, key: &[u8]) -> Place {
        (self.tables[table].name().to_owned(), key.to_vec())
    }

    /// A generated key was shown to a caller: never again.
    pub(super) fn hand_out(&mut self, place: Place) -> Checked<()> {
        let timestamp = self.timestamp();
        if let Some(before) = self.handed.get(&place) {
            let (table, key) = &place;
            violation!("{table}: the generated key {key:02x?} was handed out before, at {before}");
        }
        self.handed.insert(place, timestamp);
        Ok(())
    }
}
