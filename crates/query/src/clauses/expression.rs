//! Expressions, and calls of functions.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, CaseWhen, CastKind, CeilFloorKind, DateTimeField, DuplicateTreatment, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Interval, NullTreatment, Subscript, TypedString, WindowType,
};

use super::{Checked, check_order_item, check_wildcard, check_window, none};
use crate::outer_calls::calls_outside_queries;
use crate::syntax::range_of;

/// Functions of windows that may be told what to do with NULL.
const OF_NULLS: [&str; 5] = ["first_value", "last_value", "nth_value", "lag", "lead"];

pub(super) fn check(expression: &Expr, is_aggregate: &dyn Fn(&str) -> bool) -> Checked {
    match expression {
        Expr::Function(call) => check_call(call, is_aggregate),
        Expr::Cast { kind, expr: _is_visited, data_type: _is_taken, array, format } => {
            match kind {
                CastKind::Cast | CastKind::DoubleColon => {}
                CastKind::TryCast | CastKind::SafeCast => {
                    return Err("TRY_CAST and SAFE_CAST".to_owned());
                }
            }
            none(*array, "CAST ... ARRAY")?;
            none(format.is_some(), "CAST ... FORMAT")
        }
        Expr::Like { negated: _, any, expr: _, pattern: _, escape_char: _ }
        | Expr::ILike { negated: _, any, expr: _, pattern: _, escape_char: _ } => {
            none(*any, "LIKE ANY without a list")
        }
        Expr::SimilarTo { negated: _, expr: _, pattern: _, escape_char: _ } => Ok(()),
        Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => match field {
            CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => Ok(()),
            CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => {
                Err("CEIL and FLOOR to a field or a scale".to_owned())
            }
        },
        Expr::Trim { trim_where: _, trim_what: _, expr: _, trim_characters } => {
            none(trim_characters.is_some(), "TRIM (text, characters)")
        }
        Expr::Array(Array { elem: _are_visited, named: _spelling }) => Ok(()),
        Expr::Interval(interval) => check_interval(interval),
        Expr::TypedString(TypedString { data_type: _, value: _, uses_odbc_syntax: _spelling }) => {
            Ok(())
        }
        Expr::Case { case_token: _, end_token: _, operand: _, conditions, else_result: _ } => {
            conditions.iter().try_for_each(|when| {
                let CaseWhen { condition: _is_visited, result: _result_is_visited } = when;
                Ok(())
            })
        }
        Expr::CompoundFieldAccess { root: _is_visited, access_chain } => {
            access_chain.iter().try_for_each(|access| match access {
                AccessExpr::Dot(_)
                | AccessExpr::Subscript(Subscript::Index { index: _ })
                | AccessExpr::Subscript(Subscript::Slice {
                    lower_bound: _,
                    upper_bound: _,
                    stride: None,
                }) => Ok(()),
                AccessExpr::Subscript(Subscript::Slice { stride: Some(_), .. }) => {
                    Err("the step of a slice".to_owned())
                }
            })
        }
        // Spellings of one function: with commas, or with words between the arguments.
        Expr::Extract { field: _, syntax: _, expr: _ }
        | Expr::Position { expr: _, r#in: _ }
        | Expr::Substring {
            expr: _,
            substring_from: _,
            substring_for: _,
            special: _,
            shorthand: _,
        }
        | Expr::Overlay { expr: _, overlay_what: _, overlay_from: _, overlay_for: _ } => Ok(()),
        // ANY and SOME are the same.
        Expr::AnyOp { left: _, compare_op: _, right: _, is_some: _ }
        | Expr::AllOp { left: _, compare_op: _, right: _ } => Ok(()),
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList { expr: _, list: _, negated: _ }
        | Expr::InSubquery { expr: _, subquery: _, negated: _ }
        | Expr::Between { expr: _, negated: _, low: _, high: _ }
        | Expr::BinaryOp { left: _, op: _, right: _ }
        | Expr::UnaryOp { op: _, expr: _ }
        | Expr::AtTimeZone { timestamp: _, time_zone: _ }
        | Expr::Collate { expr: _, collation: _ }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::Exists { subquery: _, negated: _ }
        | Expr::Subquery(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_)
        | Expr::Tuple(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(_, _) => Ok(()),
        other => Err(format!("{other}")),
    }
}

fn check_interval(interval: &Interval) -> Checked {
    let Interval {
        value: _is_visited,
        leading_field,
        leading_precision: digits,
        last_field,
        fractional_seconds_precision,
    } = interval;
    let range = range_of(leading_field.as_ref(), last_field.as_ref());
    none(range.is_none(), "an interval of these fields")?;
    let is_of_seconds = matches!(leading_field, Some(DateTimeField::Second));
    none(digits.is_some() && !is_of_seconds, "the precision of an interval without seconds")?;
    let is_twice = digits.is_some() && fractional_seconds_precision.is_some();
    none(is_twice, "an interval of two precisions")
}

fn check_call(call: &Function, is_aggregate: &dyn Fn(&str) -> bool) -> Checked {
    let Function {
        name,
        uses_odbc_syntax: _spelling,
        parameters,
        args,
        filter,
        null_treatment,
        over,
        within_group,
    } = call;
    match parameters {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) | FunctionArguments::List(_) => {
            return Err("a function's parameters in front of its arguments".to_owned());
        }
    }
    let name = name.0.last().map(ToString::to_string).unwrap_or_default().to_lowercase();
    let name = name.trim_matches('"');
    let of_one_row = !is_aggregate(name);
    let only_aggregates = |is_there: bool, clause: &str| {
        none(
            is_there && of_one_row,
            &format!("{clause} of {name}, which is no aggregate function,"),
        )
    };
    match args {
        FunctionArguments::None | FunctionArguments::Subquery(_) => {}
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
            match duplicate_treatment {
                None => {}
                Some(DuplicateTreatment::All) => only_aggregates(true, "ALL")?,
                Some(DuplicateTreatment::Distinct) => only_aggregates(true, "DISTINCT")?,
            }
            args.iter().try_for_each(check_argument)?;
            for clause in clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(items) => {
                        only_aggregates(true, "ORDER BY")?;
                        items.iter().try_for_each(check_order_item)?;
                    }
                    FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => {
                        check_nulls(name, *nulls)?;
                    }
                    other => return Err(format!("{other} among a function's arguments")),
                }
            }
        }
    }
    only_aggregates(filter.is_some(), "FILTER")?;
    null_treatment.map_or(Ok(()), |nulls| check_nulls(name, nulls))?;
    only_aggregates(!within_group.is_empty(), "WITHIN GROUP")?;
    within_group.iter().try_for_each(check_order_item)?;
    match over {
        None => Ok(()),
        Some(window) => {
            only_aggregates(true, "OVER")?;
            none(!within_group.is_empty(), "WITHIN GROUP together with OVER")?;
            match window {
                WindowType::WindowSpec(window) => check_window(window),
                // What it stands for is looked at where it is defined.
                WindowType::NamedWindow(_) => Ok(()),
            }
        }
    }
}

fn check_argument(argument: &FunctionArg) -> Checked {
    let value = match argument {
        FunctionArg::Unnamed(value) => value,
        FunctionArg::Named { name: _is_taken, arg, operator: _spelling } => arg,
        FunctionArg::ExprNamed { name: _is_taken, arg, operator: _spelling } => arg,
    };
    match value {
        FunctionArgExpr::Expr(_)
        | FunctionArgExpr::QualifiedWildcard(_)
        | FunctionArgExpr::Wildcard => Ok(()),
        FunctionArgExpr::WildcardWithOptions(options) => check_wildcard(options),
    }
}

fn check_nulls(function: &str, nulls: NullTreatment) -> Checked {
    match nulls {
        NullTreatment::IgnoreNulls | NullTreatment::RespectNulls => {
            none(!OF_NULLS.contains(&function), &format!("{nulls} of {function}"))
        }
    }
}

/// The planner looks for the definitions of windows from the columns of the answer alone.
pub(super) fn refuse_named_window(expression: &Expr, place: &str) -> Checked {
    let has_name = |call: &Function| matches!(call.over, Some(WindowType::NamedWindow(_)));
    let found = calls_outside_queries(expression, &has_name);
    none(found, &format!("OVER a window by its name in {place}"))
}
