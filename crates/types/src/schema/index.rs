//! Secondary indexes as definitions keep them. An index is a table of its own, the *entries*: one for each row of
//! its table, whose key is the indexed columns and then whatever tells rows with the same ones apart.
//!
//! | index | key of an entry | stored beside the key |
//! |---|---|---|
//! | not unique | indexed columns, the table's primary key | included columns |
//! | unique | indexed columns, [`TIE`] | the table's primary key, included columns |
//!
//! A column stands in an entry once: a part of the primary key that is indexed is not repeated. The tie of a
//! unique index is NULL; where an indexed column is NULL, and NULL differs from NULL, it is the bytes of the
//! row's primary key. In the place of an indexed column may stand an expression over the row. A partial index has
//! entries only for rows that meet its predicate.
//!
//! Invariants
//! 1. An index names columns of its table by their numbers, which they keep whatever is added, dropped or renamed.
//! 2. Both sides know each other: the table lists its indexes, the entries name their table.

use super::definition::check_name;
use super::{CHECK_BYTES_MAX, ColumnDefinition, RowExpression, TableBuilder, TableDefinition};
use crate::expression::PreparedExpression;
use crate::{DataType, TypeError};

/// Most columns of an index.
pub const INDEX_COLUMNS_MAX: usize = 32;

/// The key column of a unique index that tells entries apart in which NULL stands.
pub const TIE: &str = "onrush_tie";

/// Whether two rows may have the same indexed columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// They may.
    NotUnique,
    /// Only where one of the columns is NULL.
    NullsDistinct,
    /// Never: NULL equals NULL.
    NullsEqual,
}

/// Of an index of a UNIQUE constraint that is DEFERRABLE: rows may have the same indexed columns for a while. Its
/// entries are those of an index that is not unique, and who changes rows looks at them at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferrableUnique {
    /// Whether they may until the transaction commits, where nobody says otherwise; else until the statement ends.
    pub is_deferred: bool,
    /// Whether NULL equals NULL.
    pub nulls_equal: bool,
}

/// How values of a key column are ordered, where NULL is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOrder {
    /// The largest come first.
    pub descending: bool,
    /// NULL comes before any value; else behind all.
    pub nulls_first: bool,
}

/// An indexed column, or an expression in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedColumn {
    /// What is indexed.
    pub of: Indexed,
    /// Its order.
    pub order: KeyOrder,
}

/// What an index is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexed {
    /// The column of this number; see [`TableDefinition::column_number`].
    Column(u16),
    /// The expression at this position among those of the index.
    Expression(u16),
}

/// An expression that an index is ordered by.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedExpression {
    /// What is computed of a row.
    pub of: RowExpression,
    /// The type of what that comes to.
    pub data_type: DataType,
}

/// A secondary index of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDefinition {
    /// Its name, among the names of tables.
    pub name: String,
    /// The number of the table of its entries.
    pub entries: u32,
    /// In their order; at least one.
    pub columns: Vec<IndexedColumn>,
    /// Expressions that are indexed.
    pub expressions: Vec<IndexedExpression>,
    /// Which rows have entries; none: all.
    pub predicate: Option<RowExpression>,
    /// Numbers of columns that entries carry without being ordered by them.
    pub included: Vec<u16>,
    /// Whether rows may have the same indexed columns.
    pub uniqueness: Uniqueness,
    /// Whether they may only for a while, though it is not unique.
    pub deferrable: Option<DeferrableUnique>,
    /// Whether it was made for a UNIQUE constraint, by which it is dropped.
    pub is_constraint: bool,
    /// Whether rows may still lack their entries: who writes rows keeps its entries, and nobody finds rows by it.
    pub is_building: bool,
}

/// What makes a table the entries of an index, or the [long values](super::long_values) of rows: then there are no
/// orders.
#[derive(Debug, Clone, PartialEq)]
pub struct EntriesOf {
    /// The number of the table whose rows are indexed.
    pub table: u32,
    /// How the first key columns are ordered; the others are never NULL and ascend.
    pub orders: Vec<KeyOrder>,
}

/// Where a column of an entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntrySource {
    /// The position of a column of the table.
    Column(usize),
    /// The position of an expression of the index.
    Expression(usize),
    /// It is the [`TIE`].
    Tie,
}

impl KeyOrder {
    /// As it is unless said otherwise: ascending, NULL behind all values.
    pub const ASCENDING: KeyOrder = KeyOrder { descending: false, nulls_first: false };
}

impl IndexDefinition {
    /// Where the columns of its entries come from, in their order.
    ///
    /// # Errors
    /// A column that the table does not have.
    pub fn sources(&self, table: &TableDefinition) -> Result<Vec<EntrySource>, TypeError> {
        let position = |number: u16| {
            let damaged = TypeError::DefinitionDamaged {
                at: 0,
                reason: "an index has a column that does not exist",
            };
            table.column_with_number(number).map(EntrySource::Column).ok_or(damaged)
        };
        let mut sources = Vec::new();
        for column in &self.columns {
            sources.push(match column.of {
                Indexed::Column(number) => position(number)?,
                Indexed::Expression(at) if usize::from(at) < self.expressions.len() => {
                    EntrySource::Expression(usize::from(at))
                }
                Indexed::Expression(_) => {
                    let reason = "an index has an expression that does not exist";
                    return Err(TypeError::DefinitionDamaged { at: 0, reason });
                }
            });
        }
        if self.uniqueness == Uniqueness::NullsDistinct {
            sources.push(EntrySource::Tie);
        }
        let key = table.primary_key().iter().map(|column| Ok(EntrySource::Column(*column)));
        for source in key.chain(self.included.iter().map(|number| position(*number))) {
            let source = source?;
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        Ok(sources)
    }

    /// The definition of the table of its entries.
    ///
    /// # Errors
    /// Columns that the table does not have, that stand there twice or that have no order; too many.
    pub fn entries_definition(
        &self,
        table: &TableDefinition,
        table_id: u32,
    ) -> Result<TableDefinition, TypeError> {
        self.check(table)?;
        let sources = self.sources(table)?;
        let mut builder = TableDefinition::builder(&self.name);
        let mut names = Vec::new();
        for source in &sources {
            let column = match source {
                EntrySource::Tie => ColumnDefinition::new(TIE, DataType::Bytes),
                EntrySource::Expression(at) => {
                    let name = format!("onrush_expression_{at}");
                    ColumnDefinition::new(name, self.expressions[*at].data_type)
                }
                EntrySource::Column(position) => {
                    let of_table = &table.columns()[*position];
                    let column = ColumnDefinition::new(&of_table.name, of_table.data_type);
                    let is_key = table.primary_key().contains(position);
                    if is_key { column.not_null() } else { column }
                }
            };
            names.push(column.name.clone());
            builder = builder.column(column);
        }
        // Everything behind the key of a unique index is stored beside it.
        let key_columns = match self.uniqueness {
            Uniqueness::NotUnique => sources.len() - self.only_included(table),
            Uniqueness::NullsDistinct => self.columns.len() + 1,
            Uniqueness::NullsEqual => self.columns.len(),
        };
        names.truncate(key_columns);
        let mut orders: Vec<KeyOrder> = self.columns.iter().map(|column| column.order).collect();
        if self.uniqueness == Uniqueness::NullsDistinct {
            orders.push(KeyOrder::ASCENDING);
        }
        builder = if table.is_logged() { builder } else { builder.unlogged() };
        builder.primary_key(names).entries_of(EntriesOf { table: table_id, orders }).build()
    }

    /// Columns of an entry that are neither indexed nor in the primary key.
    fn only_included(&self, table: &TableDefinition) -> usize {
        let is_indexed =
            |number: &u16| self.columns.iter().any(|it| it.of == Indexed::Column(*number));
        let is_key = |number: &u16| {
            let position = table.column_with_number(*number);
            position.is_some_and(|position| table.primary_key().contains(&position))
        };
        self.included.iter().filter(|number| !is_indexed(number) && !is_key(number)).count()
    }

    pub(super) fn check(&self, table: &TableDefinition) -> Result<(), TypeError> {
        check_name(&self.name)?;
        let count = self.columns.len() + self.included.len();
        if self.columns.is_empty() || count > INDEX_COLUMNS_MAX {
            let (index, limit) = (self.name.as_str().into(), INDEX_COLUMNS_MAX);
            return Err(TypeError::IndexColumnCount { index, count, limit });
        }
        for (position, column) in self.columns.iter().enumerate() {
            let Indexed::Column(number) = column.of else { continue };
            let found = table.column_with_number(number);
            let Some(found) = found else { continue };
            if self.columns[..position].iter().any(|other| other.of == column.of) {
                return Err(TypeError::DuplicateKeyColumn(table.column_name(found)));
            }
            let data_type = table.columns()[found].data_type;
            if !data_type.is_ordered() {
                return Err(TypeError::NoOrder { column: table.column_name(found), data_type });
            }
        }
        if self.deferrable.is_some()
            && (self.uniqueness != Uniqueness::NotUnique || !self.is_constraint)
        {
            let reason = "an index is deferrable that is unique at once, or of no constraint";
            return Err(TypeError::DefinitionDamaged { at: 0, reason });
        }
        self.check_expressions(table)?;
        self.sources(table).map(drop)
    }

    fn check_expressions(&self, table: &TableDefinition) -> Result<(), TypeError> {
        let damaged = |reason| TypeError::DefinitionDamaged { at: 0, reason };
        let is_sound =
            |of: &RowExpression| of.expression.len() <= CHECK_BYTES_MAX && of.suits(table);
        for IndexedExpression { of, data_type } in &self.expressions {
            if !is_sound(of) {
                return Err(damaged("an index has an expression that does not suit its table"));
            }
            if !data_type.is_ordered() {
                return Err(damaged("an index has an expression without an order"));
            }
            PreparedExpression::assigned(table, &of.form, *data_type)?;
        }
        match &self.predicate {
            Some(predicate) if !is_sound(predicate) => {
                Err(damaged("an index has a predicate that does not suit its table"))
            }
            Some(predicate) => match predicate.form.fault_of_condition() {
                Some(_) => Err(damaged("the predicate of an index is no condition")),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Whether all rows of its table have entries, and these are ordered by columns alone.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.predicate.is_none() && self.expressions.is_empty()
    }

    /// The numbers of its indexed columns, if it is ordered by columns alone.
    #[must_use]
    pub fn column_numbers(&self) -> Option<Vec<u16>> {
        let number = |column: &IndexedColumn| match column.of {
            Indexed::Column(number) => Some(number),
            Indexed::Expression(_) => None,
        };
        self.columns.iter().map(number).collect()
    }

    /// Whether it has the column of this number, or looks at it.
    pub fn has_column(&self, number: u16) -> bool {
        let mut looked_at = self.expressions.iter().map(|it| &it.of).chain(self.predicate.as_ref());
        self.columns.iter().any(|column| column.of == Indexed::Column(number))
            || self.included.contains(&number)
            || looked_at.any(|of| of.columns.contains(&number))
    }
}

impl TableBuilder {
    /// Makes the table the entries of an index.
    pub(super) fn entries_of(mut self, entries_of: EntriesOf) -> TableBuilder {
        self.entries_of = Some(entries_of);
        self
    }
}

impl TableDefinition {
    /// The secondary indexes of the table, in the order in which they were made.
    pub fn indexes(&self) -> &[IndexDefinition] {
        &self.indexes
    }

    /// Of the entries of an index: whose rows they are of.
    pub fn entries_of(&self) -> Option<&EntriesOf> {
        self.entries_of.as_ref()
    }

    /// The order of the key column at `position`; none for one that is never NULL and ascends.
    pub fn key_order(&self, position: usize) -> Option<KeyOrder> {
        self.entries_of.as_ref()?.orders.get(position).copied()
    }

    pub(super) fn check_indexes(&self) -> Result<(), TypeError> {
        for (position, index) in self.indexes.iter().enumerate() {
            index.check(self)?;
            if self.indexes[..position].iter().any(|other| other.name == index.name) {
                let table = self.name.as_str().into();
                return Err(TypeError::DuplicateIndex { table, name: index.name.as_str().into() });
            }
        }
        Ok(())
    }

    /// The definition with one more index.
    ///
    /// # Errors
    /// A name that another index has; columns that cannot be indexed.
    pub fn with_index(&self, index: IndexDefinition) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        altered.indexes.push(index);
        altered.checked()
    }

    /// The definition without an index.
    ///
    /// # Errors
    /// No index of this name.
    pub fn without_index(&self, name: &str) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        altered.indexes.remove(self.index_position(name)?);
        Ok(altered)
    }

    /// The definition with another name for an index.
    ///
    /// # Errors
    /// No index of this name; a name that is none.
    pub fn with_index_renamed(&self, from: &str, to: &str) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        to.clone_into(&mut altered.indexes[self.index_position(from)?].name);
        altered.checked()
    }

    /// The definition with an index that is whole now, in the place of another one where it was built for that.
    ///
    /// # Errors
    /// No index of this name.
    pub fn with_index_built(
        &self,
        name: &str,
        in_place_of: Option<&str>,
    ) -> Result<TableDefinition, TypeError> {
        let mut altered = self.clone();
        let at = self.index_position(name)?;
        altered.indexes[at].is_building = false;
        if let Some(replaced) = in_place_of {
            let place = self.index_position(replaced)?;
            let mut built = altered.indexes.remove(at);
            replaced.clone_into(&mut built.name);
            altered.indexes[place] = built;
        }
        altered.checked()
    }

    /// The same definition for a new table, which has no indexes and no table for long values, references none and is
    /// referenced by none.
    #[must_use]
    pub fn standing_alone(mut self) -> TableDefinition {
        self.indexes = Vec::new();
        self.entries_of = None;
        self.long_values = None;
        self.foreign_keys = Vec::new();
        self.referenced_by = Vec::new();
        self
    }

    /// The position of an index.
    ///
    /// # Errors
    /// No index of this name.
    pub fn index_position(&self, name: &str) -> Result<usize, TypeError> {
        self.indexes.iter().position(|index| index.name == name).ok_or_else(|| {
            TypeError::UnknownIndex { table: self.name.as_str().into(), name: name.into() }
        })
    }
}
