//! Expressions: what their names mean, and what may not stand where they stand.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, ObjectName, Spanned, Subscript, UnaryOperator, Value, WindowSpec,
};

use super::Binder;
use super::calls::refuse_rows;
use super::scope::{Column, Found, Scope};
use super::types::Type;
use crate::error::{QueryError, Result};
use crate::syntax::Sides;

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Items,
    JoinCondition,
    Where,
    GroupBy,
    Having,
    OrderBy,
    Limit,
    Offset,
    Values,
    Filter,
    Window,
    FunctionInFrom,
}

impl Place {
    /// Its name, if there can be no aggregates.
    pub(super) fn without_aggregates(self) -> Option<&'static str> {
        Some(match self {
            Place::JoinCondition => "JOIN conditions",
            Place::Where => "WHERE",
            Place::GroupBy => "GROUP BY",
            Place::Limit => "LIMIT",
            Place::Offset => "OFFSET",
            Place::Values => "VALUES",
            Place::Filter => "FILTER",
            Place::FunctionInFrom => "functions in FROM",
            Place::Items | Place::Having | Place::OrderBy | Place::Window => return None,
        })
    }

    /// Its name, if there can be no functions of windows.
    pub(super) fn without_windows(self) -> Option<&'static str> {
        match self {
            Place::Having => Some("HAVING"),
            Place::Window => Some("window definitions"),
            other => other.without_aggregates(),
        }
    }
}

impl Binder<'_> {
    /// The type of an expression, all of whose names mean something.
    pub(super) fn expression(
        &mut self,
        expression: &Expr,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Type> {
        if self.is_grouped(expression, scope) {
            return Ok(Type::Untold);
        }
        Ok(match expression {
            Expr::Identifier(name) if is_keyword(name, "current_schema") => Type::TEXT,
            Expr::Identifier(name) if is_keyword(name, "default") => {
                let message = "DEFAULT beside values that are computed is not supported".to_owned();
                return Err(QueryError::NotSupported { message });
            }
            Expr::Identifier(name) => {
                match scope.side_of_merged(name) {
                    Some((Sides::Both(..), _)) if self.resolved.is_some() => {
                        if let (_, Found::Column(column)) = scope.find(name)? {
                            column.check_side(name.span)?;
                        }
                    }
                    Some((sides, _)) => self.merged.add(name, sides),
                    None => {}
                }
                self.found(scope.column(name)?, scope)
            }
            Expr::CompoundIdentifier(parts) => self.found(scope.qualified(parts)?, scope),
            Expr::Value(constant) => match &constant.value {
                Value::Placeholder(id) => self.parameter(id),
                other => Type::of_constant(other),
            },
            Expr::TypedString(typed) => Type::written(&typed.data_type),
            Expr::Cast { expr, data_type, .. } => {
                if !is_empty_array(expr) {
                    self.expression(expr, scope, place)?;
                }
                Type::written(data_type)
            }
            Expr::Array(_) if is_empty_array(expression) => {
                let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
                let error = QueryError::refused("42P18", "cannot determine type of empty array");
                return Err(error.at(expression.span()).hint(hint));
            }
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => {
                self.expression(inner, scope, place)?
            }
            Expr::UnaryOp { op, expr } => {
                let inner = self.expression(expr, scope, place)?;
                match op {
                    UnaryOperator::Not => Type::BOOLEAN,
                    UnaryOperator::Plus | UnaryOperator::Minus => inner,
                    _ => Type::Untold,
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let left = self.expression(left, scope, place)?;
                let right = self.expression(right, scope, place)?;
                if self.suspect.is_none() && !Type::go_together(left, op, right) {
                    let message =
                        format!("operator does not exist: {} {op} {}", left.name(), right.name());
                    let hint = "No operator matches the given name and argument types. \
                                You might need to add explicit type casts.";
                    self.suspect = Some(QueryError::refused("42883", message).hint(hint));
                }
                Type::of_two(left, op, right)
            }
            Expr::Function(call) => self.call(call, scope, place)?,
            Expr::Subquery(query) => {
                let columns = self.query(query, Some(scope))?;
                match columns.as_deref() {
                    Some([(_, one)]) => *one,
                    _ => Type::Untold,
                }
            }
            Expr::Exists { subquery, .. } => {
                self.query(subquery, Some(scope))?;
                Type::BOOLEAN
            }
            Expr::InSubquery { expr, subquery, .. } => {
                self.expression(expr, scope, place)?;
                self.query(subquery, Some(scope))?;
                Type::BOOLEAN
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                if let Some(operand) = operand {
                    self.expression(operand, scope, place)?;
                }
                let mut made = Type::Constant;
                for when in conditions {
                    refuse_rows(&when.result, "CASE")?;
                    self.expression(&when.condition, scope, place)?;
                    let result = self.expression(&when.result, scope, place)?;
                    made = if made == Type::Constant { result } else { made };
                }
                if let Some(result) = else_result {
                    refuse_rows(result, "CASE")?;
                    let result = self.expression(result, scope, place)?;
                    made = if made == Type::Constant { result } else { made };
                }
                made
            }
            other if let Some(name) = called_as(other) => {
                let given = inside(other);
                let types = given.iter().map(|inner| self.expression(inner, scope, place));
                let types = types.collect::<Result<Vec<Type>>>()?;
                let written = ObjectName::from(vec![Ident::new(name)]);
                self.type_constants(&written, name, &given, &types)?;
                Type::Untold
            }
            other => {
                for inner in inside(other) {
                    self.expression(inner, scope, place)?;
                }
                type_of(other)
            }
        })
    }

    /// The type of what a name stands for, which is used here.
    fn found(&mut self, found: Found<'_>, scope: &Scope<'_>) -> Type {
        match found {
            Found::Column(column) => {
                self.use_column(column);
                column.data_type
            }
            Found::Other => {
                if let Some(names) = &mut self.resolved {
                    // Whose row it is does not matter much.
                    scope.sources_in_sight().for_each(|source| names.use_all(source.number));
                }
                Type::Untold
            }
        }
    }

    pub(super) fn use_column(&mut self, column: &Column) {
        if let Some(names) = &mut self.resolved {
            names.use_column(column.identity);
        }
    }

    /// An expression that has to be true or false.
    pub(super) fn condition(
        &mut self,
        condition: &Expr,
        scope: &Scope<'_>,
        place: Place,
        clause: &str,
    ) -> Result<()> {
        match self.expression(condition, scope, place)? {
            Type::BOOLEAN | Type::Constant | Type::Untold => Ok(()),
            other => {
                let name = other.name();
                let message = format!("argument of {clause} must be type boolean, not type {name}");
                Err(QueryError::refused("42804", message).at(condition.span()))
            }
        }
    }

    pub(super) fn window(&mut self, window: &WindowSpec, scope: &Scope<'_>) -> Result<()> {
        for by in &window.partition_by {
            self.expression(by, scope, Place::Window)?;
        }
        for by in &window.order_by {
            self.expression(&by.expr, scope, Place::Window)?;
        }
        Ok(())
    }

    fn parameter(&self, id: &str) -> Type {
        let number = id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let declared = number.and_then(|number| self.declared.get(number.checked_sub(1)?));
        declared.copied().flatten().map_or(Type::Constant, Type::Known)
    }
}

/// Whether what is written as a column's name is means something else.
fn is_keyword(name: &Ident, keyword: &str) -> bool {
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case(keyword)
}

/// `ARRAY[]`, of which a cast tells what it is of.
fn is_empty_array(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_empty_array(inner),
        Expr::Array(array) => array.elem.is_empty(),
        _ => false,
    }
}

/// The function that an expression is a call of which has words of its own.
fn called_as(expression: &Expr) -> Option<&'static str> {
    match expression {
        Expr::Substring { shorthand: true, .. } => Some("substr"),
        Expr::Substring { .. } => Some("substring"),
        Expr::Ceil { .. } => Some("ceil"),
        Expr::Floor { .. } => Some("floor"),
        _ => None,
    }
}

/// The expressions inside of one that has no meaning of its own for names.
fn inside(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::Extract { expr: inner, .. }
        | Expr::Ceil { expr: inner, .. }
        | Expr::Floor { expr: inner, .. } => vec![inner],
        Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right)
        | Expr::AnyOp { left, right, .. }
        | Expr::AllOp { left, right, .. }
        | Expr::Like { expr: left, pattern: right, .. }
        | Expr::ILike { expr: left, pattern: right, .. }
        | Expr::SimilarTo { expr: left, pattern: right, .. }
        | Expr::AtTimeZone { timestamp: left, time_zone: right }
        | Expr::Position { expr: left, r#in: right } => vec![left, right],
        Expr::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        Expr::Between { expr, low, high, .. } => vec![expr, low, high],
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let rest = [substring_from, substring_for].into_iter().flatten();
            std::iter::once(expr).chain(rest).map(|inner| &**inner).collect()
        }
        Expr::Trim { expr, trim_what, .. } => {
            std::iter::once(expr).chain(trim_what).map(|inner| &**inner).collect()
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let given = [expr, overlay_what, overlay_from].into_iter().chain(overlay_for);
            given.map(|inner| &**inner).collect()
        }
        Expr::Array(array) => array.elem.iter().collect(),
        Expr::Tuple(items) => items.iter().collect(),
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
            sets.iter().flatten().collect()
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let index = access_chain.iter().flat_map(|access| match access {
                AccessExpr::Subscript(Subscript::Index { index }) => vec![index],
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
                    lower_bound.iter().chain(upper_bound).collect()
                }
                AccessExpr::Dot(_) => Vec::new(),
            });
            std::iter::once(&**root).chain(index).collect()
        }
        _ => Vec::new(),
    }
}

/// The type of one of those.
fn type_of(expression: &Expr) -> Type {
    match expression {
        Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::InList { .. }
        | Expr::Between { .. } => Type::BOOLEAN,
        Expr::Position { .. } => Type::INTEGER,
        Expr::Trim { .. } => Type::TEXT,
        Expr::Interval(_) => Type::INTERVAL,
        _ => Type::Untold,
    }
}
