//! Which of many nodes the database is: the number that `node_offset()` takes and by which the lake knows it. Kept in
//! the database from the first start that names one, since keys and marks of a node are its own for ever.

use onrush::{ColumnDefinition, DataType, Database, TableDefinition};

use crate::kept::{self, durable_session, made};
use crate::listener::ServerError;

const NODE: &str = "onrush.node";

fn definition() -> onrush::Result<TableDefinition> {
    let node = ColumnDefinition::new("node", DataType::Int64).not_null();
    Ok(TableDefinition::builder(NODE).column(node).primary_key(["node"]).build()?)
}

/// The node that the database is, which it becomes now if it is none yet.
pub(crate) fn of(database: &Database, asked: Option<u32>) -> Result<Option<u32>, ServerError> {
    let rows = kept::rows(database, &mut database.session()?, NODE)?;
    let known = rows.first().and_then(|row| u32::try_from(row[0].as_i64()?).ok());
    match (known, asked) {
        (Some(known), Some(asked)) if known != asked => {
            Err(ServerError::OtherNode { known, asked })
        }
        (None, Some(asked)) => {
            let table = made(database, definition()?)?;
            durable_session(database)?.insert(&table, &[i64::from(asked).into()])?;
            Ok(Some(asked))
        }
        (known, _) => Ok(known),
    }
}
