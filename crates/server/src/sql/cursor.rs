//! DECLARE: a query whose rows a client asks for in pieces, by statements.

use std::sync::Arc;

use sqlparser::ast::{Declare, DeclareType};

use super::locking::{self, KeyedRows};
use super::operand::Parameters;
use super::{Planner, names, select};
use crate::error::{Result, SqlError};
use crate::execute::plan::{CursorPlan, SelectPlan};

/// A query under a name.
#[derive(Clone)]
pub(crate) struct DeclarePlan {
    pub(crate) name: String,
    pub(crate) query: SelectPlan,
    /// None where its rows are no rows of tables.
    pub(crate) keyed: Option<Arc<KeyedRows>>,
    pub(crate) scroll: Scroll,
    /// It stays when its transaction has committed.
    pub(crate) is_held: bool,
}

/// Whether a cursor goes back, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// NO SCROLL.
    Never,
    /// Nothing is said of it: as long as few rows have come.
    WhileShort,
    /// SCROLL.
    Always,
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
    let (query, keyed) = match locking::plan_keyed(planner, query, parameters)? {
        Some((plan, keyed)) => (plan, Some(Arc::new(keyed))),
        None => (select::plan(planner, query, parameters)?, None),
    };
    let scroll = match scroll {
        Some(true) => Scroll::Always,
        Some(false) => Scroll::Never,
        None => Scroll::WhileShort,
    };
    let is_held = *hold == Some(true);
    let name = names::identifier(name);
    Ok(CursorPlan::Declare(DeclarePlan { name, query, keyed, scroll, is_held }))
}
