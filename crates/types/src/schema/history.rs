//! How a table came to its columns: what is needed to read rows that were written before a column
//! was added, dropped or got another default. Rows are never rewritten for that; each names the version it
//! was written with.
//!
//! Invariants
//! 1. Every column has a number for ever: that of its place among all columns there ever were. The
//!    columns of each version stand in the order of their numbers. A column that is there may have been
//!    another before, under the same number.
//! 2. Key columns are there from the first version on and are never dropped.
//! 3. A change makes a new version, a new name too, so that versions tell older from newer.

use std::fmt;
use std::sync::Arc;

use super::{
    COLUMNS_MAX, CheckConstraint, ColumnDefinition, ColumnDomain, DefaultValue, DomainDefinition,
    DomainRule, Schema, SequenceDefinition, TableDefinition, ViewDefinition,
};
use crate::{CompositeType, DataType, EnumLabels, EnumType, TypeError, Value};

/// The last version of a definition: in front of a row a bit beside it tells of its form.
pub(super) const VERSION_MAX: u16 = (1 << 15) - 1;

/// What a table that was altered knows of its past.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The version that the table was created with.
    pub(super) first_version: u16,
    /// One for each column of the definition, in its order.
    pub(super) columns: Vec<Since>,
    /// Columns that are gone, and what columns were before, by number and version.
    pub(super) dropped: Vec<Dropped>,
}

/// Where a column comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Since {
    pub(super) number: u16,
    /// The first version whose rows have it.
    pub(super) version: u16,
    /// What rows of earlier versions hold in it.
    pub(super) missing: Value<'static>,
}

/// A column as rows of earlier versions have it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dropped {
    pub(super) number: u16,
    pub(super) column: ColumnDefinition,
    /// The versions whose rows have it: from the first on, and before the second.
    pub(super) versions: (u16, u16),
}

/// A change of a table's definition.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// A new column behind the others. The rows that there are hold its constant default, the moment
    /// of the change where the default is now, else NULL.
    AddColumn(ColumnDefinition),
    /// A column is gone; not one of the key.
    DropColumn {
        /// Its name.
        name: String,
    },
    /// A column has another name.
    RenameColumn {
        /// Its name.
        from: String,
        /// The new one.
        to: String,
    },
    /// A column may be NULL or not, and has another default for rows that are inserted from now on.
    SetColumn {
        /// Its name.
        name: String,
        /// Whether it may be NULL. Where it may not, it must not be in the rows that there are.
        nullable: bool,
        /// Its default.
        default: DefaultValue,
    },
    /// Statements leave the values of an identity to be made, or may give their own.
    SetAlwaysGenerated {
        /// Its name.
        name: String,
        /// Whether they leave them.
        is_always: bool,
    },
    /// Every row must meet this condition, those that are there too if it is validated.
    AddCheck(CheckConstraint),
    /// A condition that older rows need not meet is met by all of them from now on.
    ValidateCheck {
        /// Its name.
        name: String,
    },
    /// A condition need not be met any more.
    DropCheck {
        /// Its name.
        name: String,
    },
    /// A condition has another name.
    RenameCheck {
        /// Its name.
        from: String,
        /// The new one.
        to: String,
    },
    /// The primary key has another name.
    RenameKey {
        /// The new name.
        to: String,
    },
    /// The table, which is a sequence, is another one.
    SetSequence(SequenceDefinition),
    /// The table, which is a view, is another one.
    SetView(ViewDefinition),
    /// The table, which is a type of labels, has others: all that there were, maybe by other names.
    SetLabels(EnumLabels),
    /// Columns of a type of labels have others, as that has: all that there were, maybe by other names.
    SetLabelsOfColumns(EnumType),
    /// Columns of a composite type have its name and its fields from now on: all that there were, in their order,
    /// maybe by other names, and maybe more behind them.
    SetCompositeOfColumns(CompositeType),
    /// The table, which is a domain, is another one.
    SetDomain(DomainDefinition),
    /// Columns are of other domains, or of none. The rows that there are must meet rules that are new, but for those
    /// that are not validated.
    SetDomainOfColumns(Vec<ColumnInDomain>),
    /// Rows are inserted only from now on, or may be changed and deleted again.
    SetAppendsOnly(bool),
    /// The table has another name.
    Rename {
        /// The new name.
        to: String,
    },
}

/// What a column has of its domain from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnInDomain {
    /// The column's name.
    pub name: String,
    /// The domain, of the column's type.
    pub domain: Option<ColumnDomain>,
    /// The column's rules.
    pub rules: Vec<DomainRule>,
    /// Its default, if that becomes another.
    pub default: Option<DefaultValue>,
}

impl TableChange {
    /// Why the change can only be made while the table has no rows; `None` if rows do not matter.
    pub fn needs_no_rows(&self) -> Option<NeedsNoRows> {
        let TableChange::AddColumn(column) = self else { return None };
        match &column.default {
            DefaultValue::None if !column.nullable => Some(NeedsNoRows::NoValue),
            DefaultValue::Key(_) => Some(NeedsNoRows::GeneratedKeys),
            DefaultValue::Expression(_) | DefaultValue::Generated(_) => {
                Some(NeedsNoRows::ComputedValues)
            }
            _ => None,
        }
    }
}

/// Why only a table without rows can get a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsNoRows {
    /// It is NOT NULL and has no default.
    NoValue,
    /// Its default makes another key for every row.
    GeneratedKeys,
    /// Its default is computed for every row.
    ComputedValues,
}

impl fmt::Display for NeedsNoRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NeedsNoRows::NoValue => {
                "it is NOT NULL and has no default, so they would have no value; give it a default"
            }
            NeedsNoRows::GeneratedKeys => {
                "its keys are made when a row is inserted; add it to a new table and copy the rows"
            }
            NeedsNoRows::ComputedValues => {
                "its values are computed when a row is inserted; add it without the default, or to a \
                 new table and copy the rows"
            }
        })
    }
}

impl TableDefinition {
    /// The definition after a change, as a new version. `unix_micros` is the moment of the change,
    /// for defaults that are now.
    ///
    /// # Errors
    /// No such column; a name that is taken; a key column to be dropped; a table that was changed
    /// 32,767 times, or has had 1,024 columns; what [`TableBuilder::build`](super::TableBuilder)
    /// refuses.
    pub fn altered(
        &self,
        change: &TableChange,
        unix_micros: i64,
    ) -> Result<TableDefinition, TypeError> {
        let (mut altered, mut history) = self.next_version()?;
        match change {
            TableChange::AddColumn(column) => {
                let number = history.next_number();
                if usize::from(number) >= COLUMNS_MAX {
                    return Err(self.used_up("columns, those dropped included"));
                }
                altered.columns.push(column.clone());
                // Brings a constant default into the column's type.
                altered.check_columns()?;
                let missing = missing_value(&altered.columns[self.columns.len()], unix_micros);
                let version = altered.version;
                history.columns.push(Since { number, version, missing });
            }
            TableChange::DropColumn { name } => {
                let index = self.column_index(name)?;
                if self.primary_key.contains(&index) {
                    return Err(TypeError::KeyColumnStays(self.column_name(index)));
                }
                let number = history.columns[index].number;
                if let Some(generated) = self.generated_of(number) {
                    return Err(TypeError::UsedByGenerated {
                        column: self.column_name(index),
                        generated: self.column_name(generated),
                    });
                }
                let column = altered.columns.remove(index);
                let Since { number, version, .. } = history.columns.remove(index);
                let versions = (version, altered.version);
                altered.checks.retain(|check| !check.columns.contains(&number));
                altered.rules.retain(|rule| rule.column != number);
                altered.indexes.retain(|index| !index.has_column(number));
                altered.foreign_keys.retain(|key| !key.columns.contains(&number));
                history.drop_column(Dropped { number, column, versions });
                altered.key_included.retain(|included| *included != number);
                altered.primary_key.iter_mut().for_each(|key| *key -= usize::from(*key > index));
            }
            TableChange::RenameColumn { from, to } => {
                let index = self.column_index(from)?;
                altered.columns[index].name.clone_from(to);
            }
            TableChange::SetColumn { name, nullable, default } => {
                let index = self.column_index(name)?;
                altered.columns[index].nullable = *nullable;
                altered.set_default(index, default, self, &mut history)?;
            }
            TableChange::SetAlwaysGenerated { name, is_always } => {
                altered.columns[self.column_index(name)?].is_always_generated = *is_always;
            }
            TableChange::AddCheck(check) => altered.checks.push(check.clone()),
            TableChange::ValidateCheck { name } => {
                let index = self.check_index(name)?;
                altered.checks[index].is_validated = true;
            }
            TableChange::DropCheck { name } => {
                altered.checks.remove(self.check_index(name)?);
                let domains = altered.domain.iter_mut();
                domains.for_each(|domain| domain.unvalidated.retain(|it| it != name));
            }
            TableChange::RenameCheck { from, to } => {
                let index = self.check_index(from)?;
                altered.checks[index].name.clone_from(to);
                let unvalidated = altered.domain.iter_mut().flat_map(|it| &mut it.unvalidated);
                unvalidated.filter(|it| *it == from).for_each(|it| it.clone_from(to));
            }
            TableChange::RenameKey { to } => altered.key_name = Some(to.clone()),
            TableChange::SetSequence(sequence) => altered.sequence = Some(sequence.clone()),
            TableChange::SetView(view) => altered.view = Some(view.clone()),
            TableChange::SetLabels(labels) => altered.labels = Some(labels.clone()),
            TableChange::SetLabelsOfColumns(of) => altered.set_labels(*of, &mut history),
            TableChange::SetCompositeOfColumns(of) => altered.set_composite(*of),
            TableChange::SetDomain(domain) => altered.domain = Some(domain.clone()),
            TableChange::SetDomainOfColumns(columns) => {
                for ColumnInDomain { name, domain, rules, default } in columns {
                    let index = self.column_index(name)?;
                    let number = history.columns[index].number;
                    altered.columns[index].domain.clone_from(domain);
                    altered.rules.retain(|rule| rule.column != number);
                    altered.rules.extend(rules.iter().cloned());
                    if let Some(default) = default {
                        altered.set_default(index, default, self, &mut history)?;
                    }
                }
            }
            TableChange::SetAppendsOnly(appends_only) => altered.appends_only = *appends_only,
            TableChange::Rename { to } => altered.name.clone_from(to),
        }
        altered.history = Some(Arc::new(history));
        altered.checked()
    }

    /// Gives a column another default. Rows keep no default, so those of the version `before` are read by the column
    /// as it was.
    fn set_default(
        &mut self,
        index: usize,
        default: &DefaultValue,
        before: &TableDefinition,
        history: &mut History,
    ) -> Result<(), TypeError> {
        self.columns[index].default = default.clone();
        self.columns[index].is_always_generated &= default.is_computed();
        self.check_columns()?;
        // How a key column is stored depends neither on its default nor on whether it may be NULL.
        if self.primary_key.contains(&index) {
            return Ok(());
        }
        let Since { number, version, .. } = history.columns[index];
        history.columns[index].version = self.version;
        let (column, versions) = (before.columns[index].clone(), (version, self.version));
        history.drop_column(Dropped { number, column, versions });
        if history.columns.len() + history.dropped.len() > COLUMNS_MAX {
            return Err(before.used_up("columns, those dropped or changed included"));
        }
        Ok(())
    }

    /// Gives the columns of a type of labels those that it has now. The codes in rows stay what they are.
    fn set_labels(&mut self, of: EnumType, history: &mut History) {
        for (column, since) in self.columns.iter_mut().zip(&mut history.columns) {
            let DataType::Enum(before) = column.data_type else { continue };
            if before.id() != of.id() {
                continue;
            }
            column.data_type = DataType::Enum(of);
            let as_now = |value: &mut Value<'static>| {
                let code = value.as_str().and_then(|label| before.code(label));
                if let Some(label) = code.and_then(|code| of.label(code)) {
                    *value = label.into();
                }
            };
            as_now(&mut since.missing);
            if let DefaultValue::Constant(value) = &mut column.default {
                as_now(value);
            }
        }
    }

    /// Gives the columns of a composite type what that is now. The records in rows stay what they are.
    fn set_composite(&mut self, of: CompositeType) {
        for column in &mut self.columns {
            if matches!(column.data_type, DataType::Composite(before) if before.id() == of.id()) {
                column.data_type = DataType::Composite(of);
            }
        }
    }

    /// The same definition as the next version, and its past.
    fn next_version(&self) -> Result<(TableDefinition, History), TypeError> {
        let mut next = self.clone();
        if self.version == VERSION_MAX {
            return Err(self.used_up("versions"));
        }
        next.version = self.version + 1;
        let history = self.history().cloned().unwrap_or_else(|| History::first_of(self));
        Ok((next, history))
    }

    /// The same definition as the next version: who writes by the one before is refused.
    ///
    /// # Errors
    /// A table that was changed 32,767 times.
    pub fn as_next_version(&self) -> Result<TableDefinition, TypeError> {
        let (mut next, history) = self.next_version()?;
        next.history = Some(Arc::new(history));
        Ok(next)
    }

    /// The same definition as a later version, of which there are no rows: the next change makes one that is
    /// later still.
    #[must_use]
    pub fn raised_to(mut self, version: u16) -> TableDefinition {
        if version > self.version {
            let history = self.history.take();
            self.history = Some(history.unwrap_or_else(|| Arc::new(History::first_of(&self))));
            self.version = version;
        }
        self
    }

    /// The past of a table that was altered.
    pub fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }

    /// The version that the table was created with; rows of it may still be there.
    pub fn first_version(&self) -> u16 {
        self.history().map_or(self.version, |history| history.first_version)
    }

    /// The number of a column, which it keeps whatever is added or dropped.
    pub fn column_number(&self, column: usize) -> usize {
        let since = self.history().and_then(|history| history.columns.get(column));
        since.map_or(column, |since| usize::from(since.number))
    }

    /// The table as it was from `version` on, with where each of today's columns stood then.
    pub(super) fn as_of(&self, version: u16) -> Option<(TableDefinition, Vec<Source>)> {
        let history = self.history()?;
        let live = self
            .columns
            .iter()
            .zip(&history.columns)
            .map(|(column, since)| (since.number, column, (since.version, u16::MAX)));
        let gone = history.dropped.iter().map(|gone| (gone.number, &gone.column, gone.versions));
        let mut then: Vec<_> = live
            .chain(gone)
            .filter(|(_, _, (since, until))| *since <= version && version < *until)
            .collect();
        then.sort_by_key(|(number, ..)| *number);
        let at = |number: u16| then.iter().position(|(other, ..)| *other == number);
        let source = |since: &Since| match at(since.number) {
            Some(index) => Source::Column(index),
            None => Source::Missing(since.missing.clone()),
        };
        let sources = history.columns.iter().map(source).collect();
        let key = |key: &usize| at(history.columns[*key].number);
        let definition = TableDefinition {
            name: self.name.clone(),
            version,
            primary_key: self.primary_key.iter().map(key).collect::<Option<_>>()?,
            columns: then.iter().map(|(_, column, _)| (*column).clone()).collect(),
            key_name: self.key_name.clone(),
            key_included: Vec::new(),
            logged: self.logged,
            appends_only: self.appends_only,
            // Rows of then are read by it, never written.
            checks: Vec::new(),
            indexes: Vec::new(),
            entries_of: self.entries_of.clone(),
            long_values: self.long_values,
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            sequence: self.sequence.clone(),
            view: self.view.clone(),
            labels: self.labels.clone(),
            is_composite: self.is_composite,
            domain: self.domain.clone(),
            rules: Vec::new(),
            history: None,
        };
        Some((definition, sources))
    }

    /// The versions at which the columns changed, from the first of all on; the newest is not among
    /// them.
    pub(super) fn earlier_versions(&self) -> Vec<u16> {
        let Some(history) = self.history() else { return Vec::new() };
        let added = history.columns.iter().map(|since| since.version);
        let dropped = history.dropped.iter().flat_map(|gone| [gone.versions.0, gone.versions.1]);
        let mut versions: Vec<u16> = [history.first_version]
            .into_iter()
            .chain(added)
            .chain(dropped)
            .filter(|version| *version < self.version)
            .collect();
        versions.sort_unstable();
        versions.dedup();
        versions
    }

    fn used_up(&self, what: &'static str) -> TypeError {
        TypeError::AlteredTooOften { table: self.name().into(), what }
    }
}

impl History {
    fn first_of(definition: &TableDefinition) -> History {
        let first_version = definition.version();
        let since = |number: usize| Since {
            // There are at most 1,024.
            number: number as u16,
            version: first_version,
            missing: Value::Null,
        };
        let columns = (0..definition.columns().len()).map(since).collect();
        History { first_version, columns, dropped: Vec::new() }
    }

    fn drop_column(&mut self, mut dropped: Dropped) {
        // Nobody writes to it any more.
        dropped.column.domain = None;
        self.dropped.push(dropped);
        self.dropped.sort_by_key(|dropped| (dropped.number, dropped.versions));
    }

    fn next_number(&self) -> u16 {
        let live = self.columns.iter().map(|since| since.number);
        let gone = self.dropped.iter().map(|gone| gone.number);
        live.chain(gone).max().map_or(0, |number| number + 1)
    }

    fn numbers_gone(&self) -> Vec<u16> {
        self.dropped.iter().map(|gone| gone.number).collect()
    }

    /// Whether no version has two columns of one number, and what is gone stands in its order.
    fn is_one_at_a_time(&self) -> bool {
        let follows = |pair: &[Dropped]| {
            let (before, after) = (&pair[0], &pair[1]);
            before.number < after.number
                || before.number == after.number && before.versions.1 <= after.versions.0
        };
        let is_before_live = |gone: &Dropped| {
            let mut live = self.columns.iter().filter(|since| since.number == gone.number);
            live.all(|since| gone.versions.1 <= since.version)
        };
        self.dropped.windows(2).all(follows) && self.dropped.iter().all(is_before_live)
    }

    /// Why it is not the past of `definition`.
    pub(super) fn fault(&self, definition: &TableDefinition) -> Option<&'static str> {
        let (first, newest) = (self.first_version, definition.version());
        if first >= newest || self.columns.len() != definition.columns().len() {
            return Some("its history is of another table");
        }
        let since_in_range = |since: &Since| (first..=newest).contains(&since.version);
        let in_range = |gone: &Dropped| {
            first <= gone.versions.0
                && gone.versions.0 < gone.versions.1
                && gone.versions.1 <= newest
        };
        if !self.columns.iter().all(since_in_range) || !self.dropped.iter().all(in_range) {
            return Some("a column is of a version that there was not");
        }
        let ascends = |numbers: &[u16]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
        let live: Vec<u16> = self.columns.iter().map(|since| since.number).collect();
        let mut all = [live.as_slice(), &self.numbers_gone()].concat();
        all.sort_unstable();
        all.dedup();
        let none_left_out = all.iter().enumerate().all(|(at, number)| at == usize::from(*number));
        let forms = self.columns.len() + self.dropped.len();
        if !ascends(&live) || !self.is_one_at_a_time() || !none_left_out || forms > COLUMNS_MAX {
            return Some("the numbers of its columns are not each there once");
        }
        let is_first = |key: &usize| self.columns[*key].version == first;
        (!definition.primary_key().iter().all(is_first)).then_some("a key column was added later")
    }
}

/// What the rows that there are hold in a column that is added.
fn missing_value(column: &ColumnDefinition, unix_micros: i64) -> Value<'static> {
    match &column.default {
        DefaultValue::Constant(value) => value.clone(),
        DefaultValue::Now => column.data_type.timestamp(unix_micros).unwrap_or(Value::Null),
        DefaultValue::None
        | DefaultValue::Key(_)
        | DefaultValue::Expression(_)
        | DefaultValue::Generated(_) => Value::Null,
    }
}

/// Where a column of today is found in a row of an earlier version.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// At this position among the columns then.
    Column(usize),
    /// Nowhere: it holds this.
    Missing(Value<'static>),
}

/// The rows of earlier versions with the same columns.
#[derive(Debug, Clone)]
pub(crate) struct Earlier {
    /// The versions: from the first on, and before the second.
    pub(crate) versions: (u16, u16),
    pub(crate) schema: Schema,
    /// For each column of today.
    pub(crate) sources: Box<[Source]>,
}

impl Earlier {
    /// All of a definition, oldest first.
    ///
    /// # Errors
    /// A version whose columns never fitted.
    pub(crate) fn all_of(definition: &TableDefinition) -> Result<Box<[Earlier]>, TypeError> {
        let versions = definition.earlier_versions();
        let until = versions.iter().skip(1).copied().chain([definition.version()]);
        let mut all = Vec::with_capacity(versions.len());
        for (from, until) in versions.iter().copied().zip(until) {
            let Some((then, sources)) = definition.as_of(from) else {
                let reason = "a key column was added later";
                return Err(TypeError::DefinitionDamaged { at: 0, reason });
            };
            let schema = Schema::new(Arc::new(then))?;
            all.push(Earlier { versions: (from, until), schema, sources: sources.into() });
        }
        Ok(all.into())
    }

    pub(crate) fn has(&self, version: u16) -> bool {
        (self.versions.0..self.versions.1).contains(&version)
    }
}
