//! To whom tables and schemas belong: what a role makes is its own, until it is given to another. Who owns something
//! may do everything with it, and lets others.

use std::collections::{BTreeMap, BTreeSet};

use onrush::{Table, Transaction, ViewDefinition};

use super::definition::{Touched, drop_table};
use super::role::hold_schema;
use super::schema::drop_schema;
use super::{Backend, foreign_key, own_type, view};
use crate::access::{self, Identity, Object, Right, RoleChanges, is_reserved};
use crate::catalog::OWNER;
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::seen::Seen;
use crate::sql::{OwnerPlan, RoleName};

impl Backend {
    /// As [`define`](Self::define), of what makes tables: they belong to the role that the client acts as, and what
    /// ALTER DEFAULT PRIVILEGES said of its tables is granted on them.
    pub(super) fn define_own<T>(
        &mut self,
        touched: Touched,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let owner = self.number_of_own_role();
        let has_defaults = self.access.seen_by(&self.who).has_defaults(owner);
        if owner.is_none() && !has_defaults {
            return self.define(touched, work);
        }
        let database = self.database.clone();
        self.define(Touched::ROLES, |transaction| {
            let before = of_users(transaction);
            let done = work(transaction)?;
            let mut made = of_users(transaction);
            made.retain(|number, _| !before.contains_key(number));
            if let Some(owner) = owner {
                let own = made.values().filter(|table| has_owner(table)).map(Table::id);
                access::own_tables(&database, transaction, own, owner)?;
            }
            if has_defaults {
                let place = |table| (Object::of_table(table), Some(schemas::parts(table.name()).0));
                let made = made.values().map(place);
                access::grant_defaults(&database, transaction, owner, made)?;
            }
            Ok(done)
        })
    }

    /// None for who is no role that was made: what he makes belongs to the owner of the server.
    fn number_of_own_role(&self) -> Option<i64> {
        self.number_of_role(&self.who.name)
    }

    /// As [`number_of_own_role`](Self::number_of_own_role), of another.
    pub(super) fn number_of_role(&self, name: &str) -> Option<i64> {
        self.access.seen_by(&self.who).roles.get(name).map(|role| role.number)
    }

    /// The role that a name in a statement means.
    pub(super) fn role_named(&self, name: &RoleName) -> String {
        match name {
            RoleName::Named(name) => name.clone(),
            RoleName::Current => self.client.user.to_string(),
            RoleName::Session => self.client.session_user.to_string(),
        }
    }

    /// As [`role_named`](Self::role_named), of an owner; none for the owner of the server.
    pub(super) fn owner_named(&self, name: &RoleName) -> Option<String> {
        let is_made = |name: &String| self.access.seen_by(&self.who).roles.contains_key(name);
        let named = self.role_named(name);
        let is_self = named == *self.client.user || !matches!(name, RoleName::Named(_));
        let is_server = named == OWNER || (is_self && !is_made(&named));
        (!is_server).then_some(named)
    }

    /// Refuses to give away, or to drop, what is not the client's own.
    pub(super) fn check_owners(&self, plan: &OwnerPlan) -> Result<()> {
        let roles = self.access.seen_by(&self.who);
        let is_given = |owner: Option<&str>, to: &RoleName| {
            !self.access.is_superuser(&self.who) && owner != self.owner_named(to).as_deref()
        };
        match plan {
            OwnerPlan::Table(name, to, _) => {
                let table = self.seen.table(name)?;
                self.access.check_owner(&self.who, &table)?;
                if !is_given(roles.owner_of(&table), to) {
                    return Ok(());
                }
                self.check_may_be(to)?;
                let name_of_owner = self.shown_role(to);
                let is_trusted = name_of_owner == OWNER;
                let to = Identity { name: name_of_owner, is_trusted, ..self.who.clone() };
                self.access.check_may_create(&to, schemas::parts(name).0)
            }
            OwnerPlan::Schema(name, to) => {
                if !is_given(roles.owner_of_schema(name), to) {
                    return Ok(());
                }
                self.access.check_schema_owner(&self.who, name)?;
                self.check_may_be(to)?;
                self.check_makes_schemas()
            }
            OwnerPlan::Reassign { from, to } => {
                let mut all = from.iter().chain([to]);
                all.try_for_each(|role| self.check_acts_as(role, "reassign objects"))?;
                let gives_schema = |from: &RoleName| {
                    let from = self.role_named(from);
                    is_given(Some(&from), to) && roles.owns_schemas(roles.roles.get(&from))
                };
                match from.iter().any(gives_schema) {
                    true => self.check_makes_schemas(),
                    false => Ok(()),
                }
            }
            OwnerPlan::Drop { of, .. } => {
                of.iter().try_for_each(|role| self.check_acts_as(role, "drop objects"))
            }
        }
    }

    /// Refuses to give a schema to a role to whoever could not have made it for that one.
    fn check_makes_schemas(&self) -> Result<()> {
        if self.access.is_superuser(&self.who) {
            return Ok(());
        }
        let message = format!("permission denied for database {}", self.client.database);
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    /// Refuses what is done as a role that the client is not in.
    pub(super) fn check_may_be(&self, role: &RoleName) -> Result<()> {
        let to = self.role_named(role);
        if self.access.is_in(&self.who, &to) {
            return Ok(());
        }
        let message = format!("must be member of role \"{to}\"");
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    fn check_acts_as(&self, role: &RoleName, what: &str) -> Result<()> {
        if self.access.acts_as(&self.who, &self.role_named(role)) {
            return Ok(());
        }
        let message = format!("permission denied to {what}");
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    pub(super) fn change_owners(&mut self, plan: &OwnerPlan) -> Result<()> {
        let database = self.database.clone();
        let seen_as = |name: &RoleName| self.owner_named(name);
        match plan {
            OwnerPlan::Table(name, to, _) => {
                let to = seen_as(to);
                self.define(Touched::ROLES, |transaction| {
                    let table = transaction.table(name)?;
                    check_is_no_part(&table)?;
                    transaction.hold_table(&table)?;
                    let mut changes = RoleChanges { database: &database, transaction };
                    changes.give(&[i64::from(table.id())], to.as_deref())
                })
            }
            OwnerPlan::Schema(name, to) => {
                let to = seen_as(to);
                self.define(Touched::ROLES, |transaction| {
                    let place = hold_schema(&database, transaction, name)?;
                    let mut changes = RoleChanges { database: &database, transaction };
                    changes.give(&[place], to.as_deref())
                })
            }
            OwnerPlan::Reassign { from, to } => {
                let (from, to) = (from.iter().map(|name| self.role_named(name)), seen_as(to));
                let from: Vec<String> = from.collect();
                self.define(Touched::ROLES, |transaction| {
                    let mut changes = RoleChanges { database: &database, transaction };
                    from.iter().try_for_each(|role| {
                        let owned = changes.owned_by(role)?;
                        changes.give(&owned, to.as_deref())
                    })
                })
            }
            OwnerPlan::Drop { of, cascades } => {
                let of: Vec<String> = of.iter().map(|name| self.role_named(name)).collect();
                let notices = self.define(Touched::ROLES, |transaction| {
                    let mut notices = Vec::new();
                    for role in &of {
                        let mut changes =
                            RoleChanges { database: &database, transaction: &mut *transaction };
                        changes.take_grants(role)?;
                        let owned = changes.owned_by(role)?.into_iter().collect();
                        drop_owned(&database, transaction, &owned, *cascades, &mut notices)?;
                    }
                    Ok(notices)
                })?;
                self.notices.extend(notices);
                Ok(())
            }
        }
    }

    /// Refuses a view whose owner may not do with what it reads what the client does with the view.
    pub(super) fn check_owner_of_view(&self, right: Right, view: &Table) -> Result<()> {
        match view.definition().view() {
            Some(definition) => self.check_owner_of_query(right, view, definition),
            None => Ok(()),
        }
    }

    /// Refuses a materialized view whose owner may not read what its query does.
    pub(super) fn check_owner_reads(&self, view: &Table) -> Result<()> {
        match view.definition().materialized_view() {
            Some(definition) => self.check_owner_of_query(Right::Select, view, definition),
            None => Ok(()),
        }
    }

    fn check_owner_of_query(
        &self,
        right: Right,
        view: &Table,
        definition: &ViewDefinition,
    ) -> Result<()> {
        let roles = self.access.seen_by(&self.who);
        let Some(owner) = roles.owner_of(view) else { return Ok(()) };
        let owner = Identity { name: owner.to_owned(), is_trusted: false, ..self.who.clone() };
        if self.access.is_superuser(&owner) {
            return Ok(());
        }
        for source in &definition.sources {
            if let Some(table) = self.seen.numbered(source.table) {
                self.access.check(&owner, right, &table)?;
                self.check_owner_of_view(right, &table)?;
            }
        }
        Ok(())
    }
}

/// What there is of users, by number.
fn of_users(transaction: &Transaction<'_>) -> BTreeMap<u32, Table> {
    let definitions = transaction.tables();
    let of_users = definitions
        .iter()
        .filter(|definition| !is_reserved(definition.name()) && definition.entries_of().is_none());
    // One that was dropped just now is left out.
    let tables = of_users.filter_map(|it| transaction.table(it.name()).ok());
    tables.map(|table| (table.id(), table)).collect()
}

/// Whether it can have an owner of its own.
fn has_owner(table: &Table) -> bool {
    table.definition().sequence().is_none_or(|sequence| sequence.owner.is_none())
}

/// Refuses to give a sequence away without its table.
fn check_is_no_part(table: &Table) -> Result<()> {
    let owner = table.definition().sequence().and_then(|sequence| sequence.owner);
    match owner {
        None => Ok(()),
        Some(_) => {
            let message =
                format!("cannot change owner of sequence {:?}", schemas::own_name(table.name()));
            let detail = "It belongs to the owner of the table that it is linked to.";
            Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message).with_detail(detail))
        }
    }
}

/// Drops tables and schemas of these places.
fn drop_owned(
    database: &onrush::Database,
    transaction: &mut Transaction<'_>,
    owned: &BTreeSet<i64>,
    cascades: bool,
    notices: &mut Vec<SqlError>,
) -> Result<()> {
    let seen = Seen::within(database, transaction, true)?;
    let relations = seen.relations().into_iter();
    let relations = relations.filter(|table| owned.contains(&i64::from(table.id())));
    let names: Vec<String> = relations.map(|table| table.name().to_owned()).collect();
    foreign_key::drop_references(transaction, &names, cascades, notices)?;
    view::drop_dependents(database, transaction, &names, cascades, notices)?;
    for name in &names {
        // It may be gone with another one.
        if transaction.table(name).is_ok() {
            drop_table(database, transaction, name)?;
        }
    }
    for of in seen.own_types().into_iter().filter(|of| owned.contains(&i64::from(of.id()))) {
        if transaction.table(of.name()).is_ok() {
            own_type::drop_type(database, transaction, &of, cascades, notices)?;
        }
    }
    let roles = seen.roles()?;
    for schema in schemas::made_ones(database, transaction)? {
        if roles.place_of(&schema).is_some_and(|place| owned.contains(&place)) {
            drop_schema(database, transaction, &schema, cascades, notices)?;
        }
    }
    Ok(())
}
