//! `has_table_privilege` and the like: what a role may do, of the one who asks or of another.
//!
//! NULL among the arguments makes NULL, and so does a number that nothing has.

use onrush::{DataType, Database, Table, Value};
use onrush_query::{Client, QueryError, Result, SystemFunction};

use super::functions::number;
use super::kinds::BOOL;
use super::names::Naming;
use super::{PG_CATALOG, all, empty, names};
use crate::access::{Right, Role, Roles};
use crate::execute::{caller_of, seen_by};
use crate::seen::Seen;
use crate::sql::Lookup;
use crate::{own_types, schemas};

/// What can be granted on tables in PostgreSQL; of those that are no [`Right`] here only a superuser has any.
const OF_TABLES: [&str; 8] =
    ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE"];
const OF_COLUMNS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];
const OF_SCHEMAS: [&str; 2] = ["USAGE", "CREATE"];
const OF_SEQUENCES: [&str; 3] = ["USAGE", "SELECT", "UPDATE"];
const OF_TYPES: [&str; 1] = ["USAGE"];
const OF_DATABASES: [&str; 4] = ["CONNECT", "CREATE", "TEMPORARY", "TEMP"];

/// What is asked of: its name and the values behind that of a role.
type Ask = fn(&Asked<'_>, &[Value<'_>]) -> Result<Option<bool>>;

pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    // With the number of arguments behind the role.
    let functions: [(&'static str, usize, Ask); 7] = [
        ("has_table_privilege", 2, on_table),
        ("has_any_column_privilege", 2, on_any_column),
        ("has_column_privilege", 3, on_column),
        ("has_schema_privilege", 2, on_schema),
        ("has_database_privilege", 2, on_database),
        ("has_sequence_privilege", 2, on_sequence),
        ("has_type_privilege", 2, on_type),
    ];
    let function = |(name, count, ask): (&'static str, usize, Ask)| {
        let database = database.clone();
        SystemFunction::fallible_of_client(name, BOOL, move |client, given| {
            if given.iter().any(Value::is_null) {
                return Ok(Value::Null);
            }
            let (role, rest) = match given.len().checked_sub(count) {
                Some(0) => (None, given),
                Some(1) => (given.first(), &given[1..]),
                _ => {
                    let message = format!("function {name} takes {count} or {} values", count + 1);
                    return Err(QueryError::refused("42883", message));
                }
            };
            let seen = seen_by(client, &database);
            let asked = Asked::new(client, &seen, role)?;
            Ok(ask(&asked, rest)?.map_or(Value::Null, Value::Boolean))
        })
    };
    functions.into_iter().map(function).collect()
}

/// Of whom it is asked.
pub(super) struct Asked<'a> {
    client: &'a Client,
    seen: &'a Seen,
    pub(super) roles: Roles,
    pub(super) role: Option<Role>,
    pub(super) is_superuser: bool,
    /// Where the temporary tables are of whom is asked about, if that is the client.
    temporary_schema: Option<String>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        client: &'a Client,
        seen: &'a Seen,
        role: Option<&Value<'_>>,
    ) -> Result<Asked<'a>> {
        // Of a database that has stopped nothing is told.
        let roles = seen.roles().unwrap_or_default();
        let name = match role {
            None => Some((*client.user).to_owned()),
            Some(Value::Text(name)) => Some(name.clone().into_owned()),
            Some(other) => {
                let oid = other.as_i64();
                let has_it = |name: &&String| oid == Some(names::role_oid(name).into());
                match oid == Some(names::OWNER_OID.into()) {
                    true => Some(names::OWNER.to_owned()),
                    false => roles.roles.keys().find(has_it).cloned(),
                }
            }
        };
        let role = name.as_ref().and_then(|name| roles.roles.get(name)).cloned();
        let is_client = name.as_deref() == Some(&*client.user);
        // Where nobody needs a password, whoever comes in may do everything.
        let is_trusted = is_client && caller_of(client).is_some_and(|it| it.who().is_trusted);
        let is_owner = name.as_deref() == Some(names::OWNER);
        let is_superuser =
            is_trusted || is_owner || role.as_ref().is_some_and(|role| role.is_superuser);
        let is_known = is_superuser || is_client || role.is_some();
        match name {
            Some(name) if !is_known && name != "public" => {
                Err(QueryError::refused("42704", format!("role \"{name}\" does not exist")))
            }
            _ => {
                let schemas = if is_client { client.schemas() } else { Vec::new() };
                let temporary_schema =
                    schemas.into_iter().find(|schema| schemas::is_temporary(schema));
                Ok(Asked { client, seen, roles, role, is_superuser, temporary_schema })
            }
        }
    }

    fn has(&self, wanted: &[Wanted], table: &Table) -> bool {
        let schema = schemas::parts(table.name()).0;
        self.is_superuser
            || self.temporary_schema.as_deref() == Some(schema)
            // Whose it is may grant it.
            || (wanted.iter().any(|wanted| wanted.to_grant)
                && self.roles.owns_table(self.role.as_ref(), table))
            || rights(wanted).any(|right| self.roles.may(self.role.as_ref(), right, table))
    }

    fn relation(&self, given: &Value<'_>) -> Result<Option<Relation>> {
        let Value::Text(name) = given else {
            let Some(oid) = given.as_i64() else { return Ok(None) };
            let of_system = || names::catalogue_name(oid).map(|_| Relation::OfSystem);
            let of_users = names::table_with(self.seen, oid).map(Relation::OfUsers);
            return Ok(of_users.or_else(of_system));
        };
        let lookup = Lookup { seen: self.seen, path: &self.client.schemas() };
        if let Some(table) = lookup.written(name).and_then(|name| self.seen.table(&name).ok()) {
            return Ok(Some(Relation::OfUsers(table)));
        }
        let (schema, own) = name.split_once('.').unwrap_or((PG_CATALOG, name));
        let is_it = |known: &super::SystemTable| known.schema == schema && known.name == own;
        if all().chain(empty::ALL).any(is_it) {
            return Ok(Some(Relation::OfSystem));
        }
        if schema == PG_CATALOG && own == "pg_authid" {
            return Ok(Some(Relation::Secret));
        }
        Err(QueryError::refused("42P01", format!("relation \"{name}\" does not exist")))
    }
}

/// What rights are on.
enum Relation {
    OfUsers(Table),
    /// Everyone may read it.
    OfSystem,
    /// Where PostgreSQL keeps passwords: superusers read it.
    Secret,
}

/// One of several rights that are asked for.
struct Wanted {
    name: String,
    /// With the right to grant it, which superusers alone have.
    to_grant: bool,
}

/// Those that are asked for without the right to grant them.
fn rights(wanted: &[Wanted]) -> impl Iterator<Item = Right> {
    let plain = wanted.iter().filter(|wanted| !wanted.to_grant);
    plain.filter_map(|wanted| Right::ALL.into_iter().find(|right| right.name() == wanted.name))
}

/// The rights that a text names: one of them is enough.
fn wanted(given: Option<&Value<'_>>, known: &[&str]) -> Result<Vec<Wanted>> {
    let Some(Value::Text(written)) = given else { return Ok(Vec::new()) };
    let one = |part: &str| {
        let upper = part.trim().to_uppercase();
        let plain = upper.strip_suffix(" WITH GRANT OPTION");
        let name = plain.unwrap_or(&upper).trim().to_owned();
        if !known.contains(&name.as_str()) {
            let message = format!("unrecognized privilege type: \"{}\"", part.trim());
            return Err(QueryError::refused("22023", message));
        }
        Ok(Wanted { name, to_grant: plain.is_some() })
    };
    written.split(',').map(one).collect()
}

fn reads(wanted: &[Wanted]) -> bool {
    wanted.iter().any(|wanted| wanted.name == Right::Select.name() && !wanted.to_grant)
}

fn on_table(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    on_relation(asked, given, &OF_TABLES)
}

/// Of an identity the rights are those on its table.
fn on_sequence(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    let identity = match &given[0] {
        Value::Text(name) => {
            let lookup = Lookup { seen: asked.seen, path: &asked.client.schemas() };
            lookup.written_identity(name)
        }
        _ => number(given, 0).and_then(|oid| names::identity_with(asked.seen, oid)),
    };
    if let Some(identity) = identity {
        let mut wanted = wanted(given.last(), &OF_SEQUENCES)?;
        for wanted in wanted.iter_mut().filter(|wanted| wanted.name == Right::Usage.name()) {
            wanted.name = Right::Insert.name().to_owned();
        }
        return Ok(Some(asked.has(&wanted, &identity.table)));
    }
    let Some(relation) = asked.relation(&given[0])? else { return Ok(None) };
    let wanted = wanted(given.last(), &OF_SEQUENCES)?;
    match relation {
        Relation::OfUsers(table) if table.definition().sequence().is_some() => {
            Ok(Some(asked.has(&wanted, &table)))
        }
        relation => {
            let name = match (&given[0], &relation) {
                (_, Relation::OfUsers(table)) => schemas::own_name(table.name()).to_owned(),
                (Value::Text(name), _) => name.clone().into_owned(),
                _ => return Ok(None),
            };
            Err(QueryError::refused("42809", format!("\"{name}\" is not a sequence")))
        }
    }
}

fn on_any_column(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    on_relation(asked, given, &OF_COLUMNS)
}

fn on_relation(asked: &Asked<'_>, given: &[Value<'_>], known: &[&str]) -> Result<Option<bool>> {
    let Some(relation) = asked.relation(&given[0])? else { return Ok(None) };
    let wanted = wanted(given.last(), known)?;
    Ok(Some(match relation {
        Relation::OfUsers(table) => asked.has(&wanted, &table),
        Relation::OfSystem => asked.is_superuser || reads(&wanted),
        Relation::Secret => asked.is_superuser,
    }))
}

/// Rights are those of all columns of a table.
fn on_column(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    let Some(relation) = asked.relation(&given[0])? else { return Ok(None) };
    let wanted = wanted(given.last(), &OF_COLUMNS)?;
    let table = match relation {
        Relation::OfUsers(table) => table,
        Relation::OfSystem => return Ok(Some(asked.is_superuser || reads(&wanted))),
        Relation::Secret => return Ok(Some(asked.is_superuser)),
    };
    let columns = table.definition().columns();
    match &given[1] {
        Value::Text(name) if !columns.iter().any(|column| column.name == **name) => {
            let relation = crate::schemas::own_name(table.name());
            let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
            Err(QueryError::refused("42703", message))
        }
        Value::Text(_) => Ok(Some(asked.has(&wanted, &table))),
        _ => {
            let column = number(given, 1)
                .and_then(|number| names::column_with_number(table.definition(), number));
            Ok(column.map(|_| asked.has(&wanted, &table)))
        }
    }
}

fn on_schema(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    let name = match &given[0] {
        Value::Text(name) => {
            let is_it = |(_, known): &(u32, String)| *known == **name;
            if !names::all_schemas(asked.seen).iter().any(is_it) {
                return Err(QueryError::refused(
                    "3F000",
                    format!("schema \"{name}\" does not exist"),
                ));
            }
            name.clone().into_owned()
        }
        _ => match number(given, 0).and_then(|oid| names::schema_name(asked.seen, oid)) {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let wanted = wanted(given.last(), &OF_SCHEMAS)?;
    let role = asked.role.as_ref();
    let is_of_system = name != schemas::PUBLIC && names::is_built_in(&name);
    let has = |right| match is_of_system {
        true => right == Right::Usage,
        false => asked.roles.may_in_schema(role, right, &name),
    };
    let grants =
        wanted.iter().any(|wanted| wanted.to_grant) && asked.roles.owns_schema(role, &name);
    Ok(Some(asked.is_superuser || grants || rights(&wanted).any(has)))
}

/// Everyone may use the types that are always there. Of arrays the rights are those on their elements.
fn on_type(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    let own = match &given[0] {
        Value::Text(name) => {
            let lookup = Lookup { seen: asked.seen, path: &asked.client.schemas() };
            let element = name.strip_suffix("[]").or_else(|| name.strip_prefix('_'));
            let own = lookup.written_own_type(name);
            let own = own.or_else(|| lookup.written_own_type(element?));
            if own.is_none() && name.parse::<DataType>().is_err() {
                let message = format!("type \"{name}\" does not exist");
                return Err(QueryError::refused("42704", message));
            }
            own
        }
        _ => {
            let Some(oid) = number(given, 0) else { return Ok(None) };
            if names::type_with(&Naming::of(asked.seen, asked.client), oid, -1).is_none() {
                return Ok(None);
            }
            let of_enum =
                u32::try_from(oid).ok().and_then(|oid| names::own_type_with(asked.seen, oid));
            let of_enum = of_enum.and_then(own_types::number_of_values);
            let number = of_enum.or_else(|| names::number_of(oid));
            number.and_then(|number| asked.seen.numbered(number))
        }
    };
    let wanted = wanted(given.last(), &OF_TYPES)?;
    let uses = wanted.iter().any(|wanted| !wanted.to_grant);
    let of_users = own.filter(|of| of.definition().is_type());
    Ok(Some(asked.is_superuser || of_users.map_or(uses, |of| asked.has(&wanted, &of))))
}

fn on_database(asked: &Asked<'_>, given: &[Value<'_>]) -> Result<Option<bool>> {
    match &given[0] {
        Value::Text(name) if **name != *asked.client.database => {
            return Err(QueryError::refused(
                "3D000",
                format!("database \"{name}\" does not exist"),
            ));
        }
        Value::Text(_) => {}
        _ if number(given, 0) != Some(names::DATABASE_OID.into()) => return Ok(None),
        _ => {}
    }
    let wanted = wanted(given.last(), &OF_DATABASES)?;
    let comes_in = wanted.iter().any(|wanted| wanted.name == "CONNECT" && !wanted.to_grant);
    Ok(Some(asked.is_superuser || comes_in))
}
