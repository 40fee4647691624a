//! Onrush's values and bytes: what a column can hold, what a table is, and how one row becomes a
//! key and a value. Pure code: no files, no threads, no `unsafe`.
//!
//! Step 1 of an insert ends here: the session has its values, [`Schema::encode_row`] fills the
//! defaults (asking the caller for the clock and for generated keys, which [`KeyGenerator`] makes)
//! and writes three byte strings into an [`EncodedRow`] that the session uses again and again:
//! the *key* (ordered as the values are), the *row* (all other columns), and the *elided* form that
//! the log takes (only what differs from the defaults). The tree and the log then see bytes only.
//!
//! In reading order: [`data_type`], [`numeric`] and [`value`], [`schema`], [`expression`], [`key`], [`row`],
//! [`generate`], [`text`], [`error`].
//!
//! Invariants
//! 1. Keys compare as bytes exactly as their values compare, and no key is a prefix of another.
//! 2. `decode(encode(row)) == row`, and `expand_elided(elided) == row`, byte for byte.
//! 3. No input, however damaged, makes a decoder panic: it returns a [`TypeError`].
//! 4. A generated key is handed out once; at the end of its range there is an error, never a wrap.

#![forbid(unsafe_code)]

pub mod array;
pub mod calendar;
mod composite;
mod convert;
pub mod data_type;
mod enumeration;
pub mod error;
pub mod expression;
pub mod generate;
mod interval;
mod json;
pub mod key;
mod mac_address;
mod network;
pub mod numeric;
mod rounding;
pub mod row;
pub mod schema;
pub mod text;
mod time_tz;
pub mod value;

pub use composite::{
    ANONYMOUS_MAX, CompositeField, CompositeType, FIELDS_MAX, MalformedRecord, read_record,
    write_record,
};
pub use convert::has_more_characters;
pub use data_type::DataType;
pub use enumeration::{EnumLabels, EnumType, LABELS_MAX, LabelFault, NewLabel};
pub use error::{ColumnName, TypeError};
pub use generate::{KeyGenerator, KeyStrategy, NODE_MAX, SessionRange, Unused};
pub use interval::Interval;
pub use key::{KEY_BYTES_MAX, prefix_end};
pub use mac_address::MacAddress;
pub use network::Network;
pub use numeric::{Numeric, NumericFault};
pub use rounding::{Clock, IntervalFields, SECOND_DIGITS_MAX};
pub use row::{EncodedRow, LongValue, ROW_BYTES_MAX, RowView, StoredBytes, WHOLE_ROW_BYTES_MAX};
pub use schema::long_values;
pub use schema::{
    CHECK_BYTES_MAX, CHECKS_MAX, CheckConstraint, ColumnDefinition, ColumnDomain, ColumnInDomain,
    ComputedDefault, DOMAIN_VALUE, DefaultValue, DeferrableUnique, Deferral, DomainDefinition,
    DomainRule, EntriesOf, EntrySource, FOREIGN_KEY_COLUMNS_MAX, ForeignKey, INDEX_COLUMNS_MAX,
    IndexDefinition, Indexed, IndexedColumn, IndexedExpression, KeyOrder, NeedsNoRows, ROW_ID,
    ReferencedKey, ReferentialAction, RowExpression, Schema, SequenceDefinition, SequenceOwner,
    TIE, TableBuilder, TableChange, TableDefinition, Uniqueness, VIEW_BYTES_MAX, ViewColumnKind,
    ViewDefinition, ViewRows, ViewSource,
};
pub use time_tz::TimeTz;
pub use value::Value;

pub use rust_decimal::Decimal;
pub use uuid::Uuid;
