//! The query of a view as it is shown, with the names that things have now.

use std::ops::ControlFlow;

use onrush::{Table, ViewSource};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, TableFactor, VisitMut,
    VisitorMut,
};

use super::stored::{self, quoted};
use crate::catalog;
use crate::error::Result;
use crate::schemas;
use crate::seen::Seen;
use crate::sql::{exclusion_words, names, own_types};

/// The query of a view, as `pg_get_viewdef` shows it. `is_visible` tells whether a table is what its name alone means.
pub(crate) fn shown(
    seen: &Seen,
    view: &Table,
    is_visible: impl Fn(&Table) -> bool,
) -> Result<String> {
    let definition = view.definition();
    let Some(kept) = definition.any_view() else { return Ok(String::new()) };
    let mut query = stored::read(kept, |number| seen.numbered(number))?;
    let shown: Vec<&str> =
        definition.shown_columns().map(|at| definition.columns()[at].name.as_str()).collect();
    if let SetExpr::Select(select) = &mut *query.body {
        for (item, name) in select.projection.iter_mut().zip(shown) {
            call(item, name);
        }
    }
    let type_name = |number| {
        let table = seen.numbered(number)?;
        let (schema, own) = schemas::parts(table.name());
        Some(match is_visible(&table) {
            true => catalog::quoted(own),
            false => format!("{}.{}", catalog::quoted(schema), catalog::quoted(own)),
        })
    };
    own_types::named_again(&type_name, &mut query)?;
    let mut writer = Writer { seen, sources: &kept.sources, is_visible };
    let _: ControlFlow<()> = query.visit(&mut writer);
    Ok(format!(" {};", exclusion_words::shown(laid_out(&query))))
}

/// Clauses of a plain SELECT stand on lines of their own, as PostgreSQL has them.
fn laid_out(query: &Query) -> String {
    let SetExpr::Select(select) = &*query.body else { return query.to_string() };
    if query.with.is_some() || select.distinct.is_some() || select.from.is_empty() {
        return query.to_string();
    }
    let list = |items: Vec<String>| items.join(",\n    ");
    let text = query.to_string();
    let items = list(select.projection.iter().map(ToString::to_string).collect());
    let plain: Vec<String> = select.projection.iter().map(ToString::to_string).collect();
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    let (plain, from_plain) = (plain.join(", "), from.join(", "));
    let head = format!("SELECT {plain} FROM {from_plain}");
    let Some(rest) = text.strip_prefix(&head) else { return text };
    let rest = match &select.selection {
        Some(condition) => {
            let condition = condition.to_string();
            match rest.strip_prefix(&format!(" WHERE {condition}")) {
                Some(rest) => format!("\n  WHERE {condition}{rest}"),
                None => rest.to_owned(),
            }
        }
        None => rest.to_owned(),
    };
    format!("SELECT {items}\n   FROM {}{rest}", list(from))
}

/// Gives a column of the answer its name, if it has another one.
fn call(item: &mut SelectItem, name: &str) {
    let expression = match item {
        SelectItem::UnnamedExpr(expression) => {
            let own = match &*expression {
                Expr::Identifier(own) => Some(own),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            if own.is_some_and(|own| names::identifier(own) == name) {
                return;
            }
            expression
        }
        SelectItem::ExprWithAlias { expr, .. } => expr,
        _ => return,
    };
    *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: plain(quoted(name)) };
}

struct Writer<'s, F> {
    seen: &'s Seen,
    sources: &'s [ViewSource],
    is_visible: F,
}

impl<F: Fn(&Table) -> bool> VisitorMut for Writer<'_, F> {
    type Break = ();

    fn post_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<()> {
        let Some((place, called)) = stored::placed(relation) else {
            return ControlFlow::Continue(());
        };
        let source = self.sources.get(place);
        let Some(table) = source.and_then(|source| self.seen.numbered(source.table)) else {
            return ControlFlow::Continue(());
        };
        let definition = table.definition();
        let own = definition.shown_columns().map(|at| definition.columns()[at].name.as_str());
        let named = called.columns.iter().map(|column| names::identifier(&column.name));
        // Sequences have no columns but these.
        if named.zip(own).all(|(named, own)| named == own) {
            called.columns.clear();
        }
        let (schema, own) = schemas::parts(table.name());
        let is_bare = called.columns.is_empty() && names::identifier(&called.name) == own;
        called.name = plain(called.name.clone());
        for column in &mut called.columns {
            column.name = plain(column.name.clone());
        }
        // PostgreSQL leaves the word out.
        called.explicit = false;
        let mut parts = vec![plain(quoted(own))];
        if !(self.is_visible)(&table) {
            parts.insert(0, plain(quoted(schema)));
        }
        if let TableFactor::Table { name, alias, .. } = relation {
            *name = ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect());
            if is_bare {
                *alias = None;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => *name = plain(name.clone()),
            Expr::CompoundIdentifier(parts) => {
                parts.iter_mut().for_each(|part| *part = plain(part.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A name without quotes, where it needs none.
fn plain(name: Ident) -> Ident {
    if name.quote_style == Some('"')
        && names::is_plain(&name.value)
        && !is_reserved(&name.value.to_uppercase())
    {
        return Ident::new(name.value);
    }
    name
}

/// Whether PostgreSQL takes a word for no name.
fn is_reserved(word: &str) -> bool {
    const RESERVED: &[&str] = &[
        "ALL",
        "ANALYSE",
        "ANALYZE",
        "AND",
        "ANY",
        "ARRAY",
        "AS",
        "ASC",
        "ASYMMETRIC",
        "BOTH",
        "CASE",
        "CAST",
        "CHECK",
        "COLLATE",
        "COLUMN",
        "CONSTRAINT",
        "CREATE",
        "CURRENT_CATALOG",
        "CURRENT_DATE",
        "CURRENT_ROLE",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "DEFAULT",
        "DEFERRABLE",
        "DESC",
        "DISTINCT",
        "DO",
        "ELSE",
        "END",
        "EXCEPT",
        "FALSE",
        "FETCH",
        "FOR",
        "FOREIGN",
        "FROM",
        "FULL",
        "GRANT",
        "GROUP",
        "HAVING",
        "IN",
        "INITIALLY",
        "INNER",
        "INTERSECT",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEADING",
        "LEFT",
        "LIKE",
        "LIMIT",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "NATURAL",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "ONLY",
        "OR",
        "ORDER",
        "OUTER",
        "OVERLAPS",
        "PLACING",
        "PRIMARY",
        "REFERENCES",
        "RETURNING",
        "RIGHT",
        "SELECT",
        "SESSION_USER",
        "SIMILAR",
        "SOME",
        "SYMMETRIC",
        "TABLE",
        "THEN",
        "TO",
        "TRAILING",
        "TRUE",
        "UNION",
        "UNIQUE",
        "USER",
        "USING",
        "VARIADIC",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
    ];
    RESERVED.contains(&word)
}
