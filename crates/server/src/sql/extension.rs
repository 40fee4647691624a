//! CREATE EXTENSION: there is the one that each PostgreSQL has, which dumps make again.

use sqlparser::ast::CreateExtension;

use super::names;
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;

/// The language of functions, which a database has from the beginning.
const BUILT_IN: &str = "plpgsql";

pub(super) fn create(create: &CreateExtension) -> Result<DefinitionPlan> {
    let name = names::identifier(&create.name);
    if name != BUILT_IN {
        let message = format!("extension \"{name}\" is not available");
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
            .with_hint("Onrush has no extensions; docs/sql.md lists what it has."));
    }
    let message = format!("extension \"{name}\" already exists");
    if !create.if_not_exists {
        return Err(SqlError::new(state::DUPLICATE_OBJECT, message));
    }
    let skipped = SqlError::new(state::DUPLICATE_OBJECT, format!("{message}, skipping")).notice();
    Ok(DefinitionPlan::DropNothing { tag: "CREATE EXTENSION", missing: vec![skipped] })
}
