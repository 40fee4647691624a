//! Tables, schemas, roles and what is kept of them are defined.

use onrush::TableDefinition;

use super::super::{Answer, Backend};
use crate::access::Right;
use crate::error::{Result, SqlError};
use crate::sql::{AlterPlan, CommentPlan, RoleStatement, SchemaPlan, SettingChange};

#[derive(Clone)]
pub(crate) enum DefinitionPlan {
    CreateTable {
        definition: TableDefinition,
        if_not_exists: bool,
    },
    AlterTable(AlterPlan),
    DropTables {
        names: Vec<String>,
        if_exists: bool,
    },
    Truncate {
        names: Vec<String>,
    },
    /// Of what there is none; that is told.
    DropNothing {
        tag: &'static str,
        missing: Vec<SqlError>,
    },
    Comment(CommentPlan),
    Schema(SchemaPlan),
    Roles(RoleStatement),
    /// What sessions begin with from now on.
    AlterDatabase(SettingChange),
}

impl DefinitionPlan {
    /// As it stands in the answer, and in what refuses it.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            DefinitionPlan::CreateTable { .. } => "CREATE TABLE",
            DefinitionPlan::AlterTable(_) => "ALTER TABLE",
            DefinitionPlan::DropTables { .. } => "DROP TABLE",
            DefinitionPlan::Truncate { .. } => "TRUNCATE TABLE",
            DefinitionPlan::DropNothing { tag, .. } => tag,
            DefinitionPlan::Comment(_) => "COMMENT",
            DefinitionPlan::Schema(plan) => plan.tag(),
            DefinitionPlan::Roles(statement) => statement.tag(),
            DefinitionPlan::AlterDatabase(_) => "ALTER DATABASE",
        }
    }

    pub(super) fn check_rights(&self, backend: &Backend) -> Result<()> {
        match self {
            DefinitionPlan::Truncate { names } => names.iter().try_for_each(|name| {
                backend.access.check(&backend.who, Right::Truncate, &backend.seen.table(name)?)
            }),
            DefinitionPlan::DropNothing { .. } => Ok(()),
            DefinitionPlan::Roles(statement) if backend.is_own_password(statement) => Ok(()),
            _ => backend.check_superuser(self.tag()),
        }
    }

    pub(super) fn run(&self, backend: &mut Backend) -> Result<Answer> {
        match self {
            DefinitionPlan::CreateTable { definition, if_not_exists } => {
                backend.create_table(definition, *if_not_exists)
            }
            DefinitionPlan::AlterTable(plan) => backend.alter_table(plan),
            DefinitionPlan::DropTables { names, if_exists } => {
                backend.drop_tables(names, *if_exists)
            }
            DefinitionPlan::Truncate { names } => backend.truncate(names),
            DefinitionPlan::DropNothing { missing, .. } => {
                backend.notices.extend(missing.iter().cloned());
                Ok(())
            }
            DefinitionPlan::Comment(plan) => backend.comment(plan),
            DefinitionPlan::Schema(plan) => backend.change_schemas(plan),
            DefinitionPlan::Roles(statement) => backend.change_roles(statement),
            DefinitionPlan::AlterDatabase(change) => backend.alter_database(change),
        }?;
        Ok(Answer::Done(self.tag().into()))
    }
}
