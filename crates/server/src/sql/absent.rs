//! DROP of what there is none of here: views, sequences, and indexes but those of keys. With IF
//! EXISTS it is done, which is what scripts that make a database anew want.

use sqlparser::ast::{ObjectName, ObjectType};

use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::schemas;

/// The answer's tag, what to call it, and the SQLSTATE of one that is missing.
fn kind(object_type: ObjectType) -> (&'static str, &'static str, &'static str) {
    match object_type {
        ObjectType::MaterializedView => {
            ("DROP MATERIALIZED VIEW", "materialized view", state::UNDEFINED_TABLE)
        }
        ObjectType::Sequence => ("DROP SEQUENCE", "sequence", state::UNDEFINED_TABLE),
        ObjectType::Index => ("DROP INDEX", "index", state::UNDEFINED_OBJECT),
        _ => ("DROP VIEW", "view", state::UNDEFINED_TABLE),
    }
}

/// Plans a DROP of one of these.
pub(super) fn drop(
    planner: &Planner<'_>,
    object_type: ObjectType,
    if_exists: bool,
    given: &[ObjectName],
) -> Result<DefinitionPlan> {
    let (tag, what, code) = kind(object_type);
    let mut missing = Vec::with_capacity(given.len());
    for name in given {
        if object_type == ObjectType::Index {
            check_is_no_key(planner, name)?;
        } else {
            check_is_no_table(planner, name, what)?;
        }
        let message = format!("{what} {:?} does not exist", names::parts(name)?.join("."));
        if !if_exists {
            return Err(SqlError::new(code, message));
        }
        missing.push(SqlError::new(code, format!("{message}, skipping")).warning());
    }
    Ok(DefinitionPlan::DropNothing { tag, missing })
}

fn check_is_no_table(planner: &Planner<'_>, name: &ObjectName, what: &str) -> Result<()> {
    let table = planner.lookup().table_that_may_be(name, true)?;
    if planner.seen.table(&table).is_err() {
        return Ok(());
    }
    Err(SqlError::new(state::WRONG_OBJECT_TYPE, format!("{name} is not a {what}"))
        .with_hint("DROP TABLE drops a table."))
}

/// An index is called as its table, with `_pkey` behind.
fn check_is_no_key(planner: &Planner<'_>, name: &ObjectName) -> Result<()> {
    let own = names::parts(name)?.pop().unwrap_or_default();
    let Some(table) = own.strip_suffix("_pkey") else { return Ok(()) };
    if !planner.seen.names().iter().any(|known| schemas::own_name(known) == table) {
        return Ok(());
    }
    let message =
        format!("cannot drop index {name} because the primary key of {table} requires it");
    Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_hint("The primary key orders the rows; it goes with the table."))
}
