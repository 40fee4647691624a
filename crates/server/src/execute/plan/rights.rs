//! Who may run definitions: whoever owns what is defined, may make something in its schema, or is a superuser.

use onrush::{ColumnDefinition, ColumnDomain, DataType, Table};
use onrush_types::TableChange;

use super::super::Backend;
use super::DefinitionPlan;
use crate::access::Right;
use crate::error::{Result, SqlError, state};
use crate::sql::{
    AlterPlan, Change, ColumnChange, CompositePlan, DomainChange, DomainPlan, EnumPlan,
    ForeignKeyPlan, PlannedChange, RoleStatement, SchemaPlan, SequencePlan, ViewPlan,
};
use crate::{own_types, schemas};

impl DefinitionPlan {
    pub(in crate::execute) fn check_rights(&self, backend: &Backend) -> Result<()> {
        let owns = |name: &str| backend.check_owns(name);
        let may_drop =
            |names: &[String]| names.iter().try_for_each(|it| backend.check_may_drop(it));
        match self {
            DefinitionPlan::Truncate { names, .. } => names.iter().try_for_each(|name| {
                backend.access.check(&backend.who, Right::Truncate, &backend.seen.table(name)?)
            }),
            DefinitionPlan::Lock(plan) => backend.check_lock(plan),
            DefinitionPlan::DropNothing { .. } => Ok(()),
            DefinitionPlan::CreateTable(table) => {
                backend.check_may_create(table.definition.name())?;
                backend.check_types(table.definition.columns())?;
                backend.check_references(&table.foreign_keys)
            }
            DefinitionPlan::CreateAs(plan) => {
                backend.check_reads(&plan.query)?;
                backend.check_may_create(plan.definition.name())?;
                backend.check_types(plan.definition.columns())?;
                plan.types.iter().try_for_each(|of| backend.check_type(of))
            }
            DefinitionPlan::Refresh(plan) => {
                backend.access.check_owner(&backend.who, &plan.view)?;
                backend.check_owner_reads(&plan.view)
            }
            DefinitionPlan::AlterTable(plan)
            | DefinitionPlan::View(ViewPlan::Alter { plan, .. }) => backend.check_alters(plan),
            DefinitionPlan::DropTables { names, .. }
            | DefinitionPlan::View(ViewPlan::Drop { names, .. })
            | DefinitionPlan::Sequence(SequencePlan::Drop { names, .. })
            | DefinitionPlan::DropTypes { names, .. } => may_drop(names),
            DefinitionPlan::View(ViewPlan::Create(view)) => {
                match backend.seen.table(&view.name) {
                    Ok(_) if view.or_replace => owns(&view.name),
                    _ => backend.check_may_create(&view.name),
                }?;
                let own = view.columns.iter();
                let mut own = own.filter_map(|(_, of)| own_types::number_of_values(*of));
                own.try_for_each(|it| backend.check_type_numbered(it))?;
                view.types.iter().try_for_each(|of| backend.check_type(of))
            }
            DefinitionPlan::Sequence(SequencePlan::Create { name, .. })
            | DefinitionPlan::Enum(EnumPlan::Create { name, .. }) => backend.check_may_create(name),
            DefinitionPlan::Sequence(SequencePlan::Alter { name, .. })
            | DefinitionPlan::Enum(EnumPlan::Alter { name, .. })
            | DefinitionPlan::Composite(CompositePlan::Rename { name, .. }) => owns(name),
            DefinitionPlan::Composite(CompositePlan::Create(of)) => {
                backend.check_may_create(of.name())?;
                backend.check_types(of.columns())
            }
            DefinitionPlan::Domain(DomainPlan::Create(domain)) => {
                backend.check_may_create(domain.name())?;
                backend.check_types(domain.columns())
            }
            DefinitionPlan::Domain(DomainPlan::Alter { name, change, .. }) => {
                owns(name)?;
                match change {
                    DomainChange::Rename(to) => backend.check_may_create(to),
                    _ => Ok(()),
                }
            }
            DefinitionPlan::CreateIndex { table, .. } => owns(table),
            DefinitionPlan::RenameIndex { index, .. } => backend.check_owns_index(index),
            DefinitionPlan::DropIndexes { names, .. } => {
                names.iter().try_for_each(|index| backend.check_owns_index(index))
            }
            DefinitionPlan::Comment(plan) => owns(&plan.table),
            DefinitionPlan::SchemaWith(_)
            | DefinitionPlan::Schema(SchemaPlan::Create { .. })
            | DefinitionPlan::AlterDatabase(_) => backend.check_superuser(self.tag()),
            DefinitionPlan::Schema(SchemaPlan::Drop { names, .. }) => {
                let names = names.iter();
                names
                    .filter(|name| backend.has_schema(name))
                    .try_for_each(|name| backend.access.check_schema_owner(&backend.who, name))
            }
            DefinitionPlan::Schema(SchemaPlan::Rename { name, .. }) => {
                match backend.has_schema(name) {
                    true => backend.access.check_schema_owner(&backend.who, name),
                    false => Ok(()),
                }
            }
            DefinitionPlan::Owner(plan) => backend.check_owners(plan),
            DefinitionPlan::Storage(plan) => match &plan.table {
                Some(table) => owns(table),
                None => backend.check_superuser(self.tag()),
            },
            DefinitionPlan::Roles(statement) if backend.is_own_password(statement) => Ok(()),
            DefinitionPlan::Roles(RoleStatement::Grant { tables, schemas, .. }) => {
                tables.iter().try_for_each(|name| backend.check_may_grant(name))?;
                schemas.iter().try_for_each(|name| {
                    let owns = backend.access.check_schema_owner(&backend.who, name);
                    owns.map_err(|_| denied("schema", name))
                })
            }
            DefinitionPlan::Roles(RoleStatement::GrantByDefault { by, .. }) => {
                by.iter().try_for_each(|role| backend.check_may_be(role))
            }
            // Who may is found out where they are changed: it goes by who is in whom then.
            DefinitionPlan::Roles(RoleStatement::Members { .. }) => Ok(()),
            DefinitionPlan::Roles(_) => backend.check_superuser(self.tag()),
        }
    }
}

impl Backend {
    /// What is not there is told by what looks for it.
    fn check_owns(&self, name: &str) -> Result<()> {
        let Ok(table) = self.seen.table(name) else { return Ok(()) };
        self.access.check_owner(&self.who, &table)
    }

    fn check_may_drop(&self, name: &str) -> Result<()> {
        let Ok(table) = self.seen.table(name) else { return Ok(()) };
        self.access.check_may_drop(&self.who, &table)
    }

    fn check_owns_index(&self, index: &str) -> Result<()> {
        let has_it = |table: &onrush::Table| {
            table.definition().indexes().iter().any(|known| known.name == index)
        };
        let Some(table) = self.seen.tables().into_iter().find(has_it) else {
            return if self.is_own_temporary(index) {
                Ok(())
            } else {
                self.check_superuser("this")
            };
        };
        self.access.check_owner(&self.who, &table).map_err(|_| {
            let message = format!("must be owner of index {}", schemas::own_name(index));
            SqlError::new(state::INSUFFICIENT_PRIVILEGE, message)
        })
    }

    fn check_may_create(&self, name: &str) -> Result<()> {
        self.access.check_may_create(&self.who, schemas::parts(name).0)
    }

    fn check_may_grant(&self, name: &str) -> Result<()> {
        let Ok(table) = self.seen.table(name) else { return Ok(()) };
        self.access
            .check_owner(&self.who, &table)
            .map_err(|_| denied(crate::views::kind(table.definition()), schemas::own_name(name)))
    }

    fn check_references(&self, foreign_keys: &[ForeignKeyPlan]) -> Result<()> {
        foreign_keys.iter().try_for_each(|key| match self.seen.table(&key.referenced_table) {
            Ok(table) => self.check_right(Right::References, &table),
            // It is the table itself, or is not there.
            Err(_) => Ok(()),
        })
    }

    fn check_alters(&self, plan: &AlterPlan) -> Result<()> {
        self.check_owns(&plan.table)?;
        plan.changes.iter().try_for_each(|PlannedChange { change, .. }| match change {
            Change::AddColumn(column, _, _, foreign_keys) => {
                self.check_types([column])?;
                self.check_references(foreign_keys)
            }
            Change::AddGenerated(column, _) => self.check_types([column]),
            Change::Column(_, ColumnChange::Type { data_type, domain, .. }) => {
                self.check_type_of(*data_type, domain.as_ref())
            }
            Change::AddForeignKey(key) => self.check_references(std::slice::from_ref(key)),
            Change::Other(TableChange::Rename { to }) => self.check_may_create(to),
            _ => Ok(()),
        })
    }

    /// Refuses columns of types that the client may not use.
    fn check_types<'c>(
        &self,
        columns: impl IntoIterator<Item = &'c ColumnDefinition>,
    ) -> Result<()> {
        let mut columns = columns.into_iter();
        columns.try_for_each(|column| self.check_type_of(column.data_type, column.domain.as_ref()))
    }

    fn check_type_of(&self, data_type: DataType, domain: Option<&ColumnDomain>) -> Result<()> {
        let own = || own_types::number_of_values(data_type.into());
        match domain.map(|domain| domain.number).or_else(own) {
            Some(number) => self.check_type_numbered(number),
            None => Ok(()),
        }
    }

    fn check_type_numbered(&self, number: u32) -> Result<()> {
        // What is not there is told by what looks for it.
        self.seen.numbered(number).map_or(Ok(()), |of| self.check_type(&of))
    }

    fn check_type(&self, of: &Table) -> Result<()> {
        let own = schemas::own_name(of.name());
        let found = self.planner().lookup().own_type_named(&[own.to_owned()]);
        let is_found = found.is_some_and(|found| found.id() == of.id());
        self.access.check_type(&self.who, of, if is_found { own } else { of.name() })
    }

    fn has_schema(&self, name: &str) -> bool {
        schemas::is_there(&self.seen, name).unwrap_or_default()
    }
}

fn denied(what: &str, name: &str) -> SqlError {
    let message = format!("permission denied for {what} {name}");
    SqlError::new(state::INSUFFICIENT_PRIVILEGE, message)
        .with_hint("Its owner grants rights on it, and superusers do.")
}
