//! Tables altered: columns added, renamed, given other defaults and dropped again, and tables renamed. Rows stay as
//! they are, so in the model only the definition changes.

use onrush::{
    ColumnDefinition, DataType, DefaultValue, Error, TableChange, TableDefinition, Value,
};

use super::World;
use super::tables::Values;
use crate::plan::TablePlan;
use onrush_oracle::Checked;
use onrush_oracle::Effect;
use onrush_oracle::violation;

/// How the names of added columns begin.
const ADDED: &str = "added-";
/// Columns added to one table at a time.
const ADDED_MAX: usize = 6;

impl World {
    /// Where the payload stands among the columns.
    pub(super) fn payload_at(&self, table: usize) -> Checked<usize> {
        match self.tables[table].handle.definition().column_index("payload") {
            Ok(column) => Ok(column),
            Err(error) => violation!("{error}"),
        }
    }

    /// Values of the columns that were added.
    pub(super) fn added_columns(&mut self, table: usize) -> Values {
        let handle = self.tables[table].handle.clone();
        let added = handle.definition().columns().iter();
        let added = added.filter(|column| column.name.starts_with(ADDED));
        added.map(|column| self.added_value(column)).collect()
    }

    fn added_value(&mut self, column: &ColumnDefinition) -> Value<'static> {
        let has_value = column.nullable || column.default != onrush::DefaultValue::None;
        if has_value && self.random.chance(1, 2) {
            return Value::Default;
        }
        let number = self.random.below(1000);
        match column.data_type {
            DataType::Int32 => Value::Int32(i32::try_from(number).unwrap_or(0)),
            _ => Value::from("x".repeat(usize::try_from(number / 50).unwrap_or(0))),
        }
    }

    pub(super) fn alter(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        if self.moves_rows() {
            return Ok(());
        }
        let live = &self.tables[table];
        let Some(mut expected) = live.definition() else { return Ok(()) };
        let name = live.name().to_owned();
        let (base, handle) = (live.plan.name.clone(), live.handle.clone());
        let changes = self.some_changes(handle.definition(), &base);
        // Nothing to change is nothing to make durable.
        if changes.is_empty() {
            return Ok(());
        }
        for change in &changes {
            expected = match expected.altered(change, 0) {
                Ok(expected) => expected,
                Err(error) => violation!("a change of a plan is refused: {error}"),
            };
        }
        let has_rows = self.history.now().table(&name).is_some_and(|rows| !rows.rows.is_empty());
        let needs_none = changes.iter().any(|change| change.needs_no_rows().is_some());
        let (new, definition) = (expected.name().to_owned(), expected.to_bytes());
        let effect = Effect::Alter { table: name.clone(), name: new.clone(), definition };
        let begun_at = self.timestamp();
        let outcome = self.database()?.alter_table(&name, &changes);
        match outcome {
            Ok(_) if has_rows && needs_none => {
                violation!("alter {name}: it has rows, and no error")
            }
            Err(Error::RowsInTheWay { .. }) if has_rows && needs_none => return Ok(()),
            _ => {}
        }
        if let Ok(handle) = &outcome
            && handle.definition().clone().with_long_values(None) != expected
        {
            violation!("alter {name}: it is {:?}, not {expected:?}", handle.definition());
        }
        let handle = outcome.as_ref().ok().cloned();
        let done = self.finish_definition("alter", begun_at, effect, outcome.map(|_| ()))?;
        let failed = handle.is_none();
        self.tables[table].alter(&expected, handle);
        // It looks for rows before it takes a version and after, and the disk may have failed either time.
        if failed && needs_none {
            self.tables[table].forget_version();
        }
        if done {
            self.follow_name(&name, &new);
        }
        Ok(())
    }

    /// A table's name changes hands: a table of the new name comes and goes before it is taken, or one of the
    /// old name comes and goes before that is taken back.
    pub(super) fn pass_names(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let live = &self.tables[table];
        // What was handed out under a generated table's name stays its own.
        if live.is_generated() || self.moves_rows() {
            return Ok(());
        }
        let (name, plan) = (live.name().to_owned(), live.plan.clone());
        let other = match name.split_once('+') {
            Some((base, _)) => base.to_owned(),
            None => format!("{name}+other"),
        };
        if self.database()?.table(&other).is_ok() {
            return Ok(());
        }
        // What was refused leaves the names as they are, and nothing to go on with.
        let _all_done = if self.random.chance(1, 2) {
            self.come_and_go(&other, &plan)? && self.rename(&name, &other)?
        } else {
            self.rename(&name, &other)?
                && self.come_and_go(&name, &plan)?
                && self.rename(&other, &name)?
        };
        Ok(())
    }

    /// Rows are moved only between tables that are alike, and an altered table is like no other.
    fn moves_rows(&self) -> bool {
        self.plan.tables.iter().any(|plan| plan.front_of.is_some())
    }

    /// Whether it has done both.
    fn come_and_go(&mut self, name: &str, plan: &TablePlan) -> Checked<bool> {
        let definition = match plan.definition().renamed(name.to_owned()) {
            Ok(definition) => definition,
            Err(error) => violation!("{error}"),
        };
        let (table, bytes) = (name.to_owned(), definition.to_bytes());
        let effect = Effect::Create { table: table.clone(), definition: bytes };
        let begun_at = self.timestamp();
        let outcome = self.database()?.create_table(definition).map(|_| ());
        if !self.finish_definition("create", begun_at, effect, outcome)? {
            return Ok(false);
        }
        let begun_at = self.timestamp();
        let outcome = self.database()?.drop_table(name);
        self.finish_definition("drop", begun_at, Effect::Drop { table }, outcome)
    }

    /// Whether it has happened.
    fn rename(&mut self, from: &str, to: &str) -> Checked<bool> {
        let known = self.tables.iter().position(|table| table.name() == from);
        let Some(table) = known else { return Ok(false) };
        let Some(definition) = self.tables[table].definition() else { return Ok(false) };
        let change = TableChange::Rename { to: to.to_owned() };
        let expected = match definition.altered(&change, 0) {
            Ok(expected) => expected,
            Err(error) => violation!("{error}"),
        };
        let (table_name, name, definition) = (from.to_owned(), to.to_owned(), expected.to_bytes());
        let effect = Effect::Alter { table: table_name, name, definition };
        let begun_at = self.timestamp();
        let outcome = self.database()?.alter_table(from, &[change]);
        let handle = outcome.as_ref().ok().cloned();
        let done = self.finish_definition("rename", begun_at, effect, outcome.map(|_| ()))?;
        self.tables[table].alter(&expected, handle);
        if done {
            self.history.changed.retain(|(table, _), _| table != to);
            self.handed.retain(|(table, _), _| table != to);
            self.follow_name(from, to);
        }
        Ok(done)
    }

    fn some_changes(&mut self, definition: &TableDefinition, base: &str) -> Vec<TableChange> {
        let count = 1 + self.random.below(2);
        let mut added: Vec<ColumnDefinition> = definition.columns().to_vec();
        added.retain(|column| column.name.starts_with(ADDED));
        let mut changes = Vec::new();
        for _ in 0..count {
            let fresh = format!("{ADDED}{}", self.random.below(1 << 40));
            let at = usize::try_from(self.random.below(added.len().max(1) as u64)).unwrap_or(0);
            match self.random.below(10) {
                0 => {
                    let to = format!("{base}+{}", self.random.below(u64::MAX));
                    changes.push(TableChange::Rename { to });
                }
                1 if !added.is_empty() => {
                    let from = std::mem::replace(&mut added[at].name, fresh.clone());
                    changes.push(TableChange::RenameColumn { from, to: fresh });
                }
                2..=4 if !added.is_empty() => {
                    changes.push(TableChange::DropColumn { name: added.remove(at).name });
                }
                5..=6 if !added.is_empty() => changes.push(self.set(&mut added[at])),
                _ if added.len() < ADDED_MAX => {
                    let column = self.some_column(fresh);
                    added.push(column.clone());
                    changes.push(TableChange::AddColumn(column));
                }
                _ => {}
            }
        }
        changes
    }

    /// Rows that are there keep what they have; a column that may be NULL may be so afterwards, too.
    fn set(&mut self, column: &mut ColumnDefinition) -> TableChange {
        let number = i32::try_from(self.random.below(1000)).unwrap_or(0);
        let constant = match column.data_type {
            DataType::Int32 => Value::Int32(number),
            _ => Value::from(format!("a new default: {number}")),
        };
        column.default = match self.random.below(3) {
            0 => DefaultValue::None,
            _ => DefaultValue::Constant(constant),
        };
        column.nullable |= self.random.chance(1, 2);
        let (name, nullable) = (column.name.clone(), column.nullable);
        TableChange::SetColumn { name, nullable, default: column.default.clone() }
    }

    fn some_column(&mut self, name: String) -> ColumnDefinition {
        let integer = ColumnDefinition::new(name.clone(), DataType::Int32);
        let text = ColumnDefinition::new(name, DataType::Text);
        match self.random.below(6) {
            0 => integer,
            1 => integer.not_null().default_value(7i32),
            2 => text,
            3 => text.not_null().default_value("a text that rows from before have"),
            4 => integer.default_value(-1i32),
            // For a table without rows.
            _ => integer.not_null(),
        }
    }

    /// What is known of the rows of a table is known under its new name, too.
    fn follow_name(&mut self, old: &str, new: &str) {
        if old == new {
            return;
        }
        let renamed =
            |(table, key): &super::Place| (table == old).then(|| (new.to_owned(), key.clone()));
        let handed = self.handed.iter();
        let handed: Vec<_> =
            handed.filter_map(|(place, timestamp)| Some((renamed(place)?, *timestamp))).collect();
        self.handed.extend(handed);
        self.history.changed.rename(renamed);
    }
}
