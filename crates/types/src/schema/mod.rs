//! What a table is: columns with types and defaults, and the primary key that orders its rows.
//!
//! [`TableDefinition`] is what a user declares and the catalogue keeps (see [`codec`] for its
//! bytes); [`Schema`] is the same, compiled for encoding and decoding rows.

mod check;
pub mod codec;
mod compiled;
mod default;
mod definition;
mod domain;
mod foreign_key;
mod generated;
mod history;
mod index;
pub mod long_values;
mod row_expression;
mod sequence;
mod view;

pub use check::{CHECK_BYTES_MAX, CHECKS_MAX, CheckConstraint};
pub use compiled::Schema;
pub(crate) use compiled::{
    AllDefaults, DefaultKind, Field, KeyColumn, Place, RowLayout, StoredColumn,
};
pub use default::ComputedDefault;
pub use definition::{COLUMNS_MAX, NAME_BYTES_MAX, ROW_ID, TableBuilder, TableDefinition};
pub use domain::{ColumnDomain, DOMAIN_VALUE, DomainDefinition, DomainRule};
pub use foreign_key::{
    Deferral, FOREIGN_KEY_COLUMNS_MAX, ForeignKey, ReferencedKey, ReferentialAction,
};
pub use history::{ColumnInDomain, History, NeedsNoRows, TableChange};
pub(crate) use history::{Earlier, Source};
pub use index::{
    DeferrableUnique, EntriesOf, EntrySource, INDEX_COLUMNS_MAX, IndexDefinition, Indexed,
    IndexedColumn, IndexedExpression, KeyOrder, TIE, Uniqueness,
};
pub use row_expression::RowExpression;
pub use sequence::{SequenceDefinition, SequenceOwner};
pub use view::{VIEW_BYTES_MAX, ViewColumnKind, ViewDefinition, ViewRows, ViewSource};

use crate::expression::Expression;
use crate::{DataType, KeyStrategy, TypeError, Value, calendar};

/// Where a column's value comes from when an insert does not give one.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum DefaultValue {
    /// NULL when the column is nullable; else the insert must give a value.
    #[default]
    None,
    /// Always the same value. The log leaves it out.
    Constant(Value<'static>),
    /// The moment of the insert, for date and time types.
    Now,
    /// A generated key.
    Key(KeyStrategy),
    /// An expression that is computed for every row.
    Expression(ComputedDefault),
    /// What is computed of other columns of the row, and cannot be given.
    Generated(RowExpression),
}

impl DefaultValue {
    /// Whether the value is computed for every row, and so always logged.
    pub fn is_computed(&self) -> bool {
        !matches!(self, DefaultValue::None | DefaultValue::Constant(_))
    }
}

/// One column as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// The name, unique in its table, compared exactly.
    pub name: String,
    /// The type.
    pub data_type: DataType,
    /// Whether NULL is allowed. Always false for key columns.
    pub nullable: bool,
    /// The default.
    pub default: DefaultValue,
    /// Whether SQL statements must leave the value to be made: `GENERATED ALWAYS`.
    pub is_always_generated: bool,
    /// The domain that it is of.
    pub domain: Option<ColumnDomain>,
}

impl ColumnDefinition {
    /// A nullable column without a default.
    pub fn new(name: impl Into<String>, data_type: DataType) -> ColumnDefinition {
        ColumnDefinition {
            name: name.into(),
            data_type,
            nullable: true,
            default: DefaultValue::None,
            is_always_generated: false,
            domain: None,
        }
    }

    /// NULL is not allowed.
    pub fn not_null(mut self) -> ColumnDefinition {
        self.nullable = false;
        self
    }

    /// The column is of a domain, whose type it has.
    pub fn of_domain(mut self, domain: ColumnDomain) -> ColumnDefinition {
        self.domain = Some(domain);
        self
    }

    /// The column has a default of its own, if it is of a domain that has one.
    pub fn with_own_default(mut self) -> ColumnDefinition {
        self.domain.iter_mut().for_each(|domain| domain.gives_default = false);
        self
    }

    /// The default is this value.
    pub fn default_value(mut self, value: impl Into<Value<'static>>) -> ColumnDefinition {
        self.default = DefaultValue::Constant(value.into());
        self
    }

    /// The default is the moment of the insert.
    pub fn default_now(mut self) -> ColumnDefinition {
        self.default = DefaultValue::Now;
        self
    }

    /// The default is computed for every row by this expression, which looks at no column.
    ///
    /// # Errors
    /// [`TypeError::Expression`] for one that has no type.
    pub fn default_computed(
        mut self,
        expression: &Expression,
    ) -> Result<ColumnDefinition, TypeError> {
        self.default = DefaultValue::Expression(ComputedDefault::new(expression)?);
        Ok(self)
    }

    /// The default is an expression in SQL, for whoever understands it.
    pub fn default_expression(mut self, expression: impl Into<String>) -> ColumnDefinition {
        let (expression, form) = (expression.into(), None);
        self.default = DefaultValue::Expression(ComputedDefault { expression, form });
        self
    }

    /// The default is a generated key.
    pub fn default_key(mut self, strategy: KeyStrategy) -> ColumnDefinition {
        self.default = DefaultValue::Key(strategy);
        self
    }
}

impl DataType {
    /// The moment `unix_micros` (microseconds since 1970-01-01 00:00:00 UTC) as a value of this
    /// type, in UTC: what `DEFAULT now` stores. None for types that hold no date or time; NULL for a time of day of
    /// an infinity.
    #[inline]
    pub fn timestamp(self, unix_micros: i64) -> Option<Value<'static>> {
        Some(match self {
            DataType::TimestampTz => Value::TimestampTz(unix_micros),
            DataType::Timestamp => Value::Timestamp(unix_micros),
            DataType::Time if calendar::is_infinite_timestamp(unix_micros) => Value::Null,
            DataType::Time => Value::Time(unix_micros.rem_euclid(calendar::DAY_MICROS)),
            DataType::Date => Value::Date(calendar::date_of_timestamp(unix_micros)),
            DataType::Rounded(clock, _) => self.rounded(clock.data_type().timestamp(unix_micros)?),
            _ => return None,
        })
    }
}
