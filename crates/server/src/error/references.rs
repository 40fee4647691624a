//! Errors of foreign keys in PostgreSQL's words.

use onrush::Error;

use super::SqlError;
use super::postgresql::{About, key_and_values};
use crate::{schemas, values};

/// Says an error of foreign keys, whose SQLSTATE is known; none if it is another one.
pub(super) fn told(code: &'static str, error: &Error) -> Option<SqlError> {
    Some(match error {
        Error::ReferenceMissing { table, constraint, key, referenced } => {
            let (own, of) = (schemas::own_name(table), schemas::own_name(referenced));
            let message = format!(
                "insert or update on table {own:?} violates foreign key constraint {constraint:?}"
            );
            let key = key_and_values(key);
            SqlError::new(code, message)
                .with_detail(format!("Key {key} is not present in table {of:?}."))
                .about(About::constraint(table, constraint))
        }
        Error::ReferenceMixed { table, constraint } => {
            let own = schemas::own_name(table);
            let message = format!(
                "insert or update on table {own:?} violates foreign key constraint {constraint:?}"
            );
            SqlError::new(code, message)
                .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
                .about(About::constraint(table, constraint))
        }
        Error::StillReferenced { table, constraint, key, referencing } => {
            let (own, by) = (schemas::own_name(table), schemas::own_name(referencing));
            let message = format!(
                "update or delete on table {own:?} violates foreign key constraint {constraint:?} on table {by:?}"
            );
            let key = key_and_values(key);
            SqlError::new(code, message)
                .with_detail(format!("Key {key} is still referenced from table {by:?}."))
                .about(About::constraint(referencing, constraint))
        }
        Error::ReferenceTypes { constraint, column, data_type, referenced, referenced_type } => {
            let (one, other) = (values::type_name(*data_type), values::type_name(*referenced_type));
            let message = format!("foreign key constraint {constraint:?} cannot be implemented");
            SqlError::new(code, message).with_detail(format!(
                "Key columns {column:?} and {referenced:?} are of incompatible types: {one} and {other}."
            ))
        }
        _ => return None,
    })
}
