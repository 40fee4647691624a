//! GRANT and REVOKE of roles, as a transaction makes them.

use std::collections::BTreeMap;

use super::change::no_role;
use super::members::{self, DATABASE_OWNER, Membership};
use super::roles::SERVER_OWNER;
use super::{RoleChanges, Roles, store};
use crate::catalog;
use crate::error::{Result, SqlError, state};

/// Roles that PostgreSQL has from the beginning, and that are not here.
const PREDEFINED: [&str; 11] = [
    "pg_read_all_data",
    "pg_write_all_data",
    "pg_read_all_settings",
    "pg_read_all_stats",
    "pg_stat_scan_tables",
    "pg_monitor",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_execute_server_program",
    "pg_signal_backend",
    "pg_checkpoint",
];

/// A role in another, as the catalogue tells it.
pub(crate) struct ShownMember {
    pub(crate) member: String,
    pub(crate) role: String,
    /// None: one that was dropped.
    pub(crate) grantor: Option<String>,
    pub(crate) has_admin: bool,
}

/// Who makes members of a role.
pub(crate) struct Granting {
    /// As whom the client acts.
    pub(crate) who: String,
    pub(crate) is_superuser: bool,
    /// Whom it names as the grantor.
    pub(crate) by: Option<String>,
}

impl Roles {
    /// The number of a role, which may be one that nobody has made.
    pub(crate) fn number_named(&self, name: &str) -> Result<i64> {
        match name {
            catalog::OWNER => Ok(SERVER_OWNER),
            catalog::DATABASE_OWNER => Ok(DATABASE_OWNER),
            name => match self.roles.get(name) {
                Some(role) => Ok(role.number),
                None if PREDEFINED.contains(&name) => Err(SqlError::not_supported(
                    format!("the role {name}"),
                    "A superuser may do what its members may.",
                )),
                None => Err(no_role(name)),
            },
        }
    }

    /// All that are in others.
    pub(crate) fn members(&self) -> Vec<ShownMember> {
        let made = self.roles.iter().map(|(name, role)| (role.number, name.as_str()));
        let names: BTreeMap<i64, &str> = made.chain([(SERVER_OWNER, catalog::OWNER)]).collect();
        let name = |number: i64| names.get(&number).map(|name| (*name).to_owned());
        let shown = |((member, role), membership): (&(i64, i64), &Membership)| {
            Some(ShownMember {
                member: name(*member)?,
                role: name(*role)?,
                grantor: name(membership.grantor),
                has_admin: membership.has_admin,
            })
        };
        self.members.all.iter().filter_map(shown).collect()
    }

    /// Refuses to make members of a role that is another's to give.
    fn check_admin(&self, granting: &Granting, group: &str, grantor: i64) -> Result<()> {
        let number = self.number_named(group)?;
        let is_superuser =
            number == SERVER_OWNER || self.roles.get(group).is_some_and(|role| role.is_superuser);
        let message = match granting.is_superuser {
            true => return Ok(()),
            false if is_superuser => "must be superuser to alter superusers".to_owned(),
            false if self.is_admin(grantor, number) => return Ok(()),
            false => format!("must have admin option on role \"{group}\""),
        };
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
    }
}

impl RoleChanges<'_, '_> {
    /// Refuses ALTER GROUP to whoever may not alter roles, a role that is not there first.
    pub(crate) fn check_alters_group(&mut self, granting: &Granting, group: &str) -> Result<()> {
        self.roles()?.number_named(group)?;
        match granting.is_superuser {
            true => Ok(()),
            false => Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, "permission denied")),
        }
    }

    /// Makes roles members of another one. Tells of those that are members already.
    pub(crate) fn add_members(
        &mut self,
        granting: &Granting,
        group: &str,
        members: &[String],
        with_admin: bool,
    ) -> Result<Vec<SqlError>> {
        let mut notices = Vec::new();
        let roles = self.roles()?;
        let who = roles.number_named(&granting.who)?;
        let grantor = match &granting.by {
            Some(by) => roles.number_named(by)?,
            None => who,
        };
        for member in members {
            roles.number_named(member)?;
        }
        let number = roles.number_named(group)?;
        if members.is_empty() {
            return Ok(notices);
        }
        roles.check_admin(granting, group, grantor)?;
        if number == DATABASE_OWNER {
            let message = format!("role \"{group}\" cannot have explicit members");
            return Err(SqlError::new(state::INTERNAL, message));
        }
        if grantor != who && !granting.is_superuser {
            let message = "must be superuser to set grantor";
            return Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        store::guard_members(self.database, self.transaction)?;
        for member in members {
            // Those before may have made it one.
            let roles = self.roles()?;
            let of_member = roles.number_named(member)?;
            if of_member == DATABASE_OWNER {
                let message = format!("role \"{member}\" cannot be a member of any role");
                return Err(SqlError::new(state::INTERNAL, message));
            }
            if roles.is_in(number, of_member) {
                let message = format!("role \"{group}\" is a member of role \"{member}\"");
                return Err(SqlError::new(state::INVALID_GRANT, message));
            }
            let key = (of_member, number);
            let known = roles.members.all.get(&key);
            if known.is_some_and(|known| known.has_admin || !with_admin) {
                let message = format!("role \"{member}\" is already a member of role \"{group}\"");
                notices.push(SqlError::new(state::SUCCESSFUL, message).notice());
                continue;
            }
            let membership = Membership { grantor, has_admin: with_admin };
            members::put(self.database, self.transaction, key, Some(membership))?;
        }
        Ok(notices)
    }

    /// Makes roles no longer members of another one, or no longer those who may make others. Tells of those that are
    /// none.
    pub(crate) fn remove_members(
        &mut self,
        granting: &Granting,
        group: &str,
        members: &[String],
        only_admin: bool,
    ) -> Result<Vec<SqlError>> {
        let mut notices = Vec::new();
        let roles = self.roles()?;
        let named = members.iter().map(|member| Ok((member, roles.number_named(member)?)));
        let named = named.collect::<Result<Vec<_>>>()?;
        let number = roles.number_named(group)?;
        roles.check_admin(granting, group, roles.number_named(&granting.who)?)?;
        for (member, of_member) in named {
            let key = (of_member, number);
            let roles = self.roles()?;
            let Some(known) = roles.members.all.get(&key) else {
                let message = format!("role \"{member}\" is not a member of role \"{group}\"");
                notices.push(SqlError::new(state::WARNING, message).warning());
                continue;
            };
            let left = only_admin.then_some(Membership { has_admin: false, ..*known });
            members::put(self.database, self.transaction, key, left)?;
        }
        Ok(notices)
    }
}
