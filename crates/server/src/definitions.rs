//! CREATE TABLE and DROP TABLE inside a transaction: they come and go with it.
//!
//! A table that a transaction creates is there at once, but nobody else finds it. That it is being created
//! is written down by itself, with the number that the engine knows it by; that it is created is written by
//! the transaction. One that the
//! transaction drops is there until it has committed; that it is dropped is written by the transaction. If
//! the transaction creates another one of that name, the first stands under a name of the server's. So
//! what is written down tells how the transaction has ended, also after a crash: see [`settle`].
//!
//! Invariants
//! 1. A table that is being created, and not created, holds no row that was ever committed: its name is
//!    not found by others, and is not free for them.
//! 2. What is written down of a table is forgotten all at once, when the table is as it says.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use onrush::{
    ColumnDefinition, DataType, Database, Error, Result, Row, ScanOptions, Table, TableChange,
    TableDefinition,
};
use parking_lot::Mutex;

use crate::access::Access;
use crate::comments;
use crate::error::{SqlError, state};
use crate::kept::{durable_session, existing, made};

const DEFINITIONS: &str = "onrush.definitions";

/// What is written down of a table.
const CREATING: &str = "creating";
const CREATED: &str = "created";
const DROPPED: &str = "dropped";
const MOVED: &str = "moved";

/// The tables that open transactions have created or dropped, by name.
#[derive(Default)]
pub(crate) struct Definitions {
    open: Mutex<BTreeMap<String, Open>>,
}

struct Open {
    client: i32,
    is_created: bool,
    is_dropped: bool,
}

impl Definitions {
    /// Whether a client finds the table, if there is one.
    pub(crate) fn is_seen(&self, client: i32, table: &str) -> bool {
        match self.open.lock().get(table) {
            None => true,
            Some(open) if open.client == client => !open.is_dropped,
            Some(open) => !open.is_created,
        }
    }

    /// Refuses the name of a table that another client's open transaction creates or drops.
    pub(crate) fn check_free(&self, client: i32, table: &str) -> std::result::Result<(), SqlError> {
        match self.open.lock().get(table) {
            Some(open) if open.client != client => {
                let what = if open.is_created { "creates" } else { "drops" };
                let message = format!("an open transaction {what} table {table}");
                Err(SqlError::new(state::OBJECT_IN_USE, message)
                    .with_hint("Try again when it has ended."))
            }
            _ => Ok(()),
        }
    }
}

/// What the open transaction of one client has created and dropped. When it is dropped, the transaction
/// has ended.
pub(crate) struct OwnDefinitions {
    database: Database,
    access: Arc<Access>,
    all: Arc<Definitions>,
    client: i32,
    /// In the order in which it came.
    own: Vec<Own>,
}

struct Own {
    table: String,
    /// Of the table that was created; none if one was dropped.
    created: Option<u32>,
}

/// What is to be inserted by the transaction.
pub(crate) type Note = (Table, Row);

impl OwnDefinitions {
    pub(crate) fn new(
        database: &Database,
        access: &Arc<Access>,
        all: &Arc<Definitions>,
        client: i32,
    ) -> OwnDefinitions {
        let (database, access, all) = (database.clone(), Arc::clone(access), Arc::clone(all));
        OwnDefinitions { database, access, all, client, own: Vec::new() }
    }

    /// How many there are: what a savepoint goes back to.
    pub(crate) fn count(&self) -> usize {
        self.own.len()
    }

    /// Whether the table is one that the transaction has created.
    pub(crate) fn has_created(&self, table: &str) -> bool {
        self.last(table).is_some_and(|last| last.created.is_some())
    }

    /// Whether it has created the table, and dropped it again.
    pub(crate) fn has_been_through(&self, table: &str) -> bool {
        let is_created = |own: &Own| own.table == table && own.created.is_some();
        self.own.iter().any(is_created) && !self.has_created(table)
    }

    fn last(&self, table: &str) -> Option<&Own> {
        self.own.iter().rev().find(|own| own.table == table)
    }

    /// Creates a table for the transaction, which has to insert the note.
    pub(crate) fn create(&mut self, definition: &TableDefinition) -> Result<Note> {
        let name = definition.name();
        let exists = || Error::TableExists { name: name.to_owned() };
        let notes = made(&self.database, notes_definition()?)?;
        match self.last(name) {
            Some(Own { created: Some(_), .. }) => return Err(exists()),
            Some(Own { created: None, .. }) => self.move_away(&notes, name)?,
            None => {
                let open = Open { client: self.client, is_created: true, is_dropped: false };
                let mut all = self.all.open.lock();
                if all.contains_key(name) {
                    return Err(exists());
                }
                all.insert(name.to_owned(), open);
            }
        }
        let create = || {
            let table = self.database.create_table(definition.clone())?;
            let written = durable_session(&self.database)
                .and_then(|mut session| session.upsert(&notes, &note(&table, CREATING)));
            match written {
                Ok(()) => Ok(table),
                Err(error) => self.database.drop_table(name).and(Err(error)),
            }
        };
        let created = create();
        if let Ok(table) = &created {
            self.own.push(Own { table: name.to_owned(), created: Some(table.id()) });
        }
        self.publish(name);
        Ok((notes, note(&created?, CREATED)))
    }

    /// A table that the transaction has dropped, and that another one is to take the place of.
    fn move_away(&self, notes: &Table, name: &str) -> Result<()> {
        let table = self.database.table(name)?;
        durable_session(&self.database)?.upsert(notes, &note(&table, MOVED))?;
        rename(&self.database, &self.access, name, &moved(name))
    }

    /// Drops a table that is there for the transaction, which has to insert the note.
    pub(crate) fn drop_table(&mut self, table: &Table) -> Result<Note> {
        let notes = made(&self.database, notes_definition()?)?;
        self.own.push(Own { table: table.name().to_owned(), created: None });
        self.publish(table.name());
        Ok((notes, note(table, DROPPED)))
    }

    /// The transaction, which is still open, is as it was when there were so many.
    pub(crate) fn roll_back_to(&mut self, count: usize) {
        while self.own.len() > count {
            let Some(Own { table, created }) = self.own.pop() else { return };
            if let Some(id) = created {
                report(&table, self.undo_create(&table, id));
            }
            self.publish(&table);
        }
    }

    fn undo_create(&self, name: &str, id: u32) -> Result<()> {
        if self.database.table(name)?.id() == id {
            drop_table(&self.database, &self.access, name)?;
        }
        if self.database.table(&moved(name)).is_ok() {
            rename(&self.database, &self.access, &moved(name), name)?;
        }
        let notes = made(&self.database, notes_definition()?)?;
        durable_session(&self.database)?.delete(&notes, &note_of(name, id, CREATING)).map(drop)
    }

    /// The transaction has ended, one way or the other. What fails here the next start of the server does;
    /// the names are not free until then.
    pub(crate) fn end(&mut self) {
        let tables: BTreeSet<String> = self.own.drain(..).map(|own| own.table).collect();
        for table in tables {
            let settled = settle(&self.database, &self.access, &table);
            if settled.is_ok() {
                self.publish(&table);
            }
            report(&table, settled);
        }
    }

    /// Tells all clients how it stands with a table.
    fn publish(&self, table: &str) {
        let mut all = self.all.open.lock();
        let is_created = self.own.iter().any(|own| own.table == table && own.created.is_some());
        match self.last(table) {
            Some(last) => {
                let is_dropped = last.created.is_none();
                let open = Open { client: self.client, is_created, is_dropped };
                all.insert(table.to_owned(), open);
            }
            None => {
                all.remove(table);
            }
        }
    }
}

impl Drop for OwnDefinitions {
    fn drop(&mut self) {
        self.end();
    }
}

fn report(table: &str, done: Result<()>) {
    if let Err(error) = done {
        tracing::error!(table, %error, "CREATE or DROP TABLE is not brought to its end");
    }
}

/// Ends what a crash left in the middle.
pub(crate) fn finish(database: &Database, access: &Access) -> Result<()> {
    let Some(notes) = existing(database, DEFINITIONS)? else { return Ok(()) };
    let mut tables = BTreeSet::new();
    for row in database.session()?.scan(&notes, &ScanOptions::default())? {
        tables.extend(row?[0].as_str().map(str::to_owned));
    }
    tables.iter().try_for_each(|table| settle(database, access, table))
}

/// Makes the tables of a name what ended transactions have written down, and forgets that.
fn settle(database: &Database, access: &Access, name: &str) -> Result<()> {
    let Some(notes) = existing(database, DEFINITIONS)? else { return Ok(()) };
    // What follows of the transaction must not be durable before it is. And a session that did not commit
    // it may look at what was committed before: when the log is durable up to here, every session sees it.
    database.barrier()?;
    let mut session = durable_session(database)?;
    let key = || Bound::Included(vec![name.to_owned().into()]);
    let of_table = ScanOptions { from: key(), to: key(), ..ScanOptions::default() };
    let written = session.scan(&notes, &of_table)?.collect::<Result<Vec<Row>>>()?;
    let is_written = |id, step| written.contains(&note_of(name, id, step));
    let is_gone =
        |id| is_written(id, DROPPED) || (is_written(id, CREATING) && !is_written(id, CREATED));
    let moved = moved(name);
    // A table that got the name later has another number, of which nothing is written.
    for place in [name, &moved] {
        if let Ok(table) = database.table(place)
            && is_gone(table.id())
        {
            drop_table(database, access, place)?;
        }
    }
    if database.table(&moved).is_ok() {
        rename(database, access, &moved, name)?;
    }
    let mut transaction = session.begin()?;
    for note in &written {
        transaction.delete(&notes, note)?;
    }
    transaction.commit()
}

/// What a dropped table is called when another one has its name.
fn moved(name: &str) -> String {
    format!("onrush.dropped {name}")
}

/// Gives a table another name, with what was granted on it and said of it.
pub(crate) fn rename(database: &Database, access: &Access, from: &str, to: &str) -> Result<()> {
    database.alter_table(from, &[TableChange::Rename { to: to.to_owned() }])?;
    renamed(database, access, from, to)
}

/// A table has another name: what was granted on it and said of it goes with it.
pub(crate) fn renamed(database: &Database, access: &Access, from: &str, to: &str) -> Result<()> {
    access.rename_table(from, to)?;
    let to = |column: &str| (to.to_owned(), column.to_owned());
    comments::follow(database, |of, _| of == from, Some(&to))
}

/// Drops a table with what was granted on it and said of it.
pub(crate) fn drop_table(database: &Database, access: &Access, table: &str) -> Result<()> {
    database.drop_table(table)?;
    access.forget_table(table)?;
    comments::follow(database, |of, _| of == table, None)
}

fn note(table: &Table, step: &'static str) -> Row {
    note_of(table.name(), table.id(), step)
}

fn note_of(name: &str, id: u32, step: &'static str) -> Row {
    vec![name.to_owned().into(), i64::from(id).into(), step.into()]
}

fn notes_definition() -> Result<TableDefinition> {
    let columns =
        [("table", DataType::Text), ("number", DataType::Int64), ("step", DataType::Text)];
    let of = |(name, data_type)| ColumnDefinition::new(name, data_type).not_null();
    let notes = TableDefinition::builder(DEFINITIONS);
    let notes = columns.map(of).into_iter().fold(notes, |notes, column| notes.column(column));
    Ok(notes.primary_key(["table", "number", "step"]).build()?)
}
