//! Queries that the query engine runs: the tables that they read, and the types of parameters.

use std::sync::Arc;

use onrush::{DataType, Table, ViewDefinition, ViewRows};
use onrush_query::Query;
use sqlparser::ast;

use super::Planner;
use super::computed::{output_columns, read_as};
use super::operand::Parameters;
use super::relations::{Known, ReadTable};
use super::select::OutputColumn;
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::seen::Seen;

/// A query, ready to run.
pub(crate) struct QueryPlan {
    pub(crate) query: Query,
    pub(crate) columns: Arc<[OutputColumn]>,
    /// What each parameter is read as.
    pub(crate) parameters: Vec<DataType>,
    /// The tables that it reads, those that views read, too.
    tables: Vec<ReadTable>,
}

impl QueryPlan {
    pub(crate) fn new(
        planner: &Planner<'_>,
        query: ast::Query,
        parameters: &mut Parameters,
    ) -> Result<QueryPlan> {
        QueryPlan::of_rows_of(planner, &[], query, parameters)
    }

    /// The query of a view.
    pub(super) fn of_view(planner: &Planner<'_>, view: &ViewDefinition) -> Result<QueryPlan> {
        let relations = Known::new(planner, &[]);
        let query = tokio::task::block_in_place(|| relations.query_of(view))?;
        let columns = output_columns(query.columns());
        Ok(QueryPlan { query, columns, parameters: Vec::new(), tables: relations.into_tables() })
    }

    /// A query that finds rows of `changed`, and so has its row ids beside the columns.
    pub(super) fn of_rows(
        planner: &Planner<'_>,
        changed: &Table,
        query: ast::Query,
        parameters: &mut Parameters,
    ) -> Result<QueryPlan> {
        QueryPlan::of_rows_of(planner, &[changed.name()], query, parameters)
    }

    /// As [`of_rows`](Self::of_rows), of several tables.
    pub(super) fn of_rows_of(
        planner: &Planner<'_>,
        changed: &[&str],
        query: ast::Query,
        parameters: &mut Parameters,
    ) -> Result<QueryPlan> {
        let relations = Known::of_query(planner, changed, &query);
        // A large query takes long to plan, and this thread has other clients.
        let plan = || planner.queries.plan(query, &relations, &parameters.column_types());
        let query = tokio::task::block_in_place(plan)?;
        let read_as = read_as(parameters, query.parameters())?;
        let columns = output_columns(query.columns());
        Ok(QueryPlan { query, columns, parameters: read_as, tables: relations.into_tables() })
    }

    /// The tables that who runs it needs the right to read.
    pub(crate) fn asked_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|read| read.is_asked).map(|read| &read.table)
    }

    /// All tables that it reads.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().map(|read| &read.table)
    }

    /// # Errors
    /// It reads a materialized view that was not refreshed yet.
    pub(crate) fn check_rows_are_there(&self) -> Result<()> {
        let is_empty = |table: &&Table| {
            let view = table.definition().materialized_view();
            view.is_some_and(|view| view.rows == ViewRows::Missing)
        };
        let Some(view) = self.tables().find(is_empty) else { return Ok(()) };
        let name = schemas::own_name(view.name());
        let message = format!("materialized view {name:?} has not been populated");
        Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
            .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
    }

    /// Whether a table that it reads was altered or dropped since it was planned.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        self.tables.iter().any(|read| !seen.is_current(&read.table))
    }

    /// The tables must be those that the plan was made for.
    ///
    /// # Errors
    /// [`TableChanged`](onrush::Error::TableChanged): then it may be planned again.
    pub(crate) fn check_tables(&self, seen: &Seen) -> Result<()> {
        match self.tables.iter().find(|read| !seen.is_current(&read.table)) {
            Some(ReadTable { table, .. }) => {
                Err(onrush::Error::TableChanged { name: table.name().to_owned() }.into())
            }
            None => Ok(()),
        }
    }
}
