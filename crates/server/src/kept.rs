//! Tables that the server keeps in the database for itself: roles and grants, comments, schemas, settings. Their
//! rows are written by the transaction whose definitions they belong to, so they are one commit with these.
//!
//! Invariants
//! 1. Rows name tables, columns and roles by number, never by name: a number is never given again.
//! 2. Each table is made when it is first needed, by itself: an empty one says nothing.

use onrush::{
    Database, Durability, Error, Result, Row, Scan, ScanOptions, Session, Table, TableDefinition,
    Transaction,
};

/// Who reads rows: a session what is committed, a transaction its own as well.
pub(crate) trait Reads {
    fn scan_all(&mut self, table: &Table) -> Result<Scan>;
}

impl Reads for Session {
    fn scan_all(&mut self, table: &Table) -> Result<Scan> {
        self.scan(table, &ScanOptions::default())
    }
}

impl Reads for Transaction<'_> {
    fn scan_all(&mut self, table: &Table) -> Result<Scan> {
        self.scan(table, &ScanOptions::default())
    }
}

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

/// All rows of one of these tables.
pub(crate) fn rows(database: &Database, reads: &mut impl Reads, name: &str) -> Result<Vec<Row>> {
    match existing(database, name)? {
        Some(table) => reads.scan_all(&table)?.collect(),
        None => Ok(Vec::new()),
    }
}

/// Removes the rows that belong to what the transaction drops, whoever wrote them last. The transaction keeps
/// others from writing more of them.
pub(crate) fn remove(
    database: &Database,
    transaction: &mut Transaction<'_>,
    name: &str,
    is_meant: impl Fn(&Row) -> bool,
) -> Result<()> {
    let Some(table) = existing(database, name)? else { return Ok(()) };
    let rows = transaction.newest_snapshot().scan(&table, &ScanOptions::default())?;
    for row in rows.collect::<Result<Vec<Row>>>()?.iter().filter(|row| is_meant(row)) {
        let key: Row =
            table.definition().primary_key().iter().map(|column| row[*column].clone()).collect();
        transaction.remove_latest(&table, &key)?;
    }
    Ok(())
}

/// A session whose commits wait for the disk, whatever the database's default is.
pub(crate) fn durable_session(database: &Database) -> Result<Session> {
    let mut session = database.session()?;
    session.set_durability(Durability::Durable);
    Ok(session)
}
