//! Runs plans on one client's session.
//!
//! Nothing here waits for a disk to sync: the engine's session notes what its answers rest on, and the
//! connection takes that, by [`Backend::take_rest`], and waits before it sends them. So commits that
//! come at the same time, from one client or from many, share a sync.
//!
//! Invariants
//! 1. The engine's session is as durable as `synchronous_commit` says when a statement begins, and
//!    leaves waiting to the connection ([`onrush::Session::set_waits_later`]).
//! 2. Every answer of a durable session, rows, counts and errors too, waits for the newest commit that
//!    it rests on. No statement sees to it by itself: whatever reads or writes in the engine does.

mod call;
mod changed_rows;
mod comment;
mod composite_type;
mod create_as;
mod database;
mod definition;
mod domain;
mod enum_type;
mod explain;
mod foreign_key;
mod generated;
mod index;
mod insert;
mod known_settings;
mod lock;
mod locking;
mod merge;
mod own_type;
mod owner;
mod patience;
pub(crate) mod plan;
mod planner_settings;
mod query;
mod range;
mod read_only;
mod returning;
mod role;
mod rows;
mod savepoint;
mod schema;
mod schema_elements;
mod select;
mod sequence;
mod setting_values;
mod settings;
mod steps;
mod stored_rows;
mod table_changes;
mod temporary;
mod transaction;
mod user;
mod view;
mod views;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use onrush::{CommitToken, Database, Durability, Lsn, Session, SessionClient, Transaction, Value};
use onrush_query::clock;
use onrush_query::{Client, QueryEngine};
use pgwire::messages::response::TransactionStatus;
use sqlparser::ast::DiscardObject;

pub(crate) use definition::drop_table;
pub(crate) use index::add_index;
pub(crate) use patience::{Patience, ended};
pub(crate) use plan::Plan;
pub(crate) use query::{caller_of, control_of, locks_of, pins_of, seen_by};
pub(crate) use rows::{RowStream, Step};
pub(crate) use settings::Settings;
pub(crate) use steps::StepRows;
pub(crate) use temporary::{OnCommit, drop_leftovers};
pub(crate) use views::View;

use crate::access::{Access, Identity};
use crate::advisory::ClientLocks;
use crate::archive::Archives;
use crate::clients::{Clients, Newcomer, Presence};
use crate::connection::Door;
use crate::control::ClientControl;
use crate::defaults::DatabaseDefaults;
use crate::error::{Result, SqlError, state};
use crate::lake::Lake;
use crate::lake_table::LakePins;
use crate::listener::Shared;
use crate::notifications::Change;
use crate::schemas;
use crate::seen::Seen;
use crate::sequences::ClientSequences;
use crate::sql::plan::{ALL, show_columns};
use crate::sql::{
    Bound, CopyFormat, CopyPlan, ExecutePlan, FetchPlan, Isolation, KeyedRows, Planner,
    PreparePlan, Scroll, SettingChange,
};
use definition::Touched;
use savepoint::NamedSavepoint;
use settings::Defaults;
use temporary::Temporaries;
use transaction::Work;
use user::Users;

/// The name of the only database there is.
pub(crate) const DATABASE: &str = "onrush";
/// What PostgreSQL clients are told about their server. Many read the number behind the first word.
pub(crate) const VERSION: &str =
    concat!("PostgreSQL 15.0 (Onrush ", env!("CARGO_PKG_VERSION"), ")");

/// What a statement answers.
pub(crate) enum Answer {
    /// It is done; this is its tag.
    Done(Cow<'static, str>),
    Rows(Box<RowStream>),
    CopyIn(Box<CopyPlan>),
    CopyOut(CopyFormat, Box<RowStream>),
    /// Done, and all prepared statements of the client are to be forgotten.
    Discarded(Cow<'static, str>),
    /// This statement is to be kept for the client.
    Prepare(Box<PreparePlan>),
    /// This prepared statement of the client is to be run.
    Execute(Box<ExecutePlan>),
    /// This prepared statement of the client is to be forgotten.
    Deallocated(String),
    /// Rows that the client will ask for by a name.
    Declared(Declared),
    /// The next rows of a cursor of the client are to be sent.
    Fetch(FetchPlan),
    /// This cursor of the client is to be forgotten, or all.
    ClosedCursor(Option<String>),
}

/// A cursor that is to be.
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) rows: Box<RowStream>,
    /// None where its rows are no rows of tables.
    pub(crate) keyed: Option<Arc<KeyedRows>>,
    pub(crate) scroll: Scroll,
    /// It stays when its transaction has committed.
    pub(crate) is_held: bool,
}

impl Answer {
    fn rows(rows: RowStream) -> Answer {
        Answer::Rows(Box::new(rows))
    }
}

/// One client's side of the database.
pub(crate) struct Backend {
    pub(super) database: Database,
    queries: Arc<QueryEngine>,
    pub(super) access: Arc<Access>,
    clients: Arc<Clients>,
    defaults: Arc<DatabaseDefaults>,
    /// Which of many nodes the database is.
    node: Option<u32>,
    lake: Arc<Lake>,
    /// What the statement, or the transaction, reads of it.
    pins: Arc<LakePins>,
    archives: Arc<Archives>,
    /// Whether answers since the last [`take_rest`](Self::take_rest) wait for the archive, too.
    waits_for_archive: bool,
    /// This client, as others see it.
    pub(crate) presence: Presence,
    client: Client,
    /// Who came in.
    came_in: Identity,
    /// As whom it acts.
    pub(super) who: Identity,
    /// What the client knows of sequences.
    sequences: Arc<ClientSequences>,
    /// The client's advisory locks.
    locks: Arc<ClientLocks>,
    pub(crate) control: Arc<ClientControl>,
    pub(super) work: Work,
    /// What the client sees of definitions.
    pub(crate) seen: Seen,
    /// Whether the open transaction has defined something.
    has_defined: bool,
    /// What it has changed beside tables.
    touched: Touched,
    /// Those of the open transaction, the oldest first.
    savepoints: Vec<NamedSavepoint>,
    /// Whether the transaction that was over last was rolled back.
    pub(crate) is_rolled_back: bool,
    /// Whether the transaction has begun with the end of another one, whose cursors are still to be ended.
    pub(crate) has_chained: bool,
    /// Whether the open transaction ends with the client's Sync.
    is_pipeline: bool,
    temporaries: Temporaries,
    pub(crate) settings: Settings,
    /// What the answers that are not sent yet must wait for, beside what the session says.
    newest: Option<CommitToken>,
    /// To be told before the next answer.
    pub(crate) notices: Vec<SqlError>,
    /// How long the running statement may go on.
    pub(crate) patience: Patience,
}

impl Backend {
    /// For a client that has come in.
    pub(crate) fn new(shared: &Shared, mut who: Identity, door: &Door) -> Result<Backend> {
        let database = &shared.database;
        let mut session = database.session()?;
        let user: Arc<str> = who.name.as_str().into();
        who.temporary_schema = schemas::temporary_of(session.id());
        let settings = Settings::new(Arc::new(Defaults {
            user: Arc::clone(&user),
            is_superuser: shared.access.is_superuser(&who),
            temporary_schema: who.temporary_schema.clone(),
            is_durable: session.durability() == Durability::Durable,
            is_archived: shared.archives.is_there(),
            connections_max: shared.options.connections_max,
            connections_reserved: shared.options.connections_reserved,
            of_database: shared.defaults.all(),
        }));
        session.set_waits_later(true);
        let clients = &shared.clients;
        let client = Client {
            number: clients.next_number(),
            session_user: Arc::clone(&user),
            user,
            database: DATABASE.into(),
            version: VERSION.into(),
            settings: None,
        };
        let patience = Patience::with(door.line.clone());
        session.set_waiting(Some(Arc::new(patience.clone())));
        let sequences = Arc::new(ClientSequences::new(
            &shared.sequences,
            &who,
            &patience,
            session.generated_values(),
        ));
        let locks = session.advisory_locks();
        let locks = Arc::new(ClientLocks { locks, patience: patience.clone() });
        let control = Arc::new(ClientControl::new(clients, &shared.access, &patience));
        let address = door.peer.to_string();
        let newcomer =
            Newcomer { number: client.number, user: &client.user, session: session.id(), address };
        let presence = clients.enter(newcomer, &patience.signals);
        Ok(Backend {
            database: database.clone(),
            queries: Arc::clone(&shared.queries),
            access: Arc::clone(&shared.access),
            clients: Arc::clone(clients),
            defaults: Arc::clone(&shared.defaults),
            node: shared.node,
            lake: Arc::clone(&shared.lake),
            pins: Arc::default(),
            archives: Arc::clone(&shared.archives),
            waits_for_archive: false,
            presence,
            client,
            came_in: who.clone(),
            who,
            sequences,
            locks,
            control,
            work: Work::Idle(Box::new(session)),
            seen: Seen::committed(database),
            has_defined: false,
            touched: Touched::NOTHING,
            savepoints: Vec::new(),
            is_rolled_back: false,
            has_chained: false,
            is_pipeline: false,
            temporaries: Temporaries::default(),
            settings,
            newest: None,
            notices: Vec::new(),
            patience,
        })
    }

    pub(crate) fn planner(&self) -> Planner<'_> {
        Planner {
            database: &self.database,
            queries: &self.queries,
            clients: &self.clients,
            access: &self.access,
            path: &self.settings.path,
            seen: &self.seen,
            node: self.node,
            lake: &self.lake,
            archives: &self.archives,
            steps: None,
        }
    }

    /// Grows with every table that is created, altered or dropped.
    pub(crate) fn definitions_version(&self) -> u64 {
        self.database.definitions_version()
    }

    /// Before the client is told that the server is ready: what a statement without a transaction has locked for its
    /// transaction is given back.
    pub(crate) fn end_locks(&self) {
        if matches!(self.work, Work::Idle(_)) {
            self.locks.locks.end_transaction();
            self.control.end_transaction();
            self.control.said.commit(&self.presence.entry().inbox);
        }
    }

    /// What the client is told with each *ready*.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.work {
            Work::Idle(_) | Work::Gone => TransactionStatus::Idle,
            Work::Open(_) => TransactionStatus::Transaction,
            Work::Failed(_) => TransactionStatus::Error,
        }
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        !matches!(self.work, Work::Idle(_))
    }

    /// Whether a statement of rows outside of a transaction needs one of its own, in which what it reads is noted.
    pub(crate) fn is_serializable(&self) -> bool {
        self.settings.isolation == Isolation::Serializable
    }

    /// Runs a plan. After an error an open transaction takes nothing but its end
    /// or the way back to a savepoint.
    pub(crate) async fn execute(&mut self, plan: &Plan, bound: &Bound) -> Result<Answer> {
        self.follow_setting();
        if matches!(self.work, Work::Idle(_)) {
            self.pins = Arc::default();
        }
        let ends = matches!(plan, Plan::Session(plan) if plan.is_for_failed_transaction());
        if matches!(self.work, Work::Failed(_)) && !ends {
            return Err(in_failed_transaction());
        }
        let allowed = self.check_read_only(plan).and_then(|()| plan.check_rights(self));
        let allowed = match plan {
            Plan::Session(_) => allowed,
            _ => allowed.and_then(|()| self.look_at_others()),
        };
        let answer = match allowed {
            Ok(()) => plan.run(self, bound).await,
            Err(refused) => Err(refused),
        };
        let answer = answer.and_then(|answer| self.settle_references().map(|()| answer));
        if answer.is_err() {
            self.fail_work();
        }
        answer
    }

    /// A statement could not even be planned, or failed on its way to the client.
    pub(crate) fn fail(&mut self) {
        // It was a statement all the same: behind a savepoint others see what it would have seen.
        if !self.settings.has_begun {
            let _ = self.look_at_others();
        }
        if !self.is_in_transaction() {
            self.control.said.go_back(0);
        }
        self.fail_work();
    }

    /// Others are told what was committed and is durable.
    pub(crate) fn tell_others(&self) {
        for notification in self.control.said.take_committed() {
            self.clients.tell(&notification);
        }
    }

    fn fail_work(&mut self) {
        // The transaction may be gone with what it rests on.
        self.newest = self.take_rest();
        self.work.fail(!self.savepoints.is_empty());
    }

    /// What all answers since the last call rest on: they must not be sent before it is durable.
    pub(crate) fn take_rest(&mut self) -> Option<CommitToken> {
        let rest = match &mut self.work {
            Work::Idle(session) => session.take_rest(),
            Work::Open(open) | Work::Failed(open) => open.with_dependent_mut(|_, transaction| {
                transaction.as_mut().and_then(Transaction::take_rest)
            }),
            Work::Gone => None,
        };
        rest.into_iter().chain(self.newest.take()).max_by_key(CommitToken::lsn)
    }

    /// What answers that rest on `lsn` wait for besides, by `synchronous_commit` as it was when their statements began.
    pub(crate) fn take_archive_wait(
        &mut self,
        lsn: Lsn,
    ) -> Option<impl Future<Output = Result<()>> + Send + use<>> {
        match std::mem::take(&mut self.waits_for_archive) {
            true => self.archives.wait(lsn),
            false => None,
        }
    }

    /// The engine's session becomes as durable as `synchronous_commit` says now.
    pub(super) fn follow_setting(&mut self) {
        self.waits_for_archive |= self.settings.waits_for_archive;
        let durability = match self.settings.is_durable {
            true => Durability::Durable,
            false => Durability::Delayed,
        };
        match &mut self.work {
            Work::Idle(session) => session.set_durability(durability),
            Work::Open(open) | Work::Failed(open) => open.with_dependent_mut(|_, transaction| {
                transaction
                    .iter_mut()
                    .for_each(|transaction| transaction.set_durability(durability));
            }),
            Work::Gone => {}
        }
    }

    /// Tells everybody who looks who this client is.
    pub(crate) fn introduce(&self) {
        let application = self.settings.application();
        self.presence.is_called(application);
        let client = SessionClient {
            application: application.to_owned(),
            user: self.came_in.name.clone(),
            address: self.presence.entry().address.clone(),
        };
        self.database.set_session_client(self.presence.entry().session, client);
    }

    fn set(&mut self, change: &SettingChange) -> Result<()> {
        self.settings.check_scope(change, self.is_in_transaction())?;
        match change.name.as_deref().map(str::to_lowercase) {
            Some(name) if user::is_of_users(&name) => self.set_user(&name, change)?,
            _ => self.settings.change(change)?,
        }
        self.follow_users();
        self.introduce();
        Ok(())
    }

    /// DISCARD; with ALL the connection forgets statements and cursors.
    fn discard(&mut self, what: DiscardObject) -> Result<Answer> {
        match what {
            DiscardObject::ALL => {
                self.outside_transaction("DISCARD ALL")?;
                self.discard_temporaries()?;
                self.sequences.discard();
                self.locks.locks.unlock_all();
                self.control.said.change(Change::Unlisten(None))?;
                self.settings.reset();
                self.settings.change_users(Users::default(), false);
                self.follow_users();
                self.introduce();
                return Ok(Answer::Discarded("DISCARD ALL".into()));
            }
            DiscardObject::TEMP => self.discard_temporaries()?,
            DiscardObject::SEQUENCES => self.sequences.discard(),
            // One that is kept is as good as a new one.
            DiscardObject::PLANS => {}
        }
        Ok(Answer::Done(format!("DISCARD {what}").into()))
    }

    fn show(&self, name: &str) -> Result<Answer> {
        let rows = match name {
            ALL => {
                let row = |(name, value): (&str, String)| {
                    vec![name.to_owned().into(), value.into(), Value::from("")]
                };
                self.settings.all().into_iter().map(row).collect()
            }
            name => vec![vec![Value::from(self.settings.show(name)?)]],
        };
        Ok(Answer::rows(RowStream::of_rows(show_columns(name), rows, "SHOW")))
    }

    /// The session, outside of a transaction.
    pub(super) fn idle(&mut self) -> Result<&mut Session> {
        match &mut self.work {
            Work::Idle(session) => Ok(session),
            _ => Err(SqlError::new(state::INTERNAL, "there is a transaction where none can be")),
        }
    }

    /// Most definitions are no part of transactions.
    pub(super) fn outside_transaction(&self, what: &str) -> Result<()> {
        if !self.is_in_transaction() {
            return Ok(());
        }
        let message = format!("{what} cannot run inside a transaction block");
        Err(SqlError::new(state::ACTIVE_TRANSACTION, message)
            .with_hint("It takes effect at once and cannot be rolled back: COMMIT first."))
    }

    /// A statement with this text begins: its time starts to count.
    pub(crate) fn begin_statement(&mut self, text: &Arc<str>) {
        clock::begin_statement(self.presence.begins(text));
        self.patience.begin(self.settings.statement_timeout, self.settings.lock_timeout);
        self.look_if_old();
    }

    /// Inside a transaction that defines something: what others have defined since is seen as well.
    pub(crate) fn look_if_old(&mut self) {
        if self.seen.is_old() {
            // What cannot be looked at stays as it was, and what is done with it fails.
            let _ = self.look_again();
        }
    }

    /// What is said where something is missing that a failed transaction may have taken with it.
    pub(crate) fn after_failure(&self, error: SqlError) -> SqlError {
        if matches!(self.work, Work::Failed(_)) { in_failed_transaction() } else { error }
    }

    /// An error as the client is to be told of it.
    pub(crate) fn told(&self, error: SqlError) -> SqlError {
        if error.is_interrupted() { self.patience.given_up() } else { error }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.work.end();
        self.leave_temporaries();
    }
}

pub(crate) fn in_failed_transaction() -> SqlError {
    SqlError::new(
        state::IN_FAILED_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
    .with_hint("ROLLBACK ends it.")
}

/// The words that tell that a statement is done.
pub(crate) fn tag(verb: &'static str, rows: u64) -> Cow<'static, str> {
    match (verb, rows) {
        ("INSERT", 1) => "INSERT 0 1".into(),
        ("INSERT", rows) => format!("INSERT 0 {rows}").into(),
        ("SHOW" | "CALL", _) => verb.into(),
        (verb, rows) => format!("{verb} {rows}").into(),
    }
}
