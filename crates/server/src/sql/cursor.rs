//! DECLARE, FETCH and CLOSE: a query whose rows a client asks for in pieces, by statements.

use sqlparser::ast::{Declare, DeclareType, FetchDirection, Ident, Value};

use super::operand::Parameters;
use super::{Planner, names, select};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::{CursorPlan, SelectPlan};

/// A query under a name.
#[derive(Clone)]
pub(crate) struct DeclarePlan {
    pub(crate) name: String,
    pub(crate) query: SelectPlan,
}

/// The next rows of a cursor.
#[derive(Clone)]
pub(crate) struct FetchPlan {
    pub(crate) name: String,
    /// None: all that there are.
    pub(crate) rows_max: Option<u64>,
}

/// Plans DECLARE.
pub(super) fn declare(
    planner: &Planner<'_>,
    declared: &[Declare],
    parameters: &mut Parameters,
) -> Result<CursorPlan> {
    let form = "Write DECLARE name CURSOR FOR SELECT ...";
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
    for (is_wanted, word) in [(binary, "BINARY"), (scroll, "SCROLL"), (hold, "WITH HOLD")] {
        if *is_wanted == Some(true) {
            return Err(SqlError::not_supported(format!("DECLARE ... {word}"), form));
        }
    }
    let [name] = names.as_slice() else {
        return Err(SqlError::not_supported("this form of DECLARE", form));
    };
    let query = select::plan(planner, query, parameters)?;
    Ok(CursorPlan::Declare(DeclarePlan { name: names::identifier(name), query }))
}

/// Plans FETCH.
pub(super) fn fetch(name: &Ident, direction: &FetchDirection) -> Result<CursorPlan> {
    let rows_max = match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(1),
        FetchDirection::All | FetchDirection::ForwardAll => None,
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            Some(count(&limit.value)?)
        }
        _ => return Err(only_forward()),
    };
    Ok(CursorPlan::Fetch(FetchPlan { name: names::identifier(name), rows_max }))
}

fn count(written: &Value) -> Result<u64> {
    let count = match written {
        Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    };
    count.filter(|count| *count > 0).ok_or_else(only_forward)
}

fn only_forward() -> SqlError {
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
        .with_hint("There are FETCH [NEXT], FETCH [FORWARD] with a count from 1 on, and FETCH ALL.")
}
