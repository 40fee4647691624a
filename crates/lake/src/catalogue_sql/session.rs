//! Connections to a catalogue's database, and what became of the statements sent over them.
//!
//! A request takes a connection for itself and puts it back when the server has answered. So a
//! request that failed, or that its caller dropped, leaves no connection behind on which a later
//! request would wait for its answer.
//!
//! Invariants
//! 1. A statement that writes is sent once. Only one that reads is sent again, over a new
//!    connection.
//! 2. [`Failure::Refused`] means that the statement changed nothing.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iceberg::{Error, ErrorKind};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};

use super::tls::Tls;
use crate::catalogue::{CONNECT_PATIENCE, REQUEST_PATIENCE};
use crate::storage::is_loopback;

/// Connections that are kept for later requests.
const IDLE_MAX: usize = 4;
/// An idle connection is asked this often whether the server is there.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Nodes that start together make the tables together, and all but one are refused at first.
const PREPARATIONS_MAX: usize = 5;

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

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The server says no, and changed nothing.
    #[error("the catalogue's database refuses it: {message} (SQLSTATE {})", state.code())]
    Refused { state: SqlState, message: String },
    /// Nothing was asked of it.
    #[error("the catalogue's database cannot be reached: {0}")]
    Away(String),
    /// The server may have done it or not.
    #[error("the catalogue's database was lost, and may have done what was asked: {0}")]
    Lost(String),
    /// So may it here.
    #[error("the catalogue's database does not answer in time, and may have done what was asked")]
    Late,
}

impl Failure {
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self, Failure::Refused { state, .. } if *state == SqlState::UNIQUE_VIOLATION)
    }

    /// Whether the server undid the statement in favour of another.
    pub(super) fn is_conflict(&self) -> bool {
        let kinds = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        matches!(self, Failure::Refused { state, .. } if kinds.contains(state))
    }

    fn of_statement(error: &tokio_postgres::Error) -> Failure {
        match error.as_db_error() {
            Some(answer) if !ends_session(answer) => Failure::Refused {
                state: answer.code().clone(),
                message: answer.message().to_owned(),
            },
            _ => Failure::Lost(shown(error)),
        }
    }
}

/// Final, so that nobody repeats blindly what may have happened.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::new(ErrorKind::Unexpected, failure.to_string())
    }
}

fn ends_session(answer: &DbError) -> bool {
    matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || matches!(answer.severity(), "FATAL" | "PANIC")
}

/// The error and its causes.
fn shown(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// How the database is reached. What it prints of itself has no password.
pub(super) struct Door {
    config: Config,
    tls: Tls,
}

impl Door {
    /// Checks that neither the password nor the rows are shown to others on the way.
    pub(super) fn new(
        uri: &str,
        password: Option<String>,
        allow_plain_text: bool,
        root_certificates: Option<&str>,
    ) -> Result<Door, String> {
        // The cause could show a part of the uri, and so of a password.
        let mut config: Config = uri
            .parse()
            .map_err(|_| "its uri is not of the form postgres://user@host:port/database")?;
        if config.get_password().is_some() {
            return Err("its uri has a password. Secrets come from the environment: name the \
                        variable as credential_variable"
                .to_owned());
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("its uri names no host".to_owned());
        }
        let is_here = hosts_are_here(&config);
        let asks_for_tls = config.get_ssl_mode() == SslMode::Require;
        if config.get_ssl_mode() == SslMode::Disable && !is_here && !allow_plain_text {
            return Err("its uri is elsewhere and without TLS. Leave sslmode out, or set \
                        allow_plain_text"
                .to_owned());
        }
        let tls = if asks_for_tls || !(is_here || allow_plain_text) {
            config.ssl_mode(SslMode::Require);
            Tls::trusting(root_certificates)?
        } else {
            config.ssl_mode(SslMode::Disable);
            Tls::none()
        };
        if let Some(password) = password {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("onrush lake");
        }
        config.connect_timeout(CONNECT_PATIENCE).tcp_user_timeout(REQUEST_PATIENCE);
        // A connection that is dead is found before it is needed again.
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(2);
        Ok(Door { config, tls })
    }

    async fn open(&self) -> Result<Session, Failure> {
        let connecting = timeout(CONNECT_PATIENCE, self.config.connect(self.tls.clone()));
        let (client, connection) = match connecting.await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(Failure::Away(shown(&error))),
            Err(_) => return Err(Failure::Away("it takes no connection in time".to_owned())),
        };
        let connection = tokio::spawn(async move {
            // The requests see why it ended.
            let _ = connection.await;
        });
        let mut session = Session { client, connection, has_types: false };
        session.prepare().await.map_err(|failure| match failure {
            Failure::Refused { .. } => failure,
            other => Failure::Away(other.to_string()),
        })?;
        Ok(session)
    }
}

fn hosts_are_here(config: &Config) -> bool {
    // An address is what is connected to; the host beside it is only the name in the certificate.
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(|address| address.is_loopback());
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(host) => is_loopback(host),
        Host::Unix(_) => true,
    })
}

/// One connection, which ends when this is dropped.
struct Session {
    client: Client,
    connection: JoinHandle<()>,
    /// The column `iceberg_type` is there.
    has_types: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Session {
    /// Makes the tables if they are missing. Whoever may not make tables can use those that are
    /// there.
    async fn prepare(&mut self) -> Result<(), Failure> {
        // The server gives up before the client does, lest a statement be executed long after.
        let limit = (REQUEST_PATIENCE / 2).as_millis();
        self.say(&format!("SET statement_timeout = {limit}")).await?;
        self.ensure("SELECT 1 FROM iceberg_namespace_properties LIMIT 0", CREATE_PROPERTIES)
            .await?;
        self.ensure("SELECT 1 FROM iceberg_tables LIMIT 0", CREATE_TABLES).await?;
        self.has_types = match self.say("SELECT iceberg_type FROM iceberg_tables LIMIT 0").await {
            Ok(()) => true,
            Err(Failure::Refused { state, .. }) if state == SqlState::UNDEFINED_COLUMN => false,
            Err(failure) => return Err(failure),
        };
        Ok(())
    }

    async fn ensure(&self, probe: &str, create: &str) -> Result<(), Failure> {
        let mut answer = self.say(probe).await;
        for _ in 0..PREPARATIONS_MAX {
            match answer {
                Err(Failure::Refused { state, .. }) if state == SqlState::UNDEFINED_TABLE => {}
                answer => return answer,
            }
            // Another client may be quicker, in which case this one is refused: the probe tells.
            let made = self.say(create).await;
            answer = self.say(probe).await;
            if answer.is_err() {
                made?;
            }
        }
        answer
    }

    async fn say(&self, statement: &str) -> Result<(), Failure> {
        within(self.client.batch_execute(statement)).await
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

async fn within<T>(
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match timeout(REQUEST_PATIENCE, work).await {
        Ok(answer) => answer.map_err(|error| Failure::of_statement(&error)),
        Err(_) => Err(Failure::Late),
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
        let answer = within(session.client.query_typed(&statement, &typed(values))).await;
        self.put_back(session, answer)
    }

    /// How many rows a statement has written.
    pub(super) async fn execute(&self, statement: &str, values: &[&str]) -> Result<u64, Failure> {
        let session = self.take().await?;
        let statement = session.text(statement);
        let answer = within(session.client.execute_typed(&statement, &typed(values))).await;
        self.put_back(session, answer)
    }

    async fn take(&self) -> Result<Session, Failure> {
        loop {
            let session = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match session {
                None => return self.door.open().await,
                Some(session) if session.client.is_closed() => {}
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
