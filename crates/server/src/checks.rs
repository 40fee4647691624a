//! CHECK constraints at work: whoever writes a row asks here whether it may be.
//!
//! Invariant: the database does not keep the query engine, which keeps the database. When the server
//! is gone nobody understands CHECK constraints any more.

use std::sync::{Arc, Weak};

use onrush::{CheckCompiler, Error, Result, RowCheck, RowView, TableDefinition};
use onrush_query::{Condition, QueryEngine};

use crate::error::SqlError;
use crate::sql;

/// Makes conditions of the expressions that tables keep.
pub(crate) struct Compiler {
    pub(crate) queries: Weak<QueryEngine>,
}

/// The conditions of a table, by the names of their constraints.
struct Conditions {
    table: String,
    all: Vec<(String, Condition)>,
}

impl CheckCompiler for Compiler {
    fn compile(&self, definition: &TableDefinition) -> Result<Box<dyn RowCheck>> {
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
