//! Arrays and composite values, as PostgreSQL's tools write them.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderByKind,
    Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor,
    Value, ValueWithSpan, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{Label, call, call_of, folded, labels, sets};
use crate::functions::RECORD_FIELD;
use crate::nothing::is_surely_empty;
use crate::relation::Relations;

/// `ARRAY(SELECT ...)`: the rows of a query as an array.
pub(super) fn of_subquery(function: &Function, relations: &dyn Relations) -> Option<Expr> {
    let FunctionArguments::Subquery(query) = &function.args else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("array") {
        return None;
    }
    if is_surely_empty(&query.body, relations) {
        return Some(empty());
    }
    if let Some(array) = prefixed(query) {
        return Some(array);
    }
    let mut query = query.clone();
    if gather(&mut query).is_none() {
        query = Box::new(gathered(query)?);
    }
    // Of no rows an array is empty, where an aggregate is NULL.
    Some(call_of("coalesce", [Expr::Subquery(query), empty()]))
}

/// `ARRAY(SELECT 'a' || x FROM unnest(array) x)`, where the array is one of the row outside, which
/// DataFusion does not reach from there: psql writes it so.
fn prefixed(query: &Query) -> Option<Expr> {
    let select = only_select(query).filter(|_| query.order_by.is_none())?;
    let Select { projection, from, selection: None, .. } = select else { return None };
    let ([SelectItem::UnnamedExpr(value)], [from]) = (projection.as_slice(), from.as_slice())
    else {
        return None;
    };
    let mut source = from.relation.clone();
    name_elements(&mut source);
    let TableFactor::UNNEST { alias: Some(alias), array_exprs, .. } = &source else { return None };
    let Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } = value else {
        return None;
    };
    match (&**left, &**right, array_exprs.as_slice()) {
        (Expr::Value(prefix), Expr::Identifier(element), [array])
            if *element == alias.name && from.joins.is_empty() =>
        {
            Some(call_of("with_prefix", [Expr::Value(prefix.clone()), array.clone()]))
        }
        _ => None,
    }
}

/// `unnest(array)` in FROM, however it is written, and a series between bounds that are computed,
/// which DataFusion takes as an array only. The column is called as the relation is.
pub(super) fn name_elements(relation: &mut TableFactor) {
    if let TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. } =
        relation
    {
        let given = |given: &FunctionArg| match given {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given.clone()),
            _ => None,
        };
        let Some(given) = args.args.iter().map(given).collect::<Option<Vec<Expr>>>() else {
            return;
        };
        let is_computed = |given: &Expr| match given {
            Expr::Value(value) => matches!(value.value, Value::Placeholder(_)),
            other => !matches!(other, Expr::UnaryOp { .. }),
        };
        let name = name.0.last().map(|name| name.to_string().to_lowercase()).unwrap_or_default();
        let array_exprs = match name.as_str() {
            "unnest" => given,
            other if let Some((array, column)) = sets::array_of(other) => {
                if alias.is_none() {
                    let name = TableAliasColumnDef { name: Ident::new(column), data_type: None };
                    *alias = Some(TableAlias { columns: vec![name], ..called(other) });
                }
                vec![call_of(array, given)]
            }
            "generate_series" if given.iter().any(sets::is_numeric) => {
                vec![call_of(sets::NUMERIC_SERIES, given)]
            }
            "generate_series" if given.iter().any(sets::is_bigint) => {
                vec![sets::of_bigints(call_of(&name, given))]
            }
            "generate_series" if given.iter().any(is_computed) => vec![call_of(&name, given)],
            "generate_subscripts" => match subscripts(&given) {
                Some(numbers) => vec![numbers],
                None => return,
            },
            "generate_series" => return name_column(alias, &name),
            _ => return,
        };
        alias.get_or_insert_with(|| called(&name));
        *relation = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
    }
    if let TableFactor::UNNEST { alias, array_exprs, .. } = relation {
        tell_apart(array_exprs);
        if array_exprs.len() == 1 {
            name_column(alias, "unnest");
        }
    }
}

/// Writes expressions that are alike in other words: DataFusion calls the columns of an unnest by them, without casts.
fn tell_apart(expressions: &mut [Expr]) {
    let mut seen = Vec::with_capacity(expressions.len());
    for expression in expressions {
        let cast = sets::without_casts(expression).clone();
        let count = seen.iter().filter(|known| **known == cast).count();
        seen.push(cast);
        *expression = sets::in_other_words(expression.clone(), count);
    }
}

/// The SELECT of a query that has nothing else but an order, and itself nothing but items, FROM and WHERE: with any
/// other clause its rows are not those that an aggregate in its place would gather.
fn only_select(query: &Query) -> Option<&Select> {
    let Query { body, with: None, limit_clause: None, fetch: None, .. } = query else {
        return None;
    };
    let SetExpr::Select(select) = &**body else { return None };
    let is_plain = select.distinct.is_none()
        && select.group_by == GroupByExpr::Expressions(Vec::new(), Vec::new())
        && select.having.is_none();
    is_plain.then_some(&**select)
}

/// Calls the only column of a relation as the relation, which is called as the function that makes it
/// unless it has a name.
fn name_column(alias: &mut Option<TableAlias>, function: &str) {
    let alias = alias.get_or_insert_with(|| called(function));
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// `AS name`.
fn called(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// An array without elements.
fn empty() -> Expr {
    let element = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
    let written = Expr::value(Value::SingleQuotedString("{}".to_owned()));
    sets::cast(written, DataType::Array(element))
}

/// Makes a query of one column one of a single row: the array of the column.
fn gather(query: &mut Query) -> Option<()> {
    only_select(query)?;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let [item] = select.projection.as_mut_slice() else { return None };
    let (SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) = item
    else {
        return None;
    };
    let order = match query.order_by.take().map(|order| order.kind) {
        None => Vec::new(),
        Some(OrderByKind::Expressions(mut by)) => {
            for item in &mut by {
                // ORDER BY 1 is by the only column there is.
                if matches!(&item.expr, Expr::Value(_)) {
                    item.expr = value.clone();
                }
            }
            by
        }
        Some(OrderByKind::All(_)) => return None,
    };
    let mut gathered = call("array_agg", value.clone());
    if let (Expr::Function(function), false) = (&mut gathered, order.is_empty())
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    *value = gathered;
    Some(())
}

/// Whether an element of an array that is written out has columns or parameters.
pub(super) fn has_columns_or_parameters(array: &Array) -> bool {
    struct Open;
    impl Visitor for Open {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            match value.value {
                Value::Placeholder(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    array.elem.visit(&mut Open).is_break()
}

/// The array of the only column of a query, whose rows come in its order.
fn gathered(query: Box<Query>) -> Option<Query> {
    let [Label::Name(_)] = labels(&query.body)[..] else { return None };
    let text = "SELECT array_agg(gathered.item) FROM (SELECT 1) AS gathered (item)";
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?.pop()?;
    let Statement::Query(mut array) = statement else { return None };
    let SetExpr::Select(select) = &mut *array.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    *subquery = query;
    Some(*array)
}

/// Functions that make rows of an array.
pub(super) fn rows_of(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let given = |given: &FunctionArg| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given.clone()),
        _ => None,
    };
    let given = list.args.iter().map(given).collect::<Option<Vec<Expr>>>()?;
    let rows = match function.name.to_string().to_lowercase().as_str() {
        "_pg_expandarray" => call("numbered_elements", given.into_iter().next()?),
        "generate_subscripts" => subscripts(&given)?,
        _ => return None,
    };
    Some(call("unnest", rows))
}

/// The array of the numbers of an array's elements, the first comes first.
fn subscripts(given: &[Expr]) -> Option<Expr> {
    let [array, dimension] = given else { return None };
    Some(call_of("subscripts", [array.clone(), dimension.clone()]))
}

/// `(record).name`, and what follows it.
pub(super) fn field_of(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let (first, rest) = chain.split_first()?;
    let AccessExpr::Dot(Expr::Identifier(name)) = first else { return None };
    let name = Expr::value(Value::SingleQuotedString(folded(name)));
    let field = call_of(RECORD_FIELD, [root.clone(), name]);
    match rest {
        [] => Some(field),
        _ => field_of(&field, rest).or_else(|| {
            let (root, access_chain) = (Box::new(field), rest.to_vec());
            Some(Expr::CompoundFieldAccess { root, access_chain })
        }),
    }
}
