//! The query of a view as it is kept: what it means is found when the view is made, and stays the same whatever is
//! renamed or added later.
//!
//! Each table stands there by its place among the view's sources, under the name that the query calls it by and
//! with the columns that it had:
//!
//! ```text
//! CREATE VIEW v AS SELECT * FROM t
//! SELECT "t"."a", "t"."b" FROM "onrush.0" AS "t" ("a", "b")
//! ```

use std::ops::ControlFlow;

use onrush::{Table, ViewDefinition, ViewSource};
use onrush_query::ResolvedNames;
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Spanned, Statement, TableAlias, TableAliasColumnDef,
    TableFactor, VisitMut, VisitorMut,
};

use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::relations::{Known, is_of_lake, is_of_system};
use crate::sql::{Parsed, Planner, names, own_types, plan};

/// In front of the place of a table among the sources.
const NUMBERED: &str = "onrush.";

/// The query of a view, and what it reads.
pub(super) struct Stored {
    pub(super) text: String,
    pub(super) sources: Vec<ViewSource>,
}

/// The place of the source that such a name stands for.
pub(in crate::sql) fn place_of(name: &str) -> Option<usize> {
    name.strip_prefix(NUMBERED)?.parse().ok()
}

/// Where the columns that a view saw of a table are now; none for those that are gone.
pub(in crate::sql) fn positions(table: &Table, source: &ViewSource) -> Vec<Option<usize>> {
    let definition = table.definition();
    let all: Vec<usize> = definition.shown_columns().collect();
    let is_it = |number: &u16, at: usize| definition.column_number(at) == usize::from(*number);
    let place = |number: &u16| all.iter().copied().find(|at| is_it(number, *at));
    source.columns.iter().map(place).collect()
}

pub(in crate::sql) fn is_gone() -> SqlError {
    SqlError::new(state::DATA_CORRUPTED, "a view reads a table that is not there any more")
}

/// Reads the query of a view for the tables as they are now.
pub(in crate::sql) fn read(
    view: &ViewDefinition,
    find: impl Fn(u32) -> Option<Table>,
) -> Result<Query> {
    let mut query = parsed(&view.query)?;
    let mut reader = Reader { view, find };
    match query.visit(&mut reader) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(query),
    }
}

fn parsed(text: &str) -> Result<Query> {
    let mut read = crate::sql::read(text).map_err(SqlError::without_place)?;
    if let (Some(Parsed::Sql(statement)), true) = (read.pop(), read.is_empty())
        && let Statement::Query(query) = *statement
    {
        return Ok(*query);
    }
    Err(SqlError::new(state::INTERNAL, "the query of a view is none"))
}

/// Takes the names of columns away that are gone.
struct Reader<'v, F> {
    view: &'v ViewDefinition,
    find: F,
}

impl<F: Fn(u32) -> Option<Table>> VisitorMut for Reader<'_, F> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<SqlError> {
        let Some((place, alias)) = placed(relation) else { return ControlFlow::Continue(()) };
        let source = self.view.sources.get(place);
        let found = source.and_then(|source| Some((source, (self.find)(source.table)?)));
        let Some((source, table)) = found else { return ControlFlow::Break(is_gone()) };
        if table.definition().sequence().is_none() {
            let mut there = positions(&table, source).into_iter();
            alias.columns.retain(|_| there.next().flatten().is_some());
        }
        ControlFlow::Continue(())
    }
}

/// The place of the source that a relation is, and what it is called.
pub(super) fn placed(relation: &mut TableFactor) -> Option<(usize, &mut TableAlias)> {
    let TableFactor::Table { name, alias: Some(alias), args: None, .. } = relation else {
        return None;
    };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    Some((place_of(&name.value)?, alias))
}

/// The query of a view that is to be made.
pub(super) fn stored(planner: &Planner<'_>, written: &Query) -> Result<Stored> {
    let known = Known::new(planner, &[]);
    let names = tokio::task::block_in_place(|| planner.queries.resolve(written, &known))?;
    let mut query = written.clone();
    own_types::numbered(planner, &mut query)?;
    let mut writer = Writer { planner, names: &names, sources: Vec::new() };
    if let ControlFlow::Break(error) = query.visit(&mut writer) {
        return Err(error);
    }
    let (text, sources) = (query.to_string(), writer.sources);
    if text.len() > onrush::VIEW_BYTES_MAX {
        let message = format!("the query of a view has more than {} bytes", onrush::VIEW_BYTES_MAX);
        return Err(SqlError::new(state::LIMIT_EXCEEDED, message));
    }
    // What is kept has to mean what was written.
    match parsed(&text) {
        Ok(again) if again == query => Ok(Stored { text, sources }),
        _ => Err(SqlError::not_supported(
            "a view of a query in these words",
            "Write it with other names or other words; the query itself works.",
        )),
    }
}

/// Writes what names mean in their place.
struct Writer<'w> {
    planner: &'w Planner<'w>,
    names: &'w ResolvedNames,
    sources: Vec<ViewSource>,
}

impl Writer<'_> {
    fn relation(&mut self, relation: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, args: None, .. } = relation else { return Ok(()) };
        // What WITH names is none.
        let Some(used) = self.names.relation(name.span()) else { return Ok(()) };
        let parts = names::parts(name)?;
        let (schema, own) = match parts.as_slice() {
            [schema, own] => (Some(schema.as_str()), own),
            [own] => (None, own),
            _ => return Ok(()),
        };
        if is_of_system(schema, own) || is_of_lake(self.planner, schema, own) {
            return Ok(());
        }
        let table = plan::table_in(self.planner, schema, own).map_err(|_| {
            let instead = "pg_sequences tells of it.";
            SqlError::not_supported("the sequence of an identity in a view", instead)
        })?;
        let definition = table.definition();
        let shown: Vec<usize> = definition.shown_columns().collect();
        let number = |at: &usize| u16::try_from(definition.column_number(*at)).unwrap_or(u16::MAX);
        let columns: Vec<u16> = shown.iter().map(number).collect();
        let used = used.iter().filter_map(|at| columns.get(*at).copied());
        let known = self.sources.iter().position(|source| source.table == table.id());
        let place = known.unwrap_or(self.sources.len());
        match self.sources.get_mut(place) {
            Some(source) => {
                source.used.extend(used);
                source.used.sort_unstable();
                source.used.dedup();
            }
            None => {
                let used = used.collect();
                self.sources.push(ViewSource { table: table.id(), columns, used });
            }
        }
        let mut called = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: quoted(schemas::own_name(table.name())),
            columns: Vec::new(),
            at: None,
        });
        called.explicit = true;
        for at in shown.iter().skip(called.columns.len()) {
            let name = quoted(&definition.columns()[*at].name);
            called.columns.push(TableAliasColumnDef { name, data_type: None });
        }
        *alias = Some(called);
        *name = ObjectName::from(vec![quoted(&format!("{NUMBERED}{place}"))]);
        Ok(())
    }

    /// Puts the columns in the place of `*`.
    fn items(&self, items: &mut Vec<SelectItem>) {
        for item in std::mem::take(items) {
            let place = match &item {
                SelectItem::Wildcard(options) => Some(options.wildcard_token.0.span),
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => Some(names::span(name)),
                _ => None,
            };
            let Some(columns) = place.and_then(|place| self.names.star(place)) else {
                items.push(item);
                continue;
            };
            items.extend(columns.iter().map(|(relation, column)| {
                SelectItem::UnnamedExpr(match relation.as_str() {
                    "" => Expr::Identifier(quoted(column)),
                    relation => Expr::CompoundIdentifier(vec![quoted(relation), quoted(column)]),
                })
            }));
        }
    }
}

impl VisitorMut for Writer<'_> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<SqlError> {
        self.relation(relation).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if query.locks.is_empty() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(SqlError::not_supported("FOR UPDATE in a view", "Lock rows by a query."))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.items(&mut select.projection);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        // A relation has no schema in front of its name any more.
        if let Expr::CompoundIdentifier(parts) = expression
            && parts.len() > 2
        {
            parts.drain(..parts.len() - 2);
        }
        ControlFlow::Continue(())
    }
}

pub(in crate::sql) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
