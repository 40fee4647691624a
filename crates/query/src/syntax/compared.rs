//! `x < ANY (SELECT ...)`, and rows that are compared with rows.
//!
//! Of the first DataFusion asks whether there is a row with `x < column`, and where both are columns of one name of
//! one table it takes the one for the other.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query,
    Select, SetExpr, Statement, TableFactor, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::folded;

/// The names of the tables of each query around an expression, the innermost last.
#[derive(Default)]
pub(super) struct InSight {
    tables: Vec<Vec<String>>,
    /// How many queries have got a name of their own.
    named: usize,
}

impl InSight {
    pub(super) fn enter(&mut self, select: &Select) {
        self.tables.push(tables_of(select));
    }

    pub(super) fn leave(&mut self) {
        self.tables.pop();
    }

    /// Gives a query after ANY or ALL a name that nothing else has, if a table of it is in sight
    /// outside of it, too.
    pub(super) fn set_apart(&mut self, compared: &mut Expr) {
        let Expr::Subquery(query) = compared else { return };
        let inside = tables_in(&query.body);
        if self.tables.iter().flatten().any(|outside| inside.contains(outside)) {
            name(query, self.named);
            self.named += 1;
        }
    }
}

fn tables_in(body: &SetExpr) -> Vec<String> {
    match body {
        SetExpr::Select(select) => tables_of(select),
        SetExpr::Query(query) => tables_in(&query.body),
        SetExpr::SetOperation { left, right, .. } => [tables_in(left), tables_in(right)].concat(),
        _ => Vec::new(),
    }
}

fn tables_of(select: &Select) -> Vec<String> {
    let joined = select.from.iter().flat_map(|from| {
        let joins = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joins)
    });
    joined.filter_map(name_of).collect()
}

fn name_of(relation: &TableFactor) -> Option<String> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(folded(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => match name.0.last()? {
            ObjectNamePart::Identifier(name) => Some(folded(name)),
            ObjectNamePart::Function(_) => None,
        },
        _ => None,
    }
}

/// `SELECT * FROM (query) AS name`.
fn name(query: &mut Box<Query>, number: usize) -> Option<()> {
    let text = format!("SELECT * FROM (SELECT 1) AS \"compared {number}\"");
    let statement = Parser::parse_sql(&PostgreSqlDialect {}, &text).ok()?.pop()?;
    let Statement::Query(mut named) = statement else { return None };
    let SetExpr::Select(select) = &mut *named.body else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    std::mem::swap(subquery, query);
    *query = named;
    Some(())
}

/// `(a, b) < (c, d)` field by field, from the first in which they differ; DataFusion takes NULL for a value.
pub(super) fn rows(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<Expr> {
    let (left, right) = (fields(left)?, fields(right)?);
    if left.len() != right.len() {
        return None;
    }
    let strict = match operator {
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        BinaryOperator::Eq => return of_all(left, right, operator, &BinaryOperator::And),
        BinaryOperator::NotEq => return of_all(left, right, operator, &BinaryOperator::Or),
        _ => return None,
    };
    let mut fields = left.into_iter().zip(right).rev();
    let (left, right) = fields.next()?;
    let mut compared = pair(operator.clone(), left, right);
    for (left, right) in fields {
        let same = pair(BinaryOperator::Eq, left.clone(), right.clone());
        let rest = pair(BinaryOperator::And, same, compared);
        compared = pair(BinaryOperator::Or, pair(strict.clone(), left, right), rest);
    }
    Some(compared)
}

/// Writes `(a, b) IN ((c, d), (e, f))` row by row and each of them field by field. None where that is no such list.
pub(super) fn row_in(expression: &mut Expr) -> Option<()> {
    let Expr::InList { expr, list, negated } = expression else { return None };
    let equals = |other: &Expr| rows(expr, &BinaryOperator::Eq, other);
    let found = joined(list.iter().map(equals).collect::<Option<_>>()?, &BinaryOperator::Or)?;
    *expression = match *negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) },
        false => found,
    };
    Some(())
}

fn of_all(
    left: Vec<Expr>,
    right: Vec<Expr>,
    operator: &BinaryOperator,
    between: &BinaryOperator,
) -> Option<Expr> {
    let fields = left.into_iter().zip(right);
    joined(fields.map(|(left, right)| pair(operator.clone(), left, right)).collect(), between)
}

/// All of them with an operator in between, as a tree that is no deeper than it must be.
fn joined(mut all: Vec<Expr>, between: &BinaryOperator) -> Option<Expr> {
    if all.len() < 2 {
        return all.pop();
    }
    let rest = all.split_off(all.len() / 2);
    Some(pair(between.clone(), joined(all, between)?, joined(rest, between)?))
}

fn pair(op: BinaryOperator, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
}

/// The fields of a row that is written out.
pub(super) fn fields(row: &Expr) -> Option<Vec<Expr>> {
    match row {
        Expr::Nested(inner) => fields(inner),
        Expr::Tuple(fields) => Some(fields.clone()),
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &call.args else { return None };
            let field = |given: &FunctionArg| match given {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given.clone()),
                _ => None,
            };
            list.args.iter().map(field).collect()
        }
        _ => None,
    }
}
