//! Parentheses of an expression that is shown: around every operation, or, for people, where PostgreSQL has them.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, VisitMut,
    VisitorMut,
};

/// Puts parentheses around every operation.
pub(super) fn put_around_all(expression: &mut Expr) {
    let _: ControlFlow<()> = expression.visit(&mut All);
}

/// Leaves parentheses where PostgreSQL has them for people: around what binds less than what it stands in, and around
/// any comparison or computation inside of one of another kind.
pub(super) fn leave_needed(expression: &mut Expr) {
    let _: ControlFlow<()> = expression.visit(&mut Needed);
    strip(expression);
}

struct All;

impl VisitorMut for All {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Nested(inner) = expression
            && matches!(**inner, Expr::Nested(_))
        {
            *expression = (**inner).clone();
        }
        if is_condition(expression) || matches!(expression, Expr::BinaryOp { .. }) {
            *expression = Expr::Nested(Box::new(expression.clone()));
        }
        ControlFlow::Continue(())
    }
}

/// What may hold or not, but for comparisons and their like, which have two sides.
fn is_condition(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::Like { .. }
    )
}

struct Needed;

impl VisitorMut for Needed {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::BinaryOp { left, op, right } => {
                wrap(left, |inner| stands_alone(inner, op, true));
                wrap(right, |inner| stands_alone(inner, op, false));
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => wrap(expr, |inner| match inner {
                Expr::BinaryOp { op, .. } => !is_logical(op),
                other => !is_condition(other),
            }),
            Expr::Function(call) => {
                if let FunctionArguments::List(list) = &mut call.args {
                    for given in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) = given {
                            strip(given);
                        }
                    }
                }
            }
            Expr::Nested(inner) => strip(inner),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn strip(expression: &mut Expr) {
    while let Expr::Nested(inner) = expression {
        *expression = (**inner).clone();
    }
}

/// Puts parentheses around an operand, unless it stands alone.
fn wrap(operand: &mut Expr, stands_alone: impl Fn(&Expr) -> bool) {
    strip(operand);
    if !stands_alone(operand) {
        *operand = Expr::Nested(Box::new(operand.clone()));
    }
}

/// Whether an operand of the operator needs no parentheses.
fn stands_alone(operand: &Expr, operator: &BinaryOperator, is_left: bool) -> bool {
    match operand {
        Expr::BinaryOp { op, .. } => match operator {
            BinaryOperator::And => *op != BinaryOperator::Or,
            BinaryOperator::Or => true,
            _ => match (precedence(op), precedence(operator)) {
                (Some(inner), Some(outer)) => inner > outer || (inner == outer && is_left),
                _ => false,
            },
        },
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => is_logical(operator),
        other if is_condition(other) => is_logical(operator),
        _ => true,
    }
}

fn is_logical(operator: &BinaryOperator) -> bool {
    matches!(operator, BinaryOperator::And | BinaryOperator::Or)
}

/// Of what is computed; others have parentheses around each.
fn precedence(operator: &BinaryOperator) -> Option<u8> {
    match operator {
        BinaryOperator::Plus | BinaryOperator::Minus => Some(1),
        BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    /// What PostgreSQL 15 shows of each by `pg_get_constraintdef(oid, true)`.
    #[test]
    fn people_see_the_parentheses_that_postgresql_shows_them() {
        let shown = [
            ("(((x > 0)))", "x > 0"),
            ("x > 0 OR (y > 0)", "x > 0 OR y > 0"),
            ("(x > 0 OR y > 0) AND (x < 3)", "(x > 0 OR y > 0) AND x < 3"),
            ("(x > 0 AND y > 0) OR x < 3", "x > 0 AND y > 0 OR x < 3"),
            ("x + y > 3", "(x + y) > 3"),
            ("x + (y * 2) - 1 = 3", "(x + y * 2 - 1) = 3"),
            ("x - (y - 2) = 3", "(x - (y - 2)) = 3"),
            ("(x + y) * 2 = 3", "((x + y) * 2) = 3"),
            ("NOT (x > 0)", "NOT x > 0"),
            ("NOT (x > 0 AND y > 0)", "NOT (x > 0 AND y > 0)"),
            ("(x IS NULL) OR ((y IS NOT NULL))", "x IS NULL OR y IS NOT NULL"),
            ("abs((x + y)) > (0)", "abs(x + y) > 0"),
        ];
        for (written, wanted) in shown {
            let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(written);
            let mut expression = parser.expect("words").parse_expr().expect("an expression");
            leave_needed(&mut expression);
            assert_eq!(expression.to_string(), wanted, "{written}");
        }
    }
}
