//! `rank(values) WITHIN GROUP (ORDER BY keys)` and its kin: which place the values would have among the rows. They are
//! written as counts of the rows that come before the values.
//!
//! | function | as |
//! |---|---|
//! | `rank` | 1 + rows before |
//! | `dense_rank` | 1 + different keys before |
//! | `percent_rank` | rows before / all rows; 0 without rows |
//! | `cume_dist` | (1 + rows before or alike) / (1 + all rows) |

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, DuplicateTreatment, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, OrderByExpr, Query, Select,
    SelectItem, Value, VisitMut, VisitorMut,
};

use super::{call_of, sets};
use crate::functions::ROW;

/// Writes all of a query anew.
pub(super) fn as_counts(query: &mut Query) {
    struct Writer;

    impl VisitorMut for Writer {
        type Break = ();

        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr @ Expr::Function(_)) = item
                    && let Some(name) = hypothetical(expr).map(|call| call.name.to_string())
                {
                    let (expr, alias) = (expr.clone(), Ident::new(name.to_lowercase()));
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
            if let Some(count) = hypothetical(expression).and_then(counted) {
                *expression = count;
            }
            ControlFlow::Continue(())
        }
    }

    let _: ControlFlow<()> = query.visit(&mut Writer);
}

/// The call, if it is one of such a function.
fn hypothetical(expression: &Expr) -> Option<&Function> {
    let Expr::Function(call) = expression else { return None };
    let name = call.name.to_string().to_lowercase();
    let is_one = matches!(name.as_str(), "rank" | "dense_rank" | "percent_rank" | "cume_dist");
    (is_one && !call.within_group.is_empty() && call.over.is_none()).then_some(call)
}

fn counted(call: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let value = |given: &FunctionArg| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    let values = list.args.iter().map(value).collect::<Option<Vec<Expr>>>()?;
    if values.len() != call.within_group.len() || list.duplicate_treatment.is_some() {
        return None;
    }
    let filter = call.filter.as_deref();
    let before = before(&call.within_group, &values);
    let place = match call.name.to_string().to_lowercase().as_str() {
        "rank" => plus_one(count(None, Some(before), filter)),
        "dense_rank" => {
            let keys = call.within_group.iter().map(|key| key.expr.clone());
            plus_one(count(Some(call_of(ROW, keys)), Some(before), filter))
        }
        "percent_rank" => {
            let all = call_of("nullif", [count(None, None, filter), number("0")]);
            let part = divided(count(None, Some(before), filter), all);
            call_of("coalesce", [part, float(number("0"))])
        }
        _ => {
            let not_behind = either(before, alike(&call.within_group, &values));
            let not_behind = plus_one(count(None, Some(not_behind), filter));
            divided(not_behind, plus_one(count(None, None, filter)))
        }
    };
    Some(values.iter().fold(place, beside))
}

/// The place, written so that the value stands outside of the counts too: a column there must be grouped.
fn beside(place: Expr, value: &Expr) -> Expr {
    let mut bare = value;
    while let Expr::Cast { expr, .. } | Expr::Nested(expr) = bare {
        bare = expr;
    }
    if let Expr::Value(_) = bare {
        return place;
    }
    let condition = Expr::IsNull(Box::new(nested(value)));
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: place.clone() }],
        else_result: Some(Box::new(place)),
    }
}

/// Whether the keys of a row come before the values.
fn before(keys: &[OrderByExpr], values: &[Expr]) -> Expr {
    let mut whole: Option<Expr> = None;
    for (key, value) in keys.iter().zip(values).rev() {
        let own = comes_before(key, value);
        whole = Some(match whole {
            None => own,
            Some(rest) => either(own, both(is_alike(key, value), rest)),
        });
    }
    whole.unwrap_or_else(|| Expr::value(Value::Boolean(false)))
}

fn alike(keys: &[OrderByExpr], values: &[Expr]) -> Expr {
    let each = keys.iter().zip(values).map(|(key, value)| is_alike(key, value));
    each.reduce(both).unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

fn comes_before(key: &OrderByExpr, value: &Expr) -> Expr {
    let descending = key.options.asc == Some(false);
    let nulls_first = key.options.nulls_first.unwrap_or(descending);
    let (key, value) = (nested(&key.expr), nested(value));
    let op = if descending { BinaryOperator::Gt } else { BinaryOperator::Lt };
    let compared = operation(key.clone(), op, value.clone());
    // NULL where one of them is; then their places tell.
    let (first, last) = if nulls_first { (key, value) } else { (value, key) };
    let by_null = both(Expr::IsNull(Box::new(first)), Expr::IsNotNull(Box::new(last)));
    either(compared, by_null)
}

fn is_alike(key: &OrderByExpr, value: &Expr) -> Expr {
    let (key, value) = (Box::new(nested(&key.expr)), Box::new(nested(value)));
    Expr::IsNotDistinctFrom(key, value)
}

/// `count(*)`, or of different values, of the rows that are wanted.
fn count(distinct: Option<Expr>, wanted: Option<Expr>, filter: Option<&Expr>) -> Expr {
    let filter = filter.map(nested);
    let filter = match (wanted, filter) {
        (Some(wanted), Some(filter)) => Some(both(wanted, filter)),
        (wanted, filter) => wanted.or(filter),
    };
    let duplicate_treatment = distinct.is_some().then_some(DuplicateTreatment::Distinct);
    let given = distinct.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
    let args = vec![FunctionArg::Unnamed(given)];
    let list = FunctionArgumentList { duplicate_treatment, args, clauses: Vec::new() };
    let Expr::Function(call) = call_of("count", []) else { return number("0") };
    let (args, filter) = (FunctionArguments::List(list), filter.map(Box::new));
    Expr::Function(Function { args, filter, ..call })
}

fn nested(expression: &Expr) -> Expr {
    Expr::Nested(Box::new(expression.clone()))
}

fn operation(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
}

fn both(left: Expr, right: Expr) -> Expr {
    operation(left, BinaryOperator::And, right)
}

fn either(left: Expr, right: Expr) -> Expr {
    operation(left, BinaryOperator::Or, right)
}

fn plus_one(count: Expr) -> Expr {
    operation(number("1"), BinaryOperator::Plus, count)
}

fn divided(left: Expr, right: Expr) -> Expr {
    operation(float(left), BinaryOperator::Divide, float(right))
}

fn float(value: Expr) -> Expr {
    sets::cast(value, DataType::DoublePrecision)
}

fn number(written: &str) -> Expr {
    Expr::value(Value::Number(written.to_owned(), false))
}
