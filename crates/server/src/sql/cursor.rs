//! DECLARE: a query whose rows a client asks for in pieces, by statements.

use sqlparser::ast::{Declare, DeclareType};

use super::operand::Parameters;
use super::{Planner, names, select};
use crate::error::{Result, SqlError};
use crate::execute::plan::{CursorPlan, SelectPlan};

/// A query under a name.
#[derive(Clone)]
pub(crate) struct DeclarePlan {
    pub(crate) name: String,
    pub(crate) query: SelectPlan,
    /// It goes back, too.
    pub(crate) is_scroll: bool,
    /// It stays when its transaction has committed.
    pub(crate) is_held: bool,
}

/// Plans DECLARE.
pub(super) fn declare(
    planner: &Planner<'_>,
    declared: &[Declare],
    parameters: &mut Parameters,
) -> Result<CursorPlan> {
    let form = "Write DECLARE name [SCROLL] CURSOR [WITH HOLD] FOR SELECT ...";
    let [
        Declare {
            names,
            data_type: None,
            assignment: None,
            declare_type: Some(DeclareType::Cursor),
            binary,
            // Rows are those of the transaction's snapshot, whatever is said of that.
            sensitive: _,
            scroll,
            hold,
            for_query: Some(query),
        },
    ] = declared
    else {
        return Err(SqlError::not_supported("this form of DECLARE", form));
    };
    if *binary == Some(true) {
        return Err(SqlError::not_supported("DECLARE ... BINARY", form));
    }
    let [name] = names.as_slice() else {
        return Err(SqlError::not_supported("this form of DECLARE", form));
    };
    let query = select::plan(planner, query, parameters)?;
    let (is_scroll, is_held) = (*scroll == Some(true), *hold == Some(true));
    let name = names::identifier(name);
    Ok(CursorPlan::Declare(DeclarePlan { name, query, is_scroll, is_held }))
}
