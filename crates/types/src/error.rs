//! Every error of this crate: what is wrong, with which table and column, and what to do about it.
//!
//! Two classes matter to callers: [`TypeError::is_damage`] means stored bytes do not make sense
//! (the data is corrupt, or a wrong schema was used); everything else is the caller's input.

use std::fmt;

use crate::enumeration::LabelFault;
use crate::{DataType, KeyStrategy};

/// The full name of a column, written `table.column` in messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    /// The table's name.
    pub table: Box<str>,
    /// The column's name.
    pub column: Box<str>,
}

impl ColumnName {
    /// The name of `column` of `table`.
    pub fn new(table: &str, column: &str) -> ColumnName {
        ColumnName { table: table.into(), column: column.into() }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.table, self.column)
    }
}

/// What can go wrong between values and bytes. Each message names the cause and the cure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A table or column name is empty, too long or holds a control character.
    #[error("the name {name:?} cannot be used: {reason}; choose another name")]
    BadName {
        /// The name as given.
        name: Box<str>,
        /// Why it is refused.
        reason: &'static str,
    },
    /// A table without columns, or with more than the limit.
    #[error("table {table} has {count} columns; a table has 1 to {limit}")]
    ColumnCount {
        /// The table.
        table: Box<str>,
        /// Columns given.
        count: usize,
        /// Most columns of one table.
        limit: usize,
    },
    /// Two columns with one name.
    #[error("column {0} is defined twice; rename one of the two")]
    DuplicateColumn(ColumnName),
    /// A column of the key cannot be dropped.
    #[error("column {0} is part of the primary key, which orders the rows; it cannot be dropped")]
    KeyColumnStays(ColumnName),
    /// A column that others are computed of cannot be dropped before them.
    #[error("column {generated} is computed of column {column}; drop {generated} first")]
    UsedByGenerated {
        /// The column.
        column: ColumnName,
        /// One that is computed of it.
        generated: ColumnName,
    },
    /// A column that is computed of others cannot order the rows.
    #[error(
        "column {0} is computed of others and cannot be part of the primary key; make a unique index of it"
    )]
    GeneratedKey(ColumnName),
    /// A value for a column that is computed of others. Your input.
    #[error("column {0} is computed of others and takes no value; leave it out, or give DEFAULT")]
    GeneratedValue(ColumnName),
    /// A table that was altered as often as it can be.
    #[error("table {table} has used up its {what}; copy its rows into a new table")]
    AlteredTooOften {
        /// The table.
        table: Box<str>,
        /// What there is no more of.
        what: &'static str,
    },
    /// A name that is not a column of the table.
    #[error("table {} has no column {:?}; its columns are: {known}", .name.table, .name.column)]
    UnknownColumn {
        /// The name asked for.
        name: ColumnName,
        /// The columns there are, separated by commas.
        known: Box<str>,
    },
    /// A table needs a primary key: rows are stored in its order.
    #[error("table {table} has no primary key; name one or more columns that identify a row")]
    NoPrimaryKey {
        /// The table.
        table: Box<str>,
    },
    /// A column stands twice in the primary key.
    #[error("column {0} stands twice in the primary key; name it once")]
    DuplicateKeyColumn(ColumnName),
    /// A column of a key whose type keys cannot hold.
    #[error(
        "column {column} is {data_type}, which orders no rows; it cannot be in a key or an index"
    )]
    NoOrder {
        /// The column.
        column: ColumnName,
        /// Its type.
        data_type: DataType,
    },
    /// A column of the primary key whose numbers are not shown alike where they are equal.
    #[error(
        "column {0} is numeric without a precision, which is not supported in a primary key; declare one"
    )]
    KeyWithoutScale(ColumnName),
    /// A length, precision or scale outside its range.
    #[error("column {column}: {data_type} is not possible: {reason}")]
    BadDataType {
        /// The column.
        column: ColumnName,
        /// The type as given.
        data_type: DataType,
        /// The range that holds.
        reason: &'static str,
    },
    /// Two checks with one name.
    #[error("table {table} has a constraint {name} already; choose another name")]
    DuplicateCheck {
        /// The table.
        table: Box<str>,
        /// The name of both.
        name: Box<str>,
    },
    /// Two indexes of a table have one name.
    #[error("table {table} has two indexes of the name {name}")]
    DuplicateIndex {
        /// The table.
        table: Box<str>,
        /// The name of both.
        name: Box<str>,
    },
    /// A name that is not an index of the table.
    #[error("table {table} has no index {name}")]
    UnknownIndex {
        /// The table.
        table: Box<str>,
        /// The name asked for.
        name: Box<str>,
    },
    /// An index of no column, or of too many.
    #[error("the index {index} has {count} columns; 1 to {limit} are allowed")]
    IndexColumnCount {
        /// The index.
        index: Box<str>,
        /// How many it has, included ones too.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A name that is not a check of the table.
    #[error("table {table} has no constraint {name} that could be dropped")]
    UnknownCheck {
        /// The table.
        table: Box<str>,
        /// The name asked for.
        name: Box<str>,
    },
    /// A label that a type of labels cannot have.
    #[error("label {label:?}: {fault}")]
    BadLabel {
        /// The label.
        label: Box<str>,
        /// What is wrong with it.
        fault: LabelFault,
    },
    /// The expression of a check is over the limit.
    #[error(
        "table {table}: the check {name} has {bytes} bytes, at most {limit} are allowed; \
         make several of it"
    )]
    CheckTooLong {
        /// The table.
        table: Box<str>,
        /// The check.
        name: Box<str>,
        /// Bytes of its expression.
        bytes: usize,
        /// [`crate::CHECK_BYTES_MAX`].
        limit: usize,
    },
    /// More conditions than a definition keeps. Your input.
    #[error(
        "table {table} has {count} check constraints or conditions of domains; at most {limit} are allowed"
    )]
    TooManyChecks {
        /// The table.
        table: Box<str>,
        /// Conditions.
        count: usize,
        /// [`crate::CHECKS_MAX`].
        limit: usize,
    },
    /// A text that names no data type.
    #[error("{text:?} is not a data type; known types: {}", crate::data_type::TYPE_NAMES)]
    UnknownDataType {
        /// The text as given.
        text: Box<str>,
    },
    /// A text that names a data type with a length, precision or scale that cannot be.
    #[error("{text:?} is no possible data type: {reason}")]
    ImpossibleDataType {
        /// The text as given.
        text: Box<str>,
        /// What is possible.
        reason: &'static str,
    },
    /// A text that names no key strategy.
    #[error("{text:?} is not a key strategy; known: {}", crate::generate::STRATEGY_NAMES)]
    UnknownStrategy {
        /// The text as given.
        text: Box<str>,
    },
    /// A default that its column cannot take.
    #[error("column {column} ({data_type}) cannot have this default: {reason}")]
    BadDefault {
        /// The column.
        column: ColumnName,
        /// The column's type.
        data_type: DataType,
        /// What the default needs.
        reason: Box<str>,
    },
    /// A key strategy on a column of the wrong type, or with a parameter out of range.
    #[error("column {column}: key strategy {strategy} cannot be used: {reason}")]
    BadStrategy {
        /// The column.
        column: ColumnName,
        /// The strategy.
        strategy: KeyStrategy,
        /// The type or range that it needs.
        reason: Box<str>,
    },
    /// A value of the wrong type for its column.
    #[error("column {column} is {expected}, but the value given is {given}; convert the value")]
    WrongType {
        /// The column.
        column: ColumnName,
        /// The column's type.
        expected: DataType,
        /// The kind of the value given.
        given: &'static str,
    },
    /// A value of the right type that its column cannot hold.
    #[error("column {column} ({data_type}) cannot hold the value: {reason}")]
    OutOfRange {
        /// The column.
        column: ColumnName,
        /// The column's type.
        data_type: DataType,
        /// What is too large, too long or too precise.
        reason: Box<str>,
    },
    /// NULL for a column that is NOT NULL.
    #[error("column {0} is NOT NULL, but the value given is NULL; give a value")]
    NullValue(ColumnName),
    /// No value for a column without a default.
    #[error("column {0} is NOT NULL and has no default; give a value")]
    MissingValue(ColumnName),
    /// DEFAULT in an update, on a column whose default must be computed.
    #[error("column {0} cannot be set to its computed default by an update; give the value itself")]
    ComputedDefault(ColumnName),
    /// Too few or too many values.
    #[error("table {table}: {given} values given, {expected} expected; give one for each column")]
    ValueCount {
        /// The table.
        table: Box<str>,
        /// Values given.
        given: usize,
        /// Values needed.
        expected: usize,
    },
    /// The encoded key is over the limit.
    #[error("table {table}: the key takes {bytes} bytes, at most {limit} are allowed; shorten it")]
    KeyTooLarge {
        /// The table.
        table: Box<str>,
        /// Encoded bytes.
        bytes: usize,
        /// [`crate::KEY_BYTES_MAX`].
        limit: usize,
    },
    /// Key and row together are over the limit.
    #[error(
        "table {table}: the row takes {bytes} bytes, at most {limit} are allowed; \
         shorten its values or store the large ones elsewhere"
    )]
    RowTooLarge {
        /// The table.
        table: Box<str>,
        /// Bytes of key and row.
        bytes: usize,
        /// [`crate::ROW_BYTES_MAX`].
        limit: usize,
    },
    /// A text that is no value of the type.
    #[error("{text:?} is not {data_type}: {reason}")]
    BadText {
        /// The text, cut after 64 characters.
        text: Box<str>,
        /// The type wanted.
        data_type: DataType,
        /// What is expected.
        reason: Box<str>,
    },
    /// As [`TypeError::BadText`], with the column.
    #[error("column {column}: {cause}")]
    InColumn {
        /// The column.
        column: ColumnName,
        /// What is wrong.
        cause: Box<TypeError>,
    },
    /// The strategy has handed out every value it can.
    #[error("column {column}: key strategy {strategy} is exhausted: {reason}")]
    KeysExhausted {
        /// The column.
        column: ColumnName,
        /// The strategy.
        strategy: KeyStrategy,
        /// The range that is used up, and what to do.
        reason: Box<str>,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes from the operating system: {reason}; random keys cannot be made")]
    NoRandomness {
        /// What the system said.
        reason: Box<str>,
    },
    /// Stored key bytes do not decode.
    #[error("table {table}: key bytes do not decode at byte {at}: {reason}; run a check")]
    KeyDamaged {
        /// The table.
        table: Box<str>,
        /// Offset of the first byte that makes no sense.
        at: usize,
        /// What was expected.
        reason: &'static str,
    },
    /// Stored row bytes, or the log's short form, do not decode.
    #[error("table {table}: row bytes do not decode at byte {at}: {reason}; run a check")]
    RowDamaged {
        /// The table.
        table: Box<str>,
        /// Offset of the first byte that makes no sense.
        at: usize,
        /// What was expected.
        reason: &'static str,
    },
    /// The row was written under another version of the table's definition.
    #[error("table {table}: the row has schema version {found}, the schema used is {expected}")]
    WrongSchemaVersion {
        /// The table.
        table: Box<str>,
        /// Version in the row.
        found: u16,
        /// Version of the schema.
        expected: u16,
    },
    /// An expression that the form in which tables keep them does not have.
    #[error("the expression is not understood: {reason}")]
    Expression {
        /// What is not understood.
        reason: Box<str>,
    },
    /// Stored definition bytes do not decode.
    #[error("a table definition does not decode at byte {at}: {reason}; the catalogue is damaged")]
    DefinitionDamaged {
        /// Offset of the first byte that makes no sense.
        at: usize,
        /// What was expected.
        reason: &'static str,
    },
}

impl TypeError {
    /// Whether stored bytes are to blame, and not the caller's input.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            TypeError::KeyDamaged { .. }
                | TypeError::RowDamaged { .. }
                | TypeError::WrongSchemaVersion { .. }
                | TypeError::DefinitionDamaged { .. }
        )
    }
}
