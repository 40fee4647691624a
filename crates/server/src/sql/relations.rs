//! What names in FROM stand for: tables, sequences, views of users, and what the system tells of itself.
//!
//! The query of a view is planned with names of its own: there tables go by their places, see
//! [the stored form](super::view::stored).

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use onrush::{Table, ViewDefinition, ViewSource};
use onrush_query::{Query, Relation, Relations, View as QueryView};
use sqlparser::ast::{self, Expr, Ident, visit_expressions};

use super::of_session::check_constants;
use super::view::stored;
use super::view::updatable::CHANGED;
use super::{Planner, names, own_types, plan};
use crate::catalog;
use crate::error::{Result, SqlError, state};
use crate::execute::View;
use crate::lake_table::{self, LakeTable};
use crate::schemas;
use crate::sequences::{SequenceRow, ValueSource, refused};

/// So many views may stand inside each other.
const VIEWS_WITHIN_MAX: usize = 64;

/// The relations that there are now.
pub(super) struct Known<'d> {
    planner: &'d Planner<'d>,
    /// The tables whose rows are to be changed or locked.
    changed: &'d [&'d str],
    /// The view whose query names relations.
    within: Option<Within>,
    depth: usize,
    /// Whether the statement names [`catalog::TABLEOID`].
    names_tableoid: bool,
    found: Rc<Found>,
}

/// A view whose query is planned.
struct Within {
    view: ViewDefinition,
    is_temporary: bool,
}

/// What a statement has asked for.
#[derive(Default)]
struct Found {
    tables: RefCell<Vec<ReadTable>>,
    /// Views that are planned, by number.
    views: RefCell<HashMap<u32, Arc<QueryView>>>,
}

/// A table that a query reads, or a sequence or a view.
#[derive(Clone)]
pub(crate) struct ReadTable {
    pub(crate) table: Table,
    /// Whether who reads it needs the right to, and does not have it by that on a view.
    pub(crate) is_asked: bool,
}

impl<'d> Known<'d> {
    /// With row ids for the tables that are `changed`.
    pub(super) fn new(planner: &'d Planner<'d>, changed: &'d [&'d str]) -> Known<'d> {
        let found = Rc::default();
        Known { planner, changed, within: None, depth: 0, names_tableoid: false, found }
    }

    /// For a query, with what only those have that name it.
    pub(super) fn of_query(
        planner: &'d Planner<'d>,
        changed: &'d [&'d str],
        query: &ast::Query,
    ) -> Known<'d> {
        let is_it = |name: &Ident| name.value.eq_ignore_ascii_case(catalog::TABLEOID);
        let found = visit_expressions(query, |expression| match expression {
            Expr::Identifier(name) if is_it(name) => ControlFlow::Break(()),
            Expr::CompoundIdentifier(names) if names.last().is_some_and(is_it) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        Known { names_tableoid: found.is_break(), ..Known::new(planner, changed) }
    }

    /// What was asked for.
    pub(super) fn into_tables(self) -> Vec<ReadTable> {
        self.found.tables.take()
    }

    fn note(&self, table: &Table) {
        // What a view reads is read by right of its maker: a superuser, but for temporary views, whose maker is who
        // reads.
        let is_asked = self.within.as_ref().is_none_or(|within| within.is_temporary);
        self.found.tables.borrow_mut().push(ReadTable { table: table.clone(), is_asked });
    }

    /// The relation that a table is, with the columns at these positions.
    fn of_table(&self, table: Table, only: Option<&[usize]>) -> Result<Relation> {
        self.note(&table);
        let definition = table.definition();
        if definition.sequence().is_some() {
            return Ok(Relation::Made(Arc::new(SequenceRow(ValueSource::Sequence(table)))));
        }
        if definition.view().is_some() {
            let view = self.view(&table)?;
            let Some(only) = only else { return Ok(Relation::View(view)) };
            let shown: Vec<usize> = definition.shown_columns().collect();
            let place = |column: &usize| shown.iter().position(|shown| shown == column);
            let places: Vec<usize> = only.iter().filter_map(place).collect();
            return Ok(Relation::View(Arc::new(view.only(&places)?)));
        }
        Ok(match (only, self.changed) {
            (Some(only), _) => Relation::Columns(table, only.to_vec()),
            (None, changed) if changed.contains(&table.name()) => Relation::TableWithRowIds(table),
            (None, _) => Relation::Table(table),
        })
    }

    fn view(&self, table: &Table) -> Result<Arc<QueryView>> {
        if let Some(known) = self.found.views.borrow().get(&table.id()) {
            return Ok(Arc::clone(known));
        }
        if self.depth >= VIEWS_WITHIN_MAX {
            let message = "there are too many views inside each other";
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, message));
        }
        let definition = table.definition();
        let Some(view) = definition.view() else {
            return Err(SqlError::new(state::INTERNAL, "a table is no view"));
        };
        let columns = definition.columns();
        let names: Vec<String> =
            definition.shown_columns().map(|at| columns[at].name.clone()).collect();
        let is_temporary = schemas::has_temporary(table.name());
        let within = Within { view: view.clone(), is_temporary };
        let planned = Arc::new(self.planned(within, &names)?);
        self.found.views.borrow_mut().insert(table.id(), Arc::clone(&planned));
        Ok(planned)
    }

    /// Plans the query of a view, the first of whose columns get these names.
    pub(super) fn new_view(&self, view: &ViewDefinition, names: &[String]) -> Result<QueryView> {
        self.planned(Within { view: view.clone(), is_temporary: false }, names)
    }

    /// Plans the query of a view as a query.
    pub(super) fn query_of(&self, view: &ViewDefinition) -> Result<Query> {
        let (query, known) = self.within(Within { view: view.clone(), is_temporary: false })?;
        let planned = self.planner.queries.plan(query, &known, &[]);
        planned.map_err(|error| SqlError::from(error).without_place())
    }

    fn planned(&self, within: Within, names: &[String]) -> Result<QueryView> {
        let (query, known) = self.within(within)?;
        let planned = self.planner.queries.plan_view(query, &known, names);
        // Places are those in the text of the view.
        planned.map_err(|error| SqlError::from(error).without_place())
    }

    /// The query of a view, and what names mean in it.
    fn within(&self, within: Within) -> Result<(ast::Query, Known<'d>)> {
        let mut query = stored::read(&within.view, |number| self.planner.seen.numbered(number))?;
        // It is planned again when they have become others.
        for domain in own_types::noted_again(self.planner, &mut query)? {
            self.found.tables.borrow_mut().push(ReadTable { table: domain, is_asked: false });
        }
        check_constants("a view", &query.to_string())?;
        let known = Known {
            planner: self.planner,
            changed: &[],
            within: Some(within),
            depth: self.depth + 1,
            names_tableoid: false,
            found: Rc::clone(&self.found),
        };
        Ok((query, known))
    }

    /// What the view reads under a name that stands for the place of a source.
    fn source(&self, name: &str) -> Option<Result<Relation>> {
        let place = stored::place_of(name)?;
        let source = self.within.as_ref()?.view.sources.get(place)?;
        Some(self.of_source(source))
    }

    fn of_source(&self, source: &ViewSource) -> Result<Relation> {
        let Some(table) = self.planner.seen.numbered(source.table) else {
            return Err(stored::is_gone());
        };
        let positions = stored::positions(&table, source);
        let positions: Vec<usize> = positions.into_iter().flatten().collect();
        self.of_table(table, Some(&positions))
    }

    fn of_system(&self, schema: Option<&str>, name: &str) -> onrush_query::Result<Relation> {
        let found =
            catalog::find(self.planner, schema, name, self.names_tableoid).map(Relation::Made);
        found.ok_or_else(|| {
            let message = match schema {
                Some(schema) => format!("relation \"{schema}.{name}\" does not exist"),
                None => format!("relation \"{name}\" does not exist"),
            };
            let hint = "information_schema.columns and onrush.tables tell about tables.";
            refused(SqlError::new(state::UNDEFINED_TABLE, message).with_hint(hint))
        })
    }

    /// All rows of an attached table, which goes by the name that the engine knows it by.
    fn of_lake(&self, name: &str, unknown: SqlError) -> Result<Relation> {
        let Planner { seen, lake, database, .. } = self.planner;
        let table = seen.relation(name).map_err(|error| match error {
            onrush::Error::UnknownTable { .. } => unknown.with_hint(
                "There is lake.NAME for each table that is attached to a lake: onrush.lake names them.",
            ),
            other => other.into(),
        })?;
        let rows = LakeTable::new(lake, database, table.clone())?;
        self.note(&table);
        Ok(Relation::Cold(Arc::new(rows)))
    }

    fn of_onrush(&self, name: &str) -> onrush_query::Result<Relation> {
        let view = View::of(name).ok_or_else(|| {
            let message = format!("relation \"onrush.{name}\" does not exist");
            let hint = format!("There are: {}.", View::names());
            refused(SqlError::new(state::UNDEFINED_TABLE, message).with_hint(hint))
        })?;
        Ok(Relation::Made(view.of_server(self.planner)))
    }
}

/// Whether a name means something of the system: those of the catalogue begin with pg_, and need no schema in front.
pub(super) fn is_of_system(schema: Option<&str>, name: &str) -> bool {
    match schema {
        None => name.starts_with("pg_"),
        Some(schema) => is_catalogue(schema) || schema == names::SYSTEM_SCHEMA,
    }
}

/// Whether a name means all rows of an attached table.
pub(super) fn is_of_lake(planner: &Planner<'_>, schema: Option<&str>, name: &str) -> bool {
    schema == Some(lake_table::SCHEMA) && plan::table_in(planner, schema, name).is_err()
}

fn is_catalogue(schema: &str) -> bool {
    matches!(schema, catalog::PG_CATALOG | catalog::INFORMATION_SCHEMA)
}

impl Relations for Known<'_> {
    fn find(&self, schema: Option<&str>, name: &str) -> onrush_query::Result<Relation> {
        if let (None, Some(found)) = (schema, self.source(name)) {
            return found.map_err(refused);
        }
        if let (None, None) = (schema, &self.within)
            && let Some(step) = self.planner.step(name)
        {
            return step.relation().map_err(refused);
        }
        if let (None, CHANGED, [changed]) = (schema, name, self.changed) {
            let table = self.planner.seen.table(changed).map_err(|error| refused(error.into()))?;
            // Whether it may be changed is asked beside the query.
            let read = ReadTable { table: table.clone(), is_asked: false };
            self.found.tables.borrow_mut().push(read);
            return Ok(Relation::TableWithRowIds(table));
        }
        if schema == Some(names::SYSTEM_SCHEMA) {
            return self.of_onrush(name);
        }
        if is_of_system(schema, name) {
            return self.of_system(schema, name);
        }
        names::check_reserved(name).map_err(refused)?;
        match plan::table_in(self.planner, schema, name) {
            Ok(table) => self.of_table(table, None).map_err(refused),
            Err(error) if schema == Some(lake_table::SCHEMA) => {
                self.of_lake(name, error).map_err(refused)
            }
            Err(error) => {
                let parts = schema.into_iter().chain([name]).map(names::shown);
                let name = ast::ObjectName::from(parts.collect::<Vec<_>>());
                let identity = self.planner.lookup().identity_named(&name);
                let identity = identity.ok_or_else(|| refused(error))?;
                self.note(&identity.table);
                Ok(Relation::Made(Arc::new(SequenceRow(ValueSource::Identity(identity)))))
            }
        }
    }

    fn is_always_empty(&self, schema: Option<&str>, name: &str) -> bool {
        catalog::is_always_empty(schema, name)
    }
}
