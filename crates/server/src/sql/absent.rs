//! DROP of what there is none of here: views. With IF EXISTS it is done, which is what scripts that make
//! a database anew want.

use sqlparser::ast::{ObjectName, ObjectType};

use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;

/// The answer's tag, what to call it, and the SQLSTATE of one that is missing.
fn kind(object_type: ObjectType) -> (&'static str, &'static str, &'static str) {
    match object_type {
        ObjectType::MaterializedView => {
            ("DROP MATERIALIZED VIEW", "materialized view", state::UNDEFINED_TABLE)
        }
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
        check_is_no_table(planner, name, what)?;
        let message = format!("{what} {:?} does not exist", names::parts(name)?.join("."));
        if !if_exists {
            return Err(SqlError::new(code, message));
        }
        missing.push(SqlError::new(code, format!("{message}, skipping")).notice());
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
