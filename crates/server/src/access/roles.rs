//! Roles, what belongs to them, and what was granted to them or to everyone.
//!
//! Invariant: whatever belongs to nobody among the roles belongs to the owner of the server, a superuser.

use std::collections::{BTreeMap, BTreeSet};

use onrush::Table;

use super::defaults::Defaults;
use super::members::Members;
use super::rights::{Kind, Right};
use super::verifier::Verifier;
use crate::error::{Result, SqlError, state};
use crate::schemas;

/// What everyone is called, and whom no role is called.
pub(crate) const PUBLIC: &str = "public";
/// Where default rights have the number of a role, that of who owns what belongs to none.
pub(super) const SERVER_OWNER: i64 = -2;
/// The number of everyone, where a grant has that of a role.
pub(super) const EVERYONE: i64 = -1;
/// The schema `public`, where a grant has the number of a table.
pub(crate) const PLACE_OF_PUBLIC: i64 = i64::MIN;

/// What a role is, its name apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// By which grants know it.
    pub(crate) number: i64,
    pub(crate) verifier: Option<Verifier>,
    /// May do everything.
    pub(crate) is_superuser: bool,
    pub(crate) can_login: bool,
    /// Has no rights of the roles that it is in until it acts as one of them.
    pub(crate) no_inherit: bool,
}

/// What is to be different in a role.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleChange {
    /// `Some(None)`: no password, and so no way in.
    pub(crate) password: Option<Option<Verifier>>,
    pub(crate) is_superuser: Option<bool>,
    pub(crate) can_login: Option<bool>,
    pub(crate) no_inherit: Option<bool>,
}

impl Role {
    pub(super) fn change(&mut self, change: &RoleChange) -> Result<()> {
        if let Some(password) = &change.password {
            let checked = password.as_ref().map_or(Ok(()), Verifier::check);
            checked.map_err(|why| SqlError::new(state::INVALID_PARAMETER_VALUE, why))?;
            self.verifier.clone_from(password);
        }
        self.is_superuser = change.is_superuser.unwrap_or(self.is_superuser);
        self.can_login = change.can_login.unwrap_or(self.can_login);
        self.no_inherit = change.no_inherit.unwrap_or(self.no_inherit);
        Ok(())
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    pub(crate) roles: BTreeMap<String, Role>,
    /// Who is in which of them.
    pub(super) members: Members,
    /// By the numbers of role and table, or of a schema below zero.
    pub(super) grants: BTreeMap<(i64, i64), BTreeSet<Right>>,
    /// The numbers of those whom tables and schemas belong to, by the numbers of these.
    pub(super) owners: BTreeMap<i64, i64>,
    /// What things are granted when they are made.
    pub(super) defaults: Defaults,
    /// Numbers of schemas, by their names.
    pub(super) schemas: BTreeMap<String, i64>,
}

/// A schema where a grant has the number of a table.
pub(crate) fn place_of_schema(number: i64) -> i64 {
    -number
}

/// What rights are granted on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// The number of a table, or of a schema below zero.
    pub(super) place: i64,
    /// That of what has its owner: a sequence that a table owns has that one's.
    owner_place: i64,
    pub(super) kind: Kind,
}

impl Object {
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn of_table(table: &Table) -> Object {
        let sequence = table.definition().sequence();
        let owner = sequence.and_then(|sequence| sequence.owner);
        let kind = match sequence {
            Some(_) => Kind::Sequence,
            None if table.definition().is_type() => Kind::Type,
            None => Kind::Table,
        };
        let owner_place = i64::from(owner.map_or(table.id(), |owner| owner.table));
        Object { place: i64::from(table.id()), owner_place, kind }
    }

    pub(crate) fn of_schema(place: i64) -> Object {
        Object { place, owner_place: place, kind: Kind::Schema }
    }
}

impl Roles {
    /// A schema of this name where a grant has the number of a table; none of one that is there by its tables alone.
    pub(crate) fn place_of(&self, schema: &str) -> Option<i64> {
        match schema {
            schemas::PUBLIC => Some(PLACE_OF_PUBLIC),
            schema => self.schemas.get(schema).copied().map(place_of_schema),
        }
    }

    /// Whether a role, none where it is no known one, has a right, or a role has it that it acts as: by a grant, or as
    /// the owner from whom it was not taken back.
    fn has(&self, role: Option<&Role>, object: Object, right: Right) -> bool {
        let granted = |number| self.grants.get(&(number, object.place));
        let owner = self.owner_at(object.owner_place);
        let has = |number: i64| match granted(number) {
            Some(rights) => rights.contains(&right),
            None => number == owner,
        };
        let own = role.is_some_and(|role| self.acting_as(role.number).any(has));
        let of_everyone = || match granted(EVERYONE) {
            Some(rights) => rights.contains(&right),
            None => object.kind.rights_of_everyone().contains(&right),
        };
        own || of_everyone()
    }

    /// Whether something belongs to who has this number.
    pub(super) fn is_owner(&self, number: i64, object: Object) -> bool {
        self.owners.get(&object.owner_place) == Some(&number)
    }

    fn owner_at(&self, place: i64) -> i64 {
        self.owners.get(&place).copied().unwrap_or(SERVER_OWNER)
    }

    fn owns(&self, role: Option<&Role>, place: i64) -> bool {
        role.is_some_and(|role| self.acts_as(role.number, self.owner_at(place)))
    }

    /// Whether a schema is a role's.
    pub(crate) fn owns_schema(&self, role: Option<&Role>, schema: &str) -> bool {
        self.place_of(schema).is_some_and(|place| self.owns(role, place))
    }

    /// Whether any schema belongs to a role itself.
    pub(crate) fn owns_schemas(&self, role: Option<&Role>) -> bool {
        let mut owners = self.owners.iter().filter(|(place, _)| **place < 0);
        owners.any(|(_, owner)| role.is_some_and(|role| role.number == *owner))
    }

    /// Whether a table, sequence or view is a role's.
    pub(crate) fn owns_table(&self, role: Option<&Role>, table: &Table) -> bool {
        self.owns(role, Object::of_table(table).owner_place)
    }

    /// Whether a role has a right on a schema.
    pub(crate) fn may_in_schema(&self, role: Option<&Role>, right: Right, schema: &str) -> bool {
        let place = self.place_of(schema);
        place.is_some_and(|place| self.has(role, Object::of_schema(place), right))
    }

    /// Whether a role has a right on a table, sequence or view.
    pub(crate) fn may(&self, role: Option<&Role>, right: Right, table: &Table) -> bool {
        self.has(role, Object::of_table(table), right)
    }

    /// Whom a table belongs to; none: to the owner of the server.
    pub(crate) fn owner_of(&self, table: &Table) -> Option<&str> {
        self.owner(Object::of_table(table).owner_place)
    }

    /// Whom a schema belongs to, in the same way.
    pub(crate) fn owner_of_schema(&self, schema: &str) -> Option<&str> {
        self.owner(self.place_of(schema)?)
    }

    fn owner(&self, place: i64) -> Option<&str> {
        self.name_of(*self.owners.get(&place)?)
    }

    pub(super) fn name_of(&self, number: i64) -> Option<&str> {
        let mut all = self.roles.iter();
        all.find(|(_, role)| role.number == number).map(|(name, _)| name.as_str())
    }

    /// What was granted on a table, by the names of roles; of everyone it is empty.
    pub(crate) fn granted_on(&self, table: &Table) -> Vec<(String, Vec<Right>)> {
        self.granted_at(i64::from(table.id()))
    }

    /// What was granted on a schema, in the same way.
    pub(crate) fn granted_on_schema(&self, schema: &str) -> Vec<(String, Vec<Right>)> {
        self.place_of(schema).map(|place| self.granted_at(place)).unwrap_or_default()
    }

    fn granted_at(&self, place: i64) -> Vec<(String, Vec<Right>)> {
        let rights = |(name, number): (String, i64)| {
            let rights = self.grants.get(&(number, place))?;
            Some((name, rights.iter().copied().collect()))
        };
        let roles = self.roles.iter().map(|(name, role)| (name.clone(), role.number));
        [(String::new(), EVERYONE)].into_iter().chain(roles).filter_map(rights).collect()
    }

    /// Whether something belongs to a role, was granted to it, or is to be.
    pub(crate) fn depends_on(&self, role: &Role) -> bool {
        self.owners.values().any(|owner| *owner == role.number)
            || self.grants.keys().any(|(number, _)| *number == role.number)
            || self.defaults.iter().any(|(scope, granted)| scope.is_of(role.number, granted))
    }
}
