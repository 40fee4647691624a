//! What a client may do, by the role that it acts as.

use std::sync::Arc;

use onrush::Table;

use super::{Access, Identity, Right, Role, Roles};
use crate::error::{Result, SqlError, state};
use crate::{schemas, views};

impl Access {
    /// Roles and grants as a client sees them.
    pub(crate) fn seen_by(&self, who: &Identity) -> Arc<Roles> {
        who.own_roles.as_ref().map_or_else(|| Arc::clone(&self.roles.read()), Arc::clone)
    }

    /// Whether the client may do everything.
    pub(crate) fn is_superuser(&self, who: &Identity) -> bool {
        who.is_trusted
            || self.seen_by(who).roles.get(&who.name).is_some_and(|role| role.is_superuser)
    }

    /// Whether the client is this role, or is in it by way of any: it may act as that one.
    pub(crate) fn is_in(&self, who: &Identity, role: &str) -> bool {
        self.is_superuser(who) || self.ask_of(who, role, Roles::is_in)
    }

    /// Whether the client has the rights of this role.
    pub(crate) fn acts_as(&self, who: &Identity, role: &str) -> bool {
        self.is_superuser(who) || self.ask_of(who, role, Roles::acts_as)
    }

    fn ask_of(&self, who: &Identity, role: &str, ask: impl Fn(&Roles, i64, i64) -> bool) -> bool {
        let roles = self.seen_by(who);
        let number = |name: &str| roles.number_named(name).ok();
        let both = roles.roles.get(&who.name).zip(number(role));
        who.name == role || both.is_some_and(|(one, role)| ask(&roles, one.number, role))
    }

    /// Refuses what only superusers may do.
    pub(crate) fn check_superuser(&self, who: &Identity, what: &str) -> Result<()> {
        if self.is_superuser(who) {
            return Ok(());
        }
        let message = format!("permission denied: {what} needs a superuser");
        Err(denied(message)
            .with_hint(format!("A superuser can ALTER ROLE {} SUPERUSER.", who.name)))
    }

    /// Refuses what was not granted, of what is not the client's own.
    pub(crate) fn check(&self, who: &Identity, right: Right, table: &Table) -> Result<()> {
        if self.may_do_all(who, table) {
            return Ok(());
        }
        self.check_usage(who, schemas::parts(table.name()).0)?;
        if self.ask(who, |roles, role| roles.may(role, right, table)) {
            return Ok(());
        }
        let what = views::kind(table.definition());
        let table = table.name();
        let message = format!("permission denied for {what} {}", schemas::own_name(table));
        let hint = format!("A superuser can GRANT {} ON {table} TO {}.", right.name(), who.name);
        Err(denied(message).with_hint(hint))
    }

    /// Refuses what none of these rights on a sequence was granted for.
    pub(crate) fn check_sequence(
        &self,
        who: &Identity,
        rights: &[Right],
        sequence: &Table,
    ) -> Result<()> {
        if self.may_do_all(who, sequence) {
            return Ok(());
        }
        let (schema, name) = schemas::parts(sequence.name());
        self.check_usage(who, schema)?;
        let has = |right: &Right| self.ask(who, |roles, role| roles.may(role, *right, sequence));
        if rights.iter().any(has) {
            return Ok(());
        }
        let message = format!("permission denied for sequence {name}");
        let right = rights.first().map_or("", |right| right.name());
        let hint = format!(
            "A superuser can GRANT {right} ON SEQUENCE {} TO {}.",
            sequence.name(),
            who.name
        );
        Err(denied(message).with_hint(hint))
    }

    /// Refuses what only the owner of a table, sequence or view may do.
    pub(crate) fn check_owner(&self, who: &Identity, table: &Table) -> Result<()> {
        if self.may_do_all(who, table) {
            return Ok(());
        }
        self.check_usage(who, schemas::parts(table.name()).0)?;
        if self.ask(who, |roles, role| roles.owns_table(role, table)) {
            return Ok(());
        }
        let (what, name) = (views::kind(table.definition()), schemas::own_name(table.name()));
        Err(denied(format!("must be owner of {what} {name}")))
    }

    /// Refuses to drop what belongs to another, in a schema that does, too.
    pub(crate) fn check_may_drop(&self, who: &Identity, table: &Table) -> Result<()> {
        let schema = schemas::parts(table.name()).0;
        match self.ask(who, |roles, role| roles.owns_schema(role, schema)) {
            true => Ok(()),
            false => self.check_owner(who, table),
        }
    }

    /// Refuses what only the owner of a schema may do.
    pub(crate) fn check_schema_owner(&self, who: &Identity, schema: &str) -> Result<()> {
        let is_own =
            self.is_superuser(who) || self.ask(who, |roles, role| roles.owns_schema(role, schema));
        match is_own {
            true => Ok(()),
            false => Err(denied(format!("must be owner of schema {schema}"))),
        }
    }

    /// Refuses to make something in a schema where the client was not granted that.
    pub(crate) fn check_may_create(&self, who: &Identity, schema: &str) -> Result<()> {
        let may = self.is_superuser(who)
            || schema == who.temporary_schema
            || self.ask(who, |roles, role| roles.may_in_schema(role, Right::Create, schema));
        match may {
            true => Ok(()),
            false => Err(denied_for_schema(who, Right::Create, schema)),
        }
    }

    /// Refuses to define something of a type that the client was not granted the use of. It is told by its name
    /// as the client would write it.
    pub(crate) fn check_type(&self, who: &Identity, of: &Table, shown: &str) -> Result<()> {
        let may = self.may_do_all(who, of)
            || self.ask(who, |roles, role| roles.may(role, Right::Usage, of));
        match may {
            true => Ok(()),
            false => Err(denied(format!("permission denied for type {shown}"))
                .with_hint(format!("Its owner can GRANT USAGE ON TYPE {shown} TO {}.", who.name))),
        }
    }

    fn check_usage(&self, who: &Identity, schema: &str) -> Result<()> {
        match self.ask(who, |roles, role| roles.may_in_schema(role, Right::Usage, schema)) {
            true => Ok(()),
            false => Err(denied_for_schema(who, Right::Usage, schema)),
        }
    }

    fn may_do_all(&self, who: &Identity, table: &Table) -> bool {
        self.is_superuser(who) || schemas::parts(table.name()).0 == who.temporary_schema
    }

    fn ask(&self, who: &Identity, ask: impl FnOnce(&Roles, Option<&Role>) -> bool) -> bool {
        let roles = self.seen_by(who);
        ask(&roles, roles.roles.get(&who.name))
    }
}

fn denied(message: String) -> SqlError {
    SqlError::new(state::INSUFFICIENT_PRIVILEGE, message)
}

fn denied_for_schema(who: &Identity, right: Right, schema: &str) -> SqlError {
    let hint =
        format!("A superuser can GRANT {} ON SCHEMA {schema} TO {}.", right.name(), who.name);
    denied(format!("permission denied for schema {schema}")).with_hint(hint)
}
