//! The server's side of the lake: which tables are attached, and the drain that carries their rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onrush::{Database, Row, Table, TableChange, Transaction, Value, Waiting};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::drain::state::TableState;
use onrush_lake::{
    CatalogueConfig, Drain, DrainCatalogue, DrainOptions, Identity, LakeError, LakeReader, NodeId,
};
use parking_lot::Mutex;

use crate::error::{Result, SqlError, state};
use crate::kept::durable_session;
use crate::listener::ServerError;

/// The drain of a server; none where no catalogue is configured, and once the server stops.
pub(crate) struct Lake {
    drain: Mutex<Option<Arc<Drain>>>,
    /// What queries read by.
    reader: Mutex<Option<Arc<LakeReader>>>,
}

impl Lake {
    /// Starts to drain what is attached.
    pub(crate) fn start(
        database: &Database,
        identity: Option<Identity>,
        catalogues: &BTreeMap<String, CatalogueConfig>,
    ) -> std::result::Result<Lake, ServerError> {
        if catalogues.is_empty() {
            return Ok(Lake { drain: Mutex::default(), reader: Mutex::default() });
        }
        let Some(identity) = identity else {
            return Err(ServerError::BadOption {
                setting: "lake",
                given: catalogues.keys().cloned().collect::<Vec<_>>().join(", "),
                reason: "a node that drains has a number: give --node, too. A database that was restored takes another \
                         number than the node that was lost",
            });
        };
        let configured = |(name, config): (&String, &CatalogueConfig)| {
            (name.clone(), DrainCatalogue::Configured(config.clone()))
        };
        let catalogues = catalogues.iter().map(configured).collect();
        let options = DrainOptions::new(identity, catalogues);
        let reader = LakeReader::new(database, options.clone())?;
        let drain = Drain::start(database, options)?;
        let (drain, reader) = (Some(Arc::new(drain)), Some(Arc::new(reader)));
        Ok(Lake { drain: Mutex::new(drain), reader: Mutex::new(reader) })
    }

    /// Ends the drain between two steps of a round. The next start goes on from there.
    pub(crate) fn stop(&self) {
        // Not under the lock: it takes as long as the step.
        let (drain, reader) = (self.drain.lock().take(), self.reader.lock().take());
        drop((drain, reader));
    }

    fn drain(&self) -> Result<Arc<Drain>> {
        self.drain.lock().clone().ok_or_else(no_lake)
    }

    /// What queries read by.
    pub(crate) fn reader(&self) -> Result<Arc<LakeReader>> {
        self.reader.lock().clone().ok_or_else(no_lake)
    }

    /// Attaches a table to the Iceberg table that `target` names, as in `catalogue.namespace.table`.
    pub(crate) async fn attach(
        &self,
        database: &Database,
        table: &Table,
        (target, lag): (&str, Duration),
        waiting: Arc<dyn Waiting>,
    ) -> Result<()> {
        let drain = self.drain()?;
        let is_name = target.split('.').count() > 2 && target.split('.').all(|it| !it.is_empty());
        let Some((catalogue, name)) = target.split_once('.').filter(|_| is_name) else {
            let message = format!("{target:?} is not of the form catalogue.namespace.table");
            return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
        };
        if !table.definition().is_logged() {
            let message = format!("table {} is not logged: a crash would empty it", table.name());
            return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message));
        }
        let (catalogue, name) = (catalogue.to_owned(), name.to_owned());
        let attachment = Attachment { table: table.id(), catalogue, name, lag };
        check_new(&attachment::all(database)?, &attachment, table)?;
        drain.check(&attachment).await?;
        tokio::task::block_in_place(|| -> Result<()> {
            attachment::prepare(database)?;
            let mut session = durable_session(database)?;
            session.set_waiting(Some(waiting));
            let mut transaction = session.begin()?;
            set_appends_only(&mut transaction, table, true)?;
            // Again, now that nobody else comes between.
            check_new(&attachment::all_as(&mut transaction)?, &attachment, table)?;
            attachment::put(&mut transaction, &attachment)?;
            Ok(transaction.commit()?)
        })?;
        drain.refresh();
        Ok(())
    }

    /// Detaches a table: its rows may be changed again, and what is in the lake stays there.
    pub(crate) fn detach(
        &self,
        database: &Database,
        table: &Table,
        waiting: Arc<dyn Waiting>,
    ) -> Result<()> {
        tokio::task::block_in_place(|| -> Result<()> {
            let mut session = durable_session(database)?;
            session.set_waiting(Some(waiting));
            let mut transaction = session.begin()?;
            if !attachment::remove(&mut transaction, table.id())? {
                return Err(not_attached(table));
            }
            set_appends_only(&mut transaction, table, false)?;
            Ok(transaction.commit()?)
        })?;
        if let Some(drain) = &*self.drain.lock() {
            drain.refresh();
        }
        Ok(())
    }

    /// Returns when everything that is durable of a table is in the lake.
    pub(crate) async fn flush(&self, database: &Database, table: &Table) -> Result<()> {
        let drain = self.drain()?;
        match attachment::all(database)?.iter().any(|known| known.table == table.id()) {
            true => Ok(drain.flush(table.id()).await?),
            false => Err(not_attached(table)),
        }
    }

    /// A row for each attached table.
    pub(crate) fn rows(&self, database: &Database) -> Vec<Row> {
        let Some(drain) = self.drain.lock().clone() else { return Vec::new() };
        let durable = database.durable_lsn();
        let row = |state: &TableState| row(drain.node(), durable.0, database, state);
        drain.states().iter().map(row).collect()
    }
}

/// Of the very table that was named: another one may have its name meanwhile.
fn set_appends_only(
    transaction: &mut Transaction<'_>,
    table: &Table,
    appends_only: bool,
) -> Result<()> {
    let changes = [TableChange::SetAppendsOnly(appends_only)];
    match transaction.alter_table(table.name(), &changes)?.id() == table.id() {
        true => Ok(()),
        false => Err(onrush::Error::TableChanged { name: table.name().to_owned() }.into()),
    }
}

fn check_new(known: &[Attachment], new: &Attachment, table: &Table) -> Result<()> {
    let refuse = |message: String, hint: &str| {
        Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message).with_hint(hint))
    };
    if known.iter().any(|known| known.table == new.table) {
        let message = format!("table {} is attached to a lake already", table.name());
        return refuse(message, "CALL onrush.lake_detach(table) first.");
    }
    if known.iter().any(|known| known.lake_table() == new.lake_table()) {
        let message = format!("another table is attached to {}", new.lake_table());
        return refuse(message, "Each Iceberg table takes one table of a node.");
    }
    Ok(())
}

fn no_lake() -> SqlError {
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, "this server has no lake")
        .with_hint("Start it with --node N and --lake FILE; see docs/scale-out.md.")
}

pub(crate) fn not_attached(table: &Table) -> SqlError {
    let message = format!("table {} is not attached to a lake", table.name());
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
        .with_hint("CALL onrush.lake_attach(table, 'catalogue.namespace.table') attaches one.")
}

fn row(node: NodeId, durable: u64, database: &Database, state: &TableState) -> Row {
    let count = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    let TableState { attachment, phase, mark, read_to, .. } = state;
    let table = database.table_numbered(attachment.table);
    let micros = |at: std::time::SystemTime| {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Value::TimestampTz(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    };
    vec![
        table.map_or(Value::Null, |table| table.name().to_owned().into()),
        attachment.lake_table().into(),
        Value::Int32(node.0.cast_signed()),
        phase.word().to_owned().into(),
        phase.cause().map_or(Value::Null, |cause| cause.to_owned().into()),
        mark.map_or(Value::Null, |mark| count(mark.0)),
        count(read_to.0),
        count(durable),
        Value::Float64(attachment.lag.as_secs_f64()),
        state.lag().map_or(Value::Null, |lag| Value::Float64(lag.as_secs_f64())),
        count(state.rows),
        count(state.files),
        count(state.bytes),
        count(state.commits),
        count(state.refusals),
        state.drained_at.map_or(Value::Null, micros),
    ]
}

impl From<LakeError> for SqlError {
    fn from(error: LakeError) -> SqlError {
        if let LakeError::Database(error) = error {
            return error.into();
        }
        let code = match &error {
            LakeError::Away { .. } | LakeError::Io { .. } => state::CONNECTION_FAILURE,
            LakeError::TableMismatch { .. } => state::DATATYPE_MISMATCH,
            LakeError::NoSuchCatalogue { .. } | LakeError::NoSuchTarget { .. } => {
                state::INVALID_PARAMETER_VALUE
            }
            LakeError::NoSuchKind { .. } | LakeError::Unreadable { .. } => {
                state::FEATURE_NOT_SUPPORTED
            }
            LakeError::Fenced { .. }
            | LakeError::NoTable { .. }
            | LakeError::HasRows { .. }
            | LakeError::Refused { .. } => state::NOT_IN_PREREQUISITE_STATE,
            LakeError::Row(_) => state::NUMERIC_OUT_OF_RANGE,
            _ => state::INTERNAL,
        };
        SqlError::new(code, error.to_string())
    }
}
