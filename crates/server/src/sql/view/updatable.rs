//! Rows that are written by a view: of a table of which the view has some rows, whole, and columns as they are.
//!
//! A statement that writes to such a view is planned as one of the table, whose columns go by the names that the view
//! has for them; those that it has not go by names that nobody can say.

use std::ops::ControlFlow;
use std::sync::Arc;

use onrush::{Table, TableDefinition};
use sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, VisitMut, VisitorMut,
};

use super::stored::{self, quoted};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::seen::Seen;
use crate::sql::names;

/// In front of the position of a column of the table, where conditions of views name it.
const COLUMN: &str = "onrush.column";
/// What the table is called in the query that finds its rows.
pub(in crate::sql) const CHANGED: &str = "onrush.changed";

/// A view whose rows are those of a table.
pub(crate) struct Updatable {
    pub(crate) table: Table,
    /// The columns of the view, and where they are in the table.
    columns: Vec<(String, usize)>,
    /// Which rows the view has, and those that it reads.
    conditions: Vec<Expr>,
    /// The view, and the views that it reads, down to the table.
    pub(crate) views: Vec<Table>,
}

/// Why rows are not written by a view.
pub(crate) enum NotUpdatable {
    /// PostgreSQL does not know of which rows they were.
    Reason(Table, &'static str),
    /// What stands in the way here.
    Unsupported(&'static str),
    Failed(SqlError),
}

impl NotUpdatable {
    /// As it is told of a statement; `way` is its verb, and what stands behind it.
    pub(in crate::sql) fn told(self, (verb, preposition): (&str, &str)) -> SqlError {
        match self {
            NotUpdatable::Reason(view, reason) => {
                let name = schemas::own_name(view.name());
                let message = format!("cannot {verb}{preposition} view \"{name}\"");
                SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
                    .with_detail(reason)
                    .with_hint("Change the tables that the view reads.")
            }
            NotUpdatable::Unsupported(what) => SqlError::not_supported(
                format!("to {verb}{preposition} a view with {what}"),
                "Change the table that the view reads.",
            ),
            NotUpdatable::Failed(error) => error,
        }
    }
}

impl From<SqlError> for NotUpdatable {
    fn from(error: SqlError) -> NotUpdatable {
        NotUpdatable::Failed(error)
    }
}

const SEVERAL: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

impl Updatable {
    /// The rows of a view, if they can be written.
    pub(crate) fn of(seen: &Seen, view: &Table) -> std::result::Result<Updatable, NotUpdatable> {
        let refused = |reason| NotUpdatable::Reason(view.clone(), reason);
        let definition = view.definition();
        let Some(kept) = definition.view() else {
            return Err(SqlError::new(state::INTERNAL, "a table is no view").into());
        };
        let mut query = stored::read(kept, |number| seen.numbered(number))?;
        let select = only_select(&mut query).map_err(refused)?;
        let [from] = select.from.as_mut_slice() else { return Err(refused(SEVERAL)) };
        let (true, Some((place, called))) =
            (from.joins.is_empty(), stored::placed(&mut from.relation))
        else {
            return Err(refused(SEVERAL));
        };
        let source = kept.sources.get(place).ok_or_else(stored::is_gone)?;
        let table = seen.numbered(source.table).ok_or_else(stored::is_gone)?;
        if table.definition().sequence().is_some() {
            return Err(refused(SEVERAL));
        }
        let below = match table.definition().view() {
            Some(_) => Updatable::of(seen, &table)?,
            None => Updatable::of_table(&table),
        };
        let places = stored::positions(&table, source);
        let shown: Vec<usize> = table.definition().shown_columns().collect();
        // What the view's query calls the columns of what it reads, and where they are in the table.
        let place = |at: usize| {
            let below_at = shown.iter().position(|shown| *shown == at)?;
            below.columns.get(below_at).map(|(_, at)| *at)
        };
        let known: Vec<(String, usize)> = called
            .columns
            .iter()
            .zip(places.into_iter().flatten())
            .filter_map(|(column, at)| Some((names::identifier(&column.name), place(at)?)))
            .collect();
        let within = Within { called: names::identifier(&called.name), known };
        let own = definition.shown_columns().map(|at| definition.columns()[at].name.clone());
        let mut columns = Vec::new();
        for (item, name) in select.projection.iter().zip(own) {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                return Err(NotUpdatable::Unsupported("such columns"));
            };
            let at = within.column(expr).ok_or(NotUpdatable::Unsupported("computed columns"))?;
            if columns.iter().any(|(_, other)| *other == at) {
                return Err(NotUpdatable::Unsupported("one column twice"));
            }
            columns.push((name, at));
        }
        let mut conditions = below.conditions;
        if let Some(mut condition) = select.selection.take() {
            if condition.visit(&mut Placing(&within)).is_break() {
                return Err(NotUpdatable::Unsupported("queries in its condition"));
            }
            conditions.push(condition);
        }
        let mut views = vec![view.clone()];
        views.extend(below.views);
        Ok(Updatable { table: below.table, columns, conditions, views })
    }

    fn of_table(table: &Table) -> Updatable {
        let all = table.definition().columns();
        let columns = table.definition().shown_columns().map(|at| (all[at].name.clone(), at));
        let columns = columns.collect();
        Updatable { table: table.clone(), columns, conditions: Vec::new(), views: Vec::new() }
    }

    /// The positions of the view's columns in the table.
    pub(in crate::sql) fn positions(&self) -> Vec<usize> {
        self.columns.iter().map(|(_, at)| *at).collect()
    }

    /// The table with the names that the view has for its columns.
    pub(in crate::sql) fn definition(&self) -> Result<Arc<TableDefinition>> {
        let own = self.table.definition();
        let name = |at: usize| {
            let known = self.columns.iter().find(|(_, own)| *own == at);
            match known {
                Some((name, _)) => name.clone(),
                None if Some(at) == own.row_id() => own.columns()[at].name.clone(),
                None => format!("onrush.hidden {at}"),
            }
        };
        let all = (0..own.columns().len()).map(name).collect();
        let view = self.views.first().unwrap_or(&self.table);
        Ok(Arc::new(own.called(view.name(), all)?))
    }

    /// Which rows the view has, where the table is called so and has this definition.
    pub(in crate::sql) fn condition(
        &self,
        relation: &str,
        definition: &TableDefinition,
    ) -> Option<Expr> {
        let mut naming = Naming { relation, definition };
        let named = self.conditions.iter().map(|condition| {
            let mut condition = condition.clone();
            let _: ControlFlow<()> = condition.visit(&mut naming);
            Expr::Nested(Box::new(condition))
        });
        named.reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: sqlparser::ast::BinaryOperator::And,
            right: Box::new(right),
        })
    }
}

/// The table of a view as the query that finds its rows has it.
pub(in crate::sql) fn changed(
    like: &TableFactor,
    relation: &str,
    definition: &TableDefinition,
) -> TableFactor {
    let mut changed = like.clone();
    if let TableFactor::Table { name, alias, .. } = &mut changed {
        *name = ObjectName::from(vec![quoted(CHANGED)]);
        let column = |name: &str| TableAliasColumnDef { name: quoted(name), data_type: None };
        let columns = definition.columns().iter().map(|it| column(&it.name)).collect();
        let name = quoted(relation);
        *alias = Some(TableAlias { explicit: true, name, columns, at: None });
    }
    changed
}

/// The columns that the query of a view can name.
struct Within {
    called: String,
    known: Vec<(String, usize)>,
}

impl Within {
    fn named(&self, name: &Ident) -> Option<usize> {
        let wanted = names::identifier(name);
        self.known.iter().find(|(name, _)| *name == wanted).map(|(_, at)| *at)
    }

    fn column(&self, expression: &Expr) -> Option<usize> {
        match expression {
            Expr::Nested(inner) => self.column(inner),
            Expr::Identifier(name) => self.named(name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [relation, name] if names::identifier(relation) == self.called => self.named(name),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Puts positions in the place of the names of columns.
struct Placing<'w>(&'w Within);

impl VisitorMut for Placing<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(_) | Expr::CompoundIdentifier(_) = expression {
            let Some(at) = self.0.column(expression) else { return ControlFlow::Break(()) };
            *expression = Expr::CompoundIdentifier(vec![quoted(COLUMN), quoted(&at.to_string())]);
        }
        ControlFlow::Continue(())
    }
}

/// Puts names in the place of positions.
struct Naming<'n> {
    relation: &'n str,
    definition: &'n TableDefinition,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expression
            && let [front, place] = parts.as_mut_slice()
            && front.value == COLUMN
            && let Some(column) =
                place.value.parse().ok().and_then(|at: usize| self.definition.columns().get(at))
        {
            *front = quoted(self.relation);
            *place = quoted(&column.name);
        }
        ControlFlow::Continue(())
    }
}

/// The SELECT that a view is, or what PostgreSQL says of a view of which it does not know the rows of a table.
fn only_select(query: &mut Query) -> std::result::Result<&mut Select, &'static str> {
    let has_with = query.with.is_some();
    let has_limit = query.limit_clause.is_some() || query.fetch.is_some();
    let select = match &mut *query.body {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) if !has_with && !has_limit => return only_select(inner),
        SetExpr::SetOperation { .. } => {
            return Err(
                "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
            );
        }
        _ => return Err(SEVERAL),
    };
    let groups = match &select.group_by {
        GroupByExpr::Expressions(by, _) => !by.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let has = |what: fn(&Expr) -> bool| {
        select.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => what(expr),
            _ => false,
        })
    };
    let refused = [
        (select.distinct.is_some(), "Views containing DISTINCT are not automatically updatable."),
        (groups, "Views containing GROUP BY are not automatically updatable."),
        (select.having.is_some(), "Views containing HAVING are not automatically updatable."),
        (has_with, "Views containing WITH are not automatically updatable."),
        (has_limit, "Views containing LIMIT or OFFSET are not automatically updatable."),
        (
            has(is_aggregate),
            "Views that return aggregate functions are not automatically updatable.",
        ),
        (has(is_window), "Views that return window functions are not automatically updatable."),
    ];
    match refused.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, reason)) => Err(reason),
        None => Ok(select),
    }
}

fn is_aggregate(expression: &Expr) -> bool {
    let Expr::Function(call) = expression else { return false };
    let name = call.name.to_string().to_lowercase();
    let known = [
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "array_agg",
        "string_agg",
        "bool_and",
        "bool_or",
        "every",
        "json_agg",
        "jsonb_agg",
    ];
    call.over.is_none() && known.contains(&name.as_str())
}

fn is_window(expression: &Expr) -> bool {
    matches!(expression, Expr::Function(call) if call.over.is_some())
}
