//! CHECK constraints and defaults at work: whoever writes a row asks here whether it may be, and what
//! stands where nothing is given.
//!
//! Invariant: the database does not keep the query engine, which keeps the database. When the server
//! is gone nobody understands these expressions any more.

use std::sync::{Arc, Weak};

use onrush::{
    DataType, DefaultValue, Error, ExpressionCompiler, Result, RowCheck, RowDefault, RowView,
    TableDefinition, Value,
};
use onrush_query::{Condition, QueryEngine, RowlessValue};

use crate::error::SqlError;
use crate::{sql, values};

/// Makes conditions of the expressions that tables keep.
pub(crate) struct Compiler {
    pub(crate) queries: Weak<QueryEngine>,
}

/// The conditions of a table, by the names of their constraints.
struct Conditions {
    table: String,
    all: Vec<(String, Condition)>,
}

impl ExpressionCompiler for Compiler {
    fn compile_checks(&self, definition: &TableDefinition) -> Result<Box<dyn RowCheck>> {
        let table = definition.name().to_owned();
        let Some(queries) = self.queries.upgrade() else {
            return Err(Error::ChecksNotUnderstood { table });
        };
        let mut all = Vec::with_capacity(definition.checks().len());
        for check in definition.checks() {
            let expression = sql::check_as_written(definition, check).map_err(failed)?;
            let condition = queries.condition(definition, expression);
            let condition = condition.map_err(|error| failed(error.into()))?;
            all.push((check.name.clone(), condition));
        }
        // Of several that a row violates the first by name is told, as by PostgreSQL.
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Box::new(Conditions { table, all }))
    }

    fn compile_default(
        &self,
        definition: &TableDefinition,
        column: usize,
    ) -> Result<Box<dyn RowDefault>> {
        let (table, column) = (definition.name(), &definition.columns()[column]);
        let DefaultValue::Expression(written) = &column.default else {
            return Err(Error::Internal(format!("column {} has no expression", column.name)));
        };
        let Some(queries) = self.queries.upgrade() else {
            let (table, column) = (table.to_owned(), column.name.clone());
            return Err(Error::DefaultNotUnderstood { table, column });
        };
        let expression = sql::default_as_written(written).map_err(failed)?;
        let value = queries.rowless_value(expression).map_err(|error| failed(error.into()))?;
        Ok(Box::new(Computed { value, data_type: column.data_type }))
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

impl RowCheck for Conditions {
    fn check(&self, row: &RowView<'_>) -> Result<()> {
        for (name, condition) in &self.all {
            if !condition.is_met(row).map_err(|error| failed(error.into()))? {
                let (table, constraint) = (self.table.clone(), name.clone());
                return Err(Error::CheckViolated { table, constraint });
            }
        }
        Ok(())
    }
}

fn failed(error: SqlError) -> Error {
    Error::CheckFailed(Arc::new(error))
}
