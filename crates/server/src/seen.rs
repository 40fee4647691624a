//! What a client sees of definitions: what is committed, and inside a transaction that defines something what
//! this one has made of it.
//!
//! Invariant: what a transaction has made is looked at anew whenever the client or, as the number of all
//! definitions tells, somebody else has defined something since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onrush::{CompositeType, DataType, Database, EnumType, Error, Result, Table, Transaction};

use crate::access::{self, Roles, is_reserved};
use crate::comments::{self, Comment, ConstraintComment, Place};
use crate::{own_types, schemas};

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Seen {
    database: Database,
    /// Inside a transaction that defines something.
    own: Option<Arc<Own>>,
}

/// What a transaction sees.
struct Own {
    /// Of all definitions that are committed.
    version: u64,
    /// Those of the server, too.
    tables: BTreeMap<String, Table>,
    /// If it has changed any of that.
    kept: Option<Kept>,
}

/// What is kept beside tables.
struct Kept {
    schemas: BTreeSet<String>,
    comments: Vec<Comment>,
    constraint_comments: Vec<ConstraintComment>,
    roles: Roles,
}

impl Seen {
    /// By everyone.
    pub(crate) fn committed(database: &Database) -> Seen {
        Seen { database: database.clone(), own: None }
    }

    /// By a transaction that defines something. `has_kept` tells that it has written to what is kept beside
    /// tables.
    pub(crate) fn within(
        database: &Database,
        transaction: &mut Transaction<'_>,
        has_kept: bool,
    ) -> Result<Seen> {
        // Before it is looked: what others define meanwhile makes this an old one.
        let version = database.definitions_version();
        let mut tables = BTreeMap::new();
        for definition in transaction.tables() {
            // One that was dropped just now is left out.
            if let Ok(table) = transaction.table(definition.name()) {
                tables.insert(definition.name().to_owned(), table);
            }
        }
        let kept = match has_kept {
            true => Some(Kept {
                schemas: schemas::made_ones(database, transaction)?,
                comments: comments::all(database, transaction)?,
                constraint_comments: comments::of_constraints(database, transaction)?,
                roles: access::roles_of(database, transaction)?,
            }),
            false => None,
        };
        let own = Some(Arc::new(Own { version, tables, kept }));
        Ok(Seen { database: database.clone(), own })
    }

    /// Whether others have defined something since a transaction looked.
    pub(crate) fn is_old(&self) -> bool {
        let is_old = |own: &Arc<Own>| own.version != self.database.definitions_version();
        self.own.as_ref().is_some_and(is_old)
    }

    /// Whether a transaction's own definitions are among it.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The table of this name of the engine's.
    pub(crate) fn table(&self, name: &str) -> Result<Table> {
        match &self.own {
            None => self.database.table(name),
            Some(own) => {
                let unknown = || Error::UnknownTable { name: name.to_owned() };
                own.tables.get(name).cloned().ok_or_else(unknown)
            }
        }
    }

    /// The table, sequence or view of this name of the engine's.
    pub(crate) fn relation(&self, name: &str) -> Result<Table> {
        let found = self.table(name)?;
        match found.definition().is_type() {
            false => Ok(found),
            true => Err(Error::UnknownTable { name: name.to_owned() }),
        }
    }

    /// Whether the table is still there as it is in the handle.
    pub(crate) fn is_current(&self, table: &Table) -> bool {
        match &self.own {
            None => table.is_current(),
            Some(own) => own.tables.get(table.name()) == Some(table),
        }
    }

    /// The engine's names of all tables, sequences and views of users.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: Vec<String> = match &self.own {
            None => self.database.tables().iter().map(|table| table.name().to_owned()).collect(),
            Some(own) => own.tables.keys().cloned().collect(),
        };
        names.into_iter().filter(|name| !is_reserved(name)).collect()
    }

    /// All tables, sequences and views of users, by name.
    pub(crate) fn relations(&self) -> Vec<Table> {
        // One that was dropped just now is left out.
        self.names().iter().filter_map(|name| self.relation(name).ok()).collect()
    }

    /// All tables of users, by name.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let mut tables = self.relations();
        tables.retain(|table| table.definition().is_table());
        tables
    }

    /// All views of users, by name.
    pub(crate) fn views(&self) -> Vec<Table> {
        let mut tables = self.relations();
        tables.retain(|table| table.definition().view().is_some());
        tables
    }

    /// All enumerated types of users, by name.
    pub(crate) fn enum_types(&self) -> Vec<(Table, EnumType)> {
        let of = |table: Table| match own_types::of_table(&table)? {
            DataType::Enum(of) => Some((table, of)),
            _ => None,
        };
        self.own_types().into_iter().filter_map(of).collect()
    }

    /// All composite types of users, by name.
    pub(crate) fn composite_types(&self) -> Vec<(Table, CompositeType)> {
        let of = |table: Table| match own_types::of_table(&table)? {
            DataType::Composite(of) => Some((table, of)),
            _ => None,
        };
        self.own_types().into_iter().filter_map(of).collect()
    }

    /// All enumerated and composite types and domains of users, by name.
    pub(crate) fn own_types(&self) -> Vec<Table> {
        let tables = self.names().into_iter().filter_map(|name| self.table(&name).ok());
        tables.filter(|table| table.definition().is_type()).collect()
    }

    /// All domains of users, by name.
    pub(crate) fn domains(&self) -> Vec<Table> {
        let mut types = self.own_types();
        types.retain(|of| of.definition().domain().is_some());
        types
    }

    /// The table, sequence, view or type that the engine knows by a number.
    pub(crate) fn numbered(&self, number: u32) -> Option<Table> {
        let found = match &self.own {
            None => self.database.table_numbered(number),
            Some(own) => own.tables.values().find(|table| table.id() == number).cloned(),
        };
        found.filter(|table| !is_reserved(table.name()))
    }

    /// All sequences of users, by name.
    pub(crate) fn sequences(&self) -> Vec<Table> {
        let mut tables = self.relations();
        tables.retain(|table| table.definition().sequence().is_some());
        tables
    }

    /// The table whose primary key has a name, with its schema in front.
    pub(crate) fn table_of_key(&self, key: &str) -> Option<Table> {
        let (schema, own) = schemas::parts(key);
        self.tables().into_iter().find(|table| {
            schemas::parts(table.name()).0 == schema
                && schemas::has_key_named(table.definition(), own)
        })
    }

    /// The engine's names of all indexes of users' tables; of primary keys, too.
    pub(crate) fn index_names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for table in self.tables() {
            let definition = table.definition();
            names.extend(definition.indexes().iter().map(|index| index.name.clone()));
            if let Some(key) = schemas::key_name(definition) {
                names.insert(schemas::joined(schemas::parts(table.name()).0, &key));
            }
        }
        names
    }

    fn kept(&self) -> Option<&Kept> {
        self.own.as_ref()?.kept.as_ref()
    }

    /// The schemas that users have made.
    pub(crate) fn made_schemas(&self) -> Result<BTreeSet<String>> {
        match self.kept() {
            Some(kept) => Ok(kept.schemas.clone()),
            None => schemas::made_ones(&self.database, &mut self.database.session()?),
        }
    }

    /// Whether users have made this schema.
    pub(crate) fn has_made_schema(&self, name: &str) -> Result<bool> {
        match self.kept() {
            Some(kept) => Ok(kept.schemas.contains(name)),
            None => schemas::is_made(&self.database, name),
        }
    }

    /// Every comment.
    pub(crate) fn comments(&self) -> Result<Vec<Comment>> {
        match self.kept() {
            Some(kept) => Ok(kept.comments.clone()),
            None => comments::all(&self.database, &mut self.database.session()?),
        }
    }

    /// Every comment of a CHECK constraint or a foreign key.
    pub(crate) fn constraint_comments(&self) -> Result<Vec<ConstraintComment>> {
        match self.kept() {
            Some(kept) => Ok(kept.constraint_comments.clone()),
            None => comments::of_constraints(&self.database, &mut self.database.session()?),
        }
    }

    /// The comment at one place.
    pub(crate) fn comment(&self, place: Place) -> Result<Option<String>> {
        let Some(kept) = self.kept() else { return comments::of(&self.database, place) };
        let found = kept.comments.iter().find(|comment| comment.place == place);
        Ok(found.map(|comment| comment.text.clone()))
    }

    /// Roles and what was granted to them.
    pub(crate) fn roles(&self) -> Result<Roles> {
        match self.kept() {
            Some(kept) => Ok(kept.roles.clone()),
            None => access::roles_of(&self.database, &mut self.database.session()?),
        }
    }
}
