//! Queries that the query engine runs: what names in FROM stand for, and the types of parameters.

use std::cell::RefCell;
use std::sync::Arc;

use onrush::{DataType, Table};
use onrush_query::{Query, Relation, Relations};
use sqlparser::ast;

use super::computed::{output_columns, read_as};
use super::operand::Parameters;
use super::plan;
use super::select::OutputColumn;
use super::{Planner, names};
use crate::catalog;
use crate::error::{Result, SqlError, state};
use crate::execute::View;
use crate::seen::Seen;
use crate::sequences::{SequenceRow, ValueSource, refused as unknown};

/// A query, ready to run.
pub(crate) struct QueryPlan {
    pub(crate) query: Query,
    pub(crate) columns: Arc<[OutputColumn]>,
    /// What each parameter is read as.
    pub(crate) parameters: Vec<DataType>,
    /// The tables that it reads.
    tables: Vec<Table>,
}

impl QueryPlan {
    pub(super) fn new(
        planner: &Planner<'_>,
        query: ast::Query,
        parameters: &mut Parameters,
    ) -> Result<QueryPlan> {
        QueryPlan::of_rows_of(planner, &[], query, parameters)
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
        let relations = Known { planner, changed, tables: RefCell::default() };
        // A large query takes long to plan, and this thread has other clients.
        let plan = || planner.queries.plan(query, &relations, &parameters.column_types());
        let query = tokio::task::block_in_place(plan)?;
        let read_as = read_as(parameters, query.parameters())?;
        let columns = output_columns(query.columns());
        Ok(QueryPlan { query, columns, parameters: read_as, tables: relations.tables.into_inner() })
    }

    /// The tables that it reads.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter()
    }

    /// Whether a table that it reads was altered or dropped since it was planned.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        self.tables.iter().any(|table| !seen.is_current(table))
    }

    /// The tables must be those that the plan was made for.
    ///
    /// # Errors
    /// [`TableChanged`](onrush::Error::TableChanged): then it may be planned again.
    pub(crate) fn check_tables(&self, seen: &Seen) -> Result<()> {
        match self.tables.iter().find(|table| !seen.is_current(table)) {
            Some(table) => {
                Err(onrush::Error::TableChanged { name: table.name().to_owned() }.into())
            }
            None => Ok(()),
        }
    }
}

/// The relations that there are now.
struct Known<'d> {
    planner: &'d Planner<'d>,
    /// The tables whose rows are to be changed or locked.
    changed: &'d [&'d str],
    /// Those that were asked for.
    tables: RefCell<Vec<Table>>,
}

impl Relations for Known<'_> {
    fn find(&self, schema: Option<&str>, name: &str) -> onrush_query::Result<Relation> {
        // Names of the catalogue begin with pg_, and need no schema in front.
        let is_system = match schema {
            None => name.starts_with("pg_"),
            Some(schema) => matches!(schema, catalog::PG_CATALOG | catalog::INFORMATION_SCHEMA),
        };
        if is_system {
            let found = catalog::find(self.planner, schema, name).map(Relation::Made);
            return found.ok_or_else(|| {
                let message = match schema {
                    Some(schema) => format!("relation \"{schema}.{name}\" does not exist"),
                    None => format!("relation \"{name}\" does not exist"),
                };
                let hint = "information_schema.columns and onrush.tables tell about tables.";
                unknown(SqlError::new(state::UNDEFINED_TABLE, message).with_hint(hint))
            });
        }
        match schema {
            Some(names::SYSTEM_SCHEMA) => View::of(name)
                .map(|view| {
                    Relation::Made(view.of_database(self.planner.database, self.planner.clients))
                })
                .ok_or_else(|| {
                    let message = format!("relation \"onrush.{name}\" does not exist");
                    let hint = format!("There are: {}.", View::names());
                    unknown(SqlError::new(state::UNDEFINED_TABLE, message).with_hint(hint))
                }),
            _ => {
                names::check_reserved(name).map_err(unknown)?;
                let table = match plan::table_in(self.planner, schema, name) {
                    Ok(table) => table,
                    Err(error) => {
                        let parts = schema.into_iter().chain([name]).map(names::shown);
                        let name = ast::ObjectName::from(parts.collect::<Vec<_>>());
                        let identity = self.planner.lookup().identity_named(&name);
                        let identity = identity.ok_or_else(|| unknown(error))?;
                        self.tables.borrow_mut().push(identity.table.clone());
                        let row = SequenceRow(ValueSource::Identity(identity));
                        return Ok(Relation::Made(Arc::new(row)));
                    }
                };
                if table.definition().sequence().is_some() {
                    self.tables.borrow_mut().push(table.clone());
                    return Ok(Relation::Made(Arc::new(SequenceRow(ValueSource::Sequence(table)))));
                }
                self.tables.borrow_mut().push(table.clone());
                Ok(match self.changed.contains(&table.name()) {
                    true => Relation::TableWithRowIds(table),
                    false => Relation::Table(table),
                })
            }
        }
    }

    fn is_always_empty(&self, schema: Option<&str>, name: &str) -> bool {
        catalog::is_always_empty(schema, name)
    }
}
