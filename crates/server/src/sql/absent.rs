//! DROP of what there is none of here: materialized views. With IF EXISTS it is done, which is what scripts that make
//! a database anew want.

use sqlparser::ast::ObjectName;

use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;

/// Plans a DROP MATERIALIZED VIEW.
pub(super) fn drop(
    planner: &Planner<'_>,
    if_exists: bool,
    given: &[ObjectName],
) -> Result<DefinitionPlan> {
    let (tag, what, code) = ("DROP MATERIALIZED VIEW", "materialized view", state::UNDEFINED_TABLE);
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
