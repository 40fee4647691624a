//! What ALTER COLUMN makes of a column, and what it refuses as PostgreSQL does.

use std::sync::Arc;

use onrush::expression::PreparedDefault;
use onrush::{ColumnDefinition, ColumnDomain, DataType, DefaultValue, KeyStrategy};

use sqlparser::ast::Ident;

use crate::catalog::is_identity;
use crate::error::{Result, SqlError, state};
use crate::sql::ColumnChange;
use crate::{schemas, values};
use onrush_query::style::{self, Style};

/// Whether the rows must be written anew for a change. A counter, too, goes on behind the numbers in the rows.
pub(crate) fn rewrites(change: &ColumnChange) -> bool {
    match change {
        ColumnChange::Type { .. } | ColumnChange::Identity { .. } => true,
        ColumnChange::NotNull(_)
        | ColumnChange::NoIdentity { .. }
        | ColumnChange::AlwaysGenerated(_) => false,
        ColumnChange::Default(DefaultValue::Key(strategy)) => {
            !matches!(strategy, KeyStrategy::UuidV4 | KeyStrategy::UuidV7)
        }
        ColumnChange::Default(_) => false,
    }
}

/// Changes the column. The rows that are there are looked at by whoever makes the table have it.
pub(crate) fn apply(
    column: &mut ColumnDefinition,
    change: &ColumnChange,
    (table, is_key): (&str, bool),
) -> Result<()> {
    let name = &column.name;
    match change {
        ColumnChange::NotNull(false) if is_key => {
            let message = format!("column {name:?} is in a primary key");
            return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message));
        }
        ColumnChange::NotNull(false) if is_identity(column) => return Err(identity(column)),
        ColumnChange::NotNull(is) => column.nullable = !is,
        ColumnChange::Default(_) if is_identity(column) => return Err(identity(column)),
        ColumnChange::NoIdentity { if_exists: true } if !is_identity(column) => {}
        ColumnChange::NoIdentity { .. } | ColumnChange::AlwaysGenerated(_)
            if !is_identity(column) =>
        {
            let table = schemas::own_name(table);
            let message =
                format!("column {name:?} of relation {table:?} is not an identity column");
            return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message));
        }
        ColumnChange::NoIdentity { .. } => {
            column.default = DefaultValue::None;
            column.is_always_generated = false;
        }
        ColumnChange::AlwaysGenerated(is) => column.is_always_generated = *is,
        ColumnChange::Default(_) if is_generated(column) => {
            let message = format!("column {name:?} is a generated column");
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        ColumnChange::Default(default) => {
            column.default = default.clone();
            if let Some(domain) = &mut column.domain {
                domain.gives_default = *default == DefaultValue::None;
            }
        }
        ColumnChange::Identity { start, is_always } => {
            check_takes_identity(column, table)?;
            column.default =
                DefaultValue::Key(KeyStrategy::Identity { start: *start, strict: false });
            column.is_always_generated = *is_always;
        }
        ColumnChange::Type { data_type, domain, using } => {
            if column.domain.as_ref().is_some_and(|domain| domain.gives_default) {
                column.default = DefaultValue::None;
            }
            let is_cast = is_cast_when_assigned(column.data_type, *data_type);
            let shown = values::type_name(*data_type);
            if !is_cast && using.is_none() {
                let message =
                    format!("column {name:?} cannot be cast automatically to type {shown}");
                let quoted = Ident::new(name.clone());
                return Err(SqlError::new(state::DATATYPE_MISMATCH, message)
                    .with_hint(format!("You might need to specify \"USING {quoted}::{shown}\".")));
            }
            if !is_cast && column.default != DefaultValue::None {
                let message = format!(
                    "default for column {name:?} cannot be cast automatically to type {shown}"
                );
                return Err(SqlError::new(state::DATATYPE_MISMATCH, message));
            }
            // Rows are rewritten by a thread that is of no session.
            let is_of_session = using.is_some() || is_made_by_style(column.data_type, *data_type);
            if is_of_session && *style::current() != Style::default() {
                return Err(SqlError::not_supported(
                    format!(
                        "changing {} to {data_type} in a session with a timezone or a style of output",
                        column.data_type
                    ),
                    "RESET timezone and the settings of output before.",
                ));
            }
            if is_identity(column) && (!is_whole(*data_type) || domain.is_some()) {
                let message = "identity column type must be smallint, integer, or bigint";
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
            }
            if let DefaultValue::Constant(value) = &column.default {
                let value = values::coerce(value.clone(), *data_type)?.into_owned();
                column.default = DefaultValue::Constant(value);
            }
            // Values of the new type may be what only the server can make of it.
            if let DefaultValue::Expression(computed) = &mut column.default {
                let suits = |form: &Arc<_>| PreparedDefault::new(form, *data_type).is_ok();
                computed.form = computed.form.take().filter(suits);
            }
            column.data_type = *data_type;
            let gives_default = column.default == DefaultValue::None;
            column.domain = domain.clone().map(|domain| ColumnDomain { gives_default, ..domain });
        }
    }
    Ok(())
}

/// Refuses an identity for a column that cannot be one.
fn check_takes_identity(column: &ColumnDefinition, table: &str) -> Result<()> {
    let (name, table) = (&column.name, schemas::own_name(table));
    let not_so = |what: &str| {
        let message = format!("column \"{name}\" of relation \"{table}\" {what}");
        Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message))
    };
    if !is_whole(column.data_type) || column.domain.is_some() {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
    }
    match column.default {
        _ if column.nullable => not_so("must be declared NOT NULL before identity can be added"),
        DefaultValue::Key(KeyStrategy::Identity { .. }) => not_so("is already an identity column"),
        DefaultValue::None => Ok(()),
        _ => not_so("already has a default value"),
    }
}

fn is_generated(column: &ColumnDefinition) -> bool {
    matches!(column.default, DefaultValue::Generated(_))
}

/// Whether the settings of a session say what becomes of a value of another type.
fn is_made_by_style(from: DataType, to: DataType) -> bool {
    if let (DataType::Array(from), DataType::Array(to)) = (from, to) {
        return is_made_by_style(*from, *to);
    }
    let (from, to) = (from.unrounded(), to.unrounded());
    let of_time = |of| matches!(of, DataType::Date | DataType::Timestamp | DataType::TimestampTz);
    let is_written = |of| matches!(of, DataType::Float32 | DataType::Float64 | DataType::Bytes);
    let is_moved = (from == DataType::TimestampTz) != (to == DataType::TimestampTz);
    of_time(from) && of_time(to) && is_moved
        || from == DataType::TimestampTz && to == DataType::Time
        || (of_time(from) || is_written(from)) && to.is_text()
}

fn identity(column: &ColumnDefinition) -> SqlError {
    let message = format!("column {:?} is an identity column", column.name);
    SqlError::new(state::SYNTAX_ERROR, message)
}

fn is_whole(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

/// Whether values of one type are taken in a column of another without a word: of PostgreSQL's casts those that
/// it makes itself when a value is assigned.
pub(crate) fn is_cast_when_assigned(from: DataType, to: DataType) -> bool {
    if let (DataType::Array(from), DataType::Array(to)) = (from, to) {
        return is_cast_when_assigned(*from, *to);
    }
    let (from, to) = (from.unrounded(), to.unrounded());
    let is_number = |it: DataType| {
        let is_other = matches!(it, DataType::Float32 | DataType::Float64);
        is_whole(it) || is_other || matches!(it, DataType::Decimal { .. } | DataType::Numeric(_))
    };
    let is_timestamp = |it: DataType| matches!(it, DataType::Timestamp | DataType::TimestampTz);
    let is_json = |it: DataType| matches!(it, DataType::Json | DataType::Jsonb);
    from == to
        || to.is_text()
        || (is_number(from) && is_number(to))
        || (is_timestamp(to) && (is_timestamp(from) || from == DataType::Date))
        || (is_json(from) && is_json(to))
        || (from == DataType::Time && to == DataType::Interval)
        || (from == DataType::Interval && to == DataType::Time)
}
