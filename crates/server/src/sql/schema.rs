//! CREATE SCHEMA and DROP SCHEMA.

use sqlparser::ast::{AlterSchema, AlterSchemaOperation, ObjectName, SchemaName, Statement};

use super::role::RoleName;
use super::{Planner, names, no_schema};
use crate::catalog::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::schemas;

/// What is done with schemas.
#[derive(Clone, Debug)]
pub(crate) enum SchemaPlan {
    /// Of whom makes it, where no owner is named.
    Create {
        name: String,
        owner: Option<RoleName>,
        if_not_exists: bool,
    },
    Drop {
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    Rename {
        name: String,
        to: String,
    },
}

impl SchemaPlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            SchemaPlan::Create { .. } => "CREATE SCHEMA",
            SchemaPlan::Drop { .. } => "DROP SCHEMA",
            SchemaPlan::Rename { .. } => "ALTER SCHEMA",
        }
    }
}

pub(super) fn create(statement: &Statement) -> Result<DefinitionPlan> {
    let Statement::CreateSchema {
        schema_name: written,
        if_not_exists,
        with: None,
        options: None,
        default_collate_spec: None,
        clone: None,
    } = statement
    else {
        return Err(SqlError::not_supported(
            "this form of CREATE SCHEMA",
            "Write CREATE SCHEMA [IF NOT EXISTS] name [AUTHORIZATION role].",
        ));
    };
    let (name, owner) = match written {
        SchemaName::Simple(name) => (Some(name), None),
        SchemaName::NamedAuthorization(name, owner) => (Some(name), Some(owner)),
        SchemaName::UnnamedAuthorization(owner) => (None, Some(owner)),
    };
    let owner = owner.map(RoleName::of_identifier);
    let name = match (name, &owner) {
        (Some(name), _) => new_name(name)?,
        (None, Some(RoleName::Named(owner))) => owner.clone(),
        (None, _) => {
            return Err(SqlError::not_supported(
                "a schema that is called as who makes it",
                "Write its name: CREATE SCHEMA name AUTHORIZATION role.",
            ));
        }
    };
    Ok(DefinitionPlan::Schema(SchemaPlan::Create { name, owner, if_not_exists: *if_not_exists }))
}

/// A name that a schema is to get.
fn new_name(name: &ObjectName) -> Result<String> {
    let name = schema_name(name)?;
    if name.starts_with("pg_") {
        let message = format!("unacceptable schema name {name:?}");
        return Err(SqlError::new(state::RESERVED_NAME, message)
            .with_hint("The prefix \"pg_\" is reserved for system schemas."));
    }
    if name.contains('.') || name.is_empty() {
        return Err(SqlError::not_supported(
            format!("the schema name {name:?}"),
            "A schema's name has no dot in it.",
        ));
    }
    Ok(name)
}

pub(super) fn alter(statement: &AlterSchema) -> Result<DefinitionPlan> {
    let AlterSchema { name, if_exists: false, operations } = statement else {
        return Err(SqlError::new(state::SYNTAX_ERROR, "ALTER SCHEMA has no IF EXISTS"));
    };
    let [AlterSchemaOperation::Rename { name: to }] = operations.as_slice() else {
        return Err(SqlError::not_supported(
            "this form of ALTER SCHEMA",
            "There is ALTER SCHEMA name RENAME TO name.",
        ));
    };
    let (name, to) = (schema_name(name)?, new_name(to)?);
    if is_builtin(&name) {
        return Err(SqlError::not_supported(
            format!("another name for the schema {name}"),
            "It is always there; ALTER TABLE ... SET SCHEMA moves its tables.",
        ));
    }
    Ok(DefinitionPlan::Schema(SchemaPlan::Rename { name, to }))
}

/// The name of a schema that tables are to be moved to.
pub(super) fn target(planner: &Planner<'_>, name: &ObjectName) -> Result<String> {
    let name = schema_name(name)?;
    if name == schemas::TEMPORARY || schemas::is_temporary(&name) {
        return Err(moves_temporary());
    }
    match schemas::is_there(planner.seen, &name)? {
        true => Ok(name),
        false => Err(no_schema(&name)),
    }
}

pub(super) fn drop(given: &[ObjectName], if_exists: bool, cascade: bool) -> Result<DefinitionPlan> {
    let names: Vec<String> = given.iter().map(schema_name).collect::<Result<_>>()?;
    if let Some(name) = names.iter().find(|name| is_builtin(name)) {
        return Err(SqlError::not_supported(
            format!("dropping the schema {name}"),
            "It is always there; drop its tables.",
        ));
    }
    Ok(DefinitionPlan::Schema(SchemaPlan::Drop { names, if_exists, cascade }))
}

/// A table is temporary for as long as it is there.
pub(super) fn moves_temporary() -> SqlError {
    let message = "cannot move objects into or out of temporary schemas";
    SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// Whether it is a schema that is always there, or that of a client's temporary tables.
pub(crate) fn is_builtin(name: &str) -> bool {
    matches!(name, schemas::PUBLIC | names::SYSTEM_SCHEMA | PG_CATALOG | INFORMATION_SCHEMA)
        || schemas::is_temporary(name)
}

fn schema_name(name: &ObjectName) -> Result<String> {
    match <[String; 1]>::try_from(names::parts(name)?) {
        Ok([name]) => Ok(name),
        Err(_) => Err(SqlError::new(state::SYNTAX_ERROR, format!("{name} is no name of a schema"))),
    }
}
