//! A table definition as bytes, for the catalogue. Stable: readers refuse formats they do not know.
//!
//! All numbers little-endian; a *name* is a u16 length and that many bytes of UTF-8.
//!
//! ```text
//! 4 bytes  "ORTD"
//! u8       format: 1; 2 with the byte below; 3 with that and the history; 4 with checks; 5 with forms
//!          of expressions; 6 with indexes; 7 with foreign keys or a sequence; 8 with a view; 9 with columns
//!          that are computed of others; 10 with expressions and predicates of indexes; 11 with a name of the key or
//!          labels; 12 with a view that keeps rows; 13 with a table of long values; 14 with an index that is
//!          being built; 15 with domains; 16 with a composite type; 17 with an index that is
//!          deferrable, columns that the primary key includes, or a check that older rows need not meet; 18 with rows
//!          that stay as they were inserted
//! u16      schema version
//! name     table
//! u16      number of columns, then for each:
//!   name
//!   u8     type: 1 boolean, 2 smallint, 3 integer, 4 bigint, 5 real, 6 double, 7 decimal,
//!          8 char, 9 varchar, 10 text, 11 bytes, 12 uuid, 13 date, 14 time, 15 timestamp,
//!          16 timestamptz, 17 json, 18 jsonb, 19 interval, 20 rounded, 21 name, 22 oid,
//!          23 timetz, 24 and 25 numeric, 26 labels, 27 array, 28 varchar,
//!          29 inet, 30 cidr, 31 macaddr, 32 composite
//!          decimal: u8 precision, u8 scale; char and varchar: u16 length, in 28 u32; rounded: u8 what (1 time,
//!          2 timestamp, 3 timestamptz, 4 interval, 5 timetz), u8 digits of seconds or 255 for all, of an interval
//!          u8 fields: 0 all, 1 year,
//!          2 month, 3 year to month, 4 day, 5 hour, 6 day to hour, 7 minute, 8 day to minute, 9 hour to minute,
//!          10 second, 11 day to second, 12 hour to second, 13 minute to second; numeric 25: u16 precision, i16 scale;
//!          labels: u32 number of the type, name, its labels; array: the type of its elements, neither an array nor
//!          labels nor composite; composite: u32 number of the type, name, u16 number of fields, then for each: name,
//!          type
//!   u8     1 nullable, 0 not
//!   u8     default: 0 none, 1 constant, 2 now, 3 key strategy, 4 constant NULL,
//!          5 expression; 6, in formats 5 to 18 only, expression with its form; 7 key strategy whose keys
//!          SQL statements must leave to be made; 8 expression whose values they must leave so; 9, in
//!          formats 9 to 18 only, computed of other columns
//!          constant: u16 length and the column's bytes as in a row (char: its full width)
//!          expression: name; with its form: u16 length and that many bytes, see
//!          [`expression`](crate::expression)
//!          computed of others: u16 number of columns, then for each a u16: its number; expression; form
//!          key strategy: u8 which (1 identity, 2 uuid-v4, 3 uuid-v7, 4 sequential-guid,
//!            5 session-offset, 6 node-offset, 7 bit-reversed, 8 hash-prefix);
//!            identity: i64 start, u8 strict; node-offset: u32 node
//! u16      number of key columns, then for each a u16: its position among the columns
//! u8       formats 2 to 18: 1, the rows are not logged; formats 3 to 18 only: 0, they are
//! u8       formats 4 to 18 only: 1, the history follows; 0, the table was never altered
//!
//! format 3, and formats 4 to 18 where they say so, a table that was altered:
//! u16      its first version
//! for each column:
//!   u16    its number: its place among all columns that there ever were
//!   u16    the first version whose rows have it
//!   u8     what rows of earlier versions hold in it: 0 NULL, 1 a value
//!          value: u16 length and the column's bytes as in a row
//! u16      number of dropped columns, then for each, by number:
//!   u16    its number
//!   u16    the first version whose rows have it
//!   u16    the first version whose rows do not
//!   column as above
//!
//! formats 4 to 18 only:
//! u16      number of checks, then for each:
//!   name
//!   u16    number of columns that it looks at, then for each a u16: its number
//!   name   the expression
//!   u16    formats 5 to 18 only: length of its form, and that many bytes; 0 where there is none
//!
//! formats 6 to 18 only:
//! u16      number of indexes, then for each:
//!   name
//!   u32    number of the table of its entries
//!   u8     0 not unique, 1 unique but for NULL, 2 unique
//!   u8     1 made for a constraint, 0 not
//!   u16    number of indexed columns, then for each: u16 its number, u8 order: 1 descending, 2 NULL first, 3 both; in
//!          formats 10 to 18 plus 4: the number is that of an expression of the index
//!   u16    number of included columns, then for each a u16: its number
//!   formats 10 to 18 only:
//!   u16    number of expressions, then for each: what is computed, as above; type
//!   u8     1 a predicate follows, 0 all rows have entries; then only: what is computed
//!   u8     formats 14 to 18 only: 1 it is being built, 0 it is whole
//!   u8     formats 17 and 18 only: 0 it is not deferrable; 1 it is, plus 2 where it is initially deferred, plus 4
//!          where NULL equals NULL
//! u8       1 the table is the entries of an index, 0 it is not; then only:
//!   u32    number of the table whose rows are indexed
//!   u16    number of key columns that may be NULL, then for each its order, as above
//!
//! formats 7 to 18 only:
//! u16      number of foreign keys, then for each:
//!   name
//!   u32    number of the referenced table
//!   u16    number of columns, then for each: u16 its number, u16 the number of the referenced column
//!   u8     on delete: 0 no action, 1 restrict, 2 cascade, 3 set NULL, 4 set default
//!   u8     on update, likewise
//!   u8     0 not deferrable, 1 initially immediate, 2 initially deferred
//!   u8     1 match full, 0 match simple
//!   u8     1 the rows that were there before it meet it, 0 nobody has looked
//! u16      number of tables that may reference this one, then for each a u32: its number
//! u8       1 the table is a sequence, 0 it is not; then only:
//!   u8     its type: 2 smallint, 3 integer, 4 bigint
//!   i64    each: start, increment, least value, greatest value, how many a session takes at a time
//!   u8     1 it begins anew at its end, 0 it does not
//!   u32    how often it was altered
//!   u8     1 a column owns it, 0 none does; then only: u32 number of the table, u16 number of the column
//!
//! formats 9 to 18 only:
//! u8       1 a view follows, 0 none does
//!
//! format 8, and formats 9 to 18 where they say so, a view:
//! u32      length of its query, and that many bytes of UTF-8
//! u16      number of tables that it reads, then for each:
//!   u32    its number
//!   u16    number of columns that it had, then for each a u16: its number
//!   u16    how many of them the query names, then for each a u16: its number
//! u16      number of columns that are more than their type says, then for each:
//!   u16    its number
//!   u8     1 oid, 2 name, 3 "char", 4 interval, 5 array of the type, 6 vector of it
//!
//! formats 11 to 18 only:
//! name     the primary key, or empty
//! u8       1 the table is a type of labels, 0 it is not; then only: its labels
//!
//! format 12, and formats 13 to 18 of a view:
//! u8       the rows that the view keeps: 1 those of its query, 2 they are missing
//!
//! formats 13 to 18 only:
//! u32      number of the table of long values; in formats 14 to 18 0 where there is none
//!
//! formats 15 to 18 only:
//! u8       1 the table is a domain, 0 it is not; then only: u16 number of its checks that older values need not meet,
//!          then for each its name
//! u16      number of columns that are of a domain, then for each:
//!   u16    its number
//!   u32    number of the domain
//!   name   the domain
//!   u8     1 the column's default is the domain's, 0 its own
//! u16      number of rules, then for each:
//!   u16    number of the column
//!   u8     1 the rows that were there before it meet it, 0 nobody has looked
//!   u8     0 the value is not NULL; 1 a check follows:
//!   name   the constraint
//!   name   the expression
//!   u16    length of its form, and that many bytes; 0 where there is none
//!
//! formats 16 to 18 only:
//! u8       1 the table is a composite type, 0 it is not
//!
//! formats 17 and 18 only:
//! u16      number of columns that the constraint of the primary key includes, then for each a u16: its number
//! u16      number of checks that older rows need not meet, then for each a u16: its position among the checks
//!
//! format 18 only:
//! u8       1 rows are inserted only, 0 they may be changed and deleted
//!
//! labels: u16 how many, then for each: u32 its code, u16 length and that many bytes of UTF-8
//! ```
//!
//! A format is written only where it says more than the one before does.

mod checks;
mod data_types;
mod defaults;
mod domains;
mod foreign_keys;
mod histories;
mod indexes;
mod labels;
mod row_expressions;
mod sequences;
mod views;

use std::sync::Arc;

use super::{ColumnDefinition, DefaultValue, IndexDefinition, TableDefinition};
use crate::expression::TypedExpression;
use crate::row::field;
use crate::{TypeError, Value};
use data_types::{push_type, read_type};

const MAGIC: &[u8; 4] = b"ORTD";
const FORMAT: u8 = 1;
const FORMAT_WITH_LOGGING: u8 = 2;
const FORMAT_WITH_HISTORY: u8 = 3;
const FORMAT_WITH_CHECKS: u8 = 4;
const FORMAT_WITH_FORMS: u8 = 5;
const FORMAT_WITH_INDEXES: u8 = 6;
const FORMAT_WITH_REFERENCES: u8 = 7;
const FORMAT_WITH_VIEW: u8 = 8;
const FORMAT_WITH_GENERATED: u8 = 9;
const FORMAT_WITH_INDEX_EXPRESSIONS: u8 = 10;
const FORMAT_WITH_NAMES: u8 = 11;
const FORMAT_WITH_KEPT_ROWS: u8 = 12;
const FORMAT_WITH_LONG_VALUES: u8 = 13;
const FORMAT_WITH_BUILDING: u8 = 14;
const FORMAT_WITH_DOMAINS: u8 = 15;
const FORMAT_WITH_COMPOSITE: u8 = 16;
const FORMAT_WITH_DEFERRABLE: u8 = 17;
const FORMAT_WITH_APPENDS: u8 = 18;
const UNLOGGED: u8 = 1;
const LOGGED: u8 = 0;

impl TableDefinition {
    /// The definition's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 32 * self.columns().len());
        out.extend_from_slice(MAGIC);
        let format = match (self.history(), self.is_logged()) {
            _ if self.appends_only() => FORMAT_WITH_APPENDS,
            _ if self.indexes().iter().any(|index| index.deferrable.is_some()) => {
                FORMAT_WITH_DEFERRABLE
            }
            _ if !self.key_included().is_empty() => FORMAT_WITH_DEFERRABLE,
            _ if self.checks().iter().any(|check| !check.is_validated) => FORMAT_WITH_DEFERRABLE,
            _ if self.is_composite() => FORMAT_WITH_COMPOSITE,
            _ if domains::has_some(self) => FORMAT_WITH_DOMAINS,
            _ if self.indexes().iter().any(|index| index.is_building) => FORMAT_WITH_BUILDING,
            _ if self.long_values().is_some() => FORMAT_WITH_LONG_VALUES,
            _ if self.materialized_view().is_some() => FORMAT_WITH_KEPT_ROWS,
            _ if self.key_name().is_some() || self.labels().is_some() => FORMAT_WITH_NAMES,
            _ if !self.indexes().iter().all(IndexDefinition::is_plain) => {
                FORMAT_WITH_INDEX_EXPRESSIONS
            }
            _ if self.has_generated() => FORMAT_WITH_GENERATED,
            _ if self.any_view().is_some() => FORMAT_WITH_VIEW,
            _ if self.is_linked() || self.sequence().is_some() => FORMAT_WITH_REFERENCES,
            _ if !self.indexes().is_empty() || self.entries_of().is_some() => FORMAT_WITH_INDEXES,
            _ if self.has_forms() => FORMAT_WITH_FORMS,
            _ if !self.checks().is_empty() => FORMAT_WITH_CHECKS,
            (Some(_), _) => FORMAT_WITH_HISTORY,
            (None, false) => FORMAT_WITH_LOGGING,
            (None, true) => FORMAT,
        };
        out.push(format);
        out.extend_from_slice(&self.version().to_le_bytes());
        push_short(self.name().as_bytes(), &mut out);
        push_u16(self.columns().len(), &mut out);
        for column in self.columns() {
            push_column(column, &mut out);
        }
        push_u16(self.primary_key().len(), &mut out);
        for &column in self.primary_key() {
            push_u16(column, &mut out);
        }
        if format != FORMAT {
            out.push(if self.is_logged() { LOGGED } else { UNLOGGED });
        }
        if format >= FORMAT_WITH_CHECKS {
            out.push(u8::from(self.history().is_some()));
        }
        if let Some(history) = self.history() {
            histories::push(self, history, &mut out);
        }
        if format >= FORMAT_WITH_CHECKS {
            checks::push(self.checks(), format >= FORMAT_WITH_FORMS, &mut out);
        }
        if format >= FORMAT_WITH_INDEXES {
            indexes::push(self, format, &mut out);
        }
        if format >= FORMAT_WITH_REFERENCES {
            foreign_keys::push(self, &mut out);
            sequences::push(self.sequence(), &mut out);
        }
        if format >= FORMAT_WITH_GENERATED {
            out.push(u8::from(self.any_view().is_some()));
        }
        if let Some(view) = self.any_view() {
            views::push(view, &mut out);
        }
        if format >= FORMAT_WITH_NAMES {
            push_short(self.key_name().unwrap_or_default().as_bytes(), &mut out);
            out.push(u8::from(self.labels().is_some()));
        }
        if let Some(of) = self.labels() {
            labels::push(of, &mut out);
        }
        if let Some(view) = self.materialized_view() {
            out.push(views::number_of(view.rows));
        }
        if format >= FORMAT_WITH_LONG_VALUES {
            out.extend_from_slice(&self.long_values().unwrap_or(0).to_le_bytes());
        }
        if format >= FORMAT_WITH_DOMAINS {
            domains::push(self, &mut out);
        }
        if format >= FORMAT_WITH_COMPOSITE {
            out.push(u8::from(self.is_composite()));
        }
        if format >= FORMAT_WITH_DEFERRABLE {
            push_u16(self.key_included().len(), &mut out);
            for number in self.key_included() {
                push_u16(usize::from(*number), &mut out);
            }
            checks::push_not_validated(self.checks(), &mut out);
        }
        if format >= FORMAT_WITH_APPENDS {
            out.push(u8::from(self.appends_only()));
        }
        out
    }

    /// Whether a column is computed of others, a dropped one too.
    fn has_generated(&self) -> bool {
        let is_generated =
            |column: &ColumnDefinition| matches!(column.default, DefaultValue::Generated(_));
        self.columns().iter().any(is_generated) || self.dropped_columns().any(is_generated)
    }

    fn dropped_columns(&self) -> impl Iterator<Item = &ColumnDefinition> {
        let dropped = self.history().into_iter().flat_map(|history| &history.dropped);
        dropped.map(|dropped| &dropped.column)
    }

    /// Whether an expression is kept in the form that is evaluated, one of a dropped column too.
    fn has_forms(&self) -> bool {
        let has_form = |column: &ColumnDefinition| match &column.default {
            DefaultValue::Expression(computed) => computed.form.is_some(),
            _ => false,
        };
        self.checks().iter().any(|check| check.form.is_some())
            || self.columns().iter().any(has_form)
            || self.dropped_columns().any(has_form)
    }

    /// Reads a definition back and checks it as a new one is checked.
    ///
    /// # Errors
    /// [`TypeError::DefinitionDamaged`], or what [`TableBuilder::build`](super::TableBuilder)
    /// refuses.
    pub fn from_bytes(bytes: &[u8]) -> Result<TableDefinition, TypeError> {
        let mut input = Input { bytes, at: 0 };
        let definition = read(&mut input)
            .map_err(|reason| TypeError::DefinitionDamaged { at: input.at, reason })?;
        definition.checked()
    }
}

fn push_column(column: &ColumnDefinition, out: &mut Vec<u8>) {
    push_short(column.name.as_bytes(), out);
    push_type(column.data_type, out);
    out.push(u8::from(column.nullable));
    defaults::push_default(column, out);
}

/// A value of a column, in front of it its length.
fn push_value(column: &ColumnDefinition, value: &Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    push_u16(0, out);
    field::write_any(column.data_type, value, out);
    let length = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&length.to_le_bytes());
}

/// Counts and lengths here are limited far below 65,536 by the checks of the definition.
fn push_u16(value: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value as u16).to_le_bytes());
}

fn push_short(bytes: &[u8], out: &mut Vec<u8>) {
    push_u16(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn push_form(form: Option<&TypedExpression>, out: &mut Vec<u8>) {
    push_short(&form.map_or_else(Vec::new, TypedExpression::to_bytes), out);
}

struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Input<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], &'static str> {
        let taken = self.bytes[self.at..].get(..count).ok_or("the bytes end too early")?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        self.take(N)?.try_into().map_err(|_| "the bytes end too early")
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, &'static str> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, &'static str> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a flag is neither 0 nor 1"),
        }
    }

    fn short(&mut self) -> Result<&'b [u8], &'static str> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    fn name(&mut self) -> Result<String, &'static str> {
        field::utf8(self.short()?).map(str::to_owned)
    }
}

fn read(input: &mut Input<'_>) -> Result<TableDefinition, &'static str> {
    if input.take(4)? != MAGIC {
        return Err("it does not start with ORTD");
    }
    let format = input.u8()?;
    if !(FORMAT..=FORMAT_WITH_APPENDS).contains(&format) {
        return Err("the format is not known; a newer Onrush wrote it");
    }
    let version = input.u16()?;
    let name = input.name()?;
    let column_count = input.u16()?;
    let mut columns = Vec::new();
    for _ in 0..column_count {
        columns.push(read_column(input)?);
    }
    let key_count = input.u16()?;
    let mut primary_key = Vec::new();
    for _ in 0..key_count {
        let column = usize::from(input.u16()?);
        match columns.get(column) {
            None => return Err("a key column does not exist"),
            Some(_) => primary_key.push(column),
        }
    }
    let logged = match format {
        FORMAT => true,
        _ => match input.u8()? {
            UNLOGGED => false,
            LOGGED if format >= FORMAT_WITH_HISTORY => true,
            _ => return Err("how the rows are logged is not known"),
        },
    };
    let was_altered = match format {
        FORMAT_WITH_CHECKS.. => input.flag()?,
        _ => format == FORMAT_WITH_HISTORY,
    };
    let history = match was_altered {
        true => Some(Arc::new(histories::read(&columns, input)?)),
        false => None,
    };
    let mut checks = match format {
        FORMAT_WITH_CHECKS.. => checks::read(format >= FORMAT_WITH_FORMS, input)?,
        _ => Vec::new(),
    };
    let (indexes, entries_of) = match format {
        FORMAT_WITH_INDEXES.. => indexes::read(format, input)?,
        _ => (Vec::new(), None),
    };
    let (foreign_keys, referenced_by, sequence) = match format {
        FORMAT_WITH_REFERENCES.. => {
            let (foreign_keys, referenced_by) = foreign_keys::read(input)?;
            (foreign_keys, referenced_by, sequences::read(input)?)
        }
        _ => (Vec::new(), Vec::new(), None),
    };
    let mut view = match format {
        FORMAT_WITH_VIEW => Some(views::read(input)?),
        FORMAT_WITH_GENERATED.. if input.flag()? => Some(views::read(input)?),
        _ => None,
    };
    let (mut key_name, mut enumeration) = (None, None);
    if format >= FORMAT_WITH_NAMES {
        key_name = Some(input.name()?).filter(|name| !name.is_empty());
        if input.flag()? {
            enumeration = Some(labels::read(input)?);
        }
    }
    let keeps_rows =
        format == FORMAT_WITH_KEPT_ROWS || format >= FORMAT_WITH_LONG_VALUES && view.is_some();
    if keeps_rows {
        let view = view.as_mut().ok_or("what is no view keeps the rows of one")?;
        view.rows = views::rows_of(input.u8()?)?;
    }
    let long_values = match format {
        FORMAT_WITH_LONG_VALUES => Some(input.u32()?),
        FORMAT_WITH_BUILDING.. => Some(input.u32()?).filter(|table| *table != 0),
        _ => None,
    };
    let (domain, rules) = match format {
        FORMAT_WITH_DOMAINS.. => domains::read(input, &mut columns, history.as_deref())?,
        _ => (None, Vec::new()),
    };
    let is_composite = format >= FORMAT_WITH_COMPOSITE && input.flag()?;
    let mut key_included = Vec::new();
    if format >= FORMAT_WITH_DEFERRABLE {
        for _ in 0..input.u16()? {
            key_included.push(input.u16()?);
        }
        checks::read_not_validated(&mut checks, input)?;
    }
    let appends_only = format >= FORMAT_WITH_APPENDS && input.flag()?;
    let ordered = entries_of.as_ref().map_or(0, |of| of.orders.len());
    if primary_key.iter().skip(ordered).any(|key| columns[*key].nullable) {
        return Err("a key column is nullable");
    }
    if input.at != input.bytes.len() {
        return Err("bytes are left over at the end");
    }
    Ok(TableDefinition {
        name,
        version,
        columns,
        primary_key,
        key_name,
        key_included,
        logged,
        appends_only,
        checks,
        indexes,
        entries_of,
        long_values,
        foreign_keys,
        referenced_by,
        sequence,
        view,
        labels: enumeration,
        is_composite,
        domain,
        rules,
        history,
    })
}

fn read_column(input: &mut Input<'_>) -> Result<ColumnDefinition, &'static str> {
    let name = input.name()?;
    let data_type = read_type(input)?;
    let nullable = input.flag()?;
    let (default, is_always_generated) = defaults::read_default(data_type, input)?;
    Ok(ColumnDefinition { name, data_type, nullable, default, is_always_generated, domain: None })
}

/// The form of an expression; none where its length is 0.
fn read_form(input: &mut Input<'_>) -> Result<Option<Arc<TypedExpression>>, &'static str> {
    match input.short()? {
        [] => Ok(None),
        bytes => TypedExpression::from_bytes(bytes).map(|form| Some(Arc::new(form))),
    }
}
