//! Which tables are attached to which Iceberg tables. Kept in a table of the database, by the numbers of tables, which
//! are never given again; a backup has it, too.

use std::time::Duration;

use onrush::{
    ColumnDefinition, DataType, Database, Error, Result, Row, ScanOptions, Table, TableDefinition,
    Transaction,
};

const ATTACHMENTS: &str = "onrush.lake_tables";

/// A table of the database and where its rows go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The number of the table.
    pub table: u32,
    /// The catalogue's name in the configuration.
    pub catalogue: String,
    /// The Iceberg table, `namespace.table`.
    pub name: String,
    /// How long rows may wait for a round.
    pub lag: Duration,
}

impl Attachment {
    /// The Iceberg table with its catalogue in front.
    #[must_use]
    pub fn lake_table(&self) -> String {
        format!("{}.{}", self.catalogue, self.name)
    }
}

fn definition() -> Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text).not_null();
    let table = TableDefinition::builder(ATTACHMENTS).column(number("table"));
    let table = table.column(text("catalogue")).column(text("name")).column(number("lag_ms"));
    Ok(table.primary_key(["table"]).build()?)
}

/// Makes a table that the database keeps for the drain, unless it is there.
pub(super) fn made(database: &Database, definition: TableDefinition) -> Result<Table> {
    let name = definition.name().to_owned();
    match database.create_table(definition) {
        Err(Error::TableExists { .. }) => database.table(&name),
        made => made,
    }
}

/// Everything that is attached.
///
/// # Errors
/// A stopped or closed engine.
pub fn all(database: &Database) -> Result<Vec<Attachment>> {
    all_as(&mut database.session()?.begin()?)
}

/// Everything that is attached, as a transaction sees it.
///
/// # Errors
/// A stopped or closed engine.
pub fn all_as(transaction: &mut Transaction<'_>) -> Result<Vec<Attachment>> {
    let table = match transaction.table(ATTACHMENTS) {
        Err(Error::UnknownTable { .. }) => return Ok(Vec::new()),
        table => table?,
    };
    let rows = transaction.newest_snapshot().scan(&table, &ScanOptions::default())?;
    let rows = rows.collect::<Result<Vec<Row>>>()?;
    Ok(rows.iter().filter_map(read).collect())
}

fn read(row: &Row) -> Option<Attachment> {
    let text = |at: usize| row[at].as_str().map(str::to_owned);
    Some(Attachment {
        table: u32::try_from(row[0].as_i64()?).ok()?,
        catalogue: text(1)?,
        name: text(2)?,
        lag: Duration::from_millis(u64::try_from(row[3].as_i64()?).ok()?),
    })
}

/// Makes the table in which attachments are kept, before a transaction keeps the first one.
///
/// # Errors
/// A stopped or closed engine.
pub fn prepare(database: &Database) -> Result<()> {
    made(database, definition()?).map(drop)
}

/// Attaches a table, or attaches it otherwise, with the transaction.
///
/// # Errors
/// A stopped or closed engine; [`prepare`] was not called.
pub fn put(transaction: &mut Transaction<'_>, attachment: &Attachment) -> Result<()> {
    let Attachment { table, catalogue, name, lag } = attachment;
    let lag_ms = i64::try_from(lag.as_millis()).unwrap_or(i64::MAX);
    let row =
        [i64::from(*table).into(), catalogue.as_str().into(), name.as_str().into(), lag_ms.into()];
    let kept = transaction.table(ATTACHMENTS)?;
    transaction.upsert(&kept, &row)
}

/// Detaches a table with the transaction; false if it was not attached.
///
/// # Errors
/// A stopped or closed engine.
pub fn remove(transaction: &mut Transaction<'_>, table: u32) -> Result<bool> {
    match transaction.table(ATTACHMENTS) {
        Err(Error::UnknownTable { .. }) => Ok(false),
        kept => transaction.delete(&kept?, &[i64::from(table).into()]),
    }
}
