//! Names of tables and columns: lower case unless quoted, as in PostgreSQL.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Spanned};
use sqlparser::tokenizer::Span;

use crate::access::is_reserved;
use crate::error::{Result, SqlError, state};

/// The schema of the system views.
pub(crate) const SYSTEM_SCHEMA: &str = "onrush";

/// What a name in the place of a table means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableName {
    /// A table of the database.
    User {
        /// None: it is looked for.
        schema: Option<String>,
        table: String,
    },
    /// A view of the schema `onrush`.
    System(String),
}

/// The name as it is stored.
pub(crate) fn identifier(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// A name as it stands in SQL, in quotes where it is not a plain word.
pub(super) fn shown(name: &str) -> Ident {
    if is_plain(name) { Ident::new(name) } else { Ident::with_quote('"', name) }
}

/// Whether a name needs no quotes.
pub(crate) fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Where a name stands in the statement.
pub(super) fn span(name: &ObjectName) -> Span {
    name.0.first().map_or_else(Span::empty, Spanned::span)
}

/// The parts of a dotted name.
pub(crate) fn parts(name: &ObjectName) -> Result<Vec<String>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Ok(identifier(name)),
        other => Err(SqlError::not_supported(format!("the name {other}"), "Write the name out.")),
    };
    name.0.iter().map(part).collect()
}

/// The table that a name means.
pub(crate) fn table(name: &ObjectName) -> Result<TableName> {
    let parts = parts(name)?;
    parts.last().map_or(Ok(()), |table| check_reserved(table))?;
    match parts.as_slice() {
        [table] => Ok(TableName::User { schema: None, table: table.clone() }),
        [schema, view] if schema == SYSTEM_SCHEMA => Ok(TableName::System(view.clone())),
        [schema, table] => {
            Ok(TableName::User { schema: Some(schema.clone()), table: table.clone() })
        }
        _ => Err(SqlError::not_supported(
            format!("the name {name}"),
            "Write the schema and the table: there is one database.",
        )),
    }
}

/// Refuses the names of the server's own tables.
pub(crate) fn check_reserved(table: &str) -> Result<()> {
    if !is_reserved(table) {
        return Ok(());
    }
    let message = format!("the name {table:?} is reserved for the server");
    Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
}

/// The name of a column of a user's own, there or to be.
pub(super) fn own_column(name: &Ident) -> Result<String> {
    let name = identifier(name);
    if name != onrush::ROW_ID {
        return Ok(name);
    }
    let message = format!("the column name {name:?} is reserved for tables without a key");
    Err(SqlError::new(state::RESERVED_NAME, message))
}

/// The name of a new column of a table.
pub(super) fn new_column(name: &Ident) -> Result<String> {
    let name = own_column(name)?;
    check_new_column(&name)?;
    Ok(name)
}

/// Refuses a name that PostgreSQL gives to what it keeps beside each row.
pub(super) fn check_new_column(name: &str) -> Result<()> {
    if !matches!(name, "tableoid" | "ctid" | "xmin" | "xmax" | "cmin" | "cmax") {
        return Ok(());
    }
    let message = format!("column name {name:?} conflicts with a system column name");
    Err(SqlError::new(state::DUPLICATE_COLUMN, message))
}

/// A view of the system is where a table of the database is wanted.
pub(super) fn not_changed(view: &str) -> SqlError {
    let message = format!("onrush.{view} is a view of the system and cannot be changed");
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
}

/// A column name without a table in front.
pub(crate) fn column(name: &ObjectName) -> Result<String> {
    match <[String; 1]>::try_from(parts(name)?) {
        Ok([column]) => Ok(column),
        Err(_) => Err(SqlError::not_supported(
            format!("the column name {name}"),
            "Write the column's name alone.",
        )),
    }
}
