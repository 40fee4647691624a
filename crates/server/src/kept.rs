//! Tables that the server keeps in the database for itself: roles and grants, comments, schemas. Each is
//! made when it is first needed, and what is written to it is durable when that returns.

use onrush::{Database, Durability, Error, Result, Session, Table, TableDefinition};

/// The table of this name, if it was ever needed.
pub(crate) fn existing(database: &Database, name: &str) -> Result<Option<Table>> {
    match database.table(name) {
        Ok(table) => Ok(Some(table)),
        Err(Error::UnknownTable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The table, made if there is none.
pub(crate) fn made(database: &Database, definition: TableDefinition) -> Result<Table> {
    if let Some(table) = existing(database, definition.name())? {
        return Ok(table);
    }
    let name = definition.name().to_owned();
    match database.create_table(definition) {
        // Another client needed it first at the same time.
        Err(Error::TableExists { .. }) => database.table(&name),
        other => other,
    }
}

/// A session whose commits wait for the disk, whatever the database's default is.
pub(crate) fn durable_session(database: &Database) -> Result<Session> {
    let mut session = database.session()?;
    session.set_durability(Durability::Durable);
    Ok(session)
}
