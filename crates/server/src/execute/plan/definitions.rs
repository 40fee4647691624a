//! Tables, schemas, roles and what is kept of them are defined.

use std::sync::Arc;

use onrush::Identities;

use super::super::{Answer, Backend};
use crate::error::{Result, SqlError};
use crate::seen::Seen;
use crate::sql::{
    AlterPlan, Bound, CommentPlan, CompositePlan, CreateAsPlan, DomainPlan, EnumPlan, IndexPlan,
    LockPlan, NewTable, OwnerPlan, Parsed, QueryPlan, RefreshPlan, RoleStatement, SchemaPlan,
    SequencePlan, SettingChange, StoragePlan, ViewPlan,
};

#[derive(Clone)]
pub(crate) enum DefinitionPlan {
    CreateTable(Arc<NewTable>),
    CreateAs(Arc<CreateAsPlan>),
    Refresh(Arc<RefreshPlan>),
    AlterTable(AlterPlan),
    DropTables {
        names: Vec<String>,
        if_exists: bool,
        cascades: bool,
    },
    Truncate {
        names: Vec<String>,
        cascades: bool,
        identities: Identities,
    },
    CreateIndex {
        table: String,
        index: IndexPlan,
        if_not_exists: bool,
        /// CONCURRENTLY: it cannot stand in a transaction block.
        is_concurrent: bool,
    },
    RenameIndex {
        index: String,
        to: String,
    },
    DropIndexes {
        names: Vec<String>,
        /// Those that are not there, where they need not be.
        missing: Vec<SqlError>,
    },
    Lock(LockPlan),
    /// Of what there is none; that is told.
    DropNothing {
        tag: &'static str,
        missing: Vec<SqlError>,
    },
    Comment(CommentPlan),
    Schema(SchemaPlan),
    SchemaWith(SchemaElements),
    Sequence(SequencePlan),
    View(ViewPlan),
    Enum(EnumPlan),
    Composite(CompositePlan),
    Domain(DomainPlan),
    /// Enumerated types and domains.
    DropTypes {
        tag: &'static str,
        names: Vec<String>,
        /// Those that are not there, where they need not be.
        missing: Vec<SqlError>,
        cascades: bool,
    },
    Roles(RoleStatement),
    Owner(OwnerPlan),
    /// How things are stored: indexes are built anew, or there is nothing to do.
    Storage(StoragePlan),
    /// What sessions begin with from now on.
    AlterDatabase(SettingChange),
}

/// A schema that is to be made, and what is to be in it.
#[derive(Clone)]
pub(crate) struct SchemaElements {
    pub(crate) schema: SchemaPlan,
    /// Planned once the schema is there.
    pub(crate) elements: Arc<[Parsed]>,
}

impl DefinitionPlan {
    /// As it stands in the answer, and in what refuses it.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            DefinitionPlan::CreateTable(_) => "CREATE TABLE",
            DefinitionPlan::CreateAs(plan) => plan.tag(),
            DefinitionPlan::Refresh(_) => "REFRESH MATERIALIZED VIEW",
            DefinitionPlan::AlterTable(_) => "ALTER TABLE",
            DefinitionPlan::DropTables { .. } => "DROP TABLE",
            DefinitionPlan::Truncate { .. } => "TRUNCATE TABLE",
            DefinitionPlan::CreateIndex { .. } => "CREATE INDEX",
            DefinitionPlan::RenameIndex { .. } => "ALTER INDEX",
            DefinitionPlan::DropIndexes { .. } => "DROP INDEX",
            DefinitionPlan::Lock(_) => "LOCK TABLE",
            DefinitionPlan::DropNothing { tag, .. } => tag,
            DefinitionPlan::Comment(_) => "COMMENT",
            DefinitionPlan::Schema(plan) => plan.tag(),
            DefinitionPlan::SchemaWith(plan) => plan.schema.tag(),
            DefinitionPlan::Sequence(plan) => plan.tag(),
            DefinitionPlan::View(plan) => plan.tag(),
            DefinitionPlan::Enum(plan) => plan.tag(),
            DefinitionPlan::Composite(plan) => plan.tag(),
            DefinitionPlan::Domain(plan) => plan.tag(),
            DefinitionPlan::DropTypes { tag, .. } => tag,
            DefinitionPlan::Roles(statement) => statement.tag(),
            DefinitionPlan::Owner(plan) => plan.tag(),
            DefinitionPlan::Storage(plan) => plan.tag,
            DefinitionPlan::AlterDatabase(_) => "ALTER DATABASE",
        }
    }

    /// Whether a table that it was made for was altered or dropped since.
    pub(super) fn is_stale(&self, seen: &Seen) -> bool {
        match self {
            DefinitionPlan::CreateAs(plan) => plan.query.is_stale(seen),
            DefinitionPlan::Refresh(plan) => {
                let is_stale = |query: &QueryPlan| query.is_stale(seen);
                !seen.is_current(&plan.view) || plan.query.as_ref().is_some_and(is_stale)
            }
            DefinitionPlan::Lock(plan) => plan.tables.iter().any(|table| !seen.is_current(table)),
            DefinitionPlan::View(ViewPlan::Create(view)) => {
                view.tables.iter().any(|table| !seen.is_current(table))
            }
            _ => false,
        }
    }

    pub(in crate::execute) fn run(&self, backend: &mut Backend, bound: &Bound) -> Result<Answer> {
        match self {
            DefinitionPlan::CreateTable(table) => backend.create_table(table),
            DefinitionPlan::CreateIndex { table, index, if_not_exists, is_concurrent } => {
                if *is_concurrent {
                    backend.outside_transaction("CREATE INDEX CONCURRENTLY")?;
                }
                backend.create_index(table, index, *if_not_exists)
            }
            DefinitionPlan::RenameIndex { index, to } => backend.rename_index(index, to),
            DefinitionPlan::DropIndexes { names, missing } => {
                backend.notices.extend(missing.iter().cloned());
                backend.drop_indexes(names)
            }
            DefinitionPlan::CreateAs(plan) => return backend.create_as(plan, bound),
            DefinitionPlan::Refresh(plan) => backend.refresh(plan, bound),
            DefinitionPlan::AlterTable(plan) => backend.alter_table(plan),
            DefinitionPlan::DropTables { names, if_exists, cascades } => {
                backend.drop_tables(names, *if_exists, *cascades)
            }
            DefinitionPlan::Truncate { names, cascades, identities } => {
                backend.truncate(names, *cascades, *identities)
            }
            DefinitionPlan::Lock(plan) => backend.lock_tables(plan),
            DefinitionPlan::DropNothing { missing, .. } => {
                backend.notices.extend(missing.iter().cloned());
                Ok(())
            }
            DefinitionPlan::Comment(plan) => backend.comment(plan),
            DefinitionPlan::Schema(plan) => backend.change_schemas(plan),
            DefinitionPlan::SchemaWith(plan) => backend.create_schema_with(plan),
            DefinitionPlan::Sequence(plan) => backend.change_sequences(plan),
            DefinitionPlan::View(plan) => backend.change_views(plan),
            DefinitionPlan::Enum(plan) => backend.change_enums(plan),
            DefinitionPlan::Composite(plan) => backend.change_composites(plan),
            DefinitionPlan::Domain(plan) => backend.change_domains(plan),
            DefinitionPlan::DropTypes { tag: _, names, missing, cascades } => {
                backend.drop_types(names, missing, *cascades)
            }
            DefinitionPlan::Roles(statement) => backend.change_roles(statement),
            DefinitionPlan::Owner(plan) => backend.change_owners(plan),
            DefinitionPlan::Storage(plan) => backend.change_storage(plan),
            DefinitionPlan::AlterDatabase(change) => backend.alter_database(change),
        }?;
        Ok(Answer::Done(self.tag().into()))
    }
}
