//! ALTER TABLE: columns added, dropped and renamed, and tables renamed.

use onrush::TableChange;
use sqlparser::ast::{AlterTable, AlterTableOperation, RenameTableNameKind};

use super::create;
use super::names::{self, TableName};
use super::plan::Plan;
use crate::error::{Result, SqlError, state};

/// A table to be altered.
#[derive(Clone, Debug)]
pub(crate) struct AlterPlan {
    pub(crate) table: String,
    /// It need not be there.
    pub(crate) if_exists: bool,
    pub(crate) changes: Vec<PlannedChange>,
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct PlannedChange {
    pub(crate) change: TableChange,
    /// `IF EXISTS` or `IF NOT EXISTS`: nothing is done where there is nothing to do.
    pub(crate) if_needed: bool,
}

/// Plans an ALTER TABLE.
pub(super) fn plan(statement: &AlterTable) -> Result<Plan> {
    let AlterTable {
        name, if_exists, only: _, operations, location, on_cluster, table_type, ..
    } = statement;
    if location.is_some() || on_cluster.is_some() || table_type.is_some() {
        return Err(SqlError::not_supported(statement, FORMS));
    }
    let table = names::user_table(name)?;
    let changes = operations.iter().map(|operation| change(&table, operation));
    let changes = changes.collect::<Result<Vec<Vec<PlannedChange>>>>()?.concat();
    Ok(Plan::AlterTable(AlterPlan { table, if_exists: *if_exists, changes }))
}

/// What there is of ALTER TABLE.
const FORMS: &str = "There are ADD COLUMN, DROP COLUMN, RENAME COLUMN and RENAME TO; for all else \
                     create a new table and INSERT ... SELECT the rows.";

fn change(table: &str, operation: &AlterTableOperation) -> Result<Vec<PlannedChange>> {
    let one = |change, if_needed| Ok(vec![PlannedChange { change, if_needed }]);
    match operation {
        AlterTableOperation::AddColumn {
            if_not_exists, column_def, column_position: None, ..
        } => {
            let (column, is_key) = create::column_of(column_def, false)?;
            if is_key {
                let message = format!("table {table} has a primary key already");
                return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message));
            }
            one(TableChange::AddColumn(column), *if_not_exists)
        }
        AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
            let drop = |name| PlannedChange {
                change: TableChange::DropColumn { name: names::identifier(name) },
                if_needed: *if_exists,
            };
            Ok(column_names.iter().map(drop).collect())
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            let (from, to) =
                (names::identifier(old_column_name), names::identifier(new_column_name));
            one(TableChange::RenameColumn { from, to }, false)
        }
        AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) } => {
            match (name.0.len(), names::table(name)?) {
                (1, TableName::User(to)) => one(TableChange::Rename { to }, false),
                _ => Err(SqlError::new(state::SYNTAX_ERROR, "a new name has no schema in front")),
            }
        }
        other => Err(SqlError::not_supported(format!("ALTER TABLE ... {other}"), FORMS)),
    }
}
