//! Defaults that use sequences: kept with the numbers of these in the place of their names, so that they go on when
//! a sequence gets another name.

use std::ops::ControlFlow;

use onrush::{ComputedDefault, DataType, DefaultValue, Table};
use onrush_types::CHECK_BYTES_MAX;
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitMut, VisitorMut,
};

use crate::catalog;
use crate::error::{Result, SqlError, state};
use crate::sequences::check_is_sequence;
use crate::sql::{Planner, names, plan};
use crate::values;

/// The expression with the numbers of the sequences that it names. None if it uses none.
pub(in crate::sql) fn bound(planner: &Planner<'_>, value: &Expr) -> Result<Option<Expr>> {
    let mut bound = value.clone();
    let mut names = Names { planner, is_used: false };
    match bound.visit(&mut names) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(names.is_used.then_some(bound)),
    }
}

/// A default that uses sequences, as a table keeps it.
pub(in crate::sql) fn default_of(
    planner: &Planner<'_>,
    mut value: Expr,
    data_type: DataType,
) -> Result<DefaultValue> {
    while let Expr::Nested(inner) = value {
        value = *inner;
    }
    let expression = value.to_string();
    if expression.len() > CHECK_BYTES_MAX {
        let message = format!("a default of more than {CHECK_BYTES_MAX} bytes");
        return Err(SqlError::new(state::LIMIT_EXCEEDED, message));
    }
    let is_number = matches!(value, Expr::Function(_));
    planner.queries.rowless_value(value)?;
    if is_number && values::coerce(onrush::Value::Int64(1), data_type).is_err() {
        let message = format!(
            "column is of type {} but default expression is of type bigint",
            values::type_name(data_type)
        );
        return Err(SqlError::new(state::DATATYPE_MISMATCH, message)
            .with_hint("You will need to rewrite or cast the expression."));
    }
    Ok(DefaultValue::Expression(ComputedDefault { expression, form: None }))
}

struct Names<'p> {
    planner: &'p Planner<'p>,
    is_used: bool,
}

impl VisitorMut for Names<'_> {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(call) = expression else { return ControlFlow::Continue(()) };
        match self.bind(call) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Names<'_> {
    fn bind(&mut self, call: &mut ast::Function) -> Result<()> {
        let mut parts = names::parts(&call.name)?;
        if parts.len() == 2 && parts[0] == catalog::PG_CATALOG {
            parts.remove(0);
        }
        let [name] = parts.as_slice() else { return Ok(()) };
        if !matches!(name.as_str(), "nextval" | "currval" | "setval") {
            return Ok(());
        }
        let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
        let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(given))) = list.args.first_mut() else {
            return Ok(());
        };
        let Some(written) = written(given) else { return Ok(()) };
        let table = self.table(&written)?;
        check_is_sequence(&table)?;
        let number = catalog::oid_of(table.id()).to_string();
        *given = Expr::value(Value::Number(number, false));
        call.name = ast::ObjectName::from(vec![ast::Ident::new(name.clone())]);
        self.is_used = true;
        Ok(())
    }

    fn table(&self, written: &str) -> Result<Table> {
        if let Ok(number) = written.parse() {
            let found = catalog::table_with(self.planner.seen, number);
            return found.ok_or_else(|| unknown(written));
        }
        let found = self.planner.lookup().written(written);
        plan::table(self.planner, &found.ok_or_else(|| unknown(written))?)
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// What `nextval` is called with, a cast to `regclass` left out. None if it is another function.
pub(in crate::sql) fn next_of(call: &ast::Function) -> Option<&Expr> {
    let plain = call.filter.is_none() && call.over.is_none() && call.within_group.is_empty();
    let parts = names::parts(&call.name).ok()?;
    let is_it = match parts.as_slice() {
        [name] => name == "nextval",
        [schema, name] => schema == catalog::PG_CATALOG && name == "nextval",
        _ => false,
    };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(given))] = list.args.as_slice() else {
        return None;
    };
    let is_plain = plain && list.clauses.is_empty() && list.duplicate_treatment.is_none();
    (is_it && is_plain).then_some(match given {
        Expr::Cast { expr, data_type: ast::DataType::Regclass, .. } => expr,
        given => given,
    })
}

/// The name, or number, that stands there as a constant, with casts to `regclass` or text around it or not.
fn written(given: &Expr) -> Option<String> {
    match given {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Expr::Cast { expr, .. } | Expr::Nested(expr) => written(expr),
        _ => None,
    }
}
