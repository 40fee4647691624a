//! Databases with tables that are attached to a lake, and their drains.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use onrush::{
    ColumnDefinition, DataType, Database, OnlineOptions, Options, Session, Table, TableChange,
    TableDefinition,
};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::{Drain, DrainOptions, Identity, LakeError, LostNode, NodeId};

use super::lake::Lake;

pub const NODE: u32 = 7;
pub const EVENTS: &str = "events";

/// A database, its drain, and the rows that it has.
pub struct Node {
    pub identity: Identity,
    pub database: Database,
    pub table: Table,
    pub drain: Drain,
}

/// A table that can be attached.
pub fn define(database: &Database, name: &str) {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let note = ColumnDefinition::new("note", DataType::Text);
    let events = TableDefinition::builder(name).column(id).column(note).primary_key(["id"]);
    database.create_table(events.build().unwrap()).unwrap();
}

/// Attaches a table to the one of the lake that has its name.
pub fn attach(database: &Database, table: &str) {
    attachment::prepare(database).unwrap();
    let mut session = database.session().unwrap();
    let mut transaction = session.begin().unwrap();
    let name = format!("lake.{table}");
    let table = transaction.alter_table(table, &[TableChange::SetAppendsOnly(true)]).unwrap();
    let lag = Duration::from_secs(3600);
    let attachment = Attachment { table: table.id(), catalogue: "prod".to_owned(), name, lag };
    attachment::put(&mut transaction, &attachment).unwrap();
    transaction.commit().unwrap();
}

/// A database with a table that is attached, and rows, and whose drain has not begun.
pub fn create_alone(folder: &Path, ids: std::ops::Range<i64>) -> Database {
    let database = Database::create(folder, Options::small()).unwrap();
    define(&database, EVENTS);
    attach(&database, EVENTS);
    insert(&database, ids);
    database
}

pub fn insert(database: &Database, ids: std::ops::Range<i64>) {
    let (mut session, table) = (database.session().unwrap(), database.table(EVENTS).unwrap());
    for id in ids {
        session.insert(&table, &[id.into(), "a note".into()]).unwrap();
    }
}

/// A database with a table that is attached.
pub fn create(folder: &Path, lake: &Lake) -> Node {
    open(create_alone(folder, 0..0), lake)
}

pub fn open(database: Database, lake: &Lake) -> Node {
    open_as(first(&database), database, lake)
}

/// Of a database that was not restored.
pub fn first(database: &Database) -> Identity {
    Identity { node: NodeId(NODE), history: database.id(), lost: Vec::new() }
}

pub fn open_as(identity: Identity, database: Database, lake: &Lake) -> Node {
    let catalogues = BTreeMap::from([("prod".to_owned(), lake.catalogue())]);
    let options = DrainOptions::new(identity.clone(), catalogues);
    let options = DrainOptions { patience: lake.patience(), ..options };
    let drain = Drain::start(&database, options).unwrap();
    Node { identity, table: database.table(EVENTS).unwrap(), database, drain }
}

impl Node {
    pub fn session(&self) -> Session {
        self.database.session().unwrap()
    }

    pub fn insert(&self, ids: std::ops::Range<i64>) {
        self.insert_into(&self.table, ids);
    }

    pub fn insert_into(&self, table: &Table, ids: std::ops::Range<i64>) {
        let mut session = self.session();
        for id in ids {
            session.insert(table, &[id.into(), "a note".into()]).unwrap();
        }
    }

    pub async fn flush(&self) -> Result<(), LakeError> {
        self.drain.flush(self.table.id()).await
    }

    /// As after a crash, but for what only a power cut takes.
    pub fn reopen(self, folder: &Path, lake: &Lake) -> Node {
        let Node { identity, database, table, drain } = self;
        drop((table, drain));
        database.close().unwrap();
        open_as(identity, Database::open(folder, Options::small()).unwrap(), lake)
    }

    pub fn back_up(&self, to: &Path) -> Backup {
        Backup::of(&self.database, self.identity.clone(), to)
    }
}

/// A backup, and the node that it was made of.
#[derive(Debug, Clone)]
pub struct Backup {
    of: Identity,
}

impl Backup {
    pub fn of(database: &Database, of: Identity, to: &Path) -> Backup {
        database.backup(to, &OnlineOptions::default(), &Default::default()).unwrap();
        Backup { of }
    }

    /// Starts as another node what was restored of it.
    pub fn restore(&self, folder: &Path, node: u32, lake: &Lake) -> Node {
        let database = Database::open(folder, Options::small()).unwrap();
        open_as(self.identity(&database, node), database, lake)
    }

    pub fn identity(&self, database: &Database, node: u32) -> Identity {
        let Identity { node: before, history, lost } = self.of.clone();
        let restored_to = database.durable_lsn().0;
        let lost = [lost, vec![LostNode { node: before, history, restored_to }]].concat();
        Identity { node: NodeId(node), history: history + u128::from(node), lost }
    }
}
