//! CHECK constraints: from SQL to what a table's definition keeps, and back to SQL.
//!
//! What is kept names columns by number, as `$1`, so that a column may get another name. Beside it stands the
//! same in the form that the engine evaluates, where the form has it all.

use std::ops::ControlFlow;

use onrush::{CheckConstraint, DataType, TableDefinition};
use onrush_query::QueryEngine;
use sqlparser::ast::{self, Expr, Ident, Value, VisitMut, VisitorMut};
use sqlparser::parser::Parser;

use super::dialect::OnrushDialect;
use super::of_session::check_constants;
use super::{form, names, parentheses};
use crate::error::{Result, SqlError, state};
use crate::{made_up, schemas};

/// A CHECK constraint as it was written.
#[derive(Clone, Debug)]
pub(crate) struct NewCheck {
    /// None: one is made up, as PostgreSQL does.
    name: Option<String>,
    expression: Box<Expr>,
    /// Whether the rows that there are must meet it.
    is_validated: bool,
}

impl NewCheck {
    /// `outer` is a name that stands in front of the constraint.
    pub(super) fn new(check: &ast::CheckConstraint, outer: Option<&Ident>) -> Result<NewCheck> {
        if check.enforced.is_some() {
            return Err(SqlError::not_supported(
                "[NOT] ENFORCED",
                "Leave it out: all are enforced.",
            ));
        }
        let name = check.name.as_ref().or(outer).map(names::identifier);
        Ok(NewCheck { name, expression: check.expr.clone(), is_validated: true })
    }

    /// The same, which the rows that there are need not meet, if it `is_not_valid`.
    pub(super) fn or_not_valid(self, is_not_valid: bool) -> NewCheck {
        NewCheck { is_validated: !is_not_valid, ..self }
    }

    /// A check that a table has, for another table.
    pub(crate) fn again(table: &TableDefinition, check: &CheckConstraint) -> Result<NewCheck> {
        let expression = Box::new(written(table, check)?);
        Ok(NewCheck { name: Some(check.name.clone()), expression, is_validated: true })
    }

    /// What a table keeps that has the checks `taken` already.
    ///
    /// # Errors
    /// A name that is taken; an expression that cannot be a condition on the table's rows.
    pub(crate) fn kept(
        &self,
        queries: &QueryEngine,
        table: &TableDefinition,
        taken: &[CheckConstraint],
    ) -> Result<CheckConstraint> {
        let mut numbers = Numbers { table, found: Vec::new(), refused: None };
        let mut expression = (*self.expression).clone();
        let _: ControlFlow<()> = expression.visit(&mut numbers);
        if let Some(refused) = numbers.refused {
            return Err(refused);
        }
        let mut columns = numbers.found;
        columns.sort_unstable();
        columns.dedup();
        let name = match &self.name {
            Some(name) if is_taken(table, taken, name) => {
                let own = schemas::own_name(table.name());
                let kind = if table.domain().is_some() { "domain" } else { "relation" };
                let message = format!("constraint {name:?} for {kind} {own:?} already exists");
                return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
            }
            Some(name) => name.clone(),
            None => made_up_name(table, taken, &columns),
        };
        let form = form::read(&self.expression, table.name())
            .and_then(|form| CheckConstraint::form(&form, table).ok());
        let expression = expression.to_string();
        // The engine knows no time zone but UTC.
        let form = form.filter(|_| !may_ask_the_zone(&expression, table, &columns));
        check_constants("a check", &expression)?;
        let is_validated = self.is_validated;
        let check = CheckConstraint { name, columns, expression, form, is_validated };
        // What the form does not have the server must understand.
        if check.form.is_none() {
            queries.condition(table, written(table, &check)?)?;
        }
        Ok(check)
    }
}

fn is_taken(table: &TableDefinition, taken: &[CheckConstraint], name: &str) -> bool {
    schemas::has_key_named(table, name) || taken.iter().any(|check| check.name == name)
}

/// Whether a condition has parts of a timestamp with a zone, or makes another type of one.
fn may_ask_the_zone(expression: &str, table: &TableDefinition, columns: &[u16]) -> bool {
    let has_zone = table.columns().iter().enumerate().any(|(at, column)| {
        let number = u16::try_from(table.column_number(at)).unwrap_or(u16::MAX);
        column.data_type.unrounded() == DataType::TimestampTz && columns.contains(&number)
    });
    // Seconds since 1970 are the same everywhere.
    let lower = expression.to_lowercase().replace("extract(epoch", "");
    let words = ["extract", "date_", "cast", "::", "at time zone", "interval"];
    has_zone && words.iter().any(|word| lower.contains(word))
}

/// As PostgreSQL: with the column in it where there is one, and a number where that is taken.
fn made_up_name(table: &TableDefinition, taken: &[CheckConstraint], columns: &[u16]) -> String {
    let own = schemas::own_name(table.name());
    let column = match columns {
        // A domain has none.
        [number] if table.domain().is_none() => {
            table.column_with_number(*number).map(|at| table.columns()[at].name.as_str())
        }
        _ => None,
    };
    made_up::free_name(own, column, "check", |name| !is_taken(table, taken, name))
}

/// The expression of a check, with the names that columns have now.
pub(crate) fn written(table: &TableDefinition, check: &CheckConstraint) -> Result<Expr> {
    with_quoted_names(table, &check.expression)
}

/// An expression that a table keeps, with the names that columns have now.
pub(super) fn with_quoted_names(table: &TableDefinition, expression: &str) -> Result<Expr> {
    with_names(table, expression, |name| Ident::with_quote('"', name))
}

fn with_names(table: &TableDefinition, expression: &str, write: fn(&str) -> Ident) -> Result<Expr> {
    let damaged = || {
        let message = format!("an expression of table {} is not read", table.name());
        SqlError::new(state::DATA_CORRUPTED, message)
    };
    let dialect = OnrushDialect::new(expression.len());
    let read = Parser::new(&dialect).try_with_sql(expression);
    let mut expression = read.and_then(|mut parser| parser.parse_expr()).map_err(|_| damaged())?;
    match expression.visit(&mut Names { table, write }) {
        ControlFlow::Continue(()) => Ok(expression),
        ControlFlow::Break(()) => Err(damaged()),
    }
}

/// A check as PostgreSQL shows it: every operation in parentheses, or, for people, only where they
/// must be.
pub(crate) fn shown(table: &TableDefinition, check: &CheckConstraint, is_pretty: bool) -> String {
    format!("CHECK ({})", expression_as_shown(table, &check.expression, is_pretty))
}

/// An expression that a table keeps, as PostgreSQL shows it.
pub(crate) fn expression_as_shown(table: &TableDefinition, kept: &str, is_pretty: bool) -> String {
    let write = match table.domain() {
        Some(_) => |_: &str| Ident::new("VALUE"),
        None => names::shown,
    };
    let Ok(mut expression) = with_names(table, kept, write) else {
        return kept.to_owned();
    };
    match is_pretty {
        true => parentheses::leave_needed(&mut expression),
        false => parentheses::put_around_all(&mut expression),
    }
    expression.to_string()
}

/// Puts numbers in the place of columns.
struct Numbers<'d> {
    table: &'d TableDefinition,
    found: Vec<u16>,
    refused: Option<SqlError>,
}

impl Numbers<'_> {
    fn number(&mut self, name: &Ident) -> std::result::Result<Expr, SqlError> {
        let name = names::identifier(name);
        let Ok(column) = self.table.shown_column_index(&name) else {
            let message = format!("column {name:?} does not exist");
            return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
        };
        let number = self.table.column_number(column);
        // A table has at most 1,024.
        self.found.push(u16::try_from(number).unwrap_or(u16::MAX));
        Ok(Expr::value(Value::Placeholder(format!("${}", number + 1))))
    }
}

impl VisitorMut for Numbers<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let numbered = match expression {
            Expr::Identifier(name) => self.number(name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name]
                    if names::identifier(table) == schemas::own_name(self.table.name()) =>
                {
                    self.number(name)
                }
                _ => {
                    let message = format!("there is no {expression} in the table");
                    Err(SqlError::new(state::UNDEFINED_COLUMN, message))
                }
            },
            _ => return ControlFlow::Continue(()),
        };
        match numbered {
            Ok(numbered) => *expression = numbered,
            Err(refused) => {
                self.refused = Some(refused);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &value.value {
            let message = format!("there is no parameter {name}");
            self.refused = Some(SqlError::new(state::UNDEFINED_PARAMETER, message));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Puts columns in the place of numbers.
struct Names<'d> {
    table: &'d TableDefinition,
    write: fn(&str) -> Ident,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Value(value) = expression else { return ControlFlow::Continue(()) };
        let Value::Placeholder(written) = &value.value else { return ControlFlow::Continue(()) };
        let number = written.strip_prefix('$').and_then(|digits| digits.parse::<u16>().ok());
        let number = number.and_then(|number| number.checked_sub(1));
        let Some(column) = number.and_then(|number| self.table.column_with_number(number)) else {
            return ControlFlow::Break(());
        };
        *expression = Expr::Identifier((self.write)(&self.table.columns()[column].name));
        ControlFlow::Continue(())
    }
}
