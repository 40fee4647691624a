//! Calls and casts that statements are written anew with.

use onrush::DataType;
use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName,
};
use sqlparser::parser::Parser;

use super::dialect::OnrushDialect;
use crate::error::Result;
use crate::values;

pub(super) fn call(name: &str, given: Vec<Expr>) -> Expr {
    let given = given.into_iter().map(|given| FunctionArg::Unnamed(FunctionArgExpr::Expr(given)));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: given.collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A cast to a type, which a user may have made.
///
/// # Errors
/// A type that has no name.
pub(super) fn cast(value: Expr, data_type: DataType) -> Result<Expr> {
    let written = match data_type {
        DataType::Enum(of) => of.note(),
        DataType::Composite(of) => of.note(),
        other => values::type_name(other),
    };
    let dialect = OnrushDialect::new(written.len());
    let mut parser = Parser::new(&dialect).try_with_sql(&written)?;
    let data_type = parser.parse_data_type()?;
    let (kind, expr) = (CastKind::Cast, Box::new(value));
    Ok(Expr::Cast { kind, expr, data_type, array: false, format: None })
}
