//! From SQL's syntax to the form in which the engine evaluates expressions of CHECK constraints and
//! defaults. What the form does not have, or what would mean something else in it, comes to none: then the
//! expression stays text, and the server evaluates it. No part of a node is passed over: each is named here.

use onrush::Numeric;
use onrush::expression::{
    Arithmetic, Comparison, Expression, Field, Function, Interval, Pattern, Truth,
};
use onrush_query::parse_interval;
use sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    TrimWhereField, UnaryOperator,
};

use super::names::{self, SYSTEM_SCHEMA};
use super::operand::any_numeric;
use crate::schemas;

/// Deepest nesting that is looked into.
const DEPTH_MAX: usize = 100;

/// Reads an expression of a table's columns; `table` is its whole name.
pub(super) fn read(expression: &Expr, table: &str) -> Option<Expression> {
    Reader { table }.expression(expression, 0)
}

struct Reader<'t> {
    table: &'t str,
}

impl Reader<'_> {
    fn expression(&self, expression: &Expr, depth: usize) -> Option<Expression> {
        if depth > DEPTH_MAX {
            return None;
        }
        let read = |inner: &Expr| self.expression(inner, depth + 1);
        let is = |inner: &Expr, truth: Truth| Some(read(inner)?.is(truth));
        match expression {
            Expr::Nested(inner) => read(inner),
            Expr::Identifier(name) => Some(Expression::column(names::identifier(name))),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if names::identifier(table) == schemas::own_name(self.table) => {
                    Some(Expression::column(names::identifier(name)))
                }
                _ => None,
            },
            Expr::Value(value) => literal(&value.value),
            Expr::IsNull(inner) => is(inner, Truth::Null),
            Expr::IsNotNull(inner) => is(inner, Truth::NotNull),
            Expr::IsTrue(inner) => is(inner, Truth::True),
            Expr::IsNotTrue(inner) => is(inner, Truth::NotTrue),
            Expr::IsFalse(inner) => is(inner, Truth::False),
            Expr::IsNotFalse(inner) => is(inner, Truth::NotFalse),
            Expr::IsDistinctFrom(left, right) => {
                Some(read(left)?.distinct_from(read(right)?, true))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                Some(read(left)?.distinct_from(read(right)?, false))
            }
            Expr::InList { expr, list, negated } => {
                let list = list.iter().map(read).collect::<Option<Vec<_>>>()?;
                Some(negated_if(*negated, read(expr)?.one_of(list)))
            }
            Expr::Between { expr, negated, low, high } => {
                Some(negated_if(*negated, read(expr)?.between(read(low)?, read(high)?)))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let operands = [read(expr)?, like_pattern(read(pattern)?, escape_char.as_ref())?];
                Some(negated_if(*negated, Expression::call(Function::Like, operands)))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                let operands = [read(expr)?, like_pattern(read(pattern)?, escape_char.as_ref())?];
                let like = Expression::call(Function::LikeIgnoringCase, operands);
                Some(negated_if(*negated, like))
            }
            Expr::Extract { field, syntax: ast::ExtractSyntax::From, expr } => {
                Some(read(expr)?.extract(Field::named(&field.to_string())?))
            }
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Minus => Some(read(expr)?.negated()),
                UnaryOperator::Not => Some(read(expr)?.not()),
                _ => None,
            },
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, depth),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => match padded(expr, data_type) {
                Some(text) => Some(Expression::value(text.to_owned())),
                None => cast(read(expr)?, data_type),
            },
            Expr::TypedString(ast::TypedString { data_type, value, uses_odbc_syntax: false }) => {
                cast(literal(&value.value)?, data_type)
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                let operand = match operand {
                    Some(operand) => Some(read(operand)?),
                    None => None,
                };
                let mut branches = Vec::with_capacity(conditions.len());
                for ast::CaseWhen { condition, result } in conditions {
                    let condition = read(condition)?;
                    let condition = match &operand {
                        Some(operand) => operand.clone().equal_to(condition),
                        None => condition,
                    };
                    branches.push((condition, read(result)?));
                }
                let otherwise = match else_result {
                    Some(otherwise) => Some(read(otherwise)?),
                    None => None,
                };
                Some(Expression::case(branches, otherwise))
            }
            Expr::Position { expr, r#in } => {
                Some(Expression::call(Function::Position, [read(r#in)?, read(expr)?]))
            }
            Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                special: _,
                shorthand: _,
            } => {
                let mut operands = vec![read(expr)?, read(from)?];
                if let Some(length) = substring_for {
                    operands.push(read(length)?);
                }
                Some(Expression::call(Function::Substring, operands))
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let function = match trim_where {
                    None | Some(TrimWhereField::Both) => Function::Trim,
                    Some(TrimWhereField::Leading) => Function::TrimStart,
                    Some(TrimWhereField::Trailing) => Function::TrimEnd,
                };
                let mut operands = vec![read(expr)?];
                if let Some(what) = trim_what {
                    operands.push(read(what)?);
                }
                Some(Expression::call(function, operands))
            }
            Expr::Ceil { expr, field } if is_plain(field) => {
                Some(Expression::call(Function::Ceiling, [read(expr)?]))
            }
            Expr::Floor { expr, field } if is_plain(field) => {
                Some(Expression::call(Function::Floor, [read(expr)?]))
            }
            Expr::Function(call) => self.call(call, depth),
            _ => None,
        }
    }

    fn binary(
        &self,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
        depth: usize,
    ) -> Option<Expression> {
        use BinaryOperator as Sql;
        let read = |inner: &Expr| self.expression(inner, depth + 1);
        match (operator, interval(left), interval(right)) {
            (Sql::Plus, None, Some(by)) => return Some(read(left)?.plus(by)),
            (Sql::Plus, Some(by), None) => return Some(read(right)?.plus(by)),
            (Sql::Minus, None, Some(by)) => return Some(read(left)?.plus(by.negated()?)),
            (_, None, None) => {}
            _ => return None,
        }
        let is_negated = matches!(operator, Sql::PGRegexNotMatch | Sql::PGRegexNotIMatch);
        if is_negated || matches!(operator, Sql::PGRegexMatch | Sql::PGRegexIMatch) {
            let is_ignoring_case = matches!(operator, Sql::PGRegexIMatch | Sql::PGRegexNotIMatch);
            let pattern = Pattern::new(text_of(right)?, is_ignoring_case).ok()?;
            return Some(negated_if(is_negated, read(left)?.matches(pattern)));
        }
        let (left, right) = (read(left)?, read(right)?);
        let comparison = match operator {
            Sql::Eq => Comparison::Equal,
            Sql::NotEq => Comparison::NotEqual,
            Sql::Lt => Comparison::Less,
            Sql::LtEq => Comparison::LessOrEqual,
            Sql::Gt => Comparison::Greater,
            Sql::GtEq => Comparison::GreaterOrEqual,
            Sql::And => return Some(left.and(right)),
            Sql::Or => return Some(left.or(right)),
            Sql::StringConcat => {
                return Some(Expression::call(Function::Concatenate, [left, right]));
            }
            Sql::Plus => return Some(left.arithmetic(Arithmetic::Add, right)),
            Sql::Minus => return Some(left.arithmetic(Arithmetic::Subtract, right)),
            Sql::Multiply => return Some(left.arithmetic(Arithmetic::Multiply, right)),
            Sql::Divide => return Some(left.arithmetic(Arithmetic::Divide, right)),
            Sql::Modulo => return Some(left.arithmetic(Arithmetic::Remainder, right)),
            _ => return None,
        };
        Some(left.compare(comparison, right))
    }

    fn call(&self, call: &ast::Function, depth: usize) -> Option<Expression> {
        let ast::Function {
            name,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args,
            filter: None,
            null_treatment: None,
            over: None,
            within_group,
        } = call
        else {
            return None;
        };
        if !within_group.is_empty() {
            return None;
        }
        let mut name = names::parts(name).ok()?;
        if name.len() == 2 && (name[0] == SYSTEM_SCHEMA || name[0] == "pg_catalog") {
            name.remove(0);
        }
        let [name] = name.as_slice() else { return None };
        let arguments = match args {
            FunctionArguments::None => &[],
            FunctionArguments::List(ast::FunctionArgumentList {
                duplicate_treatment: None,
                args,
                clauses,
            }) if clauses.is_empty() => args.as_slice(),
            _ => return None,
        };
        if let ("date_trunc", [FunctionArg::Unnamed(FunctionArgExpr::Expr(field)), timestamp]) =
            (name.as_str(), arguments)
        {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(timestamp)) = timestamp else {
                return None;
            };
            let field = Field::named(text_of(field)?)?;
            return Some(self.expression(timestamp, depth + 1)?.truncated_to(field));
        }
        let argument = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(inner)) => self.expression(inner, depth + 1),
            _ => None,
        };
        let mut arguments = arguments.iter().map(argument).collect::<Option<Vec<_>>>()?;
        Some(match (name.as_str(), arguments.len()) {
            ("coalesce", 1..) => Expression::coalesce(arguments),
            ("greatest", 1..) => Expression::greatest(arguments),
            ("least", 1..) => Expression::least(arguments),
            ("nullif", 2) => {
                let other = arguments.pop()?;
                arguments.pop()?.null_if(other)
            }
            ("mod", 2) => {
                let other = arguments.pop()?;
                arguments.pop()?.arithmetic(Arithmetic::Remainder, other)
            }
            ("current_date", 0) => Expression::now().cast(onrush::DataType::Date),
            ("localtimestamp", 0) => Expression::now().cast(onrush::DataType::Timestamp),
            (name, _) => Expression::call(Function::named(name)?, arguments),
        })
    }
}

/// A pattern of LIKE with the escape character that is the form's own, the backslash. One that comes last
/// is an error when a row is looked at, and stays text.
fn like_pattern(pattern: Expression, escape: Option<&ast::ValueWithSpan>) -> Option<Expression> {
    let Some(escape) = escape else { return Some(pattern) };
    let ast::Value::SingleQuotedString(escape) = &escape.value else { return None };
    let mut escapes = escape.chars();
    let (escape, None) = (escapes.next(), escapes.next()) else { return None };
    if escape == Some('\\') {
        return Some(pattern);
    }
    let translated = onrush_query::with_backslashes(pattern.as_text()?, escape);
    let backslashes = translated.chars().rev().take_while(|last| *last == '\\').count();
    if !backslashes.is_multiple_of(2) {
        return None;
    }
    Some(Expression::value(translated))
}

fn negated_if(is_negated: bool, expression: Expression) -> Expression {
    if is_negated { expression.not() } else { expression }
}

fn is_plain(field: &ast::CeilFloorKind) -> bool {
    matches!(field, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime))
}

/// A constant. Numbers are of the first of integer, bigint and numeric that holds them.
fn literal(value: &ast::Value) -> Option<Expression> {
    Some(match value {
        ast::Value::Null => Expression::null(),
        ast::Value::Boolean(value) => Expression::value(*value),
        ast::Value::Number(digits, false) => {
            if let Ok(value) = digits.parse::<i32>() {
                Expression::value(value)
            } else if let Ok(value) = digits.parse::<i64>() {
                Expression::value(value)
            } else {
                let value = onrush::Decimal::from_str_exact(digits)
                    .or_else(|_| onrush::Decimal::from_scientific(digits));
                match value {
                    Ok(value) => Expression::value(value),
                    Err(_) => Expression::value(digits.parse::<Numeric>().ok()?),
                }
            }
        }
        ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
            Expression::value(text.clone())
        }
        ast::Value::DollarQuotedString(ast::DollarQuotedString { value, tag: _ }) => {
            Expression::value(value.clone())
        }
        _ => return None,
    })
}

/// A constant that is cast to a char(n) which holds it: it is compared with one as it is.
fn padded<'e>(expression: &'e Expr, data_type: &ast::DataType) -> Option<&'e str> {
    let (ast::DataType::Char(length) | ast::DataType::Character(length)) = data_type else {
        return None;
    };
    let length = match length {
        None => 1,
        Some(ast::CharacterLength::IntegerLength { length, unit: None }) => *length,
        Some(_) => return None,
    };
    let text = text_of(expression).filter(|text| !text.ends_with(' '))?;
    (text.chars().count() as u64 <= length).then_some(text)
}

fn cast(expression: Expression, data_type: &ast::DataType) -> Option<Expression> {
    if any_numeric(data_type) {
        return Some(expression.cast_to_decimal());
    }
    Some(expression.cast(super::create::data_type("the cast", data_type).ok()?))
}

/// An interval that is written out.
fn interval(expression: &Expr) -> Option<Interval> {
    let written = match expression {
        Expr::Nested(inner) => return interval(inner),
        Expr::Interval(ast::Interval {
            value,
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }) => text_of(value)?,
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type: ast::DataType::Interval { fields: None, precision: None },
            array: false,
            format: None,
        } => text_of(expr)?,
        _ => return None,
    };
    parse_interval(written).ok()
}

fn text_of(expression: &Expr) -> Option<&str> {
    let Expr::Value(value) = expression else { return None };
    match &value.value {
        ast::Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}
