//! Arrays and composite values, as PostgreSQL's tools write them.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, OrderByKind, Query, SelectItem, SetExpr,
    Value,
};

use super::{call, call_of};
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
    let mut query = query.clone();
    gather(&mut query)?;
    // Of no rows an array is empty, where an aggregate is NULL.
    Some(call_of("coalesce", [Expr::Subquery(query), empty()]))
}

/// An array without elements.
fn empty() -> Expr {
    let element = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::SingleQuotedString("{}".to_owned()))),
        data_type: DataType::Array(element),
        array: false,
        format: None,
    }
}

/// Makes a query of one column one of a single row: the array of the column.
fn gather(query: &mut Query) -> Option<()> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let ([item], None) = (select.projection.as_mut_slice(), &query.limit_clause) else {
        return None;
    };
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

/// Functions that make rows of an array.
pub(super) fn rows_of(function: &Function) -> Option<Expr> {
    let rows = match function.name.to_string().to_lowercase().as_str() {
        "_pg_expandarray" => "numbered_elements",
        "generate_subscripts" => "subscripts",
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(array))) = list.args.first() else {
        return None;
    };
    Some(call("unnest", call(rows, array.clone())))
}

/// `(value).field`.
pub(super) fn field_of(root: &Expr, chain: &[AccessExpr]) -> Option<Expr> {
    let [AccessExpr::Dot(Expr::Identifier(Ident { value: name, .. }))] = chain else { return None };
    let name = Expr::value(Value::SingleQuotedString(name.to_lowercase()));
    Some(call_of("get_field", [root.clone(), name]))
}
