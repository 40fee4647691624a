//! Refuses each clause of a query that nothing would come of.
//!
//! The planner behind takes what it knows out of a statement, and passes over the rest in silence. So each node
//! that is accepted is taken apart here field by field, without `..`: a field that is new in the parser does not
//! compile before somebody says what becomes of it, and one that has no effect is refused by its name.
//!
//! - `clauses.rs`: queries, SELECT, ORDER BY, GROUP BY, windows.
//! - `clauses/from.rs`: what stands in FROM. `clauses/expression.rs`: expressions and calls.
//!   `clauses/named.rs`: queries of WITH that are named more than once.
//!
//! Invariant: a pattern in these files that ends in `..`, or `_` in the place of a field, stands only for what has
//! no meaning of its own (tokens, and spellings of the same), and says so.

mod expression;
mod from;
mod named;

use std::ops::ControlFlow;

use datafusion::logical_expr::Volatility;
use datafusion::sql::sqlparser::ast::{
    Cte, CteAsMaterialized, Distinct, Expr, Fetch, GroupByExpr, LimitClause, NamedWindowDefinition,
    NamedWindowExpr, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier,
    TableFactor, Values, Visit, Visitor, WildcardAdditionalOptions, WindowFrame, WindowSpec, With,
};

use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::syntax;

/// `is_aggregate` tells functions of many rows from others, by their names, and `is_volatile` those that do not
/// always make the same of the same.
fn check<V: Visit>(
    query: &V,
    is_aggregate: &dyn Fn(&str) -> bool,
    is_volatile: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let mut checker = Checker { is_aggregate, is_volatile, refused: None };
    let _: ControlFlow<()> = query.visit(&mut checker);
    match checker.refused {
        Some(what) => Err(QueryError::NotSupported { message: format!("{what} is not supported") }),
        None => Ok(()),
    }
}

impl QueryEngine {
    /// Refuses a statement, or a part of one, of which a query, an expression or an item of FROM has a clause that
    /// nothing would come of. Planning does so; this is for what is not planned here.
    ///
    /// # Errors
    /// [`NotSupported`](QueryError::NotSupported), with the clause.
    pub fn check_clauses<V: Visit>(&self, statement: &V) -> Result<()> {
        let is_volatile = |function: &str| {
            let functions = self.state.scalar_functions();
            functions
                .get(function)
                .is_some_and(|own| own.signature().volatility == Volatility::Volatile)
        };
        check(statement, &|function| self.is_of_many_rows(function), &is_volatile)
    }

    /// Whether a function is an aggregate or one of windows, by its name.
    pub(crate) fn is_of_many_rows(&self, function: &str) -> bool {
        self.state.aggregate_functions().contains_key(function)
            || self.state.window_functions().contains_key(function)
            || syntax::is_other_aggregate(function)
    }
}

/// Most queries of a WITH.
const WITH_QUERIES_MAX: usize = 1000;

/// What has no effect, in words.
type Checked = std::result::Result<(), String>;

/// Refuses a clause that is there.
fn none(is_there: bool, what: &str) -> Checked {
    if is_there { Err(what.to_owned()) } else { Ok(()) }
}

struct Checker<'f> {
    is_aggregate: &'f dyn Fn(&str) -> bool,
    is_volatile: &'f dyn Fn(&str) -> bool,
    refused: Option<String>,
}

impl Checker<'_> {
    fn take(&mut self, checked: Checked) -> ControlFlow<()> {
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(what) => {
                self.refused = Some(what);
                ControlFlow::Break(())
            }
        }
    }
}

impl Visitor for Checker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let checked = check_query(query).and_then(|()| named::check(query, self.is_volatile));
        self.take(checked)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.take(check_select(select))
    }

    fn pre_visit_table_factor(&mut self, relation: &TableFactor) -> ControlFlow<()> {
        self.take(from::check_relation(relation))
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let checked = expression::check(expression, self.is_aggregate);
        self.take(checked)
    }
}

fn check_query(query: &Query) -> Checked {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if let Some(with) = with {
        check_with(with)?;
    }
    check_body(body)?;
    if let Some(order_by) = order_by {
        check_order_by(order_by)?;
    }
    if let Some(limit) = limit_clause {
        check_limit(limit)?;
    }
    if let Some(Fetch { with_ties, percent, quantity: _quantity_is_visited }) = fetch {
        none(*with_ties, "FETCH ... WITH TIES")?;
        none(*percent, "FETCH ... PERCENT")?;
        let has_limit =
            matches!(limit_clause, Some(LimitClause::LimitOffset { limit: Some(_), .. }));
        none(has_limit, "FETCH together with LIMIT")?;
    }
    none(!locks.is_empty(), "FOR UPDATE and FOR SHARE: the first to commit wins instead; this")?;
    none(for_clause.is_some(), "FOR XML and FOR JSON")?;
    none(settings.is_some(), "SETTINGS")?;
    none(format_clause.is_some(), "FORMAT")?;
    none(!pipe_operators.is_empty(), "the operator |>")
}

fn check_with(with: &With) -> Checked {
    let With { with_token: _, recursive, cte_tables } = with;
    // Each may stand inside of the next.
    none(cte_tables.len() > WITH_QUERIES_MAX, "WITH of more than 1,000 queries")?;
    for table in cte_tables {
        let Cte { alias, query, from, materialized, closing_paren_token: _ } = table;
        from::check_alias(alias)?;
        none(from.is_some(), "FROM behind a query of WITH")?;
        match materialized {
            // Says how to go about it, not what comes of it.
            None | Some(CteAsMaterialized::Materialized | CteAsMaterialized::NotMaterialized) => {}
        }
        let is_union = matches!(&*query.body, SetExpr::SetOperation { op: SetOperator::Union, .. });
        if *recursive && is_union {
            none(query.order_by.is_some(), "ORDER BY in a recursive query")?;
            let is_limited = query.limit_clause.is_some() || query.fetch.is_some();
            none(is_limited, "LIMIT, OFFSET and FETCH in a recursive query")?;
            none(query.with.is_some(), "WITH in a recursive query")?;
        }
    }
    Ok(())
}

fn check_body(body: &SetExpr) -> Checked {
    match body {
        // Are visited.
        SetExpr::Select(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            match op {
                SetOperator::Union | SetOperator::Intersect | SetOperator::Except => {}
                SetOperator::Minus => return Err("MINUS".to_owned()),
            }
            match set_quantifier {
                // As many copies would have to be left over as the sides differ by.
                SetQuantifier::All if *op != SetOperator::Union => {
                    let number = "row_number() OVER (PARTITION BY ...)";
                    return Err(format!("{op} ALL: give the rows of both sides a {number}; this"));
                }
                SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None => {}
                SetQuantifier::ByName
                | SetQuantifier::AllByName
                | SetQuantifier::DistinctByName => return Err(format!("{op} BY NAME")),
            }
            check_body(left)?;
            check_body(right)
        }
        SetExpr::Values(Values { explicit_row, value_keyword, rows: _rows_are_visited }) => {
            none(*explicit_row, "VALUES ROW (...)")?;
            none(*value_keyword, "VALUE")
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            Err("INSERT, UPDATE, DELETE or MERGE inside of a query".to_owned())
        }
        SetExpr::Table(_) => Err("TABLE inside of a query".to_owned()),
    }
}

fn check_limit(limit: &LimitClause) -> Checked {
    match limit {
        LimitClause::LimitOffset { limit: _is_visited, offset, limit_by } => {
            if let Some(Offset { value: _is_visited, rows: _spelling }) = offset {}
            none(!limit_by.is_empty(), "LIMIT ... BY")
        }
        LimitClause::OffsetCommaLimit { offset: _, limit: _ } => Err("LIMIT offset, count".into()),
    }
}

fn check_order_by(order_by: &OrderBy) -> Checked {
    let OrderBy { kind, interpolate } = order_by;
    none(interpolate.is_some(), "INTERPOLATE")?;
    match kind {
        OrderByKind::All(_) => Err("ORDER BY ALL".to_owned()),
        OrderByKind::Expressions(items) => {
            for item in items {
                check_order_item(item)?;
                expression::refuse_named_window(&item.expr, "ORDER BY")?;
            }
            Ok(())
        }
    }
}

fn check_order_item(item: &OrderByExpr) -> Checked {
    let OrderByExpr { expr: _is_visited, options, with_fill } = item;
    // Both are taken.
    let OrderByOptions { asc: _, nulls_first: _ } = options;
    none(with_fill.is_some(), "WITH FILL")
}

fn check_select(select: &Select) -> Checked {
    let Select {
        select_token: _,
        // Comments.
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _of_top,
        projection,
        exclude,
        into,
        from: items,
        lateral_views,
        prewhere,
        selection: _is_visited,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _having_is_visited,
        named_window,
        qualify,
        window_before_qualify: _of_qualify,
        value_table_mode,
        flavor,
    } = select;
    match distinct {
        None | Some(Distinct::All | Distinct::Distinct | Distinct::On(_)) => {}
    }
    none(select_modifiers.is_some(), "a modifier of SELECT")?;
    none(top.is_some(), "TOP")?;
    projection.iter().try_for_each(check_item)?;
    none(exclude.is_some(), "EXCLUDE")?;
    none(
        into.is_some(),
        "SELECT INTO other than of a plain SELECT: CREATE TABLE ... AS makes a table of any query; this",
    )?;
    items.iter().try_for_each(from::check_joined)?;
    none(!lateral_views.is_empty(), "LATERAL VIEW")?;
    none(prewhere.is_some(), "PREWHERE")?;
    none(!connect_by.is_empty(), "CONNECT BY")?;
    check_group_by(group_by)?;
    none(!cluster_by.is_empty(), "CLUSTER BY")?;
    none(!distribute_by.is_empty(), "DISTRIBUTE BY")?;
    none(!sort_by.is_empty(), "SORT BY")?;
    named_window.iter().try_for_each(check_named_window)?;
    none(qualify.is_some(), "QUALIFY")?;
    none(value_table_mode.is_some(), "SELECT AS")?;
    match flavor {
        SelectFlavor::Standard => Ok(()),
        SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => {
            Err("FROM in front of SELECT".to_owned())
        }
    }
}

fn check_item(item: &SelectItem) -> Checked {
    match item {
        SelectItem::UnnamedExpr(_is_visited) => Ok(()),
        // The name is taken.
        SelectItem::ExprWithAlias { expr: _is_visited, alias: _ } => Ok(()),
        SelectItem::ExprWithAliases { expr: _, aliases: _ } => {
            Err("several names of one column".to_owned())
        }
        SelectItem::Wildcard(options) => check_wildcard(options),
        SelectItem::QualifiedWildcard(kind, options) => {
            match kind {
                SelectItemQualifiedWildcardKind::ObjectName(_)
                | SelectItemQualifiedWildcardKind::Expr(_) => {}
            }
            check_wildcard(options)
        }
    }
}

fn check_wildcard(options: &WildcardAdditionalOptions) -> Checked {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    none(opt_ilike.is_some(), "* ILIKE")?;
    none(opt_exclude.is_some(), "* EXCLUDE")?;
    none(opt_except.is_some(), "* EXCEPT (...)")?;
    none(opt_replace.is_some(), "* REPLACE")?;
    none(opt_rename.is_some(), "* RENAME")?;
    none(opt_alias.is_some(), "* AS")
}

fn check_group_by(group_by: &GroupByExpr) -> Checked {
    match group_by {
        GroupByExpr::All(_) => Err("GROUP BY ALL".to_owned()),
        GroupByExpr::Expressions(_are_visited, modifiers) => match modifiers.first() {
            Some(modifier) => Err(format!("GROUP BY ... {modifier}")),
            None => Ok(()),
        },
    }
}

fn check_named_window(window: &NamedWindowDefinition) -> Checked {
    let NamedWindowDefinition(_name_is_taken, window) = window;
    match window {
        NamedWindowExpr::NamedWindow(_) => Err("WINDOW as another one".to_owned()),
        NamedWindowExpr::WindowSpec(window) => check_window(window),
    }
}

fn check_window(window: &WindowSpec) -> Checked {
    let WindowSpec { window_name, partition_by: _are_visited, order_by, window_frame } = window;
    none(window_name.is_some(), "a window that begins with the name of another one")?;
    order_by.iter().try_for_each(check_order_item)?;
    // All three are taken.
    if let Some(WindowFrame { units: _, start_bound: _, end_bound: _ }) = window_frame {}
    Ok(())
}
