//! CHECK constraints and defaults at work that are not in the form which the engine evaluates: whoever
//! writes a row asks here whether it may be, and what stands where nothing is given.
//!
//! Invariant: the database does not keep the query engine, which keeps the database. When the server
//! is gone nobody understands these expressions any more.

use std::sync::{Arc, Weak};

use onrush::{
    CheckConstraint, DataType, DefaultValue, Error, ExpressionCompiler, Result, RowCheck,
    RowDefault, RowView, TableDefinition, Value,
};
use onrush_query::style::by_default;
use onrush_query::{Condition, QueryEngine, RowlessValue};

use crate::error::SqlError;
use crate::sequences::next_of;
use crate::{catalog, sql, values};

/// Makes conditions of the expressions that tables keep.
pub(crate) struct Compiler {
    pub(crate) queries: Weak<QueryEngine>,
}

/// A condition of a table.
struct Compiled(Condition);

impl ExpressionCompiler for Compiler {
    fn compile_check(
        &self,
        definition: &TableDefinition,
        check: &CheckConstraint,
    ) -> Result<Box<dyn RowCheck>> {
        let Some(queries) = self.queries.upgrade() else {
            let (table, constraint) = (definition.name().to_owned(), check.name.clone());
            return Err(Error::ChecksNotUnderstood { table, constraint });
        };
        let expression = sql::check_as_written(definition, check).map_err(failed)?;
        let condition = by_default(|| queries.condition(definition, expression));
        Ok(Box::new(Compiled(condition.map_err(|error| failed(error.into()))?)))
    }

    fn compile_default(
        &self,
        definition: &TableDefinition,
        column: usize,
    ) -> Result<Box<dyn RowDefault>> {
        let (table, column) = (definition.name(), &definition.columns()[column]);
        let DefaultValue::Expression(computed) = &column.default else {
            return Err(Error::Internal(format!("column {} has no expression", column.name)));
        };
        if let Some(number) = next_alone(&computed.expression) {
            return Ok(Box::new(Next { number, data_type: column.data_type }));
        }
        let Some(queries) = self.queries.upgrade() else {
            let (table, column) = (table.to_owned(), column.name.clone());
            return Err(Error::DefaultNotUnderstood { table, column });
        };
        let expression = sql::default_as_written(&computed.expression).map_err(failed)?;
        let value = by_default(|| queries.rowless_value(expression));
        let value = value.map_err(|error| failed(error.into()))?;
        Ok(Box::new(Computed { value, data_type: column.data_type }))
    }
}

/// The number of the sequence whose next value an expression is, and nothing else.
fn next_alone(expression: &str) -> Option<u32> {
    let number = expression.strip_prefix("nextval(")?.strip_suffix(')')?;
    catalog::number_of(number.parse().ok()?)
}

/// A default that is the next value of a sequence.
struct Next {
    number: u32,
    data_type: DataType,
}

impl RowDefault for Next {
    fn value(&self, _: i64) -> Result<Value<'static>> {
        let value = Value::Int64(next_of(self.number).map_err(failed)?);
        Ok(values::coerce(value, self.data_type).map_err(failed)?.into_owned())
    }
}

/// A default, and the type of its column.
struct Computed {
    value: RowlessValue,
    data_type: DataType,
}

impl RowDefault for Computed {
    fn value(&self, now_micros: i64) -> Result<Value<'static>> {
        let value = self.value.at(now_micros).map_err(|error| failed(error.into()))?;
        Ok(values::coerce(value, self.data_type).map_err(failed)?.into_owned())
    }
}

impl RowCheck for Compiled {
    fn is_met(&self, row: &RowView<'_>) -> Result<bool> {
        self.0.is_met(row).map_err(|error| failed(error.into()))
    }
}

fn failed(error: SqlError) -> Error {
    Error::CheckFailed(Arc::new(error))
}
