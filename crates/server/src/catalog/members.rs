//! Roles in roles: `pg_auth_members`, what the standard tells of them, and `pg_has_role`.

use onrush::{Database, Row, Value};
use onrush_query::{QueryError, Result, Statement, SystemFunction};

use super::kinds::{BOOL, NAME, OID, TEXT};
use super::names::{DATABASE_OWNER, OWNER};
use super::rights::Asked;
use super::roles::owner_oid;
use super::{INFORMATION_SCHEMA, PG_CATALOG, SystemTable, oid};
use crate::access::{Roles, ShownMember};
use crate::execute::{caller_of, seen_by};
use crate::seen::Seen;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_auth_members",
        columns: &[("roleid", OID), ("member", OID), ("grantor", OID), ("admin_option", BOOL)],
        rows: |seen, _| {
            let row = |of: ShownMember| {
                let grantor = of.grantor.map_or(0, |name| owner_oid(&name));
                let (role, member) = (owner_oid(&of.role), owner_oid(&of.member));
                vec![oid(role), oid(member), oid(grantor), Value::Boolean(of.has_admin)]
            };
            // Of a database that has stopped nothing is told.
            seen.roles().unwrap_or_default().members().into_iter().map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "applicable_roles",
        columns: &[("grantee", NAME), ("role_name", NAME), ("is_grantable", TEXT)],
        rows: |seen, statement| applicable(seen, statement, |_| true),
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "administrable_role_authorizations",
        columns: &[("grantee", NAME), ("role_name", NAME), ("is_grantable", TEXT)],
        rows: |seen, statement| applicable(seen, statement, |of| of.has_admin),
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "enabled_roles",
        columns: &[("role_name", NAME)],
        rows: |seen, statement| {
            let Ok(asked) = Asked::new(&statement.client, seen, None) else { return Vec::new() };
            let made = asked.roles.roles.keys().map(String::as_str);
            let all = [OWNER, DATABASE_OWNER].into_iter().chain(made);
            let enabled = all.filter(|role| acts_as(&asked, role));
            enabled.map(|role| vec![role.to_owned().into()]).collect()
        },
    },
];

fn acts_as(asked: &Asked<'_>, role: &str) -> bool {
    let both = asked.role.as_ref().zip(asked.roles.number_named(role).ok());
    asked.is_superuser || both.is_some_and(|(one, role)| asked.roles.acts_as(one.number, role))
}

fn applicable(
    seen: &Seen,
    statement: &Statement,
    is_meant: impl Fn(&ShownMember) -> bool,
) -> Vec<Row> {
    let Ok(asked) = Asked::new(&statement.client, seen, None) else { return Vec::new() };
    let mut all = asked.roles.members();
    all.push(ShownMember {
        member: OWNER.to_owned(),
        role: DATABASE_OWNER.to_owned(),
        grantor: None,
        has_admin: false,
    });
    all.retain(|of| is_meant(of) && acts_as(&asked, &of.member));
    let word = |is_so: bool| Value::from(if is_so { "YES" } else { "NO" });
    all.into_iter().map(|of| vec![of.member.into(), of.role.into(), word(of.has_admin)]).collect()
}

/// Whether a role, that of the client if none is named, has the rights of another, may act as it, or may make others
/// members of it.
pub(super) fn function(database: &Database) -> SystemFunction {
    let database = database.clone();
    SystemFunction::fallible_of_client("pg_has_role", BOOL, move |client, given| {
        if given.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let seen = seen_by(client, &database);
        // Of a database that has stopped nothing is told.
        let roles = seen.roles().unwrap_or_default();
        let (member, rest) = match given {
            [_, _] => (One::named(&roles, &client.user).ok(), given),
            [member, rest @ ..] if rest.len() == 2 => (One::given(&roles, member)?, rest),
            _ => {
                let message = "function pg_has_role takes 2 or 3 values".to_owned();
                return Err(QueryError::refused("42883", message));
            }
        };
        let role = One::given(&roles, &rest[0])?;
        let wanted = wanted(&rest[1])?;
        let is_client = given.len() == 2 || given[0].as_str() == Some(&*client.user);
        // Where nobody needs a password, whoever comes in may do everything.
        let is_trusted = is_client && caller_of(client).is_some_and(|it| it.who().is_trusted);
        if is_trusted || member.as_ref().is_some_and(|member| member.is_superuser) {
            return Ok(Value::Boolean(true));
        }
        let same = given.len() == 3 && given[0] == rest[0];
        let both = member.zip(role).map(|(member, role)| (member.number, role.number));
        let has = |wanted: &Wanted| match (both, wanted) {
            (None, Wanted::Admin) => false,
            (None, _) => same,
            (Some((member, role)), Wanted::Usage) => roles.acts_as(member, role),
            (Some((member, role)), Wanted::Member) => roles.is_in(member, role),
            (Some((member, role)), Wanted::Admin) => roles.is_admin(member, role),
        };
        Ok(Value::Boolean(wanted.iter().any(has)))
    })
}

/// A role that is asked about.
struct One {
    number: i64,
    is_superuser: bool,
}

impl One {
    /// None for a number that no role has.
    fn given(roles: &Roles, given: &Value<'_>) -> Result<Option<One>> {
        let Some(oid) = given.as_i64() else {
            return One::named(roles, given.as_str().unwrap_or_default()).map(Some);
        };
        let made = roles.roles.keys().map(String::as_str);
        let mut all = made.chain([OWNER, DATABASE_OWNER]);
        let found = all.find(|name| i64::from(owner_oid(name)) == oid);
        found.map(|name| One::named(roles, name)).transpose()
    }

    fn named(roles: &Roles, name: &str) -> Result<One> {
        let number = roles
            .number_named(name)
            .map_err(|_| QueryError::refused("42704", format!("role \"{name}\" does not exist")))?;
        let is_made_so = roles.roles.get(name).is_some_and(|role| role.is_superuser);
        Ok(One { number, is_superuser: is_made_so || name == OWNER })
    }
}

enum Wanted {
    /// The rights of the role.
    Usage,
    /// To act as it.
    Member,
    /// To make others members of it.
    Admin,
}

/// What a text asks for: one of several is enough.
fn wanted(given: &Value<'_>) -> Result<Vec<Wanted>> {
    let one = |part: &str| match part.trim().to_uppercase().as_str() {
        "USAGE" => Ok(Wanted::Usage),
        "MEMBER" => Ok(Wanted::Member),
        "USAGE WITH GRANT OPTION"
        | "USAGE WITH ADMIN OPTION"
        | "MEMBER WITH GRANT OPTION"
        | "MEMBER WITH ADMIN OPTION" => Ok(Wanted::Admin),
        _ => {
            let message = format!("unrecognized privilege type: \"{}\"", part.trim());
            Err(QueryError::refused("22023", message))
        }
    };
    given.as_str().unwrap_or_default().split(',').map(one).collect()
}
