//! CREATE TYPE of composite types: `AS (name type, ...)`.

use onrush::{ColumnDefinition, DataType, TableDefinition};
use sqlparser::ast::{ObjectName, UserDefinedTypeCompositeAttributeDef};

use super::{Planner, create, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::schemas;

/// What becomes of composite types.
#[derive(Clone, Debug)]
pub(crate) enum CompositePlan {
    Create(Box<TableDefinition>),
    /// The engine calls it otherwise from now on.
    Rename {
        name: String,
        to: String,
    },
}

impl CompositePlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            CompositePlan::Create(_) => "CREATE TYPE",
            CompositePlan::Rename { .. } => "ALTER TYPE",
        }
    }
}

/// Plans a CREATE TYPE.
pub(super) fn create(
    planner: &Planner<'_>,
    name: &ObjectName,
    attributes: &[UserDefinedTypeCompositeAttributeDef],
) -> Result<DefinitionPlan> {
    let name = planner.lookup().new_table_named(name)?;
    names::check_reserved(&name)?;
    let own = schemas::own_name(&name);
    if schemas::has_temporary(&name) {
        let instead = "Make it in another schema; temporary tables can use it.";
        return Err(SqlError::not_supported("a temporary composite type", instead));
    }
    let mut definition = TableDefinition::builder(&name);
    let mut seen: Vec<String> = Vec::new();
    for attribute in attributes {
        let field = names::identifier(&attribute.name);
        if seen.contains(&field) {
            let message = format!("column \"{field}\" specified more than once");
            return Err(SqlError::new(state::DUPLICATE_COLUMN, message));
        }
        if let Some(collation) = &attribute.collation {
            create::check_collation(collation)?;
        }
        let place = format!("field {field} of type {own}");
        let (data_type, domain) = create::column_type(planner, &place, &attribute.data_type)?;
        if domain.is_some() {
            let instead = "Write the type that the domain is over.";
            return Err(SqlError::not_supported("a domain in a composite type", instead));
        }
        definition = definition.column(ColumnDefinition::new(&field, data_type));
        seen.push(field);
    }
    Ok(DefinitionPlan::Composite(CompositePlan::Create(Box::new(definition.composite().build()?))))
}

/// Refuses a column of a composite type with fields that could change behind the back of its records: they are kept as
/// text, in which labels stand by their names.
///
/// # Errors
/// Fields of enumerated types.
pub(super) fn check_column(place: &str, data_type: DataType) -> Result<()> {
    let is_enum = |own: DataType| matches!(own, DataType::Enum(_));
    match data_type {
        DataType::Composite(of) if of.has(&is_enum) => {
            let what = format!("{place} of a composite type with fields of enumerated types");
            Err(SqlError::not_supported(what, "Make a column of each field."))
        }
        _ => Ok(()),
    }
}
