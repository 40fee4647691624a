//! CREATE SCHEMA and DROP SCHEMA.

use sqlparser::ast::{ObjectName, SchemaName, Statement};

use super::names;
use super::plan::Plan;
use crate::catalog::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::error::{Result, SqlError, state};
use crate::schemas;

/// What is done with schemas.
#[derive(Clone, Debug)]
pub(crate) enum SchemaPlan {
    Create { name: String, if_not_exists: bool },
    Drop { names: Vec<String>, if_exists: bool, cascade: bool },
}

pub(super) fn create(statement: &Statement) -> Result<Plan> {
    let Statement::CreateSchema {
        schema_name: SchemaName::Simple(name),
        if_not_exists,
        with: None,
        options: None,
        default_collate_spec: None,
        clone: None,
    } = statement
    else {
        return Err(SqlError::not_supported(
            "this form of CREATE SCHEMA",
            "Write CREATE SCHEMA [IF NOT EXISTS] name; everything belongs to one owner.",
        ));
    };
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
    Ok(Plan::Schema(SchemaPlan::Create { name, if_not_exists: *if_not_exists }))
}

pub(super) fn drop(given: &[ObjectName], if_exists: bool, cascade: bool) -> Result<Plan> {
    let names: Vec<String> = given.iter().map(schema_name).collect::<Result<_>>()?;
    if let Some(name) = names.iter().find(|name| is_builtin(name)) {
        return Err(SqlError::not_supported(
            format!("dropping the schema {name}"),
            "It is always there; drop its tables.",
        ));
    }
    Ok(Plan::Schema(SchemaPlan::Drop { names, if_exists, cascade }))
}

/// Whether it is a schema that is always there.
pub(crate) fn is_builtin(name: &str) -> bool {
    matches!(name, schemas::PUBLIC | names::SYSTEM_SCHEMA | PG_CATALOG | INFORMATION_SCHEMA)
}

fn schema_name(name: &ObjectName) -> Result<String> {
    match <[String; 1]>::try_from(names::parts(name)?) {
        Ok([name]) => Ok(name),
        Err(_) => Err(SqlError::new(state::SYNTAX_ERROR, format!("{name} is no name of a schema"))),
    }
}
