//! PREPARE and EXECUTE as statements. Both kinds of prepared statements, those of the protocol and
//! these, have one list of names, as in PostgreSQL.

use std::sync::Arc;

use bytes::Bytes;
use onrush::Value;
use onrush_query::ColumnType;
use sqlparser::ast::{self, Expr, Ident, Statement};

use super::operand::{Bound, Operand, Parameters};
use super::{Parsed, create, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::SessionPlan;
use crate::values::{self, Formats};

/// A statement to be kept under a name.
#[derive(Clone, Debug)]
pub(crate) struct PreparePlan {
    pub(crate) name: String,
    pub(crate) statement: Parsed,
    pub(crate) text: String,
    /// The types of its first parameters; 0 where it is left open.
    pub(crate) oids: Vec<u32>,
}

/// A kept statement to be run.
#[derive(Clone, Debug)]
pub(crate) struct ExecutePlan {
    pub(crate) name: String,
    arguments: Vec<Expr>,
}

pub(super) fn prepare(
    name: &Ident,
    data_types: &[ast::DataType],
    statement: &Statement,
) -> Result<SessionPlan> {
    if !matches!(
        statement,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    ) {
        let message = "only SELECT, VALUES, INSERT, UPDATE and DELETE can be prepared";
        return Err(SqlError::new(state::SYNTAX_ERROR, message));
    }
    let oid = |data_type: &ast::DataType| {
        if data_type.to_string().eq_ignore_ascii_case("unknown") {
            return Ok(0);
        }
        create::data_type("a parameter", data_type).map(values::oid_of)
    };
    let oids = data_types.iter().map(oid).collect::<Result<_>>()?;
    let (name, text) = (names::identifier(name), statement.to_string());
    let statement = Parsed::Sql(Box::new(statement.clone()));
    Ok(SessionPlan::Prepare(PreparePlan { name, statement, text, oids }))
}

pub(super) fn execute(statement: &Statement) -> Result<SessionPlan> {
    match statement {
        Statement::Execute {
            name: Some(name),
            parameters,
            has_parentheses: _,
            immediate: false,
            into,
            using,
            output: false,
            default: false,
        } if into.is_empty() && using.is_empty() => match names::parts(name)?.as_slice() {
            [name] => {
                let arguments = parameters.clone();
                Ok(SessionPlan::Execute(ExecutePlan { name: name.clone(), arguments }))
            }
            _ => Err(SqlError::new(state::SYNTAX_ERROR, format!("{name} is no statement's name"))),
        },
        other => Err(SqlError::not_supported(other, "Write EXECUTE name (value, ...).")),
    }
}

impl ExecutePlan {
    /// The arguments, as parameters of these types.
    pub(crate) fn bind(&self, oids: &Arc<[u32]>) -> Result<Bound> {
        if self.arguments.len() != oids.len() {
            let (given, needed) = (self.arguments.len(), oids.len());
            let message = format!(
                "wrong number of parameters for prepared statement {}: {given}, not {needed}",
                self.name
            );
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        let (mut text, mut values) = (String::new(), Vec::with_capacity(oids.len()));
        for (argument, oid) in self.arguments.iter().zip(oids.iter()) {
            let target = match values::column_type_of(*oid) {
                Some(ColumnType::Stored(data_type)) => data_type,
                _ => onrush::DataType::Text,
            };
            let operand = Operand::new(argument, target, &mut Parameters::none())?;
            let start = text.len();
            match operand.value(&Bound::default())? {
                Value::Null => values.push(None),
                Value::Default => {
                    return Err(SqlError::new(state::SYNTAX_ERROR, "DEFAULT is no argument"));
                }
                value => {
                    text.push_str(&values::written_plainly(&value));
                    values.push(Some(start..text.len()));
                }
            }
        }
        let (message, formats, oids) = (Bytes::from(text), Formats::TEXT, Arc::clone(oids));
        Ok(Bound {
            message,
            values,
            formats,
            oids,
            encoding: onrush_query::style::ClientEncoding::Utf8,
        })
    }
}
