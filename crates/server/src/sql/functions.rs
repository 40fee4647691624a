//! The functions that this server knows.

use onrush::KeyStrategy;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::names::{self, SYSTEM_SCHEMA};
use crate::error::{Result, SqlError, state};

/// A function, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Now,
    /// `statement_timestamp()` and `clock_timestamp()`.
    Clock,
    RandomUuid,
    /// As the default of a column: it makes the keys.
    Key(KeyStrategy),
    /// As the default of a column: keys of the node that the database is.
    OwnNodeOffset,
    /// Returns when everything that this session committed is durable.
    WaitDurable,
    Version,
    CurrentDatabase,
    CurrentUser,
    SessionUser,
    CurrentSchema,
    BackendNumber,
    /// Gives the advisory locks of the session back.
    UnlockAll,
}

/// Which function is called.
pub(crate) fn of(call: &ast::Function) -> Result<Function> {
    let mut name = names::parts(&call.name)?;
    if name.len() == 2 && (name[0] == SYSTEM_SCHEMA || name[0] == "pg_catalog") {
        name.remove(0);
    }
    let plain = call.filter.is_none() && call.over.is_none() && call.within_group.is_empty();
    let arguments = match &call.args {
        FunctionArguments::None => &[],
        FunctionArguments::List(list)
            if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            list.args.as_slice()
        }
        _ => return Err(unknown(call)),
    };
    if !plain || name.len() != 1 {
        return Err(unknown(call));
    }
    let function = match (name[0].as_str(), arguments) {
        ("now" | "current_timestamp" | "localtimestamp" | "transaction_timestamp", [])
        | ("current_date" | "current_time", []) => Function::Now,
        ("statement_timestamp" | "clock_timestamp", []) => Function::Clock,
        ("gen_random_uuid" | "uuidv4", []) => Function::RandomUuid,
        ("wait_durable", []) => Function::WaitDurable,
        ("version", []) => Function::Version,
        ("current_database" | "current_catalog", []) => Function::CurrentDatabase,
        ("current_user" | "current_role" | "user", []) => Function::CurrentUser,
        ("session_user", []) => Function::SessionUser,
        ("current_schema", []) => Function::CurrentSchema,
        ("pg_backend_pid", []) => Function::BackendNumber,
        ("pg_advisory_unlock_all", []) => Function::UnlockAll,
        ("node_offset", []) => Function::OwnNodeOffset,
        (name, arguments) => Function::Key(strategy(name, arguments).ok_or_else(|| unknown(call))?),
    };
    Ok(function)
}

/// The key generators, under their own names and those of PostgreSQL.
fn strategy(name: &str, arguments: &[FunctionArg]) -> Option<KeyStrategy> {
    let own = match name {
        "uuidv7" => "uuid-v7".to_owned(),
        other => other.replace('_', "-"),
    };
    let arguments: Option<Vec<String>> = arguments.iter().map(argument).collect();
    let arguments = arguments?.join(",");
    let written = if arguments.is_empty() { own } else { format!("{own}({arguments})") };
    written.parse().ok()
}

/// A number or a word.
fn argument(argument: &FunctionArg) -> Option<String> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => {
            Some(value.value.to_string())
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.to_string()),
        _ => None,
    }
}

fn unknown(call: &ast::Function) -> SqlError {
    SqlError::new(state::UNDEFINED_FUNCTION, format!("there is no function {call} here")).with_hint(
        "As values: now(), gen_random_uuid(), uuidv7(). As defaults of keys: uuidv7(), identity(), \
         session_offset(), node_offset(n), node_offset(), bit_reversed(), hash_prefix(), sequential_guid().",
    )
}
