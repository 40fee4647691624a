//! Errors of the engine in PostgreSQL's words: what programs read constraints and columns from.
//!
//! Where PostgreSQL has no such error the engine's own words stay.

use onrush::{DomainViolation, Error, KeyInWords, NeedsNoRows, TypeError};
use onrush_types::{ColumnName, DataType};

use super::{SqlError, is_whole_number, references, state};
use crate::{schemas, values};

/// What an error is about, in fields of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) schema: String,
    /// Empty where it is about no table.
    pub(crate) table: String,
    pub(crate) column: Option<String>,
    pub(crate) data_type: Option<String>,
    pub(crate) constraint: Option<String>,
}

impl About {
    fn table(name: &str) -> About {
        let (schema, table) = schemas::parts(name);
        let (schema, table) = (schema.to_owned(), table.to_owned());
        About { schema, table, column: None, data_type: None, constraint: None }
    }

    fn column(name: &str, column: &str) -> About {
        About { column: Some(column.to_owned()), ..About::table(name) }
    }

    /// About a domain, maybe a check of it.
    fn domain(name: &str, constraint: Option<&str>) -> About {
        let (schema, own) = schemas::parts(name);
        let (constraint, data_type) = (constraint.map(str::to_owned), Some(own.to_owned()));
        let (schema, table) = (schema.to_owned(), String::new());
        About { schema, table, column: None, data_type, constraint }
    }

    pub(crate) fn constraint(name: &str, constraint: &str) -> About {
        About { constraint: Some(constraint.to_owned()), ..About::table(name) }
    }
}

/// Says an error of the engine, whose SQLSTATE is known.
pub(super) fn told(code: &'static str, error: &Error) -> SqlError {
    match error {
        Error::Type(error) => told_of_type(code, error),
        Error::DuplicateKey { table, constraint, key } => {
            let made_up = || schemas::made_up_key_name(table);
            let constraint = constraint.as_deref().map_or_else(made_up, str::to_owned);
            unique_violated(code, table, &constraint, key)
        }
        Error::UniqueViolated { table, index, key } => {
            unique_violated(code, table, schemas::own_name(index), key)
        }
        Error::NotSerializable => {
            let message =
                "could not serialize access due to read/write dependencies among transactions";
            SqlError::new(code, message).with_hint("The transaction might succeed if retried.")
        }
        Error::UnknownIndex { name } => {
            let message = format!("index {:?} does not exist", schemas::own_name(name));
            SqlError::new(code, message)
        }
        Error::CheckViolated { table, constraint } => {
            let relation = schemas::own_name(table);
            let message = format!(
                "new row for relation {relation:?} violates check constraint {constraint:?}"
            );
            SqlError::new(code, message).about(About::constraint(table, constraint))
        }
        Error::RowsViolateCheck { table, constraint } => {
            let relation = schemas::own_name(table);
            let message = format!(
                "check constraint {constraint:?} of relation {relation:?} is violated by some row"
            );
            SqlError::new(code, message).about(About::constraint(table, constraint))
        }
        Error::DomainViolated(of) | Error::RowsViolateDomain(of) => {
            let DomainViolation { domain, constraint, .. } = &**of;
            // With its schema, unless that is `public`.
            let message = match constraint {
                Some(name) => {
                    format!("value for domain {domain} violates check constraint {name:?}")
                }
                None => format!("domain {domain} does not allow null values"),
            };
            SqlError::new(code, message).about(About::domain(domain, constraint.as_deref()))
        }
        Error::RowsHoldNull { table, column }
        | Error::RowsInTheWay { table, column, reason: NeedsNoRows::NoValue } => {
            let relation = schemas::own_name(table);
            let message =
                format!("column {column:?} of relation {relation:?} contains null values");
            SqlError::new(code, message).about(About::column(table, column))
        }
        Error::UnknownTable { name } => {
            SqlError::new(code, format!("relation \"{name}\" does not exist"))
        }
        Error::TableExists { name } => {
            let message = format!("relation {:?} already exists", schemas::own_name(name));
            SqlError::new(code, message)
        }
        Error::Deadlock { .. } => {
            SqlError::new(code, "deadlock detected").with_hint(error.to_string())
        }
        other => {
            references::told(code, other).unwrap_or_else(|| SqlError::new(code, other.to_string()))
        }
    }
}

fn unique_violated(
    code: &'static str,
    table: &str,
    constraint: &str,
    key: &KeyInWords,
) -> SqlError {
    let message = format!("duplicate key value violates unique constraint {constraint:?}");
    SqlError::new(code, message)
        .with_detail(format!("Key {} already exists.", key_and_values(key)))
        .about(About::constraint(table, constraint))
}

/// A key as PostgreSQL writes it.
pub(crate) fn key_and_values(key: &KeyInWords) -> String {
    let (columns, values): (Vec<&str>, Vec<&str>) =
        key.0.iter().map(|(column, value)| (column.as_str(), value.as_str())).unzip();
    format!("({})=({})", columns.join(", "), values.join(", "))
}

fn told_of_type(code: &'static str, error: &TypeError) -> SqlError {
    match error {
        TypeError::UsedByGenerated { column, generated } => {
            let table = schemas::own_name(&column.table);
            let (column, generated) = (&column.column, &generated.column);
            let message = format!(
                "cannot drop column {column} of table {table} because other objects depend on it"
            );
            let detail = format!(
                "column {generated} of table {table} depends on column {column} of table {table}"
            );
            SqlError::new(code, message)
                .with_detail(detail)
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
        }
        TypeError::NullValue(name) | TypeError::MissingValue(name) => {
            let (table, column) = (&name.table, &name.column);
            let relation = schemas::own_name(table);
            let message = format!(
                "null value in column {column:?} of relation {relation:?} violates not-null constraint"
            );
            SqlError::new(code, message).about(About::column(table, column))
        }
        TypeError::InColumn { cause, .. } => told_of_type(code, cause),
        TypeError::OutOfRange { data_type, reason, .. } if data_type.is_text() => {
            too_long(code, *data_type).with_hint(reason.to_string())
        }
        TypeError::BadText { data_type, reason, .. } if data_type.is_text() => {
            too_long(code, *data_type).with_hint(reason.to_string())
        }
        TypeError::BadText { text, data_type, reason } => {
            let name = values::type_name(*data_type);
            let message = match code {
                state::NUMERIC_OUT_OF_RANGE if is_whole_number(text) => {
                    format!("value \"{text}\" is out of range for type {name}")
                }
                state::NUMERIC_OUT_OF_RANGE => {
                    format!("\"{text}\" is out of range for type {name}")
                }
                _ => format!("invalid input syntax for type {name}: \"{text}\""),
            };
            SqlError::new(code, message).with_hint(reason.to_string())
        }
        TypeError::UnknownColumn { name, known } => {
            SqlError::new(code, format!("column {} does not exist", of_relation(name)))
                .with_hint(format!("The columns are: {known}."))
        }
        TypeError::DuplicateColumn(name) => {
            SqlError::new(code, format!("column {} already exists", of_relation(name)))
        }
        TypeError::UnknownCheck { table, name } => {
            let relation = schemas::own_name(table);
            let message = format!("constraint {name:?} of relation {relation:?} does not exist");
            SqlError::new(code, message)
        }
        TypeError::DuplicateCheck { table, name } => {
            let relation = schemas::own_name(table);
            let message = format!("constraint {name:?} for relation {relation:?} already exists");
            SqlError::new(code, message)
        }
        TypeError::ImpossibleDataType { text, reason } if reason.contains("10485760") => {
            let message = match text.contains("(0)") {
                true => "length for type varchar must be at least 1",
                false => "length for type varchar cannot exceed 10485760",
            };
            SqlError::new(state::INVALID_PARAMETER_VALUE, message)
        }
        other => SqlError::new(code, other.to_string()),
    }
}

fn too_long(code: &'static str, data_type: DataType) -> SqlError {
    SqlError::new(code, format!("value too long for type {}", values::type_name(data_type)))
}

fn of_relation(name: &ColumnName) -> String {
    format!("{:?} of relation {:?}", name.column, schemas::own_name(&name.table))
}
