//! EXPLAIN: which way a statement takes, and how a query would be done.

use sqlparser::ast::{Expr, Statement, UtilityOption};

use super::operand::Parameters;
use super::{Planner, names, plan};
use crate::error::{Result, SqlError};
use crate::execute::plan::{Explained, Plan, RowsPlan};

/// What there is of EXPLAIN.
const FORMS: &str = "Write EXPLAIN or EXPLAIN ANALYZE, which answer as text.";

/// Plans an EXPLAIN.
pub(super) fn plan(
    planner: &Planner<'_>,
    statement: &Statement,
    parameters: &mut Parameters,
) -> Result<RowsPlan> {
    let Statement::Explain {
        describe_alias: _,
        analyze,
        verbose: false,
        query_plan: false,
        estimate: false,
        statement,
        format: None,
        options,
    } = statement
    else {
        return Err(SqlError::not_supported("this form of EXPLAIN", FORMS));
    };
    let mut analyze = *analyze;
    for option in options.iter().flatten() {
        analyze |= is_analyze(option)?;
    }
    let explained = match plan::plan(planner, statement, parameters)? {
        Plan::Rows(RowsPlan::Select(select)) => Explained::Select(select),
        Plan::Rows(RowsPlan::Write(_)) if analyze => {
            return Err(SqlError::not_supported(
                "EXPLAIN ANALYZE of a statement that writes",
                "EXPLAIN it, or EXPLAIN ANALYZE the SELECT that finds the rows.",
            ));
        }
        Plan::Rows(RowsPlan::Write(write)) => Explained::Write(Box::new(write)),
        _ => {
            return Err(SqlError::not_supported(
                "EXPLAIN of this statement",
                "EXPLAIN a SELECT, INSERT, UPDATE or DELETE.",
            ));
        }
    };
    Ok(RowsPlan::Explain(explained, analyze))
}

/// Reads an option in parentheses: whether it says ANALYZE. Those that would say more than there is
/// may be off.
fn is_analyze(option: &UtilityOption) -> Result<bool> {
    let given = match &option.arg {
        None => "true".to_owned(),
        Some(Expr::Identifier(word)) => names::identifier(word),
        Some(other) => other.to_string().trim_matches('\'').to_lowercase(),
    };
    let is_on = match given.as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    };
    match (names::identifier(&option.name).as_str(), is_on) {
        ("analyze", Some(is_on)) => Ok(is_on),
        (
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary",
            Some(false),
        ) => Ok(false),
        ("format", _) if given == "text" => Ok(false),
        _ => Err(SqlError::not_supported(format!("EXPLAIN ({option})"), FORMS)),
    }
}
