//! INSERT, UPDATE, DELETE and COPY, and the queries that take a short way.

use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, CopySource, CopyTarget, Delete, DoUpdate,
    FromTable, Insert, OnConflict, OnConflictAction, OnInsert, Query, Statement,
    TableAliasWithoutColumns, TableObject, Update, UpdateTableFromKind,
};

use super::none;
use crate::error::Result;
use crate::sql::Planner;

/// What there is of INSERT.
const INSERT: &str = "Write INSERT INTO table (columns) VALUES (...) or a query [ON CONFLICT ...] \
                      [RETURNING ...].";
const UPDATE: &str =
    "Write UPDATE table SET column = value [FROM ...] WHERE condition [RETURNING ...].";
const DELETE: &str = "Write DELETE FROM table [USING ...] WHERE condition [RETURNING ...].";

pub(super) fn check_insert(insert: &Insert) -> Result<()> {
    let Insert {
        insert_token: _token,
        optimizer_hints: _comments,
        or,
        ignore,
        into: _spelling,
        table,
        table_alias,
        columns: _are_taken,
        overwrite,
        source: _is_taken,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on,
        returning: _returning_is_taken,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    none(or.is_some(), "INSERT OR", INSERT)?;
    none(*ignore, "INSERT IGNORE", "Write ON CONFLICT DO NOTHING.")?;
    match table {
        TableObject::TableName(_is_taken) => {}
        TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
            none(true, "INSERT into what is no table", INSERT)?;
        }
    }
    if let Some(TableAliasWithoutColumns { explicit: _spelling, alias: _is_taken }) = table_alias {}
    none(*overwrite, "INSERT OVERWRITE", INSERT)?;
    none(!assignments.is_empty(), "INSERT ... SET", INSERT)?;
    none(partitioned.is_some() || !after_columns.is_empty(), "INSERT ... PARTITION", INSERT)?;
    none(*has_table_keyword, "INSERT INTO TABLE", INSERT)?;
    match on {
        None => {}
        Some(OnInsert::OnConflict(conflict)) => check_conflict(conflict)?,
        Some(OnInsert::DuplicateKeyUpdate(_)) => {
            none(true, "ON DUPLICATE KEY", "Write ON CONFLICT.")?;
        }
        Some(_) => none(true, "this form of ON", "Write ON CONFLICT.")?,
    }
    none(output.is_some(), "OUTPUT", "Write RETURNING.")?;
    none(*replace_into, "REPLACE INTO", "Write ON CONFLICT ... DO UPDATE.")?;
    none(priority.is_some(), "a priority of INSERT", INSERT)?;
    none(insert_alias.is_some(), "a name of the new row", "It is called excluded.")?;
    none(settings.is_some(), "SETTINGS", INSERT)?;
    none(format_clause.is_some(), "FORMAT", INSERT)?;
    let is_of_many = multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    none(is_of_many, "INSERT into several tables", INSERT)
}

fn check_conflict(conflict: &OnConflict) -> Result<()> {
    let OnConflict { conflict_target, action } = conflict;
    match conflict_target {
        // The planner refuses the name of a constraint.
        None | Some(ConflictTarget::Columns(_) | ConflictTarget::OnConstraint(_)) => {}
    }
    match action {
        OnConflictAction::DoNothing => Ok(()),
        OnConflictAction::DoUpdate(DoUpdate { assignments, selection: _is_taken }) => {
            assignments.iter().try_for_each(check_assignment)
        }
    }
}

fn check_assignment(assignment: &Assignment) -> Result<()> {
    let Assignment { target, value: _is_taken } = assignment;
    match target {
        AssignmentTarget::ColumnName(_is_taken) => Ok(()),
        AssignmentTarget::Tuple(_are_taken) => Ok(()),
    }
}

pub(super) fn check_update(update: &Update) -> Result<()> {
    let Update {
        update_token: _token,
        optimizer_hints: _comments,
        // Is looked at with what stands in FROM.
        table: _is_taken,
        assignments,
        from,
        selection: _selection_is_taken,
        returning: _returning_is_taken,
        output,
        or,
        order_by,
        limit,
    } = update;
    assignments.iter().try_for_each(check_assignment)?;
    match from {
        None | Some(UpdateTableFromKind::AfterSet(_)) => {}
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            none(true, "UPDATE ... FROM in front of SET", UPDATE)?;
        }
    }
    none(output.is_some(), "OUTPUT", "Write RETURNING.")?;
    none(or.is_some(), "UPDATE OR", UPDATE)?;
    none(!order_by.is_empty(), "ORDER BY of UPDATE", UPDATE)?;
    none(limit.is_some(), "LIMIT of UPDATE", UPDATE)
}

pub(super) fn check_delete(delete: &Delete) -> Result<()> {
    let Delete {
        delete_token: _token,
        optimizer_hints: _comments,
        tables,
        from,
        using: _is_taken,
        selection: _selection_is_taken,
        returning: _returning_is_taken,
        output,
        order_by,
        limit,
    } = delete;
    none(!tables.is_empty(), "DELETE from several tables", DELETE)?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    none(from.len() != 1, "DELETE from several tables", DELETE)?;
    none(output.is_some(), "OUTPUT", "Write RETURNING.")?;
    none(!order_by.is_empty(), "ORDER BY of DELETE", DELETE)?;
    none(limit.is_some(), "LIMIT of DELETE", DELETE)
}

/// The part of a statement in front of INSERT, UPDATE or DELETE.
pub(super) fn check_with(planner: &Planner<'_>, query: &Query) -> Result<()> {
    let Query {
        with,
        body: _is_checked_by_itself,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let instead = "Write WITH ... and then the statement.";
    none(order_by.is_some(), "ORDER BY behind a statement that writes", instead)?;
    none(limit_clause.is_some(), "LIMIT behind a statement that writes", instead)?;
    none(fetch.is_some(), "FETCH behind a statement that writes", instead)?;
    none(!locks.is_empty(), "FOR UPDATE behind a statement that writes", instead)?;
    none(for_clause.is_some(), "FOR XML and FOR JSON", instead)?;
    none(settings.is_some(), "SETTINGS", instead)?;
    none(format_clause.is_some(), "FORMAT", instead)?;
    none(!pipe_operators.is_empty(), "the operator |>", instead)?;
    match with {
        Some(with) => Ok(planner.queries.check_clauses(with)?),
        None => Ok(()),
    }
}

pub(super) fn check_copy(statement: &Statement) -> Result<()> {
    let Statement::Copy {
        source,
        to: _is_taken,
        target,
        options: _are_taken_one_by_one,
        legacy_options: _too,
        values,
    } = statement
    else {
        return Ok(());
    };
    match source {
        CopySource::Table { table_name: _is_taken, columns: _are_taken } => {}
        // The planner refuses it.
        CopySource::Query(_) => {}
    }
    match target {
        CopyTarget::Stdin | CopyTarget::Stdout => {}
        // The planner refuses them.
        CopyTarget::File { filename: _ } | CopyTarget::Program { command: _ } => {}
    }
    // pg_restore ends the line, which is no row.
    let is_row = |value: &Option<String>| value.as_ref().is_none_or(|text| !text.is_empty());
    let has_rows = values.iter().any(is_row);
    none(has_rows, "COPY with its rows behind it", "Send them as the protocol says.")
}
