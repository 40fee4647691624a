//! One client, from its first byte to its last.
//!
//! The connection is a task. It reads messages, has their plans run, and gathers the answers; before
//! it would wait for more input, it waits for the newest commit that its answers rest on, and sends
//! them all. So a client that sends a hundred inserts at once has a hundred commits and one wait, and
//! clients that wait at the same time share syncs.
//!
//! Invariants
//! 1. No answer leaves before the commits that it rests on are durable, unless the session's
//!    `synchronous_commit` is off: [`Connection::settle`] is the only place that sends, and waits for
//!    whatever the engine says that the answers since the last time rest on.
//! 2. The beginning of a connection has one deadline, which no byte puts off.
//! 3. A client's malformed message, unread output or broken socket ends its own connection only.

mod copy;
mod cursor;
mod door;
mod encoding;
mod extended;
mod idle;
mod known;
mod line;
mod login;
mod memory;
mod message;
mod pipeline;
mod portal;
mod rows;
mod run;
mod shapes;
mod startup;
mod turned_away;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;

use onrush_query::style;
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, NoticeResponse, ReadyForQuery,
};
use pgwire::messages::startup::ParameterStatus;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio::time::{Instant, timeout_at};

use crate::access::Identity;
use crate::clients;
use crate::error::{Severity, SqlError, state};
use crate::execute::Backend;
use crate::listener::Shared;
use crate::sql::{self, Bound, Parameters, Parsed, TransactionModes};
use crate::values::Formats;
use cursor::Cursors;
pub(crate) use door::{Door, Peer, Proof};
use extended::Prepared;
use known::KnownPlans;
pub(crate) use line::Line;
pub(crate) use memory::ConnectionMemory;
use memory::{Part, Share};
use portal::Portals;
use run::Manner;
use shapes::Shapes;
use startup::Beginning;
use turned_away::{no_seat, too_late, turn_away};
use wire::{Frame, OUTPUT_BYTES, Wire};

/// Why a connection, or a statement, does not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// To be told to the client; one that is fatal ends the connection.
    Error(SqlError),
    /// The client is gone.
    Closed,
}

impl Stop {
    fn placed_in(self, text: &str) -> Stop {
        match self {
            Stop::Error(error) => Stop::Error(error.placed_in(text)),
            Stop::Closed => Stop::Closed,
        }
    }
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Stop {
        Stop::Error(error)
    }
}

/// One client that has been let in.
struct Connection<S> {
    wire: Wire<S>,
    backend: Backend,
    statements: HashMap<String, Arc<Prepared>>,
    /// What they take in memory, about.
    statement_bytes: usize,
    known: KnownPlans,
    shapes: Shapes,
    portals: Portals,
    cursors: Cursors,
    /// After an error in the extended protocol everything up to the next Sync is left out.
    skips_to_sync: bool,
    /// What the client was told of settings, and after how many of their changes.
    told: Vec<(&'static str, String)>,
    told_revision: u64,
    shared: Arc<Shared>,
}

/// What a connection does when it cannot go on at once.
enum Next {
    /// This message may have to wait.
    Handle(Frame),
    /// There is much to be sent.
    Settle,
    /// All messages are handled.
    WaitForInput,
}

/// Serves one client until it goes, or is sent away.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    shared: Arc<Shared>,
    door: Door,
) {
    let deadline = Instant::now() + shared.options.handshake_timeout;
    let memory = match Share::enter(&shared.connection_memory) {
        Ok(memory) => memory,
        Err(error) => return turn_away(stream, &shared, &door, &error).await,
    };
    let mut wire = new_wire(stream, &shared, memory);
    let beginning = begin(&mut wire, door.tls.is_some(), deadline).await;
    let (Ok(Beginning::Encrypt), Some(tls)) = (&beginning, &door.tls) else {
        return go_on(wire, beginning, &shared, &door, deadline).await;
    };
    let (stream, memory) = wire.into_parts();
    match timeout_at(deadline, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let mut wire = new_wire(stream, &shared, memory);
            let beginning = begin(&mut wire, false, deadline).await;
            let door = Door { needs_tls: false, ..door };
            go_on(wire, beginning, &shared, &door, deadline).await;
        }
        Ok(Err(error)) => {
            tracing::info!(%error, peer = %door.peer, "a client could not begin to encrypt");
        }
        Err(_) => tracing::info!(peer = %door.peer, "a client took too long to begin to encrypt"),
    }
}

fn new_wire<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    shared: &Shared,
    memory: Share,
) -> Wire<S> {
    let limits = &shared.options;
    Wire::new(stream, limits.message_bytes_max, limits.write_timeout, memory)
}

async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    offers_tls: bool,
    deadline: Instant,
) -> std::result::Result<Beginning, Stop> {
    let begun = timeout_at(deadline, startup::begin(wire, offers_tls)).await;
    begun.unwrap_or_else(|_| Err(too_late().into()))
}

/// Serves a client whose first message has come.
async fn go_on<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    beginning: std::result::Result<Beginning, Stop>,
    shared: &Arc<Shared>,
    door: &Door,
    deadline: Instant,
) {
    let mut user = String::new();
    let stop = match beginning {
        Ok(Beginning::Client(parameters)) => {
            user = parameters.get("user").cloned().unwrap_or_default();
            let known = timeout_at(deadline, identify(&mut wire, &parameters, shared, door)).await;
            match known.unwrap_or_else(|_| Err(too_late().into())) {
                Ok(who) => match let_in(wire, &parameters, shared, who, door).await {
                    Ok(()) => return,
                    Err((back, stop)) => {
                        wire = back;
                        stop
                    }
                },
                Err(stop) => stop,
            }
        }
        Ok(Beginning::Cancel { number, secret }) => {
            shared.clients.cancel(number, secret);
            return;
        }
        Ok(Beginning::Encrypt) => return,
        Err(stop) => stop,
    };
    if let Stop::Error(error) = stop {
        door.tell_sent_away(&error, &user);
        wire.output.clear();
        wire.put(&error.fatal().to_response());
        wire.close().await;
    }
}

/// Who the client is, proven where a proof is needed.
async fn identify<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    parameters: &std::collections::BTreeMap<String, String>,
    shared: &Shared,
    door: &Door,
) -> std::result::Result<Identity, Stop> {
    let name = parameters.get("user").cloned().unwrap_or_default();
    if door.needs_tls {
        let message = "this address takes encrypted connections only";
        let error = SqlError::new(state::INVALID_AUTHORIZATION, message).fatal();
        return Err(error.with_hint("Connect with sslmode=require or stricter.").into());
    }
    let is_trusted = match door.proof {
        Proof::Nothing => true,
        Proof::PasswordOnceThereIsOne => !shared.access.has_passwords(),
        Proof::Password => false,
    };
    if !is_trusted {
        login::prove(wire, &shared.access, &name).await?;
    }
    Ok(Identity { name, is_trusted, temporary_schema: String::new(), own_roles: None })
}

/// Runs the conversation with a client. The error comes with the wire, to be told on it.
async fn let_in<S: AsyncRead + AsyncWrite + Unpin>(
    wire: Wire<S>,
    parameters: &std::collections::BTreeMap<String, String>,
    shared: &Arc<Shared>,
    who: Identity,
    door: &Door,
) -> std::result::Result<(), (Wire<S>, Stop)> {
    // Who has all rights because there are no passwords has proven nothing: no reason to be preferred.
    let is_proven = door.proof == Proof::Nothing || !who.is_trusted;
    let Some(_seat) = shared.seat(is_proven && shared.access.is_superuser(&who)) else {
        return Err((wire, no_seat(shared).into()));
    };
    let name = who.name.clone();
    let mut backend = match Backend::new(shared, who, door) {
        Ok(backend) => backend,
        Err(error) => return Err((wire, error.into())),
    };
    if let Err(error) = startup::apply(parameters, &mut backend.settings) {
        return Err((wire, error.into()));
    }
    backend.introduce();
    let client = backend.presence.entry();
    let (number, secret) = (client.number, client.secret);
    let mut connection = Connection {
        wire,
        backend,
        statements: HashMap::new(),
        statement_bytes: 0,
        known: KnownPlans::default(),
        shapes: Shapes::default(),
        portals: Portals::default(),
        cursors: Cursors::default(),
        skips_to_sync: false,
        told_revision: 0,
        told: Vec::new(),
        shared: Arc::clone(shared),
    };
    tracing::debug!(number, user = name, "a client has come");
    connection.told = connection.backend.settings.reported();
    connection.told_revision = connection.backend.settings.revision();
    startup::welcome(&mut connection.wire, &connection.told, number, secret);
    connection.ready();
    let style = Arc::clone(&connection.backend.settings.style);
    let Err(stop) = style::scoped(style, connection.converse()).await else {
        return Ok(());
    };
    tracing::debug!(number, "a client has gone");
    match stop {
        Stop::Closed => Ok(()),
        stop => Err((connection.wire, stop)),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Never returns but with the reason why the connection ends.
    async fn converse(&mut self) -> std::result::Result<(), Stop> {
        loop {
            match self.handle_input()? {
                Next::Handle(frame) if frame.is_long() => {
                    block_in_place(|| Handle::current().block_on(self.handle(frame)))?;
                }
                Next::Handle(frame) => self.handle(frame).await?,
                Next::Settle => self.settle().await?,
                Next::WaitForInput => {
                    self.settle().await?;
                    self.backend.presence.rests(self.backend.status());
                    self.wait_for_input().await?;
                }
            }
        }
    }

    /// Handles the messages that are there, up to one that may have to wait, and says what is next. A
    /// client that sends many INSERTs at once has them all run here.
    fn handle_input(&mut self) -> std::result::Result<Next, Stop> {
        while self.wire.output.len() <= OUTPUT_BYTES {
            // The client's encoding is part of it.
            style::set_current(&self.backend.settings.style);
            let Some(frame) = self.wire.next_frame()? else { return Ok(Next::WaitForInput) };
            let left = match frame.is_long() {
                true => block_in_place(|| self.handle_at_once(frame))?,
                false => self.handle_at_once(frame)?,
            };
            if let Some(frame) = left {
                return Ok(Next::Handle(frame));
            }
        }
        Ok(Next::Settle)
    }

    /// Handles a message that nothing is waited for, and gives back one that may have to wait.
    fn handle_at_once(&mut self, frame: Frame) -> std::result::Result<Option<Frame>, Stop> {
        let outcome = match frame.kind {
            kind if self.skips_to_sync && !matches!(kind, b'S' | b'X') => Ok(()),
            // What is left of a COPY that has failed.
            b'd' | b'c' | b'f' => Ok(()),
            kind if frame.refused.is_some() && kind != b'Q' => {
                frame.refused.map_or(Ok(()), |why| Err(why.into()))
            }
            b'P' => self.parse(&frame.body),
            b'B' => self.bind(frame.body),
            b'D' => self.describe(&frame.body),
            b'C' => self.close(&frame.body),
            b'E' => match self.run_insert(&frame.body) {
                Ok(false) => return Ok(Some(frame)),
                other => other.map(drop),
            },
            b'S' => {
                self.end_pipeline()?;
                self.skips_to_sync = false;
                self.ready();
                Ok(())
            }
            _ => return Ok(Some(frame)),
        };
        self.report(outcome, true)?;
        Ok(None)
    }

    async fn handle(&mut self, frame: Frame) -> std::result::Result<(), Stop> {
        let Frame { kind, body, refused } = frame;
        let outcome = match kind {
            b'Q' => {
                let outcome = match refused {
                    None => self.simple_query(&body).await,
                    Some(why) => Err(why.into()),
                };
                return self.end_of_query(outcome);
            }
            b'E' => self.run_portal(&body).await,
            b'H' => self.settle().await,
            // What was asked before is answered.
            b'X' => self.settle().await.and(Err(Stop::Closed)),
            b'F' => {
                let error = SqlError::not_supported("a function call message", "Use SELECT.");
                return self.end_of_query(Err(error.into()));
            }
            other => {
                Err(SqlError::protocol(format!("there is no message of kind {other:#04x}")).into())
            }
        };
        self.report(outcome, true)
    }

    /// Tells an error to the client, unless it ends the connection.
    fn report(
        &mut self,
        outcome: std::result::Result<(), Stop>,
        is_extended: bool,
    ) -> std::result::Result<(), Stop> {
        match outcome {
            Err(Stop::Error(error)) if error.severity != Severity::Fatal => {
                let error = self.backend.told(error);
                self.backend.fail();
                self.notices();
                self.wire.put(&error.to_response());
                self.skips_to_sync = is_extended;
                Ok(())
            }
            other => other,
        }
    }

    fn end_of_query(
        &mut self,
        outcome: std::result::Result<(), Stop>,
    ) -> std::result::Result<(), Stop> {
        self.wire.memory.note(Part::Text, 0);
        self.report(outcome, false)?;
        self.ready();
        Ok(())
    }

    /// The client may go on. Portals live as long as their transaction.
    fn ready(&mut self) {
        if !self.backend.is_in_transaction() {
            self.portals.clear();
            self.end_cursors();
            self.backend.end_temporaries();
        }
        self.backend.end_locks();
        self.tell_settings();
        if !self.backend.is_in_transaction() {
            self.notifications();
        }
        self.wire.put(&ReadyForQuery::new(self.backend.status()));
    }

    /// What the client was told at its beginning, where it is otherwise now.
    fn tell_settings(&mut self) {
        if self.told_revision == self.backend.settings.revision() {
            return;
        }
        self.told_revision = self.backend.settings.revision();
        let now = self.backend.settings.reported();
        for (setting, before) in now.iter().zip(&self.told) {
            if setting != before {
                self.wire.put(&ParameterStatus::new(setting.0.to_owned(), setting.1.clone()));
            }
        }
        self.told = now;
    }

    fn notices(&mut self) {
        for notice in std::mem::take(&mut self.backend.notices) {
            if !self.backend.settings.wants_notice(notice.is_warning()) {
                continue;
            }
            self.wire.put(&NoticeResponse::new(notice.to_response().fields));
        }
    }

    fn complete(&mut self, tag: std::borrow::Cow<'static, str>) {
        self.notices();
        self.wire.put(&CommandComplete::new(tag.into_owned()));
    }

    /// The statements of a text, one after the other. Several that read and write rows and define something are
    /// one transaction; one that is to be serializable has one of its own.
    async fn simple_query(&mut self, body: &[u8]) -> std::result::Result<(), Stop> {
        self.end_pipeline()?;
        let text = message::text(body)?;
        let shown = clients::shown(text);
        if self.run_by_shape(text, &shown).await? {
            return Ok(());
        }
        self.ask_for_text(text)?;
        let statements = sql::read(text)?;
        if statements.is_empty() {
            self.wire.put(&EmptyQueryResponse::new());
            return Ok(());
        }
        let is_one = statements.len() > 1
            && !self.backend.is_in_transaction()
            && statements.iter().all(Parsed::is_of_transactions);
        if is_one {
            self.backend.begin(TransactionModes::default())?;
        }
        for statement in statements {
            let needs_own = self.backend.is_serializable() && statement.is_of_rows();
            let is_own = needs_own && !self.backend.is_in_transaction();
            if is_own {
                self.backend.begin(TransactionModes::default())?;
            }
            let outcome = self.run_text(statement, &shown).await;
            let outcome = outcome.map_err(|stop| stop.placed_in(text));
            if outcome.is_err() && (is_one || is_own) {
                self.backend.fail();
                self.backend.roll_back();
            }
            outcome?;
            if is_own {
                self.backend.commit()?;
            }
        }
        if is_one {
            self.keep_held_cursors().await?;
            self.backend.commit()?;
        }
        Ok(())
    }

    async fn run_text(&mut self, parsed: Parsed, text: &Arc<str>) -> std::result::Result<(), Stop> {
        style::set_current(&self.backend.settings.style);
        self.backend.begin_statement(text);
        // It is not kept, so what it takes is asked for with the whole text.
        let text = (Arc::clone(text), 0);
        let mut statement = Arc::new(self.prepare(Some(parsed), text, Parameters::none())?);
        let manner = Manner { formats: &Formats::TEXT, rows_max: None, is_simple: true };
        self.run(&mut statement, &Bound::default(), &manner).await.map(drop)
    }
}
