//! Names of relations, columns and functions, resolved before a query is planned.
//!
//! What is wrong with them is told here, with PostgreSQL's SQLSTATE and text and the place in the statement; the
//! planner behind only meets names that mean something. The order is PostgreSQL's: WITH, FROM, the columns of
//! the answer, WHERE, HAVING, ORDER BY, GROUP BY, DISTINCT, LIMIT, WINDOW, and then, what of all these is not
//! grouped by.
//!
//! - `scope.rs`: what a name means at a place. `from.rs`: relations and joins. `expression.rs`, `calls.rs`:
//!   expressions and functions. `types.rs`: their types, as far as the statement tells them. `signatures.rs`: what
//!   functions take. `clauses.rs`: ORDER BY,
//!   GROUP BY, DISTINCT, LIMIT.
//!
//! Columns of a relation may not be told (a function's with several): then every name may be one of them.

use datafusion::sql::sqlparser::ast::{
    Expr, NamedWindowExpr, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, SetOperator, Spanned, Values, With,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use onrush::DataType;

use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::functions::type_name;
use crate::nothing::is_surely_empty;
use crate::relation::Relations;
use crate::resolved::ResolvedNames;
use crate::syntax::{AllFields, MergedColumns, TypedConstants, folded, name_of, record_of};
use crate::types::ColumnType;
use clauses::Items;
use expression::Place;
use recursion::{check_form, check_recursion, check_types};
use scope::Scope;
use types::Type;

mod calls;
mod clauses;
mod expression;
mod from;
mod recursion;
mod scope;
mod signatures;
mod types;

/// The columns of a query: names and types; none where they are not told.
type Columns = Option<Vec<(String, Type)>>;

/// Refuses a query with a name that means nothing, or something that may not stand where it stands. `declared` has
/// the types of parameters as far as they are known. Returns what there is to tell should the query not be planned:
/// of operators only the plan tells whether they take what they are given.
///
/// # Errors
/// [`QueryError::Refused`].
pub(crate) fn bind(
    engine: &QueryEngine,
    query: &Query,
    relations: &dyn Relations,
    declared: &[Option<ColumnType>],
) -> Result<Bound> {
    let mut binder = Binder::new(engine, relations, declared);
    binder.query(query, None)?;
    Ok(Bound {
        suspect: binder.suspect,
        merged: binder.merged,
        constants: binder.constants,
        all_fields: binder.all_fields,
    })
}

/// What [`bind`] has found.
pub(crate) struct Bound {
    /// An operator that PostgreSQL has not.
    pub(crate) suspect: Option<QueryError>,
    /// Columns that are to be written as columns of their sides.
    pub(crate) merged: MergedColumns,
    /// Constants that are to be written with the types that functions take.
    pub(crate) constants: TypedConstants,
    /// Records whose fields are to be written in their place.
    pub(crate) all_fields: AllFields,
}

/// What the names of a query mean; as [`bind`].
pub(crate) fn resolve(
    engine: &QueryEngine,
    query: &Query,
    relations: &dyn Relations,
) -> Result<ResolvedNames> {
    let mut binder = Binder::new(engine, relations, &[]);
    binder.resolved = Some(ResolvedNames::default());
    binder.query(query, None)?;
    Ok(binder.resolved.unwrap_or_default())
}

struct Binder<'b> {
    engine: &'b QueryEngine,
    relations: &'b dyn Relations,
    declared: &'b [Option<ColumnType>],
    /// The queries of WITH in sight, the nearest last.
    named: Vec<(String, Columns)>,
    /// The windows that the SELECT names.
    windows: Vec<String>,
    /// How many relations there have been.
    sources: usize,
    /// Expressions are gone through once more, for what they are grouped by; queries inside of them have
    /// been through that.
    is_second: bool,
    /// An operator that PostgreSQL has not.
    suspect: Option<QueryError>,
    /// Merged columns that are to be written as columns of their sides.
    merged: MergedColumns,
    /// Constants that are to be written with the types that functions take.
    constants: TypedConstants,
    /// Records whose fields are to be written in their place.
    all_fields: AllFields,
    /// What names mean, where somebody wants to know.
    resolved: Option<ResolvedNames>,
}

impl<'b> Binder<'b> {
    fn new(
        engine: &'b QueryEngine,
        relations: &'b dyn Relations,
        declared: &'b [Option<ColumnType>],
    ) -> Binder<'b> {
        Binder {
            engine,
            relations,
            declared,
            named: Vec::new(),
            windows: Vec::new(),
            sources: 0,
            is_second: false,
            suspect: None,
            merged: MergedColumns::default(),
            constants: TypedConstants::default(),
            all_fields: AllFields::default(),
            resolved: None,
        }
    }
}

impl Binder<'_> {
    /// A query with all its clauses; its columns.
    fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Columns> {
        // Of what is never there, it does not matter what it is asked for.
        if self.resolved.is_none() && is_surely_empty(&query.body, self.relations) {
            return Ok(None);
        }
        let before = self.named.len();
        if let Some(with) = &query.with {
            self.with(with, outer)?;
        }
        let columns = self.body(&query.body, Some(query), outer)?;
        self.named.truncate(before);
        Ok(columns)
    }

    fn with(&mut self, with: &With, outer: Option<&Scope<'_>>) -> Result<()> {
        let first = self.named.len();
        for table in &with.cte_tables {
            let name = folded(&table.alias.name);
            if self.named[first..].iter().any(|(other, _)| *other == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(QueryError::refused("42712", message).at(table.alias.name.span));
            }
            let renamed: Vec<String> =
                table.alias.columns.iter().map(|column| folded(&column.name)).collect();
            let own = self.named.len();
            let columns = match (with.recursive, &table.query.with, &*table.query.body) {
                (true, None, SetExpr::SetOperation { op, left, right, .. }) => {
                    check_form(&name, *op, left, right)?;
                    let columns = self.body(left, None, outer)?;
                    check_recursion(&name, right)?;
                    // What is on the right may name what is on the left.
                    let of_left = columns.clone().map(|columns| called(columns, &renamed));
                    self.named.push((name.clone(), of_left));
                    let others = self.body(right, None, outer)?;
                    check_width(*op, &columns, &others, right)?;
                    check_types(&name, &columns, &others)?;
                    columns
                }
                _ => self.query(&table.query, outer)?,
            };
            self.named.truncate(own);
            if let Some(columns) = &columns
                && renamed.len() > columns.len()
            {
                let message = format!(
                    "WITH query \"{name}\" has {} columns available but {} columns specified",
                    columns.len(),
                    renamed.len()
                );
                return Err(QueryError::refused("42P10", message).at(table.alias.name.span));
            }
            self.named.push((name, columns.map(|columns| called(columns, &renamed))));
        }
        Ok(())
    }

    /// A body. `clauses` has ORDER BY and LIMIT, where those behind it are its own.
    fn body(
        &mut self,
        body: &SetExpr,
        clauses: Option<&Query>,
        outer: Option<&Scope<'_>>,
    ) -> Result<Columns> {
        match body {
            SetExpr::Select(select) => self.select(select, clauses, outer),
            SetExpr::Query(query) => {
                let is_bare = query.with.is_none()
                    && query.order_by.is_none()
                    && query.limit_clause.is_none()
                    && query.fetch.is_none();
                if is_bare {
                    return self.body(&query.body, clauses, outer);
                }
                let columns = self.query(query, outer)?;
                self.clauses_of_result(clauses, &columns, outer)?;
                Ok(columns)
            }
            SetExpr::SetOperation { op, left, right, .. } => {
                let columns = self.body(left, None, outer)?;
                let others = self.body(right, None, outer)?;
                check_width(*op, &columns, &others, right)?;
                self.clauses_of_result(clauses, &columns, outer)?;
                Ok(columns)
            }
            SetExpr::Values(values) => {
                let columns = self.values(values, outer)?;
                self.clauses_of_result(clauses, &columns, outer)?;
                Ok(columns)
            }
            // Are refused.
            _ => Ok(None),
        }
    }

    fn values(&mut self, values: &Values, outer: Option<&Scope<'_>>) -> Result<Columns> {
        let scope = Scope::new(scope::Space::default(), outer);
        let mut types: Option<Vec<Type>> = None;
        for row in &values.rows {
            let mut own = Vec::with_capacity(row.content.len());
            for value in &row.content {
                own.push(self.expression(value, &scope, Place::Values)?);
            }
            match &mut types {
                None => types = Some(own),
                Some(first) if first.len() != own.len() => {
                    let message = "VALUES lists must all be the same length";
                    let span = row.content.first().map(Spanned::span);
                    let error = QueryError::refused("42601", message);
                    return Err(span.map_or(error.clone(), |span| error.at(span)));
                }
                Some(first) => {
                    for (first, other) in first.iter_mut().zip(own) {
                        *first = if *first == other { other } else { Type::Untold };
                    }
                }
            }
        }
        let name = |(at, own)| (format!("column{}", at + 1), own);
        Ok(types.map(|types| types.into_iter().enumerate().map(name).collect()))
    }

    fn select(
        &mut self,
        select: &Select,
        clauses: Option<&Query>,
        outer: Option<&Scope<'_>>,
    ) -> Result<Columns> {
        if select.projection.is_empty() && select.distinct.is_some() {
            return Err(QueryError::refused("42601", "SELECT DISTINCT of no column"));
        }
        let scope = Scope::new(self.from(&select.from, outer)?, outer);
        let windows = select.named_window.iter().map(|window| folded(&window.0)).collect();
        let around = std::mem::replace(&mut self.windows, windows);
        let items = self.items(&select.projection, &scope)?;
        if let Some(selection) = &select.selection {
            self.condition(selection, &scope, Place::Where, "WHERE")?;
        }
        if let Some(having) = &select.having {
            self.condition(having, &scope, Place::Having, "HAVING")?;
        }
        let order_by = clauses.and_then(|query| query.order_by.as_ref());
        let order_by = match order_by.map(|order_by| &order_by.kind) {
            Some(OrderByKind::Expressions(by)) => by.as_slice(),
            _ => &[],
        };
        self.order_by(order_by, &items, &scope)?;
        let grouping = self.group_by(&select.group_by, &items, &scope)?;
        self.distinct(select.distinct.as_ref(), order_by, &items, &scope)?;
        if let Some(query) = clauses {
            self.limit(query, &scope)?;
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &window.1 {
                self.window(window, &scope)?;
            }
        }
        let is_grouped = grouping.is_some() || select.having.is_some() || scope.aggregates.get();
        if is_grouped && !self.is_second {
            *scope.grouping.borrow_mut() = Some(grouping.unwrap_or_default());
            self.is_second = true;
            let checked = self.check_grouped(select, order_by, &items, &scope);
            self.is_second = false;
            checked?;
        }
        self.windows = around;
        Ok(items.columns())
    }

    /// `*` stands for these columns, and for more where the relations are not told.
    fn star(&mut self, place: Span, columns: &[scope::Column], is_open: bool) {
        let Some(names) = &mut self.resolved else { return };
        columns.iter().for_each(|column| names.use_column(column.identity));
        if !is_open {
            let star = |column: &scope::Column| (column.relation.clone(), column.name.clone());
            names.add_star(place, columns.iter().map(star).collect());
        }
    }

    /// The fields of a record, which are to be written in its place.
    fn fields_of(
        &mut self,
        record: &Expr,
        place: Span,
        scope: &Scope<'_>,
    ) -> Result<Vec<(String, Type)>> {
        if self.resolved.is_some() {
            let message = "all fields of a record in a view are not supported".to_owned();
            return Err(QueryError::NotSupported { message });
        }
        let own = self.expression(record, scope, Place::Items)?;
        let mut named = record;
        while let Expr::Nested(inner) = named {
            named = inner;
        }
        let row = match (own, named) {
            (Type::Untold, Expr::Identifier(name)) => scope.row(&folded(name)),
            _ => None,
        };
        let fields: Vec<(String, Type)> = match (own, row) {
            (_, Some(columns)) => {
                columns.iter().map(|column| (column.name.clone(), column.data_type)).collect()
            }
            (Type::Known(ColumnType::Stored(DataType::Composite(of))), _) => {
                let field = |(name, own): &(Box<str>, DataType)| {
                    (name.to_string(), Type::Known(ColumnType::from(*own)))
                };
                of.fields().iter().map(field).collect()
            }
            (Type::Known(own), _) => {
                let message = format!("type {} is not composite", type_name(own));
                return Err(QueryError::refused("42809", message).at(place));
            }
            _ => {
                let message = "all fields of a record that only the plan tells are not supported";
                return Err(QueryError::NotSupported { message: message.to_owned() });
            }
        };
        self.all_fields.add(place, fields.iter().map(|(name, _)| name.clone()).collect());
        Ok(fields)
    }

    /// The columns of an answer.
    fn items<'s>(&mut self, items: &'s [SelectItem], scope: &Scope<'_>) -> Result<Items<'s>> {
        let mut all = Items::default();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expression)
                    if let Some((record, place)) = record_of(expression) =>
                {
                    let fields = self.fields_of(record, place, scope)?;
                    for (name, own) in fields {
                        all.push(name, own, None, None);
                    }
                }
                SelectItem::UnnamedExpr(expression) => {
                    let own = self.expression(expression, scope, Place::Items)?;
                    let name = name_of(expression).unwrap_or_else(|| "?column?".to_owned());
                    all.push(name, own, Some(expression), None);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let own = self.expression(expr, scope, Place::Items)?;
                    all.push(folded(alias), own, Some(expr), None);
                }
                SelectItem::Wildcard(options) => {
                    let span = options.wildcard_token.0.span;
                    if scope.space.sources.is_empty() && !scope.space.is_open {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(QueryError::refused("42601", message).at(span));
                    }
                    if self.resolved.is_some() || scope.space.is_open {
                        scope
                            .space
                            .columns
                            .iter()
                            .try_for_each(|column| column.check_side(span))?;
                    }
                    if let Some(columns) = scope.space.merged() {
                        self.merged.add_star(span, columns);
                    }
                    self.star(span, &scope.space.columns, scope.space.is_open);
                    all.extend(&scope.space.columns, span);
                    all.is_open |= scope.space.is_open;
                }
                SelectItem::QualifiedWildcard(kind, _) => {
                    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        all.is_open = true;
                        continue;
                    };
                    let parts: Vec<_> = name.0.iter().filter_map(|part| part.as_ident()).collect();
                    let [front @ .., relation] = parts.as_slice() else { continue };
                    let span = parts[0].span;
                    let (_, source) = scope.source(front.last().copied(), relation, span)?;
                    match &source.columns {
                        Some(columns) => {
                            self.star(span, columns, false);
                            all.extend(columns, span);
                        }
                        None => all.is_open = true,
                    }
                }
                SelectItem::ExprWithAliases { .. } => all.is_open = true,
            }
        }
        Ok(all)
    }
}

/// The columns with other names for the first of them.
fn called(columns: Vec<(String, Type)>, names: &[String]) -> Vec<(String, Type)> {
    let mut columns = columns;
    for (column, name) in columns.iter_mut().zip(names) {
        column.0.clone_from(name);
    }
    columns
}

/// Both sides of a UNION and the like have as many columns.
fn check_width(
    operator: SetOperator,
    columns: &Columns,
    others: &Columns,
    right: &SetExpr,
) -> Result<()> {
    match (columns, others) {
        (Some(columns), Some(others)) if columns.len() != others.len() => {
            let message = format!("each {operator} query must have the same number of columns");
            Err(QueryError::refused("42601", message).at(first_item(right)))
        }
        _ => Ok(()),
    }
}

/// Where the first column of a body stands.
fn first_item(body: &SetExpr) -> Span {
    match body {
        SetExpr::Select(select) => select.projection.first().map(Spanned::span),
        SetExpr::Query(query) => Some(first_item(&query.body)),
        SetExpr::SetOperation { left, .. } => Some(first_item(left)),
        SetExpr::Values(values) => {
            values.rows.first().and_then(|row| row.content.first()).map(Spanned::span)
        }
        _ => None,
    }
    .unwrap_or_else(Span::empty)
}
