//! The table that a statement writes to: by its own name, or by that of a view whose rows are those of the table.

use std::sync::Arc;

use onrush::{Table, TableDefinition};
use sqlparser::ast::{BinaryOperator, Expr, ObjectName, SelectItem, TableFactor};

use super::view::stored::quoted;
use super::view::updatable::{self, Updatable};
use super::{Planner, plan};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::seen::Seen;

/// See the module.
pub(super) struct Changed {
    pub(super) table: Table,
    /// The table, with the names by which the statement knows its columns.
    pub(super) definition: Arc<TableDefinition>,
    view: Option<Updatable>,
}

/// By what the statement comes to the table.
#[derive(Clone)]
pub(crate) struct Through {
    /// The table or the views that who runs it needs the right to change.
    pub(crate) asked: Vec<Table>,
    views: Vec<Table>,
}

impl Through {
    /// Whether a view was altered or dropped since.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        self.views.iter().any(|view| !seen.is_current(view))
    }
}

impl Changed {
    /// The table that a name in a statement means; `way` is what the statement does, for messages.
    pub(super) fn named(
        planner: &Planner<'_>,
        name: &ObjectName,
        way: (&str, &str),
    ) -> Result<Changed> {
        let table = plan::relation_named(planner, name)?;
        if table.definition().view().is_some() {
            let view = Updatable::of(planner.seen, &table).map_err(|why| why.told(way))?;
            let (table, definition) = (view.table.clone(), view.definition()?);
            return Ok(Changed { table, definition, view: Some(view) });
        }
        if table.definition().materialized_view().is_some() {
            let name = schemas::own_name(table.name());
            let message = format!("cannot change materialized view {name:?}");
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
                .with_hint("REFRESH MATERIALIZED VIEW gives it the rows of its query."));
        }
        if table.definition().sequence().is_some() {
            let message = format!("cannot change sequence {:?}", schemas::own_name(table.name()));
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
        }
        let definition = Arc::clone(table.schema().definition());
        Ok(Changed { table, definition, view: None })
    }

    /// By what the statement comes to the table.
    pub(super) fn through(&self) -> Through {
        let Some(view) = &self.view else {
            return Through { asked: vec![self.table.clone()], views: Vec::new() };
        };
        // What a temporary view reads is for its maker to ask for, who is the one who uses it.
        let mut asked = Vec::new();
        for view in view.views.iter().chain([&self.table]) {
            asked.push(view.clone());
            if !schemas::has_temporary(view.name()) {
                break;
            }
        }
        Through { asked, views: view.views.clone() }
    }

    /// What the table is called where it has no alias.
    pub(super) fn own_name(&self) -> &str {
        schemas::own_name(self.definition.name())
    }

    /// The columns of its key, in their order.
    pub(super) fn key(&self, relation: &str) -> impl Iterator<Item = Expr> {
        let columns = self.definition.columns();
        self.definition.primary_key().iter().map(move |column| {
            Expr::CompoundIdentifier(vec![quoted(relation), quoted(&columns[*column].name)])
        })
    }

    /// Of the views that the statement names and that it reads, the one that reads the table.
    pub(super) fn nearest_view(&self) -> Option<&Table> {
        self.view.as_ref()?.views.last()
    }

    pub(super) fn is_view(&self) -> bool {
        self.view.is_some()
    }

    /// The positions of the columns that the statement sees, in its order.
    pub(super) fn shown(&self) -> Vec<usize> {
        match &self.view {
            Some(view) => view.positions(),
            None => self.definition.shown_columns().collect(),
        }
    }

    /// The item of FROM that stands for it in the query that finds its rows.
    pub(super) fn target(&self, written: &TableFactor, relation: &str) -> TableFactor {
        match &self.view {
            Some(_) => updatable::changed(written, relation, &self.definition),
            None => written.clone(),
        }
    }

    /// Which rows are meant: of a view only those that it has.
    pub(super) fn selection(&self, given: Option<&Expr>, relation: &str) -> Option<Expr> {
        let own = self.view.as_ref().and_then(|view| view.condition(relation, &self.definition));
        match (own, given.cloned()) {
            (Some(own), Some(given)) => Some(Expr::BinaryOp {
                left: Box::new(own),
                op: BinaryOperator::And,
                right: Box::new(Expr::Nested(Box::new(given))),
            }),
            (own, given) => own.or(given),
        }
    }

    /// Items with the columns of the view in the place of `*`.
    pub(super) fn items(&self, items: Option<&[SelectItem]>) -> Option<Vec<SelectItem>> {
        let items = items?;
        let Some(_) = &self.view else { return Some(items.to_vec()) };
        let name = |at: usize| quoted(&self.definition.columns()[at].name);
        let all = || self.shown().into_iter().map(|at| Expr::Identifier(name(at)));
        let mut written = Vec::new();
        for item in items {
            match item {
                SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                    written.extend(all().map(SelectItem::UnnamedExpr));
                }
                other => written.push(other.clone()),
            }
        }
        Some(written)
    }
}
