//! Connections to a server that speaks PostgreSQL's protocol, and what became of what was said over them.
//!
//! Invariants
//! 1. [`Failure::Refused`] means that the statement changed nothing.
//! 2. Neither a password nor a row goes unencrypted to another machine, unless that was allowed.

mod tls;

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{Client, Config, SimpleQueryMessage, SimpleQueryRow};

use crate::catalogue::{CONNECT_PATIENCE, REQUEST_PATIENCE};
use crate::error::LakeError;
use crate::storage::is_loopback;
use tls::Tls;

/// An idle connection is asked this often whether the server is there.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Nodes that start together make the tables together, and all but one are refused at first.
const PREPARATIONS_MAX: usize = 5;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server says no, and changed nothing.
    #[error("the database refuses it: {message} (SQLSTATE {})", state.code())]
    Refused { state: SqlState, message: String },
    /// Nothing was asked of it.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// The server may have done it or not.
    #[error("the database was lost, and may have done what was asked: {0}")]
    Lost(String),
    /// So may it here.
    #[error("the database does not answer in time, and may have done what was asked")]
    Late,
}

impl Failure {
    pub(crate) fn is_duplicate(&self) -> bool {
        matches!(self, Failure::Refused { state, .. } if *state == SqlState::UNIQUE_VIOLATION)
    }

    /// Whether the server undid the statement in favour of another.
    pub(crate) fn is_conflict(&self) -> bool {
        let kinds = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        matches!(self, Failure::Refused { state, .. } if kinds.contains(state))
    }

    /// Whether the same may go well later: the server is away, is short of something, or has
    /// preferred others.
    fn is_passing(&self) -> bool {
        let Failure::Refused { state, .. } = self else { return true };
        // Connections, transactions, resources, objects in use, intervention.
        let classes = ["08", "40", "53", "55", "57"];
        classes.iter().any(|class| state.code().starts_with(class))
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

impl From<Failure> for LakeError {
    fn from(failure: Failure) -> LakeError {
        let cause = failure.to_string();
        match failure.is_passing() {
            true => LakeError::Away { cause },
            false => LakeError::Refused { cause },
        }
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
pub(crate) struct Door {
    config: Config,
    tls: Tls,
}

impl Door {
    /// Checks that neither the password nor the rows are shown to others on the way.
    pub(crate) fn new(
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

    /// A connection, over which nothing has been said yet. To be called on the runtime that it is
    /// used on.
    pub(crate) async fn open(&self) -> Result<Line, Failure> {
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
        Ok(Line { client, connection })
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

/// A connection, which ends when this is dropped.
pub(crate) struct Line {
    pub(crate) client: Client,
    connection: JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Line {
    /// Statements without values, and none of their rows.
    pub(crate) async fn say(&self, statements: &str) -> Result<(), Failure> {
        within(self.client.batch_execute(statements)).await
    }

    /// The rows of a statement without values, as texts.
    pub(crate) async fn rows(&self, statement: &str) -> Result<Vec<SimpleQueryRow>, Failure> {
        let messages = within(self.client.simple_query(statement)).await?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// How many rows a statement without values has written.
    pub(crate) async fn count(&self, statement: &str) -> Result<u64, Failure> {
        let messages = within(self.client.simple_query(statement)).await?;
        let count = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(count) => Some(*count),
            _ => None,
        });
        Ok(count.unwrap_or_default())
    }

    /// Makes a table, unless the probe finds it.
    pub(crate) async fn ensure(&self, probe: &str, create: &str) -> Result<(), Failure> {
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
}

pub(crate) async fn within<T>(
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match timeout(REQUEST_PATIENCE, work).await {
        Ok(answer) => answer.map_err(|error| Failure::of_statement(&error)),
        Err(_) => Err(Failure::Late),
    }
}
