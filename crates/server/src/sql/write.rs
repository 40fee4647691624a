//! UPDATE and DELETE of the row with a key.

use onrush::{Database, Table};
use sqlparser::ast::{
    self, AssignmentTarget, Delete, Expr, FromTable, TableFactor, TableWithJoins, Update,
};

use super::condition::{self, Operator};
use super::names;
use super::operand::{Operand, Parameters};
use super::plan::{self, Plan};
use super::select::{OutputColumn, returning};
use crate::error::{Result, SqlError, state};

/// Where the new value of a column comes from.
#[derive(Clone, Debug)]
pub(crate) enum NewValue {
    Given(Operand),
    /// The same statement's row that was to be inserted, by position.
    Excluded(usize),
}

/// A column, by position, and its new value.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) column: usize,
    pub(crate) value: NewValue,
}

/// An UPDATE of one row.
#[derive(Clone)]
pub(crate) struct UpdatePlan {
    pub(crate) table: Table,
    /// A value for each column of the key, in key order.
    pub(crate) key: Vec<Operand>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) returning: Option<Vec<OutputColumn>>,
}

/// A DELETE of one row.
#[derive(Clone)]
pub(crate) struct DeletePlan {
    pub(crate) table: Table,
    /// A value for each column of the key, in key order.
    pub(crate) key: Vec<Operand>,
    pub(crate) returning: Option<Vec<OutputColumn>>,
}

const BY_KEY: &str = "Give a value for each column of the primary key, joined by AND.";

/// Plans an UPDATE.
pub(super) fn update(
    database: &Database,
    statement: &Update,
    parameters: &mut Parameters,
) -> Result<Plan> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments: given,
        from,
        selection,
        returning: returned,
        output,
        or,
        order_by,
        limit,
    } = statement;
    if from.is_some() || output.is_some() || or.is_some() || !order_by.is_empty() || limit.is_some()
    {
        return Err(SqlError::not_supported(
            "this form of UPDATE",
            "Write UPDATE table SET column = value WHERE key = value.",
        ));
    }
    let table = plan::table(database, &changed_table(table)?)?;
    let key = key_of(&table, selection.as_ref(), "UPDATE", parameters)?;
    let assignments = assignments(&table, given, false, parameters)?;
    let returning = returning(&table, returned.as_deref())?;
    Ok(Plan::Update(UpdatePlan { table, key, assignments, returning }))
}

/// Plans a DELETE.
pub(super) fn delete(
    database: &Database,
    statement: &Delete,
    parameters: &mut Parameters,
) -> Result<Plan> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection,
        returning: returned,
        output,
        order_by,
        limit,
    } = statement;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let plain = tables.is_empty() && using.is_none() && output.is_none() && order_by.is_empty();
    let [table] = from.as_slice() else {
        return Err(SqlError::not_supported("DELETE from several tables", BY_KEY));
    };
    if !plain || limit.is_some() {
        return Err(SqlError::not_supported(
            "this form of DELETE",
            "Write DELETE FROM table WHERE key = value.",
        ));
    }
    let table = plan::table(database, &changed_table(table)?)?;
    let key = key_of(&table, selection.as_ref(), "DELETE", parameters)?;
    let returning = returning(&table, returned.as_deref())?;
    Ok(Plan::Delete(DeletePlan { table, key, returning }))
}

fn changed_table(table: &TableWithJoins) -> Result<String> {
    match &table.relation {
        TableFactor::Table { name, alias: None, .. } if table.joins.is_empty() => {
            names::user_table(name)
        }
        other => Err(SqlError::not_supported(other, "Name one table, without an alias.")),
    }
}

/// The whole key, from `a = 1 AND b = 2`.
fn key_of(
    table: &Table,
    selection: Option<&Expr>,
    verb: &str,
    parameters: &mut Parameters,
) -> Result<Vec<Operand>> {
    let definition = table.definition();
    let not_by_key =
        || SqlError::not_supported(format!("{verb} of other than one row by its key"), BY_KEY);
    let Some(selection) = selection else {
        let instead = if verb == "DELETE" { "Use TRUNCATE to remove all rows." } else { BY_KEY };
        return Err(SqlError::not_supported(format!("{verb} of all rows"), instead));
    };
    let columns = condition::TableColumns(definition);
    let mut comparisons = condition::conjunction(&columns, selection, parameters)?;
    let mut key = Vec::new();
    for column in definition.primary_key() {
        let found = comparisons.iter().position(|comparison| {
            comparison.column == *column && comparison.operator == Operator::Equal
        });
        key.push(comparisons.swap_remove(found.ok_or_else(not_by_key)?).operand);
    }
    if comparisons.is_empty() { Ok(key) } else { Err(not_by_key()) }
}

/// `SET column = value`; with `has_excluded`, `EXCLUDED.column` too.
pub(super) fn assignments(
    table: &Table,
    given: &[ast::Assignment],
    has_excluded: bool,
    parameters: &mut Parameters,
) -> Result<Vec<Assignment>> {
    let definition = table.definition();
    let mut assignments: Vec<Assignment> = Vec::with_capacity(given.len());
    for assignment in given {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(SqlError::not_supported(assignment, "Set one column at a time."));
        };
        let column = definition.column_index(&names::column(name)?)?;
        if assignments.iter().any(|earlier| earlier.column == column) {
            let message = format!("column {name} is set more than once");
            return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
        }
        let value = match excluded(&assignment.value) {
            Some(other) if has_excluded => NewValue::Excluded(definition.column_index(&other)?),
            _ => {
                let data_type = definition.columns()[column].data_type;
                NewValue::Given(Operand::new(&assignment.value, data_type, parameters)?)
            }
        };
        assignments.push(Assignment { column, value });
    }
    Ok(assignments)
}

fn excluded(value: &Expr) -> Option<String> {
    match value {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] if names::identifier(table) == "excluded" => {
                Some(names::identifier(column))
            }
            _ => None,
        },
        _ => None,
    }
}
