//! Rights that things have from the moment that they are made, as ALTER DEFAULT PRIVILEGES says it of a role's.
//!
//! Invariants
//! 1. What is said of all schemas stands in place of what there is by itself; what is said of one schema is added.
//! 2. A role has a row only where that says something else than no row does.

use std::collections::{BTreeMap, BTreeSet};

use onrush::{ColumnDefinition, DataType, Database, Result, Row, TableDefinition, Transaction};

use super::roles::{EVERYONE, SERVER_OWNER};
use super::{Kind, Object, Right, Roles, store};
use crate::kept::{self, Reads};
use crate::schemas;

const DEFAULTS: &str = "onrush.default_rights";

/// Where a schema's place stands, all of them: no schema has it.
const EVERYWHERE: i64 = 0;

/// Who makes what, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    owner: i64,
    schema: i64,
    kind: Kind,
}

/// The rights of roles by their numbers.
pub(super) type Defaults = BTreeMap<Scope, BTreeMap<i64, BTreeSet<Right>>>;

impl Scope {
    /// With none of all schemas, or else of that at a place.
    pub(super) fn new(owner: i64, schema: Option<i64>, kind: Kind) -> Scope {
        Scope { owner, schema: schema.unwrap_or(EVERYWHERE), kind }
    }

    /// The rights that a role has without a row.
    pub(super) fn at_first(&self, role: i64) -> BTreeSet<Right> {
        let rights = match role {
            _ if self.schema != EVERYWHERE => &[],
            _ if role == self.owner => self.kind.rights(),
            EVERYONE => self.kind.rights_of_everyone(),
            _ => &[],
        };
        rights.iter().copied().collect()
    }

    /// Whether it is about what a role makes, or about what it is granted.
    pub(super) fn is_of(&self, role: i64, granted: &BTreeMap<i64, BTreeSet<Right>>) -> bool {
        self.owner == role || granted.contains_key(&role)
    }
}

fn definition() -> Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let defaults = TableDefinition::builder(DEFAULTS)
        .column(number("owner"))
        .column(number("schema"))
        .column(text("kind"))
        .column(number("role"))
        .column(text("rights"));
    Ok(defaults.primary_key(["owner", "schema", "kind", "role"]).build()?)
}

pub(super) fn load(database: &Database, reads: &mut impl Reads) -> Result<Defaults> {
    let mut all = Defaults::new();
    for row in kept::rows(database, reads, DEFAULTS)? {
        if let Some((scope, role, rights)) = read(&row) {
            all.entry(scope).or_default().insert(role, rights);
        }
    }
    Ok(all)
}

fn read(row: &Row) -> Option<(Scope, i64, BTreeSet<Right>)> {
    let letter = row[2].as_str()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.letter() == letter)?;
    let scope = Scope { owner: row[0].as_i64()?, schema: row[1].as_i64()?, kind };
    Some((scope, row[3].as_i64()?, store::rights_of(row[4].as_str()?)))
}

/// Puts the rights of a role in place of those that it had; none is no row.
pub(super) fn put(
    database: &Database,
    transaction: &mut Transaction<'_>,
    (scope, role): (Scope, i64),
    rights: Option<&BTreeSet<Right>>,
) -> Result<()> {
    let Scope { owner, schema, kind } = scope;
    let key = [owner.into(), schema.into(), kind.letter().into(), role.into()];
    let row = rights.map(|rights| {
        let [owner, schema, kind, role] = key.clone();
        [owner, schema, kind, role, store::written(rights)]
    });
    let row = row.as_ref().map(<[_; 5]>::as_slice);
    store::put_or_remove(database, transaction, definition()?, &key, row)
}

/// The transaction drops a role, or all that is its own: nothing is granted to it, nor on what it is going to make.
pub(super) fn forget_role(
    database: &Database,
    transaction: &mut Transaction<'_>,
    number: i64,
) -> Result<()> {
    kept::remove(database, transaction, DEFAULTS, |row| {
        read(row).is_some_and(|(scope, role, _)| scope.owner == number || role == number)
    })
}

/// The transaction drops a schema.
pub(super) fn forget_schema(
    database: &Database,
    transaction: &mut Transaction<'_>,
    place: i64,
) -> Result<()> {
    kept::remove(database, transaction, DEFAULTS, |row| {
        read(row).is_some_and(|(scope, ..)| scope.schema == place)
    })
}

/// The transaction has made things, each in a schema of this name if it is in one, which belong to a role, or with
/// none to the owner of the server: they are granted what was said beforehand.
pub(crate) fn grant_defaults<'o>(
    database: &Database,
    transaction: &mut Transaction<'_>,
    owner: Option<i64>,
    things: impl IntoIterator<Item = (Object, Option<&'o str>)>,
) -> Result<()> {
    let owner = owner.unwrap_or(SERVER_OWNER);
    let roles = store::load(database, transaction)?;
    for (thing, schema) in things {
        let everywhere = Scope::new(owner, None, thing.kind);
        let said = roles.defaults.get(&everywhere);
        let place = schema.and_then(|schema| roles.place_of(schema));
        let added = place.map(|place| Scope::new(owner, Some(place), thing.kind));
        let added = added.and_then(|scope| roles.defaults.get(&scope));
        let named: BTreeSet<i64> =
            said.into_iter().chain(added).flat_map(BTreeMap::keys).copied().collect();
        for role in named {
            let at_first = everywhere.at_first(role);
            let mut rights = said.and_then(|said| said.get(&role)).unwrap_or(&at_first).clone();
            rights.extend(added.and_then(|added| added.get(&role)).into_iter().flatten());
            if rights != at_first {
                store::put_own(database, transaction, (role, thing.place), Some(&rights))?;
            }
        }
    }
    Ok(())
}

/// What `pg_default_acl` shows of one kind of things of one role.
pub(crate) struct DefaultGrants {
    /// None: the owner of the server.
    pub(crate) owner: Option<String>,
    /// None: all.
    pub(crate) schema: Option<String>,
    pub(crate) kind: Kind,
    /// Those of everyone, whose name is empty, of the owner, and of others. None for the owner of the server.
    pub(crate) granted: Vec<(Option<String>, Vec<Right>)>,
}

impl Roles {
    /// Whether things are granted something when a role, or with none the owner of the server, makes them.
    pub(crate) fn has_defaults(&self, owner: Option<i64>) -> bool {
        let owner = owner.unwrap_or(SERVER_OWNER);
        self.defaults.keys().any(|scope| scope.owner == owner)
    }

    /// All that was said of things that are going to be made.
    pub(crate) fn default_grants(&self) -> Vec<DefaultGrants> {
        let shown = |(scope, granted): (&Scope, &BTreeMap<i64, BTreeSet<Right>>)| {
            let first = [EVERYONE, scope.owner];
            let others = granted.keys().copied().filter(|role| !first.contains(role));
            let named = |role: i64| {
                let name = self.name_of(role).map(str::to_owned);
                let name = if role == EVERYONE { Some(String::new()) } else { name };
                let rights = granted.get(&role).cloned().unwrap_or_else(|| scope.at_first(role));
                (name, rights.into_iter().collect())
            };
            let schema_at = |place: i64| {
                let mut names = self.schemas.keys().map(String::as_str).chain([schemas::PUBLIC]);
                names.find(|name| self.place_of(name) == Some(place)).map(str::to_owned)
            };
            DefaultGrants {
                owner: self.name_of(scope.owner).map(str::to_owned),
                schema: schema_at(scope.schema),
                kind: scope.kind,
                granted: first.into_iter().chain(others).map(named).collect(),
            }
        };
        self.defaults.iter().map(shown).collect()
    }
}
