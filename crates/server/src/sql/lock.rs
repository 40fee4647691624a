//! LOCK TABLE: PostgreSQL's eight modes by what they keep others from, here three.

use onrush::Table;
use sqlparser::ast::{Lock, LockTableMode, ObjectName};

use super::{Planner, plan, sequence};
use crate::error::{Result, SqlError};
use crate::execute::plan::DefinitionPlan;

/// What others may not do to a table until the transaction is over. They read it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLock {
    /// Define it.
    Share,
    /// Define it, or lock it like that.
    Definition,
    /// Write to it, either.
    Whole,
}

/// Tables that are to be locked.
#[derive(Clone)]
pub(crate) struct LockPlan {
    pub(crate) tables: Vec<Table>,
    pub(crate) lock: TableLock,
    /// It is for reading only.
    pub(crate) is_to_read: bool,
    /// Whoever is in the way is not waited for.
    pub(crate) is_impatient: bool,
}

/// Plans LOCK TABLE.
pub(super) fn plan(planner: &Planner<'_>, statement: &Lock) -> Result<DefinitionPlan> {
    // A table has no others below it, so that ONLY and * say nothing.
    let tables = statement.tables.iter().map(|target| lock_table(planner, &target.name));
    let mode = statement.lock_mode.as_ref().unwrap_or(&LockTableMode::AccessExclusive);
    let lock = match mode {
        LockTableMode::AccessShare | LockTableMode::RowShare | LockTableMode::RowExclusive => {
            TableLock::Share
        }
        LockTableMode::ShareUpdateExclusive => TableLock::Definition,
        LockTableMode::Share
        | LockTableMode::ShareRowExclusive
        | LockTableMode::Exclusive
        | LockTableMode::AccessExclusive => TableLock::Whole,
    };
    Ok(DefinitionPlan::Lock(LockPlan {
        tables: tables.collect::<Result<_>>()?,
        lock,
        is_to_read: *mode == LockTableMode::AccessShare,
        is_impatient: statement.nowait,
    }))
}

fn lock_table(planner: &Planner<'_>, name: &ObjectName) -> Result<Table> {
    let table = plan::relation_named(planner, name)?;
    if table.definition().view().is_some() {
        return Err(SqlError::not_supported(
            "LOCK TABLE of a view",
            "Lock the tables that it reads.",
        ));
    }
    sequence::check_is_table(planner, table.name(), |name| {
        format!("cannot lock relation {name:?}")
    })?;
    Ok(table)
}
