//! CREATE TABLE and DROP TABLE inside a transaction: they come and go with it.
//!
//! A table that a transaction creates is there at once, but nobody else finds it. That it is being created
//! is written down by itself, with the number that the engine knows it by; that it is created is written by
//! the transaction. One that the
//! transaction drops is there until it has committed; that it is dropped is written by the transaction. So
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
    ColumnDefinition, DataType, Database, Error, Result, Row, ScanOptions, Session, Table,
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
    /// In the order in which it came, by name.
    own: Vec<(String, Kind)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Created,
    Dropped,
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

    /// Whether the transaction has created this table.
    pub(crate) fn has_created(&self, table: &str) -> bool {
        self.own.iter().any(|(own, kind)| own == table && *kind == Kind::Created)
    }

    /// Creates a table for the transaction, which has to insert the note.
    pub(crate) fn create(&mut self, definition: &TableDefinition) -> Result<Note> {
        let name = definition.name();
        let notes = made(&self.database, notes_definition()?)?;
        let open = Open { client: self.client, is_created: true, is_dropped: false };
        {
            let mut all = self.all.open.lock();
            if all.contains_key(name) {
                return Err(Error::TableExists { name: name.to_owned() });
            }
            all.insert(name.to_owned(), open);
        }
        let table = match self.database.create_table(definition.clone()) {
            Ok(table) => table,
            Err(error) => {
                self.all.open.lock().remove(name);
                return Err(error);
            }
        };
        let write = |mut session: Session| session.upsert(&notes, &note(&table, CREATING));
        if let Err(error) = durable_session(&self.database).and_then(write) {
            self.database.drop_table(name)?;
            self.all.open.lock().remove(name);
            return Err(error);
        }
        self.own.push((name.to_owned(), Kind::Created));
        Ok((notes, note(&table, CREATED)))
    }

    /// Drops a table that is there for the transaction, which has to insert the note.
    pub(crate) fn drop_table(&mut self, table: &Table) -> Result<Note> {
        let notes = made(&self.database, notes_definition()?)?;
        let new = Open { client: self.client, is_created: false, is_dropped: false };
        self.all.open.lock().entry(table.name().to_owned()).or_insert(new).is_dropped = true;
        self.own.push((table.name().to_owned(), Kind::Dropped));
        Ok((notes, note(table, DROPPED)))
    }

    /// The transaction is as it was when there were so many.
    pub(crate) fn roll_back_to(&mut self, count: usize) {
        while self.own.len() > count {
            let Some((table, kind)) = self.own.pop() else { return };
            match kind {
                Kind::Created => self.settle(&table),
                Kind::Dropped if self.has_created(&table) => {
                    if let Some(open) = self.all.open.lock().get_mut(&table) {
                        open.is_dropped = false;
                    }
                }
                Kind::Dropped => {
                    self.all.open.lock().remove(&table);
                }
            }
        }
    }

    /// The transaction has ended, one way or the other.
    pub(crate) fn end(&mut self) {
        let tables: BTreeSet<String> = self.own.drain(..).map(|(table, _)| table).collect();
        tables.iter().for_each(|table| self.settle(table));
    }

    /// Where this fails, the next start of the server does it; nobody finds the table until then.
    fn settle(&self, table: &str) {
        match settle(&self.database, &self.access, table) {
            Ok(()) => {
                self.all.open.lock().remove(table);
            }
            Err(error) => {
                tracing::error!(table, %error, "CREATE or DROP TABLE is not brought to its end")
            }
        }
    }
}

impl Drop for OwnDefinitions {
    fn drop(&mut self) {
        self.end();
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

/// Makes the table what the ended transactions have written down, and forgets that.
fn settle(database: &Database, access: &Access, name: &str) -> Result<()> {
    let Some(notes) = existing(database, DEFINITIONS)? else { return Ok(()) };
    let mut session = durable_session(database)?;
    let key = || Bound::Included(vec![name.to_owned().into()]);
    let of_table = ScanOptions { from: key(), to: key(), ..ScanOptions::default() };
    let written = session.scan(&notes, &of_table)?.collect::<Result<Vec<Row>>>()?;
    // A table that got the name later is another one.
    if let Ok(table) = database.table(name) {
        let is_written = |step| written.contains(&note(&table, step));
        if is_written(DROPPED) || (is_written(CREATING) && !is_written(CREATED)) {
            drop_table(database, access, name)?;
        }
    }
    let mut transaction = session.begin()?;
    for note in &written {
        transaction.delete(&notes, note)?;
    }
    transaction.commit()
}

/// Drops a table with what was granted on it and said of it.
pub(crate) fn drop_table(database: &Database, access: &Access, table: &str) -> Result<()> {
    database.drop_table(table)?;
    access.forget_table(table)?;
    comments::follow(database, |of, _| of == table, None)
}

fn note(table: &Table, step: &'static str) -> Row {
    vec![table.name().to_owned().into(), i64::from(table.id()).into(), step.into()]
}

fn notes_definition() -> Result<TableDefinition> {
    let columns =
        [("table", DataType::Text), ("number", DataType::Int64), ("step", DataType::Text)];
    let of = |(name, data_type)| ColumnDefinition::new(name, data_type).not_null();
    let notes = TableDefinition::builder(DEFINITIONS);
    let notes = columns.map(of).into_iter().fold(notes, |notes, column| notes.column(column));
    Ok(notes.primary_key(["table", "number", "step"]).build()?)
}
