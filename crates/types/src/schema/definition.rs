//! A table as declared, and the checks that make the declaration sound.

use std::sync::Arc;

use super::RowExpression;
use super::domain::{DomainDefinition, DomainRule};
use super::foreign_key::ForeignKey;
use super::history::History;
use super::index::{EntriesOf, IndexDefinition};
use super::sequence::SequenceDefinition;
use super::view::ViewDefinition;
use super::{CHECK_BYTES_MAX, CheckConstraint, ColumnDefinition, DefaultValue, Schema};
use crate::convert::{self, Fault};
use crate::expression::{Expression, PreparedDefault};
use crate::{ColumnName, DataType, EnumLabels, KeyStrategy, TypeError};

/// Most columns of a table.
pub const COLUMNS_MAX: usize = 1024;
/// Longest table or column name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The key column of a table that was made [without a key](TableBuilder::keyed_by_row_id).
pub const ROW_ID: &str = "onrush_row_id";

/// A sound table definition: made by [`TableBuilder::build`] or read from the catalogue.
///
/// Invariants
/// 1. Column names differ; every key column exists, once, and is NOT NULL, but in the entries of an index.
/// 2. Constant defaults are of their column's exact type and fit it.
/// 3. A row of defaults fits [`crate::ROW_BYTES_MAX`].
/// 4. Names of checks differ, and the columns that they look at exist; so do those of indexes and of foreign keys.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    pub(super) name: String,
    pub(super) version: u16,
    pub(super) columns: Vec<ColumnDefinition>,
    pub(super) primary_key: Vec<usize>,
    pub(super) key_name: Option<String>,
    /// Numbers of columns that the constraint of the key names besides.
    pub(super) key_included: Vec<u16>,
    pub(super) logged: bool,
    /// Whether rows stay as they were inserted.
    pub(super) appends_only: bool,
    pub(super) checks: Vec<CheckConstraint>,
    pub(super) indexes: Vec<IndexDefinition>,
    pub(super) entries_of: Option<EntriesOf>,
    /// The table of its rows' long values.
    pub(super) long_values: Option<u32>,
    pub(super) foreign_keys: Vec<ForeignKey>,
    pub(super) referenced_by: Vec<u32>,
    /// Of a table that is a sequence.
    pub(super) sequence: Option<SequenceDefinition>,
    /// Of a table that is a view.
    pub(super) view: Option<ViewDefinition>,
    /// Of a table that is a type of labels.
    pub(super) labels: Option<EnumLabels>,
    /// Whether the table is a composite type.
    pub(super) is_composite: bool,
    /// Of a table that is a domain.
    pub(super) domain: Option<DomainDefinition>,
    /// The conditions of the domains that columns are of, in the order in which they are looked at.
    pub(super) rules: Vec<DomainRule>,
    /// None for a table that was never altered.
    pub(super) history: Option<Arc<History>>,
}

/// Collects a table's columns and key; [`TableBuilder::build`] checks them.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    name: String,
    version: u16,
    columns: Vec<ColumnDefinition>,
    primary_key: Vec<String>,
    key_name: Option<String>,
    key_included: Vec<String>,
    logged: bool,
    checks: Vec<CheckConstraint>,
    conditions: Vec<(String, Expression)>,
    pub(super) entries_of: Option<EntriesOf>,
    pub(super) sequence: Option<SequenceDefinition>,
    pub(super) view: Option<ViewDefinition>,
    pub(super) labels: Option<EnumLabels>,
    is_composite: bool,
    pub(super) domain: Option<DomainDefinition>,
}

impl TableDefinition {
    /// Starts a definition.
    pub fn builder(name: impl Into<String>) -> TableBuilder {
        TableBuilder {
            name: name.into(),
            version: 1,
            columns: Vec::new(),
            primary_key: Vec::new(),
            key_name: None,
            key_included: Vec::new(),
            logged: true,
            checks: Vec::new(),
            conditions: Vec::new(),
            entries_of: None,
            sequence: None,
            view: None,
            labels: None,
            is_composite: false,
            domain: None,
        }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the definition, written into every row; it rises when the table is altered.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// All columns, in declared order.
    pub fn columns(&self) -> &[ColumnDefinition] {
        &self.columns
    }

    /// Positions in [`TableDefinition::columns`] of the key columns, in key order.
    pub fn primary_key(&self) -> &[usize] {
        &self.primary_key
    }

    /// The name of the primary key, for messages; none where nobody gave it one.
    pub fn key_name(&self) -> Option<&str> {
        self.key_name.as_deref()
    }

    /// The numbers of columns that the constraint of the primary key includes besides: they mean nothing to the engine,
    /// whose rows stand by their keys.
    pub fn key_included(&self) -> &[u16] {
        &self.key_included
    }

    /// The position of the column that only tells rows apart, in a table made
    /// [without a key](TableBuilder::keyed_by_row_id). SQL does not show it.
    pub fn row_id(&self) -> Option<usize> {
        match self.primary_key.as_slice() {
            [key] if self.columns[*key].name == ROW_ID => Some(*key),
            _ => None,
        }
    }

    /// Positions of the columns that SQL shows: all but [`row_id`](Self::row_id).
    pub fn shown_columns(&self) -> impl Iterator<Item = usize> {
        let row_id = self.row_id();
        (0..self.columns.len()).filter(move |column| Some(*column) != row_id)
    }

    /// The position of a column that SQL shows.
    ///
    /// # Errors
    /// [`TypeError::UnknownColumn`], naming the columns there are.
    pub fn shown_column_index(&self, name: &str) -> Result<usize, TypeError> {
        match self.column_index(name) {
            Ok(found) if Some(found) != self.row_id() => Ok(found),
            _ => {
                let known = self.shown_columns().map(|column| self.columns[column].name.as_str());
                Err(unknown_column(&self.name, known, name))
            }
        }
    }

    /// Whether it references another table, or may be referenced.
    pub fn is_linked(&self) -> bool {
        !self.foreign_keys.is_empty() || !self.referenced_by.is_empty()
    }

    /// Whether the log takes the rows. Else the table is empty whenever its database is opened.
    pub fn is_logged(&self) -> bool {
        self.logged
    }

    /// Whether rows are inserted only: none is changed or deleted.
    pub fn appends_only(&self) -> bool {
        self.appends_only
    }

    /// The position of a column.
    ///
    /// # Errors
    /// [`TypeError::UnknownColumn`], naming the columns there are.
    pub fn column_index(&self, name: &str) -> Result<usize, TypeError> {
        find_column(&self.name, &self.columns, name)
    }

    /// The full name of a column, for messages. Past the last column the name is `?`.
    pub fn column_name(&self, column: usize) -> ColumnName {
        ColumnName::new(&self.name, self.columns.get(column).map_or("?", |found| &found.name))
    }

    /// What makes the table a type of labels; none for one that is not.
    pub fn labels(&self) -> Option<&EnumLabels> {
        self.labels.as_ref()
    }

    /// Whether the table is a composite type, whose fields are its columns.
    pub fn is_composite(&self) -> bool {
        self.is_composite
    }

    /// The same definition with a column that is computed of others.
    ///
    /// # Errors
    /// No such column; one of the primary key; a value that the column's type does not take.
    pub fn with_generated(
        mut self,
        name: &str,
        generated: RowExpression,
    ) -> Result<TableDefinition, TypeError> {
        let index = self.column_index(name)?;
        self.columns[index].default = DefaultValue::Generated(generated);
        self.columns[index].is_always_generated = true;
        self.checked()
    }

    /// The same definition under another name (for `RENAME`).
    ///
    /// # Errors
    /// [`TypeError::BadName`].
    pub fn renamed(mut self, name: impl Into<String>) -> Result<TableDefinition, TypeError> {
        self.name = name.into();
        check_name(&self.name)?;
        Ok(self)
    }

    /// The same table under another name and with other names for all its columns, as a view has them.
    ///
    /// # Errors
    /// [`TypeError::BadName`]; two columns of one name.
    pub fn called(&self, name: &str, columns: Vec<String>) -> Result<TableDefinition, TypeError> {
        let mut called = self.clone().renamed(name)?;
        for (column, name) in called.columns.iter_mut().zip(columns) {
            column.name = name;
        }
        called.checked()
    }

    /// The same checks as for a new table, for one made of parts.
    pub(super) fn checked(mut self) -> Result<TableDefinition, TypeError> {
        self.check_columns()?;
        self.check_key()?;
        if let Some(reason) = self.history.as_ref().and_then(|history| history.fault(&self)) {
            return Err(TypeError::DefinitionDamaged { at: 0, reason });
        }
        self.check_checks()?;
        self.check_generated()?;
        self.check_indexes()?;
        self.check_foreign_keys()?;
        self.check_sequence()?;
        self.check_view()?;
        self.check_domains()?;
        // Compiling lays out the row of defaults, which checks the sizes.
        Schema::new(Arc::new(self.clone()))?;
        Ok(self)
    }

    pub(super) fn check_columns(&mut self) -> Result<(), TypeError> {
        check_name(&self.name)?;
        self.key_name.as_deref().map_or(Ok(()), check_name)?;
        if self.columns.is_empty() || self.columns.len() > COLUMNS_MAX {
            return Err(TypeError::ColumnCount {
                table: self.name.as_str().into(),
                count: self.columns.len(),
                limit: COLUMNS_MAX,
            });
        }
        let mut seen = std::collections::HashSet::new();
        for column in &mut self.columns {
            check_name(&column.name)?;
            let name = ColumnName::new(&self.name, &column.name);
            if !seen.insert(column.name.clone()) {
                return Err(TypeError::DuplicateColumn(name));
            }
            if let Some(reason) = column.data_type.fault() {
                let data_type = column.data_type;
                return Err(TypeError::BadDataType { column: name, data_type, reason });
            }
            check_default(name, column)?;
        }
        Ok(())
    }

    fn check_key(&mut self) -> Result<(), TypeError> {
        if self.primary_key.is_empty() {
            return Err(TypeError::NoPrimaryKey { table: self.name.as_str().into() });
        }
        for (position, &column) in self.primary_key.iter().enumerate() {
            if self.primary_key[..position].contains(&column) {
                return Err(TypeError::DuplicateKeyColumn(self.column_name(column)));
            }
            let data_type = self.columns[column].data_type;
            if !data_type.is_ordered() {
                return Err(TypeError::NoOrder { column: self.column_name(column), data_type });
            }
            let is_ordered = self.key_order(position).is_some();
            if !is_ordered && self.columns[column].data_type == DataType::Numeric(None) {
                return Err(TypeError::KeyWithoutScale(self.column_name(column)));
            }
            let found = &mut self.columns[column];
            if is_ordered {
                continue;
            }
            found.nullable = false;
            if matches!(&found.default, DefaultValue::Constant(value) if value.is_null()) {
                return Err(TypeError::NullValue(self.column_name(column)));
            }
        }
        Ok(())
    }
}

impl TableBuilder {
    /// Adds a column.
    pub fn column(mut self, column: ColumnDefinition) -> TableBuilder {
        self.columns.push(column);
        self
    }

    /// Names the key columns, in key order. They become NOT NULL.
    pub fn primary_key<I>(mut self, columns: I) -> TableBuilder
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Gives the primary key a name.
    pub fn key_name(mut self, name: impl Into<String>) -> TableBuilder {
        self.key_name = Some(name.into());
        self
    }

    /// Names columns that the constraint of the primary key [includes](TableDefinition::key_included).
    #[must_use]
    pub fn key_included<I>(mut self, columns: I) -> TableBuilder
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.key_included = columns.into_iter().map(Into::into).collect();
        self
    }

    /// For a table without a key of its own: adds [`ROW_ID`], an identity that tells its rows apart
    /// and keeps them in the order of insertion.
    pub fn keyed_by_row_id(self) -> TableBuilder {
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        let row_id = ColumnDefinition::new(ROW_ID, DataType::Int64);
        self.column(row_id.not_null().default_key(identity)).primary_key([ROW_ID])
    }

    /// Makes the table a type of labels. It has no rows, and the key of a table [without one](Self::keyed_by_row_id).
    pub fn labels(mut self, labels: EnumLabels) -> TableBuilder {
        self.labels = Some(labels);
        self.keyed_by_row_id()
    }

    /// Makes the table a composite type, whose fields are its columns. It has no rows, and the key of a table
    /// [without one](Self::keyed_by_row_id).
    #[must_use]
    pub fn composite(mut self) -> TableBuilder {
        self.is_composite = true;
        self.keyed_by_row_id()
    }

    /// Sets the version of the definition; 1 unless set.
    pub fn version(mut self, version: u16) -> TableBuilder {
        self.version = version;
        self
    }

    /// Keeps the rows out of the log: they cost no log and no sync, and are gone whenever the
    /// database is opened again.
    pub fn unlogged(mut self) -> TableBuilder {
        self.logged = false;
        self
    }

    /// Adds a condition that every row must meet: that it is not false.
    pub fn check(mut self, name: impl Into<String>, condition: Expression) -> TableBuilder {
        self.conditions.push((name.into(), condition));
        self
    }

    /// Adds a condition as another table has it, whose columns have the same numbers.
    pub fn check_constraint(mut self, check: CheckConstraint) -> TableBuilder {
        self.checks.push(check);
        self
    }

    /// Checks everything and makes the definition.
    ///
    /// # Errors
    /// The first fault found; each names the table and the column.
    pub fn build(self) -> Result<TableDefinition, TypeError> {
        let primary_key = self
            .primary_key
            .iter()
            .map(|name| find_column(&self.name, &self.columns, name))
            .collect::<Result<Vec<_>, _>>()?;
        let key_included = self
            .key_included
            .iter()
            // There are at most 1,024 columns.
            .map(|name| Ok(find_column(&self.name, &self.columns, name)? as u16))
            .collect::<Result<Vec<_>, _>>()?;
        let TableBuilder {
            name,
            version,
            columns,
            key_name,
            logged,
            checks,
            conditions,
            entries_of,
            sequence,
            view,
            labels,
            is_composite,
            domain,
            ..
        } = self;
        let mut table = TableDefinition {
            name,
            version,
            columns,
            primary_key,
            key_name,
            key_included,
            logged,
            appends_only: false,
            checks,
            indexes: Vec::new(),
            entries_of,
            long_values: None,
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            sequence,
            view,
            labels,
            is_composite,
            domain,
            rules: Vec::new(),
            history: None,
        };
        for (name, condition) in &conditions {
            table.checks.push(CheckConstraint::new(name, condition, &table)?);
        }
        table.checked()
    }
}

fn find_column(table: &str, columns: &[ColumnDefinition], name: &str) -> Result<usize, TypeError> {
    columns.iter().position(|column| column.name == name).ok_or_else(|| {
        unknown_column(table, columns.iter().map(|column| column.name.as_str()), name)
    })
}

fn unknown_column<'c>(table: &str, known: impl Iterator<Item = &'c str>, name: &str) -> TypeError {
    let known = known.collect::<Vec<_>>().join(", ").into();
    TypeError::UnknownColumn { name: ColumnName::new(table, name), known }
}

pub(super) fn check_name(name: &str) -> Result<(), TypeError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_BYTES_MAX {
        "it is longer than 128 bytes"
    } else if name.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(TypeError::BadName { name: name.into(), reason })
}

/// Also brings a constant into the column's exact type, so that it need not be converted per row.
fn check_default(name: ColumnName, column: &mut ColumnDefinition) -> Result<(), TypeError> {
    let data_type = column.data_type;
    let bad = |name, reason: &str| TypeError::BadDefault {
        column: name,
        data_type,
        reason: reason.into(),
    };
    match &mut column.default {
        DefaultValue::None => Ok(()),
        DefaultValue::Constant(value) if value.is_null() => {
            if column.nullable {
                Ok(())
            } else {
                Err(TypeError::NullValue(name))
            }
        }
        DefaultValue::Constant(value) => match convert::to_type(data_type, value) {
            Ok(converted) => {
                *value = converted;
                Ok(())
            }
            Err(Fault::WrongType) => {
                let reason = format!("it is {}, not {data_type}", value.kind());
                Err(bad(name, &reason))
            }
            Err(Fault::OutOfRange(reason)) => Err(bad(name, &reason)),
        },
        DefaultValue::Now => match data_type.unrounded() {
            DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => Ok(()),
            _ => Err(bad(name, "now needs date, time, timestamp or timestamptz")),
        },
        DefaultValue::Key(strategy) => strategy.check(data_type, name),
        DefaultValue::Expression(computed) if computed.expression.len() > CHECK_BYTES_MAX => {
            let reason = format!(
                "the expression has {} bytes, at most {CHECK_BYTES_MAX} are allowed",
                computed.expression.len()
            );
            Err(bad(name, &reason))
        }
        DefaultValue::Expression(computed) => match &computed.form {
            Some(form) => match PreparedDefault::new(form, data_type) {
                Ok(_) => Ok(()),
                Err(_) => Err(bad(name, "the expression is of another type; write a cast")),
            },
            None => Ok(()),
        },
        // Looked at where the table is known.
        DefaultValue::Generated(_) => Ok(()),
    }
}
