//! Requests to a catalogue's database.
//!
//! A request takes a connection for itself and puts it back when the server has answered. So a
//! request that failed, or that its caller dropped, leaves no connection behind on which a later
//! request would wait for its answer.
//!
//! Invariants
//! 1. A statement that writes is sent once. Only one that reads is sent again, over a new
//!    connection.

use std::sync::{Mutex, PoisonError};

use iceberg::{Error, ErrorKind};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use crate::catalogue::REQUEST_PATIENCE;
use crate::wire::{Door, Failure, Line, within};

/// Connections that are kept for later requests.
const IDLE_MAX: usize = 4;

const CREATE_TABLES: &str = "\
    CREATE TABLE IF NOT EXISTS iceberg_tables (\
    catalog_name varchar(255) NOT NULL, table_namespace varchar(255) NOT NULL, \
    table_name varchar(255) NOT NULL, metadata_location varchar(1000), \
    previous_metadata_location varchar(1000), iceberg_type varchar(5), \
    PRIMARY KEY (catalog_name, table_namespace, table_name))";
const CREATE_PROPERTIES: &str = "\
    CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (\
    catalog_name varchar(255) NOT NULL, namespace varchar(255) NOT NULL, \
    property_key varchar(255) NOT NULL, property_value varchar(1000) NOT NULL, \
    PRIMARY KEY (catalog_name, namespace, property_key))";

/// In a statement: the condition that a row of `iceberg_tables` is a table and no view. A catalogue
/// that an older client made has no column for it, and no views.
pub(super) const IS_TABLE: &str = "{is a table}";
/// The column for it, and its value, where they are to be written.
pub(super) const TYPE_COLUMN: &str = "{column of the type}";
pub(super) const TYPE_VALUE: &str = "{value of the type}";

/// Final, so that nobody repeats blindly what may have happened.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(ErrorKind::Unexpected, failure.to_string())
    }
}

/// One connection.
struct Session {
    line: Line,
    /// The column `iceberg_type` is there.
    has_types: bool,
}

impl Session {
    async fn open(door: &Door) -> Result<Session, Failure> {
        let mut session = Session { line: door.open().await?, has_types: false };
        session.prepare().await.map_err(|failure| match failure {
            Failure::Refused { .. } => failure,
            other => Failure::Away(other.to_string()),
        })?;
        Ok(session)
    }

    /// Makes the tables if they are missing. Whoever may not make tables can use those that are
    /// there.
    async fn prepare(&mut self) -> Result<(), Failure> {
        // The server gives up before the client does, lest a statement be executed long after.
        let limit = (REQUEST_PATIENCE / 2).as_millis();
        self.line.say(&format!("SET statement_timeout = {limit}")).await?;
        self.line
            .ensure("SELECT 1 FROM iceberg_namespace_properties LIMIT 0", CREATE_PROPERTIES)
            .await?;
        self.line.ensure("SELECT 1 FROM iceberg_tables LIMIT 0", CREATE_TABLES).await?;
        self.has_types =
            match self.line.say("SELECT iceberg_type FROM iceberg_tables LIMIT 0").await {
                Ok(()) => true,
                Err(Failure::Refused { state, .. }) if state == SqlState::UNDEFINED_COLUMN => false,
                Err(failure) => return Err(failure),
            };
        Ok(())
    }

    fn text(&self, statement: &str) -> String {
        let (is_table, column, value) = if self.has_types {
            ("(iceberg_type = 'TABLE' OR iceberg_type IS NULL)", ", iceberg_type", ", 'TABLE'")
        } else {
            ("TRUE", "", "")
        };
        statement
            .replace(IS_TABLE, is_table)
            .replace(TYPE_COLUMN, column)
            .replace(TYPE_VALUE, value)
    }
}

/// With their types, so that a statement and its values go and come in one trip.
fn typed<'v>(values: &'v [&str]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect()
}

/// The way to the database. Each statement is a transaction of its own.
pub(super) struct Sessions {
    door: Door,
    idle: Mutex<Vec<Session>>,
}

impl Sessions {
    /// Connects to nothing yet.
    pub(super) fn new(door: Door) -> Sessions {
        Sessions { door, idle: Mutex::default() }
    }

    /// The rows of a statement that reads.
    pub(super) async fn query(
        &self,
        statement: &str,
        values: &[&str],
    ) -> Result<Vec<Row>, Failure> {
        match self.query_once(statement, values).await {
            Err(Failure::Lost(_)) => self.query_once(statement, values).await,
            answer => answer,
        }
    }

    async fn query_once(&self, statement: &str, values: &[&str]) -> Result<Vec<Row>, Failure> {
        let session = self.take().await?;
        let statement = session.text(statement);
        let answer = within(session.line.client.query_typed(&statement, &typed(values))).await;
        self.put_back(session, answer)
    }

    /// How many rows a statement has written.
    pub(super) async fn execute(&self, statement: &str, values: &[&str]) -> Result<u64, Failure> {
        let session = self.take().await?;
        let statement = session.text(statement);
        let answer = within(session.line.client.execute_typed(&statement, &typed(values))).await;
        self.put_back(session, answer)
    }

    async fn take(&self) -> Result<Session, Failure> {
        loop {
            let session = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match session {
                None => return Session::open(&self.door).await,
                Some(session) if session.line.client.is_closed() => {}
                Some(session) => return Ok(session),
            }
        }
    }

    fn put_back<T>(&self, session: Session, answer: Result<T, Failure>) -> Result<T, Failure> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(_) | Err(Failure::Refused { .. }) if idle.len() < IDLE_MAX => idle.push(session),
            Ok(_) | Err(Failure::Refused { .. }) => {}
            // Whatever happened to it most likely happened to the others.
            Err(_) => idle.clear(),
        }
        answer
    }
}
