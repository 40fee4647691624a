//! Roles in roles: who is a member of which, and whose rights that gives.
//!
//! Invariants
//! 1. No role is a member of itself by way of others: of transactions that make members at the same time one commits.
//! 2. Whose rights a role has is found out when memberships are read, and looked up when a right is asked for.

use std::collections::{BTreeMap, BTreeSet};

use onrush::{ColumnDefinition, DataType, Database, Result, Row, TableDefinition, Transaction};

use super::roles::SERVER_OWNER;
use super::{Role, Roles, store};
use crate::kept::{self, Reads};

const MEMBERS: &str = "onrush.members";

/// The number of the role that the owner of the server is a member of, and nobody else by being granted it.
pub(super) const DATABASE_OWNER: i64 = -3;

/// How a role is a member of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    /// The number of who made it one.
    pub(super) grantor: i64,
    /// May make others members, too.
    pub(super) has_admin: bool,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    /// By the numbers of the member and of the role that it is in.
    pub(super) all: BTreeMap<(i64, i64), Membership>,
    /// All roles that a role is in, also by way of others.
    within: BTreeMap<i64, BTreeSet<i64>>,
    /// Those of them whose rights it has.
    acts_as: BTreeMap<i64, BTreeSet<i64>>,
}

impl Members {
    /// Of these roles. What is said of roles that are not there counts for nothing.
    pub(super) fn new(
        mut all: BTreeMap<(i64, i64), Membership>,
        roles: &BTreeMap<String, Role>,
    ) -> Members {
        if all.is_empty() {
            return Members::default();
        }
        let known: BTreeMap<i64, bool> = roles
            .values()
            .map(|role| (role.number, !role.no_inherit))
            .chain([(SERVER_OWNER, true)])
            .collect();
        all.retain(|(member, role), _| known.contains_key(member) && known.contains_key(role));
        let inherits = |role: i64| known.get(&role).copied().unwrap_or_default();
        let starts: BTreeSet<i64> = all.keys().map(|(member, _)| *member).collect();
        let within = starts.iter().map(|start| (*start, reached(&all, *start, |_| true)));
        let within = within.collect();
        let acts_as = starts.iter().map(|start| (*start, reached(&all, *start, inherits)));
        let acts_as = acts_as.collect();
        Members { all, within, acts_as }
    }
}

/// The roles that one is in by way of those that go on.
fn reached(
    all: &BTreeMap<(i64, i64), Membership>,
    start: i64,
    goes_on: impl Fn(i64) -> bool,
) -> BTreeSet<i64> {
    let (mut found, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(member) = next.pop() {
        if !goes_on(member) {
            continue;
        }
        if member == SERVER_OWNER {
            found.insert(DATABASE_OWNER);
        }
        let direct = all.range((member, i64::MIN)..=(member, i64::MAX));
        next.extend(direct.map(|((_, role), _)| *role).filter(|role| found.insert(*role)));
    }
    found
}

impl Roles {
    /// Whether a role is another one, or is in it by way of any.
    pub(crate) fn is_in(&self, member: i64, role: i64) -> bool {
        member == role || self.members.within.get(&member).is_some_and(|of| of.contains(&role))
    }

    /// Whether a role has the rights of another one.
    pub(crate) fn acts_as(&self, member: i64, role: i64) -> bool {
        member == role || self.members.acts_as.get(&member).is_some_and(|of| of.contains(&role))
    }

    /// Those whose rights a role has, itself among them.
    pub(super) fn acting_as(&self, member: i64) -> impl Iterator<Item = i64> {
        let others = self.members.acts_as.get(&member).into_iter().flatten().copied();
        std::iter::once(member).chain(others)
    }

    /// Whether a role may make others members of one. Nobody may of itself by being it.
    pub(crate) fn is_admin(&self, member: i64, role: i64) -> bool {
        let direct = |number: i64| self.members.all.get(&(number, role));
        let others = self.members.within.get(&member).into_iter().flatten().copied();
        let mut admins = std::iter::once(member).chain(others).filter_map(direct);
        member != role && admins.any(|membership| membership.has_admin)
    }
}

fn definition() -> Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let members = TableDefinition::builder(MEMBERS)
        .column(number("member"))
        .column(number("role"))
        .column(number("grantor"))
        .column(ColumnDefinition::new("has_admin", DataType::Boolean).not_null());
    Ok(members.primary_key(["member", "role"]).build()?)
}

pub(super) fn load(
    database: &Database,
    reads: &mut impl Reads,
) -> Result<BTreeMap<(i64, i64), Membership>> {
    Ok(kept::rows(database, reads, MEMBERS)?.iter().filter_map(read).collect())
}

fn read(row: &Row) -> Option<((i64, i64), Membership)> {
    let has_admin = row[3] == onrush::Value::Boolean(true);
    let membership = Membership { grantor: row[2].as_i64()?, has_admin };
    Some(((row[0].as_i64()?, row[1].as_i64()?), membership))
}

/// Makes a role a member of another one, or, with none, no longer one.
pub(super) fn put(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (member, role): (i64, i64),
    membership: Option<Membership>,
) -> Result<()> {
    let row = membership.map(|Membership { grantor, has_admin }| {
        [member.into(), role.into(), grantor.into(), has_admin.into()]
    });
    let row = row.as_ref().map(<[_; 4]>::as_slice);
    store::put_or_remove(database, transaction, definition()?, &[member.into(), role.into()], row)
}

/// The transaction drops a role: it is in none, and none is in it.
pub(super) fn forget_role(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: i64,
) -> Result<()> {
    kept::remove(database, transaction, MEMBERS, |row| {
        read(row).is_some_and(|((member, role), _)| member == number || role == number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Roles of these numbers, of which those above ten do not inherit, and who is in which.
    fn roles(numbers: &[i64], pairs: &[(i64, i64, bool)]) -> Roles {
        let role = |number: &i64| {
            let role = Role { number: *number, no_inherit: *number > 10, ..Role::default() };
            (number.to_string(), role)
        };
        let roles: BTreeMap<String, Role> = numbers.iter().map(role).collect();
        let membership = |(member, role, has_admin): &(i64, i64, bool)| {
            ((*member, *role), Membership { grantor: SERVER_OWNER, has_admin: *has_admin })
        };
        let members = Members::new(pairs.iter().map(membership).collect(), &roles);
        Roles { roles, members, ..Roles::default() }
    }

    #[test]
    fn rights_go_through_roles_that_inherit_and_membership_through_all() {
        let roles = roles(&[1, 2, 3, 11, 12], &[(1, 11, false), (11, 2, false), (2, 3, false)]);
        assert!(roles.acts_as(1, 1) && roles.acts_as(1, 11) && !roles.acts_as(1, 2));
        assert!(roles.acts_as(2, 3) && !roles.acts_as(11, 2) && !roles.acts_as(3, 2));
        assert!(roles.is_in(1, 3) && roles.is_in(11, 3) && !roles.is_in(3, 1));
        assert_eq!(roles.acting_as(1).collect::<Vec<_>>(), [1, 11]);
        assert_eq!(roles.acting_as(12).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn whoever_is_in_an_admin_is_one() {
        let roles = roles(&[1, 2, 3], &[(1, 2, false), (2, 3, true)]);
        assert!(roles.is_admin(2, 3) && roles.is_admin(1, 3));
        assert!(!roles.is_admin(1, 2) && !roles.is_admin(3, 3));
    }

    #[test]
    fn who_is_in_the_owner_of_the_server_owns_the_database() {
        let roles = roles(&[1, 2], &[(1, SERVER_OWNER, false)]);
        assert!(roles.acts_as(1, DATABASE_OWNER) && !roles.acts_as(2, DATABASE_OWNER));
    }

    #[test]
    fn a_role_that_is_not_there_gives_no_rights() {
        let roles = roles(&[1, 2], &[(1, 9, false), (9, 2, false)]);
        assert!(!roles.is_in(1, 2) && !roles.acts_as(1, 9));
    }
}
